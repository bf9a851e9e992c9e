/* SPDX-License-Identifier: MIT */
/*
 * dns.resolve: gives each event the addresses of the name that one of its fields has.
 *
 *   event --name is kept, or an address--> payload `dns` --> found, none, failed
 *         --else: held with a ticket, the resolver is asked--> payload --> found, none, failed
 *                 deadline or `timeout` passes---------------> payload --> failed
 *
 * The stage has a loop of its own (WEIR_STAGE_LOOP), and the resolver (net/resolve.h) belongs to it: it is
 * made with the first batch, since the loop runs by then, and freed when the loop has ended.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/dns.h>
#include <weir/weir.h>

#include "net/resolve.h"
#include "net/resolve_name.h"

enum { DNS_FOUND, DNS_NONE, DNS_FAILED };

struct dns_conf {
	char *name, *file;
	struct weir_strings servers;
	int64_t ttl_min_ns, ttl_max_ns, negative_ns, stale_ns, attempt_ns, timeout_ns;
	int64_t tries, max_names;
};

struct dns {
	struct resolver *resolver;
	struct resolve_counts told; /* as far as counted in metrics */
	/* the field `name` of the type of the last event */
	const struct weir_event_type *type;
	const struct weir_field *field;
	const char *arg;
};

/* An event that waits. It may be over before the answer comes. */
struct waiting {
	struct resolve_query query; /* first member */
	struct weir_stage *stage;
	uint64_t ticket;
};

/* ---- the payload ---- */

static const char *const status_text[] = {"ok", "stale", "none", "failed", "bad_name"};

static struct weir_slice slice_of(const char *text)
{
	return (struct weir_slice){text, strlen(text)};
}

static struct weir_slice field_address(const void *payload, const char *arg)
{
	const struct weir_dns *d = payload;

	(void)arg;
	return d->n > 0 ? slice_of(d->text) : (struct weir_slice){NULL, 0};
}

static struct weir_slice field_status(const void *payload, const char *arg)
{
	(void)arg;
	return slice_of(status_text[((const struct weir_dns *)payload)->status]);
}

static bool field_count(const void *payload, const char *arg, uint64_t *number)
{
	(void)arg;
	*number = (uint64_t)((const struct weir_dns *)payload)->n;
	return true;
}

static const struct weir_payload_field payload_fields[] = {
    {.name = "address", .text = field_address, .help = "the first address"},
    {.name = "count", .number = field_count, .help = "number of addresses"},
    {.name = "status", .text = field_status, .help = "ok, stale, none, failed or bad_name"},
    {0},
};

const struct weir_payload_type weir_dns_payload = {.name = "dns",
    .size = sizeof(struct weir_dns),
    .fields = payload_fields,
    .summary = "The addresses of a name"};

_Static_assert(WEIR_DNS_ADDRESSES == RESOLVE_ADDRESSES_MAX, "all addresses fit");
_Static_assert(sizeof(((struct weir_dns *)0)->text) >= INET6_ADDRSTRLEN, "every address fits");

static enum weir_dns_status status_of(const struct resolve_answer *a)
{
	switch (a->status) {
	case RESOLVE_OK:
		return a->stale ? WEIR_DNS_STALE : WEIR_DNS_OK;
	case RESOLVE_NONE:
		return WEIR_DNS_NONE;
	case RESOLVE_BAD_NAME:
		return WEIR_DNS_BAD_NAME;
	default:
		return WEIR_DNS_FAILED;
	}
}

static void fill(struct weir_dns *d, const struct resolve_answer *a)
{
	d->status = status_of(a);
	d->n = a->n;
	d->until_ns = a->until_ns;
	d->why = a->why;
	if (a->n == 0)
		return;
	memcpy(d->address, a->address, (size_t)a->n * sizeof(d->address[0]));
	net_address_text(&a->address[0], d->text);
}

/* ---- the end of the wait ---- */

static int outlet_of(const struct weir_dns *d)
{
	if (d->n > 0)
		return DNS_FOUND;
	return d->status == WEIR_DNS_NONE ? DNS_NONE : DNS_FAILED;
}

/* Give the answer to the event and let it go on. Without a link for it, the event has failed. */
static void go_on(struct weir_stage *st, struct weir_event **ev, const struct resolve_answer *a)
{
	struct weir_dns *d = weir_payload_new(st, *ev, &weir_dns_payload);

	if (!d) {
		weir_event_finish(ev, WEIR_EPRESSURE);
		return;
	}
	fill(d, a);
	if (weir_outlet_linked(st, outlet_of(d)))
		weir_emit(st, outlet_of(d), ev);
	else
		weir_event_finish(ev, WEIR_EFAILED);
}

/* Publish what the resolver has counted since the last call. */
static void count(struct weir_stage *st)
{
	struct dns *s = weir_state(st);
	const struct resolve_counts *now = resolve_counts(s->resolver);
	const int64_t more[] = {now->asked - s->told.asked, now->kept - s->told.kept,
	    now->joined - s->told.joined, now->stale - s->told.stale,
	    now->negative - s->told.negative, now->failed - s->told.failed,
	    now->evicted - s->told.evicted, now->reread - s->told.reread};

	for (int i = 0; i < (int)(sizeof(more) / sizeof(more[0])); i++)
		if (more[i] != 0)
			weir_count(st, i, more[i]);
	s->told = *now;
}

static void answered(struct resolve_query *q, const struct resolve_answer *a)
{
	struct waiting *w = (struct waiting *)q;
	struct weir_event *ev =
	    a->status == RESOLVE_CANCELLED ? NULL : weir_hold_claim(w->stage, w->ticket);

	if (ev) {
		count(w->stage);
		go_on(w->stage, &ev, a);
	}
	free(w);
}

/* ---- names ---- */

/* Find the field `name` in the type of `ev`: HOST, or PREFIX.ARG for a field that ends in a dot. */
static void find_field(struct dns *s, const char *name, const struct weir_event *ev)
{
	s->type = ev->type;
	s->field = NULL;
	for (const struct weir_field *f = ev->type->fields; f && f->name && !s->field; f++) {
		const size_t n = strlen(f->name);
		if (n > 0 && f->name[n - 1] == '.' && strncmp(f->name, name, n) == 0) {
			s->field = f;
			s->arg = name + n;
		} else if (strcmp(f->name, name) == 0) {
			s->field = f;
			s->arg = NULL;
		}
	}
}

/* Copy the name to resolve. An event without a name gets one that is refused as bad. */
static void read_name(
    struct weir_stage *st, const struct weir_event *ev, char name[RESOLVE_NAME_MAX + 1])
{
	const struct dns_conf *conf = weir_conf(st);
	struct dns *s = weir_state(st);
	struct weir_slice text = {NULL, 0};

	if (s->type != ev->type)
		find_field(s, conf->name, ev);
	if (s->field)
		text = name_without_port(s->field->get(ev, s->arg));
	if (text.n > RESOLVE_NAME_MAX || (text.n > 0 && memchr(text.p, '\0', text.n)))
		text.n = 0;
	if (text.n > 0)
		memcpy(name, text.p, text.n);
	name[text.n] = '\0';
}

/* ---- the stage ---- */

static void join(const struct weir_strings *list, char *out, size_t size)
{
	size_t n = 0;

	*out = '\0';
	for (int i = 0; i < list->n && n < size; i++)
		n += (size_t)snprintf(out + n, size - n, "%s%s", i > 0 ? "," : "", list->items[i]);
}

static bool begin(struct weir_stage *st)
{
	const struct dns_conf *conf = weir_conf(st);
	struct dns *s = weir_state(st);
	char servers[1024];
	const struct resolve_conf c = {.servers = servers,
	    .file = conf->file,
	    .ttl_min_ns = conf->ttl_min_ns,
	    .ttl_max_ns = conf->ttl_max_ns,
	    .negative_ns = conf->negative_ns,
	    .stale_ns = conf->stale_ns,
	    .timeout_ns = conf->attempt_ns,
	    .tries = (int)conf->tries,
	    .max_names = (int)conf->max_names};
	struct weir_err err = {0};
	static bool logged;

	join(&conf->servers, servers, sizeof(servers));
	if (s->resolver || resolver_new(weir_loop_here(), &c, &s->resolver, &err) == 0)
		return true;
	if (weir_log_first(&logged))
		weir_log(WEIR_LOG_ERROR, "%s: %s (logged once)", weir_stage_name(st),
		    err.text[0] ? err.text : "out of memory");
	return false;
}

static void ask(struct weir_stage *st, struct weir_event **ev)
{
	const struct dns_conf *conf = weir_conf(st);
	struct dns *s = weir_state(st);
	struct waiting *w = malloc(sizeof(*w));
	const struct resolve_answer *a;
	char name[RESOLVE_NAME_MAX + 1];

	if (!w) {
		weir_event_finish(ev, WEIR_ENOMEM);
		return;
	}
	*w = (struct waiting){.query.done = answered, .stage = st};
	read_name(st, *ev, name);
	a = resolve_name(s->resolver, name, &w->query);
	if (a) {
		go_on(st, ev, a);
		free(w);
		return;
	}
	w->ticket = weir_hold_until(
	    st, ev, conf->timeout_ns > 0 ? weir_now_ns(st) + conf->timeout_ns : WEIR_NO_DEADLINE);
}

static void handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	if (!begin(st)) {
		weir_event_finish_run(ev, n, WEIR_EFAILED);
		return;
	}
	for (int i = 0; i < n; i++)
		ask(st, &ev[i]);
	count(st);
}

static void expired(struct weir_stage *st, struct weir_event **ev, int n)
{
	static const struct resolve_answer late = {
	    .status = RESOLVE_FAILED, .why = "no answer in time"};

	if (!weir_outlet_linked(st, DNS_FAILED))
		return;
	for (int i = 0; i < n; i++)
		go_on(st, &ev[i], &late);
}

static int init(struct weir_stage *st, struct weir_err *err)
{
	const struct dns_conf *conf = weir_conf(st);
	char at[32];

	for (int i = 0; i < conf->servers.n; i++) {
		if (name_is_server(conf->servers.items[i]))
			continue;
		snprintf(at, sizeof(at), "servers.%d", i + 1);
		weir_blame(st, at);
		snprintf(err->text, sizeof(err->text),
		    "'%.80s' is not the address of a name server", conf->servers.items[i]);
		snprintf(err->hint, sizeof(err->hint),
		    "write an address and perhaps a port, as in 192.0.2.53, 127.0.0.1:5353 or "
		    "[::1]:53");
		return WEIR_EINVAL;
	}
	if (conf->ttl_min_ns > conf->ttl_max_ns) {
		weir_blame(st, "ttl_min");
		snprintf(err->text, sizeof(err->text), "'ttl_min' is longer than 'ttl_max'");
		return WEIR_EINVAL;
	}
	return 0;
}

static void fini(struct weir_stage *st)
{
	struct dns *s = weir_state(st);

	resolver_free(s->resolver, true);
}

/* ---- tables ---- */

static const struct weir_metric metrics[] = {
    {"dns_asked_total", WEIR_METRIC_COUNTER, "names", "names that servers were asked for"},
    {"dns_kept_total", WEIR_METRIC_COUNTER, "events", "events answered with what was kept"},
    {"dns_joined_total", WEIR_METRIC_COUNTER, "events",
	"events that waited for a name that was being asked for"},
    {"dns_stale_total", WEIR_METRIC_COUNTER, "events", "events answered with stale addresses"},
    {"dns_none_total", WEIR_METRIC_COUNTER, "answers", "answers that a name has no address"},
    {"dns_failed_total", WEIR_METRIC_COUNTER, "names", "names for which no server answered well"},
    {"dns_evicted_total", WEIR_METRIC_COUNTER, "names", "names that gave way to others"},
    {"dns_reread_total", WEIR_METRIC_COUNTER, "changes", "changes of resolv.conf"},
    {NULL, WEIR_METRIC_COUNTER, NULL, NULL},
};

#define ROW(member) offsetof(struct dns_conf, member)
#define DURATION(key, member, value, text)                                                         \
	{                                                                                          \
		.name = key, .type = WEIR_KNOB_DURATION, .offset = ROW(member), .def = value,      \
		.min = 1e6, .max = 7 * 86400e9, .help = text                                       \
	}

static const struct weir_knob knobs[] = {
    {.name = "name",
	.type = WEIR_KNOB_STRING,
	.offset = ROW(name),
	.def = "host",
	.help = "field of the event that has the name, perhaps with a port: host, header.NAME"},
    {.name = "servers",
	.type = WEIR_KNOB_STRINGS,
	.offset = ROW(servers),
	.help = "name servers, ADDRESS or ADDRESS:PORT; if empty, those of 'resolv_conf'"},
    {.name = "resolv_conf",
	.type = WEIR_KNOB_STRING,
	.offset = ROW(file),
	.def = "/etc/resolv.conf",
	.help = "file with the name servers and search domains; read again when it changes"},
    DURATION("ttl_min", ttl_min_ns, "1s", "shorter TTLs are raised to it"),
    DURATION("ttl_max", ttl_max_ns, "1h", "longer TTLs are lowered to it"),
    DURATION(
	"negative", negative_ns, "5s", "how long the answer that a name has no address is kept"),
    {.name = "stale",
	.type = WEIR_KNOB_DURATION,
	.offset = ROW(stale_ns),
	.def = "0",
	.min = 0,
	.max = 7 * 86400e9,
	.help =
	    "how much longer than their TTL addresses serve, while servers are asked again or do "
	    "not answer"},
    DURATION("attempt", attempt_ns, "2s", "time-out of the first question to each server"),
    {.name = "tries",
	.type = WEIR_KNOB_INT,
	.offset = ROW(tries),
	.def = "2",
	.min = 1,
	.max = 10,
	.help = "how often each server is asked; each time the time-out doubles"},
    {.name = "timeout",
	.type = WEIR_KNOB_DURATION,
	.offset = ROW(timeout_ns),
	.def = "5s",
	.min = 0,
	.max = 3600e9,
	.flags = WEIR_KNOB_LIVE,
	.help = "longest wait of an event; 0: until its deadline, or the last time-out"},
    {.name = "names",
	.type = WEIR_KNOB_INT,
	.offset = ROW(max_names),
	.def = "1024",
	.min = 1,
	.max = 1e6,
	.help = "number of names that are kept; those that were used last"},
    {0},
};

static const struct weir_outlet outlets[] = {
    [DNS_FOUND] = {.name = "found",
	.type = WEIR_ANY_EVENT,
	.help = "events whose name has addresses"},
    [DNS_NONE] = {.name = "none",
	.type = WEIR_ANY_EVENT,
	.optional = true,
	.help = "events whose name does not exist or has no address; without a link, they fail"},
    [DNS_FAILED] = {.name = "failed",
	.type = WEIR_ANY_EVENT,
	.optional = true,
	.help =
	    "events without a name, or whose name no server has answered well in time; without a "
	    "link, they fail, or are shed for `deadline`"},
    {0},
};

static const struct weir_payload_at gives[] = {{&weir_dns_payload, NULL}, {NULL, NULL}};

extern const struct weir_stage_ops weir_stage_dns_resolve;
const struct weir_stage_ops weir_stage_dns_resolve = {
    .abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS | WEIR_STAGE_LOOP | WEIR_STAGE_IN_PARTS,
    .name = "dns.resolve",
    .summary = "Finds the addresses of the name that an event has",
    .accepts = WEIR_ANY_EVENT,
    .outlets = outlets,
    .knobs = knobs,
    .conf_size = sizeof(struct dns_conf),
    .metrics = metrics,
    .state_size = sizeof(struct dns),
    .gives = gives,
    .init = init,
    .handle = handle,
    .expired = expired,
    .fini = fini,
};
