/* SPDX-License-Identifier: MIT */
/* http.rewrite: redirects, new paths for the next stages and for an origin, and what clients cannot do with
 * them; the configurations that are refused. */
#include "fixture/http/origin.h"
#include "fixture/http/yaml.h"

static struct server server;

static void start(const char *rules)
{
	char yaml[4096];

	snprintf(yaml, sizeof(yaml),
	    YAML_TOP YAML_WEB
	    "  app: { use: http.rewrite, threads: inline, to: route, with: { rules: [ %s ] } }\n"
	    "  route: { use: router, threads: inline, with: { routes: [ { path: /new/*, to: new "
	    "},\n"
	    "           { path: /secret/*, to: secret } ] }, to: { new: new, secret: secret, else: "
	    "rest } }\n"
	    "  new: { use: respond, with: { body: new } }\n"
	    "  secret: { use: respond, with: { status: 403, body: secret } }\n"
	    "  rest: { use: respond, with: { body: rest } }\n",
	    rules);
	server = yaml_start(yaml);
}

static void request(const char *target, const char *host, struct answer *a)
{
	char text[10000];

	snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, host);
	yaml_ask(&server, text, a);
}

static void goes_to(const char *target, int status, const char *location)
{
	struct answer a = {0};

	request(target, "www.t:81", &a);
	CU_ASSERT_EQUAL(a.status, status);
	const char *is = field_in(a.head, "Location");
	if (!is || strcmp(is, location) != 0)
		fprintf(stderr, "%s leads to %s\n", target, is ? is : "no Location");
	CU_ASSERT_STRING_EQUAL(is ? is : "", location);
	answer_free(&a);
}

static void answers(const char *target, int status, const char *body)
{
	struct answer a = {0};

	request(target, "t", &a);
	CU_ASSERT(answer_is(&a, status, body));
	answer_free(&a);
}

static void test_redirects(void)
{
	start("{ path: /.well-known/* },"
	      "{ path: /old/*, redirect: \"/new/{rest}\", status: 301 },"
	      "{ path: /gone*, redirect: \"/new{rest}\", query: drop },"
	      "{ path: /find, redirect: \"/new?path={path}&{query}\", status: 303 },"
	      "{ path: /up/*, redirect: \"https://{host}:8443{path}\", status: 308 },"
	      "{ path: /far, redirect: \"https://example.org\", status: 307 },"
	      "{ path: /here, redirect: \"{scheme}://{authority}/there\" },"
	      "{ path: /dir/*.html, redirect: \"/new/{rest}\" },"
	      "{ path: /slash/*, redirect: \"{path}/\" },"
	      "{ path: \"*/\", host: www.t, redirect: \"/{rest}\" }");
	answers("/.well-known/", 200, "rest");
	goes_to("/old/a/b?x=1&y", 301, "/new/a/b?x=1&y");
	goes_to("/old/", 301, "/new/");
	goes_to("/gone/a?x=1", 302, "/new/a");
	goes_to("/find?a=%2f", 303, "/new?path=/find&a=%2f");
	goes_to("/find", 303, "/new?path=/find");
	goes_to("/up/a", 308, "https://www.t:8443/up/a");
	goes_to("/far?x", 307, "https://example.org/?x");
	goes_to("/here", 302, "http://www.t:81/there");
	goes_to("/dir/a/b.html", 302, "/new/a/b");
	goes_to("/slash/a?b", 302, "/slash/a/?b");
	answers("/slash/a/?b", 200, "rest"); /* a redirect to itself does not match */
	goes_to("/any/thing/", 302, "/any/thing");
	answers("/", 200, "rest");
	server_stop(&server);
}

/* No text of a client leads to another host, or ends a line. */
static void test_hostile_targets(void)
{
	struct answer a = {0};

	start("{ path: /r/*, redirect: \"/{rest}\" }, { path: /p*, redirect: \"/new{rest}\" },"
	      "{ path: \"/x/*2F\", redirect: \"/new/{rest}41\" },"
	      "{ path: /n/*, redirect: \"/new?next={path}\" }");
	goes_to("/r//evil.example/a", 302, "/evil.example/a");
	goes_to("/r///evil.example", 302, "/evil.example");
	goes_to("/r/%2Fevil.example", 302, "/%2Fevil.example");
	goes_to("/r/%5Cevil.example", 302, "/%5Cevil.example");
	goes_to("/r/http://evil.example", 302, "/http:/evil.example");
	goes_to("/r/a%0d%0aSet-Cookie:%20x", 302, "/a%0D%0ASet-Cookie:%20x");
	goes_to("/n/a&b=c%26d%25", 302, "/new?next=/n/a%26b%3Dc%26d%2525");
	answers("/x/%2F", 200, "rest"); /* the star would end inside an escape */
	request("/p/../../x", "t", &a);
	CU_ASSERT_EQUAL(a.status, 400);
	goes_to("/p../x", 302, "/new../x");
	answer_free(&a);
	server_stop(&server);
}

static void test_rewrites(void)
{
	struct answer a = {0};

	start("{ path: /a/*, rewrite: \"/new/{rest}\" }, { path: /b*, rewrite: \"/{rest}\" },"
	      "{ path: /c*, rewrite: \"/new/{rest}/x\" }");
	answers("/a/x", 200, "new");
	answers("/b/new/x", 200, "new");
	answers("/b/secret/x", 403, "secret"); /* the next stages judge the new path */
	answers("/bsecret/x", 403, "secret");
	answers("/c./x", 400, "400 Bad Request\n"); /* "/new/./x/x" */
	answers("/c../secret", 400, "400 Bad Request\n");
	answers("/other", 200, "rest");
	char *longest = malloc(8300);
	memset(longest, 'a', 8300);
	memcpy(longest, "/a/", 3);
	longest[8191] = '\0';
	request(longest, "t", &a);
	CU_ASSERT_EQUAL(a.status, 414);
	free(longest);
	answer_free(&a);
	server_stop(&server);
}

static void test_schemes_and_hosts(void)
{
	struct answer a = {0};

	server = yaml_start(YAML_TOP
	    "  web: { use: http.server, with: { listen: \"127.0.0.1:0\", threads: 1, trust: "
	    "[127.0.0.1] }, to: { request: app } }\n"
	    "  app: { use: http.rewrite, to: end, with: { rules: [\n"
	    "    { scheme: http, redirect: \"https://{host}{path}\", status: 308 },\n"
	    "    { host: www.t, redirect: \"https://t{path}\", status: 301, method: GET|HEAD } ] } "
	    "}\n"
	    "  end: { use: respond, with: { body: end } }\n");
	goes_to("/a?b", 308, "https://www.t/a?b");
	yaml_ask(&server,
	    "GET /a HTTP/1.1\r\nHost: WWW.t.\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: "
	    "https\r\n\r\n",
	    &a);
	CU_ASSERT_EQUAL(a.status, 301);
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Location"), "https://t/a");
	yaml_ask(&server,
	    "HEAD /a HTTP/1.1\r\nHost: t\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: "
	    "https\r\n\r\n",
	    &a);
	CU_ASSERT_EQUAL(a.status, 200);
	/* without a host there is no URL; passing the request on would evade the rule */
	yaml_ask(&server, "GET /a HTTP/1.0\r\n\r\n", &a);
	CU_ASSERT_EQUAL(a.status, 400);
	/* the server itself is the target, not a path */
	yaml_ask(&server, "OPTIONS * HTTP/1.1\r\nHost: t\r\n\r\n", &a);
	CU_ASSERT(answer_is(&a, 200, "end"));
	answer_free(&a);
	server_stop(&server);
}

/* An origin gets the new path. */
static void test_before_an_origin(void)
{
	struct origin o = origin_new();
	char yaml[1024], head[4096];

	snprintf(yaml, sizeof(yaml),
	    YAML_TOP YAML_WEB
	    "  app: { use: http.rewrite, threads: inline, to: strip, with: { rules: [\n"
	    "    { path: /x/*, rewrite: \"/api/{rest}\", query: drop } ] } }\n"
	    "  strip: { use: http.rewrite, threads: inline, to: far, with: { rules: [\n"
	    "    { path: /api/*, rewrite: \"/{rest}\" } ] } }\n"
	    "  far: { use: http.client, with: { origins: [\"http://%s\"] } }\n",
	    o.text);
	server = yaml_start(yaml);
	int c = client_open(server.port), u = origin_ask(&o, c, GET("/x/a%2fb?secret"));
	client_say(u, ANSWER("Content-Length: 2\r\n", "ok"));
	CU_ASSERT(client_gets(c, 200, "ok"));
	client_say(c, GET("/api//%61?"));
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	CU_ASSERT_EQUAL(strncmp(head, "GET /a HTTP/1.1\r\n", 17), 0);
	client_say(u, ANSWER("Content-Length: 2\r\n", "ok"));
	CU_ASSERT(client_gets(c, 200, "ok"));
	client_say(c, GET("/x/a%2fb?secret"));
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	CU_ASSERT_EQUAL(strncmp(head, "GET /a%2Fb HTTP/1.1\r\n", 21), 0);
	client_say(u, ANSWER("Content-Length: 2\r\n", "ok"));
	CU_ASSERT(client_gets(c, 200, "ok"));
	close(c);
	close(u);
	server_stop(&server);
	origin_free(&o);
}

static void refused(const char *rule, const char *words)
{
	char stages[512];

	snprintf(stages, sizeof(stages),
	    "  app: { use: http.rewrite, to: e, with: { rules: [ { %s } ] } }\n  e: { use: respond "
	    "}\n",
	    rule);
	yaml_refused(stages, words);
}

static void test_refused(void)
{
	refused("redirect: \"//evil\"", "rule 1: '//' would lead to another host");
	refused("redirect: \"{rest}\"", "must begin with '/' or {path}");
	refused("redirect: \"a\"", "must begin with '/' or {path}");
	refused("redirect: \"https://{rest}/\"", "the host of this URL is not valid");
	refused("redirect: \"https://{host}.evil/\"", "the host of this URL is not valid");
	refused("redirect: \"https://a b/\"", "the host of this URL is not valid");
	refused("redirect: \"ftp://a/\"", "the host of this URL is not valid");
	refused("redirect: \"https:///a\"", "the host of this URL is not valid");
	refused("redirect: \"/a b\"", "the path of this URL is not valid");
	refused("redirect: \"/a%2\"", "the path of this URL is not valid");
	refused("redirect: \"/a%{rest}\"", "the path of this URL is not valid");
	refused("redirect: \"/a\\r\\nb: c\"", "the path of this URL is not valid");
	refused("redirect: \"/{host}\"", "the path of this URL is not valid");
	refused("redirect: \"/a/../b\"", "the path of this URL is not in normal form");
	refused("redirect: \"/a?b c\"", "the query of this URL is not valid");
	refused("redirect: \"/a#b\"", "a fragment is not possible");
	refused("redirect: \"/{user}\"", "there are {path}, {rest}, {query}");
	refused("rewrite: \"https://a/\"", "a rewrite stays on its host");
	refused("redirect: /a, rewrite: /b", "exclude each other");
	refused("redirect: /a, status: 200", "status");
	refused("path: /a/*/*, redirect: /a", "rule 1: no request can match this 'path'");
	refused("path: /a//b, redirect: /a", "rule 1: no request can match this 'path'");
	refused("scheme: ftp, redirect: /a", "rule 1: no request has this 'scheme'");
	refused("host: \"a:80\", redirect: /a", "rule 1: no request can match this 'host'");
}

CUNIT_MAIN("http rewrite", {"redirects", test_redirects}, {"hostile targets", test_hostile_targets},
    {"rewrites", test_rewrites}, {"schemes and hosts", test_schemes_and_hosts},
    {"before an origin", test_before_an_origin}, {"refused configurations", test_refused})
