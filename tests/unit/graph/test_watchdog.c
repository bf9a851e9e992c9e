/* SPDX-License-Identifier: MIT */
/* The watchdog: a handler that the test holds is reported once, with its stack, and the pool grows
 * around it. The log goes to a pipe that the test reads. Every step is waited for, without fixed
 * delays. */
#include "fixture/graph/probes.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/stack.h"

static int log_pipe[2];
static char log_text[65536];
static size_t log_len;

static void log_begin(void)
{
	CU_ASSERT_EQUAL_FATAL(pipe2(log_pipe, O_NONBLOCK | O_CLOEXEC), 0);
	weir_log_set_fd(log_pipe[1]);
	log_len = 0;
	log_text[0] = '\0';
}

static void log_end(void)
{
	weir_log_set_fd(2);
	close(log_pipe[0]);
	close(log_pipe[1]);
}

/* Does the log so far contain `word`? */
static bool logged(const char *word)
{
	ssize_t n = read(log_pipe[0], log_text + log_len, sizeof(log_text) - 1 - log_len);

	log_len += n > 0 ? (size_t)n : 0;
	log_text[log_len] = '\0';
	return strstr(log_text, word) != NULL;
}

static int times_logged(const char *word)
{
	int n = 0;

	for (const char *at = log_text; (at = strstr(at, word)); at++)
		n++;
	return n;
}

static struct weir_spec *gate_spec(const char *stuck, const char *policy, const char *max)
{
	struct weir_spec *spec = weir_spec_new("watch");
	struct weir_stage_spec *s = fixture_stage(spec, "gate", "t.gate", NULL);

	fixture_set(s, "threads.max", max);
	fixture_set(s, "threads.stuck", stuck);
	weir_spec_text(&s->threads.policy, policy);
	fixture_set(s, "cohort.max", "1");
	prepare(100);
	atomic_store(&probe_gate, 0);
	return spec;
}

static void open_and_finish(struct weir_graph *g, uint64_t n)
{
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(fixture_ended() == n);
	weir_thread_detach();
	finish_graph(g, 0);
	log_end();
}

static void test_reported_once_and_grown_around(void)
{
	log_begin();
	struct weir_graph *g = fixture_start(gate_spec("20ms", "seda", "2"));
	struct weir_decision d[8];

	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "gate"), probes, 1, 1);
	FIXTURE_AWAIT(stage_view(g, "gate").stuck == 1);
	FIXTURE_AWAIT(stage_view(g, "gate").threads_target == 2);
	FIXTURE_AWAIT(weir_graph_decisions(g, d, 8) == 1);
	CU_ASSERT_STRING_EQUAL(d[0].actor, "watchdog");
	CU_ASSERT_STRING_EQUAL(d[0].action, "stuck");
	CU_ASSERT_STRING_EQUAL(d[0].stage, "gate");
	CU_ASSERT_EQUAL(strncmp(d[0].rule, "gate handles probe in thread gate/0 for ", 40), 0);
	CU_ASSERT_TRUE(d[0].from == 1 && d[0].to == 2);
	/* The second call is another occurrence. By the time it is reported, the first has been
	 * checked once more. */
	fixture_offer_all(weir_graph_stage(g, "gate"), probes + 1, 1, 1);
	FIXTURE_AWAIT(stage_view(g, "gate").stuck == 2);
	FIXTURE_AWAIT(logged("gate/1"));
	CU_ASSERT_EQUAL(times_logged("is stuck on events of type 'probe'"), 2);
	CU_ASSERT_EQUAL(times_logged("in thread 'gate/0'"), 1);
	CU_ASSERT_TRUE(logged("stage 'gate' (t.gate): a handler is stuck"));
	struct weir_stuck_view call = stage_view(g, "gate").stuck_call;
	CU_ASSERT_EQUAL(call.id, 1);
	CU_ASSERT_TRUE(call.runs);
	CU_ASSERT_STRING_EQUAL(call.thread, "gate/0");
	CU_ASSERT_STRING_EQUAL(call.type, "probe");
	CU_ASSERT_TRUE(call.wall_ns > 0 && call.for_ns > 20 * NS_PER_MS);
	/* gate_handle is static in another file */
	CU_ASSERT_EQUAL(strstr(call.stack, "gate_handle (test_watchdog+0x") != NULL,
	    logged("gate_handle (test_watchdog+0x"));
	CU_ASSERT_TRUE(call.stack[0] == '\0' || logged("gate_handle (test_watchdog+0x"));
	/* A stack is asked for with the first report only. The wait for it is short, so a busy
	 * machine may log that there is none; test_stack_of_a_thread verifies that stacks work. */
	CU_ASSERT_TRUE((times_logged("  #0 ") == 1) != (times_logged("  no stack: ") == 1));
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(!stage_view(g, "gate").stuck_call.runs);
	CU_ASSERT_EQUAL(stage_view(g, "gate").stuck_call.id, 1);
	open_and_finish(g, 2);
}

/* The watchdog is off for `gate`. `b` is watched and its later call is reported, so a report for
 * gate would have come before. */
static void test_off_and_static(void)
{
	log_begin();
	struct weir_spec *spec = gate_spec("0", "seda", "2");
	struct weir_stage_spec *b = fixture_stage(spec, "b", "t.gate", NULL);

	fixture_set(b, "threads.stuck", "50ms");
	fixture_set(b, "threads.max", "4");
	weir_spec_text(&b->threads.policy, "static");
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "gate"), probes, 1, 1);
	FIXTURE_AWAIT(stage_view(g, "gate").longest_running_ns > 0);
	fixture_offer_all(weir_graph_stage(g, "b"), probes + 1, 1, 1);
	FIXTURE_AWAIT(stage_view(g, "b").stuck == 1);
	CU_ASSERT_EQUAL(stage_view(g, "gate").stuck, 0);
	FIXTURE_AWAIT(logged("'b/0'"));
	CU_ASSERT_EQUAL(stage_view(g, "b").threads_target, 1);
	open_and_finish(g, 2);
}

/* ---- stacks ---- */

static atomic_int target_tid, leave;

static void *target_main(void *arg)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, STACK_SIGNAL);
	if (arg)
		pthread_sigmask(SIG_BLOCK, &set, NULL);
	atomic_store(&target_tid, (int)gettid());
	FIXTURE_AWAIT(atomic_load(&leave));
	return NULL;
}

static pthread_t target_start(bool deaf)
{
	pthread_t t;

	atomic_store(&target_tid, 0);
	atomic_store(&leave, 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, target_main, deaf ? &t : NULL), 0);
	FIXTURE_AWAIT(atomic_load(&target_tid) != 0);
	return t;
}

static void target_stop(pthread_t t)
{
	atomic_store(&leave, 1);
	pthread_join(t, NULL);
}

static void test_stack_of_a_thread(void)
{
	struct stack stack;
	char line[256];

	CU_ASSERT_TRUE_FATAL(stack_prepare() && stack_prepare());
	pthread_t t = target_start(false);
	CU_ASSERT_TRUE_FATAL(stack_ask(atomic_load(&target_tid)));
	CU_ASSERT_FALSE(stack_ask(atomic_load(&target_tid))); /* one at a time */
	CU_ASSERT_TRUE_FATAL(stack_await(&stack, 60 * NS_PER_S));
	CU_ASSERT_TRUE(stack.n >= 3);
	/* target_main is not exported: its name is in the symbol table only */
	struct symbol_file file = {0};
	bool named = false;
	for (int i = 0; i < stack.n; i++) {
		stack_line(&stack, i, &file, line, sizeof(line));
		named = named || strncmp(line, "target_main (test_watchdog+0x", 29) == 0;
	}
	symbol_file_close(&file);
	CU_ASSERT_TRUE(named);
	target_stop(t);
}

/* For a moment after the join, the kernel may still know the thread and accept a signal for it. */
static bool is_gone(int tid)
{
	struct stack stack;

	if (!stack_ask(tid))
		return true;
	CU_ASSERT_FALSE(stack_await(&stack, NS_PER_MS));
	return false;
}

static void test_deaf_thread_gives_none(void)
{
	struct stack stack;
	pthread_t t = target_start(true);

	CU_ASSERT_TRUE_FATAL(stack_ask(atomic_load(&target_tid)));
	CU_ASSERT_FALSE(stack_await(&stack, NS_PER_MS));
	target_stop(t);
	FIXTURE_AWAIT(is_gone(atomic_load(&target_tid)));
	t = target_start(false);
	CU_ASSERT_TRUE_FATAL(stack_ask(atomic_load(&target_tid)));
	CU_ASSERT_TRUE(stack_await(&stack, 60 * NS_PER_S));
	target_stop(t);
}

static void test_prepare(void)
{
	fixture_register(&gate_ops);
}

CUNIT_MAIN("watchdog", {"types are known", test_prepare},
    {"reported once, and grown around", test_reported_once_and_grown_around},
    {"off, and static", test_off_and_static}, {"stack of a thread", test_stack_of_a_thread},
    {"a deaf thread gives none", test_deaf_thread_gives_none})
