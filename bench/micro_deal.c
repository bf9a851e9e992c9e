/* SPDX-License-Identifier: MIT */
/*
 * Measures what a core of a core group does between two batches, apart from a hop.
 *
 *   deal     32 of 64 events of a cell are dealt to a core that sleeps, or that spins: ns of the call
 *            in the core that deals, wake-up included, and until the other core handles the first.
 *   urgent   Eight events circulate through a stage on one core, and one more visits a second stage
 *            after each batch: the visit of the first stage ends by its gate (a normal change of
 *            stage), or it is cut, since the second stage is urgent, and goes on after that. CPU ns of
 *            such a cycle of two batches, and the difference.
 *
 * micro_deal [deal|urgent]
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/graph.h>
#include <weir/stage.h>

#include "bench.h"
#include "bench_graph.h"
#include "graph/graph.h"
#include "sched/cores.h"

#define EVENTS  64
#define CYCLE   8
#define RUN_NS  100000000L
#define DEALS   101
#define WORK_NS 1000
#define REST_NS 300000 /* a core spins for 20 us before it sleeps */

static struct weir_event events[EVENTS + 2] __attribute__((aligned(64)));
static atomic_ulong ended, cycles;
static atomic_bool ends, held, asleep;
static _Atomic int64_t first_ns; /* when another core handled the first dealt event */
static double deal_ns;           /* of the last deal; -1: nothing was dealt */
static int64_t dealt_ns;
static struct thread *dealer;
static int work_place; /* the stage in the group */

static void count_end(struct weir_event *ev, int status)
{
	(void)ev, (void)status;
	atomic_fetch_add(&ended, 1);
}

static const struct weir_event_type type = {
    .name = "deal", .size = sizeof(struct weir_event), .finish = count_end};

static const struct weir_outlet outlets[] = {
    {"out", &type, true, ""}, {"side", &type, true, ""}, {.name = NULL}};

#define OPS(id, text, fn)                                                                          \
	static const struct weir_stage_ops id = {.abi = WEIR_STAGE_ABI,                            \
	    .name = text,                                                                          \
	    .summary = "bench",                                                                    \
	    .accepts = &type,                                                                      \
	    .outlets = outlets,                                                                    \
	    .handle = fn}

/* ---- dealing ---- */

/* Occupies one of two cores until the other is about to deal. */
static void occupy(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	atomic_store(&held, true);
	while (atomic_load(&held))
		__builtin_ia32_pause();
	weir_event_finish_run(ev, n, WEIR_OK);
}

/* Puts 64 events into the cell of `work` and one into that of `measure`, which is served first. */
static void fill(struct weir_stage *st, struct weir_event **ev, int n)
{
	struct weir_event *run[EVENTS];

	for (int i = 0; i < EVENTS; i++) {
		run[i] = &events[2 + i];
		run[i]->state = WEIR_EVENT_IDLE;
		weir_event_init(run[i], &type, bench_now_ns());
	}
	weir_emit_run(st, 1, ev, n);
	weir_emit_run(st, 0, run, EVENTS);
}

static void measure(struct weir_stage *st, struct weir_event **ev, int n)
{
	struct core *core = thread_self()->core;
	const struct pool *pool = core->group->pool;
	book_counter *dealt = &core->book[work_place].dealt;
	uint64_t before = book_read(dealt);
	int64_t began;

	(void)st;
	dealer = thread_self();
	atomic_store(&held, false);
	while (!core_idles(core) || (atomic_load(&asleep) && atomic_load(&pool->n_idle) == 0))
		__builtin_ia32_pause();
	if (atomic_load(&asleep)) /* the futex call follows */
		for (began = bench_now_ns(); bench_now_ns() < began + REST_NS;)
			__builtin_ia32_pause();
	bool as_wanted = atomic_load(&pool->n_spinning) == !atomic_load(&asleep);
	dealt_ns = bench_now_ns();
	core_deal(core);
	deal_ns = (double)(bench_now_ns() - dealt_ns);
	if (!as_wanted || book_read(dealt) - before != EVENTS / 2)
		deal_ns = -1;
	weir_event_finish_run(ev, n, WEIR_OK);
}

static void work(struct weir_stage *st, struct weir_event **ev, int n)
{
	int64_t none = 0;

	(void)st;
	if (thread_self() != dealer)
		atomic_compare_exchange_strong(&first_ns, &none, bench_now_ns());
	for (int64_t at = bench_now_ns() + n * WORK_NS; bench_now_ns() < at;)
		__builtin_ia32_pause();
	weir_event_finish_run(ev, n, WEIR_OK);
}

OPS(occupy_ops, "b.occupy", occupy);
OPS(fill_ops, "b.fill", fill);
OPS(measure_ops, "b.measure", measure);
OPS(work_ops, "b.work", work);

/* ---- cycles ---- */

static struct weir_event *token = &events[CYCLE];

/* Runs on one thread at a time. */
static void circle(struct weir_stage *st, struct weir_event **ev, int n)
{
	atomic_store_explicit(
	    &cycles, atomic_load_explicit(&cycles, memory_order_relaxed) + 1, memory_order_relaxed);
	if (WEIR_UNLIKELY(atomic_load_explicit(&ends, memory_order_relaxed))) {
		weir_event_finish_run(ev, n, WEIR_OK);
		return;
	}
	for (int i = 0; i < n; i++)
		weir_emit(st, ev[i] == token, ev + i);
}

static void back(struct weir_stage *st, struct weir_event **ev, int n)
{
	if (WEIR_UNLIKELY(atomic_load_explicit(&ends, memory_order_relaxed)))
		weir_event_finish_run(ev, n, WEIR_OK);
	else
		weir_emit_run(st, 0, ev, n);
}

OPS(circle_ops, "b.circle", circle);
OPS(back_ops, "b.back", back);

/* ---- graphs ---- */

static struct weir_stage_spec *add(
    struct weir_spec *spec, const char *group, const char *name, const char *use)
{
	struct weir_stage_spec *s = weir_spec_add_stage(spec, name, use);

	weir_spec_text(&s->group, group);
	weir_spec_text(&s->admission.policy, "none");
	return s;
}

static struct weir_group_spec *add_group(
    struct weir_spec *spec, const char *name, const char *schedule, const char *cores)
{
	struct weir_group_spec *gs = weir_spec_add_group(spec, name);

	weir_spec_text(&gs->schedule, schedule);
	weir_spec_text(&gs->cores, cores);
	gs->starve_ns = 0;
	return gs;
}

static void send(struct weir_graph *g, const char *stage, int first, int n)
{
	struct weir_event *run[EVENTS];

	for (int i = 0; i < n; i++) {
		run[i] = &events[first + i];
		run[i]->state = WEIR_EVENT_IDLE;
		weir_event_init(run[i], &type, bench_now_ns());
	}
	if (weir_offer(weir_graph_stage(g, stage), run, n, NULL) != n)
		exit(1);
}

static void await_end(unsigned long n)
{
	while (atomic_load(&ended) < n)
		usleep(100);
	atomic_store(&ended, 0);
}

static void print_row(const char *what, double *ns, int n, const char *aim)
{
	struct bench_stat s = bench_summary(ns, n);

	printf("%-44s %9.1f %9.1f %9.1f%s\n", what, s.median, s.low, s.high, aim);
	fflush(stdout);
}

/* ---- rows ---- */

static void deal_row(struct weir_graph *g, const char *name, bool sleeps, const char *aim)
{
	double call[DEALS], begins[DEALS];
	char what[64];

	atomic_store(&asleep, sleeps);
	/* the first rounds only show how long the work takes */
	for (int i = -4, n = 0; n < DEALS; i++) {
		if (i == 10 * DEALS) {
			fprintf(stderr, "events were not dealt\n");
			exit(1);
		}
		atomic_store(&first_ns, 0);
		send(g, "occupy", 0, 1);
		while (!atomic_load(&held))
			usleep(10);
		send(g, "fill", 1, 1);
		await_end(EVENTS + 2);
		if (i < 0 || deal_ns < 0 || atomic_load(&first_ns) == 0)
			continue;
		call[n] = deal_ns;
		begins[n++] = (double)(atomic_load(&first_ns) - dealt_ns);
	}
	snprintf(what, sizeof(what), "deal to a core that %s", name);
	print_row(what, call, DEALS, aim);
	print_row("  until it handles the first event", begins, DEALS, "");
}

static void deal_rows(void)
{
	struct weir_spec *spec = weir_spec_new("deal");

	add_group(spec, "deal", "fifo", "2");
	add(spec, "deal", "occupy", "b.occupy");
	struct weir_stage_spec *s = add(spec, "deal", "fill", "b.fill");
	weir_spec_link(s, "out", "work", false);
	weir_spec_link(s, "side", "measure", false);
	add(spec, "deal", "measure", "b.measure");
	add(spec, "deal", "work", "b.work")->cohort.max = 8;
	struct weir_graph *g = bench_graph_start(spec);
	work_place = weir_graph_stage(g, "work")->sink.place;
	deal_row(g, "spins", false, "   aim 1,000");
	deal_row(g, "sleeps", true, "");
	bench_graph_end(g);
}

static double cycle_ns(struct weir_graph *g, const char *stage)
{
	struct timespec ts = {0, RUN_NS};

	send(g, stage, 0, CYCLE + 1);
	nanosleep(&(struct timespec){0, RUN_NS / 10}, NULL);
	int64_t began = bench_cpu_ns();
	unsigned long before = atomic_load(&cycles);
	nanosleep(&ts, NULL);
	unsigned long done = atomic_load(&cycles) - before;
	double ns = (double)(bench_cpu_ns() - began) / (double)(done ? done : 1);
	atomic_store(&ends, true);
	await_end(CYCLE + 1);
	atomic_store(&ends, false);
	return ns;
}

static void add_cycle(struct weir_spec *spec, const char *group, bool urgent)
{
	struct weir_group_spec *gs = add_group(spec, group, "wavefront", "1");
	char circles[16], side[16];

	snprintf(circles, sizeof(circles), "%s0", group);
	snprintf(side, sizeof(side), "%s1", group);
	struct weir_stage_spec *s = add(spec, group, circles, "b.circle");
	weir_spec_link(s, "out", circles, true);
	weir_spec_link(s, "side", side, false);
	s = add(spec, group, side, "b.back");
	weir_spec_link(s, "out", circles, true);
	if (urgent)
		s->urgent.events = 1;
	else
		gs->gate.events = CYCLE + 1;
}

static void urgent_rows(void)
{
	double gate[BENCH_ROUNDS], cut[BENCH_ROUNDS], more[BENCH_ROUNDS];
	struct weir_spec *spec = weir_spec_new("urgent");

	add_cycle(spec, "gate", false);
	add_cycle(spec, "cut", true);
	struct weir_graph *g = bench_graph_start(spec);
	for (int r = 0; r < BENCH_ROUNDS; r++) {
		double before = cycle_ns(g, "gate0");
		cut[r] = cycle_ns(g, "cut0");
		gate[r] = (before + cycle_ns(g, "gate0")) / 2;
		more[r] = cut[r] - gate[r];
	}
	const struct weir_stage *side = weir_graph_stage(g, "cut1");
	const struct core_book *book = &side->pool->cores->core[0].book[side->sink.place];
	uint64_t urgent = book_read(&book->visits[NEXT_URGENT]),
		 batches = book_read(&book->batches);
	bench_graph_end(g);
	printf("%.2f of the visits of the second stage are urgent\n",
	    (double)urgent / (double)(batches ? batches : 1));
	print_row("cycle, visits end by the gate", gate, BENCH_ROUNDS, "");
	print_row("cycle, visits are cut by an urgent one", cut, BENCH_ROUNDS, "");
	print_row("  more than by the gate", more, BENCH_ROUNDS, "   aim 100");
}

int main(int argc, char **argv)
{
	static const struct weir_stage_ops *const ops[] = {
	    &occupy_ops, &fill_ops, &measure_ops, &work_ops, &circle_ops, &back_ops};
	const char *only = argc > 1 ? argv[1] : NULL;
	struct weir_err err = {0};

	bench_header("micro_deal");
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		weir_stage_register(ops[i], &err);
	printf("%-44s %9s %9s %9s\n", "ns", "median", "low", "high");
	if ((!only || strcmp(only, "deal") == 0) && sysconf(_SC_NPROCESSORS_ONLN) > 1)
		deal_rows();
	if (!only || strcmp(only, "urgent") == 0)
		urgent_rows();
	return 0;
}
