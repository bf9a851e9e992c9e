/* SPDX-License-Identifier: MIT */
/*
 * Measures what queues with `discipline: shortest`, the gate `cutoff` and the policy `srpt` do for
 * short requests if service times have a heavy tail, on two cores. bench/tail_table computes the
 * same in virtual time.
 *
 *   micro_tail [seconds a row and round=4] [rounds=5] [load=0.6]
 *
 * Before each round of a row, two threads work for 50 ms, and the requests come at `load` of the rate
 * that they reach. Since other work may slow the machine down later, the time in which the threads
 * worked or waited for a CPU is measured, too ("busy"). A round counts only if in the row and in that
 * with which it is compared, busy differs from `load` by at most OFF. The rows of a round follow each
 * other, beginning with another one each time.
 *
 * The main thread offers requests at random times to two threads or cores. A request computes for 20
 * us to 50 ms (bounded Pareto, alpha 1.1, mean 120 us; 1.3 % of them over 1 ms), in steps of 10 us.
 * All rows get the same work at the same times. In `one`, a single stage does all of it. In `chain`,
 * requests of up to 1 ms pass parse, short and send, and others parse, eight parts and send.
 *
 * A row shows the 99th percentile of the response times of requests with at most 1 ms of work, and
 * the mean of all requests, as medians of the rounds; and as medians of the ratios to the row `fifo`
 * of the same graph in the same round.
 */
#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/graph.h>
#include <weir/random.h>
#include <weir/stage.h>

#include "bench.h"

#define LEAST_NS   20000
#define MOST_NS    50000000
#define ALPHA      1.1
#define SHORT_NS   1000000
#define STEP_NS    10000
#define PARTS      8
#define ROUNDS_MAX 32
#define OFF        0.07

struct job {
	struct weir_event ev;
	int64_t ended_ns;
	uint64_t work_ns, steps; /* steps left at its stage */
};

static struct job *jobs;
static double *times;
static int n_jobs;
static atomic_int ended;
static uint64_t per_step; /* turns of the loop in a step */

/* ---- work ---- */

static void turn_round(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		__asm__ volatile("" : "+r"(i));
}

static void calibrate(void)
{
	int64_t best_ns = INT64_MAX;

	for (int i = 0; i < 50; i++) {
		int64_t from_ns = bench_now_ns();
		turn_round(1000000);
		int64_t took_ns = bench_now_ns() - from_ns;
		best_ns = took_ns < best_ns ? took_ns : best_ns;
	}
	per_step = (uint64_t)(1000000.0 * STEP_NS / (double)best_ns);
}

static void *work_for_a_while(void *arg)
{
	uint64_t *steps = arg;

	for (int64_t end_ns = bench_now_ns() + 50000000; bench_now_ns() < end_ns; ++*steps)
		turn_round(per_step);
	return NULL;
}

/* Steps that both cores do in a ns at present. */
static double step_rate(void)
{
	uint64_t steps[2] = {0, 0};
	pthread_t other;
	int64_t from_ns = bench_now_ns();

	if (pthread_create(&other, NULL, work_for_a_while, &steps[1]) != 0)
		exit(1);
	work_for_a_while(&steps[0]);
	pthread_join(other, NULL);
	return (double)(steps[0] + steps[1]) / (double)(bench_now_ns() - from_ns);
}

/* Time that the living threads of the process have run, or have waited for a CPU. */
static double busy_ns(void)
{
	DIR *dir = opendir("/proc/self/task");
	double sum = 0, ran, waited;
	char path[300];

	for (struct dirent *e; dir && (e = readdir(dir));) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", e->d_name);
		FILE *f = e->d_name[0] == '.' ? NULL : fopen(path, "r");
		if (f && fscanf(f, "%lf %lf", &ran, &waited) == 2)
			sum += ran + waited;
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return sum;
}

static double draw_work_ns(uint64_t number)
{
	double cut = pow((double)LEAST_NS / MOST_NS, ALPHA);
	double u = weir_random_unit(weir_random_at(1, number));

	return LEAST_NS * pow(1 - u * (1 - cut), -1 / ALPHA);
}

static double mean_work_ns(void)
{
	double sum = 0;

	for (uint64_t i = 0; i < 100000; i++)
		sum += draw_work_ns(i);
	return sum / 100000;
}

static struct job *job_of(struct weir_event *ev)
{
	return (struct job *)ev;
}

static void job_finish(struct weir_event *ev, int status)
{
	(void)status;
	job_of(ev)->ended_ns = bench_now_ns();
	atomic_fetch_add(&ended, 1);
}

static uint64_t job_cost(const struct weir_event *ev)
{
	return ((const struct job *)ev)->steps;
}

static const struct weir_event_type job_type = {
    .name = "job", .size = sizeof(struct job), .finish = job_finish, .cost = job_cost};

/* ---- stages ---- */

static void work_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct job *job = job_of(ev[i]);
		bool over = weir_slice_over(st); /* the slice begins */
		for (; job->steps > 0 && !over; job->steps--) {
			turn_round(per_step);
			over = weir_slice_over(st);
		}
		if (job->steps > 0)
			weir_requeue(st, &ev[i]);
		else
			weir_event_finish(&ev[i], WEIR_OK);
	}
}

static void parse_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct job *job = job_of(ev[i]);
		turn_round(per_step);
		bool brief = job->work_ns <= SHORT_NS;
		job->steps = job->work_ns / STEP_NS / (brief ? 1 : PARTS);
		weir_emit(st, brief ? 0 : 1, &ev[i]);
	}
}

static void part_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		turn_round(per_step * job_of(ev[i])->steps);
		weir_emit(st, 0, &ev[i]);
	}
}

static void send_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		turn_round(per_step);
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

static const struct weir_outlet one[] = {{"out", WEIR_ANY_EVENT, true, ""}, {.name = NULL}};
static const struct weir_outlet two[] = {
    {"brief", WEIR_ANY_EVENT, true, ""}, {"long", WEIR_ANY_EVENT, true, ""}, {.name = NULL}};

#define OPS(id, text, fn, out)                                                                     \
	static const struct weir_stage_ops id = {.abi = WEIR_STAGE_ABI,                            \
	    .name = text,                                                                          \
	    .summary = "bench",                                                                    \
	    .accepts = &job_type,                                                                  \
	    .outlets = out,                                                                        \
	    .handle = fn}
OPS(work_ops, "b.work", work_handle, NULL);
OPS(parse_ops, "b.parse", parse_handle, two);
OPS(part_ops, "b.part", part_handle, one);
OPS(send_ops, "b.send", send_handle, NULL);

static void register_types(void)
{
	static const struct weir_stage_ops *const types[] = {
	    &work_ops, &parse_ops, &part_ops, &send_ops};
	struct weir_err err;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (weir_stage_register(types[i], &err) != 0) {
			fprintf(stderr, "%s\n", err.text);
			exit(1);
		}
}

/* ---- graphs ---- */

struct row {
	const char *name;
	const char *schedule; /* NULL: a pool */
	bool chain, shortest;
	int64_t cutoff_ns;
	int base; /* the row with which it is compared */
};

static const struct row rows[] = {
    {"one, fifo, pool", NULL, false, false, 0, 0},
    {"one, shortest, pool", NULL, false, true, 0, 0},
    {"one, fifo, core group", "fifo", false, false, 0, 2},
    {"one, shortest, core group", "fifo", false, true, 0, 2},
    {"one, cutoff 1ms, core group", "fifo", false, false, 1000000, 2},
    {"chain, fifo, core group", "fifo", true, false, 0, 5},
    {"chain, srpt, core group", "srpt", true, false, 0, 5},
};

#define ROWS (int)(sizeof(rows) / sizeof(rows[0]))

static struct weir_stage_spec *add(
    struct weir_spec *spec, const struct row *row, const char *name, const char *use)
{
	struct weir_stage_spec *s = weir_spec_add_stage(spec, name, use);

	weir_spec_text(&s->admission.policy, "none");
	s->queue.limit = 1 << 20;
	s->slo_ns = 60000000000;
	if (row->schedule)
		weir_spec_text(&s->group, "core");
	else
		s->threads.min = s->threads.max = 2;
	if (row->shortest)
		s->queue.discipline = WEIR_DISCIPLINE_SHORTEST;
	return s;
}

static void add_chain(struct weir_spec *spec, const struct row *row)
{
	char name[16], next[16];
	struct weir_stage_spec *s = add(spec, row, "parse", "b.parse");

	weir_spec_link(s, "brief", "short", false);
	weir_spec_link(s, "long", "part1", false);
	weir_spec_link(add(spec, row, "short", "b.part"), "", "send", false);
	for (int i = 1; i <= PARTS; i++) {
		snprintf(name, sizeof(name), "part%d", i);
		snprintf(next, sizeof(next), "part%d", i + 1);
		weir_spec_link(
		    add(spec, row, name, "b.part"), "", i < PARTS ? next : "send", false);
	}
	add(spec, row, "send", "b.send");
}

static struct weir_graph *start(const struct row *row)
{
	struct weir_spec *spec = weir_spec_new("tail");
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	struct weir_graph *g = NULL;

	if (row->schedule) {
		struct weir_group_spec *group = weir_spec_add_group(spec, "core");
		weir_spec_text(&group->schedule, row->schedule);
		weir_spec_text(&group->cores, "2");
		group->gate.cutoff_ns = row->cutoff_ns;
	}
	if (row->chain)
		add_chain(spec, row);
	else
		add(spec, row, "work", "b.work");
	if (!errs || weir_graph_build(spec, &g, errs) != 0 || weir_graph_start(g, errs) != 0) {
		fprintf(stderr, "no graph: %s\n", errs ? errs->err[0].text : "out of memory");
		exit(1);
	}
	free(errs);
	return g;
}

/* ---- a round ---- */

struct figures {
	double brief_ms, mean_ms;
	double busy; /* share of the time of two cores, while requests came */
};

static void sleep_until(int64_t at_ns)
{
	struct timespec ts = {at_ns / 1000000000, at_ns % 1000000000};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

/* Offer all jobs, `gap_ns` apart on average. */
static void offer_all(struct weir_stage *to, double gap_ns, uint64_t round)
{
	double at_ns = (double)bench_now_ns();

	for (int i = 0; i < n_jobs; i++) {
		struct job *job = &jobs[i];
		struct weir_event *ev = &job->ev;
		uint64_t number = round * (uint64_t)n_jobs + (uint64_t)i;
		at_ns -= log(weir_random_unit(weir_random_at(2, number))) * gap_ns;
		if ((double)bench_now_ns() < at_ns)
			sleep_until((int64_t)at_ns);
		weir_event_init(ev, &job_type, bench_now_ns());
		job->work_ns = (uint64_t)draw_work_ns(number);
		job->steps = job->work_ns / STEP_NS;
		if (weir_offer(to, &ev, 1, NULL) != 1) {
			fprintf(stderr, "an event was refused\n");
			exit(1);
		}
	}
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static struct figures round_of(const struct row *row, double load, uint64_t round)
{
	double gap_ns = mean_work_ns() / STEP_NS / (step_rate() * load);
	struct weir_graph *g = start(row);
	struct weir_drain_report report;
	double sum = 0;
	int n = 0;

	atomic_store(&ended, 0);
	weir_thread_attach(g, "bench");
	double before_ns = busy_ns(), from_ns = (double)bench_now_ns();
	offer_all(weir_graph_stage(g, row->chain ? "parse" : "work"), gap_ns, round);
	double busy = (busy_ns() - before_ns) / ((double)bench_now_ns() - from_ns) / 2;
	while (atomic_load(&ended) < n_jobs)
		sleep_until(bench_now_ns() + 1000000);
	weir_thread_detach();
	weir_graph_drain(g, 10000000000LL, &report);
	weir_graph_free(g);
	for (int i = 0; i < n_jobs; i++) {
		double took_ns = (double)(jobs[i].ended_ns - jobs[i].ev.arrival_ns);
		sum += took_ns;
		if (jobs[i].work_ns <= SHORT_NS)
			times[n++] = took_ns;
	}
	qsort(times, (size_t)n, sizeof(*times), ascending);
	return (struct figures){times[n * 99 / 100] / 1e6, sum / n_jobs / 1e6, busy};
}

static bool counts(const struct figures *f, double load)
{
	return fabs(f->busy - load) <= OFF;
}

static void print_row(int i, struct figures f[ROWS][ROUNDS_MAX], int rounds, double load)
{
	double brief[ROUNDS_MAX], mean[ROUNDS_MAX], of_brief[ROUNDS_MAX], of_mean[ROUNDS_MAX],
	    busy[ROUNDS_MAX];
	int n = 0;

	for (int k = 0; k < rounds; k++) {
		const struct figures *own = &f[i][k], *base = &f[rows[i].base][k];
		busy[k] = own->busy;
		if (!counts(own, load) || !counts(base, load))
			continue;
		brief[n] = own->brief_ms;
		mean[n] = own->mean_ms;
		of_brief[n] = own->brief_ms / base->brief_ms;
		of_mean[n++] = own->mean_ms / base->mean_ms;
	}
	struct bench_stat b = bench_summary(busy, rounds);
	printf("%-28s busy %.2f (%.2f to %.2f), %d of %d rounds count", rows[i].name, b.median,
	    b.low, b.high, n, rounds);
	if (n > 0) {
		struct bench_stat ratio = bench_summary(of_brief, n);
		struct bench_stat ratio_mean = bench_summary(of_mean, n);
		printf(": p99 of short %6.2f ms, of fifo %.2f (%.2f to %.2f); mean %.2f ms, of "
		       "fifo %.2f (%.2f to %.2f)",
		    bench_summary(brief, n).median, ratio.median, ratio.low, ratio.high,
		    bench_summary(mean, n).median, ratio_mean.median, ratio_mean.low,
		    ratio_mean.high);
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	static struct figures f[ROWS][ROUNDS_MAX];
	double seconds = argc > 1 ? atof(argv[1]) : 4, load = argc > 3 ? atof(argv[3]) : 0.6;
	int rounds = argc > 2 ? atoi(argv[2]) : 5;

	if (!(seconds > 0) || rounds < 1 || rounds > ROUNDS_MAX || !(load > 0 && load < 1)) {
		fprintf(stderr, "usage: micro_tail [seconds] [rounds] [load]\n");
		return 1;
	}
	bench_header("micro_tail");
	calibrate();
	n_jobs = (int)(seconds * 1e9 * 2 * load / mean_work_ns()) + 100;
	jobs = aligned_alloc(64, (size_t)n_jobs * sizeof(*jobs) / 64 * 64 + 64);
	times = calloc((size_t)n_jobs, sizeof(*times));
	if (!jobs || !times)
		return 1;
	register_types();
	for (int k = 0; k < rounds; k++)
		for (int i = 0; i < ROWS; i++) {
			int at = (i + k) % ROWS;
			f[at][k] = round_of(&rows[at], load, (uint64_t)k);
		}
	for (int i = 0; i < ROWS; i++)
		print_row(i, f, rounds, load);
	free(jobs);
	free(times);
	return 0;
}
