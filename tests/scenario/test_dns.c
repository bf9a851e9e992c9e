/* SPDX-License-Identifier: MIT */
/* dns.resolve behind http.server: what requests get, whom they reach, how long they wait. */
#include <weir/dns.h>

#include "fixture/http/dns.h"
#include "fixture/http/server.h"

/* Answers with "STAGE STATUS ADDRESS". */
static void say_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	static const char *const status[] = {"ok", "stale", "none", "failed", "bad_name"};

	for (int i = 0; i < n; i++) {
		const struct weir_dns *d = weir_dns(ev[i]);
		char text[200];
		int bytes = snprintf(text, sizeof(text), "%s %s %s", weir_stage_name(st),
		    status[d->status], d->text);
		CU_ASSERT_EQUAL(d->why[0] == '\0', d->n > 0);
		weir_event_finish(
		    &ev[i], weir_http_respond_copy(weir_http_request(ev[i]), 200, "text/plain",
				(struct weir_slice){text, (size_t)bytes}));
	}
}

static const struct weir_payload_type *const say_needs[] = {&weir_dns_payload, NULL};

static const struct weir_stage_ops say_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.say",
    .summary = "says the addresses",
    .accepts = &weir_http_request_type,
    .needs = say_needs,
    .handle = say_handle};

static struct dns *dns;

/* The server "web" in front of dns.resolve, whose outlets lead to stages of their names. */
static struct server dns_server(bool with_outlets)
{
	static const char *const outlets[] = {"found", "none", "failed"};
	struct server s = server_new("dns.resolve");

	for (int i = 0; i < (with_outlets ? 3 : 1); i++) {
		fixture_stage(s.spec, outlets[i], "t.say", NULL);
		weir_spec_link(&s.spec->stages[1], outlets[i], outlets[i], false);
	}
	s.web = &s.spec->stages[0];
	s.app = &s.spec->stages[1];
	fixture_set(s.app, "with.servers", dns_address(dns));
	return s;
}

/* Send a request for `host`. */
static int send_host(const struct server *s, const char *host)
{
	char request[400];
	int fd = client_open(s->port);

	snprintf(request, sizeof(request), "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host);
	CU_ASSERT(client_say(fd, request));
	return fd;
}

/* Whether the answer on `fd`, which is closed, has this status and this body, unless it is NULL. */
static bool answered(int fd, int status, const char *body)
{
	struct answer a = {0};
	bool ok = answer_read(fd, &a) && a.status == status &&
		  (!body || (a.body && strcmp(a.body, body) == 0));

	if (!ok)
		fprintf(stderr, "%d '%s'\n", a.status, a.body ? a.body : "");
	answer_free(&a);
	close(fd);
	return ok;
}

static bool asks(const struct server *s, const char *host, const char *body)
{
	return answered(send_host(s, host), 200, body);
}

static void test_outlets(void)
{
	struct server s = dns_server(true);

	dns_set(dns, "a.test", DNS_GOOD, "192.0.2.1", 1000);
	dns_set(dns, "broken.test", DNS_FAILED, NULL, 0);
	server_start(&s);
	CU_ASSERT(asks(&s, "a.test", "found ok 192.0.2.1"));
	CU_ASSERT(asks(&s, "A.test:8080", "found ok 192.0.2.1"));
	CU_ASSERT(asks(&s, "192.0.2.7:80", "found ok 192.0.2.7"));
	CU_ASSERT(asks(&s, "[2001:db8::1]:80", "found ok 2001:db8::1"));
	CU_ASSERT(asks(&s, "unknown.test", "none none "));
	CU_ASSERT(asks(&s, "broken.test", "failed failed "));
	CU_ASSERT(asks(&s, "1.2.3", "failed bad_name "));
	CU_ASSERT_EQUAL(dns_asked(dns, "a.test"), 1);
	server_stop(&s);
}

/* Without links, such events fail. */
static void test_bare(void)
{
	struct server s = dns_server(false);

	server_start(&s);
	CU_ASSERT(asks(&s, "192.0.2.7", "found ok 192.0.2.7"));
	CU_ASSERT(answered(send_host(&s, "unknown.test"), 500, NULL));
	CU_ASSERT(answered(send_host(&s, "1.2.3"), 500, NULL));
	server_stop(&s);
}

/* The name may be in another field. */
static void test_field(void)
{
	struct server s = dns_server(true);

	fixture_set(s.app, "with.name", "header.x-name");
	server_start(&s);
	int fd = client_open(s.port);
	CU_ASSERT(client_say(fd, "GET / HTTP/1.1\r\nHost: t\r\nX-Name: 192.0.2.8\r\n\r\n"));
	CU_ASSERT(answered(fd, 200, "found ok 192.0.2.8"));
	CU_ASSERT(asks(&s, "192.0.2.7", "failed bad_name "));
	server_stop(&s);
}

/* An event waits no longer than `timeout`, with a link or without; the answer still arrives for others. */
static void check_timeout(bool with_outlets)
{
	struct server s = dns_server(with_outlets);
	int fd;

	dns_set(dns, "held.test", DNS_HELD, "192.0.2.3", 1000);
	fixture_set(s.app, "with.timeout", "50ms");
	server_start(&s);
	fd = send_host(&s, "held.test");
	CU_ASSERT(with_outlets ? answered(fd, 200, "failed failed ") : answered(fd, 503, NULL));
	dns_let_go(dns);
	dns_set(dns, "held.test", DNS_GOOD, "192.0.2.3", 1000);
	do
		fd = send_host(&s, "held.test");
	while (!answered(fd, 200, "found ok 192.0.2.3"));
	server_stop(&s);
	dns_set(dns, "held.test", DNS_NONE, NULL, 0);
}

static void test_timeout(void)
{
	check_timeout(true);
	check_timeout(false);
}

/* Requests for one name share the question; each gets the answer. */
static void test_shared(void)
{
	struct server s = dns_server(true);
	int fd[10];

	dns_set(dns, "slow.test", DNS_HELD, "192.0.2.4", 1000);
	server_start(&s);
	for (int i = 0; i < 10; i++)
		fd[i] = send_host(&s, "slow.test");
	FIXTURE_AWAIT(dns_asked(dns, "slow.test") > 0 && server_offered_to(&s, "app") == 10);
	while (server_offered_to(&s, "found") < 10)
		dns_let_go(dns);
	for (int i = 0; i < 10; i++)
		CU_ASSERT(answered(fd[i], 200, "found ok 192.0.2.4"));
	CU_ASSERT_EQUAL(dns_asked(dns, "slow.test"), 1);
	server_stop(&s);
}

/* A name is being asked for when the server stops. */
static void test_stop(void)
{
	struct server s = dns_server(true);
	struct weir_drain_report report = {0};

	dns_set(dns, "silent.test", DNS_SILENT, NULL, 0);
	fixture_set(s.app, "with.timeout", "0");
	server_start(&s);
	int fd = send_host(&s, "silent.test");
	FIXTURE_AWAIT(dns_asked(dns, "silent.test") > 0);
	weir_graph_drain(s.graph, 50000000, &report);
	CU_ASSERT_EQUAL(report.law_error, 0);
	weir_graph_free(s.graph);
	close(fd);
}

/* The configuration is checked. */
static void test_refused(void)
{
	static const char *const bad[][3] = {
	    {"with.servers", "ns.example.org", "is not the address of a name server"},
	    {"with.ttl_min", "2h", "longer than 'ttl_max'"}};

	for (int i = 0; i < 2; i++) {
		struct server s = dns_server(true);
		struct weir_errs errs = {0};
		struct weir_graph *g = NULL;
		if (i == 0) {
			weir_spec_free(s.spec);
			s = server_new("dns.resolve");
			fixture_stage(s.spec, "found", "t.say", NULL);
			s.app = &s.spec->stages[1];
			weir_spec_link(s.app, "found", "found", false);
		}
		fixture_set(s.app, bad[i][0], bad[i][1]);
		CU_ASSERT_NOT_EQUAL(weir_graph_build(s.spec, &g, &errs), 0);
		CU_ASSERT_PTR_NOT_NULL(strstr(errs.err[0].text, bad[i][2]));
	}
}

static void test_begin(void)
{
	fixture_register(&say_ops);
	dns = dns_begin();
}

static void test_end(void)
{
	dns_end(dns);
}

CUNIT_MAIN("dns", {"begin", test_begin}, {"outlets", test_outlets}, {"without links", test_bare},
    {"field", test_field}, {"timeout", test_timeout}, {"shared", test_shared}, {"stop", test_stop},
    {"refused", test_refused}, {"end", test_end})
