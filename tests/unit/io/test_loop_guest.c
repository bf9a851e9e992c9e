/* SPDX-License-Identifier: MIT */
/* A stage that uses a loop which it has not started: mail of its own (weir_event_type.arrive) reaches it there,
 * and the service time of what it holds does not include the time in which the loop was busy. */
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <weir/io.h>

#include "fixture/clock/held_clock.h"
#include "fixture/graph/probes.h"

#include "base/clock.h"

enum { PROBES = 100, WATCHES_MAX = 20 };

/* Mail of the stage `guest`, which ends the event that it has held. */
struct letter {
	struct weir_event ev;
	struct weir_event *held;
};

static struct weir_loop *the_loop;
static struct letter letters[PROBES];
static atomic_int sent, arrived, elsewhere, to_ops;
static int emitted; /* of the loop's thread */

/* ---- a source that consists of a loop and of descriptors that are always ready ---- */

static struct weir_watch watches[WATCHES_MAX];
static int n_watches, n_turns; /* turns since the event was held */
static struct weir_event *held;

static void ready(struct weir_loop *loop, struct weir_watch *w, uint32_t events)
{
	(void)events;
	if (w == &watches[0] && held && ++n_turns == 2)
		weir_event_finish(&held, WEIR_OK);
	if (held)
		atomic_fetch_add(&held_ns, HELD_NS_PER_MS);
	else
		weir_loop_del(loop, w);
}

static void on_mail(struct weir_loop *loop, struct weir_event *list)
{
	for (; list; list = list->next)
		atomic_fetch_add(&to_ops, 1);
	(void)loop;
}

static void on_turn_end(struct weir_loop *loop)
{
	struct weir_event *ev = &probes[emitted].ev;

	if (n_watches > 0 && emitted > 0)
		return; /* one event is enough */
	if (emitted == PROBES)
		return;
	emitted++;
	weir_event_init(ev, &probe_type, weir_loop_now_ns(loop));
	weir_emit(weir_loop_stage(loop), 0, &ev);
}

static const struct weir_loop_ops loop_ops = {.mail = on_mail, .turn_end = on_turn_end};

static int source_start(struct weir_stage *st, struct weir_err *err)
{
	(void)err;
	emitted = 0;
	return weir_loop_start(st, 0, &loop_ops, NULL, &the_loop);
}

static void source_fini(struct weir_stage *st)
{
	(void)st;
	weir_loop_stop(the_loop);
	weir_loop_join(the_loop);
}

static const struct weir_outlet source_outlets[] = {
    {"out", &probe_type, false, "probes"}, {.name = NULL}};

static const struct weir_stage_ops source_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_SOURCE,
    .name = "t.source",
    .summary = "runs a loop",
    .outlets = source_outlets,
    .start = source_start,
    .fini = source_fini};

/* ---- the stage ---- */

static void letter_arrives(struct weir_loop *loop, struct weir_event *ev)
{
	struct letter *l = (struct letter *)ev;

	if (loop != the_loop || weir_loop_here() != loop)
		atomic_fetch_add(&elsewhere, 1);
	weir_event_finish(&l->held, WEIR_OK);
	atomic_fetch_add(&arrived, 1);
}

static const struct weir_event_type letter_type = {
    .name = "letter", .size = sizeof(struct letter), .arrive = letter_arrives};

static void guest_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		if (n_watches > 0) {
			held = ev[i];
			n_turns = 0;
			weir_hold(st, &ev[i]);
			for (int k = 0; k < n_watches; k++)
				weir_loop_add(the_loop, &watches[k], EPOLLOUT);
			continue;
		}
		struct letter *l = &letters[atomic_fetch_add(&sent, 1)];
		*l = (struct letter){.ev.type = &letter_type, .held = ev[i]};
		weir_hold(st, &ev[i]);
		weir_loop_send(the_loop, &l->ev);
	}
}

static const struct weir_stage_ops guest_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "t.guest",
    .summary = "uses the loop of another stage",
    .accepts = &probe_type,
    .handle = guest_handle};

static struct weir_graph *begin(bool inlined)
{
	static bool registered;
	struct weir_spec *spec = weir_spec_new("test");

	if (!registered) {
		fixture_register(&source_ops);
		fixture_register(&guest_ops);
	}
	registered = true;
	prepare(PROBES);
	atomic_store(&sent, 0);
	atomic_store(&arrived, 0);
	atomic_store(&elsewhere, 0);
	atomic_store(&to_ops, 0);
	fixture_stage(spec, "source", "t.source", "guest");
	fixture_stage(spec, "guest", "t.guest", NULL)->inlined = inlined;
	return fixture_start(spec);
}

/* ---- mail ---- */

static void check_letters(bool inlined)
{
	struct weir_graph *g = begin(inlined);

	/* each iteration emits an event */
	FIXTURE_AWAIT((weir_loop_wake(the_loop), atomic_load(&arrived) == PROBES));
	finish_graph(g, 0);
	check_each_once(PROBES);
	CU_ASSERT_EQUAL(atomic_load(&elsewhere), 0);
	CU_ASSERT_EQUAL(atomic_load(&to_ops), 0);
}

static void letters_of_the_loop(void)
{
	check_letters(true);
}

static void letters_of_a_pool(void)
{
	check_letters(false);
}

/* ---- service times ---- */

/* Hold an event from one turn to the next but one, in which `n` callbacks take 1 ms each. Returns its service
 * time. */
static int64_t service_ns(int n)
{
	struct weir_stage_view v;

	for (n_watches = 0; n_watches < n; n_watches++)
		watches[n_watches] = (struct weir_watch){
		    .ready = ready, .fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
	clock_hold();
	struct weir_graph *g = begin(true);
	FIXTURE_AWAIT(weir_hist_total(&stage_view(g, "guest").class_view[0].service) == 1);
	v = stage_view(g, "guest");
	finish_graph(g, 0);
	clock_release();
	for (int i = 0; i < n; i++)
		close(watches[i].fd);
	n_watches = 0;
	return (int64_t)v.class_view[0].service.sum_ns;
}

/* With few callbacks, the time of an event is that of its hold. The answer of the other side may have been there
 * all the time while a busy loop worked on other descriptors. */
static void service_times(void)
{
	CU_ASSERT_EQUAL(service_ns(2), 2 * NS_PER_MS);
	CU_ASSERT_EQUAL(service_ns(WATCHES_MAX), NS_PER_US);
}

CUNIT_MAIN("guests in loops", {"letters of the loop", letters_of_the_loop},
    {"letters of a pool", letters_of_a_pool}, {"service times", service_times})
