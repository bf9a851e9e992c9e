/* SPDX-License-Identifier: MIT */
/* What a new configuration changes, and what applying it takes. */
#include "loading.h"

#include "diff.h"

#define TWO(work)                                                                                  \
	"name t\nadmin.listen \"127.0.0.1:1\"\ndrain.grace 10s\nstages.web.use http.server\n"      \
	"stages.web.to.request work\n" work

static const char base[] = TWO("stages.work.use burn\nstages.work.with.time 1ms\n"
			       "stages.work.threads.max 4\nstages.work.threads.pin false\n");

static struct config_diff d;

static const struct config_difference *item(const char *path)
{
	for (int i = 0; i < d.n; i++)
		if (strcmp(d.item[i].path, path) == 0)
			return &d.item[i];
	return NULL;
}

static bool has(const char *path, const char *from, const char *to, enum config_effect effect)
{
	const struct config_difference *i = item(path);

	return i && i->effect == effect && !i->from == !from && !i->to == !to &&
	       (!from || strcmp(i->from, from) == 0) && (!to || strcmp(i->to, to) == 0);
}

static const char *sentence(void)
{
	static char text[200];

	config_diff_say(&d, text, sizeof(text));
	return text;
}

static void diff_to(const char *after)
{
	config_diff_free(&d);
	CU_ASSERT_EQUAL_FATAL(config_diff(base, after, &d), 0);
}

static void test_same(void)
{
	diff_to(base);
	CU_ASSERT_EQUAL(d.n, 0);
	CU_ASSERT_TRUE(d.live);
	CU_ASSERT_STRING_EQUAL(sentence(), "nothing changes");
}

static void test_live(void)
{
	diff_to(TWO("stages.work.use burn\nstages.work.with.time 2ms\nstages.work.threads.max 8\n"
		    "stages.work.threads.pin false\n"));
	CU_ASSERT_EQUAL(d.n, 2);
	CU_ASSERT_TRUE(has("stages.work.threads.max", "4", "8", CONFIG_LIVE));
	CU_ASSERT_TRUE(has("stages.work.with.time", "1ms", "2ms", CONFIG_LIVE));
	CU_ASSERT_TRUE(d.live);
	CU_ASSERT_EQUAL(d.n_changed, 1);
	CU_ASSERT_STRING_EQUAL(sentence(), "1 stage changes, 0 connections dropped");
}

static void test_rebuilt(void)
{
	diff_to(TWO("stages.work.use burn\nstages.work.with.time 2ms\nstages.work.threads.max 8\n"
		    "stages.work.threads.pin true\n"));
	CU_ASSERT_TRUE(has("stages.work.threads.pin", "false", "true", CONFIG_REBUILD));
	CU_ASSERT_FALSE(d.live);
	CU_ASSERT_EQUAL(d.n_changed, 0);
	CU_ASSERT_EQUAL(d.n_rebuilt, 1);
	/* A live knob appears or disappears: a stage without threads gets some. */
	diff_to(TWO(
	    "stages.work.use burn\nstages.work.with.time 1ms\nstages.work.threads.pin false\n"));
	CU_ASSERT_TRUE(has("stages.work.threads.max", "4", NULL, CONFIG_REBUILD));
	CU_ASSERT_FALSE(d.live);
	/* Another type has other knobs, so the whole stage counts as one change. */
	diff_to(
	    TWO("stages.work.use delay\nstages.work.with.slow 2ms\nstages.work.threads.max 4\n"));
	CU_ASSERT_TRUE(has("stages.work.use", "burn", "delay", CONFIG_REBUILD));
	CU_ASSERT_EQUAL(d.n_rebuilt, 1);
}

/* Names may have dots, and one name may begin with the whole of another. */
static void test_stages_come_and_go(void)
{
	diff_to(TWO("stages.work.b.use delay\nstages.work.b.threads.max 4\nstages.work.b.to work\n"
		    "stages.work.use burn\nstages.work.with.time 1ms\nstages.work.threads.max 4\n"
		    "stages.work.threads.pin false\n"));
	CU_ASSERT_EQUAL(d.n, 1);
	CU_ASSERT_TRUE(has("stages.work.b", NULL, "delay", CONFIG_ADD));
	CU_ASSERT_EQUAL(d.n_added, 1);
	CU_ASSERT_STRING_EQUAL(sentence(), "1 stage is added, 0 connections dropped");
	diff_to(
	    "name t\nadmin.listen \"127.0.0.1:1\"\ndrain.grace 10s\nstages.web.use http.server\n"
	    "stages.web.to.request work\n");
	CU_ASSERT_EQUAL(d.n, 1);
	CU_ASSERT_TRUE(has("stages.work", "burn", NULL, CONFIG_REMOVE));
	CU_ASSERT_EQUAL(d.n_removed, 1);
}

static void test_server(void)
{
	diff_to("name t\nadmin.listen \"127.0.0.1:2\"\ndrain.grace 3s\nstages.web.use http.server\n"
		"stages.web.to.request work\nstages.work.use burn\nstages.work.with.time 1ms\n"
		"stages.work.threads.max 4\nstages.work.threads.pin false\n");
	CU_ASSERT_TRUE(has("admin.listen", "\"127.0.0.1:1\"", "\"127.0.0.1:2\"", CONFIG_RESTART));
	CU_ASSERT_TRUE(has("drain.grace", "10s", "3s", CONFIG_LIVE));
	CU_ASSERT_TRUE(d.live);
	CU_ASSERT_EQUAL(d.n_restart, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(sentence(), "some changes wait for the next start"));
}

/* The first class that matches wins, so the order of classes is significant. */
static void test_class_order(void)
{
	static const char a[] = "classes.a.b.slo 1s\nclasses.a.b.guarantee auto\n";
	static const char b[] = "classes.c.slo 1s\nclasses.c.guarantee auto\n";
	char ab[200], ba[200];

	snprintf(ab, sizeof(ab), "%s%s", a, b);
	snprintf(ba, sizeof(ba), "%s%s", b, a);
	config_diff_free(&d);
	CU_ASSERT_EQUAL_FATAL(config_diff(ab, ba, &d), 0);
	CU_ASSERT_EQUAL(d.n, 1);
	CU_ASSERT_TRUE(has("classes", "a.b c", "c a.b", CONFIG_REBUILD));
	CU_ASSERT_FALSE(d.live);
}

/* Diff `after` against `before` (a few lines each). Returns the text that the next configuration is
 * compared with. */
static const char *carried(const char *before, const char *after)
{
	static char text[400];

	config_diff_free(&d);
	CU_ASSERT_EQUAL_FATAL(config_diff(before, after, &d), 0);
	char *carry = config_diff_carry(&d, before, after);
	snprintf(text, sizeof(text), "%s", carry);
	free(carry);
	return text;
}

/* A change that waits for a restart is reported again next time. */
static void test_carry(void)
{
	CU_ASSERT_STRING_EQUAL(
	    carried("name t\nadmin.listen a\nx 1\n", "name u\nadmin.listen b\nx 2\n"),
	    "admin.listen a\nname u\nx 2\n");
	CU_ASSERT_TRUE(config_diff_waits(&d, "admin.tokens.a.role"));
	CU_ASSERT_FALSE(config_diff_waits(&d, "stages.a.use"));
}

#define TLS(cert) "admin.tls.cert \"" cert "\"\nadmin.tls.key \"k\"\n"

/* Tokens and the certificate change live while the address stays. If the address changes, or TLS is
 * switched on or off, all admin settings wait for a restart. */
static void test_admin(void)
{
	static const char before[] =
	    "admin.listen a\nadmin.history.file \"\"\n" TLS("c") "admin.tokens.x.role viewer\n";

	CU_ASSERT_STRING_EQUAL(carried(before, "admin.listen a\nadmin.history.file f\n" TLS(
						   "d") "admin.tokens.y.role viewer\n"),
	    "admin.listen a\nadmin.history.file \"\"\n" TLS("d") "admin.tokens.y.role viewer\n");
	CU_ASSERT_TRUE(has("admin.tls.cert", "\"c\"", "\"d\"", CONFIG_LIVE));
	CU_ASSERT_TRUE(has("admin.tokens.x.role", "viewer", NULL, CONFIG_LIVE));
	CU_ASSERT_TRUE(has("admin.tokens.y.role", NULL, "viewer", CONFIG_LIVE));
	CU_ASSERT_TRUE(has("admin.history.file", "\"\"", "f", CONFIG_RESTART));
	CU_ASSERT_TRUE(d.live);
	CU_ASSERT_EQUAL(d.n_restart, 1);
	CU_ASSERT_STRING_EQUAL(carried(before, "admin.listen a\nadmin.history.file \"\"\n" TLS(
						   "") "admin.tokens.x.role operator\n"),
	    before);
	CU_ASSERT_TRUE(has("admin.tokens.x.role", "viewer", "operator", CONFIG_RESTART));
	carried(before, "admin.listen b\nadmin.history.file \"\"\n" TLS("c"));
	CU_ASSERT_TRUE(has("admin.tokens.x.role", "viewer", NULL, CONFIG_RESTART));
	CU_ASSERT_STRING_EQUAL(sentence(),
	    "no stage changes, 0 connections dropped; some changes wait for the next start");
}

static void test_alerts(void)
{
	carried("alerts.a.for 0s\n", "alerts.a.for 1s\nalerts.a.stages.w.enabled false\n");
	CU_ASSERT_TRUE(has("alerts.a.for", "0s", "1s", CONFIG_LIVE));
	CU_ASSERT_TRUE(has("alerts.a.stages.w.enabled", NULL, "false", CONFIG_LIVE));
	CU_ASSERT_TRUE(d.live);
	config_diff_free(&d);
}

CUNIT_MAIN("config diff", {"the same", test_same}, {"live knobs", test_live},
    {"stages made anew", test_rebuilt}, {"stages that come and go", test_stages_come_and_go},
    {"what is the server's", test_server}, {"the order of classes", test_class_order},
    {"what waits for a restart", test_carry}, {"the admin endpoint", test_admin},
    {"alerts", test_alerts})
