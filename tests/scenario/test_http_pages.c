/* SPDX-License-Identifier: MIT */
/* Error pages of http.server: for refusals before the graph, answers of stages, failures and, if it is asked
 * for, the errors of origins, whole and in parts; reloads; the files that are refused. */
#include <stdlib.h>
#include <sys/stat.h>

#include "config.h"
#include "fixture/http/origin.h"
#include "fixture/http/yaml.h"

static struct server server;
static char folder[] = "/tmp/weir_pages_XXXXXX";

static const char *file_at(const char *name)
{
	static char path[100];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void write_page(const char *name, const char *text)
{
	FILE *f = fopen(file_at(name), "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(text, f);
	fclose(f);
}

static void make_folder(void)
{
	strcpy(folder + sizeof(folder) - 7, "XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	write_page("busy.html", "<style>p { margin: 0 }</style>{status} {reason} {trace}");
	write_page("oops.json", "{\"error\": {status}, \"reason\": \"{reason}\"}");
	write_page("plain.txt", "no page here");
}

static void remove_folder(void)
{
	static const char *const names[] = {"busy.html", "oops.json", "plain.txt", "long.html"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(file_at(names[i]));
	rmdir(folder);
}

static void yaml_of(char *yaml, size_t size, const char *more, const char *stages)
{
	snprintf(yaml, size,
	    YAML_TOP "  web: { use: http.server, to: { request: app }, with: { listen: "
		     "\"127.0.0.1:0\", threads: 1, "
		     "linger: 0ms, max_body: 10, stream: 1, error_pages: { 5xx: %s/busy.html, 4xx: "
		     "%s/oops.json, 404: "
		     "%s/plain.txt%s } } }\n%s",
	    folder, folder, folder, more, stages);
}

static void start(const char *more, const char *stages)
{
	char yaml[4096];

	make_folder();
	yaml_of(yaml, sizeof(yaml), more, stages);
	server = yaml_start(yaml);
}

static void stop(void)
{
	server_stop(&server);
	remove_folder();
}

static void expect(const char *request, int status, const char *type, const char *body)
{
	struct answer a = {0};

	yaml_ask(&server, request, &a);
	CU_ASSERT(answer_is(&a, status, body));
	const char *is = field_in(a.head, "Content-Type");
	CU_ASSERT_STRING_EQUAL(is ? is : "", type);
	CU_ASSERT_EQUAL(a.length, (long)strlen(body));
	answer_free(&a);
}

#define JSON  "application/json"
#define HTML  "text/html; charset=utf-8"
#define TEXT  "text/plain; charset=utf-8"
#define STYLE "<style>p { margin: 0 }</style>"

static void refusals_and_stages(void)
{
	struct answer a = {0};

	start("",
	    "  app: { use: router, threads: inline, with: { routes: [ { path: /own, to: own }, { "
	    "path: /rate, to: "
	    "rate }, { path: /drop, to: drop } ] }, to: { own: own, rate: rate, drop: drop } }\n"
	    "  own: { use: respond, with: { status: 404, body: own } }\n"
	    "  drop: { use: respond, with: { status: 503, body: own, headers: [ \"X-A: b\" ] } }\n"
	    "  rate: { use: http.limit, threads: inline, with: { rate: 0.001, burst: 1 }, to: own "
	    "}\n");
	expect(GET("/none"), 404, TEXT, "no page here");
	expect(
	    "GET / HTTP/1.1\r\n\r\n", 400, JSON, "{\"error\": 400, \"reason\": \"Bad Request\"}");
	expect("GET / HTTP/2.0\r\n\r\n", 505, HTML, STYLE "505 HTTP Version Not Supported ");
	expect("BREW / HTTP/1.1\r\nHost: t\r\n\r\n", 501, HTML, STYLE "501 Not Implemented ");
	expect(GET("/own"), 404, TEXT, "own"); /* a stage's own body stays */
	yaml_ask(&server, "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 11\r\n\r\n", &a);
	CU_ASSERT(answer_is(&a, 413, "{\"error\": 413, \"reason\": \"Content Too Large\"}"));
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "X-Weir-Limit"), "max_body");
	expect(GET("/rate"), 404, TEXT, "own");
	yaml_ask(&server, GET("/rate"), &a);
	CU_ASSERT(answer_is(&a, 429, "{\"error\": 429, \"reason\": \"Too Many Requests\"}"));
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "X-Weir-Limit"), "rate");
	CU_ASSERT_PTR_NOT_NULL(field_in(a.head, "Retry-After"));
	CU_ASSERT_PTR_NOT_NULL(field_in(a.head, "X-Weir-Shed"));
	yaml_ask(&server, "HEAD /none HTTP/1.1\r\nHost: t\r\n\r\n", &a);
	CU_ASSERT_EQUAL(a.status, 404);
	CU_ASSERT_EQUAL(a.length, 12);
	answer_free(&a);
	stop();
}

#define FAR                                                                                        \
	"  app: { use: http.client, threads: inline, with: { origins: [\"http://%s\"], retries: "  \
	"0 } }\n"

static void start_before(const struct origin *o, const char *more)
{
	char stages[500];

	snprintf(stages, sizeof(stages), FAR, o->text);
	start(more, stages);
}

static void no_page_for_origins(void)
{
	struct origin o = origin_new();
	struct answer a = {0};

	start_before(&o, "");
	int c = client_open(server.port), u = origin_ask(&o, c, GET("/"));
	client_say(u, "HTTP/1.1 500 Oops\r\nContent-Length: 3\r\n\r\nown");
	CU_ASSERT(client_gets(c, 500, "own"));
	close(u);
	close(c);
	origin_shut(&o);
	yaml_ask(&server,
	    "GET / HTTP/1.1\r\nHost: t\r\n"
	    "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n",
	    &a);
	CU_ASSERT(answer_is(&a, 502, STYLE "502 Bad Gateway 0af7651916cd43dd8448eb211c80319c"));
	CU_ASSERT_STRING_EQUAL(
	    field_in(a.head, "X-Weir-Trace"), "0af7651916cd43dd8448eb211c80319c");
	answer_free(&a);
	stop();
	origin_free(&o);
}

static void intercepted(void)
{
	struct origin o = origin_new();
	struct answer a = {0};

	start_before(&o, ", intercept: true");
	int c = client_open(server.port), u = origin_ask(&o, c, GET("/"));
	client_say(u,
	    "HTTP/1.1 404 No\r\nContent-Length: 3\r\nContent-Encoding: x\r\nETag: \"1\"\r\nX-Kept: "
	    "1\r\nContent-Type: a/b\r\n\r\nown");
	CU_ASSERT(answer_read(c, &a) && answer_is(&a, 404, "no page here"));
	CU_ASSERT_PTR_NULL(field_in(a.head, "Content-Encoding"));
	CU_ASSERT_PTR_NULL(field_in(a.head, "ETag"));
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "X-Kept"), "1");
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Content-Type"), TEXT);
	/* in parts, of known and of unknown length */
	client_say(c, GET("/"));
	char head[4096];
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	client_say(u, "HTTP/1.1 500 No\r\nContent-Length: 9\r\nContent-Type: a/b\r\n\r\nown");
	client_say(u, " bytes");
	CU_ASSERT(answer_read(c, &a) && answer_is(&a, 500, STYLE "500 Internal Server Error "));
	client_say(c, GET("/"));
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	client_say(u, "HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nown\r\n");
	client_say(u, "0\r\n\r\n");
	CU_ASSERT(answer_read(c, &a) &&
		  answer_is(&a, 403, "{\"error\": 403, \"reason\": \"Forbidden\"}"));
	client_say(c, GET("/"));
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	client_say(u, ANSWER("Content-Length: 2\r\n", "ok"));
	CU_ASSERT(client_gets(c, 200, "ok"));
	close(u);
	close(c);
	answer_free(&a);
	stop();
	origin_free(&o);
}

static int renewals;

static void count_renewal(void *arg, const char *stage, const char *text)
{
	(void)arg;
	CU_ASSERT_STRING_EQUAL(stage, "web");
	CU_ASSERT_STRING_EQUAL(text, "the error page of 404 has other bytes");
	renewals++;
}

static void reloaded(void)
{
	static const char stages[] =
	    "  app: { use: router, with: { routes: [ { path: /a, to: a } ] }, to: "
	    "{ a: a } }\n  a: { use: respond }\n";
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	struct weir_spec *spec = NULL;
	struct weir_graph *wanted = NULL;
	char yaml[4096];

	start("", stages);
	expect(GET("/b"), 404, TEXT, "no page here");
	write_page("plain.txt", "another page");
	expect(GET("/b"), 404, TEXT, "no page here");
	yaml_of(yaml, sizeof(yaml), "", stages);
	CU_ASSERT_EQUAL_FATAL(config_load_text(yaml, strlen(yaml), "t.yaml", &spec, errs), 0);
	CU_ASSERT_EQUAL_FATAL(weir_graph_build(spec, &wanted, errs), 0);
	weir_graph_renewed(server.graph, wanted, count_renewal, NULL);
	CU_ASSERT_EQUAL(renewals, 1);
	CU_ASSERT_EQUAL(weir_graph_configure(server.graph, wanted, NULL), 0);
	weir_graph_free(wanted);
	expect(GET("/b"), 404, TEXT, "another page");
	free(errs);
	stop();
}

static void refused(void)
{
	char text[200], *longer = malloc(70000);

	make_folder();
	memset(longer, 'x', 69999);
	longer[69999] = '\0';
	write_page("long.html", longer);
	free(longer);
	static const char *const rows[][3] = {
	    {"none.html", "404", "cannot be read: No such file or directory"},
	    {"", "5xx", "is not a file"}, {"long.html", "503", "is longer than 64KiB"}};
	for (int i = 0; i < 3; i++) {
		struct weir_errs *errs = calloc(1, sizeof(*errs));
		struct weir_spec *spec = NULL;
		struct weir_graph *g = NULL;
		char yaml[1000];
		snprintf(yaml, sizeof(yaml),
		    YAML_TOP
		    "  web: { use: http.server, to: { request: a }, with: { listen: "
		    "\"127.0.0.1:0\", error_pages: { %s: %s/%s } } }\n  a: { use: respond }\n",
		    rows[i][1], folder, rows[i][0]);
		CU_ASSERT_EQUAL_FATAL(config_load_text(yaml, strlen(yaml), "t", &spec, errs), 0);
		CU_ASSERT_NOT_EQUAL(weir_graph_build(spec, &g, errs), 0);
		weir_spec_free(spec);
		snprintf(text, sizeof(text), "'%s/%s' %s", folder, rows[i][0], rows[i][2]);
		CU_ASSERT_PTR_NOT_NULL(strstr(errs->err[0].text, text));
		free(errs);
	}
	remove_folder();
}

CUNIT_MAIN("http error pages", {"refusals and stages", refusals_and_stages},
    {"no page for origins", no_page_for_origins}, {"intercepted", intercepted},
    {"reloaded", reloaded}, {"refused files", refused})
