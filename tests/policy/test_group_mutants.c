/* SPDX-License-Identifier: MIT */
/* The laws S2, S4, S5 and S12 of core groups (sim/laws*.c) notice each rule that is
 * broken: groups in which one rule of starved stages, serial keys, exclusive stages or lingering batches does not hold,
 * and the same groups with all rules. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "sim/group_search.h"
#include "unit/cunit_main.h"

#define STAGES 4
#define SEEDS  20

/* Four stages of 2 to 20 us on four cores. The first one is not serial, so that all cores send events
 * of all keys; the others are, or one of them is exclusive. */
static void fill(uint64_t seed, enum sim_mutant mutant, struct sim_config *c)
{
	bool alone = mutant == SIM_TWO_AT_ONCE, late = mutant == SIM_LOOKS_LATE;

	group_search_fill(seed, next_policy_at((int)(seed % 6)), 4, 0.5, c);
	c->n_stages = STAGES;
	c->n_fields = 1;
	c->field[0] = (struct sim_field){.values = 8 + 8 * (uint32_t)(seed % 5)};
	c->n_classes = c->n_routes = c->n_sources = 2;
	sim_class_defaults(c);
	for (int i = 0; i < STAGES; i++) {
		c->stage[i].service.mean_ns = (2 + 6 * i) * NS_PER_US;
		c->stage[i].exclusive = alone && i == 2;
		c->stage[i].serial = i > 0 && !c->stage[i].exclusive;
		if (mutant == SIM_ANY_PART) {
			c->stage[i].serial = 0;
			c->stage[i].partition = 1;
			c->stage[i].local = SIM_LOCAL_NEVER;
		}
		c->stage[i].batch_max = late ? 1 : 64;
	}
	c->group[0].limits.starve_ns = NS_PER_MS;
	c->stage[0].linger_ns = mutant == SIM_HASTY ? NS_PER_MS : 0;
	for (int k = 0; k < 2; k++) {
		c->route[k].n = 0;
		for (int i = k; i < STAGES; i++)
			c->route[k].stage[c->route[k].n++] = i;
		c->source[k] = (struct sim_source){.name = "clients",
		    .class_id = k,
		    .route = k,
		    .arrivals = SIM_BURSTS,
		    .rate_per_s = 30000,
		    .burst_factor = 4,
		    .burst_share = 0.2,
		    .burst_ns = NS_PER_MS};
	}
	c->warmup_ns = ADMISSION_TICK_NS;
	c->measured_ns = 4 * ADMISSION_TICK_NS;
	c->bin_ns = ADMISSION_TICK_NS;
	c->group[0].mutant = mutant;
	c->laws = SIM_LAWS_SERVER | SIM_LAWS_GROUPS;
	c->n_faults = 1; /* the slots of a core that died move, too */
	c->fault[0] = (struct sim_fault){.kind = SIM_CRASH,
	    .from_ns = 2 * ADMISSION_TICK_NS,
	    .to_ns = 5 * ADMISSION_TICK_NS,
	    .period_ns = ADMISSION_TICK_NS};
}

static const struct {
	const char *name;
	enum sim_mutant mutant;
	enum sim_law law;
	const char *word, * or ; /* part of the message */
} mutants[] = {
    {"any inbox", SIM_ANY_INBOX, SIM_LAW_SERIAL, "at once", "is taken after"},
    {"two owners", SIM_TWO_OWNERS, SIM_LAW_SERIAL, "at once", "is taken after"},
    {"a move leaves events", SIM_MOVE_LEAVES, SIM_LAW_SERIAL, "at once", "is taken after"},
    {"a move turns the order", SIM_MOVE_TURNED, SIM_LAW_SERIAL, "is taken after", NULL},
    {"a cell overtakes its inbox", SIM_CELL_OVERTAKES, SIM_LAW_SERIAL, "is taken after", NULL},
    {"an inbox by class", SIM_BY_CLASS, SIM_LAW_SERIAL, "is taken after", NULL},
    {"two batches at once", SIM_TWO_AT_ONCE, SIM_LAW_ALONE, "while another is in its handler",
	NULL},
    {"any partition", SIM_ANY_PART, SIM_LAW_SERIAL, "at once", "after a younger one"},
    {"batches do not linger", SIM_HASTY, SIM_LAW_LINGER, "a batch begins with", NULL},
    {"starved stages are found late", SIM_LOOKS_LATE, SIM_LAW_STARVED, "second batch", NULL},
};

static void test_mutants(void)
{
	static struct sim_config c;

	for (size_t i = 0; i < sizeof(mutants) / sizeof(mutants[0]); i++) {
		int caught = 0;
		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			struct sim_result *r = NULL;
			fill(seed, mutants[i].mutant, &c);
			int rc = sim_run(&c, &r);
			bool named = r && r->broken == (unsigned)mutants[i].law &&
				     (strstr(r->breach, mutants[i].word) ||
					 (mutants[i].or &&strstr(r->breach, mutants[i].or)));
			CU_ASSERT(rc == 0 || named);
			if (rc != 0 && !named)
				printf("%s: %s\n", mutants[i].name, r ? r->breach : "memory");
			caught += rc != 0;
			sim_result_free(r);
		}
		if (caught < SEEDS / 10)
			printf("%s: noticed in %d of %d runs\n", mutants[i].name, caught, SEEDS);
		CU_ASSERT(caught >= SEEDS / 10);
	}
}

/* With all rules, nothing is noticed, and slots do move. */
static void test_sound(void)
{
	static struct sim_config c;
	uint64_t moved = 0, cells = 0, starved = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct sim_result *r = NULL;
		fill(seed, SIM_SOUND, &c);
		int rc = sim_run(&c, &r);
		if (rc != 0)
			printf("%s\n", r ? r->breach : "memory");
		CU_ASSERT_EQUAL_FATAL(rc, 0);
		CU_ASSERT(r->law[24].checked > 1000);
		starved += r->law[18].checked;
		moved += r->group[0].moved;
		cells += r->group[0].from_cell;
		sim_result_free(r);
	}
	CU_ASSERT(moved > 100 * SEEDS && cells > 1000 * SEEDS && starved > 100);
}

CUNIT_MAIN("broken rules of core groups", {"each is noticed", test_mutants},
    {"without one, nothing is", test_sound})
