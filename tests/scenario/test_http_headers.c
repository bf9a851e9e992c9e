/* SPDX-License-Identifier: MIT */
/* http.headers: fields of requests and answers, whole, in parts and of errors; presets; CORS with its
 * preflights; the configurations that are refused. */
#include "fixture/http/origin.h"
#include "fixture/http/yaml.h"

static struct server server;

static void start(const char *knobs, const char *behind)
{
	char yaml[4096];

	snprintf(yaml, sizeof(yaml),
	    YAML_TOP "  web: { use: http.server, with: { listen: \"127.0.0.1:0\", threads: 1, "
		     "linger: 0ms, stream: 1, trust: "
		     "[127.0.0.1] }, to: { request: app } }\n"
		     "  app: { use: http.headers, threads: inline, to: end, with: { %s } }\n%s",
	    knobs, behind);
	server = yaml_start(yaml);
}

#define HELLO                                                                                      \
	"  end: { use: respond, with: { body: hello, headers: [ \"X-Old: 1\", \"Vary: Accept\", "  \
	"\"Access-Control-Allow-Origin: *\" ] } }\n"

static int count_of(const char *head, const char *line)
{
	int n = 0;

	for (const char *p = head; (p = strstr(p, line)); p++)
		n++;
	return n;
}

static void answers(void)
{
	struct answer a = {0};

	start("answer: { remove: [x-old], set: [ \"X-New: {method} {host}{path}?{query} "
	      "{scheme}\", \"Vary: none\" ], "
	      "add: [ \"X-Twice: 1\", \"X-Twice: {address}\" ] }, nosniff: true, frame: DENY, csp: "
	      "\"default-src 'self'\", hsts: max-age=5",
	    HELLO);
	yaml_ask(&server, GET("/a%0d%0ab?q"), &a);
	CU_ASSERT(answer_is(&a, 200, "hello"));
	CU_ASSERT_PTR_NULL(field_in(a.head, "X-Old"));
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "X-New"), "GET t/a%0D%0Ab?q http");
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Vary"), "none");
	CU_ASSERT_EQUAL(count_of(a.head, "Vary:"), 1);
	CU_ASSERT_EQUAL(count_of(a.head, "X-Twice: "), 2);
	CU_ASSERT_EQUAL(count_of(a.head, "X-Twice: 127.0.0.1\r\n"), 1);
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "X-Content-Type-Options"), "nosniff");
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "X-Frame-Options"), "DENY");
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Content-Security-Policy"), "default-src 'self'");
	CU_ASSERT_PTR_NULL(field_in(a.head, "Strict-Transport-Security"));
	yaml_ask(&server,
	    "GET / HTTP/1.1\r\nHost: t\r\nX-Forwarded-For: 1.1.1.1\r\nX-Forwarded-Proto: "
	    "https\r\n\r\n",
	    &a);
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Strict-Transport-Security"), "max-age=5");
	answer_free(&a);
	server_stop(&server);
}

/* The answers that weir makes have the fields, too. */
static void errors(void)
{
	struct answer a = {0};

	start("nosniff: true", "  end: { use: router, with: { routes: [ { path: /limit, to: limit "
			       "} ] }, to: { limit: limit } }\n"
			       "  limit: { use: http.limit, threads: inline, with: { rate: 0.001, "
			       "burst: 1 }, to: ok }\n"
			       "  ok: { use: respond }\n");
	yaml_ask(&server, GET("/none"), &a);
	CU_ASSERT_EQUAL(a.status, 404);
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "X-Content-Type-Options"), "nosniff");
	yaml_ask(&server, GET("/limit"), &a);
	CU_ASSERT_EQUAL(a.status, 200);
	yaml_ask(&server, GET("/limit"), &a);
	CU_ASSERT_EQUAL(a.status, 429);
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "X-Content-Type-Options"), "nosniff");
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "X-Weir-Limit"), "rate");
	answer_free(&a);
	server_stop(&server);
}

static void to_and_from_an_origin(void)
{
	struct origin o = origin_new();
	struct answer a = {0};
	char far[300], head[4096];

	snprintf(far, sizeof(far),
	    "  end: { use: http.client, threads: inline, with: { origins: [\"http://%s\"] } }\n",
	    o.text);
	start("request: { remove: [x-user], set: [ \"X-Client: {address}\" ], add: [ \"X-More: 2\" "
	      "] }, "
	      "answer: { remove: [x-powered-by], set: [ \"Cache-Control: no-store\" ] }",
	    far);
	int c = client_open(server.port);
	CU_ASSERT(client_say(c, "GET / HTTP/1.1\r\nHost: t\r\nX-User: root\r\nX_User: "
				"root\r\nx_client: evil\r\nX-More: "
				"1\r\nX-Kept: 1\r\n\r\n"));
	int u = origin_accept(&o);
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	CU_ASSERT_PTR_NULL(strstr(head, "root"));
	CU_ASSERT_PTR_NULL(strstr(head, "evil"));
	CU_ASSERT_STRING_EQUAL(field_in(head, "X-Client"), "127.0.0.1");
	CU_ASSERT_EQUAL(count_of(head, "X-More: "), 2);
	CU_ASSERT_STRING_EQUAL(field_in(head, "X-Kept"), "1");
	client_say(u,
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Powered-By: x\r\nCache-Control: "
	    "public\r\n\r\n3\r\nabc\r\n");
	CU_ASSERT_FATAL(head_read(c, head, sizeof(head)));
	CU_ASSERT_PTR_NULL(field_in(head, "X-Powered-By"));
	CU_ASSERT_STRING_EQUAL(field_in(head, "Cache-Control"), "no-store");
	CU_ASSERT_EQUAL(count_of(head, "Cache-Control"), 1);
	client_say(u, "0\r\n\r\n");
	char rest[14] = "";
	CU_ASSERT(client_take(c, rest, 13));
	CU_ASSERT_STRING_EQUAL(rest, "3\r\nabc\r\n0\r\n\r\n");
	close(c);
	close(u);
	answer_free(&a);
	server_stop(&server);
	origin_free(&o);
}

static void ask(const char *method, const char *origin, const char *more, struct answer *a)
{
	char text[1000];

	snprintf(text, sizeof(text), "%s / HTTP/1.1\r\nHost: t\r\n%s%s%s%s\r\n", method,
	    origin ? "Origin: " : "", origin ? origin : "", origin ? "\r\n" : "", more);
	yaml_ask(&server, text, a);
}

static void allows(const struct answer *a, const char *origin)
{
	const char *is = field_in(a->head, "Access-Control-Allow-Origin");

	CU_ASSERT_STRING_EQUAL(is ? is : "", origin);
	CU_ASSERT_EQUAL(count_of(a->head, "Access-Control-Allow-Origin"), origin[0] != '\0');
}

static void cors_with_a_list(void)
{
	struct answer a = {0};

	start("cors: { origins: [ \"https://a.t\", \"https://*.b.t\", \"http://c.t:81\" ], "
	      "methods: [ PUT, DELETE ], "
	      "headers: [ X-Key ], expose: [ X-Old ], credentials: true, max_age: 1m }",
	    HELLO);
	ask("GET", "https://a.t", "", &a);
	CU_ASSERT(answer_is(&a, 200, "hello"));
	allows(&a, "https://a.t");
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Access-Control-Allow-Credentials"), "true");
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Access-Control-Expose-Headers"), "X-Old");
	CU_ASSERT_EQUAL(count_of(a.head, "Vary: Origin\r\n"), 1);
	CU_ASSERT_EQUAL(count_of(a.head, "Vary: Accept\r\n"), 1);
	static const char *const good[] = {"https://x.b.t", "https://x.y.b.t", "http://c.t:81"};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		ask("GET", good[i], "", &a);
		allows(&a, good[i]);
	}
	static const char *const bad[] = {"https://b.t", "https://.b.t", "https://xb.t",
	    "http://a.t", "https://a.t.evil", "https://a.t:443", "null", "https://evil/x.b.t",
	    "https://A.t", "", "https://evil:1@x.b.t", "*"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ask("GET", bad[i], "", &a);
		CU_ASSERT_EQUAL(a.status, 200);
		allows(&a, "");
		CU_ASSERT_PTR_NULL(field_in(a.head, "Access-Control-Allow-Credentials"));
		CU_ASSERT_EQUAL(count_of(a.head, "Vary: Origin\r\n"), 1);
	}
	ask("GET", NULL, "", &a);
	allows(&a, "");
	CU_ASSERT_EQUAL(count_of(a.head, "Vary: Origin\r\n"), 1);
	ask("OPTIONS", "https://a.t", "Access-Control-Request-Method: PUT\r\n", &a);
	CU_ASSERT_EQUAL(a.status, 204);
	allows(&a, "https://a.t");
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Access-Control-Allow-Methods"), "PUT, DELETE");
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Access-Control-Allow-Headers"), "X-Key");
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Access-Control-Max-Age"), "60");
	ask("OPTIONS", "https://evil", "Access-Control-Request-Method: PUT\r\n", &a);
	CU_ASSERT_EQUAL(a.status, 403);
	allows(&a, "");
	CU_ASSERT_PTR_NULL(field_in(a.head, "Access-Control-Allow-Methods"));
	ask("OPTIONS", "https://a.t", "", &a); /* no preflight */
	CU_ASSERT(answer_is(&a, 200, "hello"));
	answer_free(&a);
	server_stop(&server);
}

static void cors_for_all(void)
{
	struct answer a = {0};

	start("cors: { origins: \"*\" }", HELLO);
	ask("GET", "https://a.t", "", &a);
	allows(&a, "*");
	CU_ASSERT_EQUAL(count_of(a.head, "Vary: Origin"), 0);
	ask("OPTIONS", "null", "Access-Control-Request-Method: POST\r\n", &a);
	CU_ASSERT_EQUAL(a.status, 204);
	allows(&a, "*");
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Access-Control-Allow-Methods"), "GET, HEAD, POST");
	answer_free(&a);
	server_stop(&server);
}

static void refused_knobs(const char *knobs, const char *words)
{
	char stages[600];

	snprintf(stages, sizeof(stages),
	    "  app: { use: http.headers, to: e, with: { %s } }\n  e: { use: respond }\n", knobs);
	yaml_refused(stages, words);
}

static void refused(void)
{
	static const char *const framing[] = {"Content-Length", "transfer-encoding", "Connection",
	    "Trailer", "Upgrade", "Host", "TE", "Keep-Alive", "Expect"};
	for (size_t i = 0; i < sizeof(framing) / sizeof(framing[0]); i++) {
		char knobs[200];
		snprintf(knobs, sizeof(knobs), "request: { set: [ \"%s: 1\" ] }", framing[i]);
		refused_knobs(knobs, "frames or routes messages");
		snprintf(knobs, sizeof(knobs), "answer: { remove: [ \"%s\" ] }", framing[i]);
		refused_knobs(knobs, "frames or routes messages");
	}
	refused_knobs("answer: { set: [ \"Server: x\" ] }", "'server_name' of http.server");
	refused_knobs("answer: { set: [ \"Date: x\" ] }", "'Date' is written by");
	refused_knobs("answer: { set: [ \"X-A\" ] }", "'X-A' has no value");
	refused_knobs("answer: { set: [ \"X A: b\" ] }", "'X A' is no name of a field");
	refused_knobs("answer: { add: [ \"X-A: b\\r\\nSet-Cookie: c\" ] }",
	    "has a value that no field may have");
	refused_knobs("answer: { add: [ \"X-A: {user}\" ] }", "'X-A' has an unknown placeholder");
	refused_knobs("answer: { remove: [ \"X-A: b\" ] }", "is no name of a field");
	refused_knobs("hsts: always", "'hsts' is no value of Strict-Transport-Security");
	refused_knobs("csp: \"a\\nb\"", "'csp' is no value of Content-Security-Policy");
	refused_knobs("cors: { origins: \"*\", credentials: true }", "the origins must be listed");
	refused_knobs("cors: { origins: [ \"*\", \"https://a\" ] }", "cannot be one of several");
	refused_knobs("cors: { origins: [ \"https://a/\" ] }", "'https://a/' is no origin");
	refused_knobs("cors: { origins: [ \"https://A.t\" ] }", "is no origin");
	refused_knobs("cors: { origins: [ \"null\" ] }", "'null' is no origin");
	refused_knobs("cors: { origins: [ \"https://a\" ], headers: [ \"*\" ], credentials: true }",
	    "browsers take '*' as a name");
	refused_knobs(
	    "cors: { origins: [ \"https://a\" ], headers: [ \"a b\" ] }", "no name of a field");
}

CUNIT_MAIN("http headers", {"answers", answers}, {"errors", errors},
    {"to and from an origin", to_and_from_an_origin}, {"cors with a list", cors_with_a_list},
    {"cors for all", cors_for_all}, {"refused configurations", refused})
