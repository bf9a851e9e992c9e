/* SPDX-License-Identifier: MIT */
/*
 * Measures operations (weir/op.h): what a child costs from weir_event_new to the continuation of its
 * parent, by placement, number of parents under way and children of each.
 *
 * Parents stay in a stage that gives each of them new children whenever the last ones have ended. The
 * rows show the CPU time of the process per child, with the median and the range of the rounds:
 *
 *   child       4 children for each parent, 64 parents or 1 under way
 *   call        one child for each parent: call and return
 *   member      the first row with all parents in a family that does not end: what that adds to a child
 *   check       while another family that has ended still exists, all events are checked for theirs:
 *               what that adds to a child, without a family and with one
 *   new         weir_event_new and weir_event_finish, without a graph to go through
 *   fork-join   16 children with 20 us of work each, in a core group of two cores: children in a
 *               second, as a ratio to the same on one core
 *
 * Arguments: none runs all rows; `new`, `family` and `fork-join` those rows; PLACEMENT PARENTS CHILDREN
 * one row for a profiler.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/graph.h>
#include <weir/stage.h>

#include "bench.h"

#define PARENTS  64
#define ROUND_NS 100000000
#define LOOK_US  5000
#define WORK_NS  20000

struct parent {
	_Alignas(64) struct weir_event ev;
	struct weir_op op;
	int children;
};

struct child {
	_Alignas(64) struct weir_event ev;
	struct weir_op op;
};

static struct parent parents[PARENTS];
static atomic_bool stop;
static atomic_int ended;
static int64_t work_ns;
static int core; /* of the threads, if they are pinned to one; otherwise -1 */

static void parent_finish(struct weir_event *ev, int status)
{
	(void)ev, (void)status;
	atomic_fetch_add(&ended, 1);
}

static const struct weir_event_type parent_type = {.name = "parent",
    .size = sizeof(struct parent),
    .finish = parent_finish,
    .op = offsetof(struct parent, op)};
static const struct weir_event_type child_type = {
    .name = "child", .size = sizeof(struct child), .op = offsetof(struct child, op)};

/* ---- the stages ---- */

static void fork_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	bool last = atomic_load_explicit(&stop, memory_order_relaxed);

	for (int i = 0; i < n; i++) {
		if (last) {
			weir_event_finish(&ev[i], WEIR_OK);
			continue;
		}
		int k = ((struct parent *)ev[i])->children;
		for (; k > 0; k--) {
			struct weir_event *c = weir_event_new(st, &child_type);
			weir_child(st, ev[i], 0, &c);
		}
		weir_await(st, &ev[i], fork_handle);
	}
}

static void work_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; work_ns && i < n; i++)
		for (int64_t until_ns = bench_now_ns() + work_ns; bench_now_ns() < until_ns;)
			continue;
	weir_event_finish_run(ev, n, WEIR_OK);
}

static int pin_thread(struct weir_stage *st)
{
	(void)st;
	if (core >= 0)
		bench_pin(core);
	return 0;
}

static const struct weir_outlet outlets[] = {
    {"child", &child_type, false, "children"}, {.name = NULL}};
static const struct weir_stage_ops fork_ops = {.abi = WEIR_STAGE_ABI,
    .name = "b.fork",
    .summary = "bench",
    .accepts = &parent_type,
    .outlets = outlets,
    .children = 1,
    .handle = fork_handle,
    .thread_init = pin_thread};
static const struct weir_stage_ops work_ops = {.abi = WEIR_STAGE_ABI,
    .name = "b.work",
    .summary = "bench",
    .accepts = &child_type,
    .handle = work_handle,
    .thread_init = pin_thread};

/* ---- graphs ---- */

enum placement { INLINE, GROUP, CELLS, POOLS };
static const char *const names[] = {"inline", "shared", "cells", "pools"};

static struct weir_graph *graph_of(enum placement where, int cores)
{
	struct weir_spec *spec = weir_spec_new("bench");
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	struct weir_graph *g = NULL;
	struct weir_stage_spec *s[2] = {weir_spec_add_stage(spec, "work", "b.work"), NULL};

	s[1] = weir_spec_add_stage(spec, "fork", "b.fork");
	weir_spec_link(s[1], "", "work", false);
	s[0] = &spec->stages[0];
	s[0]->inlined = where == INLINE;
	for (int i = 0; i < 2; i++) {
		weir_spec_text(&s[i]->admission.policy, "none");
		if (where == POOLS)
			s[i]->threads.min = s[i]->threads.max = 1;
		if (where == GROUP || where == CELLS)
			weir_spec_text(&s[i]->group, "core");
	}
	if (where == INLINE)
		s[1]->threads.min = s[1]->threads.max = 1;
	if (where == GROUP || where == CELLS) {
		struct weir_group_spec *group = weir_spec_add_group(spec, "core");
		char text[8];
		snprintf(text, sizeof(text), "%d", cores);
		if (where == CELLS) {
			weir_spec_text(&group->schedule, "wavefront");
			weir_spec_text(&group->cores, text);
		} else {
			group->threads.min = group->threads.max = 1;
		}
	}
	if (!errs || weir_graph_build(spec, &g, errs) != 0 || weir_graph_start(g, errs) != 0) {
		fprintf(stderr, "graph: %s\n", errs ? errs->err[0].text : "no memory");
		exit(1);
	}
	free(errs);
	return g;
}

static uint64_t children_of(struct weir_graph *g)
{
	struct weir_graph_view *v;
	uint64_t n = 0;

	if (weir_graph_view(g, &v) != 0)
		exit(1);
	for (int i = 0; i < v->n_stages; i++)
		n += v->stages[i].joined;
	weir_graph_view_free(v);
	return n;
}

static void begin(struct weir_graph *g, int n_parents, int children, struct weir_family *f)
{
	struct weir_stage *to = weir_graph_stage(g, "fork");

	stop = false;
	ended = 0;
	weir_thread_attach(g, "bench");
	for (int i = 0; i < n_parents; i++) {
		struct weir_event *ev = &parents[i].ev;
		memset(&parents[i], 0, sizeof(parents[i]));
		weir_event_init(ev, &parent_type, bench_now_ns());
		parents[i].children = children;
		weir_family_join(f, ev);
		weir_offer(to, &ev, 1, NULL);
	}
	weir_thread_detach();
}

static void finish(struct weir_graph *g, int n_parents)
{
	struct weir_drain_report report;

	stop = true;
	while (atomic_load(&ended) < n_parents)
		usleep(100);
	weir_graph_drain(g, 1000000000, &report);
	weir_graph_free(g);
}

/* ---- rows ---- */

struct row {
	enum placement where;
	int parents, children, cores;
	bool member, checks;
};

static int64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static double run_row(void *arg)
{
	const struct row *r = arg;
	struct weir_graph *g = graph_of(r->where, r->cores);
	struct weir_family *f = r->member ? weir_family_new(NULL) : NULL;
	struct weir_family *over = r->checks ? weir_family_new(NULL) : NULL;

	weir_family_end(over);
	begin(g, r->parents, r->children, f);
	usleep(LOOK_US);
	int64_t from_ns = cpu_ns(), wall_ns = bench_now_ns();
	uint64_t from = children_of(g);
	while (bench_now_ns() - wall_ns < ROUND_NS)
		usleep(LOOK_US);
	uint64_t n = children_of(g) - from;
	int64_t took_ns = work_ns ? bench_now_ns() - wall_ns : cpu_ns() - from_ns;
	finish(g, r->parents);
	weir_family_put(f);
	weir_family_put(over);
	return n ? (double)took_ns / (double)n : 0;
}

static void print_row(const char *name, const struct row *r, const struct bench_stat *s)
{
	printf("%-10s %-8s %3d x %2d  %8.1f ns  (%.1f to %.1f)\n", name, names[r->where],
	    r->parents, r->children, s->median, s->low, s->high);
}

/* Measure both rows in turn. Prints the ratio of the first to the second, or what the second takes more. */
static void run_pair(const char *name, struct row *a, struct row *b, bool is_ratio)
{
	double result[BENCH_ROUNDS];

	for (int i = 0; i < BENCH_ROUNDS; i++) {
		double x = run_row(a), y = run_row(b);
		result[i] = is_ratio ? x / y : y - x;
	}
	struct bench_stat s = bench_summary(result, BENCH_ROUNDS);
	printf("%-10s %-8s %3d x %2d  %8.2f %s  (%.2f to %.2f)\n", name, names[b->where],
	    b->parents, b->children, s.median, is_ratio ? "  " : "ns", s.low, s.high);
}

static void family_rows(enum placement where)
{
	struct row plain = {where, 64, 4, 1, false, false}, checked = plain;
	struct row member = {where, 64, 4, 1, true, false}, both = {where, 64, 4, 1, true, true};

	checked.checks = true;
	run_pair("member", &plain, &member, false);
	run_pair("check", &plain, &checked, false);
	run_pair("check", &member, &both, false);
}

/* ---- memory ---- */

#define NEW_EVENTS 2000000

/* Make and end events in a thread of a graph. */
static double run_new(void *arg)
{
	struct weir_graph *g = arg;
	struct weir_stage *st = weir_graph_stage(g, "fork");

	weir_thread_attach(g, "bench");
	int64_t from_ns = bench_now_ns();
	for (int i = 0; i < NEW_EVENTS; i++) {
		struct weir_event *ev = weir_event_new(st, &child_type);
		__asm__ volatile("" : : "r"(ev) : "memory");
		weir_event_finish(&ev, WEIR_OK);
	}
	double ns = (double)(bench_now_ns() - from_ns) / NEW_EVENTS;
	weir_thread_detach();
	return ns;
}

static void new_row(void)
{
	struct weir_graph *g = graph_of(POOLS, 1);
	struct bench_stat s = bench_measure(run_new, g);

	printf("%-10s                  %8.1f ns  (%.1f to %.1f)\n", "new", s.median, s.low, s.high);
	finish(g, 0);
}

/* Let the calling thread run on any core again. */
static void unpin(void)
{
	cpu_set_t all;

	CPU_ZERO(&all);
	for (int i = 0; i < CPU_SETSIZE; i++)
		CPU_SET(i, &all);
	sched_setaffinity(0, sizeof(all), &all);
}

static void fork_join(void)
{
	struct row one = {CELLS, 8, 16, 1, false, false}, two = {CELLS, 8, 16, 2, false, false};

	work_ns = WORK_NS;
	run_pair("fork-join", &one, &two, true);
	work_ns = 0;
}

/* Run one row for a profiler: PLACEMENT PARENTS CHILDREN. */
static int one_row(char **argv)
{
	struct row r = {INLINE, atoi(argv[2]), atoi(argv[3]), 1, false, false};

	while (r.where < POOLS && strcmp(names[r.where], argv[1]) != 0)
		r.where++;
	core = 1;
	struct weir_graph *g = graph_of(r.where, 1);
	begin(g, r.parents, r.children, NULL);
	usleep(LOOK_US);
	int64_t wall_ns = bench_now_ns();
	while (bench_now_ns() - wall_ns < 10 * ROUND_NS)
		usleep(LOOK_US);
	printf("%lu children\n", (unsigned long)children_of(g));
	finish(g, r.parents);
	return 0;
}

int main(int argc, char **argv)
{
	struct weir_err err;

	if (weir_stage_register(&fork_ops, &err) != 0 || weir_stage_register(&work_ops, &err) != 0)
		return 1;
	if (argc == 4)
		return one_row(argv);
	if (argc == 2 && strcmp(argv[1], "new") == 0) {
		bench_pin(0);
		new_row();
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "family") == 0) {
		core = 1;
		bench_pin(0);
		family_rows(INLINE);
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "fork-join") == 0) {
		core = -1;
		fork_join();
		return 0;
	}
	bench_header("micro_join");
	core = 1;
	bench_pin(0);
	new_row();
	for (enum placement where = INLINE; where <= CELLS; where++) {
		static const int shape[][2] = {{64, 4}, {1, 4}, {64, 1}, {1, 1}};
		for (size_t i = 0; i < sizeof(shape) / sizeof(shape[0]); i++) {
			struct row r = {where, shape[i][0], shape[i][1], 1, false, false};
			struct bench_stat s = bench_measure(run_row, &r);
			print_row(r.children == 1 ? "call" : "child", &r, &s);
		}
		family_rows(where);
	}
	core = -1;
	unpin();
	fork_join();
	return 0;
}
