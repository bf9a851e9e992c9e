/* SPDX-License-Identifier: MIT */
/* /readyz and /healthz: the status, and the reason in the body. */
#include "admin/api/routes.h"

#include <string.h>

#include "admin/metrics/alerts.h"
#include "cunit_main.h"
#include "made_up.h"

static struct made_up made_up;
static struct process process;
static struct reply reply;
static struct alerts alerts;
static bool unless_shed;

static void setup(void)
{
	made_up_init(&made_up);
	alerts = (struct alerts){0};
	unless_shed = false;
}

/* The response stays in `reply` until the next request. */
static int get(const char *target)
{
	struct admin_source source = made_up_source(&made_up);

	source.alerts = &alerts;
	source.unless_shed = unless_shed;
	reply_fini(&reply);
	routes_answer(&source, &process,
	    &(struct request){.method = "GET", .target = target, .host = "localhost:9900"}, &reply);
	CU_ASSERT_EQUAL(made_up.n_views, 0);
	return reply.status;
}

static bool body_has(const char *text)
{
	return memmem(reply.body, reply.n, text, strlen(text)) != NULL;
}

static void is_problem(int status, const char *detail)
{
	CU_ASSERT_EQUAL(reply.status, status);
	CU_ASSERT_STRING_EQUAL(reply.type, "application/problem+json");
	CU_ASSERT_TRUE(body_has(detail));
}

static void test_health(void)
{
	setup();
	CU_ASSERT_EQUAL(get("/readyz"), 200);
	CU_ASSERT_TRUE(body_has("ready\n"));
	snprintf(made_up.view.stages[MADE_DISK].trouble,
	    sizeof(made_up.view.stages[MADE_DISK].trouble), "it has no thread");
	get("/readyz");
	is_problem(503, "stage 'disk' is not serving properly: it has no thread");
	made_up.view.stages[MADE_DISK].trouble[0] = '\0';
	CU_ASSERT_EQUAL(get("/readyz"), 200);
	made_up.view.ready = false;
	get("/readyz");
	is_problem(503, "it is starting or has stopped");
	CU_ASSERT_TRUE(body_has("\"reason\":\"stopped\",\"stage\":null"));
	made_up.view.started_ns = 0;
	get("/readyz");
	is_problem(503, "the server is starting");
	CU_ASSERT_TRUE(body_has("\"reason\":\"starting\""));
	made_up.view.draining = true;
	get("/readyz");
	is_problem(503, "draining");
	CU_ASSERT_TRUE(body_has("\"reason\":\"draining\""));
	CU_ASSERT_EQUAL(get("/healthz"), 200);
}

/* The highest class is shed: 503 only if the configuration says so, and if no lower class is let in. Paused
 * stages are told of, but do not matter. */
static void test_ready_unless_shed(void)
{
	setup();
	alerts.active[0] = (struct alert){.kind = WEIR_ALERT_TOP_CLASS_SHED,
	    .id = 1,
	    .level = "bad",
	    .text = "5/s of the highest class are shed"};
	alerts.n_active = 1;
	made_up.stage[MADE_DISK].state = "paused";
	CU_ASSERT_EQUAL(get("/readyz"), 200);
	CU_ASSERT_TRUE(
	    body_has("ready\npaused: stage 'disk'\nshed: 5/s of the highest class are shed\n"));
	CU_ASSERT_EQUAL(get("/metrics"), 200);
	CU_ASSERT_TRUE(body_has("weir_ready 1\n"));
	unless_shed = true;
	get("/readyz");
	is_problem(503, "5/s of the highest class are shed");
	CU_ASSERT_TRUE(body_has("\"reason\":\"shed\""));
	CU_ASSERT_EQUAL(get("/metrics"), 200);
	CU_ASSERT_TRUE(body_has("weir_ready 0\n"));
	made_up.view.ready = true; /* a scrape changes its view, which is not a copy here */
	alerts.active[0].level = "warn";
	CU_ASSERT_EQUAL(get("/readyz"), 200);
	alerts.n_active = 0;
	unless_shed = false;
}

static void test_end(void)
{
	reply_fini(&reply);
}

CUNIT_MAIN("ready", {"health", test_health}, {"ready unless shed", test_ready_unless_shed},
    {"end", test_end})
