/* SPDX-License-Identifier: MIT */
/* POST /api/v1/save: which overridden knobs are given to the server to be written into the file, and
 * the response for each of its results. */
#include "admin/api/routes.h"

#include <weir/log.h>

#include "admin/admin.h"
#include "cunit_main.h"
#include "made_up.h"

#define PATH "/api/v1/save"

static struct made_up made_up;
static struct reply reply;
static struct weir_override override; /* of threads.max of `disk`; no other knob is overridden */
static bool from_file;

/* The knobs of the last request. `code`: the result; if it is not 0, nothing is written. */
static struct {
	int n, code, n_writes;
	char first[200];
} saves;

static int note_save(
    void *arg, const struct admin_saved *saved, int n, bool preview, char **file, char **changes)
{
	CU_ASSERT_PTR_EQUAL(arg, &saves);
	saves.n = n;
	saves.first[0] = '\0';
	if (n > 0)
		snprintf(saves.first, sizeof(saves.first), "%s %s %s %d", saved[0].owner,
		    saved[0].knob, saved[0].value, saved[0].plain);
	saves.n_writes += saves.code == 0 && !preview;
	*file = strdup("shop.yaml");
	*changes = strdup(saves.code == 0 ? "- a\n+ b\n" : "shop.yaml:3:4: no");
	return saves.code;
}

static const struct admin_reloading reloading = {.arg = &saves, .save = note_save};

static int layers(void *arg, const char *stage, const char *knob, struct weir_override *out)
{
	(void)arg;
	bool here = strcmp(stage, "disk") == 0 && strcmp(knob, "threads.max") == 0;
	*out = here ? override : (struct weir_override){0};
	return 0;
}

static int post(const char *body)
{
	struct admin_source source = made_up_source(&made_up);
	struct process process = {.stat_fd = -1};

	source.reloading = from_file ? &reloading : NULL;
	source.layers = layers;
	reply_fini(&reply);
	routes_answer(&source, &process,
	    &(struct request){.method = "POST",
		.target = PATH,
		.host = "localhost:9900",
		.content_type = "application/json",
		.body = body,
		.n_body = strlen(body)},
	    &reply);
	CU_ASSERT_EQUAL(made_up.n_views, 0);
	return reply.status;
}

static bool body_has(const char *text)
{
	return memmem(reply.body, reply.n, text, strlen(text)) != NULL;
}

static void setup(void)
{
	weir_log_set_fd(-1);
	made_up_init(&made_up);
	from_file = true;
	saves.n = saves.code = saves.n_writes = 0;
	override = (struct weir_override){.overridden = true, .override = "16"};
}

static void test_nothing(void)
{
	setup();
	override.overridden = false;
	CU_ASSERT_EQUAL(post(""), 200);
	CU_ASSERT_EQUAL(saves.n, 0);
	CU_ASSERT_TRUE(body_has("\"saved\":[]") && body_has("\"left\":[]"));
}

static void test_saved(void)
{
	setup();
	CU_ASSERT_EQUAL(post("{\"preview\": true}"), 200);
	CU_ASSERT_EQUAL(saves.n, 1);
	CU_ASSERT_EQUAL(saves.n_writes, 0);
	CU_ASSERT_STRING_EQUAL(saves.first, "disk threads.max 16 0");
	CU_ASSERT_TRUE(body_has("\"preview\":true") && body_has("\"file\":\"shop.yaml\""));
	CU_ASSERT_TRUE(body_has("\"changes\":\"- a\\n+ b\\n\"") && body_has("\"left\":[]"));
	CU_ASSERT_TRUE(body_has("{\"owner\":\"disk\",\"knob\":\"threads.max\",\"value\":\"16\"}"));
	CU_ASSERT_EQUAL(post("{}"), 200);
	CU_ASSERT_EQUAL(saves.n_writes, 1);
	CU_ASSERT_TRUE(body_has("\"preview\":false"));
}

/* A value for a time is not saved, unless a permanent one is below it. */
static void test_for_a_time(void)
{
	setup();
	override.expires_wall_ns = 2000000000LL * 1000000000;
	CU_ASSERT_EQUAL(post("{}"), 200);
	CU_ASSERT_EQUAL(saves.n, 0);
	CU_ASSERT_TRUE(body_has("\"saved\":[]") && body_has("\"value\":\"16\""));
	CU_ASSERT_TRUE(body_has("\"expires_at\":2000000000"));
	override.has_permanent = true;
	snprintf(override.permanent, sizeof(override.permanent), "12");
	CU_ASSERT_EQUAL(post("{}"), 200);
	CU_ASSERT_STRING_EQUAL(saves.first, "disk threads.max 12 0");
	CU_ASSERT_FALSE(body_has("\"left\":[]"));
}

static void test_refused(void)
{
	static const struct {
		int code, status;
	} row[] = {{WEIR_EINVAL, 422}, {WEIR_ESYS, 422}, {WEIR_EBUSY, 409}, {WEIR_ENOMEM, 503}};

	setup();
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		saves.code = row[i].code;
		CU_ASSERT_EQUAL(post("{}"), row[i].status);
		CU_ASSERT_TRUE(body_has("\"detail\":\"shop.yaml:3:4: no\""));
	}
	CU_ASSERT_EQUAL(saves.n_writes, 0);
	saves.code = 0;
	static const char *const bad[] = {"{", "[]", "{\"preview\": 1}", "{\"x\": true}"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_EQUAL(post(bad[i]), 400);
	made_up.no_memory = true;
	CU_ASSERT_EQUAL(post("{}"), 503);
	from_file = false;
	CU_ASSERT_EQUAL(post("{}"), 503);
	CU_ASSERT_TRUE(body_has("not started from a file"));
	reply_fini(&reply);
}

CUNIT_MAIN("saving", {"nothing", test_nothing}, {"saved", test_saved},
    {"for a time", test_for_a_time}, {"refused", test_refused})
