/* SPDX-License-Identifier: MIT */
/*
 * Measures hops within a core group: events circulate through six stages of the group.
 *
 *   inline     Twelve inline stages less six, in the thread of the sender, for comparison.
 *   one core   `n` events are under way on one core, together. The row shows CPU ns per hop of the
 *              whole process. Each round measures inline stages on the same CPU before and after, and
 *              the ratio is the median of the rounds' ratios: the speed of the machine changes
 *              within seconds.
 *   idle       The same in the same rounds, with 57 more stages in the group that get no events.
 *   two cores  `n` events under way, each stage works 0.4 us; and the share of the busier core.
 */
#include <sched.h>
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

#define EVENTS  512
#define STAGES  6
#define CPUS    1024
#define RUN_NS  100000000L /* of one round */
#define PASSES  50000      /* events of one round, inline */
#define WORK_NS 400

static struct weir_event events[EVENTS] __attribute__((aligned(64)));

/* Hops by CPU: the threads are bound to theirs. */
static struct {
	_Alignas(64) atomic_ulong n;
} hops[CPUS];
static atomic_bool ends;
static atomic_ulong ended;
static int64_t work_ns;

static void hop_finish(struct weir_event *ev, int status)
{
	(void)ev, (void)status;
	atomic_fetch_add(&ended, 1);
}

static const struct weir_event_type hop_type = {
    .name = "hop", .size = sizeof(struct weir_event), .finish = hop_finish};

static _Thread_local int own_cpu = -1;

static void hop_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	if (own_cpu < 0)
		own_cpu = sched_getcpu();
	atomic_ulong *mine = &hops[own_cpu].n;
	atomic_store_explicit(mine, atomic_load_explicit(mine, memory_order_relaxed) + (unsigned)n,
	    memory_order_relaxed);
	if (WEIR_UNLIKELY(atomic_load_explicit(&ends, memory_order_relaxed))) {
		weir_event_finish_run(ev, n, WEIR_OK);
		return;
	}
	if (work_ns > 0)
		for (int64_t at = bench_now_ns() + n * work_ns; bench_now_ns() < at;)
			__builtin_ia32_pause();
	weir_emit_run(st, 0, ev, n);
}

static void end_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	weir_event_finish_run(ev, n, WEIR_OK);
}

static const struct weir_outlet outlets[] = {
    {"out", &hop_type, true, ""}, {"side", &hop_type, true, ""}, {.name = NULL}};

#define OPS(id, text, fn)                                                                          \
	static const struct weir_stage_ops id = {.abi = WEIR_STAGE_ABI,                            \
	    .name = text,                                                                          \
	    .summary = "bench",                                                                    \
	    .accepts = &hop_type,                                                                  \
	    .outlets = outlets,                                                                    \
	    .handle = fn}
OPS(hop_ops, "b.hop", hop_handle);
OPS(end_ops, "b.end", end_handle);

static cpu_set_t all_cpus;

/* Threads inherit the CPUs of the thread that creates them, which the measurements pin. */
static struct weir_graph *start(struct weir_spec *spec)
{
	sched_setaffinity(0, sizeof(all_cpus), &all_cpus);
	return bench_graph_start(spec);
}

static struct weir_stage_spec *add(
    struct weir_spec *spec, const char *name, const char *use, const char *to, bool loop)
{
	struct weir_stage_spec *s = weir_spec_add_stage(spec, name, use);

	if (to)
		weir_spec_link(s, "out", to, loop);
	weir_spec_text(&s->admission.policy, "none");
	return s;
}

static void name_of(char name[16], const char *letter, int i)
{
	snprintf(name, 16, "%s%d", letter, i);
}

/* ---- inline ---- */

static void add_chain(struct weir_spec *spec)
{
	char name[16], to[16];

	for (int i = 0; i < 2 * STAGES; i++) {
		name_of(name, "c", i);
		name_of(to, "c", i + 1);
		bool last = i == 2 * STAGES - 1;
		add(spec, name, last ? "b.end" : "b.hop", last ? NULL : to, false)->inlined = true;
	}
}

struct chain {
	struct weir_stage *first;
	int run;
};

static int64_t thread_cpu_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* CPU ns of one event through the whole chain. */
static double chain_ns(const struct chain *c)
{
	struct weir_event *run[EVENTS];
	int64_t began = thread_cpu_ns(CLOCK_THREAD_CPUTIME_ID);

	for (int sent = 0; sent < PASSES; sent += c->run) {
		for (int i = 0; i < c->run; i++) {
			weir_event_init(&events[i], &hop_type, began);
			run[i] = &events[i];
		}
		weir_offer(c->first, run, c->run, NULL);
	}
	return (double)(thread_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - began) / PASSES;
}

/* CPU ns of a hop between inline stages, on the given CPU. */
static double inline_ns(struct weir_graph *g, int run, int cpu)
{
	char name[16];

	bench_pin(cpu);
	own_cpu = cpu;
	name_of(name, "c", STAGES);
	struct chain longer = {weir_graph_stage(g, "c0"), run};
	struct chain shorter = {weir_graph_stage(g, name), run};
	double less = chain_ns(&shorter);
	return (chain_ns(&longer) - less) / STAGES;
}

/* ---- a core group ---- */

struct circle {
	const char *name, *schedule, *cores;
	int idle; /* stages without events */
};

static void add_circle(struct weir_spec *spec, const struct circle *c)
{
	struct weir_group_spec *gs = weir_spec_add_group(spec, c->name);
	char name[16], to[16];

	weir_spec_text(&gs->schedule, c->schedule);
	weir_spec_text(&gs->cores, c->cores);
	for (int i = 0; i < STAGES; i++) {
		name_of(name, c->name, i);
		name_of(to, c->name, (i + 1) % STAGES);
		struct weir_stage_spec *s = add(spec, name, "b.hop", to, i == STAGES - 1);
		weir_spec_text(&s->group, c->name);
		if (i == 0 && c->idle > 0)
			weir_spec_link(s, "side", "i0", false);
	}
	for (int i = 0; i < c->idle; i++) {
		name_of(name, "i", i);
		name_of(to, "i", i + 1);
		weir_spec_text(
		    &add(spec, name, "b.hop", i + 1 < c->idle ? to : NULL, false)->group, c->name);
	}
}

static unsigned long hops_now(unsigned long *most)
{
	unsigned long all = 0, top = 0;

	for (int i = 0; i < CPUS; i++) {
		unsigned long n = atomic_load_explicit(&hops[i].n, memory_order_relaxed);
		all += n;
		top = n > top ? n : top;
	}
	if (most)
		*most = top;
	return all;
}

static void circle_begin(struct weir_graph *g, const struct circle *c, int n)
{
	struct weir_event *run[EVENTS];
	char name[16];

	name_of(name, c->name, 0);
	atomic_store(&ended, 0);
	for (int i = 0; i < n; i++) {
		events[i].state = WEIR_EVENT_IDLE;
		weir_event_init(&events[i], &hop_type, bench_now_ns());
		run[i] = &events[i];
	}
	if (weir_offer(weir_graph_stage(g, name), run, n, NULL) != n)
		exit(1);
}

static void circle_end(int n)
{
	atomic_store(&ends, true);
	while (atomic_load(&ended) < (unsigned long)n)
		usleep(100);
	atomic_store(&ends, false);
}

/* CPU ns of a hop while the events circulate. */
static double circle_ns(void)
{
	struct timespec ts = {0, RUN_NS};
	int64_t began = thread_cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
	unsigned long before = hops_now(NULL);

	nanosleep(&ts, NULL);
	unsigned long n = hops_now(NULL) - before;
	return (double)(thread_cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - began) / (double)(n ? n : 1);
}

/* ---- rows ---- */

static void print_row(
    const char *what, struct bench_stat ns, struct bench_stat ratio, const char *aim)
{
	printf("%-36s %9.1f %9.1f %9.1f   %.2f (%.2f to %.2f), aim %s\n", what, ns.median, ns.low,
	    ns.high, ratio.median, ratio.low, ratio.high, aim);
	fflush(stdout);
}

/* Measure the circle, and inline stages before and after it on the CPU of the circle's core. Returns
 * CPU ns of a hop between inline stages, and in *ns that of the circle. */
static double beside_ns(struct weir_graph *g, const struct circle *c, int n, int cpu, double *ns)
{
	double before = inline_ns(g, n, cpu);

	circle_begin(g, c, n);
	*ns = circle_ns();
	circle_end(n);
	return (before + inline_ns(g, n, cpu)) / 2;
}

/* On one core, with `n` events under way. The first group has CPU 0, and the second has CPU 1. */
static void one_core(const char *schedule, int n, const char *aim)
{
	struct circle few = {"few", schedule, "1", 0}, many = {"many", schedule, "1", 57};
	double in[BENCH_ROUNDS], one[BENCH_ROUNDS], idle[BENCH_ROUNDS], ratio[BENCH_ROUNDS],
	    more[BENCH_ROUNDS];
	struct weir_spec *spec = weir_spec_new("cells");
	char what[64];

	add_chain(spec);
	add_circle(spec, &few);
	add_circle(spec, &many);
	struct weir_graph *g = start(spec);
	for (int r = 0; r < BENCH_ROUNDS; r++) {
		in[r] = beside_ns(g, &few, n, 0, &one[r]);
		ratio[r] = one[r] / in[r];
		more[r] = beside_ns(g, &many, n, 1, &idle[r]);
		more[r] = idle[r] / more[r] / ratio[r];
	}
	bench_graph_end(g);
	struct bench_stat beside = bench_summary(in, BENCH_ROUNDS);
	printf(
	    "inline, runs of %-20d %9.1f %9.1f %9.1f\n", n, beside.median, beside.low, beside.high);
	snprintf(what, sizeof(what), "%s, %d under way", schedule, n);
	print_row(what, bench_summary(one, BENCH_ROUNDS), bench_summary(ratio, BENCH_ROUNDS), aim);
	print_row("  with 57 idle stages", bench_summary(idle, BENCH_ROUNDS),
	    bench_summary(more, BENCH_ROUNDS), "1.05");
}

static double circle_round(void *arg)
{
	(void)arg;
	return circle_ns();
}

static void two_cores(const char *schedule, int n, const char *aim)
{
	struct circle c = {"both", schedule, "2", 0};
	struct weir_spec *spec = weir_spec_new("cells");
	unsigned long most;
	char what[64];

	add_circle(spec, &c);
	struct weir_graph *g = start(spec);
	memset(hops, 0, sizeof(hops));
	circle_begin(g, &c, n);
	struct bench_stat s = bench_measure(circle_round, NULL);
	unsigned long all = hops_now(&most);
	circle_end(n);
	bench_graph_end(g);
	snprintf(what, sizeof(what), "two cores, 0.4 us, %s, %d", schedule, n);
	printf("%-36s %9.1f %9.1f %9.1f   busier core %.2f, aim %s\n", what, s.median, s.low,
	    s.high, (double)most / (double)(all ? all : 1), aim);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const int runs[] = {64, 8, 1};
	static const char *const aims[] = {"1.45", "1.35", "1.25"};
	static const char *const names[] = {"fifo", "wavefront", "srpt", "dbr", "mg1", "color"};
	static const int loads[] = {8, 64, 512};
	static const char *const both[] = {"460, 0.6", "430, 0.6", "430, 0.6"};
	const char *only = argc > 1 ? argv[1] : NULL; /* a schedule, or "two" */
	int run = argc > 2 ? atoi(argv[2]) : 0;       /* 64, 8 or 1; 0: all of them */
	struct weir_err err = {0};

	sched_getaffinity(0, sizeof(all_cpus), &all_cpus);
	bench_header("micro_cells");
	weir_stage_register(&hop_ops, &err);
	weir_stage_register(&end_ops, &err);
	printf("%-36s %9s %9s %9s   ratio\n", "CPU ns per hop", "median", "low", "high");
	for (int i = 0; i < 3; i++)
		for (size_t p = 0; p < sizeof(names) / sizeof(names[0]); p++)
			if ((!only || strcmp(only, names[p]) == 0) && (!run || run == runs[i]))
				one_core(names[p], runs[i], aims[i]);
	if (only && strcmp(only, "two") != 0)
		return 0;
	work_ns = WORK_NS;
	for (int i = 0; i < 3 && sysconf(_SC_NPROCESSORS_ONLN) > 1; i++)
		for (size_t p = 0; p < sizeof(names) / sizeof(names[0]); p++)
			two_cores(names[p], loads[i], both[i]);
	return 0;
}
