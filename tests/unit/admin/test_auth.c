/* SPDX-License-Identifier: MIT */
/* Authentication: tokens, sessions, users of a socket file, and which kinds of endpoints exist. */
#include <fcntl.h>
#include <sys/stat.h>

#include "auth_rig.h"

static void test_open(void)
{
	begin("127.0.0.1:9900");
	open_gate();
	CU_ASSERT_EQUAL(ask("PUT", "/api/v1/overload", ""), 200);
	CU_ASSERT_EQUAL(pass.role, WEIR_ADMIN_OPERATOR);
	CU_ASSERT_STRING_EQUAL(pass.name, "operator");
	CU_ASSERT_FALSE(auth_asks(auth));
	CU_ASSERT_TRUE(auth_still(auth, &pass, 0));
	end_all();
}

static void test_tokens(void)
{
	begin_tokens();
	CU_ASSERT_TRUE(auth_asks(auth));
	CU_ASSERT_EQUAL(ask("GET", "/api/v1/graph", bearer(BOSS)), 200);
	CU_ASSERT_EQUAL(pass.role, WEIR_ADMIN_OPERATOR);
	CU_ASSERT_STRING_EQUAL(pass.name, "boss");
	/* the routes check what a viewer may do */
	CU_ASSERT_EQUAL(ask("PUT", "/api/v1/overload", bearer(EYE)), 200);
	CU_ASSERT_EQUAL(pass.role, WEIR_ADMIN_VIEWER);
	CU_ASSERT_STRING_EQUAL(pass.name, "eye");
	CU_ASSERT_EQUAL(ask("GET", "/x", "authorization:   bearer   " EYE "  \r\n"), 200);
	static const char *const bad[] = {"", "Authorization: " EYE "\r\n",
	    "Authorization: Bearer\r\n", "Authorization: Basic Ym9zczpib3Nz\r\n",
	    "Cookie: weir-9900=" EYE "\r\n", "X-Authorization: Bearer " EYE "\r\n",
	    "Authorization:\r\n"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_EQUAL(ask("GET", "/api/v1/graph", bad[i]), 401);
	static const char *const wrong[] = {
	    "x", EYE "0", EYE " " EYE, "00112233445566778899aabbccddeefe"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CU_ASSERT_EQUAL(ask_at("192.0.2.9", S, "GET", "/metrics", bearer(wrong[i])), 401);
	end_all();
}

/* A page needs these paths before it can log in, and load balancers request them. */
static void test_public(void)
{
	static const char *const all[] = {"/healthz", "/readyz", "/healthz?x", "/readyz?verbose=1"};
	static const char *const none[] = {"/metrics", "/events", "/events?hz=1", "/api/v1",
	    "/api/v1/graph", "/api/v1/openapi.json", "/api/v1/session", "/nothing", "/healthz/",
	    "/healthz%00", "//healthz"};

	begin_tokens();
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		CU_ASSERT_EQUAL(ask("GET", all[i], ""), 200);
		CU_ASSERT_EQUAL(ask("HEAD", all[i], ""), 200);
		CU_ASSERT_TRUE(pass.anyone);
		CU_ASSERT_EQUAL(pass.role, WEIR_ADMIN_VIEWER);
		CU_ASSERT_EQUAL(ask("POST", all[i], ""), 401);
	}
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		CU_ASSERT_EQUAL(ask("GET", none[i], ""), 401);
	end_all();
}

static void test_failures(void)
{
	char why[200];

	begin_tokens();
	for (int i = 0; i < 20; i++) /* no credentials, or a cookie that is not ours: not counted */
		CU_ASSERT_EQUAL(
		    ask("GET", "/metrics", i % 2 ? "" : "Cookie: weir-9900=x\r\n"), 401);
	for (int i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(ask("GET", "/metrics", bearer("wrong")), 401);
	CU_ASSERT_EQUAL(ask("GET", "/metrics", bearer("wrong")), 429);
	CU_ASSERT_EQUAL(problem.retry_after_s, 60);
	snprintf(why, sizeof(why), "%s", problem.why);
	/* all wrong tokens count together */
	CU_ASSERT_EQUAL(ask("GET", "/metrics", bearer("other")), 429);
	CU_ASSERT_STRING_EQUAL(problem.why, why);
	CU_ASSERT_EQUAL(ask("GET", "/healthz", bearer("wrong")), 200);
	CU_ASSERT_EQUAL(ask_at("192.0.2.2", 100 * S, "GET", "/metrics", bearer("wrong")), 401);
	CU_ASSERT_EQUAL(ask_at("192.0.2.1", 160 * S - 1, "GET", "/metrics", bearer("wrong")), 429);
	CU_ASSERT_EQUAL(problem.retry_after_s, 1);
	CU_ASSERT_EQUAL(ask_at("192.0.2.1", 160 * S, "GET", "/metrics", bearer("wrong")), 401);
	end_all();
}

/* Operators and collectors that share an address (NAT, a proxy) are not locked out by another
 * client's wrong tokens. */
static void test_good_token_passes(void)
{
	char cookie[200];

	begin_tokens();
	for (int i = 0; i < 20; i++) {
		CU_ASSERT_EQUAL(ask("GET", "/metrics", bearer("wrong")), i < 5 ? 401 : 429);
		CU_ASSERT_EQUAL(ask("GET", "/metrics", bearer(EYE)), 200);
		CU_ASSERT_STRING_EQUAL(pass.name, "eye");
		CU_ASSERT_EQUAL(ask("PUT", "/api/v1/overload", bearer(BOSS)), 200);
		CU_ASSERT_STRING_EQUAL(pass.name, "boss");
	}
	log_in(BOSS, cookie, sizeof(cookie)); /* a session can begin, too */
	/* the new session does not reset the count */
	CU_ASSERT_EQUAL(ask("GET", "/metrics", bearer("wrong")), 429);
	end_all();
}

static void test_sessions(void)
{
	char boss[200], eye[200], with[300], forget[160];

	begin_tokens();
	log_in(BOSS, boss, sizeof(boss));
	log_in(EYE, eye, sizeof(eye));
	CU_ASSERT_EQUAL(ask("GET", "/events", eye), 200);
	CU_ASSERT_STRING_EQUAL(pass.name, "eye");
	CU_ASSERT_EQUAL(pass.role, WEIR_ADMIN_VIEWER);
	CU_ASSERT_EQUAL(ask("GET", "/api/v1/graph", boss), 200);
	CU_ASSERT_EQUAL(auth_left_ns(auth, &pass, 100 * S), SESSION_LIFE_NS);
	/* A browser's request has more than a cookie. */
	CU_ASSERT_EQUAL(ask("POST", "/api/v1/undo", boss), 403);
	snprintf(with, sizeof(with), "%sOrigin: http://localhost\r\n", boss);
	CU_ASSERT_EQUAL(ask("POST", "/api/v1/undo", with), 200);
	snprintf(with, sizeof(with), "%sSec-Fetch-Site: same-origin\r\n", boss);
	CU_ASSERT_EQUAL(ask("POST", "/api/v1/undo", with), 200);
	/* Sessions remain valid while tokens from that address are refused. */
	for (int i = 0; i < 6; i++)
		ask("GET", "/metrics", bearer("wrong"));
	CU_ASSERT_EQUAL(problem.status, 429);
	CU_ASSERT_EQUAL(ask("GET", "/metrics", boss), 200);
	/* Sessions that were ended, that were idle, and that have expired. */
	struct auth_pass kept = pass;
	CU_ASSERT_TRUE(auth_still(auth, &kept, 100 * S));
	auth_end(auth, &pass, forget, sizeof(forget));
	CU_ASSERT_PTR_NOT_NULL(strstr(forget, "weir-9900=; Path=/; "));
	CU_ASSERT_PTR_NOT_NULL(strstr(forget, "Max-Age=0"));
	CU_ASSERT_FALSE(auth_still(auth, &kept, 100 * S));
	CU_ASSERT_EQUAL(ask("GET", "/metrics", boss), 401);
	CU_ASSERT_EQUAL(ask("GET", "/metrics", eye), 200);
	CU_ASSERT_EQUAL(
	    ask_at("192.0.2.1", 100 * S + SESSION_IDLE_NS, "GET", "/metrics", eye), 401);
	end_all();
}

/* The cookie is searched in its field only, and not past its end. */
static void test_foreign_cookies(void)
{
	char cookie[200], fields[400];

	begin_tokens();
	log_in(BOSS, cookie, sizeof(cookie));
	const char *ours = strstr(cookie, "weir-9900=");
	CU_ASSERT_PTR_NOT_NULL_FATAL(ours);
	int n = (int)strcspn(ours, ";");
	snprintf(fields, sizeof(fields), "Cookie: a=b\r\nX-Other: c; %.*s\r\n", n, ours);
	CU_ASSERT_EQUAL(ask("GET", "/metrics", fields), 401);
	snprintf(fields, sizeof(fields), "Cookie: a=b; x%.*s;\r\n", n, ours);
	CU_ASSERT_EQUAL(ask("GET", "/metrics", fields), 401);
	CU_ASSERT_PTR_NOT_NULL(strstr(problem.why, "send a token")); /* not: log in again */
	static const char *const before[] = {"a=b;", "a=b;  ", "weir-9901=x; ", "weir-9900; "};
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		snprintf(fields, sizeof(fields), "Cookie: %s%.*s\r\n", before[i], n, ours);
		CU_ASSERT_EQUAL(ask("GET", "/metrics", fields), 200);
	}
	end_all();
}

static void test_reload(void)
{
	char eye[200];

	begin_tokens();
	log_in(EYE, eye, sizeof(eye));
	struct auth_pass session = pass;
	CU_ASSERT_EQUAL(ask("GET", "/events", bearer(EYE)), 200);
	struct auth_pass token = pass;
	auth_reload(auth); /* the same token */
	CU_ASSERT_TRUE(auth_still(auth, &session, 100 * S));
	CU_ASSERT_TRUE(auth_still(auth, &token, 100 * S));
	put("eye", BOSS);
	auth_reload(auth); /* the token of another client: refused */
	CU_ASSERT_TRUE(auth_still(auth, &token, 100 * S));
	put("eye", "");
	auth_reload(auth); /* an empty file: refused */
	CU_ASSERT_EQUAL(ask("GET", "/metrics", bearer(EYE)), 200);
	put("eye", "ffeeddccbbaa99887766554433221100");
	auth_reload(auth);
	CU_ASSERT_FALSE(auth_still(auth, &session, 100 * S));
	CU_ASSERT_FALSE(auth_still(auth, &token, 100 * S));
	CU_ASSERT_EQUAL(ask("GET", "/metrics", eye), 401);
	CU_ASSERT_EQUAL(ask("GET", "/metrics", bearer(EYE)), 401);
	CU_ASSERT_EQUAL(ask("GET", "/metrics", bearer("ffeeddccbbaa99887766554433221100")), 200);
	CU_ASSERT_EQUAL(ask("GET", "/metrics", bearer(BOSS)), 200);
	end_all();
}

/* However many addresses fail, the log has at most twenty lines a minute, and one that says that
 * more were left out. */
static int lines_of(int addresses, int64_t now_ns)
{
	static char text[1 << 16];
	char path[128], ip[32];
	int lines = 0;

	put("log", "");
	snprintf(path, sizeof(path), "%s/log", folder);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	CU_ASSERT_FATAL(fd >= 0);
	weir_log_set_fd(fd);
	for (int i = 0; i < addresses; i++) {
		snprintf(ip, sizeof(ip), "10.0.%d.%d", i / 256, i % 256);
		CU_ASSERT_EQUAL(ask_at(ip, now_ns, "GET", "/metrics", bearer("wrong")), 401);
	}
	weir_log_set_fd(-1);
	ssize_t n = pread(fd, text, sizeof(text), 0);
	for (ssize_t i = 0; i < n; i++)
		lines += text[i] == '\n';
	close(fd);
	return lines;
}

static void test_lines(void)
{
	begin_tokens();
	CU_ASSERT_EQUAL(lines_of(10, 1000 * S), 10);
	CU_ASSERT_EQUAL(lines_of(200, 1001 * S), 10 + 1);
	CU_ASSERT_EQUAL(lines_of(200, 1002 * S), 0);
	CU_ASSERT_EQUAL(lines_of(2000, 1100 * S), 20 + 1);
	end_all();
}

/* With TLS, the origin of a page without TLS is refused, and the cookie is sent over TLS only. */
static void test_tls(void)
{
	char cookie[160];

	begin("127.0.0.1:9900");
	weir_spec_text(&spec->admin.tls.cert, "c");
	weir_spec_text(&spec->admin.tls.key, "k");
	add_token("boss", WEIR_ADMIN_OPERATOR);
	open_gate();
	CU_ASSERT_EQUAL(ask("GET", "/healthz", "Origin: http://localhost:9900\r\n"), 403);
	CU_ASSERT_EQUAL(ask("GET", "/healthz", "Origin: https://localhost:9900\r\n"), 200);
	CU_ASSERT_EQUAL(ask("POST", "/api/v1/session", bearer(BOSS)), 200);
	CU_ASSERT_EQUAL(auth_begin(auth, &pass, cookie, sizeof(cookie), S), 0);
	CU_ASSERT_EQUAL(strncmp(cookie, "__Host-weir-9900=", 17), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(cookie, "; Secure"));
	end_all();
}

static int ask_as(uid_t uid, const char *fields)
{
	struct auth_from f = {.by_file = true, .uid = uid};
	char text[1024];
	int n = snprintf(
	    text, sizeof(text), "GET /healthz HTTP/1.1\r\nHost: localhost\r\n%s\r\n", fields);

	problem = (struct head_problem){0};
	return auth_judge(auth, &f, text, (size_t)n, S, &pass, &problem) ? 200 : problem.status;
}

static void test_users(void)
{
	begin("unix:/run/x.sock");
	struct weir_admin_client_spec *c = weir_spec_add_client(spec, "1001", NULL);
	c->role = WEIR_ADMIN_OPERATOR;
	weir_spec_add_client(spec, "nobody", NULL);
	weir_spec_add_client(spec, "0", NULL); /* root remains an operator */
	open_gate();
	CU_ASSERT_EQUAL(ask_as(0, ""), 200);
	CU_ASSERT_EQUAL(pass.role, WEIR_ADMIN_OPERATOR);
	CU_ASSERT_STRING_EQUAL(pass.name, "root");
	CU_ASSERT_EQUAL(ask_as(geteuid(), ""), 200);
	CU_ASSERT_EQUAL(pass.role, WEIR_ADMIN_OPERATOR);
	CU_ASSERT_EQUAL(ask_as(1001, ""), 200);
	CU_ASSERT_EQUAL(pass.role, WEIR_ADMIN_OPERATOR);
	CU_ASSERT_STRING_EQUAL(pass.name, "1001");
	CU_ASSERT_EQUAL(ask_as(65534, ""), 200);
	CU_ASSERT_EQUAL(pass.role, WEIR_ADMIN_VIEWER);
	CU_ASSERT_STRING_EQUAL(pass.name, "nobody");
	/* 403 also for the paths that are public elsewhere */
	CU_ASSERT_EQUAL(ask_as(1002, bearer(BOSS)), 403);
	CU_ASSERT_PTR_NOT_NULL(strstr(problem.why, "1002"));
	end_all();
}

/* ---- which endpoints are allowed ---- */

static void refused(const char *want)
{
	struct weir_errs errs = {0};

	CU_ASSERT_NOT_EQUAL(admin_check(&spec->admin, &errs), 0);
	CU_ASSERT_EQUAL(errs.total, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(errs.err[0].text, want));
	if (!strstr(errs.err[0].text, want))
		fprintf(stderr, "'%s' lacks '%s'\n", errs.err[0].text, want);
	CU_ASSERT_PTR_NULL(strstr(errs.err[0].text, EYE));
	end_all();
}

static void fine(void)
{
	struct weir_errs errs = {0};

	CU_ASSERT_EQUAL(admin_check(&spec->admin, &errs), 0);
	CU_ASSERT_EQUAL(errs.total, 0);
	end_all();
}

static void host(const char *name)
{
	spec->admin.hosts.items = calloc(1, sizeof(char *));
	spec->admin.hosts.items[0] = strdup(name);
	spec->admin.hosts.n = 1;
}

static void test_places(void)
{
	static const char *const open[] = {
	    "127.0.0.1:9900", "[::1]:0", "localhost:1", "unix:/run/x"};
	static const char *const exposed[] = {
	    "0.0.0.0:9900", "[::]:9900", "192.0.2.1:1", "[2001:db8::1]:1", "[::ffff:127.0.0.1]:1"};

	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
		begin(open[i]);
		fine();
	}
	for (size_t i = 0; i < sizeof(exposed) / sizeof(exposed[0]); i++) {
		begin(exposed[i]);
		refused("it has no tokens and no TLS");
		begin(exposed[i]);
		add_token("eye", 0);
		refused("the admin endpoint needs TLS there");
	}
	begin("127.0.0.1:1");
	add_token("eye", 0);
	fine();
	begin("unix:/run/x");
	add_token("eye", 0);
	refused("tokens are not used there");
	begin("127.0.0.1:1");
	weir_spec_add_client(spec, "nobody", NULL);
	refused("'users' are not used on '127.0.0.1:1'");
	begin("unix:/run/x");
	weir_spec_add_client(spec, "nobody-has-this-name", NULL);
	refused("no user 'nobody-has-this-name'");
	begin("nowhere");
	refused("not an address to listen on");
	begin("127.0.0.1:1");
	host("weir.example.org");
	fine();
	begin("127.0.0.1:1");
	host("https://weir.example.org");
	refused("is not a valid name for Host");
}

static void test_files(void)
{
	char path[128];

	begin("127.0.0.1:1");
	put("twin", EYE "\n");
	add_token("eye", 0);
	add_token("twin", 0);
	refused("'eye' and 'twin' hold the same token");
	begin("127.0.0.1:1");
	add_token("nothing", 0);
	refused("No such file");
	begin("127.0.0.1:1");
	put("weak", "swordfish\n");
	add_token("weak", 0);
	refused("128 random bits");
	begin("127.0.0.1:1");
	snprintf(path, sizeof(path), "%s/eye", folder);
	chmod(path, 0640);
	add_token("eye", 0);
	refused("users other than its owner");
	begin("127.0.0.1:1");
	weir_spec_text(&spec->admin.tls.cert, path);
	refused("'key' is missing");
	begin("127.0.0.1:1");
	weir_spec_text(&spec->admin.tls.cert, path);
	weir_spec_text(&spec->admin.tls.key, path);
	refused("cannot be used");
	begin("127.0.0.1:1");
	for (int i = 0; i <= AUTH_CLIENTS_MAX; i++)
		add_token("eye", 0);
	refused("the admin endpoint has 33 tokens, at most 32 are allowed");
}

CUNIT_MAIN("gate", {"without tokens", test_open}, {"tokens", test_tokens},
    {"what is for all", test_public}, {"failures", test_failures},
    {"good tokens among wrong ones", test_good_token_passes}, {"lines in the log", test_lines},
    {"sessions", test_sessions}, {"foreign cookies", test_foreign_cookies},
    {"tokens that change", test_reload}, {"behind TLS", test_tls},
    {"users of a socket file", test_users}, {"kinds of endpoints", test_places},
    {"files", test_files})
