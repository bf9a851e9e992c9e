/* SPDX-License-Identifier: MIT */
/*
 * Measures cohorts of system calls, as Larus and Parkes do in figure 2: writes of 4 KB to random
 * blocks of a file, in cohorts of 1, 8 and 64, with caches that other work has filled before each
 * cohort.
 *
 * The rows are ns per write: in a bare loop, and through a core group of one core. There the stage
 * `write` gets cohorts, and the stage after it reads and jumps through EVICT bytes, so that nothing of
 * the calls is left in the L1 and L2 caches and the branch tables. Only the time in `write` counts.
 *
 *   micro_writes FILE     FILE is created with 64 MB and removed
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/graph.h>
#include <weir/stage.h>

#include "bench.h"

#define BLOCK   4096
#define BLOCKS  16384
#define EVICT   (8 << 20) /* twice the L2 caches of most machines */
#define COHORTS 200       /* per round */
#define ROUNDS  5
#define EVENTS  64

static int file;
static char block[BLOCK];
static unsigned char evict[EVICT];
static unsigned rnd = 1;

static void write_one(void)
{
	off_t at = (off_t)(rand_r(&rnd) % BLOCKS) * BLOCK;

	if (pwrite(file, block, BLOCK, at) != BLOCK)
		exit(1);
}

/* Read every line, and take branches that depend on it. */
static void flush(void)
{
	static volatile unsigned odd;

	for (size_t i = 0; i < EVICT; i += 64)
		if ((evict[i] += (unsigned char)(i >> 7)) & 1)
			odd++;
}

static double bare(int cohort)
{
	int64_t spent = 0;

	for (int i = 0; i < COHORTS; i++) {
		flush();
		int64_t began = bench_now_ns();
		for (int k = 0; k < cohort; k++)
			write_one();
		spent += bench_now_ns() - began;
	}
	return (double)spent / COHORTS / cohort;
}

/* ---- a core group ---- */

static struct weir_event events[EVENTS] __attribute__((aligned(64)));
static atomic_long spent_ns, written, cohorts, ended;

static void job_finish(struct weir_event *ev, int status)
{
	(void)ev, (void)status;
	atomic_fetch_add(&ended, 1);
}

static const struct weir_event_type job_type = {
    .name = "write", .size = sizeof(struct weir_event), .finish = job_finish};
static const struct weir_outlet outlets[] = {{"out", &job_type, true, ""}, {.name = NULL}};

static void write_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	int64_t began = bench_now_ns();

	for (int k = 0; k < n; k++)
		write_one();
	atomic_fetch_add(&spent_ns, bench_now_ns() - began);
	atomic_fetch_add(&written, n);
	atomic_fetch_add(&cohorts, 1);
	weir_emit_run(st, 0, ev, n);
}

static void flush_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	flush();
	if (atomic_load(&cohorts) >= COHORTS)
		weir_event_finish_run(ev, n, WEIR_OK);
	else
		weir_emit_run(st, 0, ev, n);
}

static const struct weir_stage_ops write_ops = {.abi = WEIR_STAGE_ABI,
    .name = "b.write",
    .summary = "bench",
    .accepts = &job_type,
    .outlets = outlets,
    .handle = write_handle};
static const struct weir_stage_ops flush_ops = {.abi = WEIR_STAGE_ABI,
    .name = "b.flush",
    .summary = "bench",
    .accepts = &job_type,
    .outlets = outlets,
    .handle = flush_handle};

static struct weir_stage_spec *add(
    struct weir_spec *spec, const char *use, const char *to, bool loop)
{
	struct weir_stage_spec *s = weir_spec_add_stage(spec, use, use);

	weir_spec_link(s, "out", to, loop);
	weir_spec_text(&s->group, "core");
	weir_spec_text(&s->admission.policy, "none");
	s->local = WEIR_LOCAL_ALWAYS;
	s->cohort.max = WEIR_BATCH_MAX;
	return s;
}

/* ns per write while `cohort` events are under way, which the stages pass on together. *size is the
 * mean size of the cohorts. */
static double group(int cohort, double *size)
{
	struct weir_spec *spec = weir_spec_new("writes");
	struct weir_group_spec *gs = weir_spec_add_group(spec, "core");
	static struct weir_errs errs;
	struct weir_event *run[EVENTS];
	struct weir_graph *g = NULL;
	struct weir_drain_report r;

	weir_spec_text(&gs->schedule, "wavefront");
	weir_spec_text(&gs->cores, "1");
	add(spec, "b.write", "b.flush", false);
	add(spec, "b.flush", "b.write", true);
	if (weir_graph_build(spec, &g, &errs) != 0 || weir_graph_start(g, &errs) != 0 ||
	    weir_thread_attach(g, "bench") != 0) {
		fprintf(stderr, "%s\n", errs.err[0].text);
		exit(1);
	}
	spent_ns = written = cohorts = ended = 0;
	for (int i = 0; i < cohort; i++) {
		weir_event_init(&events[i], &job_type, bench_now_ns());
		run[i] = &events[i];
	}
	weir_offer(weir_graph_stage(g, "b.write"), run, cohort, NULL);
	while (atomic_load(&ended) < cohort)
		usleep(500);
	weir_thread_detach();
	weir_graph_drain(g, 1000000000, &r);
	weir_graph_free(g);
	*size = (double)written / (double)cohorts;
	return (double)spent_ns / (double)written;
}

static void print_row(const char *name, int cohort, double *v, double size, double *one)
{
	double ns = bench_summary(v, ROUNDS).median;

	*one = cohort == 1 ? ns : *one;
	printf("%-16s %6d %10.1f %10.0f %8.2f\n", name, cohort, size, ns, ns / *one);
}

int main(int argc, char **argv)
{
	static const int sizes[] = {1, 8, 64};
	double v[2][3][ROUNDS], size[3], one[2] = {0, 0};
	struct weir_err err = {0};

	if (argc != 2 || (file = open(argv[1], O_RDWR | O_CREAT | O_EXCL, 0600)) < 0) {
		fprintf(stderr, "usage: micro_writes FILE, which does not exist\n");
		return 1;
	}
	bench_header("micro_writes");
	unlink(argv[1]);
	for (int i = 0; i < BLOCKS; i++)
		if (pwrite(file, block, BLOCK, (off_t)i * BLOCK) != BLOCK)
			return 1;
	weir_stage_register(&write_ops, &err);
	weir_stage_register(&flush_ops, &err);
	for (int r = 0; r < ROUNDS; r++)
		for (int i = 0; i < 3; i++) {
			v[0][i][r] = bare(sizes[i]);
			v[1][i][r] = group(sizes[i], &size[i]);
		}
	printf("%-16s %6s %10s %10s %8s\n", "", "cohort", "mean size", "ns a write", "of one");
	for (int i = 0; i < 3; i++)
		print_row("bare loop", sizes[i], v[0][i], sizes[i], &one[0]);
	for (int i = 0; i < 3; i++)
		print_row("core group", sizes[i], v[1][i], size[i], &one[1]);
	return 0;
}
