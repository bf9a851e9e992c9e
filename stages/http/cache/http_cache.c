/* SPDX-License-Identifier: MIT */
/*
 * http.cache: a shared cache for HTTP (RFC 9111) between http.server and the stage that answers, usually
 * http.client. See lookup.c for what becomes of a request.
 */
#include "http/cache/http_cache.h"

#include <stdio.h>
#include <string.h>

#include "http/message/guard.h"

/* Memory of an object besides its body: the struct, and room for its key and fields. */
#define OBJECT_BYTES 4096

static int check_fields(struct weir_stage *st, struct weir_err *err)
{
	const struct hcache_conf *conf = weir_conf(st);
	char at[32];

	for (int i = 0; i < conf->key_fields.n; i++) {
		const char *name = conf->key_fields.items[i];
		if (*name != '\0' && guard_span(name, strlen(name), GUARD_TOKEN) == strlen(name))
			continue;
		snprintf(at, sizeof(at), "key_fields.%d", i + 1);
		weir_blame(st, at);
		snprintf(err->text, sizeof(err->text), "'%.60s' is no name of a field", name);
		return WEIR_EINVAL;
	}
	return 0;
}

static int init(struct weir_stage *st, struct weir_err *err)
{
	const struct hcache_conf *conf = weir_conf(st);
	struct hcache_state *state = weir_state(st);
	int rc = check_fields(st, err);

	if (rc < 0)
		return rc;
	if (conf->max_object_bytes > conf->memory_bytes - OBJECT_BYTES) {
		weir_blame(st, "max_object");
		snprintf(err->text, sizeof(err->text), "'max_object' does not fit into 'memory'");
		snprintf(err->hint, sizeof(err->hint),
		    "set 'memory' to many times 'max_object', so that several objects fit");
		return WEIR_EINVAL;
	}
	rc = hcache_store_new(conf->memory_bytes, (int)conf->variants, &state->store);
	if (rc < 0) {
		snprintf(err->text, sizeof(err->text), "no memory for the table of the cache");
		return rc;
	}
	state->st = st;
	hcache_flights_init(&state->flights, state->store);
	return 0;
}

static bool same_strings(const struct weir_strings *a, const struct weir_strings *b)
{
	bool same = a->n == b->n;

	for (int i = 0; same && i < a->n; i++)
		same = strcmp(a->items[i], b->items[i]) == 0;
	return same;
}

/* After a reload, take over what the stage of the same name has stored, if the keys are made in the same way
 * and the limits are the same. */
static int start(struct weir_stage *st, struct weir_err *err)
{
	struct hcache_state *state = weir_state(st);
	const struct weir_stage *old = weir_predecessor(st, NULL);

	int rc = hcache_wait_start(st);

	(void)err;
	if (rc < 0 || !old)
		return rc;
	const struct hcache_conf *now = weir_conf(st), *had = weir_conf(old);
	if (now->memory_bytes != had->memory_bytes || now->variants != had->variants ||
	    !same_strings(&now->key_fields, &had->key_fields))
		return 0;
	hcache_store_put(state->store);
	state->store = state->flights.store =
	    hcache_store_hold(((const struct hcache_state *)weir_state(old))->store);
	hcache_show(st);
	return 0;
}

static void fini(struct weir_stage *st)
{
	struct hcache_state *state = weir_state(st);

	hcache_wait_fini(state);
	hcache_flights_fini(&state->flights);
	hcache_store_put(state->store);
}

/* Requests for the same path are one cohort. */
static uint64_t key(struct weir_stage *st, const struct weir_event *ev)
{
	(void)st;
	return weir_hash(((const struct weir_http_request *)ev)->path);
}

#define ROW(member) offsetof(struct hcache_conf, member)

static const struct weir_knob knobs[] = {
    {.name = "memory",
	.type = WEIR_KNOB_BYTES,
	.offset = ROW(memory_bytes),
	.def = "128MiB",
	.min = 1 << 20,
	.max = 0x1p42,
	.help =
	    "memory for stored answers, with all that belongs to them; answers that leave while "
	    "clients still read them may hold a quarter of it and 8 MiB more"},
    {.name = "max_object",
	.type = WEIR_KNOB_BYTES,
	.offset = ROW(max_object_bytes),
	.def = "1MiB",
	.min = 0,
	.max = 1 << 30,
	.flags = WEIR_KNOB_LIVE,
	.help = "longest body that is stored; longer answers are passed on"},
    /* 32 is a guess: the codings that browsers accept make about 5 */
    {.name = "variants",
	.type = WEIR_KNOB_INT,
	.offset = ROW(variants),
	.def = "32",
	.min = 1,
	.max = 65535,
	.help = "answers that are stored for one URL if they vary (Vary); the oldest gives way"},
    {.name = "heuristic",
	.type = WEIR_KNOB_RATIO,
	.offset = ROW(heuristic),
	.def = "10%",
	.min = 0,
	.max = 1,
	.flags = WEIR_KNOB_LIVE,
	.help = "share of the time since Last-Modified for which an answer is fresh that does not "
		"say it; 0: it must always be checked"},
    {.name = "heuristic_max",
	.type = WEIR_KNOB_DURATION,
	.offset = ROW(heuristic_max_ns),
	.def = "1h",
	.min = 0,
	.max = 31536e12,
	.flags = WEIR_KNOB_LIVE,
	.help = "limit on that time"},
    {.name = "stale_while_revalidate",
	.type = WEIR_KNOB_DURATION,
	.offset = ROW(stale_while_ns),
	.def = "0s",
	.min = 0,
	.max = 31536e12,
	.flags = WEIR_KNOB_LIVE,
	.help =
	    "for how long an answer that is no longer fresh is served while one request checks it "
	    "in the background, if the answer does not say it"},
    {.name = "stale_if_error",
	.type = WEIR_KNOB_DURATION,
	.offset = ROW(stale_error_ns),
	.def = "1h",
	.min = 0,
	.max = 31536e12,
	.flags = WEIR_KNOB_LIVE,
	.help =
	    "for how long an answer that is no longer fresh is served in place of an error or a "
	    "refusal, if the answer does not say it"},
    {.name = "hit_for_miss",
	.type = WEIR_KNOB_DURATION,
	.offset = ROW(pass_ns),
	.def = "10s",
	.min = 0,
	.max = 36e11,
	.flags = WEIR_KNOB_LIVE,
	.help = "for how long a URL is remembered whose answer may not be stored, so that requests "
		"for it do not wait for each other"},
    {.name = "wait",
	.type = WEIR_KNOB_DURATION,
	.offset = ROW(wait_ns),
	.def = "5s",
	.min = 0,
	.max = 36e11,
	.flags = WEIR_KNOB_LIVE,
	.help =
	    "how long a request waits for the answer to an equal one before it goes to the origin "
	    "itself; 0s: not at all"},
    {.name = "client_control",
	.type = WEIR_KNOB_BOOL,
	.offset = ROW(client_control),
	.def = "true",
	.flags = WEIR_KNOB_LIVE,
	.help = "obey Cache-Control of requests, by which clients can ask for a check of what is "
		"stored"},
    {.name = "cache_status",
	.type = WEIR_KNOB_BOOL,
	.offset = ROW(cache_status),
	.def = "true",
	.flags = WEIR_KNOB_LIVE,
	.help = "add the field Cache-Status, which says how an answer came about"},
    {.name = "key_fields",
	.type = WEIR_KNOB_STRINGS,
	.offset = ROW(key_fields),
	.help =
	    "request fields that belong to the key, such as [X-Tenant], for origins that depend on "
	    "them and do not say so in Vary"},
    {0},
};

static const struct weir_outlet outlets[] = {
    [HCACHE_MISS] = {.name = "miss",
	.type = &weir_http_request_type,
	.help = "requests that the cache cannot answer"},
    {0},
};

static const struct weir_metric metrics[] = {
#define HCACHE_METRIC_ROW(id, name, kind, unit, help) {name, WEIR_METRIC_##kind, unit, help},
    HCACHE_METRICS(HCACHE_METRIC_ROW)
#undef HCACHE_METRIC_ROW
	{0}};

const struct weir_stage_ops weir_stage_http_cache = {
    .abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_IN_PARTS,
    .name = "http.cache",
    .summary = "Answers requests from memory with what an origin has answered before (RFC 9111)",
    .accepts = &weir_http_request_type,
    .outlets = outlets,
    .knobs = knobs,
    .conf_size = sizeof(struct hcache_conf),
    .metrics = metrics,
    .state_size = sizeof(struct hcache_state),
    .init = init,
    .start = start,
    .handle = hcache_handle,
    .stop = hcache_wait_stop,
    .fini = fini,
    .key = key,
    .refused = hcache_refused,
};
