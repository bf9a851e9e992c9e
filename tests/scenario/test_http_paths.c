/* SPDX-License-Identifier: MIT */
/*
 * All spellings of a path get the same route, class, file, cache rule and log line.
 *
 * The site has a guard on /private, a class for /vip, and files behind a cache. Every spelling of a
 * path must get the same as its normal form: first a table of known attacks, then random spellings.
 */
#include "config.h"
#include "fixture/http/site.h"

static struct server server;
static char log_name[300];

/* ---- the site ---- */

/* Answers "denied" to every request. */
static void deny_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct weir_http_request *req = weir_http_request(ev[i]);
		weir_http_respond_copy(req, 403, NULL, (struct weir_slice){"denied", 6});
		weir_http_add_field(req, "X-Class", weir_class_name(st, ev[i]->class_id));
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

static const struct weir_stage_ops deny_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.deny",
    .summary = "denies",
    .accepts = &weir_http_request_type,
    .handle = deny_handle};

/* Adds the class to the answer and sends the request on. */
static void tell_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct weir_http_request *req = weir_http_request(ev[i]);
		weir_http_add_field(req, "X-Class", weir_class_name(st, ev[i]->class_id));
		weir_emit(st, 0, &ev[i]);
	}
}

static const struct weir_outlet tell_outlets[] = {
    {"out", WEIR_ANY_EVENT, false, "all"}, {NULL, NULL, false, NULL}};

static const struct weir_stage_ops tell_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.tell",
    .summary = "tells the class",
    .accepts = &weir_http_request_type,
    .outlets = tell_outlets,
    .handle = tell_handle};

static const char *const files[] = {"root/index.html", "root/private/x", "root/vip/a", "root/slow",
    "root/pub/x", "root/assets/app.css", "root/a b", "root/100%"};

static void start(bool cached)
{
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	static bool registered;
	char yaml[2048], text[2048];

	if (!registered) {
		fixture_register(&deny_ops);
		fixture_register(&tell_ops);
	}
	registered = true;
	site_make();
	site_dir("root/private");
	site_dir("root/vip");
	site_dir("root/pub");
	site_dir("root/assets");
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		site_text(files[i], files[i] + 5);
	snprintf(log_name, sizeof(log_name), "%s", site_path("log"));
	weir_log_set_level(WEIR_LOG_ERROR);
	snprintf(yaml, sizeof(yaml),
	    "weir: 1\nadmin: { listen: \"\" }\ndefaults: { admission: { policy: none } "
	    "}\nclasses:\n"
	    "  vip: { match: { path: /vip/* } }\n  query: { match: { target: \"/slow?now\" } }\n"
	    "  named: { match: { host: named.example } }\n"
	    "  rest: {}\nstages:\n"
	    "  web: { use: http.server, with: { listen: \"127.0.0.1:0\", threads: 1 }, to: log }\n"
	    "  log: { use: access_log, with: { file: %s }, to: way }\n"
	    "  way: { use: router, with: { routes: [ { path: /private/*, to: no }, "
	    "{ host: denied.example, to: no } ] }, "
	    "to: { no: deny, else: tell } }\n  deny: { use: t.deny }\n"
	    "  tell: { use: t.tell, to: %s }\n%s"
	    "  disk: { use: file.read, with: { root: \"%s/root\", cache_rules: [ { match: "
	    "\"/assets/*\", value: max-age=9 } ] } }\n",
	    log_name, cached ? "cache" : "disk",
	    cached ? "  cache: { use: file.cache, to: { miss: disk } }\n" : "", site_base);
	server = (struct server){.spec = NULL};
	if (config_load_text(yaml, strlen(yaml), "test.yaml", &server.spec, errs) != 0) {
		weir_errs_format(errs, text, sizeof(text));
		fprintf(stderr, "%s", text);
		CU_FAIL_FATAL("the configuration is refused");
	}
	free(errs);
	server_start(&server);
}

static void stop(void)
{
	server_stop(&server);
	site_remove();
}

/* ---- requests ---- */

/* The result as text: "STATUS CLASS BODY Cache-Control". */
static const char *got(const char *target, const char *host)
{
	static char text[600];
	struct answer a = {0};
	char head[2048], class[64] = "-", control[64] = "-";
	int fd = client_open(server.port);
	int n = snprintf(head, sizeof(head),
	    "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", target, host);

	CU_ASSERT(client_send(fd, head, (size_t)n) && answer_read(fd, &a));
	const char *at = strstr(a.head, "X-Class: ");
	if (at)
		sscanf(at, "X-Class: %63[^\r]", class);
	at = strstr(a.head, "Cache-Control: ");
	if (at)
		sscanf(at, "Cache-Control: %63[^\r]", control);
	snprintf(text, sizeof(text), "%d %s %s %s", a.status, class,
	    a.status == 200 || a.status == 403 ? a.body : "-", control);
	answer_free(&a);
	close(fd);
	return text;
}

static void expect(const char *target, const char *host, const char *wanted)
{
	const char *is = got(target, host);

	if (strcmp(is, wanted) != 0)
		fprintf(stderr, "%s at %s: %s, not %s\n", target, host, is, wanted);
	CU_ASSERT_STRING_EQUAL(is, wanted);
}

#define DENIED "403 rest denied -"
#define VIP    "200 vip vip/a -"
#define SLOW   "200 rest slow -"
#define ASSET  "200 rest assets/app.css max-age=9"

static const struct {
	const char *target, *wanted;
} table[] = {
    /* the guard on /private */
    {"/private/x", DENIED},
    {"/%70rivate/x", DENIED},
    {"/%70%72%69%76%61%74%65/x", DENIED},
    {"/priv%61te/x", DENIED},
    {"/private/%78", DENIED},
    {"//private/x", DENIED},
    {"///private/x", DENIED},
    {"/private//x", DENIED},
    {"//private//x", DENIED},
    {"/./private/x", DENIED},
    {"/././private/x", DENIED},
    {"/private/./x", DENIED},
    {"/%2e/private/x", DENIED},
    {"/%2E/private/x", DENIED},
    {"/pub/../private/x", DENIED},
    {"/pub/%2e%2e/private/x", DENIED},
    {"/pub/.%2e/private/x", DENIED},
    {"/pub/%2e./private/x", DENIED},
    {"/pub/../pub/../private/x", DENIED},
    {"/pub//../private/x", DENIED},
    {"/pub/./../private/x", DENIED},
    {"/private/../private/x", DENIED},
    {"/private/pub/../x", DENIED},
    {"/private/x?a=b", DENIED},
    {"/%70rivate/x?/pub/", DENIED},
    {"http://t/private/x", DENIED},
    {"http://t//private/x", DENIED},
    {"http://t/pub/../private/x", DENIED},
    {"HTTP://T/%70rivate/x", DENIED},
    {"http://t:80/private/x", DENIED},
    {"/private/", DENIED},
    {"/private/.", DENIED},
    {"/private/x/..", DENIED},
    {"/pub/..//private/./x", DENIED},
    /* These are not paths below /private: they must not reach its file, whatever the route. */
    {"/private%2fx", "404 rest - -"},
    {"/private%2Fx", "404 rest - -"},
    {"/pub%2f..%2fprivate/x", "404 rest - -"},
    {"/pub/..%2fprivate/x", "404 rest - -"},
    {"/pub/..%5cprivate/x", "404 rest - -"},
    {"/%5cprivate/x", "404 rest - -"},
    {"/%2570rivate/x", "404 rest - -"},
    {"/%252e/private/x", "404 rest - -"},
    {"/PRIVATE/x", "404 rest - -"},
    {"/private%20/x", "404 rest - -"},
    {"/private;/x", "404 rest - -"},
    {"/private%00/x", "400 - - -"},
    {"/..", "400 - - -"},
    {"/../private/x", "400 - - -"},
    {"/pub/../../private/x", "400 - - -"},
    {"/%2e%2e/private/x", "400 - - -"},
    {"http://t/../private/x", "400 - - -"},
    {"/private%/x", "400 - - -"},
    {"\\private\\x", "400 - - -"},
    /* the class */
    {"/vip/a", VIP},
    {"/%76ip/a", VIP},
    {"//vip/a", VIP},
    {"/pub/../vip/a", VIP},
    {"/vip/./a", VIP},
    {"http://t/vip//a", VIP},
    {"/slow", SLOW},
    {"/vip/../slow", SLOW},
    {"/vip/%2e%2e/slow", SLOW},
    {"/vip//../slow", SLOW},
    {"/vip/a/../../slow", SLOW},
    {"http://t/vip/../slow", SLOW},
    {"/slow?now", "200 query slow -"},
    {"/%73low?now", "200 query slow -"},
    {"/vip/../slow?now", "200 query slow -"},
    {"http://t//slow?now", "200 query slow -"},
    {"/slow?%6eow", SLOW},
    /* the file and its rule */
    {"/assets/app.css", ASSET},
    {"/assets/app%2ecss", ASSET},
    {"/%61ssets/app.css", ASSET},
    {"//assets/app.css", ASSET},
    {"/pub/../assets/app.css", ASSET},
    {"/a%20b", "200 rest a b -"},
    {"/./a%20b", "200 rest a b -"},
    {"/100%25", "200 rest 100% -"},
    {"/pub/x", "200 rest pub/x -"},
    {"/", "200 rest index.html -"},
    {"/.", "200 rest index.html -"},
    {"//", "200 rest index.html -"},
    {"/pub/..", "200 rest index.html -"},
    {"http://t", "200 rest index.html -"},
    {"http://t?a=b", "200 rest index.html -"},
};

#define ROWS (sizeof(table) / sizeof(table[0]))

static void check_table(bool cached)
{
	_Static_assert(ROWS >= 60, "as many spellings as were asked for");

	start(cached);
	for (int round = 0; round < 2; round++) /* in the second round a cache knows them */
		for (size_t i = 0; i < ROWS; i++)
			expect(table[i].target, "t", table[i].wanted);
	if (cached) /* one object for all spellings of a file, one for each path without a file */
		CU_ASSERT(stage_metric(&server, "cache", "cache_objects") < 20);
	stop();
}

static void test_table(void)
{
	check_table(false);
}

static void test_cached(void)
{
	check_table(true);
}

/* Hosts also have several spellings. */
static void test_hosts(void)
{
	static const char *const denied[] = {"denied.example", "DENIED.example", "Denied.Example",
	    "denied.example.", "denied.example:80", "DENIED.EXAMPLE.:8080", "denied.example:"};
	static const char *const named[] = {
	    "named.example", "NAMED.example", "named.example.", "named.example:81"};

	start(false);
	for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++)
		expect("/pub/x", denied[i], DENIED);
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
		expect("/pub/x", named[i], "200 named pub/x -");
	expect("http://DENIED.example:80/pub/x", "denied.example", DENIED);
	stop();
}

/* ---- random spellings ---- */

static uint64_t seed = 1;

static unsigned draw(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}

/* A byte, or its escape in upper or lower case. */
static size_t spell_byte(char c, char *out)
{
	if (c == '%' || c == ' ' || draw(3) == 0)
		return (size_t)(draw(2) ? sprintf(out, "%%%02x", (unsigned char)c)
					: sprintf(out, "%%%02X", (unsigned char)c));
	*out = c;
	return 1;
}

static size_t spell_text(const char *text, char *out)
{
	size_t n = 0;

	for (; *text; text++)
		n += spell_byte(*text, out + n);
	return n;
}

/* Spellings of a slash, with any number of repetitions. */
static size_t spell_slash(char *out)
{
	size_t n = 0;

	out[n++] = '/';
	for (unsigned more = draw(3); more > 0; more--) {
		unsigned what = draw(3);
		if (what > 0)
			n += spell_text(what == 1 ? "." : "zz", out + n);
		out[n++] = '/';
		if (what == 2) {
			n += spell_text("..", out + n);
			out[n++] = '/';
		}
	}
	return n;
}

static void spell(const char *path, char *out)
{
	size_t n = draw(5) == 0 ? (size_t)sprintf(out, "http://t") : 0;

	for (; *path; path++)
		n += *path == '/' ? spell_slash(out + n) : spell_byte(*path, out + n);
	out[n] = '\0';
}

static void test_random(void)
{
	static const struct {
		const char *path, *wanted;
	} one[] = {{"/private/x", DENIED}, {"/vip/a", VIP}, {"/slow", SLOW},
	    {"/assets/app.css", ASSET}, {"/a b", "200 rest a b -"}, {"/100%", "200 rest 100% -"}};
	char target[1024];

	start(true);
	for (int i = 0; i < 1500; i++) {
		unsigned which = draw(sizeof(one) / sizeof(one[0]));
		spell(one[which].path, target);
		expect(target, "t", one[which].wanted);
	}
	stop();
}

/* ---- the log ---- */

/* The log line of the request for `target`, without the parts that differ from run to run. */
static void test_log(void)
{
	char text[4096] = "";

	start(false);
	expect("/pub/../%70rivate/x?q", "t", DENIED);
	expect("/pub/x?a", "t", "200 rest pub/x -");
	expect("/pub/%0aforged", "t", "400 rest - -");
	struct weir_drain_report report = {0};
	weir_graph_drain(server.graph, 10000000000LL, &report);
	weir_graph_free(server.graph);
	int fd = open(log_name, O_RDONLY | O_CLOEXEC);
	CU_ASSERT(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(text, " target=\"/pub/../%70rivate/x?q\" path=\"/private/x\" status=403 "));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, " target=\"/pub/x?a\" status=200 "));
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(text, " target=\"/pub/%0aforged\" path=\"/pub/%0Aforged\" status=400 "));
	site_remove();
}

CUNIT_MAIN("paths", {"table", test_table}, {"table behind a cache", test_cached},
    {"hosts", test_hosts}, {"spellings at random", test_random}, {"log", test_log})
