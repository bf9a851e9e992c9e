/* SPDX-License-Identifier: MIT */
/*
 * burn: use CPU time drawn from a distribution, then pass the event on. It stands in for real work
 * in examples, tests and benchmarks.
 *
 * The time is CPU time of the thread, not wall-clock time. A preempted thread therefore burns the
 * rest after it is scheduled again, as real work would. Reading the CPU clock costs about 0.4 us
 * (measured: 374 ns). The clock is therefore read only a few times, and most of the time is spent
 * in rounds of arithmetic, whose speed is calibrated at startup.
 *
 * With `least`, burn imitates a service that can lower the quality of its responses: the more the
 * framework degrades the stage (weir_degradation), the less CPU time it burns, down to the fraction
 * `least`. HTTP responses report the quality in `X-Quality`.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include <weir/clock.h>
#include <weir/http.h>
#include <weir/weir.h>

#include "dist.h"

enum { BURN_OUT };

/* Cost of reading the thread's CPU clock, measured (374 ns) and rounded. If less time than this
 * remains, the clock is not read again. */
#define BURN_GRAIN_NS 400

/* Rounds per calibration. They take about 2 ms, as long as 5,000 readings of the clock, so the two
 * readings around the rounds do not distort the result. */
#define BURN_CALIBRATION_ROUNDS (1 << 20)

enum { BURN_DEGRADED }; /* indices of burn_metrics */

struct burn_conf {
	struct dist dist;
	double least; /* fraction of the work that remains at degradation 1 */
};

struct burn_state {
	double rounds_per_ns;                    /* set by init, then constant */
	WEIR_ALIGNED atomic_uint_fast64_t drawn; /* draws so far; incremented by all handlers */
};

/* Run a chain of dependent steps that the compiler can neither fold nor remove. */
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
	int64_t start_ns = weir_clock_ns(CLOCK_THREAD_CPUTIME_ID);

	burn_rounds(BURN_CALIBRATION_ROUNDS);
	int64_t took_ns = weir_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
	return (double)BURN_CALIBRATION_ROUNDS / (double)(took_ns > 0 ? took_ns : 1);
}

/* Burn `ns` of CPU time. The calibrated rate may be wrong on another core or at another frequency,
 * so continue until the clock shows that the time has passed. */
static void burn(const struct burn_state *state, int64_t ns)
{
	if (ns < 2 * BURN_GRAIN_NS) { /* too short a time to read the clock */
		burn_rounds((int64_t)((double)ns * state->rounds_per_ns));
		return;
	}
	int64_t until_ns = weir_clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns - BURN_GRAIN_NS;
	int64_t left_ns = ns - 2 * BURN_GRAIN_NS;
	while (left_ns > 0) {
		burn_rounds((int64_t)((double)left_ns * state->rounds_per_ns) + 1);
		left_ns = until_ns - weir_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	}
}

/* Report the quality of the response, for HTTP requests only. */
static void burn_tell(struct weir_event *ev, double quality)
{
	char text[16];

	if (ev->type != &weir_http_request_type)
		return;
	snprintf(text, sizeof(text), "%.2f", quality);
	weir_http_add_field(weir_http_request(ev), "X-Quality", text);
}

static void burn_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	const struct burn_conf *conf = weir_conf(st);
	struct burn_state *state = weir_state(st);
	double quality = 1 - weir_degradation(st) * (1 - conf->least);
	uint64_t first =
	    atomic_fetch_add_explicit(&state->drawn, (uint64_t)n, memory_order_relaxed);

	for (int i = 0; i < n; i++) {
		int64_t ns = dist_draw_ns(&conf->dist, first + (uint64_t)i);
		burn(state, quality < 1 ? (int64_t)((double)ns * quality) : ns);
		if (conf->least < 1)
			burn_tell(ev[i], quality);
		weir_emit(st, BURN_OUT, &ev[i]);
	}
	if (quality < 1)
		weir_count(st, BURN_DEGRADED, n);
}

static int burn_init(struct weir_stage *st, struct weir_err *err)
{
	struct burn_state *state = weir_state(st);

	(void)err;
	state->rounds_per_ns = burn_calibrate();
	return 0;
}

static int64_t burn_service_ns(const void *conf)
{
	const struct burn_conf *c = conf;

	return (int64_t)dist_mean_ns(&c->dist);
}

static const struct weir_knob burn_knobs[] = {
    DIST_KNOBS(struct burn_conf, "mean CPU time per event"),
    {.name = "least",
	.type = WEIR_KNOB_RATIO,
	.offset = offsetof(struct burn_conf, least),
	.def = "100%",
	.min = 0.01,
	.max = 1,
	.flags = WEIR_KNOB_LIVE,
	.help = "share of the work still done at degradation 1, like a service that may answer "
		"with lower quality; if it is below 100%, the field X-Quality of HTTP "
		"answers has the share that was done"},
    {0},
};

static const struct weir_metric burn_metrics[] = {
    [BURN_DEGRADED] = {"burn_degraded_total", WEIR_METRIC_COUNTER, "events",
	"events that burnt less CPU time than was drawn"},
    {0},
};

static const struct weir_outlet burn_outlets[] = {
    [BURN_OUT] = {.name = "out",
	.type = WEIR_ANY_EVENT,
	.optional = true,
	.help = "every event after its CPU time was used; without a link, the stage completes it"},
    {0},
};

const struct weir_stage_ops weir_stage_burn = {
    .abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_REPLICABLE,
    .name = "burn",
    .summary = "Uses CPU time drawn from a distribution",
    .accepts = WEIR_ANY_EVENT,
    .outlets = burn_outlets,
    .knobs = burn_knobs,
    .conf_size = sizeof(struct burn_conf),
    .metrics = burn_metrics,
    .state_size = sizeof(struct burn_state),
    .init = burn_init,
    .handle = burn_handle,
    .service_ns = burn_service_ns,
};
