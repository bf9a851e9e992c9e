/* SPDX-License-Identifier: MIT */
/* http.limit: a rate per address, per network and per field; the answer and the books; live knobs. */
#include <weir/operate.h>

#include "fixture/http/yaml.h"

static struct server server;

static void start(const char *knobs)
{
	char yaml[2048];

	snprintf(yaml, sizeof(yaml),
	    YAML_TOP "  web: { use: http.server, with: { listen: \"127.0.0.1:0\", threads: 1, "
		     "linger: 0ms, trust: "
		     "[127.0.0.1] }, to: { request: app } }\n"
		     "  app: { use: http.limit, threads: inline, to: end, with: { %s } }\n"
		     "  end: { use: respond, with: { body: end } }\n",
	    knobs);
	server = yaml_start(yaml);
}

/* The status of the answer to a request from `address` with the key `key`. */
static int status_of(const char *address, const char *key)
{
	struct answer a = {0};
	char text[512];

	snprintf(text, sizeof(text),
	    "GET / HTTP/1.1\r\nHost: t\r\nX-Forwarded-For: %s\r\n%s%s%s\r\n", address,
	    key[0] ? "X-Key: " : "", key, key[0] ? "\r\n" : "");
	yaml_ask(&server, text, &a);
	int status = a.status;
	answer_free(&a);
	return status;
}

static void by_address(void)
{
	struct answer a = {0};

	start("rate: 0.001, burst: 2");
	CU_ASSERT_EQUAL(status_of("1.2.3.4", ""), 200);
	CU_ASSERT_EQUAL(status_of("1.2.3.4", ""), 200);
	CU_ASSERT_EQUAL(status_of("1.2.3.4", ""), 429);
	CU_ASSERT_EQUAL(status_of("1.2.3.5", ""), 200);
	/* a network of IPv6 is one client */
	CU_ASSERT_EQUAL(status_of("2001:db8::1", ""), 200);
	CU_ASSERT_EQUAL(status_of("2001:db8::ffff:2", ""), 200);
	CU_ASSERT_EQUAL(status_of("2001:db8::3", ""), 429);
	CU_ASSERT_EQUAL(status_of("2001:db8:0:1::1", ""), 200);
	yaml_ask(&server,
	    "GET / HTTP/1.1\r\nHost: t\r\nX-Forwarded-For: 1.2.3.4\r\n"
	    "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n",
	    &a);
	CU_ASSERT(answer_is(&a, 429, "429 Too Many Requests\n"));
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "X-Weir-Limit"), "rate");
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "X-Weir-Shed"),
	    "stage=app; reason=rate; class=default; trace=0af7651916cd43dd8448eb211c80319c");
	int s = atoi(field_in(a.head, "Retry-After"));
	CU_ASSERT(s > 900 && s <= 1000); /* exact: one request per 1,000 s */
	answer_free(&a);
	server_stop(&server);
}

static void by_fields(void)
{
	start("rate: 0.001, burst: 1, by: [header.X-Key, method], status: 503");
	CU_ASSERT_EQUAL(status_of("1.1.1.1", "a"), 200);
	CU_ASSERT_EQUAL(status_of("1.1.1.2", "a"), 503);
	CU_ASSERT_EQUAL(status_of("1.1.1.2", "b"), 200);
	CU_ASSERT_EQUAL(status_of("1.1.1.2", ""), 200);
	CU_ASSERT_EQUAL(status_of("1.1.1.3", ""), 503);
	server_stop(&server);
}

static void without_the_field(void)
{
	start("rate: 0.001, burst: 1, by: header.x-key");
	CU_ASSERT_EQUAL(status_of("1.1.1.1", ""), 200);
	CU_ASSERT_EQUAL(status_of("1.1.1.2", ""), 429);
	server_stop(&server);
	start("rate: 0.001, burst: 1, by: header.x-key, missing: pass");
	for (int i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(status_of("1.1.1.1", ""), 200);
	server_stop(&server);
}

static void set(const char *knob, const char *value)
{
	char why[200] = "";

	CU_ASSERT_EQUAL(weir_graph_set(server.graph, "app", knob, value, why, sizeof(why)), 0);
	if (why[0])
		fprintf(stderr, "%s\n", why);
}

static void live(void)
{
	start("rate: 0, burst: 1");
	for (int i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(status_of("1.1.1.1", ""), 200);
	set("with.rate", "0.001");
	CU_ASSERT_EQUAL(status_of("1.1.1.1", ""), 200);
	CU_ASSERT_EQUAL(status_of("1.1.1.1", ""), 429);
	set("with.burst", "3");
	CU_ASSERT_EQUAL(status_of("1.1.1.1", ""), 200);
	CU_ASSERT_EQUAL(status_of("1.1.1.1", ""), 200);
	CU_ASSERT_EQUAL(status_of("1.1.1.1", ""), 429);
	server_stop(&server);
}

static void refused(void)
{
	yaml_refused(
	    "  app: { use: http.limit, to: e, with: { by: address } }\n  e: { use: respond }\n",
	    "needs the key 'rate'");
	yaml_refused("  app: { use: http.limit, to: e, with: { rate: 1, by: header. } }\n"
		     "  e: { use: respond }\n",
	    "requests have no field 'header.'");
	yaml_refused("  app: { use: http.limit, to: e, with: { rate: 1, by: [a] } }\n"
		     "  e: { use: respond }\n",
	    "requests have no field 'a'");
	yaml_refused("  app: { use: http.limit, to: e, with: { rate: 1, by: [] } }\n"
		     "  e: { use: respond }\n",
	    "'by' has 0 fields");
	yaml_refused("  app: { use: http.limit, to: e, with: { rate: 1, burst: 0 } }\n"
		     "  e: { use: respond }\n",
	    "burst");
}

CUNIT_MAIN("http limit", {"by address", by_address}, {"by fields", by_fields},
    {"without the field", without_the_field}, {"live knobs", live},
    {"refused configurations", refused})
