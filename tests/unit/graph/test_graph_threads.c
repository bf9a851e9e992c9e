/* SPDX-License-Identifier: MIT */
/* Threads that a stage refuses in its thread_init: at the start, while the pool grows, in a drain.
 * Also a thread that dies a second time while it passes on the events of its first death. */
#include "fixture/graph/probes.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

/* t.picky accepts this many threads, then refuses. */
static atomic_int allowed, refusals;

static int picky_thread_init(struct weir_stage *st)
{
	(void)st;
	if (atomic_fetch_sub(&allowed, 1) > 0)
		return 0;
	atomic_fetch_add(&refusals, 1);
	return WEIR_ESYS;
}

/* Ends its thread at an event with an odd number. */
static void picky_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		if (((struct probe *)ev[i])->seq % 2)
			pthread_exit(NULL);
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

static const struct weir_stage_ops picky_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.picky",
    .summary = "refuses threads",
    .accepts = &probe_type,
    .thread_init = picky_thread_init,
    .handle = picky_handle};

/* Holds its event and passes it on when the graph closes, in the thread of the drain. */
static struct weir_event *_Atomic held;

static void keep_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	CU_ASSERT_EQUAL(n, 1);
	struct weir_event *e = ev[0];
	weir_hold(st, &ev[0]);
	atomic_store(&held, e);
}

static void keep_stop(struct weir_stage *st, int64_t until_ns)
{
	struct weir_event *e = atomic_exchange(&held, NULL);

	(void)until_ns;
	if (e)
		weir_emit(st, 0, &e);
}

static const struct weir_stage_ops keep_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.keep",
    .summary = "holds one event until the end",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .handle = keep_handle,
    .stop = keep_stop};

/* Makes five events of the first one; each leaves alone, through its own outlet. */
static void scatter_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	CU_ASSERT_EQUAL(n, 1);
	if (((struct probe *)ev[0])->seq == 0)
		for (int i = 1; i < 5; i++) {
			struct weir_event *e = &probes[i].ev;
			weir_event_init(e, &probe_type, 1);
			weir_emit(st, i, &e);
		}
	weir_emit(st, 0, &ev[0]);
}

static const struct weir_outlet scatter_outlets[] = {{"out", &probe_type, true, "the first"},
    {"o1", &probe_type, true, ""}, {"o2", &probe_type, true, ""}, {"o3", &probe_type, true, ""},
    {"o4", &probe_type, true, ""}, {.name = NULL}};

static const struct weir_stage_ops scatter_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.scatter",
    .summary = "makes five of one",
    .accepts = &probe_type,
    .outlets = scatter_outlets,
    .handle = scatter_handle};

static void begin(int n_allowed)
{
	prepare(100);
	weir_log_set_fd(-1);
	atomic_store(&allowed, n_allowed);
	atomic_store(&refusals, 0);
}

static void check_start_fails(struct weir_spec *spec)
{
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	struct weir_graph *g = fixture_build(spec);

	CU_ASSERT_EQUAL(weir_graph_start(g, errs), WEIR_ESYS);
	CU_ASSERT_TRUE_FATAL(errs->total >= 1);
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(errs->err[0].text, "stage 'a' (t.picky) refuses threads of 'a'"));
	CU_ASSERT_PTR_NOT_NULL(strstr(errs->err[0].text, weir_error_text(WEIR_ESYS)));
	free(errs);
	weir_graph_free(g);
	weir_log_set_fd(2);
}

static void test_refused_at_the_start(void)
{
	struct weir_spec *spec = weir_spec_new("picky");

	begin(0);
	fixture_set(fixture_stage(spec, "a", "t.picky", NULL), "threads.min", "3");
	check_start_fails(spec);
	CU_ASSERT_EQUAL(atomic_load(&refusals), 3);
}

/* Two of three threads start: none of them remains. */
static void test_refused_in_part(void)
{
	struct weir_spec *spec = weir_spec_new("picky");

	begin(2);
	fixture_set(fixture_stage(spec, "a", "t.picky", NULL), "threads.min", "3");
	check_start_fails(spec);
}

static struct weir_graph *one_thread(void)
{
	struct weir_spec *spec = weir_spec_new("picky");
	struct weir_stage_spec *a = fixture_stage(spec, "a", "t.picky", NULL);

	begin(1);
	fixture_set(a, "threads.max", "2");
	weir_spec_text(&a->threads.policy, "static");
	return fixture_start(spec);
}

/* Whether the journal has the failed threads, with the stage that refuses them. */
static bool failure_is_journalled(struct weir_graph *g)
{
	struct weir_decision d[8];
	int n = weir_graph_decisions(g, d, 8);

	for (int i = 0; i < n; i++)
		if (strcmp(d[i].action, "spawn_failed") == 0)
			return strncmp(d[i].rule, "1 thread(s) could not be created", 32) == 0 &&
			       strstr(d[i].rule, ": stage 'a'");
	return false;
}

static bool in_trouble(struct weir_graph *g)
{
	return strstr(stage_view(g, "a").trouble, "no thread") != NULL;
}

static void test_refused_while_it_runs(void)
{
	struct weir_graph *g = one_thread();
	char why[256];

	CU_ASSERT_EQUAL(weir_graph_set(g, "a", "threads.min", "2", why, sizeof(why)), 0);
	FIXTURE_AWAIT(stage_view(g, "a").thread_failures > 1); /* retried */
	FIXTURE_AWAIT(failure_is_journalled(g));
	CU_ASSERT_STRING_EQUAL(stage_view(g, "a").trouble, "");
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "a"), probes + 1, 1, 1); /* ends the last thread */
	FIXTURE_AWAIT(in_trouble(g));
	FIXTURE_AWAIT(strstr(stage_view(g, "a").trouble, "stage 'a' refuses them (thread_init)"));
	CU_ASSERT_EQUAL(stage_view(g, "a").thread_deaths, 1);
	atomic_store(&allowed, 1000);
	FIXTURE_AWAIT(!in_trouble(g));
	fixture_offer_all(weir_graph_stage(g, "a"), probes + 2, 1, 1);
	FIXTURE_AWAIT(fixture_ended() == 2);
	CU_ASSERT_EQUAL(probes[2].status, WEIR_OK);
	weir_thread_detach();
	finish_graph(g, 0);
	weir_log_set_fd(2);
}

/* Does the log contain `words`? Closes the end of the pipe to which it was written. */
static bool log_says(const int log[2], const char *words)
{
	char text[4096] = "";

	weir_log_set_fd(2);
	close(log[1]);
	ssize_t n = read(log[0], text, sizeof(text) - 1);
	CU_ASSERT(n >= 0);
	close(log[0]);
	return strstr(text, words) != NULL;
}

/* The drain still ends, at once, and events that would need the stage in its thread fail. */
static void drain_refused(int allow_later, int status)
{
	struct weir_spec *spec = weir_spec_new("picky");
	int log[2];

	begin(1000);
	CU_ASSERT_EQUAL_FATAL(pipe2(log, O_CLOEXEC), 0);
	weir_log_set_fd(log[1]);
	fixture_set(fixture_stage(spec, "keep", "t.keep", "a"), "threads.max", "1");
	fixture_stage(spec, "a", "t.picky", NULL)->inlined = true;
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "keep"), probes, 1, 1);
	FIXTURE_AWAIT(stage_view(g, "keep").held == 1);
	weir_thread_detach();
	atomic_store(&allowed, allow_later);
	finish_graph(g, 0);
	check_each_once(1);
	CU_ASSERT_EQUAL(probes[0].status, status);
	CU_ASSERT_EQUAL(atomic_load(&refusals), allow_later == 0 ? 2 : 0);
	CU_ASSERT_EQUAL(log_says(log, "stage 'a' (t.picky) refuses thread 'drain' (thread_init)"),
	    allow_later == 0);
}

static void test_refused_in_a_drain(void)
{
	drain_refused(0, WEIR_EFAILED);
	drain_refused(1, WEIR_OK);
}

/* The events that the dying thread passes on end it again and again. */
static void test_death_after_death(void)
{
	struct weir_spec *spec = weir_spec_new("deaths");
	struct weir_stage_spec *a = fixture_stage(spec, "a", "t.pass", "b");

	begin(1000);
	fixture_set(a, "threads.max", "1");
	fixture_set(a, "cohort.max", "1");
	struct weir_stage_spec *b = fixture_stage(spec, "b", "t.scatter", "c");
	b->inlined = true;
	for (int i = 1; i < 5; i++)
		CU_ASSERT_EQUAL_FATAL(weir_spec_link(b, scatter_outlets[i].name, "c", false), 0);
	fixture_stage(spec, "c", "t.picky", NULL)->inlined = true;
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "a"), probes, 1, 1);
	FIXTURE_AWAIT(fixture_ended() == 5);
	check_each_once(5);
	FIXTURE_AWAIT(stage_view(g, "a").thread_deaths == 2);
	CU_ASSERT_EQUAL(probes[0].status, WEIR_OK);
	CU_ASSERT_EQUAL(probes[1].status, WEIR_EDIED);
	CU_ASSERT_EQUAL(probes[3].status, WEIR_EDIED);
	fixture_offer_all(weir_graph_stage(g, "a"), probes + 6, 1, 1);
	FIXTURE_AWAIT(fixture_ended() == 6);
	weir_thread_detach();
	finish_graph(g, 0);
	weir_log_set_fd(2);
}

/* Runs in its own process, which it ends. */
static void drain_that_dies(int say)
{
	struct weir_spec *spec = weir_spec_new("picky");

	begin(1000);
	weir_log_set_fd(say);
	fixture_set(fixture_stage(spec, "keep", "t.keep", "a"), "threads.max", "1");
	fixture_stage(spec, "a", "t.picky", NULL)->inlined = true;
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "keep"), probes + 1, 1, 1);
	FIXTURE_AWAIT(stage_view(g, "keep").held == 1);
	weir_thread_detach();
	weir_graph_drain(g, NS_PER_S, NULL);
}

static void test_death_in_a_drain(void)
{
	int log[2], status;
	char text[4096] = "";
	const struct rlimit none = {0, 0};

	CU_ASSERT_EQUAL_FATAL(pipe2(log, O_CLOEXEC), 0);
	pid_t pid = fork();
	CU_ASSERT_NOT_EQUAL_FATAL(pid, -1);
	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &none);
		drain_that_dies(log[1]);
		_exit(0);
	}
	close(log[1]);
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	CU_ASSERT(read(log[0], text, sizeof(text) - 1) > 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "ended the draining thread"));
	close(log[0]);
}

static void test_prepare(void)
{
	fixture_register(&pass_ops);
	fixture_register(&picky_ops);
	fixture_register(&keep_ops);
	fixture_register(&scatter_ops);
}

CUNIT_MAIN("graph threads", {"types are known", test_prepare},
    {"refused at the start", test_refused_at_the_start}, {"refused in part", test_refused_in_part},
    {"refused while it runs", test_refused_while_it_runs},
    {"refused in a drain", test_refused_in_a_drain}, {"death after death", test_death_after_death},
    {"death in a drain", test_death_in_a_drain})
