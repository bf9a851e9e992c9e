/* SPDX-License-Identifier: MIT */
/*
 * The addresses of origins, as one loop sees them.
 *
 * A loop has slots, each for one address. An origin that is an address has one slot, which is live from the
 * start. A name has several, and its addresses are asked for again at the end of their TTL:
 *
 *   new address --> a free slot --> live --address is gone--> its connections end --> free
 *
 * So each address of a name is balanced, left out and checked by itself, as nginx does with `resolve`, and
 * requests that are under way end where they have begun. The addresses of the family that RFC 6724 prefers
 * are used; those of the other family only if all others are out. Else `localhost`, which has two
 * addresses, would be half broken for most programs.
 *
 * While no name server answers, addresses serve for `resolve.stale` longer than their TTL. An answer that a
 * name has no address is believed only if the next one says so too, after `resolve.negative`: a mistake of
 * a moment in a zone should not end a service.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/log.h>

#include "http/client/client_calls.h"

/* Time after which a failed name is asked for again. */
#define RETRY_NS 1000000000LL

enum name_state { NAME_PENDING, NAME_HAS, NAME_HAS_NONE, NAME_HAS_FAILED, NAME_HAS_DENIED };

struct origin_name {
	struct resolve_query query; /* first member */
	struct weir_timer timer;
	struct client_loop *cl;
	const struct origin_spec *spec; /* NULL: the origin is an address */
	int first;                      /* slot, of CLIENT_ADDRESSES_MAX */
	enum name_state state;
	int allowed;          /* addresses of the last answer that `deny` has not */
	bool doubted;         /* the last answer was that there is no address */
	int64_t stale_end_ns; /* the addresses serve until then */
};

/* ---- slots ---- */

static bool same_address(const struct address *a, const struct address *b)
{
	return a->n == b->n && memcmp(&a->addr, &b->addr, a->n) == 0;
}

static void endpoint_begin(struct endpoint *e, const struct origin *o)
{
	*e = (struct endpoint){.spec = o->spec, .address = o->address, .users = e->users};
}

/* Give back the row of all loops. */
static void give_back(struct client *c, struct origin *o)
{
	if (!o->shared)
		return;
	pthread_mutex_lock(&c->lock);
	o->shared->users--;
	pthread_mutex_unlock(&c->lock);
	o->shared = NULL;
}

/* Find the row of all loops for the address, which is one of `n` rows from `first`. If all are taken, the last
 * row of the table serves. */
static void share(struct client *c, struct origin *o, int first, int n)
{
	struct endpoint *found = NULL;

	pthread_mutex_lock(&c->lock);
	for (int i = first; i < first + n; i++) {
		struct endpoint *e = &c->endpoint[i];
		if (e->users > 0 && same_address(&e->address, &o->address)) {
			found = e;
			break;
		}
		if (e->users == 0 && !found)
			found = e;
	}
	if (!found)
		found = &c->endpoint[c->n_slots];
	if (found->users++ == 0)
		endpoint_begin(found, o);
	pthread_mutex_unlock(&c->lock);
	o->shared = found;
	o->health_seen = 0;
}

static void go_live(struct client_loop *cl, struct origin *o)
{
	atomic_fetch_add(&o->shared->live, 1);
	o->live = true;
	cl->live[cl->n_live++] = o;
	health_begin(cl, o);
}

static void retire(struct client_loop *cl, struct origin *o)
{
	int i = 0;

	while (cl->live[i] != o)
		i++;
	memmove(&cl->live[i], &cl->live[i + 1], (size_t)(--cl->n_live - i) * sizeof(*cl->live));
	o->live = false;
	atomic_fetch_sub(&o->shared->live, 1);
	health_end(cl, o);
	pick_forget(cl, o);
	rows_forget(o);
	tls_origin_forget(&o->session);
	upstream_close_idle(cl, o);
}

static struct origin *slot_of(const struct origin_name *n, int i)
{
	return &n->cl->origin[n->first + i];
}

/* The live slot with `a`, or else a free one; NULL if there is none. */
static struct origin *find_slot(const struct origin_name *n, const struct address *a)
{
	struct origin *free_one = NULL;

	for (int i = 0; i < CLIENT_ADDRESSES_MAX; i++) {
		struct origin *o = slot_of(n, i);
		if (o->live && same_address(&o->address, a))
			return o;
		if (!o->live && o->open == 0 && !free_one)
			free_one = o;
	}
	return free_one;
}

/* Make the slots those of `answer`. Returns whether addresses have come or gone. */
static bool take_addresses(struct origin_name *n, const struct resolve_answer *answer)
{
	bool stays[CLIENT_ADDRESSES_MAX] = {false}, changed = false;
	int family = 0;

	n->allowed = 0;
	for (int i = 0; i < answer->n; i++) {
		struct address a = {0};
		if (deny_has(&n->cl->client->deny, &answer->address[i])) {
			client_count(n->cl, CLIENT_DENIED, 1);
			continue;
		}
		n->allowed++;
		a.n = resolve_socket_address(&answer->address[i], n->spec->port, &a.addr);
		struct origin *o = find_slot(n, &a);
		if (!o)
			continue;
		family = family ? family : a.addr.ss_family;
		stays[o - slot_of(n, 0)] = true;
		if (!o->live) {
			give_back(n->cl->client, o);
			tls_origin_forget(
			    &o->session); /* a ticket may have come since it was retired */
			*o = (struct origin){.spec = n->spec, .address = a};
			share(n->cl->client, o, n->first, CLIENT_ADDRESSES_MAX);
			go_live(n->cl, o);
			changed = true;
		}
		o->second = a.addr.ss_family != family;
	}
	for (int i = 0; i < CLIENT_ADDRESSES_MAX; i++)
		if (slot_of(n, i)->live && !stays[i]) {
			retire(n->cl, slot_of(n, i));
			changed = true;
		}
	return changed;
}

/* ---- answers ---- */

static void set_state(struct origin_name *n, enum name_state state, const char *why)
{
	static const struct resolve_answer nothing;
	const char *stage = weir_stage_name(n->cl->client->st);

	if (state == NAME_HAS && n->state > NAME_HAS)
		weir_log(WEIR_LOG_INFO, "%s: origin %s: the name has addresses again", stage,
		    n->spec->text);
	if (state != NAME_HAS && n->state != state)
		weir_log(WEIR_LOG_WARN, "%s: origin %s: the name has no address: %s", stage,
		    n->spec->text, why);
	n->state = state;
	if (state != NAME_HAS)
		take_addresses(n, &nothing);
}

static void found(struct origin_name *n, const struct resolve_answer *answer)
{
	bool first = n->state == NAME_PENDING;

	n->doubted = false;
	if (take_addresses(n, answer) && !first) {
		client_count(n->cl, CLIENT_NAMES_CHANGED, 1);
		weir_log(WEIR_LOG_INFO, "%s: origin %s: the addresses have changed, %d now",
		    weir_stage_name(n->cl->client->st), n->spec->text, n->allowed);
	}
	if (n->allowed > 0)
		set_state(n, NAME_HAS, "");
	else
		set_state(n, NAME_HAS_DENIED, "'deny' has all that were found");
	n->stale_end_ns = answer->until_ns < INT64_MAX - client_conf(n->cl)->resolve.stale_ns
			      ? answer->until_ns + client_conf(n->cl)->resolve.stale_ns
			      : INT64_MAX;
}

/* Take an answer. Returns when to ask again. */
static int64_t take(struct origin_name *n, const struct resolve_answer *answer)
{
	int64_t now_ns = client_now_ns(n->cl), again_ns = now_ns + RETRY_NS;

	if (answer->status == RESOLVE_OK) {
		found(n, answer);
		return answer->until_ns > now_ns ? answer->until_ns : again_ns;
	}
	client_count(n->cl, CLIENT_NAMES_FAILED, 1);
	if (answer->status == RESOLVE_NONE) {
		again_ns = answer->until_ns > now_ns ? answer->until_ns : again_ns;
		if (n->doubted || n->state != NAME_HAS)
			set_state(n, NAME_HAS_NONE, answer->why);
		n->doubted = true;
	} else if (n->state != NAME_HAS || now_ns >= n->stale_end_ns) {
		set_state(n, NAME_HAS_FAILED, answer->why);
	}
	return again_ns;
}

static void answered(struct origin_name *n, const struct resolve_answer *answer)
{
	struct client_loop *cl = n->cl;
	int64_t again_ns;

	if (answer->status == RESOLVE_CANCELLED)
		return;
	again_ns = take(n, answer);
	if (again_ns != INT64_MAX)
		weir_timer_set(cl->loop, &n->timer, again_ns);
	client_loop_room(cl); /* requests that wait for an address are tried, or answered */
}

static void on_answer(struct resolve_query *q, const struct resolve_answer *answer)
{
	answered((struct origin_name *)q, answer);
}

static void ask_for(struct origin_name *n)
{
	const struct resolve_answer *a = resolve_name(n->cl->resolver, n->spec->host, &n->query);

	if (a)
		answered(n, a);
}

static void due(struct weir_loop *loop, struct weir_timer *t)
{
	(void)loop;
	ask_for((struct origin_name *)((char *)t - offsetof(struct origin_name, timer)));
}

/* ---- what others ask ---- */

bool names_pending(const struct client_loop *cl)
{
	for (int i = 0; i < cl->client->n_origins; i++)
		if (cl->names[i].spec && cl->names[i].state == NAME_PENDING)
			return true;
	return false;
}

const char *names_why_none(const struct client_loop *cl)
{
	enum name_state worst = NAME_HAS;

	if (cl->n_live > 0)
		return "out";
	for (int i = 0; i < cl->client->n_origins; i++)
		if (cl->names[i].spec && cl->names[i].state > worst)
			worst = cl->names[i].state;
	return worst == NAME_HAS_DENIED ? "denied"
	       : worst == NAME_HAS_NONE ? "no_address"
					: "name_servers";
}

/* ---- start and end ---- */

bool names_conf(const struct client_conf *conf, struct resolve_conf *out, char **servers)
{
	size_t n = 1;
	char *at;

	*out = (struct resolve_conf){.file = conf->resolve.file,
	    .ttl_min_ns = conf->resolve.ttl_min_ns,
	    .ttl_max_ns = conf->resolve.ttl_max_ns,
	    .negative_ns = conf->resolve.negative_ns,
	    .timeout_ns = conf->resolve.attempt_ns,
	    .tries = (int)conf->resolve.tries};
	*servers = NULL;
	if (conf->resolve.servers.n == 0)
		return true;
	for (int i = 0; i < conf->resolve.servers.n; i++)
		n += strlen(conf->resolve.servers.items[i]) + 1;
	at = *servers = malloc(n);
	if (!at)
		return false;
	*at = '\0';
	for (int i = 0; i < conf->resolve.servers.n; i++)
		at += sprintf(at, "%s%s", i > 0 ? "," : "", conf->resolve.servers.items[i]);
	out->servers = *servers;
	return true;
}

int names_table(struct client *c)
{
	for (int i = 0; i < c->n_origins; i++)
		c->n_slots += c->spec[i].named ? CLIENT_ADDRESSES_MAX : 1;
	c->endpoint = calloc((size_t)c->n_slots + 1, sizeof(*c->endpoint));
	return c->endpoint ? 0 : WEIR_ENOMEM;
}

int names_new(struct client_loop *cl)
{
	const struct client *c = cl->client;
	int at = 0;

	cl->n_slots = c->n_slots;
	cl->origin = calloc((size_t)cl->n_slots, sizeof(*cl->origin));
	cl->live = calloc((size_t)cl->n_slots, sizeof(struct origin *));
	cl->names = calloc((size_t)c->n_origins, sizeof(*cl->names));
	if (!cl->origin || !cl->live || !cl->names)
		return WEIR_ENOMEM;
	for (int i = 0; i < c->n_origins; i++) {
		const struct origin_spec *spec = &c->spec[i];
		struct origin_name *n = &cl->names[i];
		n->cl = cl;
		n->first = at;
		n->query.done = on_answer;
		n->timer.fire = due;
		n->spec = spec->named ? spec : NULL;
		cl->origin[at] = (struct origin){.spec = spec, .address = spec->address};
		at += spec->named ? CLIENT_ADDRESSES_MAX : 1;
	}
	return 0;
}

void names_free(struct client_loop *cl)
{
	for (int i = 0; i < cl->n_slots && cl->origin; i++) {
		tls_origin_forget(&cl->origin[i].session);
		give_back(cl->client, &cl->origin[i]);
	}
	free(cl->origin);
	free(cl->live);
	free(cl->names);
	free(cl->servers);
}

static int resolver_begin(struct client_loop *cl)
{
	struct resolve_conf conf;
	struct weir_err err = {0};
	int rc;

	if (!names_conf(client_conf(cl), &conf, &cl->servers))
		return WEIR_ENOMEM;
	rc = resolver_new(cl->loop, &conf, &cl->resolver, &err);
	if (rc != 0)
		weir_log(WEIR_LOG_ERROR, "%s: %s", weir_stage_name(cl->client->st), err.text);
	return rc;
}

int names_start(struct client_loop *cl)
{
	for (int i = 0; i < cl->client->n_origins; i++) {
		struct origin_name *n = &cl->names[i];
		if (!n->spec) {
			share(cl->client, &cl->origin[n->first], n->first, 1);
			go_live(cl, &cl->origin[n->first]);
			continue;
		}
		int rc = cl->resolver ? 0 : resolver_begin(cl);
		if (rc != 0)
			return rc;
		ask_for(n);
	}
	return 0;
}

void names_stop(struct client_loop *cl)
{
	for (int i = 0; i < cl->client->n_origins; i++)
		weir_timer_cancel(cl->loop, &cl->names[i].timer);
	resolver_free(cl->resolver, false);
	cl->resolver = NULL;
	while (cl->n_live > 0)
		retire(cl, cl->live[cl->n_live - 1]);
}
