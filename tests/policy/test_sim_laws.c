/* SPDX-License-Identifier: MIT */
/* Each law that the simulator checks can be broken: there is one bad policy for each, and the
 * simulator must report it, with the last steps. The server's laws hold under faults: handlers that
 * die, lost ticks, a slow stage. */
#include "runs.h"

#include <stdio.h>
#include <stdlib.h>

static void init_nothing(void *state, const struct weir_admission_spec *p, int64_t now_ns)
{
	(void)state, (void)p, (void)now_ns;
}

static void tick_nothing(
    void *state, const struct weir_admission_spec *p, const struct admission_sample *sample)
{
	(void)state, (void)p, (void)sample;
}

static int admit_all(void *state, const struct weir_admission_spec *p,
    const struct admission_view *v, int class_id, int n, bool *refused, int *reason)
{
	(void)state, (void)p, (void)v, (void)class_id, (void)refused, (void)reason;
	return n;
}

static int admit_more(void *state, const struct weir_admission_spec *p,
    const struct admission_view *v, int class_id, int n, bool *refused, int *reason)
{
	(void)state, (void)p, (void)v, (void)class_id, (void)refused, (void)reason;
	return n + 1;
}

static int admit_none(void *state, const struct weir_admission_spec *p,
    const struct admission_view *v, int class_id, int n, bool *refused, int *reason)
{
	(void)state, (void)p, (void)v, (void)class_id, (void)n, (void)refused;
	*reason = WEIR_EPRIORITY;
	return 0;
}

/* Inverted: the users that should be refused last are refused. Only under load, otherwise this
 * would break another law. */
static int admit_late(void *state, const struct weir_admission_spec *p,
    const struct admission_view *v, int class_id, int n, bool *refused, int *reason)
{
	(void)state, (void)p, (void)class_id;
	int m = 0;

	for (int i = 0; i < n; i++) {
		refused[i] = !v->idle && v->user[i] < 0x8000;
		m += !refused[i];
	}
	*reason = WEIR_EPRIORITY;
	return m;
}

static const struct {
	enum sim_law law;
	struct admission_policy policy;
	const char *word; /* part of the message */
} bad[] = {
    {SIM_LAW_SENSE,
	{.name = "more", .init = init_nothing, .admit = admit_more, .tick = tick_nothing},
	"policy more is inconsistent: 2 of 1"},
    {SIM_LAW_IDLE,
	{.name = "none", .init = init_nothing, .admit = admit_none, .tick = tick_nothing},
	"while a thread is idle"},
    {SIM_LAW_USER,
	{.name = "late", .init = init_nothing, .admit = admit_late, .tick = tick_nothing},
	"would be refused"},
    {SIM_LAW_BOUND, {.name = "all", .init = init_nothing, .admit = admit_all, .tick = tick_nothing},
	"of work is waiting"},
};

static void test_breaches(void)
{
	static struct sim_config c;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char *trace = NULL;
		size_t size = 0;
		struct sim_result *r = NULL;
		sim_workload_fill(
		    sim_workload_find("W2"), 2, &bad[i].policy, NULL, 7, 5 * NS_PER_S, &c);
		c.source[0].hides_deadline = true;
		c.laws = SIM_LAWS_SERVER | (unsigned)bad[i].law;
		c.trace = open_memstream(&trace, &size);
		CU_ASSERT_EQUAL(sim_run(&c, &r), WEIR_EFAILED);
		fclose(c.trace);
		CU_ASSERT_EQUAL(r->broken, (unsigned)bad[i].law);
		CU_ASSERT_PTR_NOT_NULL(strstr(r->breach, bad[i].word));
		CU_ASSERT_PTR_NOT_NULL(strstr(trace, bad[i].word));
		CU_ASSERT_PTR_NOT_NULL(strstr(trace, "\ntime_s,step,stage,class,"));
		free(trace);
		sim_result_free(r);
	}
}

/* A violation of a law that is not enabled is counted but does not end the run. */
static void test_counted(void)
{
	static struct sim_config c;

	sim_workload_fill(sim_workload_find("W2"), 2, &bad[2].policy, NULL, 7, 5 * NS_PER_S, &c);
	c.trace = stderr;
	struct sim_result *r = runs_do(&c);
	if (r) {
		CU_ASSERT(r->stage[0].user_inversions > 10);
		CU_ASSERT(r->stage[0].probes > r->stage[0].user_inversions);
	}
	sim_result_free(r);
}

/* I1, I2, I7, I11, I14: the server's laws hold under any fault, and nothing is lost. */
static void test_faults(void)
{
	static const struct sim_fault faults[] = {
	    {.kind = SIM_CRASH,
		.from_ns = 3 * NS_PER_S,
		.to_ns = 5 * NS_PER_S,
		.period_ns = 10 * NS_PER_MS},
	    {.kind = SIM_LOST_TICKS, .from_ns = 4 * NS_PER_S, .to_ns = 4500 * NS_PER_MS},
	    {.kind = SIM_SLOW, .from_ns = 4 * NS_PER_S, .to_ns = 6 * NS_PER_S, .factor = 10},
	};
	static struct sim_config c;

	for (int p = 0; admission_at(p); p++) {
		sim_workload_fill(
		    sim_workload_find("W3"), 3, admission_at(p), &resize_seda, 3, 6 * NS_PER_S, &c);
		c.stage[0].threads_max = 16;
		memcpy(c.fault, faults, sizeof(faults));
		c.n_faults = 3;
		c.trace = stderr;
		struct sim_result *r = runs_do(&c);
		if (!r)
			continue;
		uint64_t failed = 0;
		for (int k = 0; k < c.n_classes; k++) {
			const struct sim_class_result *s = &r->class[k];
			CU_ASSERT_EQUAL(s->offered, sim_shed(s) + s->in_time + s->late + s->failed);
			failed += s->failed;
		}
		CU_ASSERT(failed > 50);
		sim_result_free(r);
	}
}

/* After the last death, the wanted number of threads is reached again. */
static void test_threads_return(void)
{
	static struct sim_config c;

	runs_one_stage(&c, (struct sim_dist){.kind = SIM_EXP, .mean_ns = 5 * NS_PER_MS}, 0.5, 8,
	    800, 10 * NS_PER_S);
	c.cores = 4;
	c.fault[0] = (struct sim_fault){.kind = SIM_CRASH,
	    .from_ns = 6 * NS_PER_S,
	    .to_ns = 7 * NS_PER_S,
	    .period_ns = NS_PER_MS};
	c.n_faults = 1;
	struct sim_result *r = runs_do(&c);
	if (r) {
		CU_ASSERT(r->class[0].failed > 5);
		CU_ASSERT_EQUAL(r->stage[0].threads_end, 8);
	}
	sim_result_free(r);
}

CUNIT_MAIN("sim laws", {"each law can be broken", test_breaches},
    {"others are counted", test_counted}, {"faults break no law", test_faults},
    {"threads return", test_threads_return})
