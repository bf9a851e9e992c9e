/* SPDX-License-Identifier: MIT */
/*
 * delay: sleep for a time drawn from a distribution, then pass the event on. In examples, tests and
 * benchmarks it stands in for work that waits for a disk or another server.
 *
 * The thread sleeps for one event after another, as a blocking call would, so the capacity of the
 * stage is the number of threads divided by the mean time. Each sleep ends at an absolute time, so
 * interruption by a signal does not prolong it.
 */
#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#include <weir/weir.h>

#include "dist.h"

enum { DELAY_OUT };

struct delay_conf {
	struct dist dist;
};

struct delay_state {
	atomic_uint_fast64_t drawn; /* draws so far; incremented by all handlers */
};

static void delay_sleep(int64_t ns)
{
	struct timespec ts;

	if (ns <= 0)
		return;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	ns += ts.tv_nsec;
	ts.tv_sec += ns / 1000000000;
	ts.tv_nsec = ns % 1000000000;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

static void delay_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	const struct delay_conf *conf = weir_conf(st);
	struct delay_state *state = weir_state(st);
	uint64_t first =
	    atomic_fetch_add_explicit(&state->drawn, (uint64_t)n, memory_order_relaxed);

	for (int i = 0; i < n; i++) {
		delay_sleep(dist_draw_ns(&conf->dist, first + (uint64_t)i));
		weir_emit(st, DELAY_OUT, &ev[i]);
	}
}

static int64_t delay_service_ns(const void *conf)
{
	const struct delay_conf *c = conf;

	return (int64_t)dist_mean_ns(&c->dist);
}

static const struct weir_knob delay_knobs[] = {
    DIST_KNOBS(struct delay_conf, "mean sleep per event"),
    {0},
};

static const struct weir_outlet delay_outlets[] = {
    [DELAY_OUT] = {.name = "out",
	.type = WEIR_ANY_EVENT,
	.optional = true,
	.help = "every event after its wait; without a link, the stage completes it"},
    {0},
};

const struct weir_stage_ops weir_stage_delay = {
    .abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_BLOCKS,
    .name = "delay",
    .summary = "Sleeps for times drawn from a distribution",
    .accepts = WEIR_ANY_EVENT,
    .outlets = delay_outlets,
    .knobs = delay_knobs,
    .conf_size = sizeof(struct delay_conf),
    .state_size = sizeof(struct delay_state),
    .handle = delay_handle,
    .service_ns = delay_service_ns,
};
