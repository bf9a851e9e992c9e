/* SPDX-License-Identifier: MIT */
/* A resolver of names in the loop of a graph, and its callers. The clock of the loop is held, and with it
 * those of TTLs and of c-ares. For the tests of net/resolve.h. */
#ifndef WEIR_TESTS_NET_RESOLVE_RIG_H
#define WEIR_TESTS_NET_RESOLVE_RIG_H

#include "net/resolve.h"

#include <arpa/inet.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cunit_main.h"
#include "fixture/clock/held_clock.h"
#include "fixture/graph/graph.h"
#include "fixture/http/dns.h"

#define MS 1000000LL
#define S  1000000000LL

/* ---- calls in the thread of the loop ---- */

static struct weir_loop *the_loop;
static struct {
	_Atomic(void (*)(void *)) call;
	void *arg;
	sem_t done;
} job;

static inline void on_mail(struct weir_loop *loop, struct weir_event *list)
{
	(void)loop;
	(void)list;
}

static inline void on_turn_end(struct weir_loop *loop)
{
	void (*call)(void *) = atomic_exchange(&job.call, NULL);

	(void)loop;
	if (!call)
		return;
	call(job.arg);
	sem_post(&job.done);
}

static inline void in_loop(void (*call)(void *), void *arg)
{
	job.arg = arg;
	atomic_store(&job.call, call);
	weir_loop_wake(the_loop);
	while (sem_wait(&job.done) != 0)
		;
}

static const struct weir_loop_ops loop_ops = {.mail = on_mail, .turn_end = on_turn_end};

static inline int source_start(struct weir_stage *st, struct weir_err *err)
{
	(void)err;
	return weir_loop_start(st, 0, &loop_ops, NULL, &the_loop);
}

static inline void source_fini(struct weir_stage *st)
{
	(void)st;
	if (!the_loop)
		return;
	weir_loop_stop(the_loop);
	weir_loop_join(the_loop);
	the_loop = NULL;
}

static const struct weir_outlet outlets[] = {{"out", &probe_type, false, "probes"}, {.name = NULL}};

static const struct weir_stage_ops source_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_SOURCE,
    .name = "t.resolving",
    .summary = "runs a loop",
    .outlets = outlets,
    .start = source_start,
    .fini = source_fini};

/* ---- the resolver ---- */

static struct weir_graph *graph;
static struct dns *dns;
static struct resolver *resolver;
static struct resolve_conf conf;
static struct weir_err failure;

static inline void make(void *arg)
{
	*(int *)arg = resolver_new(the_loop, &conf, &resolver, &failure);
}

static inline void unmake(void *arg)
{
	(void)arg;
	resolver_free(resolver, false);
	resolver = NULL;
}

static inline void begin_graph(void)
{
	static bool registered;
	struct weir_spec *spec = weir_spec_new("test");

	if (!registered) {
		fixture_register(&source_ops);
		fixture_register(&end_ops);
	}
	registered = true;
	weir_log_set_level(WEIR_LOG_ERROR);
	fixture_stage(spec, "loop", "t.resolving", "end");
	fixture_stage(spec, "end", "t.end", NULL);
	sem_init(&job.done, 0, 0);
	graph = fixture_start(spec);
}

static inline void begin(struct resolve_conf c)
{
	int rc = -1;

	clock_hold();
	dns = dns_begin();
	begin_graph();
	conf = c;
	if (!conf.file)
		conf.servers = conf.servers ? conf.servers : dns_address(dns);
	in_loop(make, &rc);
	CU_ASSERT_EQUAL_FATAL(rc, 0);
}

static inline void finish(void)
{
	struct weir_drain_report report = {0};

	in_loop(unmake, NULL);
	weir_graph_drain(graph, 10 * S, &report);
	weir_graph_free(graph);
	dns_end(dns);
	clock_release();
}

/* ---- callers ---- */

struct caller {
	struct resolve_query query; /* first member */
	const char *name;
	atomic_bool done;
	bool at_once;
	enum resolve_status status;
	bool stale;
	int n;
	char text[RESOLVE_ADDRESSES_MAX][INET6_ADDRSTRLEN];
};

static inline void take(struct caller *c, const struct resolve_answer *a)
{
	CU_ASSERT_EQUAL(a->status == RESOLVE_OK, a->n > 0);
	CU_ASSERT_EQUAL(a->status == RESOLVE_OK, a->why[0] == '\0');
	CU_ASSERT_FALSE(atomic_load(&c->done));
	c->status = a->status;
	c->stale = a->stale;
	c->n = a->n;
	for (int i = 0; i < a->n; i++)
		net_address_text(&a->address[i], c->text[i]);
	atomic_store(&c->done, true);
}

static inline void on_done(struct resolve_query *q, const struct resolve_answer *a)
{
	take((struct caller *)q, a);
}

static inline void call(void *arg)
{
	struct caller *c = arg;
	const struct resolve_answer *a = resolve_name(resolver, c->name, &c->query);

	c->at_once = a != NULL;
	if (a)
		take(c, a);
}

static inline void ask(struct caller *c, const char *name)
{
	*c = (struct caller){.name = name, .query.done = on_done};
	in_loop(call, c);
}

/* Whether `name` is resolved to the status, and to the address unless it is NULL. */
static inline bool says(const char *name, enum resolve_status status, const char *address)
{
	struct caller c;

	ask(&c, name);
	FIXTURE_AWAIT(atomic_load(&c.done));
	bool ok = c.status == status && (!address || strcmp(c.text[0], address) == 0);
	if (!ok)
		fprintf(stderr, "%s: %d %s\n", name, (int)c.status, c.n > 0 ? c.text[0] : "");
	return ok;
}

static inline bool at_once(const char *name, enum resolve_status status, const char *address)
{
	struct caller c;

	ask(&c, name);
	if (!c.at_once)
		FIXTURE_AWAIT(atomic_load(&c.done)); /* it is on this stack */
	return c.at_once && c.status == status && (!address || strcmp(c.text[0], address) == 0);
}

static inline void count(void *arg)
{
	*(struct resolve_counts *)arg = *resolve_counts(resolver);
}

static inline struct resolve_counts counts(void)
{
	struct resolve_counts c;

	in_loop(count, &c);
	return c;
}

static inline bool is_asked(const char *name, int n)
{
	return dns_asked(dns, name) == n;
}

#endif
