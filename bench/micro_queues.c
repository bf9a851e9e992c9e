/* SPDX-License-Identifier: MIT */
/*
 * Measures the steps of libasync-smp's table 2 (N. Zeldovich et al., Multiprocessor support for
 * event-driven programs, USENIX 2003) on two cores: one queue that the cores share, queues per core,
 * and queues per core from which idle cores are given tasks.
 *
 * Sixteen tasks are under way, each of which computes for a while and then sends itself to the next
 * of six stages. The rows are tasks a second, wall-clock time, for a group with a shared pool of two
 * threads, for a core group without dealing, and for one with it. Tasks of weir need no memory of
 * their own, so there is no row for the free lists of tasks.
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

#define TASKS  16
#define STAGES 6
#define CPUS   1024
#define RUN_NS 60000000L
#define ROUNDS 7

static struct weir_event events[TASKS] __attribute__((aligned(64)));
static struct {
	_Alignas(64) atomic_ulong n;
} hops[CPUS];
static atomic_bool ends;
static atomic_ulong ended;
static int64_t work_ns;
static cpu_set_t all_cpus;

static void task_finish(struct weir_event *ev, int status)
{
	(void)ev, (void)status;
	atomic_fetch_add(&ended, 1);
}

static const struct weir_event_type task_type = {
    .name = "task", .size = sizeof(struct weir_event), .finish = task_finish};
static const struct weir_outlet outlets[] = {{"out", &task_type, true, ""}, {.name = NULL}};

static void task_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	int cpu = sched_getcpu();

	atomic_fetch_add_explicit(
	    &hops[cpu < 0 ? 0 : cpu % CPUS].n, (unsigned long)n, memory_order_relaxed);
	if (atomic_load_explicit(&ends, memory_order_relaxed)) {
		weir_event_finish_run(ev, n, WEIR_OK);
		return;
	}
	for (int64_t at = bench_now_ns() + n * work_ns; bench_now_ns() < at;)
		__builtin_ia32_pause();
	weir_emit_run(st, 0, ev, n);
}

static const struct weir_stage_ops task_ops = {.abi = WEIR_STAGE_ABI,
    .name = "b.task",
    .summary = "bench",
    .accepts = &task_type,
    .outlets = outlets,
    .handle = task_handle};

struct way {
	const char *name;
	bool cells, balance;
};

static struct weir_graph *start(const struct way *way)
{
	struct weir_spec *spec = weir_spec_new("queues");
	struct weir_group_spec *gs = weir_spec_add_group(spec, "core");
	static struct weir_errs errs;
	struct weir_graph *g = NULL;

	if (way->cells) {
		weir_spec_text(&gs->schedule, "fifo");
		weir_spec_text(&gs->cores, "2");
		gs->balance = way->balance;
	} else {
		gs->threads.min = gs->threads.max = 2;
		gs->threads.pinned = true;
	}
	for (int i = 0; i < STAGES; i++) {
		char name[16], to[16];
		snprintf(name, sizeof(name), "s%d", i);
		snprintf(to, sizeof(to), "s%d", (i + 1) % STAGES);
		struct weir_stage_spec *s = weir_spec_add_stage(spec, name, "b.task");
		weir_spec_link(s, "out", to, i == STAGES - 1);
		weir_spec_text(&s->group, "core");
		weir_spec_text(&s->admission.policy, "none");
		s->local = way->cells ? WEIR_LOCAL_ALWAYS : WEIR_LOCAL_AUTO;
	}
	sched_setaffinity(0, sizeof(all_cpus), &all_cpus); /* threads inherit it */
	if (weir_graph_build(spec, &g, &errs) != 0 || weir_graph_start(g, &errs) != 0 ||
	    weir_thread_attach(g, "bench") != 0) {
		fprintf(stderr, "%s\n", errs.err[0].text);
		exit(1);
	}
	return g;
}

static unsigned long hops_now(unsigned long *most)
{
	unsigned long all = 0;

	*most = 0;
	for (int i = 0; i < CPUS; i++) {
		unsigned long n = atomic_load_explicit(&hops[i].n, memory_order_relaxed);
		all += n;
		*most = n > *most ? n : *most;
	}
	return all;
}

/* Tasks a second; *share is the share of the busier core. */
static double run(const struct way *way, double *share)
{
	struct timespec ts = {0, RUN_NS};
	struct weir_graph *g = start(way);
	struct weir_event *all[TASKS];
	struct weir_drain_report r;
	unsigned long most;

	memset(hops, 0, sizeof(hops));
	atomic_store(&ends, false);
	atomic_store(&ended, 0);
	for (int i = 0; i < TASKS; i++) {
		weir_event_init(&events[i], &task_type, bench_now_ns());
		all[i] = &events[i];
	}
	weir_offer(weir_graph_stage(g, "s0"), all, TASKS, NULL);
	int64_t began = bench_now_ns();
	nanosleep(&ts, NULL);
	unsigned long n = hops_now(&most);
	double per_s = (double)n * 1e9 / (double)(bench_now_ns() - began);
	atomic_store(&ends, true);
	while (atomic_load(&ended) < TASKS)
		usleep(500);
	weir_thread_detach();
	weir_graph_drain(g, 1000000000, &r);
	weir_graph_free(g);
	*share = n ? (double)most / (double)n : 0;
	return per_s;
}

static void rows(int64_t ns)
{
	static const struct way ways[] = {
	    {"one queue", false, false}, {"+ cells", true, false}, {"+ dealing", true, true}};
	double v[3][ROUNDS], share[3][ROUNDS], m[3];

	work_ns = ns;
	for (int r = 0; r < ROUNDS; r++)
		for (int i = 0; i < 3; i++)
			v[i][r] = run(&ways[i], &share[i][r]);
	for (int i = 0; i < 3; i++) {
		m[i] = bench_summary(v[i], ROUNDS).median;
		printf("%8.1f us %-12s %10.0f %8.2f %14.2f\n", (double)ns / 1e3, ways[i].name, m[i],
		    i ? m[i] / m[i - 1] : 1, bench_summary(share[i], ROUNDS).median);
	}
	fflush(stdout);
}

int main(void)
{
	struct weir_err err = {0};

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		fprintf(stderr, "micro_queues needs two cores\n");
		return 1;
	}
	sched_getaffinity(0, sizeof(all_cpus), &all_cpus);
	bench_header("micro_queues");
	weir_stage_register(&task_ops, &err);
	printf("%11s %-12s %10s %8s %14s\n", "work", "", "tasks/s", "ratio", "busier core");
	rows(400);
	rows(3000);
	rows(10000);
	return 0;
}
