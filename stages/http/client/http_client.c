/* SPDX-License-Identifier: MIT */
/*
 * http.client: passes requests on to origins, as a reverse proxy; see client.h.
 *
 * The handler begins the exchange in the loop of its thread, if that has one. Otherwise it sends each event
 * to one of the stage's own loops, in turn. A drain lets the exchanges end until its time is over, and then
 * answers the rest with 503.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include <weir/clock.h>
#include <weir/graph.h>

#include "http/client/client.h"

/* How often a drain looks whether it must end at once. */
#define LOOK_NS 50000000LL

static void send_to_loops(struct weir_stage *st, struct weir_event **ev, int n)
{
	struct client *c = weir_state(st);
	unsigned at = atomic_fetch_add_explicit(&c->next, (unsigned)n, memory_order_relaxed);

	for (int i = 0; i < n; i++) {
		struct client_loop *cl = c->loop[(at + (unsigned)i) % (unsigned)c->n_loops];
		struct weir_event *e = ev[i];
		weir_hold(st, &ev[i]);
		atomic_fetch_add(&cl->held, 1);
		weir_loop_send(cl->loop, e);
	}
}

static void client_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	struct client_loop *cl = client_loop_here(st);

	if (!cl) {
		send_to_loops(st, ev, n);
		return;
	}
	for (int i = 0; i < n; i++) {
		struct weir_event *e = ev[i];
		weir_hold(st, &ev[i]);
		atomic_fetch_add(&cl->held, 1);
		exchange_new(cl, e);
	}
}

/* ---- start and end ---- */

static const struct weir_field *find_field(const char *name)
{
	for (const struct weir_field *f = weir_http_request_type.fields; f->name; f++)
		if (strcmp(f->name, name) == 0)
			return f;
	return NULL;
}

static int init_tls(struct weir_stage *st, struct weir_err *err)
{
	const struct client_conf *conf = weir_conf(st);
	struct client *c = weir_state(st);
	bool secure = false;

	for (int i = 0; i < c->n_origins; i++)
		secure |= c->spec[i].secure;
	if (!secure)
		return 0;
	if (!conf->tls.verify)
		weir_warn(st, "tls.verify",
		    "certificates are not verified, so anybody on the path to an origin can read "
		    "and change what is sent");
	return tls_origins_new(&conf->tls, &c->tls, err);
}

static void free_tables(struct client *c)
{
	free(c->spec);
	free(c->endpoint);
}

static int client_init(struct weir_stage *st, struct weir_err *err)
{
	const struct client_conf *conf = weir_conf(st);
	struct client *c = weir_state(st);
	uint32_t id;
	int rc;

	c->st = st;
	c->n_origins = conf->origins.n;
	c->spec = calloc((size_t)c->n_origins + 1, sizeof(*c->spec));
	if (!c->spec)
		return WEIR_ENOMEM;
	rc = origins_parse(&conf->origins, c->spec, err);
	if (rc == 0 && !health_path_good(conf->health.path)) {
		snprintf(err->text, sizeof(err->text),
		    "'health.path' must begin with '/' and be at most %d bytes without spaces",
		    CLIENT_HEALTH_PATH);
		rc = WEIR_EINVAL;
	}
	if (rc == 0)
		rc = origins_conf(c, err);
	if (rc == 0)
		origins_look(c);
	if (rc == 0)
		rc = names_table(c);
	if (rc == 0)
		rc = init_tls(st, err);
	if (rc != 0) {
		free_tables(c);
		return rc;
	}
	if (getrandom(&id, sizeof(id), 0) != sizeof(id))
		id = (uint32_t)weir_clock_ns(CLOCK_MONOTONIC);
	snprintf(c->via, sizeof(c->via), "1.1 weir-%08x", id);
	c->peer = find_field("peer");
	c->scheme = find_field("scheme");
	sem_init(&c->ended, 0, 0);
	pthread_mutex_init(&c->lock, NULL);
	return 0;
}

static int client_start(struct weir_stage *st, struct weir_err *err)
{
	const struct client_conf *conf = weir_conf(st);
	struct client *c = weir_state(st);
	int rc = 0;

	(void)err;
	while (rc == 0 && c->n_loops < conf->loops) {
		struct client_loop *cl = client_loop_new(c, c->n_loops);
		rc = cl ? weir_loop_start(st, c->n_loops, &client_loop_ops, cl, &cl->loop)
			: WEIR_ENOMEM;
		if (rc == 0)
			c->loop[c->n_loops++] = cl;
		else if (cl)
			client_loop_free(cl);
	}
	return rc;
}

static int64_t all_held(struct client *c)
{
	int64_t n = 0;

	for (int i = 0; i < c->n_loops; i++)
		n += atomic_load(&c->loop[i]->held);
	pthread_mutex_lock(&c->lock);
	for (struct client_loop *cl = c->guests; cl; cl = cl->next)
		n += atomic_load(&cl->held);
	pthread_mutex_unlock(&c->lock);
	return n;
}

/* End what is under way, and what comes from now on. */
static void end_all(struct client *c)
{
	if (atomic_exchange(&c->hurry, true))
		return;
	for (int i = 0; i < c->n_loops; i++)
		weir_loop_send(c->loop[i]->loop, &c->loop[i]->quit);
	pthread_mutex_lock(&c->lock);
	for (struct client_loop *cl = c->guests; cl; cl = cl->next)
		weir_loop_send(cl->loop, &cl->quit);
	weir_thread_flush(); /* while no guest can leave */
	pthread_mutex_unlock(&c->lock);
}

/* Wait until nothing is held, at most until `until_ns`, or until the drain must end at once. */
static void await_end(struct weir_stage *st, int64_t until_ns, bool hurried)
{
	struct client *c = weir_state(st);

	while (all_held(c) > 0) {
		int64_t now_ns = weir_clock_ns(CLOCK_MONOTONIC), at_ns = now_ns + LOOK_NS;
		if (now_ns >= until_ns || (!hurried && weir_hurried(st)))
			return;
		at_ns = at_ns < until_ns ? at_ns : until_ns;
		struct timespec at = {at_ns / 1000000000, at_ns % 1000000000};
		sem_clockwait(&c->ended, CLOCK_MONOTONIC, &at);
	}
}

static void client_stop(struct weir_stage *st, int64_t until_ns)
{
	struct client *c = weir_state(st);

	WEIR_ASSERT(c != NULL); /* which gcc cannot tell across files */
	atomic_store(&c->closing, true);
	await_end(st, until_ns, false);
	if (all_held(c) == 0)
		return;
	end_all(c);
	await_end(st, weir_clock_ns(CLOCK_MONOTONIC) + 1000000000, true);
}

static void client_fini(struct weir_stage *st)
{
	struct client *c = weir_state(st);

	for (int i = 0; i < c->n_loops; i++) {
		weir_loop_stop(c->loop[i]->loop);
		weir_loop_join(c->loop[i]->loop);
		client_loop_free(c->loop[i]);
	}
	sem_destroy(&c->ended);
	pthread_mutex_destroy(&c->lock);
	tls_origins_free(c->tls);
	free_tables(c);
}

/* ---- the tables ---- */

#define ROW(member) offsetof(struct client_conf, member)

static const struct weir_knob health_knobs[] = {
    {.name = "path",
	.type = WEIR_KNOB_STRING,
	.offset = ROW(health.path),
	.def = "",
	.help = "what each origin is asked for to see whether it is well; if empty, nothing"},
    {.name = "every",
	.type = WEIR_KNOB_DURATION,
	.offset = ROW(health.every_ns),
	.def = "5s",
	.min = 1e6,
	.max = 3.6e12,
	.help = "time between two checks of an origin, in which it must answer"},
    {0},
};

#define RESOLVE_DURATION(key, member, value, text)                                                 \
	{                                                                                          \
		.name = key, .type = WEIR_KNOB_DURATION, .offset = ROW(resolve.member),            \
		.def = value, .min = 1e6, .max = 7 * 86400e9, .help = text                         \
	}

static const struct weir_knob resolve_knobs[] = {
    {.name = "servers",
	.type = WEIR_KNOB_STRINGS,
	.offset = ROW(resolve.servers),
	.help = "name servers, ADDRESS or ADDRESS:PORT; if empty, those of 'resolv_conf'"},
    {.name = "resolv_conf",
	.type = WEIR_KNOB_STRING,
	.offset = ROW(resolve.file),
	.def = "/etc/resolv.conf",
	.help = "file with the name servers and search domains; read again when it changes"},
    RESOLVE_DURATION("ttl_min", ttl_min_ns, "1s", "shorter TTLs are raised to it"),
    RESOLVE_DURATION("ttl_max", ttl_max_ns, "1h", "longer TTLs are lowered to it"),
    RESOLVE_DURATION("negative", negative_ns, "5s",
	"time after which a name without an address is asked for again"),
    RESOLVE_DURATION("stale", stale_ns, "1h",
	"how much longer than their TTL addresses are used while no name server answers"),
    RESOLVE_DURATION("attempt", attempt_ns, "2s", "time-out of the first question to each server"),
    {.name = "tries",
	.type = WEIR_KNOB_INT,
	.offset = ROW(resolve.tries),
	.def = "2",
	.min = 1,
	.max = 10,
	.help = "how often each server is asked; each time the time-out doubles"},
    {0},
};

static const struct weir_knob client_knobs[] = {
    {.name = "origins",
	.type = WEIR_KNOB_STRINGS,
	.offset = ROW(origins),
	.flags = WEIR_KNOB_REQUIRED,
	.help = "servers to which requests are passed on, HOST:PORT, http://HOST:PORT, "
		"https://HOST:PORT or unix:/PATH; each address of a name is an origin of its own"},
    {.name = "loops",
	.type = WEIR_KNOB_INT,
	.offset = ROW(loops),
	.def = "1",
	.min = 1,
	.max = CLIENT_LOOPS_MAX,
	.help = "threads of the stage that pass on the requests of threads without an event loop; "
		"with 'threads: inline' the threads of http.server do so"},
    {.name = "max_connections",
	.type = WEIR_KNOB_INT,
	.offset = ROW(max_connections),
	.def = "1024",
	.min = 1,
	.max = 65535,
	.flags = WEIR_KNOB_LIVE,
	.help =
	    "limit on connections to each origin; it is divided among the threads that have some, "
	    "and rounded up; beyond it, requests wait for a connection"},
    {.name = "connect_timeout",
	.type = WEIR_KNOB_DURATION,
	.offset = ROW(connect_timeout_ns),
	.def = "2s",
	.min = 1e6,
	.max = 3.6e12,
	.flags = WEIR_KNOB_LIVE,
	.help = "time in which a connection must be open, with its TLS handshake"},
    {.name = "timeout",
	.type = WEIR_KNOB_DURATION,
	.offset = ROW(timeout_ns),
	.def = "30s",
	.min = 1e6,
	.max = 3.6e12,
	.flags = WEIR_KNOB_LIVE,
	.help =
	    "time from a request to the end of the head of its answer, and the longest pause in a "
	    "body; then the client gets 504 or, within a body, its connection is aborted"},
    {.name = "idle",
	.type = WEIR_KNOB_DURATION,
	.offset = ROW(idle_ns),
	.def = "30s",
	.min = 1e6,
	.max = 3.6e12,
	.flags = WEIR_KNOB_LIVE,
	.help = "time after which a connection that is not used is closed"},
    {.name = "retries",
	.type = WEIR_KNOB_INT,
	.offset = ROW(retries),
	.def = "1",
	.min = 0,
	.max = 10,
	.flags = WEIR_KNOB_LIVE,
	.help = "times that a request is sent to another origin if one cannot be reached or closes "
		"the connection; methods that are not idempotent only if it cannot be reached"},
    {.name = "retry_budget",
	.type = WEIR_KNOB_RATIO,
	.offset = ROW(retry_budget),
	.def = "10%",
	.min = 0,
	.max = 1,
	.flags = WEIR_KNOB_LIVE,
	.help = "largest share of retries in the requests of a loop, of which 10 may be saved up"},
    {.name = "retry_on",
	.type = WEIR_KNOB_STRINGS,
	.offset = ROW(retry_on),
	.def = "connect, reset",
	.help =
	    "what is tried again at another origin: connect, reset (closed before an answer), and "
	    "answers with 502, 503, 504"},
    {.name = "min_rate",
	.type = WEIR_KNOB_RATE,
	.offset = ROW(min_rate),
	.def = "1k",
	.min = 0,
	.max = 1e9,
	.flags = WEIR_KNOB_LIVE,
	.help = "bytes per second at which a body of known length must arrive after 5 s; 0 is no "
		"minimum"},
    {.name = "deny",
	.type = WEIR_KNOB_STRINGS,
	.offset = ROW(deny),
	.help =
	    "addresses that are never connected to: networks, or 'private' for all that are not "
	    "global"},
    {.name = "upgrades",
	.type = WEIR_KNOB_INT,
	.offset = ROW(upgrades),
	.def = "0",
	.min = 0,
	.max = 1e6,
	.flags = WEIR_KNOB_LIVE,
	.help =
	    "limit on connections that are upgraded to WebSocket; beyond it, 503; 0: requests are "
	    "passed on without the upgrade"},
    {.name = "upgrade_idle",
	.type = WEIR_KNOB_DURATION,
	.offset = ROW(upgrade_idle_ns),
	.def = "5m",
	.min = 1e6,
	.max = 7 * 86400e9,
	.flags = WEIR_KNOB_LIVE,
	.help = "time without a byte after which an upgraded connection is closed"},
    {.name = "fails",
	.type = WEIR_KNOB_INT,
	.offset = ROW(fails),
	.def = "3",
	.min = 0,
	.max = 1e6,
	.flags = WEIR_KNOB_LIVE,
	.help = "failures in a row after which an origin is left out; 0: never"},
    {.name = "eject",
	.type = WEIR_KNOB_DURATION,
	.offset = ROW(eject_ns),
	.def = "5s",
	.min = 1e6,
	.max = 3.6e12,
	.flags = WEIR_KNOB_LIVE,
	.help = "time for which an origin is left out; one request then tries it"},
    {.name = "health",
	.type = WEIR_KNOB_MAP,
	.fields = health_knobs,
	.help = "checks that leave origins out before requests fail, and bring them back"},
    {.name = "resolve",
	.type = WEIR_KNOB_MAP,
	.fields = resolve_knobs,
	.help = "how names of origins are resolved, and for how long"},
    {.name = "tls",
	.type = WEIR_KNOB_MAP,
	.offset = ROW(tls),
	.fields = tls_origin_knobs,
	.help = "how origins with https are spoken to"},
    {0},
};

static const struct weir_metric client_metrics[] = {
#define CLIENT_METRIC_ROW(id, name, kind, unit, help) {name, WEIR_METRIC_##kind, unit, help},
    CLIENT_METRICS(CLIENT_METRIC_ROW)
#undef CLIENT_METRIC_ROW
	{0}};

const struct weir_stage_ops weir_stage_http_client = {
    .abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS | WEIR_STAGE_IN_PARTS,
    .name = "http.client",
    .summary = "Passes requests on to other HTTP servers, and their answers back",
    .accepts = &weir_http_request_type,
    .knobs = client_knobs,
    .conf_size = sizeof(struct client_conf),
    .metrics = client_metrics,
    .state_size = sizeof(struct client),
    .thread_state_size = sizeof(struct client_thread),
    .init = client_init,
    .start = client_start,
    .handle = client_handle,
    .stop = client_stop,
    .fini = client_fini,
    .thread_fini = client_loop_leave,
};
