/* SPDX-License-Identifier: MIT */
/*
 * Measures the gain of cohorts. Six stages are run in two orders: depth first (all stages for one
 * request, then the next request), and stage by stage over a batch of requests. Both orders are
 * measured in a bare loop and with real weir stages. These are inline, so that queues and threads
 * do not distort the result.
 *
 * Each stage has its own code and its own table. The code is straight-line and has four independent
 * dependency chains, so that instruction fetch dominates its cost. The table is read by loads that
 * depend on each other. Each stage works on its own word of the request. If stages depended on each
 * other's results, batching could hide the latency of that dependence, and this effect would
 * be counted as a gain of cohorts.
 *
 * The columns show the time per request divided by that of the bare depth-first loop. "share" is
 * the gain of weir at batch 16 divided by the gain of the bare loop at batch 16; the goal is at
 * least 0.90. With weir, a batch of one should cost at most 1.03 plus the cost of the hop itself,
 * which micro_hop reports in ns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/graph.h>
#include <weir/stage.h>

#include "bench.h"

#define STAGES   6
#define REQUESTS 256
#define TOTAL    20000 /* requests per measurement, for the small kinds */

struct request {
	struct weir_event ev;
	uint64_t word[STAGES];
};

static struct request requests[REQUESTS] __attribute__((aligned(64)));

/* ---- code and tables of the stages ---- */

/* Each repetition is 28 bytes of code: two adds and two xors of 32-bit immediates, on four
 * registers. */
#define CODE(name, reps)                                                                           \
	static __attribute__((noinline, aligned(64))) uint64_t name(uint64_t x)                    \
	{                                                                                          \
		uint64_t a = x, b = x + 1, c = x + 2, d = x + 3;                                   \
		__asm__ volatile(".rept " #reps "\n\t"                                             \
				 "addq $0x1234567, %0\n\txorq $0x2345671, %1\n\t"                  \
				 "addq $0x3456712, %2\n\txorq $0x4567123, %3\n\t.endr"             \
				 : "+r"(a), "+r"(b), "+r"(c), "+r"(d)                              \
				 :                                                                 \
				 : "cc");                                                          \
		return a ^ b ^ c ^ d;                                                              \
	}
/* clang-format off */
#define SIX(kind, reps)                                                                            \
	CODE(kind##0, reps) CODE(kind##1, reps) CODE(kind##2, reps)                                \
	CODE(kind##3, reps) CODE(kind##4, reps) CODE(kind##5, reps)                                \
	static uint64_t (*const kind[STAGES])(uint64_t) = {                                        \
	    kind##0, kind##1, kind##2, kind##3, kind##4, kind##5};
/* clang-format on */

SIX(code_4k, 146)
SIX(code_24k, 877)
SIX(code_128k, 4681)

#define TABLE_MAX (128 * 1024 / sizeof(uint32_t))
static uint32_t table[STAGES][TABLE_MAX];

/* Fill the tables with one cycle through `n` entries in random order, so that each load depends on
 * the previous one. */
static void make_tables(uint32_t n)
{
	for (int s = 0; s < STAGES; s++) {
		uint32_t *t = table[s];
		unsigned rnd = (unsigned)s + 1;
		for (uint32_t i = 0; i < n; i++)
			t[i] = i;
		for (uint32_t i = n - 1; i > 0; i--) { /* Sattolo: a single cycle */
			uint32_t j = (uint32_t)rand_r(&rnd) % i, x = t[i];
			t[i] = t[j];
			t[j] = x;
		}
	}
}

struct kind {
	const char *name;
	uint64_t (*const *code)(uint64_t);
	int loads;
	uint32_t entries;
};

static const struct kind kinds[] = {
    {"4 KB code + 4 KB data (control)", code_4k, 16, 1024},
    {"24 KB code", code_24k, 0, 1},
    {"24 KB code + 96 loads in 24 KB", code_24k, 96, 6144},
    {"128 KB code + 128 KB table", code_128k, 512, TABLE_MAX},
};
static const struct kind *kind;

static inline void work(int stage, struct request *r)
{
	uint64_t x = kind->code[stage](r->word[stage]);
	uint32_t at = (uint32_t)(x % kind->entries);

	for (int i = 0; i < kind->loads; i++)
		at = table[stage][at];
	r->word[stage] = x + at;
}

/* ---- the bare loop ---- */

static int total(void)
{
	return kind->code == code_128k ? TOTAL / 10 : TOTAL;
}

static double bare(int batch)
{
	int n = total();
	int64_t start = bench_now_ns();

	for (int at = 0; at < n; at += batch) {
		for (int s = 0; s < STAGES; s++)
			for (int i = 0; i < batch; i++)
				work(s, &requests[(at + i) % REQUESTS]);
	}
	return (double)(bench_now_ns() - start) / n;
}

/* ---- the same through weir ---- */

static void req_finish(struct weir_event *ev, int status)
{
	(void)ev, (void)status;
}

static const struct weir_event_type req_type = {
    .name = "request", .size = sizeof(struct request), .finish = req_finish};
static const struct weir_outlet outlets[] = {{"out", &req_type, true, ""}, {.name = NULL}};

#define STAGE(i)                                                                                   \
	static void handle##i(struct weir_stage *st, struct weir_event **ev, int n)                \
	{                                                                                          \
		for (int k = 0; k < n; k++)                                                        \
			work(i, (struct request *)ev[k]);                                          \
		for (int k = 0; k < n; k++) {                                                      \
			if ((i) + 1 < STAGES)                                                      \
				weir_emit(st, 0, &ev[k]);                                          \
			else                                                                       \
				weir_event_finish(&ev[k], WEIR_OK);                                \
		}                                                                                  \
	}                                                                                          \
	static const struct weir_stage_ops ops##i = {.abi = WEIR_STAGE_ABI,                        \
	    .name = "b.stage" #i,                                                                  \
	    .summary = "bench",                                                                    \
	    .accepts = &req_type,                                                                  \
	    .outlets = outlets,                                                                    \
	    .handle = handle##i};
STAGE(0)
STAGE(1)
STAGE(2)
STAGE(3)
STAGE(4)
STAGE(5)

static struct weir_graph *make_graph(void)
{
	static const struct weir_stage_ops *const ops[] = {
	    &ops0, &ops1, &ops2, &ops3, &ops4, &ops5};
	struct weir_spec *spec = weir_spec_new("cohort");
	static struct weir_errs errs;
	struct weir_err err = {0};
	struct weir_graph *g = NULL;

	for (int i = 0; i < STAGES; i++) {
		weir_stage_register(ops[i], &err);
		struct weir_stage_spec *s = weir_spec_add_stage(spec, ops[i]->name, ops[i]->name);
		if (i + 1 < STAGES)
			weir_spec_link(s, "", ops[i + 1]->name, false);
		s->inlined = true;
	}
	if (weir_graph_build(spec, &g, &errs) != 0 || weir_graph_start(g, &errs) != 0 ||
	    weir_thread_attach(g, "bench") != 0) {
		fprintf(stderr, "%s\n", errs.err[0].text);
		exit(1);
	}
	return g;
}

static struct weir_stage *first;

static double staged(int batch)
{
	struct weir_event *run[REQUESTS];
	int n = total();
	int64_t start = bench_now_ns();

	for (int at = 0; at < n; at += batch) {
		for (int i = 0; i < batch; i++) {
			struct request *r = &requests[(at + i) % REQUESTS];
			weir_event_init(&r->ev, &req_type, start);
			run[i] = &r->ev;
		}
		weir_offer(first, run, batch, NULL);
	}
	return (double)(bench_now_ns() - start) / n;
}

/* Number of rounds, each of which measures every variant once. The medians over all rounds are
 * printed. */
#define ROUNDS 15
static const int batches[] = {1, 4, 16, 64, 256};
#define N_BATCHES 5

static void measure_kind(const struct kind *k)
{
	double v[2][N_BATCHES][ROUNDS], m[2][N_BATCHES];

	kind = k;
	make_tables(k->entries);
	bare(1);
	for (int r = 0; r < ROUNDS; r++) {
		for (int b = 0; b < N_BATCHES; b++) {
			v[0][b][r] = bare(batches[b]);
			v[1][b][r] = staged(batches[b]);
		}
	}
	for (int w = 0; w < 2; w++)
		for (int b = 0; b < N_BATCHES; b++)
			m[w][b] = bench_summary(v[w][b], ROUNDS).median;
	for (int w = 0; w < 2; w++) {
		printf("%-34s %-5s", w ? "" : k->name, w ? "weir" : "bare");
		for (int b = 0; b < N_BATCHES; b++)
			printf(" %8.2f", m[w][b] / m[0][0]);
		if (w)
			printf(" %9.2f\n", (m[0][0] - m[1][2]) / (m[0][0] - m[0][2]));
		else
			printf("            %.0f ns at batch 1\n", m[0][0]);
	}
	fflush(stdout);
}

int main(void)
{
	struct weir_drain_report r;

	bench_header("micro_cohort");
	bench_pin(0);
	struct weir_graph *g = make_graph();
	first = weir_graph_stage(g, "b.stage0");
	printf("%-34s %-5s", "each of six stages touches", "");
	for (int b = 0; b < N_BATCHES; b++)
		printf(" batch %2d", batches[b]);
	printf("     share (aim >= 0.90)\n");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		measure_kind(&kinds[i]);
	weir_thread_detach();
	weir_graph_drain(g, 1000000000, &r);
	weir_graph_free(g);
	return r.law_error ? 1 : 0;
}
