/* SPDX-License-Identifier: MIT */
/* Loops in a real graph: the order of an iteration; mail from other threads and from the loop
 * itself, each followed by a turn_end; watches that are removed while they are ready; timers, wake
 * and stop. */
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/io.h>

#include "cunit_main.h"
#include "fixture/graph/graph.h"

#include "base/clock.h"
#include "event/mailbox.h"

/* Test callbacks that run in the loop's thread; all NULL by default. */
static struct {
	void (*start)(struct weir_loop *loop);
	void (*turn_end)(struct weir_loop *loop);
	int start_rc;
} hook;

static struct weir_loop *the_loop;
static atomic_int mails, turns, stops;
static atomic_int mails_at_turn_end; /* mail that had arrived by some turn_end */

static int on_start(struct weir_loop *loop)
{
	the_loop = loop;
	if (hook.start)
		hook.start(loop);
	return hook.start_rc;
}

static void on_stop(struct weir_loop *loop)
{
	(void)loop;
	atomic_fetch_add(&stops, 1);
}

static void on_mail(struct weir_loop *loop, struct weir_event *list)
{
	CU_ASSERT(weir_loop_is_mine(loop));
	while (list) {
		list = list->next;
		atomic_fetch_add(&mails, 1);
	}
}

static void on_turn_end(struct weir_loop *loop)
{
	if (hook.turn_end)
		hook.turn_end(loop);
	atomic_store(&mails_at_turn_end, atomic_load(&mails));
	atomic_fetch_add(&turns, 1);
}

static const struct weir_loop_ops loop_ops = {
    .start = on_start, .stop = on_stop, .mail = on_mail, .turn_end = on_turn_end};

/* ---- a source that consists only of a loop ---- */

static int source_start(struct weir_stage *st, struct weir_err *err)
{
	struct weir_loop *loop;

	(void)err;
	return weir_loop_start(st, 0, &loop_ops, &hook, &loop);
}

static void source_fini(struct weir_stage *st)
{
	(void)st;
	if (!the_loop)
		return;
	weir_loop_stop(the_loop);
	weir_loop_join(the_loop);
	the_loop = NULL;
}

static const struct weir_outlet source_outlets[] = {
    {"out", &probe_type, false, "probes"}, {.name = NULL}};

static const struct weir_stage_ops source_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_SOURCE,
    .name = "t.loop",
    .summary = "runs a loop",
    .outlets = source_outlets,
    .start = source_start,
    .fini = source_fini};

static _Atomic(struct weir_loop *) handled_in; /* the loop of the thread that last handled */
static struct weir_timer here_timer;
static atomic_int here_fired;

static void here_fire(struct weir_loop *loop, struct weir_timer *t)
{
	CU_ASSERT_PTR_EQUAL(t, &here_timer);
	CU_ASSERT_PTR_EQUAL(loop, weir_loop_here());
	atomic_fetch_add(&here_fired, 1);
}

/* A stage that finishes every event in its own thread, so that the event returns to its source by
 * mail. In the thread of a loop it also sets a timer. */
static void home_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	struct weir_loop *here = weir_loop_here();

	atomic_store(&handled_in, here);
	here_timer.fire = here_fire;
	if (here)
		weir_timer_set(here, &here_timer, weir_now_ns(st) + NS_PER_MS);
	for (int i = 0; i < n; i++)
		weir_event_finish(&ev[i], WEIR_OK);
}

static void send_home(struct probe *p, int status)
{
	(void)status;
	weir_loop_send(the_loop, &p->ev);
}

static const struct weir_stage_ops home_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.home",
    .summary = "sends events home",
    .accepts = &probe_type,
    .handle = home_handle};

static struct weir_graph *begin(bool inlined)
{
	static bool registered;
	struct weir_spec *spec = weir_spec_new("test");

	if (!registered) {
		fixture_register(&source_ops);
		fixture_register(&home_ops);
	}
	registered = true;
	fixture_reset();
	fixture_on_finish = send_home;
	atomic_store(&mails, 0);
	atomic_store(&mails_at_turn_end, 0);
	atomic_store(&turns, 0);
	atomic_store(&stops, 0);
	fixture_stage(spec, "loop", "t.loop", "home");
	fixture_stage(spec, "home", "t.home", NULL)->inlined = inlined;
	return fixture_build(spec);
}

static int start(struct weir_graph *g)
{
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	int rc = weir_graph_start(g, errs);

	free(errs);
	return rc;
}

static void end(struct weir_graph *g)
{
	struct weir_drain_report report;

	weir_graph_drain(g, 5000000000LL, &report);
	CU_ASSERT_EQUAL(report.law_error, 0);
	weir_graph_free(g);
	CU_ASSERT_EQUAL(atomic_load(&stops), 1);
	memset(&hook, 0, sizeof(hook));
}

/* ---- mail ---- */

enum { EVENTS = 1000 };

static struct probe probes[EVENTS];
static atomic_int emitted;

/* Emit a few events per iteration until all are out. */
static void emit_some(struct weir_loop *loop)
{
	for (int i = 0; i < 10 && atomic_load(&emitted) < EVENTS; i++) {
		struct weir_event *ev = &probes[atomic_fetch_add(&emitted, 1)].ev;
		weir_event_init(ev, &probe_type, weir_loop_now_ns(loop));
		weir_emit(weir_loop_stage(loop), 0, &ev);
	}
	weir_loop_expect(loop, atomic_load(&emitted) - atomic_load(&mails));
}

/* Every event returns, and each arrival is followed by a turn_end. */
static void check_mail(bool inlined)
{
	struct weir_graph *g = begin(inlined);

	memset(probes, 0, sizeof(probes));
	atomic_store(&emitted, 0);
	atomic_store(&here_fired, 0);
	memset(&here_timer, 0, sizeof(here_timer));
	hook.turn_end = emit_some;
	CU_ASSERT_EQUAL_FATAL(start(g), 0);
	weir_loop_wake(the_loop);
	FIXTURE_AWAIT(atomic_load(&mails_at_turn_end) == EVENTS);
	CU_ASSERT_PTR_EQUAL(atomic_load(&handled_in), inlined ? the_loop : NULL);
	CU_ASSERT_PTR_NULL(weir_loop_here());
	FIXTURE_AWAIT(!inlined || atomic_load(&here_fired) > 0);
	end(g);
}

static void test_mail(void)
{
	check_mail(false);
}

static void test_mail_inline(void)
{
	check_mail(true);
}

/* ---- watches ---- */

static struct pair {
	struct weir_watch watch; /* must be the first member */
	int other, ready;
} pairs[2];

/* The callback that runs first removes the other watch, which became ready in the same
 * iteration. */
static void on_ready(struct weir_loop *loop, struct weir_watch *w, uint32_t events)
{
	struct pair *p = (struct pair *)w, *other = &pairs[p == &pairs[0]];
	char c;

	CU_ASSERT(events & EPOLLIN);
	CU_ASSERT_EQUAL(read(w->fd, &c, 1), 1);
	p->ready++;
	weir_loop_del(loop, &other->watch);
}

static void add_pairs(struct weir_loop *loop)
{
	for (int i = 0; i < 2; i++) {
		int fd[2];
		CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
		pairs[i] = (struct pair){.watch = {on_ready, fd[0]}, .other = fd[1]};
		CU_ASSERT_EQUAL(weir_loop_add(loop, &pairs[i].watch, EPOLLIN), 0);
		CU_ASSERT_EQUAL(write(fd[1], "x", 1), 1);
	}
}

static void test_del_while_ready(void)
{
	struct weir_graph *g = begin(true);

	hook.start = add_pairs;
	CU_ASSERT_EQUAL_FATAL(start(g), 0);
	FIXTURE_AWAIT(atomic_load(&turns) > 0);
	end(g); /* joins the loop's thread, so its writes are visible here */
	CU_ASSERT_EQUAL(pairs[0].ready + pairs[1].ready, 1);
	for (int i = 0; i < 2; i++) {
		close(pairs[i].watch.fd);
		close(pairs[i].other);
	}
}

static void test_bad_descriptor(void)
{
	struct weir_graph *g = begin(true);
	struct weir_watch w = {.ready = on_ready, .fd = -1};

	CU_ASSERT_EQUAL_FATAL(start(g), 0);
	CU_ASSERT_EQUAL(weir_loop_add(the_loop, &w, EPOLLIN), WEIR_ESYS);
	end(g);
}

/* ---- timers ---- */

static struct weir_timer timers[2];
static int64_t set_ns;
static atomic_llong late_ns = -1;
static atomic_int never;

static void on_timer(struct weir_loop *loop, struct weir_timer *t)
{
	(void)t;
	atomic_store(&late_ns, weir_loop_now_ns(loop) - set_ns - 30000000);
}

static void on_never(struct weir_loop *loop, struct weir_timer *t)
{
	(void)loop;
	(void)t;
	atomic_fetch_add(&never, 1);
}

static void set_timers(struct weir_loop *loop)
{
	set_ns = weir_loop_now_ns(loop);
	timers[0] = (struct weir_timer){.fire = on_timer};
	timers[1] = (struct weir_timer){.fire = on_never};
	weir_timer_set(loop, &timers[1], set_ns + 10000000);
	weir_timer_set(loop, &timers[0], set_ns + 30000000);
	weir_timer_cancel(loop, &timers[1]);
}

static void test_timers(void)
{
	struct weir_graph *g = begin(true);

	hook.start = set_timers;
	CU_ASSERT_EQUAL_FATAL(start(g), 0);
	FIXTURE_AWAIT(atomic_load(&late_ns) >= 0);
	CU_ASSERT_EQUAL(atomic_load(&never), 0);
	end(g);
}

/* ---- many mailboxes and loops ---- */

/* More mailboxes than a thread has outboxes for, initially and at most. */
#define MANY (MAILBOX_SET * MAILBOX_SETS + 40)

static void no_wake(struct mailbox *mb)
{
	(void)mb;
}

/* Two events to each mailbox, in order, from one thread; ids are released. */
static void test_many_mailboxes(void)
{
	struct mailbox *mb = aligned_alloc(WEIR_CACHE_LINE, MANY * sizeof(*mb));
	struct probe *p = calloc((size_t)2 * MANY, sizeof(*p));
	struct weir_graph *g = begin(true);
	int wrong = 0;

	CU_ASSERT_EQUAL_FATAL(start(g), 0);
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "sender"), 0);
	for (int i = 0; i < MANY; i++)
		mailbox_init(&mb[i], no_wake);
	CU_ASSERT_EQUAL(mb[MANY - 1].id, -1);
	for (int i = 0; i < 2 * MANY; i++)
		mailbox_send(&mb[i % MANY], &p[i].ev);
	weir_thread_flush();
	for (int i = 0; i < MANY; i++) {
		struct weir_event *ev = mailbox_take(&mb[i]);
		wrong += ev != &p[i].ev || ev->next != &p[i + MANY].ev || ev->next->next != NULL;
		mailbox_fini(&mb[i]);
	}
	CU_ASSERT_EQUAL(wrong, 0);
	mailbox_init(&mb[0], no_wake);
	CU_ASSERT_TRUE(mb[0].id >= 0 && mb[0].id < MAILBOX_SET);
	mailbox_fini(&mb[0]);
	weir_thread_detach();
	end(g);
	free(mb);
	free(p);
}

/* For example, two servers with 20 I/O threads each. */
#define LOOPS 40

struct many {
	struct weir_loop *loop[LOOPS];
};

static int many_start(struct weir_stage *st, struct weir_err *err)
{
	struct many *m = weir_state(st);
	int rc = 0;

	(void)err;
	for (int i = 0; rc == 0 && i < LOOPS; i++)
		rc = weir_loop_start(st, i, &loop_ops, NULL, &m->loop[i]);
	return rc;
}

static void many_fini(struct weir_stage *st)
{
	struct many *m = weir_state(st);

	for (int i = 0; i < LOOPS && m->loop[i]; i++) {
		weir_loop_stop(m->loop[i]);
		weir_loop_join(m->loop[i]);
	}
}

static const struct weir_stage_ops many_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_SOURCE,
    .name = "t.many",
    .summary = "runs many loops",
    .outlets = source_outlets,
    .state_size = sizeof(struct many),
    .start = many_start,
    .fini = many_fini};

static struct weir_spec *many_loops(void)
{
	struct weir_spec *spec = weir_spec_new("many");

	fixture_stage(spec, "many", "t.many", "home");
	fixture_stage(spec, "home", "t.home", NULL);
	return spec;
}

/* A graph with many I/O threads can be replaced by another one. */
static void test_many_loops(void)
{
	struct weir_errs errs = {0};

	fixture_register(&many_ops);
	struct weir_graph *old = fixture_start(many_loops()), *g = fixture_build(many_loops());
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(g, old, &errs), 0);
	weir_graph_drain(old, NS_PER_S, NULL);
	weir_graph_free(old);
	weir_graph_drain(g, NS_PER_S, NULL);
	weir_graph_free(g);
	the_loop = NULL;
}

/* ---- start and end ---- */

static void test_start_fails(void)
{
	struct weir_graph *g = begin(true);

	hook.start_rc = WEIR_EINVAL;
	CU_ASSERT_NOT_EQUAL(start(g), 0);
	the_loop = NULL; /* weir_loop_start freed it */
	weir_graph_free(g);
	CU_ASSERT_EQUAL(atomic_load(&stops), 0);
	memset(&hook, 0, sizeof(hook));
}

static void test_wake(void)
{
	struct weir_graph *g = begin(true);

	CU_ASSERT_EQUAL_FATAL(start(g), 0);
	CU_ASSERT_FALSE(weir_loop_is_mine(the_loop));
	CU_ASSERT_PTR_EQUAL(weir_loop_data(the_loop), &hook);
	for (int i = 0; i < 100; i++) {
		int before = atomic_load(&turns);
		weir_loop_wake(the_loop);
		FIXTURE_AWAIT(atomic_load(&turns) > before);
	}
	end(g);
}

/* ---- callbacks ---- */

static struct weir_loop_ops partial_ops;
static int partial_rc[2];

static int partial_start(struct weir_stage *st, struct weir_err *err)
{
	struct weir_loop *loop = NULL;

	(void)err;
	partial_ops = loop_ops;
	partial_ops.mail = NULL;
	partial_rc[0] = weir_loop_start(st, 0, &partial_ops, NULL, &loop);
	partial_ops = loop_ops;
	partial_ops.turn_end = NULL;
	partial_rc[1] = weir_loop_start(st, 0, &partial_ops, NULL, &loop);
	CU_ASSERT_PTR_NULL(loop);
	return partial_rc[1];
}

static const struct weir_stage_ops partial_source_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_SOURCE,
    .name = "t.partial",
    .summary = "lacks callbacks",
    .outlets = source_outlets,
    .start = partial_start};

/* A loop without a required callback is refused, and does not crash later. */
static void test_lacks_callbacks(void)
{
	struct weir_spec *spec = weir_spec_new("test");

	fixture_register(&partial_source_ops);
	fixture_stage(spec, "loop", "t.partial", "home");
	fixture_stage(spec, "home", "t.home", NULL);
	struct weir_graph *g = fixture_build(spec);
	CU_ASSERT_NOT_EQUAL(start(g), 0);
	CU_ASSERT_EQUAL(partial_rc[0], WEIR_EINVAL);
	CU_ASSERT_EQUAL(partial_rc[1], WEIR_EINVAL);
	weir_graph_free(g);
}

CUNIT_MAIN("loop", {"mail", test_mail}, {"mail of inline stages", test_mail_inline},
    {"del while ready", test_del_while_ready}, {"bad descriptor", test_bad_descriptor},
    {"timers", test_timers}, {"many mailboxes", test_many_mailboxes},
    {"many loops", test_many_loops}, {"start fails", test_start_fails}, {"wake", test_wake},
    {"lacks callbacks", test_lacks_callbacks})
