/* SPDX-License-Identifier: MIT */
/*
 * burn: use CPU time by a distribution, then pass the event on. A stand-in for real work in
 * examples, tests and benches.
 *
 * What is burnt is CPU time of the thread, not time on the wall: a thread that the kernel sets
 * aside meanwhile burns on afterwards, as work would. Reading that clock costs about 0.4 us
 * (limits.md: 374 ns), so most of the time goes by in rounds of arithmetic, calibrated at start,
 * and the clock is asked a few times only.
 */
#include <stdatomic.h>
#include <time.h>

#include <weir/weir.h>

#include "dist.h"

enum { BURN_OUT };

/* Less than one reading of the thread's clock is not worth another look: limits.md. */
#define BURN_GRAIN_NS 400

/* Rounds per calibration: about 2 ms on the machine of limits.md, 5,000 readings of the clock. */
#define BURN_CALIBRATION_ROUNDS (1 << 20)

struct burn_conf {
	struct dist dist;
};

struct burn_state {
	double rounds_per_ns;                    /* set by init, then constant */
	WEIR_ALIGNED atomic_uint_fast64_t drawn; /* draws taken: any handler */
};

static int64_t burn_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* A chain of dependent steps that the compiler can neither fold nor leave out. */
static void burn_rounds(int64_t rounds)
{
	uint64_t x = 1;

	for (int64_t i = 0; i < rounds; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		__asm__ volatile("" : "+r"(x));
	}
}

static double burn_calibrate(void)
{
	int64_t start_ns = burn_clock_ns();

	burn_rounds(BURN_CALIBRATION_ROUNDS);
	int64_t took_ns = burn_clock_ns() - start_ns;
	return (double)BURN_CALIBRATION_ROUNDS / (double)(took_ns > 0 ? took_ns : 1);
}

/* The rate may have been wrong (another core, another frequency): go on until the clock agrees. */
static void burn(const struct burn_state *state, int64_t ns)
{
	if (ns < 2 * BURN_GRAIN_NS) { /* not worth a clock */
		burn_rounds((int64_t)((double)ns * state->rounds_per_ns));
		return;
	}
	int64_t until_ns = burn_clock_ns() + ns - BURN_GRAIN_NS;
	int64_t left_ns = ns - 2 * BURN_GRAIN_NS;
	while (left_ns > 0) {
		burn_rounds((int64_t)((double)left_ns * state->rounds_per_ns) + 1);
		left_ns = until_ns - burn_clock_ns();
	}
}

static void burn_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	const struct burn_conf *conf = weir_conf(st);
	struct burn_state *state = weir_state(st);
	uint64_t first =
	    atomic_fetch_add_explicit(&state->drawn, (uint64_t)n, memory_order_relaxed);

	for (int i = 0; i < n; i++) {
		burn(state, dist_draw_ns(&conf->dist, first + (uint64_t)i));
		weir_emit(st, BURN_OUT, &ev[i]);
	}
}

static int burn_init(struct weir_stage *st, struct weir_err *err)
{
	struct burn_state *state = weir_state(st);

	(void)err;
	state->rounds_per_ns = burn_calibrate();
	return 0;
}

static const struct weir_knob burn_knobs[] = {
    DIST_KNOBS(struct burn_conf, "mean CPU time that an event takes"),
    {0},
};

static const struct weir_outlet burn_outlets[] = {
    [BURN_OUT] = {.name = "out",
	.type = WEIR_ANY_EVENT,
	.optional = true,
	.help = "every event, afterwards; unlinked, the event is completed here"},
    {0},
};

const struct weir_stage_ops weir_stage_burn = {
    .abi = WEIR_STAGE_ABI,
    .name = "burn",
    .summary = "Uses CPU time by a distribution",
    .accepts = WEIR_ANY_EVENT,
    .outlets = burn_outlets,
    .knobs = burn_knobs,
    .conf_size = sizeof(struct burn_conf),
    .state_size = sizeof(struct burn_state),
    .init = burn_init,
    .handle = burn_handle,
};
