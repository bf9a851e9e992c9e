/* SPDX-License-Identifier: MIT */
/*
 * The n-th allocation fails, n = 1, 2, ... while a request passes an access log. The request is
 * answered or its connection is closed, and each request that reached the log is a line of it or is
 * counted as dropped.
 */
#include "fixture/http/server.h"

#include "config.h"
#include "fault/inject.h"

static void ok_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		weir_http_respond_status(weir_http_request(ev[i]), 200);
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

static const struct weir_stage_ops ok_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.answer",
    .summary = "answers 200",
    .accepts = &weir_http_request_type,
    .handle = ok_handle};

static struct server start(void)
{
	static const char yaml[] =
	    "weir: 1\nadmin: { listen: \"\" }\nstages:\n"
	    "  web: { use: http.server, with: { listen: \"127.0.0.1:0\", threads: 1 },\n"
	    "         to: { request: log } }\n"
	    "  log: { use: access_log, with: { file: /dev/null }, to: { out: end } }\n"
	    "  end: { use: t.answer }\n";
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	struct server s = {0};

	CU_ASSERT_EQUAL_FATAL(config_load_text(yaml, strlen(yaml), "test.yaml", &s.spec, errs), 0);
	free(errs);
	weir_log_set_level(WEIR_LOG_ERROR);
	server_start(&s);
	return s;
}

static void send_one(int port)
{
	char answer[4096];
	int fd = client_open(port);

	client_send(fd, GET("/"), strlen(GET("/")));
	shutdown(fd, SHUT_WR);
	while (recv(fd, answer, sizeof(answer), 0) > 0)
		;
	close(fd);
}

static int64_t accounted(const struct server *s)
{
	return server_metric(s, "access_log_lines_total") +
	       server_metric(s, "access_log_dropped_total");
}

static void test_accounted(void)
{
	struct server s = start();
	bool fired = true;
	long n = 0;

	send_one(s.port);
	weir_log_set_fd(-1);
	while (fired) {
		atomic_store(&fault_fired, 0);
		atomic_store(&fault_alloc_in, n++);
		send_one(s.port);
		atomic_store(&fault_alloc_in, -1);
		fired = atomic_load(&fault_fired) > 0;
		FIXTURE_AWAIT(accounted(&s) == (int64_t)server_offered_to(&s, "log"));
	}
	printf("(%ld failures) ", n - 1);
	CU_ASSERT(n > 2);
	CU_ASSERT(server_metric(&s, "access_log_dropped_total") > 0);
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	server_stop(&s);
	weir_log_set_fd(2);
}

static void test_prepare(void)
{
	fixture_register(&ok_ops);
}

CUNIT_MAIN("fault access log", {"types", test_prepare},
    {"n-th allocation while a request is logged", test_accounted})
