/* SPDX-License-Identifier: MIT */
/* Watching a real graph: the ticks follow the work, the history keeps it, and the changes of
 * operators are sent to watchers. Admission of watchers is tested in
 * tests/unit/admin/test_events.c. */
#include "fixture/http/server.h"

#include <jansson.h>
#include <poll.h>

#include "admin/admin.h"

static struct server server;
static struct admin *admin;
static char text[1 << 18];

static int watch(const char *target)
{
	char request[256];
	int port = admin_port(admin), fd = client_open(port);

	snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", target,
	    port);
	CU_ASSERT(client_say(fd, request));
	return fd;
}

/* Read the stream until it contains a whole event `name`. Returns its data. */
static json_t *await(int fd, const char *name)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char line[64];
	size_t n = 0;

	snprintf(line, sizeof(line), "event: %s\ndata: ", name);
	while (n < sizeof(text) - 1 && poll(&p, 1, 20000) > 0) {
		ssize_t got = client_recv(fd, text + n, sizeof(text) - 1 - n, 0);
		if (got <= 0)
			break;
		n += (size_t)got;
		text[n] = '\0';
		const char *data = strstr(text, line);
		if (data && strstr(data, "\n\n"))
			return json_loads(data + strlen(line), JSON_DISABLE_EOF_CHECK, NULL);
	}
	return NULL;
}

/* Field `key` of stage "app" in a tick. */
static double app_number(const json_t *tick, const char *key)
{
	const json_t *stage;
	size_t i;

	json_array_foreach(json_object_get(tick, "stages"), i,
	    stage) if (strcmp(json_string_value(json_object_get(stage, "name")), "app") ==
		       0) return json_number_value(json_object_get(stage, key));
	CU_FAIL("no stage app in a tick");
	return 0;
}

static void ask(int fd, int n)
{
	struct answer a = {0};

	for (int i = 0; i < n; i++) {
		CU_ASSERT(client_say(fd, GET("/x")));
		CU_ASSERT(answer_read(fd, &a));
	}
	answer_free(&a);
}

/* Each event appears in some tick: at 4 Hz, 8 events are 32/s in one tick, or fewer in several. */
static void test_work(void)
{
	struct weir_err err = {0};
	double in = 0, done = 0, class_in = 0, class_done = 0;

	server = server_new("t.reply");
	server_start(&server);
	CU_ASSERT_EQUAL_FATAL(admin_start(server.graph, NULL, "127.0.0.1:0", &admin, &err), 0);
	int watcher = watch("/events?hz=4"), client = client_open(server.port);
	json_decref(await(watcher, "tick"));
	ask(client, 8);
	for (int i = 0; i < 100 && (in == 0 || done < 0.8 * in); i++) {
		json_t *tick = await(watcher, "tick");
		CU_ASSERT_PTR_NOT_NULL_FATAL(tick);
		const json_t *class = json_array_get(json_object_get(tick, "classes"), 0);
		in += app_number(tick, "in");
		done += app_number(tick, "done");
		class_in += json_number_value(json_object_get(class, "in"));
		class_done += json_number_value(json_object_get(class, "done"));
		json_decref(tick);
	}
	CU_ASSERT(in > 0);
	CU_ASSERT_DOUBLE_EQUAL(done, in, 0.2 * in);      /* ticks may have other lengths */
	CU_ASSERT_DOUBLE_EQUAL(class_in, in, 0.01 * in); /* the only stage after the source */
	CU_ASSERT_DOUBLE_EQUAL(class_done, done, 0.01 * in);
	/* An operator changes a knob. */
	char why[200];
	CU_ASSERT_EQUAL(
	    weir_graph_set(server.graph, "app", "threads.max", "3", why, sizeof(why)), 0);
	json_t *told = await(watcher, "decision");
	CU_ASSERT_PTR_NOT_NULL_FATAL(told);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(told, "actor")), "operator");
	json_decref(told);
	/* The history has the events as soon as a second has ended. */
	double kept = 0;
	for (int i = 0; i < 1000 && kept == 0; i++) {
		struct answer a = {0};
		int fd = watch("/api/v1/history?stage=app");
		CU_ASSERT(answer_read(fd, &a));
		CU_ASSERT_EQUAL_FATAL(a.status, 200);
		json_t *json = json_loads(a.body, 0, NULL);
		const json_t *column =
		    json_object_get(json_object_get(json_object_get(json, "stages"), "app"), "in");
		for (size_t k = 0; k < json_array_size(column); k++)
			kept += json_number_value(json_array_get(column, k));
		json_decref(json);
		answer_free(&a);
		close(fd);
		if (kept == 0)
			json_decref(await(watcher, "tick"));
	}
	CU_ASSERT(kept > 0);
	close(watcher);
	close(client);
	admin_stop(admin);
	server_stop(&server);
}

CUNIT_MAIN("admin live", {"work, acts and history", test_work})
