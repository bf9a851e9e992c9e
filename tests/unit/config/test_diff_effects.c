/* SPDX-License-Identifier: MIT */
/* How each kind of difference takes effect, and the sentence that sums them up. */
#include "diff.h"
#include "loading.h"

static struct config_diff d;

static void diff(const char *before, const char *after)
{
	types_register();
	config_diff_free(&d);
	CU_ASSERT_EQUAL_FATAL(config_diff(before, after, &d), 0);
}

/* The differences, one a line: path, from, to, effect, length of the stage's name. */
static const char *items(void)
{
	static char text[4096];
	int n = 0;

	text[0] = '\0';
	for (int i = 0; i < d.n; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s [%s] [%s] %s %d\n",
		    d.item[i].path, d.item[i].from ? d.item[i].from : "-",
		    d.item[i].to ? d.item[i].to : "-", config_effect_word(d.item[i].effect),
		    d.item[i].stage_n);
	return text;
}

static const char *sentence(void)
{
	static char text[200];

	config_diff_say(&d, text, sizeof(text));
	return text;
}

/* One value changes in a stage of type t.work, or outside of stages. */
static void one(const char *path, enum config_effect effect)
{
	char before[200], after[200];

	snprintf(before, sizeof(before), "stages.w.use t.work\n%s 1\n", path);
	snprintf(after, sizeof(after), "stages.w.use t.work\n%s 2\n", path);
	diff(before, after);
	CU_ASSERT_EQUAL(d.n, 1);
	CU_ASSERT_STRING_EQUAL(d.item[0].path, path);
	CU_ASSERT_EQUAL(d.item[0].effect, effect);
	CU_ASSERT_EQUAL(d.item[0].stage_n, strncmp(path, "stages.w.", 9) == 0 ? 1 : 0);
	CU_ASSERT_EQUAL(d.live, effect == CONFIG_LIVE || effect == CONFIG_RESTART);
	CU_ASSERT_EQUAL(d.n_restart, effect == CONFIG_RESTART);
	if (effect != CONFIG_LIVE)
		CU_ASSERT_EQUAL(d.n_changed, 0);
}

static void test_effects(void)
{
	static const char *const live[] = {"drain.grace", "overload.mode", "payloads.memory",
	    "payloads.family_memory", "log.level", "alerts.a.for", "admin.hosts", "admin.tls.key",
	    "admin.tokens.x.role", "stages.w.threads.max", "stages.w.queue.limit",
	    "stages.w.admission.mode", "stages.w.slo", "stages.w.with.size", "classes.a.slo"};
	static const char *const rebuild[] = {"name", "drains.x", "payloadsx", "overloads.x",
	    "logs.x", "alertsx", "adminx", "trace.sample", "classes.a.b.slo",
	    "groups.g.threads.max", "plugin.upper", "username", "stages.w.mode", "stages.w.key",
	    "stages.w.threads", "stages.w.threads.pin", "stages.w.threads.max.x",
	    "stages.w.to.next", "stages.w.with.time", "stages.w.with.none",
	    "stages.w.with.limit.rate", "stages.w.with.size.x", "stages.w.thread", "stages.x.slo",
	    "stagesx"};
	static const char *const restart[] = {
	    "user", "admin.listen", "admin.history.file", "admin.history.x"};

	for (size_t i = 0; i < sizeof(live) / sizeof(live[0]); i++)
		one(live[i], CONFIG_LIVE);
	for (size_t i = 0; i < sizeof(rebuild) / sizeof(rebuild[0]); i++)
		one(rebuild[i], CONFIG_REBUILD);
	for (size_t i = 0; i < sizeof(restart) / sizeof(restart[0]); i++)
		one(restart[i], CONFIG_RESTART);
	/* of a type that is not known, no knob is live */
	diff("stages.w.use gone\nstages.w.with.size 1\n",
	    "stages.w.use gone\nstages.w.with.size 2\n");
	CU_ASSERT_EQUAL(d.item[0].effect, CONFIG_REBUILD);
	config_diff_free(&d);
}

/* A stage with several differences counts once, by the strongest of them. */
static void test_counts(void)
{
#define SERVER(live, fixed)                                                                        \
	"stages.a.use t.work\nstages.a.queue.limit " live "\nstages.a.threads.max " live           \
	"\nstages.b.use t.work\nstages.b.key " fixed "\nstages.b.queue.limit " live                \
	"\nstages.b.with.size " live "\nstages.b.x.use t.work\nstages.b.x.queue.limit " live       \
	"\nstages.c.use t.sink\n"
	diff(SERVER("1", "1"), SERVER("2", "2"));
	CU_ASSERT_STRING_EQUAL(items(), "stages.a.queue.limit [1] [2] live 1\n"
					"stages.a.threads.max [1] [2] live 1\n"
					"stages.b.key [1] [2] rebuild 1\n"
					"stages.b.queue.limit [1] [2] live 1\n"
					"stages.b.with.size [1] [2] live 1\n"
					"stages.b.x.queue.limit [1] [2] live 3\n");
	CU_ASSERT_TRUE(d.n_changed == 2 && d.n_rebuilt == 1 && d.n_added == 0 && d.n_removed == 0);
	CU_ASSERT_STRING_EQUAL(
	    sentence(), "2 stages change, 1 stage is rebuilt, 0 connections dropped");
	diff(
	    SERVER("1", "1"), "stages.d.use t.work\nstages.d.queue.limit 1\nstages.e.use t.sink\n");
	CU_ASSERT_STRING_EQUAL(items(), "stages.a [t.work] [-] remove 1\n"
					"stages.b [t.work] [-] remove 1\n"
					"stages.b.x [t.work] [-] remove 3\n"
					"stages.c [t.sink] [-] remove 1\n"
					"stages.d [-] [t.work] add 1\n"
					"stages.e [-] [t.sink] add 1\n");
	CU_ASSERT_TRUE(d.n_changed == 0 && d.n_rebuilt == 0 && d.n_added == 2 && d.n_removed == 4);
	CU_ASSERT_STRING_EQUAL(
	    sentence(), "2 stages are added, 4 stages are removed, 0 connections dropped");
	config_diff_free(&d);
}

static void test_sentences(void)
{
	d.n = 1;
	d.n_plugins = d.n_changed = d.n_rebuilt = d.n_added = d.n_removed = 1;
	CU_ASSERT_STRING_EQUAL(sentence(),
	    "1 plug-in changes, 1 stage changes, 1 stage is rebuilt, 1 stage is added, "
	    "1 stage is removed, 0 connections dropped");
	d.n_plugins = d.n_changed = d.n_rebuilt = d.n_added = d.n_removed = 2;
	d.n_restart = 1;
	CU_ASSERT_STRING_EQUAL(sentence(),
	    "2 plug-ins change, 2 stages change, 2 stages are rebuilt, 2 stages are added, "
	    "2 stages are removed, 0 connections dropped; some changes wait for the next start");
	d = (struct config_diff){.n = 1};
	CU_ASSERT_STRING_EQUAL(sentence(), "every stage is rebuilt, 0 connections dropped");
	d.live = true;
	CU_ASSERT_STRING_EQUAL(sentence(), "no stage changes, 0 connections dropped");
	d.n = 0;
	CU_ASSERT_STRING_EQUAL(sentence(), "nothing changes");
}

/* A sentence that does not fit is cut off; no byte behind the buffer is written. */
static void test_short_buffers(void)
{
	char whole[200], part[200];

	d = (struct config_diff){.n = 1, .n_changed = 2, .n_removed = 1, .n_restart = 1};
	config_diff_say(&d, whole, sizeof(whole));
	size_t n = strlen(whole);
	for (size_t size = 1; size <= n + 1; size++) {
		memset(part, '#', sizeof(part));
		config_diff_say(&d, part, size);
		CU_ASSERT_EQUAL(strlen(part), size - 1);
		CU_ASSERT_EQUAL(strncmp(part, whole, size - 1), 0);
		CU_ASSERT_EQUAL(part[size], '#');
	}
	d = (struct config_diff){0};
}

/* Classes: their order is a value of its own; a class that comes or goes changes it. */
static void test_classes(void)
{
#define CLASS(name) "classes." name ".slo 1s\nclasses." name ".guarantee auto\n"
	diff(CLASS("a") CLASS("b.c"), CLASS("a") CLASS("b.c"));
	CU_ASSERT_EQUAL(d.n, 0);
	diff(CLASS("a"), CLASS("a") CLASS("b.c"));
	CU_ASSERT_STRING_EQUAL(items(), "classes [a] [a b.c] rebuild 0\n"
					"classes.b.c.guarantee [-] [auto] rebuild 0\n"
					"classes.b.c.slo [-] [1s] rebuild 0\n");
	diff("", CLASS("a"));
	CU_ASSERT_STRING_EQUAL(items(), "classes [] [a] rebuild 0\n"
					"classes.a.guarantee [-] [auto] rebuild 0\n"
					"classes.a.slo [-] [1s] rebuild 0\n");
	CU_ASSERT_FALSE(d.live);
	CU_ASSERT_STRING_EQUAL(sentence(), "every stage is rebuilt, 0 connections dropped");
	config_diff_free(&d);
}

/* Lines: a value may be empty or contain spaces, and the last line end may be missing. */
static void test_lines(void)
{
	diff("a 1 2\nb \nc", "a 1  2\nb\nc 3");
	CU_ASSERT_STRING_EQUAL(items(), "a [1 2] [1  2] rebuild 0\nc [] [3] rebuild 0\n");
	diff("", "");
	CU_ASSERT_EQUAL(d.n, 0);
	CU_ASSERT_TRUE(d.live);
	diff("b 1\na 1\n", "a 1\nb 1");
	CU_ASSERT_EQUAL(d.n, 0);
	diff("plugin.a x (1)\nplugin.b x (1)\n", "plugin.a x (2)\nplugin.c x (1)\n");
	CU_ASSERT_EQUAL(d.n_plugins, 3);
	CU_ASSERT_STRING_EQUAL(sentence(), "3 plug-ins change, 0 connections dropped");
	config_diff_free(&d);
	CU_ASSERT_TRUE(d.n == 0 && !d.item && !d.texts[0] && !d.texts[1]);
}

CUNIT_MAIN("diff effects", {"effects", test_effects}, {"counts", test_counts},
    {"sentences", test_sentences}, {"short buffers", test_short_buffers}, {"classes", test_classes},
    {"lines", test_lines})
