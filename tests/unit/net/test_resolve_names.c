/* SPDX-License-Identifier: MIT */
/* Names to addresses, with a name server that lies, loops, is silent. The clock of the loop is held, and
 * with it those of TTLs and of c-ares. */
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

static void on_mail(struct weir_loop *loop, struct weir_event *list)
{
	(void)loop;
	(void)list;
}

static void on_turn_end(struct weir_loop *loop)
{
	void (*call)(void *) = atomic_exchange(&job.call, NULL);

	(void)loop;
	if (!call)
		return;
	call(job.arg);
	sem_post(&job.done);
}

static void in_loop(void (*call)(void *), void *arg)
{
	job.arg = arg;
	atomic_store(&job.call, call);
	weir_loop_wake(the_loop);
	while (sem_wait(&job.done) != 0)
		;
}

static const struct weir_loop_ops loop_ops = {.mail = on_mail, .turn_end = on_turn_end};

static int source_start(struct weir_stage *st, struct weir_err *err)
{
	(void)err;
	return weir_loop_start(st, 0, &loop_ops, NULL, &the_loop);
}

static void source_fini(struct weir_stage *st)
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

static void make(void *arg)
{
	*(int *)arg = resolver_new(the_loop, &conf, &resolver, &failure);
}

static void unmake(void *arg)
{
	(void)arg;
	resolver_free(resolver, false);
	resolver = NULL;
}

static void begin_graph(void)
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

static void begin(struct resolve_conf c)
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

static void finish(void)
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

static void take(struct caller *c, const struct resolve_answer *a)
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

static void on_done(struct resolve_query *q, const struct resolve_answer *a)
{
	take((struct caller *)q, a);
}

static void call(void *arg)
{
	struct caller *c = arg;
	const struct resolve_answer *a = resolve_name(resolver, c->name, &c->query);

	c->at_once = a != NULL;
	if (a)
		take(c, a);
}

static void ask(struct caller *c, const char *name)
{
	*c = (struct caller){.name = name, .query.done = on_done};
	in_loop(call, c);
}

/* Whether `name` is resolved to the status, and to the address unless it is NULL. */
static bool says(const char *name, enum resolve_status status, const char *address)
{
	struct caller c;

	ask(&c, name);
	FIXTURE_AWAIT(atomic_load(&c.done));
	bool ok = c.status == status && (!address || strcmp(c.text[0], address) == 0);
	if (!ok)
		fprintf(stderr, "%s: %d %s\n", name, (int)c.status, c.n > 0 ? c.text[0] : "");
	return ok;
}

static bool at_once(const char *name, enum resolve_status status, const char *address)
{
	struct caller c;

	ask(&c, name);
	if (!c.at_once)
		FIXTURE_AWAIT(atomic_load(&c.done)); /* it is on this stack */
	return c.at_once && c.status == status && (!address || strcmp(c.text[0], address) == 0);
}

static void count(void *arg)
{
	*(struct resolve_counts *)arg = *resolve_counts(resolver);
}

static struct resolve_counts counts(void)
{
	struct resolve_counts c;

	in_loop(count, &c);
	return c;
}

static bool is_asked(const char *name, int n)
{
	return dns_asked(dns, name) == n;
}

/* ---- what needs no server ---- */

static void test_literals(void)
{
	static const char *const bad[] = {"", ".", "a..b", ".a", "a b", "a/b", "http://a", "1.2.3",
	    "127.1", "0x7f000001", "0x7f.1", "2130706433", "1.2.3.4.5", "1.2.3.256", "a.1",
	    "[1.2.3.4]", "::1%lo", "[::1", "a:80", "b\303\274cher"};
	char longest[300];

	begin((struct resolve_conf){0});
	CU_ASSERT(at_once("192.0.2.1", RESOLVE_OK, "192.0.2.1"));
	CU_ASSERT(at_once("2001:DB8::1", RESOLVE_OK, "2001:db8::1"));
	CU_ASSERT(at_once("[::1]", RESOLVE_OK, "::1"));
	CU_ASSERT(at_once("localhost", RESOLVE_OK, "127.0.0.1"));
	CU_ASSERT(at_once("x.LOCALHOST.", RESOLVE_OK, "127.0.0.1"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT(at_once(bad[i], RESOLVE_BAD_NAME, NULL));
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	CU_ASSERT(at_once(longest, RESOLVE_BAD_NAME, NULL));
	longest[64] = '\0'; /* a label of 64 bytes */
	CU_ASSERT(at_once(longest, RESOLVE_BAD_NAME, NULL));
	CU_ASSERT_EQUAL(counts().asked, 0);
	finish();
}

static void test_socket_address(void)
{
	struct sockaddr_storage at;
	struct net_address a;

	net_address_read((struct weir_slice){"192.0.2.1", 9}, &a);
	CU_ASSERT_EQUAL(resolve_socket_address(&a, 80, &at), sizeof(struct sockaddr_in));
	CU_ASSERT_EQUAL(at.ss_family, AF_INET);
	CU_ASSERT_EQUAL(((struct sockaddr_in *)&at)->sin_addr.s_addr, inet_addr("192.0.2.1"));
	CU_ASSERT_EQUAL(((struct sockaddr_in *)&at)->sin_port, htons(80));
	net_address_read((struct weir_slice){"2001:db8::7", 11}, &a);
	CU_ASSERT_EQUAL(resolve_socket_address(&a, 443, &at), sizeof(struct sockaddr_in6));
	CU_ASSERT_EQUAL(((struct sockaddr_in6 *)&at)->sin6_addr.s6_addr[15], 7);
	CU_ASSERT_EQUAL(((struct sockaddr_in6 *)&at)->sin6_port, htons(443));
}

/* ---- answers that are kept ---- */

static void test_ttl(void)
{
	begin((struct resolve_conf){.ttl_min_ns = 2 * S, .ttl_max_ns = 100 * S});
	dns_set(dns, "a.test", DNS_GOOD, "192.0.2.1", 10);
	dns_set(dns, "zero.test", DNS_GOOD, "192.0.2.2", 0);
	dns_set(dns, "long.test", DNS_GOOD, "192.0.2.3", 86400);
	dns_set(dns, "odd.test", DNS_GOOD, "192.0.2.4", 0x80000000u);
	dns_set(dns, "alias.test", DNS_ALIAS, "192.0.2.5", 10);
	for (int i = 0; i < 3; i++)
		CU_ASSERT(says("A.Test", RESOLVE_OK, "192.0.2.1"));
	CU_ASSERT(says("zero.test", RESOLVE_OK, "192.0.2.2"));
	CU_ASSERT(says("long.test", RESOLVE_OK, "192.0.2.3"));
	CU_ASSERT(says("odd.test", RESOLVE_OK, "192.0.2.4"));
	CU_ASSERT(says("alias.test", RESOLVE_OK, "192.0.2.5"));
	CU_ASSERT(is_asked("a.test", 1));
	dns_set(dns, "a.test", DNS_GOOD, "192.0.2.9", 10);
	clock_move(1900);
	CU_ASSERT(at_once("zero.test", RESOLVE_OK, "192.0.2.2"));
	CU_ASSERT(at_once("odd.test", RESOLVE_OK, "192.0.2.4"));
	clock_move(200);
	CU_ASSERT(says("zero.test", RESOLVE_OK, "192.0.2.2") && is_asked("zero.test", 2));
	CU_ASSERT(says("odd.test", RESOLVE_OK, "192.0.2.4") && is_asked("odd.test", 2));
	CU_ASSERT(at_once("a.test", RESOLVE_OK, "192.0.2.1"));
	CU_ASSERT(at_once("alias.test", RESOLVE_OK, "192.0.2.5"));
	clock_move(8000);
	CU_ASSERT(says("a.test", RESOLVE_OK, "192.0.2.9"));
	CU_ASSERT(says("alias.test", RESOLVE_OK, NULL) && is_asked("alias.test", 2));
	CU_ASSERT(at_once("long.test", RESOLVE_OK, "192.0.2.3"));
	clock_move(90000);
	CU_ASSERT(says("long.test", RESOLVE_OK, "192.0.2.3") && is_asked("long.test", 2));
	finish();
}

static void test_negative(void)
{
	begin((struct resolve_conf){.negative_ns = 5 * S});
	CU_ASSERT(says("none.test", RESOLVE_NONE, NULL));
	dns_set(dns, "empty.test", DNS_EMPTY, NULL, 0);
	CU_ASSERT(says("empty.test", RESOLVE_NONE, NULL));
	dns_set(dns, "none.test", DNS_GOOD, "192.0.2.1", 10);
	clock_move(4900);
	CU_ASSERT(at_once("none.test", RESOLVE_NONE, NULL));
	CU_ASSERT(at_once("empty.test", RESOLVE_NONE, NULL) && is_asked("empty.test", 1));
	clock_move(200);
	CU_ASSERT(says("none.test", RESOLVE_OK, "192.0.2.1"));
	CU_ASSERT_EQUAL(counts().negative, 2);
	finish();
}

/* Equal questions share one, however long the answer takes; callers that leave are not told. */
static void test_shared(void)
{
	struct caller c[5];

	begin((struct resolve_conf){0});
	dns_set(dns, "a.test", DNS_HELD, "192.0.2.1", 10);
	for (int i = 0; i < 5; i++)
		ask(&c[i], "a.test");
	in_loop((void (*)(void *))resolve_cancel, &c[2]);
	in_loop((void (*)(void *))resolve_cancel, &c[2]);
	FIXTURE_AWAIT(is_asked("a.test", 1));
	for (int i = 0; i < 5; i++)
		CU_ASSERT_FALSE(atomic_load(&c[i].done));
	while (!atomic_load(&c[0].done)) /* the two questions may not have arrived yet */
		dns_let_go(dns);
	for (int i = 0; i < 5; i++)
		if (i != 2)
			FIXTURE_AWAIT(atomic_load(&c[i].done) && c[i].status == RESOLVE_OK);
	CU_ASSERT_FALSE(atomic_load(&c[2].done));
	CU_ASSERT(is_asked("a.test", 1));
	CU_ASSERT_EQUAL(counts().joined, 4);
	finish();
}

/* While nobody answers, an old answer serves; servers are asked again now and then. */
static void test_stale(void)
{
	struct caller c;

	begin((struct resolve_conf){.stale_ns = 100 * S, .timeout_ns = 500 * MS, .tries = 1});
	dns_set(dns, "a.test", DNS_GOOD, "192.0.2.1", 10);
	CU_ASSERT(says("a.test", RESOLVE_OK, "192.0.2.1"));
	dns_set(dns, "a.test", DNS_SILENT, NULL, 0);
	clock_move(11000);
	for (int i = 0; i < 3; i++) {
		ask(&c, "a.test");
		CU_ASSERT(c.at_once && c.stale && strcmp(c.text[0], "192.0.2.1") == 0);
	}
	FIXTURE_AWAIT(is_asked("a.test", 2));
	clock_move(600);
	FIXTURE_AWAIT(counts().failed == 1);
	ask(&c, "a.test");
	CU_ASSERT(c.at_once && c.stale && is_asked("a.test", 2));
	clock_move(1100);
	dns_set(dns, "a.test", DNS_GOOD, "192.0.2.2", 10);
	ask(&c, "a.test");
	CU_ASSERT(c.at_once && c.stale);
	while (!(ask(&c, "a.test"), strcmp(c.text[0], "192.0.2.2") == 0 && !c.stale))
		CU_ASSERT(c.at_once);
	dns_set(dns, "a.test", DNS_SILENT, NULL, 0);
	clock_move(111000); /* too old */
	ask(&c, "a.test");
	CU_ASSERT_FALSE(c.at_once);
	while (!atomic_load(&c.done))
		clock_move(100);
	CU_ASSERT_EQUAL(c.status, RESOLVE_FAILED);
	finish();
}

/* A name that no longer exists is not kept for its stale answer. */
static void test_stale_gone(void)
{
	struct caller c;

	begin((struct resolve_conf){.stale_ns = 100 * S});
	dns_set(dns, "a.test", DNS_GOOD, "192.0.2.1", 10);
	CU_ASSERT(says("a.test", RESOLVE_OK, "192.0.2.1"));
	dns_set(dns, "a.test", DNS_NONE, NULL, 0);
	clock_move(11000);
	ask(&c, "a.test");
	CU_ASSERT(c.at_once && c.stale);
	FIXTURE_AWAIT(counts().negative == 1);
	CU_ASSERT(at_once("a.test", RESOLVE_NONE, NULL));
	finish();
}

/* The names that were used last are kept. */
static void test_full(void)
{
	char name[4][16];
	struct caller c[3];

	begin((struct resolve_conf){.max_names = 2});
	for (int i = 0; i < 4; i++) {
		snprintf(name[i], sizeof(name[i]), "n%d.test", i);
		dns_set(dns, name[i], DNS_GOOD, "192.0.2.1", 1000);
	}
	CU_ASSERT(says(name[0], RESOLVE_OK, NULL) && says(name[1], RESOLVE_OK, NULL));
	CU_ASSERT(at_once(name[0], RESOLVE_OK, NULL));
	CU_ASSERT(says(name[2], RESOLVE_OK, NULL));
	CU_ASSERT(at_once(name[0], RESOLVE_OK, NULL));
	CU_ASSERT(says(name[1], RESOLVE_OK, NULL) && is_asked(name[1], 2));
	CU_ASSERT_EQUAL(counts().evicted, 2);
	dns_set(dns, "s0.test", DNS_SILENT, NULL, 0);
	dns_set(dns, "s1.test", DNS_SILENT, NULL, 0);
	ask(&c[0], "s0.test");
	ask(&c[1], "s1.test");
	ask(&c[2], name[0]); /* those that are asked are not given up */
	CU_ASSERT(c[2].at_once && c[2].status == RESOLVE_NO_MEMORY);
	in_loop(unmake, NULL); /* while callers wait */
	CU_ASSERT(atomic_load(&c[0].done) && c[0].status == RESOLVE_CANCELLED);
	CU_ASSERT(atomic_load(&c[1].done) && c[1].status == RESOLVE_CANCELLED);
	finish();
}

static void forget(void *name)
{
	resolve_forget(resolver, name);
}

static void test_forget(void)
{
	char upper[] = "A.test";

	begin((struct resolve_conf){0});
	dns_set(dns, "a.test", DNS_GOOD, "192.0.2.1", 1000);
	dns_set(dns, "b.test", DNS_GOOD, "192.0.2.1", 1000);
	CU_ASSERT(says("a.test", RESOLVE_OK, NULL) && says("b.test", RESOLVE_OK, NULL));
	in_loop(forget, upper);
	CU_ASSERT(says("a.test", RESOLVE_OK, NULL) && is_asked("a.test", 2));
	CU_ASSERT(says("b.test", RESOLVE_OK, NULL) && is_asked("b.test", 1));
	in_loop(forget, NULL);
	CU_ASSERT(says("a.test", RESOLVE_OK, NULL) && is_asked("a.test", 3));
	CU_ASSERT(says("b.test", RESOLVE_OK, NULL) && is_asked("b.test", 2));
	finish();
}

/* ---- servers that lie, loop or are silent ---- */

static void test_hostile(void)
{
	struct caller c;

	begin((struct resolve_conf){.timeout_ns = 500 * MS, .tries = 1});
	dns_set(dns, "forged.test", DNS_FORGED, "192.0.2.1", 10);
	dns_set(dns, "loop.test", DNS_LOOP, NULL, 10);
	dns_set(dns, "cut.test", DNS_CUT, "192.0.2.1", 10);
	dns_set(dns, "pointer.test", DNS_POINTER, "192.0.2.1", 10);
	dns_set(dns, "failed.test", DNS_FAILED, NULL, 0);
	dns_set(dns, "many.test", DNS_MANY, NULL, 10);
	CU_ASSERT(says("forged.test", RESOLVE_OK, "192.0.2.1"));
	CU_ASSERT(says("loop.test", RESOLVE_NONE, NULL));
	CU_ASSERT(says("failed.test", RESOLVE_FAILED, NULL));
	CU_ASSERT(says("many.test", RESOLVE_OK, NULL));
	ask(&c, "many.test");
	CU_ASSERT_EQUAL(c.n, RESOLVE_ADDRESSES_MAX);
	static const char *const broken[] = {"cut.test", "pointer.test"};
	for (int i = 0; i < 2; i++) {
		ask(&c, broken[i]);
		while (!atomic_load(&c.done))
			clock_move(100);
		CU_ASSERT(c.status == RESOLVE_FAILED || c.status == RESOLVE_NONE);
	}
	finish();
}

/* The second server is asked when the first is silent, and each twice. */
static void test_silent(void)
{
	struct dns *second = dns_begin();
	char servers[80];
	struct caller c;

	begin((struct resolve_conf){.timeout_ns = 500 * MS, .tries = 2});
	in_loop(unmake, NULL);
	snprintf(servers, sizeof(servers), "%s,%s", dns_address(dns), dns_address(second));
	conf.servers = servers;
	int rc = -1;
	in_loop(make, &rc);
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	dns_set(dns, "a.test", DNS_SILENT, NULL, 0);
	dns_set(second, "a.test", DNS_GOOD, "192.0.2.2", 10);
	dns_set(dns, "b.test", DNS_SILENT, NULL, 0);
	dns_set(second, "b.test", DNS_SILENT, NULL, 0);
	ask(&c, "a.test");
	FIXTURE_AWAIT(is_asked("a.test", 1));
	while (!atomic_load(&c.done))
		clock_move(100);
	CU_ASSERT(c.status == RESOLVE_OK && strcmp(c.text[0], "192.0.2.2") == 0);
	ask(&c, "b.test");
	while (!atomic_load(&c.done))
		clock_move(100);
	CU_ASSERT_EQUAL(c.status, RESOLVE_FAILED);
	FIXTURE_AWAIT(is_asked("b.test", 2) && dns_asked(second, "b.test") == 2);
	CU_ASSERT(at_once("b.test", RESOLVE_FAILED, NULL)); /* kept for a second */
	finish();
	dns_end(second);
}

/* ---- resolv.conf ---- */

static void write_file(const char *path, const char *line)
{
	FILE *f = fopen(path, "we");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fprintf(f, "%s\n", line);
	fclose(f);
}

/* A new file is read within a second, and what was kept is asked again. */
static void test_file(void)
{
	char path[] = "/tmp/weir-resolv-XXXXXX";
	int fd = mkstemp(path);

	close(fd);
	write_file(path, "nameserver 127.0.0.1\nsearch none.test");
	begin((struct resolve_conf){.file = path, .timeout_ns = 500 * MS, .tries = 1});
	clock_move(1100);
	CU_ASSERT(at_once("192.0.2.1", RESOLVE_OK, NULL));
	write_file(path, "nameserver 127.0.0.1\nsearch other.test");
	CU_ASSERT_EQUAL(counts().reread, 0);
	struct caller c;
	ask(&c, "a.test.");
	CU_ASSERT_EQUAL(counts().reread, 1);
	while (!atomic_load(&c.done))
		clock_move(100);
	clock_move(1100);
	ask(&c, "b.test.");
	CU_ASSERT_EQUAL(counts().reread, 1);
	while (!atomic_load(&c.done))
		clock_move(100);
	finish();
	unlink(path);
}

static void test_bad_servers(void)
{
	int rc = 0;

	begin((struct resolve_conf){0});
	in_loop(unmake, NULL);
	conf.servers = "not an address";
	in_loop(make, &rc);
	CU_ASSERT_EQUAL(rc, WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(failure.text, "not a list of name servers"));
	finish();
}

CUNIT_MAIN("resolve_names", {"literals", test_literals}, {"socket address", test_socket_address},
    {"TTL", test_ttl}, {"negative", test_negative}, {"shared", test_shared}, {"stale", test_stale},
    {"stale and gone", test_stale_gone}, {"full", test_full}, {"forget", test_forget},
    {"hostile", test_hostile}, {"silent", test_silent}, {"resolv.conf", test_file},
    {"bad servers", test_bad_servers})
