/* SPDX-License-Identifier: MIT */
/* The parts of the endpoint give back the memory that they use, whether requests succeed or
 * fail. */
#include <fcntl.h>

#include "admin/api/routes.h"
#include "admin/history/history.h"
#include "admin/history/history_file.h"
#include "admin/metrics/alerts.h"
#include "admin/metrics/bottleneck.h"
#include "admin/stream/sse.h"
#include "admin/stream/tick_text.h"
#include "client.h"
#include "fixture/memory/counted.h"
#include "made_up.h"
#include "unit/admin/auth_rig.h"

static struct made_up made_up;

/* ---- routes ---- */

static int changes(void *arg, struct weir_change *out, int n)
{
	(void)arg;
	for (int i = 0; i < 3 && i < n; i++)
		out[i] = (struct weir_change){.id = (uint64_t)(3 - i), .what = "set"};
	return 3;
}

static int undo(void *arg, struct weir_change *undone, char *why, size_t size)
{
	(void)arg, (void)why, (void)size;
	*undone = (struct weir_change){.id = 1};
	return 0;
}

static int queue(void *arg, const char *stage, struct weir_queued *out, int n)
{
	(void)arg, (void)stage, (void)n;
	out[0] = (struct weir_queued){.class_name = "bulk", .type = "t"};
	return 1;
}

static int slow(struct weir_slow *out, int n)
{
	for (int i = 0; i < 3 && i < n; i++)
		out[i] = (struct weir_slow){.id = (uint64_t)(3 - i),
		    .class_name = "bulk",
		    .what = "x",
		    .n_spans = 1,
		    .span = {{.stage = "web"}}};
	return n < 3 ? n : 3;
}

static int slowest(void *arg, int class_id, struct weir_slow *out, int n)
{
	(void)arg, (void)class_id;
	return slow(out, n);
}

static int tap(void *arg, const struct weir_tap *want, uint64_t after, struct weir_slow *out, int n,
    struct weir_tap_state *state)
{
	(void)arg, (void)want, (void)after;
	*state = (struct weir_tap_state){.next = 4};
	return slow(out, n);
}

static int layers(void *arg, const char *stage, const char *knob, struct weir_override *l)
{
	(void)arg, (void)stage, (void)knob;
	*l =
	    (struct weir_override){.overridden = true, .has_permanent = true, .expires_wall_ns = 1};
	return 0;
}

#define KNOB "/api/v1/stages/disk/knobs/threads.max"

static const char *const gets[] = {"/", "/api/v1", "/api/v1/openapi.json", "/api/v1/graph",
    "/api/v1/stages", "/api/v1/stages/disk", "/api/v1/stages/no", "/api/v1/stages/disk/knobs", KNOB,
    "/api/v1/stages/disk/knobs/no", "/api/v1/config", "/api/v1/reload",
    "/api/v1/requests/slowest?limit=2", "/api/v1/requests/slowest?before=9",
    "/api/v1/requests/slowest?class=no", "/api/v1/requests/slowest?class=bulk",
    "/api/v1/stages/disk/queue", "/api/v1/stages/web/queue", "/api/v1/stages/disk/tap",
    "/api/v1/stages/disk/tap?class=no", "/api/v1/changes?limit=2", "/api/v1/acts?limit=0",
    "/api/v1/overload", "/api/v1/session", "/api/v1/alerts", "/api/v1/decisions?limit=1",
    "/api/v1/history?stage=disk", "/api/v1/history?step=10s", "/api/v1/history?stage=no", "/events",
    "/metrics", "/healthz", "/readyz", "/none"};

static const char *const acts[][3] = {{"PUT", KNOB, "{\"value\": 8}"},
    {"PUT", KNOB, "{\"value\": \"65\"}"}, {"PUT", KNOB, "{\"value\": \"8\", \"for\": \"x\"}"},
    {"PUT", KNOB, "{\"value\": []}"}, {"PUT", KNOB, "["}, {"PUT", KNOB, "{}"},
    {"POST", "/api/v1/undo", "{}"}, {"POST", "/api/v1/undo", "[]"},
    {"PUT", "/api/v1/overload", "{\"mode\": \"off\"}"},
    {"PUT", "/api/v1/overload", "{\"mode\": \"x\"}"}, {"PUT", "/api/v1/overload", "{\"mode\": []}"},
    {"PUT", "/api/v1/overload", "{\"mode\": true}"}, {"PUT", "/api/v1/overload", "{}"},
    {"POST", "/api/v1/reload", "{\"preview\": 1}"}, {"POST", "/api/v1/session", "{}"},
    {"DELETE", "/api/v1/session", ""}, {"PATCH", KNOB, ""}};

static struct history *history;

static void ask_all(const char *none_match)
{
	struct admin_source source = made_up_source(&made_up);
	struct process process = {.stat_fd = -1};
	struct reply reply;

	source.changes = changes;
	source.undo = undo;
	source.queue = queue;
	source.slowest = slowest;
	source.tap = tap;
	source.layers = layers;
	source.history = history;
	for (size_t i = 0; i < sizeof(gets) / sizeof(gets[0]); i++) {
		routes_answer(&source, &process,
		    &(struct request){.method = "GET",
			.target = gets[i],
			.host = "localhost:9900",
			.if_none_match = none_match},
		    &reply);
		reply_fini(&reply);
	}
	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
		routes_answer(&source, &process,
		    &(struct request){.method = acts[i][0],
			.target = acts[i][1],
			.host = "localhost:9900",
			.content_type = "application/json",
			.body = acts[i][2],
			.n_body = strlen(acts[i][2])},
		    &reply);
		reply_fini(&reply);
	}
	CU_ASSERT_EQUAL(made_up.n_views, 0);
}

static void routes(void)
{
	made_up_init(&made_up);
	history = history_new();
	history_feed(history, &made_up.view);
	ask_all(NULL);
	ask_all("*");
	made_up.no_memory = true;
	ask_all(NULL);
	history_free(history);
}

/* ---- the history, and what is derived from it ---- */

static void tell(void *arg, const struct alert *alert)
{
	(void)arg, (void)alert;
}

/* Stages and classes come, go and change their order. */
static void samples(void)
{
	struct alerts alerts = {0};
	struct bottleneck bottleneck = {0};
	const struct alerts_about about = {.bottleneck = &bottleneck, .history_fails = true};
	struct textbuf tick = {0};

	made_up_init(&made_up);
	history = history_new();
	for (int s = 0; s < 6; s++) {
		struct weir_graph_view *v = &made_up.view;
		v->wall_ns += (s == 5 ? 30000 : 1) * S;
		v->now_ns += S;
		v->n_stages = MADE_UP_STAGES - s % 2;
		v->n_classes = 1 + s % 3;
		v->class_name[s % 2] = "a";
		v->class_name[1 - s % 2] = "b";
		v->class_name[2] = "c";
		history_feed(history, v);
		const struct sample *sample = history_samples(history, HISTORY_1S);
		bottleneck_feed(&bottleneck, v, sample);
		alerts_feed(&alerts, &about, v, sample, tell, NULL);
		tick_text(
		    &tick, &(struct tick_about){.hz = 1, .bottleneck = &bottleneck}, v, sample);
	}
	textbuf_fini(&tick);
	json_decref(alerts_json(&alerts));
	alerts_fini(&alerts);
	history_free(history);
}

/* A file of the history: created, written, read again, damaged, and one that cannot be created. */
static void history_files(void)
{
	char path[128], bad[140];

	begin("127.0.0.1:9900"); /* makes the folder */
	snprintf(path, sizeof(path), "%s/history", folder);
	snprintf(bad, sizeof(bad), "%s.bad", path);
	for (int i = 0; i < 3; i++) {
		made_up_init(&made_up);
		history = history_new();
		if (i == 2)
			put("history", "no history");
		struct history_file *f = history_file_open(path, history);
		CU_ASSERT_PTR_NOT_NULL_FATAL(f);
		unsigned rings = history_feed(history, &made_up.view);
		history_file_save(f, history, rings);
		history_file_wait(f);
		history_file_close(f, history);
		history_free(history);
	}
	CU_ASSERT_EQUAL(unlink(path), 0);
	CU_ASSERT_EQUAL(unlink(bad), 0);
	history = history_new();
	CU_ASSERT_PTR_NULL(history_file_open("/dev/null/history", history));
	history_file_close(NULL, history);
	history_free(history);
	end_all();
}

/* ---- authentication ---- */

static void gate(void)
{
	struct auth_pass anyone = {0};
	char cookie[160];

	begin_tokens();
	struct auth *first = auth;
	CU_ASSERT_EQUAL(ask("GET", "/api/v1", bearer(BOSS)), 200);
	CU_ASSERT_EQUAL(auth_begin(auth, &pass, cookie, sizeof(cookie), 100 * S), 0);
	CU_ASSERT_EQUAL(ask("GET", "/api/v1", bearer("wrong")), 401);
	auth_reload(auth);
	auth = NULL;
	weir_spec_free(spec);
	begin("127.0.0.1:9900");
	add_token("eye", WEIR_ADMIN_OPERATOR);
	open_gate();
	auth_become(first, auth);
	auth = first;
	CU_ASSERT_FALSE(auth_still(auth, &anyone, 100 * S));
	/* files that are refused */
	struct weir_errs errs = {0};
	struct authority address;
	struct weir_err err;
	struct auth *none = NULL;
	add_token("gone", WEIR_ADMIN_VIEWER);
	CU_ASSERT_EQUAL(authority_parse(spec->admin.listen, &address, &err), 0);
	CU_ASSERT_NOT_EQUAL(auth_new(&spec->admin, &address, &none, &errs), 0);
	CU_ASSERT_PTR_NULL(none);
	end_all();
}

/* ---- streams ---- */

#define ASK(target) "GET " target " HTTP/1.1\r\nHost: 127.0.0.1:9900\r\n\r\n"

static void streams(void)
{
	static const char *const request[] = {
	    ASK("/events"), ASK("/events?hz=1"), ASK("/events?hz=4&last=1")};
	struct sse *sse = NULL;
	int fd[3][2];

	CU_ASSERT_EQUAL_FATAL(sse_open(1000, &sse), 0);
	sse_about(sse, "one", 0);
	sse_about(sse, "two", 0);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd[i]), 0);
		sse_add(sse, fd[i][1], request[i], strlen(request[i]), NULL, S);
	}
	for (int i = 0; i < 600; i++) { /* more than the rings hold */
		sse_decision(sse, json_pack("{s:i}", "id", i));
		sse_tick(sse, i % 2 ? 1 : 4, "{}", 2);
		sse_run(sse, S);
		sse_second(sse, (2 + i) * S);
	}
	sse_act(sse, json_pack("{s:s}", "what", "set"));
	sse_alert(NULL, json_object());
	sse_config(sse, 1.5, 2);
	close(fd[0][0]);
	sse_run(sse, S);
	sse_close(sse);
	close(fd[1][0]);
	close(fd[2][0]);
}

/* ---- the whole endpoint ---- */

static void endpoint(void)
{
	struct admin_source source = made_up_source(&made_up);
	struct weir_err err = {0};
	struct admin *admin;
	char text[1 << 16];

	made_up_init(&made_up);
	CU_ASSERT_EQUAL_FATAL(admin_start_source(&source, "127.0.0.1:0", &admin, &err), 0);
	int port = admin_port(admin);
	CU_ASSERT_EQUAL(client_get(port, "/healthz", text, sizeof(text)), 200);
	CU_ASSERT_EQUAL(client_get(port, "/api/v1/stages/disk", text, sizeof(text)), 200);
	CU_ASSERT_EQUAL(client_do(port, "PUT", KNOB, "Content-Type: application/json\r\n",
			    "{\"value\": \"8\"}", text, sizeof(text)),
	    200);
	CU_ASSERT_EQUAL(client_ask(port, "nonsense\r\n\r\n", text, sizeof(text)), 400);
	admin_tell_failed(admin, "ann", "it failed");
	admin_switch(admin, NULL, "{}", 2, NULL);
	admin_stop(admin);
	CU_ASSERT_NOT_EQUAL(admin_start_source(&source, "192.0.2.1:0", &admin, &err), 0);
}

static void test_routes(void)
{
	CU_ASSERT_TRUE(memory_is_given_back(routes));
}

static void test_samples(void)
{
	CU_ASSERT_TRUE(memory_is_given_back(samples));
}

static void test_history_files(void)
{
	CU_ASSERT_TRUE(memory_is_given_back(history_files));
}

static void test_gate(void)
{
	CU_ASSERT_TRUE(memory_is_given_back(gate));
}

static void test_streams(void)
{
	CU_ASSERT_TRUE(memory_is_given_back(streams));
}

static void test_endpoint(void)
{
	CU_ASSERT_TRUE(memory_is_given_back(endpoint));
}

static void prepare(void)
{
	weir_log_set_fd(-1);
}

CUNIT_MAIN("memory of the endpoint", {"no log", prepare}, {"routes", test_routes},
    {"samples", test_samples}, {"files of the history", test_history_files},
    {"authentication", test_gate}, {"streams", test_streams}, {"the whole endpoint", test_endpoint})
