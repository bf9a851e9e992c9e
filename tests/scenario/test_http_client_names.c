/* SPDX-License-Identifier: MIT */
/* Names of origins: http.client with a name server that this test plays. */
#include <fcntl.h>
#include <sys/un.h>

#include "fixture/http/dns.h"
#include "fixture/http/origin.h"

static struct dns *dns;

/* http.client before app.test:PORT of `o`. Names are asked for again after 30 ms, by two loops: that of the
 * stage, and the one of the server, in which requests are passed on. */
static struct server named_server(const struct origin *o)
{
	struct server s = server_before(o);
	char text[64];

	snprintf(text, sizeof(text), "app.test:%d", o->port);
	fixture_set(s.app, "with.origins", text);
	fixture_set(s.app, "with.resolve.servers", dns_address(dns));
	fixture_set(s.app, "with.resolve.ttl_min", "30ms");
	fixture_set(s.app, "with.resolve.negative", "30ms");
	fixture_set(s.app, "with.resolve.attempt", "50ms");
	fixture_set(s.app, "with.resolve.tries", "1");
	return s;
}

static const char *failed_of(const struct answer *a)
{
	const char *value = field_in(a->head, "x-weir-failed");

	return value ? value : "";
}

/* Send a request and expect 502 with this reason. */
static bool is_refused(int c, const char *reason)
{
	struct answer a = {0};
	char want[64];
	bool good;

	snprintf(want, sizeof(want), "stage=app; reason=%s", reason);
	good = client_say(c, GET("/")) && answer_read(c, &a) && a.status == 502 &&
	       strcmp(failed_of(&a), want) == 0;
	answer_free(&a);
	return good;
}

/* The origin is away: each loop finds this reason some time after the other one. */
static void await_refused(int c, const char *reason)
{
	FIXTURE_AWAIT(is_refused(c, reason));
}

/* Answer one request of `c` at `o`, over a connection of its own. */
static void serve(struct origin *o, int c)
{
	int u = origin_ask(o, c, GET("/"));

	client_say(u, ANSWER("Connection: close\r\nContent-Length: 2\r\n", "ok"));
	CU_ASSERT(client_gets(c, 200, "ok"));
	close(u);
}

/* The address changes: requests go to the new one within the TTL, and those under way end at the old one. */
static void address_changes(void)
{
	struct origin old, new;
	origin_pair(&old, &new, "127.0.0.2");
	struct server s = named_server(&old);

	dns_set(dns, "app.test", DNS_GOOD, "127.0.0.1", 0);
	server_start(&s);
	int c = client_open(s.port), d = client_open(s.port), kept = origin_ask(&old, c, GET("/"));
	client_say(kept, ANSWER("Content-Length: 2\r\n", "ok"));
	CU_ASSERT(client_gets(c, 200, "ok"));
	/* the connection is kept, and a request is under way over it */
	char head[2048];
	client_say(d, GET("/slow"));
	CU_ASSERT_FATAL(head_read(kept, head, sizeof(head)));
	dns_set(dns, "app.test", DNS_GOOD, "127.0.0.2", 0);
	FIXTURE_AWAIT(server_metric(&s, "origin_names_changed_total") >= 2);
	serve(&new, c);
	client_say(kept, ANSWER("Content-Length: 4\r\n", "slow"));
	CU_ASSERT(client_gets(d, 200, "slow"));
	CU_ASSERT(client_at_end(kept)); /* no request would use it */
	serve(&new, d);
	CU_ASSERT_EQUAL(server_metric(&s, "origin_connect_failures_total"), 0);
	close(c);
	close(d);
	close(kept);
	server_stop(&s);
	origin_free(&old);
	origin_free(&new);
}

/* An idle connection to an address that is gone is closed. */
static void idle_connection_is_closed(void)
{
	struct origin old, new;
	origin_pair(&old, &new, "127.0.0.2");
	struct server s = named_server(&old);

	dns_set(dns, "app.test", DNS_GOOD, "127.0.0.1", 0);
	server_start(&s);
	int c = client_open(s.port), u = origin_ask(&old, c, GET("/"));
	client_say(u, ANSWER("Content-Length: 2\r\n", "ok"));
	CU_ASSERT(client_gets(c, 200, "ok"));
	dns_set(dns, "app.test", DNS_GOOD, "127.0.0.2", 0);
	CU_ASSERT(client_at_end(u));
	serve(&new, c);
	close(c);
	close(u);
	server_stop(&s);
	origin_free(&old);
	origin_free(&new);
}

/* Each address of a name is an origin of its own: one is away, and the other serves. */
static void several_addresses(void)
{
	struct origin one, two;
	origin_pair(&one, &two, "127.0.0.2");
	struct server s = named_server(&one);

	dns_set(dns, "app.test", DNS_PAIR, "127.0.0.1", 1000);
	fixture_set(s.app, "with.eject", "1h");
	fixture_set(s.app, "with.retry_budget", "100%");
	server_start(&s);
	int c = client_open(s.port);
	fcntl(one.fd, F_SETFL, O_NONBLOCK);
	fcntl(two.fd, F_SETFL, O_NONBLOCK);
	for (int seen = 0; seen != 3;) { /* both are asked */
		char head[2048];
		int u = -1;
		client_say(c, GET("/"));
		while (u < 0) {
			u = accept(one.fd, NULL, NULL);
			seen |= u >= 0 ? 1 : 2;
			u = u < 0 ? accept(two.fd, NULL, NULL) : u;
		}
		CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
		client_say(u, ANSWER("Connection: close\r\nContent-Length: 2\r\n", "ok"));
		CU_ASSERT(client_gets(c, 200, "ok"));
		close(u);
	}
	fcntl(two.fd, F_SETFL, 0);
	origin_shut(&one);
	while (server_metric(&s, "origins_out") == 0)
		serve(&two, c);
	CU_ASSERT_EQUAL(server_metric(&s, "origin_retries_total"), 3);
	close(c);
	server_stop(&s);
	origin_free(&one);
	origin_free(&two);
}

/* A request waits for the first answer of the name server. */
static void first_answer_is_awaited(void)
{
	struct origin o = origin_new();
	struct server s = named_server(&o);

	dns_set(dns, "app.test", DNS_HELD, "127.0.0.1", 1000);
	fixture_set(s.app, "with.resolve.attempt", "60s");
	int asked = dns_asked(dns, "app.test") + 1; /* at the start */
	server_start(&s);
	int c = client_open(s.port);
	client_say(c, GET("/"));
	FIXTURE_AWAIT(dns_asked(dns, "app.test") > asked + 1);
	dns_set(dns, "app.test", DNS_GOOD, "127.0.0.1", 1000);
	dns_let_go(dns);
	int u = origin_accept(&o);
	char head[2048];
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	client_say(u, ANSWER("Content-Length: 2\r\n", "ok"));
	CU_ASSERT(client_gets(c, 200, "ok"));
	close(c);
	close(u);
	server_stop(&s);
	origin_free(&o);
}

/* Without an address at the start the server starts, answers with 502, and serves when there is one. */
static void no_address_at_the_start(void)
{
	static const enum dns_way way[] = {DNS_NONE, DNS_EMPTY, DNS_FAILED, DNS_SILENT};
	static const char *const reason[] = {
	    "no_address", "no_address", "name_servers", "name_servers"};

	for (size_t i = 0; i < sizeof(way) / sizeof(way[0]); i++) {
		struct origin o = origin_new();
		struct server s = named_server(&o);
		dns_set(dns, "app.test", way[i], NULL, 0);
		server_start(&s);
		int c = client_open(s.port);
		CU_ASSERT(is_refused(c, reason[i]));
		CU_ASSERT(is_refused(c, reason[i]));
		double failed = server_metric(&s, "origin_names_failed_total");
		CU_ASSERT(failed >= 1);
		dns_set(dns, "app.test", DNS_GOOD, "127.0.0.1", 1000);
		FIXTURE_AWAIT(server_metric(&s, "origin_names_changed_total") >= 2);
		serve(&o, c);
		close(c);
		server_stop(&s);
		origin_free(&o);
	}
}

/* While no name server answers, the addresses stay for `stale`. */
static void addresses_are_stale(void)
{
	struct origin o = origin_new();
	struct server s = named_server(&o);

	dns_set(dns, "app.test", DNS_GOOD, "127.0.0.1", 0);
	server_start(&s);
	int c = client_open(s.port);
	serve(&o, c);
	dns_set(dns, "app.test", DNS_SILENT, NULL, 0);
	FIXTURE_AWAIT(server_metric(&s, "origin_names_failed_total") >= 6);
	serve(&o, c);
	close(c);
	server_stop(&s);
	origin_free(&o);
}

static void stale_addresses_end(void)
{
	struct origin o = origin_new();
	struct server s = named_server(&o);

	fixture_set(s.app, "with.resolve.stale", "1ms");
	dns_set(dns, "app.test", DNS_GOOD, "127.0.0.1", 0);
	server_start(&s);
	int c = client_open(s.port);
	serve(&o, c);
	dns_set(dns, "app.test", DNS_SILENT, NULL, 0);
	origin_shut(&o);
	await_refused(c, "name_servers");
	close(c);
	server_stop(&s);
	origin_free(&o);
}

/* That a name has no address is believed at the second answer. */
static void name_is_removed(void)
{
	struct origin o = origin_new();
	struct server s = named_server(&o);

	fixture_set(s.app, "with.resolve.negative", "1h");
	dns_set(dns, "app.test", DNS_GOOD, "127.0.0.1", 0);
	server_start(&s);
	int c = client_open(s.port);
	serve(&o, c);
	dns_set(dns, "app.test", DNS_NONE, NULL, 0);
	AWAIT_COUNT(&s, "origin_names_failed_total", 2);
	serve(&o, c);
	close(c);
	server_stop(&s);
	s = named_server(&o);
	dns_set(dns, "app.test", DNS_GOOD, "127.0.0.1", 0);
	server_start(&s);
	c = client_open(s.port);
	serve(&o, c);
	dns_set(dns, "app.test", DNS_NONE, NULL, 0);
	origin_shut(&o);
	await_refused(c, "no_address");
	close(c);
	server_stop(&s);
	origin_free(&o);
}

/* Addresses that `deny` has are not connected to. */
static void addresses_are_denied(void)
{
	struct origin o = origin_new();
	struct server s = named_server(&o);

	fixture_set(s.app, "with.deny", "private");
	dns_set(dns, "app.test", DNS_GOOD, "127.0.0.1", 0);
	server_start(&s);
	int c = client_open(s.port);
	CU_ASSERT(is_refused(c, "denied"));
	dns_set(dns, "app.test", DNS_GOOD, "169.254.169.254", 0);
	double n = server_metric(&s, "origin_denied_total");
	FIXTURE_AWAIT(server_metric(&s, "origin_denied_total") > n + 4);
	CU_ASSERT(is_refused(c, "denied"));
	CU_ASSERT_EQUAL(server_metric(&s, "origin_connects_total"), 0);
	close(c);
	server_stop(&s);
	/* others of the same name are used */
	s = named_server(&o);
	fixture_set(s.app, "with.deny", "127.0.0.2/32");
	dns_set(dns, "app.test", DNS_PAIR, "127.0.0.1", 1000);
	server_start(&s);
	c = client_open(s.port);
	for (int i = 0; i < 10; i++)
		serve(&o, c);
	CU_ASSERT_EQUAL(server_metric(&s, "origin_denied_total"), 2);
	CU_ASSERT_EQUAL(server_metric(&s, "origin_connect_failures_total"), 0);
	close(c);
	server_stop(&s);
	origin_free(&o);
}

/* ::1 is used only if 127.0.0.1 is out: nobody listens there. */
static void localhost(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);
	char text[64];

	snprintf(text, sizeof(text), "http://localhost:%d", o.port);
	fixture_set(s.app, "with.origins", text);
	server_start(&s);
	int c = client_open(s.port);
	for (int i = 0; i < 20; i++)
		serve(&o, c);
	CU_ASSERT_EQUAL(server_metric(&s, "origin_connect_failures_total"), 0);
	close(c);
	server_stop(&s);
	origin_free(&o);
}

/* An origin behind a socket file. */
static void socket_file(void)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	char dir[] = "/tmp/weir_origin_XXXXXX", text[sizeof(un.sun_path) + 8], head[2048];
	struct origin o = {.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	struct server s;

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/app.sock", dir);
	CU_ASSERT_EQUAL_FATAL(bind(o.fd, (struct sockaddr *)&un, sizeof(un)), 0);
	CU_ASSERT_EQUAL_FATAL(listen(o.fd, 8), 0);
	s = server_before(&o);
	snprintf(text, sizeof(text), "unix:%s", un.sun_path);
	fixture_set(s.app, "with.origins", text);
	server_start(&s);
	int c = client_open(s.port);
	client_say(c, "GET / HTTP/1.0\r\n\r\n");
	int u = origin_accept(&o);
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	CU_ASSERT_STRING_EQUAL(field_in(head, "host"), "localhost");
	client_say(u, ANSWER("Content-Length: 2\r\n", "ok"));
	CU_ASSERT(client_gets(c, 200, "ok"));
	close(c);
	close(u);
	server_stop(&s);
	origin_free(&o);
	unlink(un.sun_path);
	rmdir(dir);
}

/* The configuration is checked. */
static void refused(void)
{
	static const char *const bad[][3] = {
	    {"with.origins", "1.2.3:80", "no host that is a name or an address"},
	    {"with.origins", "app.test:0", "has the port 0"},
	    {"with.origins", "app.test:70000", "no port from 1 to 65535"},
	    {"with.origins", "unix:app.sock", "the path of a file must follow, from the root"},
	    {"with.resolve.servers", "ns.example.org", "is not the address of a name server"},
	    {"with.deny", "private", "has an address that 'deny' has"},
	    {"with.deny", "127.0.0.0/24", "has an address that 'deny' has"},
	    {"with.deny", "publik", "'publik' is not a network"},
	    {"with.retry_on", "500", "'retry_on' has no '500'"},
	    {"with.resolve.ttl_min", "2h", "longer than 'ttl_max'"}};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct server s = server_new("http.client");
		struct weir_errs errs = {0};
		struct weir_graph *g = NULL;

		fixture_set(s.app, "with.origins", "127.0.0.1:9");
		fixture_set(s.app, bad[i][0], bad[i][1]);
		CU_ASSERT_NOT_EQUAL(weir_graph_build(s.spec, &g, &errs), 0);
		CU_ASSERT_PTR_NOT_NULL(strstr(errs.err[0].text, bad[i][2]));
		weir_spec_free(s.spec);
	}
}

static void begin(void)
{
	dns = dns_begin();
}

static void end(void)
{
	dns_end(dns);
}

CUNIT_MAIN("http.client names", {"begin", begin}, {"the address changes", address_changes},
    {"an idle connection is closed", idle_connection_is_closed},
    {"several addresses", several_addresses},
    {"the first answer is awaited", first_answer_is_awaited},
    {"no address at the start", no_address_at_the_start},
    {"addresses are stale", addresses_are_stale}, {"stale addresses end", stale_addresses_end},
    {"the name is removed", name_is_removed}, {"addresses are denied", addresses_are_denied},
    {"localhost", localhost}, {"a socket file", socket_file}, {"refused", refused}, {"end", end})
