/* SPDX-License-Identifier: MIT */
/* POST /api/v1/purge. */
#include "admin/api/routes.h"

#include <weir/log.h>

#include "admin/auth/auth.h"
#include "cunit_main.h"
#include "made_up.h"

static struct made_up made_up;
static struct process process;
static struct reply reply;
static char purged[64]; /* what was purged last */

static int64_t purge(void *arg, const char *what, char *why, size_t size)
{
	CU_ASSERT_PTR_EQUAL(arg, &made_up);
	snprintf(purged, sizeof(purged), "%s", what);
	if (strcmp(what, "bad") != 0)
		return 12;
	snprintf(why, size, "'bad' names nothing");
	return WEIR_EINVAL;
}

/* With `able` false, a graph that does not offer the action. Returns the status; the reply must have `text`. */
static int ask(bool able, const char *body, const char *text)
{
	struct admin_source source = made_up_source(&made_up);

	if (able)
		source.purge = purge;
	purged[0] = '\0';
	reply_fini(&reply);
	routes_answer(&source, &process,
	    &(struct request){.method = "POST",
		.target = "/api/v1/purge",
		.host = "localhost:9900",
		.content_type = "application/json",
		.body = body,
		.n_body = strlen(body)},
	    &reply);
	CU_ASSERT_PTR_NOT_NULL(memmem(reply.body, reply.n, text, strlen(text)));
	return reply.status;
}

static void test_purge(void)
{
	static const char *const bad[] = {"", "{}", "[]", "{\"what\": 1}",
	    "{\"what\": \"x\", \"for\": \"10m\"}", "{\"what\": \"x\", \"what\": \"y\"}"};

	weir_log_set_fd(-1);
	made_up_init(&made_up);
	process = (struct process){.stat_fd = -1};
	CU_ASSERT_EQUAL(ask(true, "{\"what\": \"http://a/*\"}", "\"purged\""), 200);
	CU_ASSERT_STRING_EQUAL(purged, "http://a/*");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT_EQUAL(ask(true, bad[i], "the body must be {"), 400);
		CU_ASSERT_STRING_EQUAL(purged, "");
	}
	CU_ASSERT_EQUAL(ask(true, "{\"what\": \"bad\"}", "'bad' names nothing"), 422);
	CU_ASSERT_EQUAL(ask(false, "{\"what\": \"*\"}", "does not offer this action"), 503);
	reply_fini(&reply);
}

CUNIT_MAIN("api purge", {"purge", test_purge})
