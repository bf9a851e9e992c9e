/* SPDX-License-Identifier: MIT */
/* Counts votes: /vote?for=NAME adds one, /votes/NAME shows how many. Other requests go on. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <weir/http.h>
#include <weir/weir.h>

#define NAME_BYTES 64
#define NAMES_MAX  1000

enum { OTHER };        /* outlets */
enum { VOTES, NAMES }; /* metrics */

struct vote_conf {
	int64_t names;
};

/* zeroed by weir; `init` makes the rest */
struct vote {
	pthread_mutex_t lock;
	int n;
	struct {
		char name[NAME_BYTES];
		int64_t votes;
	} row[NAMES_MAX];
};

static const struct weir_outlet vote_outlets[] = {
    {.name = "other", .type = &weir_http_request_type}, {0}};

static const struct weir_metric vote_metrics[] = {
    {.name = "votes_total", .kind = WEIR_METRIC_COUNTER, .unit = "events", .help = "Votes"},
    {.name = "vote_names", .kind = WEIR_METRIC_GAUGE, .unit = "names", .help = "Names with votes"},
    {0},
};

static const struct weir_knob vote_knobs[] = {
    {.name = "names",
	.type = WEIR_KNOB_INT,
	.offset = offsetof(struct vote_conf, names),
	.def = "100",
	.min = 1,
	.max = 1e6,
	.help = "number of names that can have votes"},
    {0},
};

/* Called once before the first event, and by `weir check`. */
static int vote_init(struct weir_stage *st, struct weir_err *err)
{
	const struct vote_conf *conf = weir_conf(st);
	struct vote *v = weir_state(st);

	if (conf->names > NAMES_MAX) {
		snprintf(err->text, sizeof(err->text), "'names' is above %d", NAMES_MAX);
		return WEIR_EINVAL;
	}
	pthread_mutex_init(&v->lock, NULL);
	return 0;
}

/* Called once for each successful `init`, after the last event. */
static void vote_fini(struct weir_stage *st)
{
	pthread_mutex_destroy(&((struct vote *)weir_state(st))->lock);
}

/* The row of `name`, -1 if there is none. The caller holds the lock. */
static int row_of(const struct vote *v, const char *name)
{
	for (int i = 0; i < v->n; i++)
		if (strcmp(v->row[i].name, name) == 0)
			return i;
	return -1;
}

/* Returns the status of the response. */
static int add(struct weir_stage *st, const char *name)
{
	struct vote *v = weir_state(st);
	const struct vote_conf *conf = weir_conf(st);

	pthread_mutex_lock(&v->lock);
	int i = row_of(v, name);
	bool fresh = i == -1 && v->n < conf->names;
	if (fresh) {
		i = v->n++;
		strcpy(v->row[i].name, name); /* it fits: weir_http_query_get has checked */
	}
	if (i >= 0)
		v->row[i].votes++;
	pthread_mutex_unlock(&v->lock);
	weir_count(st, VOTES, i >= 0);
	weir_count(st, NAMES, fresh); /* a gauge: n may be negative, too */
	return i >= 0 ? 204 : 403;
}

static int show(struct weir_stage *st, struct weir_http_request *req, const char *name)
{
	struct vote *v = weir_state(st);
	char text[32];

	pthread_mutex_lock(&v->lock);
	int i = row_of(v, name), n = 0;
	if (i >= 0)
		n = snprintf(text, sizeof(text), "%lld\n", (long long)v->row[i].votes);
	pthread_mutex_unlock(&v->lock);
	if (i < 0)
		return weir_http_respond_status(req, 404);
	return weir_http_respond_copy(req, 200, "text/plain", (struct weir_slice){text, (size_t)n});
}

static void vote_one(struct weir_stage *st, struct weir_event **ev)
{
	static const char votes[] = "/votes/";
	const size_t n = sizeof(votes) - 1;
	struct weir_http_request *req = weir_http_request(*ev);
	struct weir_slice path = req->path;
	char name[NAME_BYTES];
	int rc;

	if (weir_slice_is(path, "/vote")) {
		/* a parameter of the query, decoded; too long or malformed is WEIR_EINVAL */
		int64_t got = weir_http_query_get(req->query, "for", name, sizeof(name));
		rc = weir_http_respond_status(req, got > 0 ? add(st, name) : 400);
	} else if (path.n > n && memcmp(path.p, votes, n) == 0 &&
		   !memchr(path.p + n, '/', path.n - n)) {
		/* one segment of the path, decoded once */
		struct weir_slice last = {path.p + n, path.n - n};
		rc = weir_http_percent_decode(last, false, name, sizeof(name)) < 0
			 ? weir_http_respond_status(req, 400)
			 : show(st, req, name);
	} else {
		weir_emit(st, OTHER, ev); /* the next stage owns the request now */
		return;
	}
	weir_event_finish(ev, rc);
}

static void vote_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		vote_one(st, &ev[i]);
}

const struct weir_stage_ops weir_stage_vote = {
    .abi = WEIR_STAGE_ABI,
    .name = "vote",
    .summary = "Counts votes",
    .accepts = &weir_http_request_type,
    .outlets = vote_outlets,
    .metrics = vote_metrics,
    .knobs = vote_knobs,
    .conf_size = sizeof(struct vote_conf),
    .state_size = sizeof(struct vote),
    .init = vote_init,
    .handle = vote_handle,
    .fini = vote_fini,
};
