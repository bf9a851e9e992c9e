/* SPDX-License-Identifier: MIT */
/*
 * http.limit: limits the rate of requests per client, or per value of other fields.
 *
 * The key of a request is a hash of the fields in `by`, with a random seed, so that no client can choose a
 * key that collides with another's. An IPv6 address counts as its /64, which is what a client usually has.
 * A request over the rate ends as WEIR_ERATE, so it counts as shed by this stage, and its answer is 429.
 */
#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include <weir/http.h>
#include <weir/weir.h>

#include "http/request/request.h"
#include "http/site/rates.h"
#include "text/sip.h"

/* Most fields in `by`. */
#define FIELDS_MAX 4
/* Smallest automatic burst: a browser asks for the parts of a page at the same time. */
#define BURST_MIN 10
/* Longest Retry-After, in s: a day. */
#define RETRY_MAX_S 86400

enum metric { LIMITED, UNKEYED, EVICTED };

enum missing { MISSING_SHARE, MISSING_PASS };

struct limit_conf {
	struct weir_strings by;
	double rate;   /* per s; 0: no limit */
	int64_t burst; /* -1: auto */
	int64_t keys;
	int status;  /* index in the choices */
	int missing; /* enum missing */
};

struct key_field {
	const struct weir_field *field;
	const char *arg; /* the name behind "header."; points into the configuration */
	bool address;
};

struct limit {
	struct rates *rates;
	uint64_t seed[2];
	int n;
	struct key_field field[FIELDS_MAX];
};

/* ---- requests ---- */

/* The bytes of `s` that count: of an IPv6 address its network, written to `net`. */
static struct weir_slice network(struct weir_slice s, struct in6_addr *net)
{
	char text[INET6_ADDRSTRLEN];

	if (s.n >= sizeof(text) || !s.p || !memchr(s.p, ':', s.n))
		return s;
	memcpy(text, s.p, s.n);
	text[s.n] = '\0';
	if (inet_pton(AF_INET6, text, net) != 1)
		return s;
	return (struct weir_slice){(const char *)net, 8};
}

/* Return the key of `ev`; *found is set if it has any of the fields. */
static uint64_t key_of(const struct limit *l, const struct weir_event *ev, bool *found)
{
	uint64_t key = 0;

	*found = false;
	for (int i = 0; i < l->n; i++) {
		const struct key_field *f = &l->field[i];
		struct weir_slice s = f->field->get(ev, f->arg);
		struct in6_addr net;
		*found |= s.p != NULL;
		if (f->address)
			s = network(s, &net);
		uint64_t pair[2] = {key, sip_hash(l->seed, s.p, s.p ? s.n : 0) + (s.p != NULL)};
		key = sip_hash(l->seed, pair, sizeof(pair));
	}
	return key;
}

/* Return the ns until the request would be within the rate, or 0 if it is. */
static int64_t wait_of(struct weir_stage *st, const struct weir_event *ev)
{
	const struct limit_conf *conf = weir_conf(st);
	const struct limit *l = weir_state(st);
	int64_t burst = conf->burst > 0          ? conf->burst
			: conf->rate > BURST_MIN ? (int64_t)conf->rate
						 : BURST_MIN;
	bool found;
	uint64_t key = key_of(l, ev, &found);

	if (!found)
		weir_count(st, UNKEYED, 1);
	if (conf->rate <= 0 || (!found && conf->missing == MISSING_PASS))
		return 0;
	struct rates_verdict v = rates_take(l->rates, key, conf->rate, burst, weir_now_ns(st));
	if (v.evicted)
		weir_count(st, EVICTED, 1);
	return v.wait_ns;
}

static void limit_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	const struct limit_conf *conf = weir_conf(st);

	for (int i = 0; i < n; i++) {
		int64_t wait_ns = wait_of(st, ev[i]);
		if (wait_ns == 0) {
			weir_emit(st, 0, &ev[i]);
			continue;
		}
		int64_t s = (wait_ns + 999999999) / 1000000000;
		struct http_req *r = weir_event_cast(ev[i], &weir_http_request_type);
		r->limit_status = conf->status == 0 ? 429 : 503;
		r->limit_s = (uint32_t)(s < RETRY_MAX_S ? s : RETRY_MAX_S);
		weir_count(st, LIMITED, 1);
		weir_event_finish(&ev[i], WEIR_ERATE);
	}
}

/* ---- startup ---- */

static bool find_field(struct key_field *f, const char *text)
{
	for (const struct weir_field *row = weir_http_request_type.fields; row->name; row++) {
		size_t n = strlen(row->name);
		bool takes = row->name[n - 1] == '.';
		if (takes ? strncmp(text, row->name, n) != 0 || !text[n]
			  : strcmp(text, row->name) != 0)
			continue;
		*f = (struct key_field){.field = row, .arg = takes ? text + n : NULL};
		f->address = strcmp(row->name, "address") == 0 || strcmp(row->name, "peer") == 0;
		return true;
	}
	return false;
}

static int find_fields(struct weir_stage *st, struct weir_err *err)
{
	const struct limit_conf *conf = weir_conf(st);
	struct limit *l = weir_state(st);
	char at[32];

	weir_blame(st, "by");
	if (conf->by.n < 1 || conf->by.n > FIELDS_MAX) {
		snprintf(err->text, sizeof(err->text), "'by' has %d fields", conf->by.n);
		snprintf(err->hint, sizeof(err->hint), "name 1 to %d", FIELDS_MAX);
		return WEIR_EINVAL;
	}
	for (l->n = 0; l->n < conf->by.n; l->n++) {
		if (find_field(&l->field[l->n], conf->by.items[l->n]))
			continue;
		snprintf(at, sizeof(at), "by.%d", l->n + 1);
		weir_blame(st, at);
		snprintf(err->text, sizeof(err->text), "requests have no field '%.60s'",
		    conf->by.items[l->n]);
		snprintf(err->hint, sizeof(err->hint),
		    "address, peer, connection, host, path, method, header.NAME and others");
		return WEIR_EINVAL;
	}
	return 0;
}

static int limit_init(struct weir_stage *st, struct weir_err *err)
{
	const struct limit_conf *conf = weir_conf(st);
	struct limit *l = weir_state(st);

	if (find_fields(st, err) != 0)
		return WEIR_EINVAL;
	if (getrandom(l->seed, sizeof(l->seed), 0) != sizeof(l->seed))
		return WEIR_ESYS;
	l->rates = rates_new(conf->keys);
	return l->rates ? 0 : WEIR_ENOMEM;
}

static void limit_fini(struct weir_stage *st)
{
	struct limit *l = weir_state(st);

	rates_free(l->rates);
}

#define ROW(member) offsetof(struct limit_conf, member)

static const struct weir_knob knobs[] = {
    {.name = "by",
	.type = WEIR_KNOB_STRINGS,
	.offset = ROW(by),
	.def = "address",
	.help = "fields of the request whose values, together, have a rate of their own: address, "
		"header.NAME, host, path, method; IPv6 addresses count by their /64"},
    {.name = "rate",
	.type = WEIR_KNOB_RATE,
	.offset = ROW(rate),
	.flags = WEIR_KNOB_REQUIRED | WEIR_KNOB_LIVE,
	.min = 0,
	.max = 1e6,
	.help = "requests per second of each value; 0 is no limit"},
    {.name = "burst",
	.type = WEIR_KNOB_INT,
	.offset = ROW(burst),
	.def = "auto",
	.min = 1,
	.max = 1e6,
	.flags = WEIR_KNOB_LIVE | WEIR_KNOB_AUTO,
	.help = "requests at once of a value that has been idle; auto is those of one second, at "
		"least 10"},
    {.name = "keys",
	.type = WEIR_KNOB_INT,
	.offset = ROW(keys),
	.def = "64k",
	.min = 512,
	.max = 16e6,
	.help = "values whose rates are kept, with 16 bytes of memory each; beyond them, the ones "
		"that are furthest below their rate are forgotten"},
    {.name = "status",
	.type = WEIR_KNOB_ENUM,
	.offset = ROW(status),
	.def = "429",
	.choices = "429|503",
	.flags = WEIR_KNOB_LIVE,
	.help = "status of the answer to a request over the rate"},
    {.name = "missing",
	.type = WEIR_KNOB_ENUM,
	.offset = ROW(missing),
	.def = "share",
	.choices = "share|pass",
	.flags = WEIR_KNOB_LIVE,
	.help = "requests that have none of the fields share one rate, or pass"},
    {.name = NULL},
};

static const struct weir_metric metrics[] = {
    [LIMITED] = {"http_limited_total", WEIR_METRIC_COUNTER, "requests",
	"requests refused because they were over the rate"},
    [UNKEYED] = {"http_limit_missing_total", WEIR_METRIC_COUNTER, "requests",
	"requests that had none of the fields of the limit"},
    [EVICTED] = {"http_limit_evicted_total", WEIR_METRIC_COUNTER, "keys",
	"values forgotten although they were not idle, because 'keys' was reached"},
    {NULL, WEIR_METRIC_COUNTER, NULL, NULL},
};

static const struct weir_outlet outlets[] = {
    {"out", WEIR_ANY_EVENT, false, "every request within the rate"},
    {NULL, NULL, false, NULL},
};

extern const struct weir_stage_ops weir_stage_http_limit;
const struct weir_stage_ops weir_stage_http_limit = {
    .abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_IN_PARTS,
    .name = "http.limit",
    .summary = "Refuses requests of clients, or of other values, that exceed a rate",
    .accepts = &weir_http_request_type,
    .outlets = outlets,
    .knobs = knobs,
    .conf_size = sizeof(struct limit_conf),
    .metrics = metrics,
    .state_size = sizeof(struct limit),
    .init = limit_init,
    .handle = limit_handle,
    .fini = limit_fini,
};
