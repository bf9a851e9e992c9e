/* SPDX-License-Identifier: MIT */
/*
 * Measures the gain of cohorts. Six stages are run in two orders: depth first (all stages for one
 * request, then the next request), and stage by stage over a batch of requests. Both orders are
 * measured in a bare loop and with real weir stages: inline, so that queues and threads do not
 * distort the result, and in a core group of one core, where the events of a batch circulate through
 * the stages.
 *
 * Each stage has its own code and its own table. The code is straight-line and has four independent
 * dependency chains, so that instruction fetch dominates its cost. The table is read by loads that
 * depend on each other. Each stage works on its own word of the request: if stages depended on each
 * other's results, batching could hide the latency of that dependence, which is no gain of cohorts.
 * All orders run the same functions on the same requests, whose words differ: requests with equal
 * words would read the same entries of a table.
 *
 * The columns show the CPU time per request divided by that of the bare depth-first loop. "share" is
 * the gain of weir at batch 16 divided by that of the bare loop; the goal is at least 0.90. In the
 * row "fence", a stage of the bare loop begins its batch when the one before has ended: without that,
 * the processor begins the next stage while the loads of the last one are under way, which a hop,
 * which reads the clock, prevents. The row "core" is the core group. For it, "lost" is the gain that
 * is lost at batch 16, in hops: six are the goal where the bare gain is below 600 ns. A batch of one
 * should cost at most 1.03 and six hops. A hop is measured with stages that do nothing.
 *
 *   micro_cohort [KIND]                     all four kinds, or number 0 to 3
 *   micro_cohort BATCH REQUESTS [KIND=2]    runs only what bench/misses counts
 *   micro_cohort -BATCH REQUESTS [KIND=2]   the bare loop, for comparison
 */
#include <limits.h>
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
static const struct kind nothing = {"nothing", NULL, 0, 1};
static const struct kind *kind;

static inline void work(int stage, struct request *r)
{
	if (!kind->code)
		return;
	uint64_t x = kind->code[stage](r->word[stage]);
	uint32_t at = (uint32_t)(x % kind->entries);

	for (int i = 0; i < kind->loads; i++)
		at = table[stage][at];
	r->word[stage] = x + at;
}

/* What stage `i` does with a batch, in the bare loop and in weir alike. */
#define WORK(i)                                                                                    \
	static __attribute__((noinline)) void work##i(struct weir_event **ev, int n)               \
	{                                                                                          \
		for (int k = 0; k < n; k++)                                                        \
			work(i, (struct request *)ev[k]);                                          \
	}
WORK(0)
WORK(1)
WORK(2)
WORK(3)
WORK(4)
WORK(5)
static void (*const works[STAGES])(struct weir_event **ev, int n) = {
    work0, work1, work2, work3, work4, work5};

/* Give all words values of their own: requests with equal words would read the same entries of a
 * table, so that the next one would find them in the cache without a batch. */
static void seed_words(void)
{
	uint64_t x = 1;

	for (int r = 0; r < REQUESTS; r++)
		for (int s = 0; s < STAGES; s++) {
			x = x * 6364136223846793005U + 1442695040888963407U;
			requests[r].word[s] = x >> 16;
		}
}

/* ---- the bare loop ---- */

static int total(void)
{
	return kind->code == code_128k ? TOTAL / 10 : TOTAL;
}

/* CPU time of this thread, or of the process: the machine may be busy. */
static int64_t cpu_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* The requests are those that circulate in the core group. `fenced`: a stage begins its batch when
 * the one before has ended. */
static void bare_run(int batch, int n, bool fenced)
{
	struct weir_event *run[REQUESTS];

	for (int i = 0; i < batch; i++)
		run[i] = &requests[i].ev;
	for (int at = 0; at < n; at += batch)
		for (int s = 0; s < STAGES; s++) {
			works[s](run, batch);
			if (fenced)
				__builtin_ia32_lfence();
		}
}

static double bare(int batch, bool fenced)
{
	int n = total();

	seed_words();
	int64_t start = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	bare_run(batch, n, fenced);
	return (double)(cpu_ns(CLOCK_THREAD_CPUTIME_ID) - start) / n;
}

/* ---- the same through weir ---- */

static void req_finish(struct weir_event *ev, int status)
{
	(void)ev, (void)status;
}

static const struct weir_event_type req_type = {
    .name = "request", .size = sizeof(struct request), .finish = req_finish};
static const struct weir_outlet outlets[] = {{"out", &req_type, true, ""}, {.name = NULL}};

static void lap(struct weir_stage *st, struct weir_event **ev, int n);

#define STAGE(i)                                                                                   \
	static void handle##i(struct weir_stage *st, struct weir_event **ev, int n)                \
	{                                                                                          \
		work##i(ev, n);                                                                    \
		for (int k = 0; k < n; k++) {                                                      \
			if ((i) + 1 < STAGES)                                                      \
				weir_emit(st, 0, &ev[k]);                                          \
		}                                                                                  \
		if ((i) + 1 == STAGES)                                                             \
			lap(st, ev, n);                                                            \
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

static const struct weir_stage_ops *const all_ops[STAGES] = {
    &ops0, &ops1, &ops2, &ops3, &ops4, &ops5};
static struct weir_stage *first;

static void register_stages(void)
{
	struct weir_err err = {0};

	for (int i = 0; i < STAGES; i++)
		weir_stage_register(all_ops[i], &err);
}

static struct weir_graph *make_graph(void)
{
	struct weir_spec *spec = weir_spec_new("cohort");

	for (int i = 0; i < STAGES; i++) {
		struct weir_stage_spec *s =
		    weir_spec_add_stage(spec, all_ops[i]->name, all_ops[i]->name);
		if (i + 1 < STAGES)
			weir_spec_link(s, "", all_ops[i + 1]->name, false);
		s->inlined = true;
	}
	struct weir_graph *g = bench_graph_start(spec);
	first = weir_graph_stage(g, "b.stage0");
	return g;
}

static void end_graph(struct weir_graph *g)
{
	struct weir_drain_report r;

	weir_thread_detach();
	weir_graph_drain(g, 1000000000, &r);
	weir_graph_free(g);
	if (r.law_error)
		exit(1);
}

/* ns per request of `n` requests in batches. */
static double staged(int batch, int n)
{
	struct weir_event *run[REQUESTS];

	seed_words();
	int64_t start = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	for (int at = 0; at < n; at += batch) {
		for (int i = 0; i < batch; i++) {
			struct request *r = &requests[i];
			weir_event_init(&r->ev, &req_type, start);
			run[i] = &r->ev;
		}
		weir_offer(first, run, batch, NULL);
	}
	return (double)(cpu_ns(CLOCK_THREAD_CPUTIME_ID) - start) / n;
}

/* ---- a core group ---- */

/* In the group the last stage sends to the first one again, until `ends`. */
static atomic_bool ends, circulates;
static atomic_ulong laps, ended, most_laps = ULONG_MAX;

static void lap(struct weir_stage *st, struct weir_event **ev, int n)
{
	if (!atomic_load_explicit(&circulates, memory_order_relaxed) ||
	    atomic_load_explicit(&ends, memory_order_relaxed) ||
	    atomic_load_explicit(&laps, memory_order_relaxed) >=
		atomic_load_explicit(&most_laps, memory_order_relaxed)) {
		atomic_fetch_add(&ended, (unsigned long)n);
		weir_event_finish_run(ev, n, WEIR_OK);
		return;
	}
	atomic_store_explicit(&laps,
	    atomic_load_explicit(&laps, memory_order_relaxed) + (unsigned long)n,
	    memory_order_relaxed);
	weir_emit_run(st, 0, ev, n);
}

static struct weir_graph *group_graph(void)
{
	struct weir_spec *spec = weir_spec_new("group");
	struct weir_group_spec *gs = weir_spec_add_group(spec, "core");

	weir_spec_text(&gs->schedule, "wavefront");
	weir_spec_text(&gs->cores, "1");
	for (int i = 0; i < STAGES; i++) {
		char name[16], to[16];
		snprintf(name, sizeof(name), "b.stage%d", i);
		snprintf(to, sizeof(to), "b.stage%d", (i + 1) % STAGES);
		struct weir_stage_spec *s = weir_spec_add_stage(spec, name, name);
		weir_spec_link(s, "out", to, i == STAGES - 1);
		weir_spec_text(&s->group, "core");
		weir_spec_text(&s->admission.policy, "none");
		s->cohort.max = WEIR_BATCH_MAX;
		/* work of 128 KB takes more than `local: auto` leaves in cells; the question here is
		 * what cells gain */
		s->local = WEIR_LOCAL_ALWAYS;
	}
	return bench_graph_start(spec);
}

static void send_round(struct weir_graph *g, int batch)
{
	struct weir_event *run[REQUESTS];

	atomic_store(&ends, false);
	atomic_store(&circulates, true);
	atomic_store(&ended, 0);
	atomic_store(&laps, 0);
	seed_words();
	for (int i = 0; i < batch; i++) {
		weir_event_init(&requests[i].ev, &req_type, bench_now_ns());
		run[i] = &requests[i].ev;
	}
	weir_offer(weir_graph_stage(g, "b.stage0"), run, batch, NULL);
}

static void await_end(struct weir_graph *g, int batch)
{
	struct weir_drain_report r;

	while (atomic_load(&ended) < (unsigned long)batch)
		usleep(100);
	atomic_store(&circulates, false);
	weir_thread_detach();
	weir_graph_drain(g, 1000000000, &r);
	weir_graph_free(g);
}

/* CPU ns of a lap while `batch` events are under way. */
static double group_ns(int batch)
{
	struct weir_graph *g = group_graph();

	send_round(g, batch);
	usleep(2000);
	unsigned long before = atomic_load(&laps);
	int64_t began_ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
	usleep(15000);
	int64_t spent_ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - began_ns;
	unsigned long n = atomic_load(&laps) - before;
	atomic_store(&ends, true);
	await_end(g, batch);
	return (double)spent_ns / (double)(n ? n : 1);
}

/* Number of rounds, each of which measures every variant once. The medians over all rounds are
 * printed. */
#define ROUNDS 15
static const int batches[] = {1, 4, 16, 64, 256};
#define N_BATCHES 5

static double hop_ns[N_BATCHES]; /* of the group, by batch */

static void print_row(const char *name, const char *what, const double *m, double one)
{
	printf("%-34s %-5s", name, what);
	for (int b = 0; b < N_BATCHES; b++)
		printf(" %8.2f", m[b] / one);
}

enum way { BARE, FENCED, INLINE, CORE, WAYS };

static void print_kind(const struct kind *k, double m[WAYS][N_BATCHES])
{
	double one = m[BARE][0], gain = one - m[BARE][2];

	print_row(k->name, "bare", m[BARE], one);
	printf("            %.0f ns at batch 1\n", one);
	print_row("", "fence", m[FENCED], one);
	printf("\n");
	print_row("", "weir", m[INLINE], one);
	printf(" %9.2f\n", (one - m[INLINE][2]) / gain);
	print_row("", "core", m[CORE], one);
	printf(" %9.2f, lost %.1f hops; batch of one: 1 + %.1f hops, 1 + %.1f beside the fence\n",
	    (one - m[CORE][2]) / gain, (m[CORE][2] - m[BARE][2]) / hop_ns[2],
	    (m[CORE][0] - one) / hop_ns[0], (m[CORE][0] - m[FENCED][0]) / hop_ns[0]);
	fflush(stdout);
}

static void measure_kind(const struct kind *k)
{
	double v[WAYS][N_BATCHES][ROUNDS], m[WAYS][N_BATCHES];

	kind = k;
	make_tables(k->entries);
	bare(1, false);
	for (int r = 0; r < ROUNDS; r++) {
		struct weir_graph *g = make_graph();
		for (int b = 0; b < N_BATCHES; b++) {
			v[BARE][b][r] = bare(batches[b], false);
			v[FENCED][b][r] = bare(batches[b], true);
			v[INLINE][b][r] = staged(batches[b], total());
		}
		end_graph(g);
		for (int b = 0; b < N_BATCHES; b++)
			v[CORE][b][r] = group_ns(batches[b]);
	}
	for (int w = 0; w < WAYS; w++)
		for (int b = 0; b < N_BATCHES; b++)
			m[w][b] = bench_summary(v[w][b], ROUNDS).median;
	print_kind(k, m);
}

static void measure_hops(void)
{
	double v[ROUNDS];

	kind = &nothing;
	for (int b = 0; b < N_BATCHES; b++) {
		for (int r = 0; r < ROUNDS; r++)
			v[r] = group_ns(batches[b]) / STAGES;
		hop_ns[b] = bench_summary(v, ROUNDS).median;
	}
	printf("%-34s %-5s", "a hop of the core group, ns", "");
	for (int b = 0; b < N_BATCHES; b++)
		printf(" %8.1f", hop_ns[b]);
	printf("\n");
}

/* For bench/misses: `n` requests with 24 KB of code and 24 KB of data at each stage, inline one by
 * one if `batch` is 0, else in the core group with `batch` under way. */
static void run_only(int batch, int n)
{
	make_tables(kind->entries);
	if (batch < 0) {
		seed_words();
		bare_run(-batch, n, false);
		return;
	}
	if (batch == 0) {
		struct weir_graph *g = make_graph();
		staged(1, n);
		end_graph(g);
		return;
	}
	struct weir_graph *g = group_graph();
	atomic_store(&most_laps, (unsigned long)n);
	send_round(g, batch);
	await_end(g, batch);
}

int main(int argc, char **argv)
{
	register_stages();
	if (argc >= 3 && abs(atoi(argv[1])) <= REQUESTS) {
		kind = &kinds[argc > 3 ? atoi(argv[3]) & 3 : 2];
		run_only(atoi(argv[1]), atoi(argv[2]));
		return 0;
	}
	bench_header("micro_cohort");
	bench_pin(0);
	printf("%-34s %-5s", "each of six stages touches", "");
	for (int b = 0; b < N_BATCHES; b++)
		printf(" batch %2d", batches[b]);
	printf("     share (aim >= 0.90)\n");
	measure_hops();
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (argc != 2 || atoi(argv[1]) == (int)i)
			measure_kind(&kinds[i]);
	return 0;
}
