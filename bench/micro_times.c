/* SPDX-License-Identifier: MIT */
/*
 * Measures what sampling the time of threads costs (graph/thread_time.c): the rounds of the control
 * thread that read the counters of the kernel and look at threads in handlers, ten times a second.
 *
 *   micro_times [SECONDS]
 *
 * A stage serves events as fast as it can. Windows of WINDOW_NS with and without the rounds take
 * turns, so that a change of the machine affects both; the order within a pair alternates, too. The
 * figure of a window is the CPU time of the whole process per event. A row has the median, and the
 * quartiles, of the ratio off/on over the pairs, and the CPU time of the control thread:
 *
 *   busy     2 threads that compute for about 1 us per event: rounds find threads that run
 *   asleep   64 threads that sleep for 2 ms per event: each round looks at as many as it may
 *
 * 1.000 means that the rounds cost nothing, 0.990 that they take 1 % of the CPU time.
 */
#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/graph.h>
#include <weir/stage.h>

#include "bench.h"
#include "bench_graph.h"
#include "graph/thread_time.h"

#define WINDOW_NS 500000000LL
#define PAIRS_MAX 400
#define IN_FLIGHT 512
#define BATCH     32

static _Atomic uint64_t ended;

static void finish(struct weir_event *ev, int status)
{
	(void)status;
	free(ev);
	atomic_fetch_add_explicit(&ended, 1, memory_order_relaxed);
}

static const struct weir_event_type type = {
    .name = "bench.times", .size = sizeof(struct weir_event), .finish = finish};

static void busy_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		volatile unsigned x = 1;
		for (int k = 0; k < 700; k++)
			x = x * 1664525u + 1013904223u;
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

static void asleep_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	static const struct timespec nap = {0, 2000000};

	(void)st;
	for (int i = 0; i < n; i++) {
		nanosleep(&nap, NULL);
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

/* A row of the table. */
struct shape {
	struct weir_stage_ops ops;
	const char *threads;
};

static const struct shape shapes[] = {
    {{.abi = WEIR_STAGE_ABI,
	 .name = "b.busy",
	 .summary = "bench",
	 .accepts = &type,
	 .handle = busy_handle},
	"2"},
    {{.abi = WEIR_STAGE_ABI,
	 .name = "b.asleep",
	 .summary = "bench",
	 .accepts = &type,
	 .handle = asleep_handle},
	"64"},
};

static void set(struct weir_stage_spec *s, const char *knob, const char *value)
{
	char why[256] = "";

	if (weir_stage_spec_set(s, knob, value, why, sizeof(why)) == 0)
		return;
	fprintf(stderr, "%s: %s\n", knob, why);
	exit(1);
}

static struct weir_graph *start(const struct shape *shape)
{
	struct weir_spec *spec = weir_spec_new("bench");
	struct weir_err err = {0};

	weir_stage_register(&shape->ops, &err);
	struct weir_stage_spec *s = weir_spec_add_stage(spec, "work", shape->ops.name);
	set(s, "threads.max", shape->threads);
	set(s, "threads.min", shape->threads);
	set(s, "threads.policy", "static");
	set(s, "queue.limit", "4096");
	set(s, "slo", "1h");
	set(s, "cohort.max", "1");
	set(s, "admission.policy", "none");
	return bench_graph_start(spec);
}

/* Offer events until `until_ns`, with at most IN_FLIGHT under way. */
static void load_until(struct weir_stage *st, int64_t until_ns, uint64_t *sent)
{
	static const struct timespec nap = {0, 200000};
	struct weir_event *run[BATCH];

	while (bench_now_ns() < until_ns) {
		if (*sent - atomic_load_explicit(&ended, memory_order_relaxed) >
		    IN_FLIGHT - BATCH) {
			nanosleep(
			    &nap, NULL); /* so that this thread takes little of the CPU time */
			continue;
		}
		for (int i = 0; i < BATCH; i++) {
			run[i] = malloc(sizeof(*run[i]));
			if (!run[i])
				exit(1);
			weir_event_init(run[i], &type, bench_now_ns());
		}
		weir_offer(st, run, BATCH, NULL);
		*sent += BATCH;
	}
}

/* CPU time of the control thread, in ns. */
static double control_ns(void)
{
	DIR *dir = opendir("/proc/self/task");
	double ns = 0;

	for (struct dirent *e; dir && (e = readdir(dir));) {
		char path[300], comm[32] = "";
		double mine = 0;
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		FILE *f = fopen(path, "r");
		if (f && fscanf(f, "%31s", comm) != 1)
			comm[0] = '\0';
		if (f)
			fclose(f);
		if (!strstr(comm, "control"))
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", e->d_name);
		f = fopen(path, "r");
		if (f && fscanf(f, "%lf", &mine) == 1)
			ns += mine;
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return ns;
}

struct window {
	double cpu_per_event_ns, control_share;
};

static struct window window(struct weir_graph *g, bool on, uint64_t *sent)
{
	struct weir_stage *st = weir_graph_stage(g, "work");

	graph_time_pause(g, !on);
	load_until(st, bench_now_ns() + WINDOW_NS / 5, sent);
	int64_t start_ns = bench_now_ns(), cpu_ns = bench_cpu_ns();
	uint64_t before = atomic_load(&ended);
	double control = control_ns();
	load_until(st, start_ns + WINDOW_NS, sent);
	cpu_ns = bench_cpu_ns() - cpu_ns;
	return (struct window){(double)cpu_ns / (double)(atomic_load(&ended) - before),
	    (control_ns() - control) / (double)(bench_now_ns() - start_ns)};
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void row(const struct shape *shape, int pairs)
{
	static double ratio[PAIRS_MAX], share[2][PAIRS_MAX], per_event[PAIRS_MAX];
	struct weir_graph *g = start(shape);
	uint64_t sent = 0;

	atomic_store(&ended, 0);
	for (int i = 0; i < pairs; i++) {
		struct window w[2]; /* off, on */
		for (int k = 0; k < 2; k++) {
			int on = (i + k) % 2;
			w[on] = window(g, on, &sent);
			share[on][i] = w[on].control_share;
		}
		ratio[i] = w[0].cpu_per_event_ns / w[1].cpu_per_event_ns;
		per_event[i] = w[1].cpu_per_event_ns;
	}
	bench_graph_end(g);
	qsort(ratio, (size_t)pairs, sizeof(ratio[0]), compare);
	printf("%-8s %8s %10.0f %8.4f %8.4f %8.4f %9.3f %9.3f\n", shape->ops.name + 2,
	    shape->threads, bench_summary(per_event, pairs).median, ratio[pairs / 2],
	    ratio[pairs / 4], ratio[3 * pairs / 4], 100 * bench_summary(share[0], pairs).median,
	    100 * bench_summary(share[1], pairs).median);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 60;
	int pairs = (int)(seconds / (2.4 * (double)WINDOW_NS / 1e9) / 2);

	pairs = pairs < 4 ? 4 : pairs > PAIRS_MAX ? PAIRS_MAX : pairs;
	bench_header("micro_times");
	printf("%-8s %8s %10s %8s %8s %8s %9s %9s   (%d pairs)\n", "threads", "number", "ns/event",
	    "off/on", "quartile", "quartile", "% off", "% on", pairs);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		row(&shapes[i], pairs);
	return 0;
}
