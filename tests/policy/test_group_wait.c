/* SPDX-License-Identifier: MIT */
/*
 * The wait that policy `weir` predicts for the stages of a group, compared with the wait of the
 * events that it admits, in virtual time.
 *
 * Law S11: if a group of three stages is loaded, the predicted wait is 0.7 to 1.3 times the real
 * one at each stage. A smaller one admits events that will be late. WEIR_MATRIX=1 prints all
 * figures.
 */
#include "virtual_server.h"

#include <math.h>

#include "event/local.h"

#define STAGES   3
#define SLO_NS   (500 * NS_PER_MS)
#define WARM_NS  (5 * NS_PER_S)
#define END_NS   (45 * NS_PER_S)
#define TURNS_NS (200 * NS_PER_MS) /* of `turns`: how long the other stages are loaded, or not */
#define LEAST    0.7
#define MOST     1.3
/* For a wait that is shorter than a service, the prediction is too low: the rest of a service in
 * progress does not count as work. */
#define LEAST_QUIET 0.5

/* A loaded group. Loads are fractions of what all its threads can serve. */
struct group {
	const char *name;
	int threads;
	enum weir_stage_mode mode; /* of the first stage */
	struct {
		double load;
		int64_t service_ns;
	} stage[STAGES];
	bool turns; /* the other stages are loaded for half of the time */
	int quiet;  /* number of the stage whose events wait for less than a service; or -1 */
};

static const char *const names[STAGES] = {"one", "two", "three"};

/* ---- a policy that records what `weir` is told ---- */

static struct record {
	double predicted_ns;
	uint64_t n;
	uint64_t waited_ns, handled; /* totals when the warm-up ended */
} record[STAGES];
static struct admission_policy recorder;
static struct vs *run;
static const struct group *running;

static uint64_t waited_ns(const struct weir_stage *st)
{
	return book_read(&run->g->gone[st->id].times[0].wait.sum_ns);
}

static uint64_t handled(const struct weir_stage *st)
{
	return book_read(&local_find(thread_self(), st->id)->book.class_book[0].handled);
}

static void end_warm_up(void)
{
	for (int i = 0; i < STAGES; i++) {
		record[i].waited_ns = waited_ns(run->at[i].stage);
		record[i].handled = handled(run->at[i].stage);
	}
}

/* Of a group with `turns`, change the loads of the other stages. */
static void take_turns(int64_t now_ns)
{
	bool low = now_ns / TURNS_NS % 2;

	for (int i = 1; running->turns && i < STAGES; i++)
		run->at[i].rate_per_s = (low ? 0.05 : 1) * running->stage[i].load *
					running->threads * 1e9 /
					(double)running->stage[i].service_ns;
}

static int record_admit(void *state, const struct weir_admission_spec *p,
    const struct admission_view *v, int class_id, int n, bool *refused, int *reason)
{
	int m = admission_weir.admit(state, p, v, class_id, n, refused, reason);

	take_turns(v->now_ns);
	if (v->now_ns < WARM_NS)
		return m;
	if (record[0].handled == 0)
		end_warm_up();
	for (int i = 0; i < STAGES; i++) {
		if (state != run->at[i].stage->sink.admission_state)
			continue;
		record[i].predicted_ns += m * (double)v->work_ns / v->threads;
		record[i].n += (uint64_t)m;
	}
	return m;
}

/* ---- a run ---- */

static struct weir_graph *build(const struct group *c)
{
	struct weir_spec *spec = weir_spec_new("wait");
	struct weir_group_spec *g = weir_spec_add_group(spec, "all");

	weir_spec_text(&g->threads.policy, "static");
	g->threads.min = g->threads.max = c->threads;
	for (int i = 0; i < STAGES; i++) {
		struct weir_stage_spec *s = fixture_stage(spec, names[i], "t.end", NULL);
		fixture_set(s, "admission.policy", "weir");
		weir_spec_text(&s->group, "all");
		if (i > 0)
			continue;
		s->mode = c->mode;
		if (c->mode == WEIR_MODE_PARTITIONED)
			weir_spec_text(&s->key, "producer");
	}
	return fixture_build(spec);
}

static void must_predict(const struct group *c)
{
	memset(record, 0, sizeof(record));
	recorder = admission_weir;
	recorder.admit = record_admit;
	running = c;
	run = vs_new(build(c), SLO_NS);
	for (int i = 0; i < STAGES; i++) {
		vs_load(run, names[i],
		    c->stage[i].load * c->threads * 1e9 / (double)c->stage[i].service_ns,
		    c->stage[i].service_ns);
		run->at[i].stage->sink.policy = &recorder;
	}
	vs_run(run, WARM_NS, END_NS);
	for (int i = 0; i < STAGES; i++) {
		const struct weir_stage *st = run->at[i].stage;
		double n = (double)(handled(st) - record[i].handled);
		double waited = (double)(waited_ns(st) - record[i].waited_ns) / n;
		double predicted = record[i].predicted_ns / (double)record[i].n;
		double least = i == c->quiet ? LEAST_QUIET : LEAST;
		bool holds = predicted >= least * waited && predicted <= MOST * waited;
		CU_ASSERT_TRUE(holds);
		if (!holds || getenv("WEIR_MATRIX"))
			printf("\n    %s, %s: %.0f events waited %.2f ms, predicted %.2f of it",
			    c->name, names[i], n, waited * 1e-6, predicted / waited);
	}
	vs_free(run);
}

/* ---- tests ---- */

#define MS NS_PER_MS

static void test_equal_stages(void)
{
	const struct group groups[] = {
	    {"three times the capacity", 4, 0, {{1, 5 * MS}, {1, 5 * MS}, {1, 5 * MS}}, false, -1},
	    {"0.9 of it", 4, 0, {{0.3, 5 * MS}, {0.3, 5 * MS}, {0.3, 5 * MS}}, false, -1},
	    {"one thread", 1, 0, {{1, 5 * MS}, {1, 5 * MS}, {1, 5 * MS}}, false, -1},
	    {"one thread, 0.9", 1, 0, {{0.3, 5 * MS}, {0.3, 5 * MS}, {0.3, 5 * MS}}, false, -1},
	    {"batches", 2, 0, {{1, NS_PER_MS / 5}, {1, NS_PER_MS / 5}, {1, NS_PER_MS / 5}}, false,
		-1},
	};

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		must_predict(&groups[i]);
}

static void test_unequal_stages(void)
{
	const struct group groups[] = {
	    {"services", 4, 0, {{1, 2 * MS}, {1, 20 * MS}, {1, 5 * MS}}, false, -1},
	    {"services, 0.9", 4, 0, {{0.3, 2 * MS}, {0.3, 20 * MS}, {0.3, 5 * MS}}, false, 1},
	    {"loads", 4, 0, {{0.3, 5 * MS}, {0.9, 5 * MS}, {0.9, 5 * MS}}, false, -1},
	    {"short beside long", 4, 0, {{0.1, 2 * MS}, {3, 20 * MS}, {3, 20 * MS}}, false, -1},
	    {"long beside short", 4, 0, {{0.1, 20 * MS}, {3, 2 * MS}, {3, 2 * MS}}, false, 0},
	};

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		must_predict(&groups[i]);
}

static void test_turns(void)
{
	const struct group groups[] = {
	    {"turns", 4, 0, {{0.3, 5 * MS}, {1, 5 * MS}, {1, 5 * MS}}, true, -1},
	    {"turns, all loaded", 4, 0, {{1, 5 * MS}, {1, 5 * MS}, {1, 5 * MS}}, true, -1},
	};

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		must_predict(&groups[i]);
}

static void test_modes(void)
{
	struct group c = {.name = "exclusive",
	    .threads = 4,
	    .mode = WEIR_MODE_EXCLUSIVE,
	    .stage = {{1, 5 * MS}, {1, 5 * MS}, {1, 5 * MS}},
	    .quiet = -1};

	must_predict(&c);
	c.name = "partitioned";
	c.mode = WEIR_MODE_PARTITIONED;
	must_predict(&c);
}

static void test_prepare(void)
{
	fixture_register(&end_ops);
}

CUNIT_MAIN("waits in a group", {"types are known", test_prepare},
    {"equal stages", test_equal_stages}, {"unequal stages", test_unequal_stages},
    {"turns", test_turns}, {"modes", test_modes})
