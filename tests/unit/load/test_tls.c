/* SPDX-License-Identifier: MIT */
/* Runs over TLS with a certificate that the test creates. */
#include "load/tls.h"

#include <netdb.h>

#include "fixture/load/plan.h"
#include "fixture/load/server.h"

static struct load_server server;
static char pem[] = "load_tls_XXXXXX";

/* All offered requests must fail as TLS errors, or none. */
static void check(const char *names, bool verify, bool fails)
{
	load_server_start(&server, load_tls_server(names, NULL));
	plan_for(server.port, "/", 200, 300 * LOAD_MS);
	plan.tls = true;
	plan.verify = verify;
	plan_run(NULL);
	CU_ASSERT_EQUAL(
	    plan_counts()->outcome[fails ? LOAD_ERROR : LOAD_OK], plan_counts()->offered);
	CU_ASSERT_EQUAL(plan_counts()->error[LOAD_ETLS], fails ? plan_counts()->offered : 0);
	plan_end();
	load_server_stop(&server);
}

static void test_insecure(void)
{
	check("DNS:elsewhere.example", false, false);
}

static void test_untrusted(void)
{
	check("IP:127.0.0.1", true, true);
}

/* Trust the server's certificate, through the variable that OpenSSL reads. */
static void check_trusted(const char *host, const char *names, bool fails)
{
	load_server_start(&server, load_tls_server(names, pem));
	setenv("SSL_CERT_FILE", pem, 1);
	plan_for(server.port, "/", 200, 300 * LOAD_MS);
	snprintf(plan.host, sizeof(plan.host), "%s", host);
	plan.tls = plan.verify = true;
	plan_run(NULL);
	CU_ASSERT_EQUAL(
	    plan_counts()->outcome[fails ? LOAD_ERROR : LOAD_OK], plan_counts()->offered);
	plan_end();
	load_server_stop(&server);
}

/* A system without /etc/hosts may not know the name. */
static bool knows_localhost(void)
{
	struct addrinfo *known = NULL;

	if (getaddrinfo("localhost", NULL, NULL, &known) != 0) {
		puts("this system does not know 'localhost': names in certificates are left out");
		return false;
	}
	freeaddrinfo(known);
	return true;
}

static void test_trusted(void)
{
	int fd = mkstemp(pem);

	CU_ASSERT_TRUE_FATAL(fd >= 0);
	close(fd);
	check_trusted("127.0.0.1", "IP:127.0.0.1", false);
	check_trusted("127.0.0.1", "IP:127.0.0.2", true);
	if (knows_localhost()) {
		check_trusted("localhost", "DNS:localhost", false);
		check_trusted("localhost", "DNS:elsewhere.example", true);
	}
	unlink(pem);
	unsetenv("SSL_CERT_FILE");
}

/* The misbehaviours that look different over TLS, and large bodies in both directions. */
static void test_behaviours(void)
{
	static const struct {
		const char *method, *target;
		size_t n_body;
		enum load_outcome outcome;
	} cases[] = {
	    {"GET", "/big/300000", 0, LOAD_OK},
	    {"POST", "/", 300000, LOAD_OK},
	    {"GET", "/close", 0, LOAD_OK},
	    {"GET", "/once", 0, LOAD_OK},
	    {"GET", "/cut", 0, LOAD_ERROR},
	    {"GET", "/early", 0, LOAD_ERROR},
	    {"GET", "/eof", 0, LOAD_ERROR}, /* a body without TLS's close_notify may be truncated */
	    {"GET", "/reset", 0, LOAD_ERROR},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		load_server_start(&server, load_tls_server("IP:127.0.0.1", NULL));
		plan_for(server.port, NULL, 100, 200 * LOAD_MS);
		plan_class(cases[i].method, cases[i].target, cases[i].n_body);
		plan.tls = true;
		plan_run(NULL);
		CU_ASSERT_EQUAL(plan_counts()->outcome[cases[i].outcome], plan_counts()->offered);
		if (plan_counts()->outcome[cases[i].outcome] != plan_counts()->offered)
			printf("%s\n", cases[i].target);
		plan_end();
		load_server_stop(&server);
	}
}

static void test_modes(void)
{
	load_server_start(&server, load_tls_server("IP:127.0.0.1", NULL));
	for (int mode = 0; mode < 4; mode++) {
		plan_for(server.port, NULL, 200, 300 * LOAD_MS);
		plan_class("POST", "/", mode == 3 ? 60000 : 100);
		plan.tls = true;
		plan.fresh = mode == 0;
		plan.pipeline = mode == 1 ? 8 : 1;
		plan.closed = mode == 2;
		plan.send_deadline = true;
		plan.slow_write_share = plan.slow_read_share = mode == 3;
		plan.slow_write_bytes_per_s = plan.slow_read_bytes_per_s = 1e6;
		plan_run(NULL);
		CU_ASSERT_EQUAL(plan_counts()->outcome[LOAD_OK], plan_counts()->offered);
		plan_end();
	}
	load_server_stop(&server);
}

/* The server does not speak TLS. */
static void test_plain_server(void)
{
	load_server_start(&server, NULL);
	plan_for(server.port, "/", 100, 200 * LOAD_MS);
	plan.tls = true;
	plan.timeout_ns = 200 * LOAD_MS; /* the server waits for the end of a request */
	plan_run(NULL);
	CU_ASSERT_EQUAL(plan_counts()->outcome[LOAD_OK], 0);
	plan_end();
	load_server_stop(&server);
}

CUNIT_MAIN("tls", {"any certificate", test_insecure}, {"an untrusted one", test_untrusted},
    {"trusted ones, by name and address", test_trusted}, {"behaviours", test_behaviours},
    {"fresh, pipelined, closed, slow", test_modes}, {"no TLS there", test_plain_server})
