/* SPDX-License-Identifier: MIT */
/*
 * What a user may write about a stage, a group and their sections: one row each.
 *
 * The loader, `check`, `describe`, `explain`, the schema, the admin endpoint and --set read these
 * rows, so they cannot disagree. Each number chosen here says where it comes from. Live rows are
 * those that the running graph applies (graph_knobs.c).
 */
#include <weir/spec.h>

#define MEMBER(type, member) .offset = offsetof(struct type, member)

/* Most threads of one pool: a guess. Twice the thread budget of any machine (overload.md 3.5: at
 * most 512 in all), so that the budget speaks first, in words that name all stages. */
#define THREADS_MAX 1024

/* Most events in one queue, 16 million: a guess. 1 GiB of headers, more than waits well anywhere.
 */
#define QUEUE_MAX (1 << 24)

/* Longest linger, 1 s: a guess. Over it a request waits longer than any objective allows. */
#define LINGER_MAX_NS 1e9

/* Longest spin, 1 ms: fifty times what waking a sleeper costs (limits.md: 21 us). */
#define SPIN_MAX_NS 1e6

/* Longest time that can be called stuck, an hour: a guess. */
#define STUCK_MAX_NS 3600e9

/* Objectives from 100 us (below it the clock's tick decides) to an hour: guesses. */
#define SLO_MIN_NS 1e5
#define SLO_MAX_NS 3600e9

const struct weir_knob weir_threads_knobs[] = {
    {.name = "min",
	.type = WEIR_KNOB_INT,
	MEMBER(weir_threads_spec, min),
	.def = "1", /* limits.md: a stage that needs more gets it from the controller */
	.min = 1,
	.max = THREADS_MAX,
	.flags = WEIR_KNOB_LIVE | WEIR_KNOB_AUTO,
	.help = "least handler threads; auto is the cores this process may use"},
    {.name = "max",
	.type = WEIR_KNOB_INT,
	MEMBER(weir_threads_spec, max),
	.def = "auto", /* operating.md; right for handlers that do not block */
	.min = 1,
	.max = THREADS_MAX,
	.flags = WEIR_KNOB_LIVE | WEIR_KNOB_AUTO,
	.help =
	    "most handler threads the controller may use; auto is the cores this process may use"},
    {.name = "start",
	.type = WEIR_KNOB_INT,
	MEMBER(weir_threads_spec, start),
	.def = "auto",
	.min = 1,
	.max = THREADS_MAX,
	.flags = WEIR_KNOB_AUTO,
	.help = "handler threads at the start; auto is min"},
    {.name = "policy",
	.type = WEIR_KNOB_STRING,
	MEMBER(weir_threads_spec, policy),
	.def = "weir",
	.help = "what resizes the pool between min and max: weir, seda, or static for never"},
    {.name = "pin",
	.type = WEIR_KNOB_BOOL,
	MEMBER(weir_threads_spec, pinned),
	.def = "false",
	.help = "bind thread i to core i modulo the cores there are"},
    {.name = "spin",
	.type = WEIR_KNOB_DURATION,
	MEMBER(weir_threads_spec, spin_ns),
	.def = "auto",
	.min = 0,
	.max = SPIN_MAX_NS,
	.flags = WEIR_KNOB_AUTO,
	.help = "longest look for work before a thread sleeps; auto adapts, 0 never spins"},
    {.name = "stuck",
	.type = WEIR_KNOB_DURATION,
	MEMBER(weir_threads_spec, stuck_ns),
	.def = "1s", /* guess: ten times HAProxy's 100 ms, since handlers here may block */
	.min = 0,
	.max = STUCK_MAX_NS,
	.help = "a call of the handler that takes longer is reported with its stack; 0 never"},
    {.name = NULL}};

const struct weir_knob weir_queue_knobs[] = {
    {.name = "limit",
	.type = WEIR_KNOB_INT,
	MEMBER(weir_queue_spec, limit),
	.def = "4096", /* operating.md */
	.min = 1,
	.max = QUEUE_MAX,
	.flags = WEIR_KNOB_LIVE,
	.help = "most events that may wait; more are refused as queue_full"},
    {.name = "discipline",
	.type = WEIR_KNOB_ENUM,
	MEMBER(weir_queue_spec, discipline),
	.def = "auto",
	.choices = "auto|priority|fifo",
	.help = "who is served first: priority (the highest class), fifo (the oldest), auto: fifo "
		"behind the policies weir, dagor and codel, else priority"},
    {.name = NULL}};

const struct weir_knob weir_cohort_knobs[] = {
    {.name = "max",
	.type = WEIR_KNOB_INT,
	MEMBER(weir_cohort_spec, max),
	.def = "64", /* limits.md: default cohort 16 to 64, beyond it little is gained */
	.min = 1,
	.max = WEIR_BATCH_MAX,
	.flags = WEIR_KNOB_LIVE,
	.help = "most events of one call of the handler"},
    {.name = "policy",
	.type = WEIR_KNOB_STRING,
	MEMBER(weir_cohort_spec, policy),
	.def = "static",
	.help = "what sizes batches below max: static nothing, weir by cost and slo, or seda"},
    {.name = "linger",
	.type = WEIR_KNOB_DURATION,
	MEMBER(weir_cohort_spec, linger_ns),
	.def = "0", /* overload.md 3.6: no linger by default */
	.min = 0,
	.max = LINGER_MAX_NS,
	.flags = WEIR_KNOB_LIVE,
	.help = "longest wait for a fuller cohort; 0 takes what there is"},
    {.name = "by",
	.type = WEIR_KNOB_STRING,
	MEMBER(weir_cohort_spec, by),
	.def = "",
	.help =
	    "events of one cohort agree in this field; 'stage' asks the stage, empty mixes all"},
    {.name = NULL}};

const struct weir_knob weir_admission_knobs[] = {
    {.name = "policy",
	.type = WEIR_KNOB_STRING,
	MEMBER(weir_admission_spec, policy),
	.def = "auto",
	.help =
	    "who may enter the queue: weir, none (all, up to its limit), threshold, rate, codel, "
	    "gradient2, dagor or seda_rt (docs/overload.md); auto: weir where there is a queue"},
    {.name = "mode",
	.type = WEIR_KNOB_ENUM,
	MEMBER(weir_admission_spec, mode),
	.def = "enforce",
	.choices = "off|shadow|enforce",
	.flags = WEIR_KNOB_LIVE,
	.help = "enforce refuses; shadow only counts what it would refuse; off does not ask"},
    {.name = "threshold",
	.type = WEIR_KNOB_INT,
	MEMBER(weir_admission_spec, threshold),
	.def = "auto",
	.min = 1,
	.max = QUEUE_MAX,
	.flags = WEIR_KNOB_LIVE | WEIR_KNOB_AUTO,
	.help = "policy threshold: events in the queue from which on it refuses; auto is half the "
		"limit; of K classes the k-th below the highest is refused from 1 - k/2K of it on"},
    {.name = "rate",
	.type = WEIR_KNOB_RATE,
	MEMBER(weir_admission_spec, rate),
	.def = "0",
	.flags = WEIR_KNOB_LIVE,
	.help = "policy rate: events admitted per second"},
    {.name = "burst",
	.type = WEIR_KNOB_RATE,
	MEMBER(weir_admission_spec, burst),
	.def = "0",
	.flags = WEIR_KNOB_LIVE,
	.help = "policy rate: events that may enter at once; 0 is 10 ms of the rate, at least 1"},
    {.name = "target",
	.type = WEIR_KNOB_DURATION,
	MEMBER(weir_admission_spec, target_ns),
	.def = "auto",
	.min = 1000,
	.max = 1e11,
	.flags = WEIR_KNOB_LIVE | WEIR_KNOB_AUTO,
	.help =
	    "policies codel and dagor: the wait to keep; seda_rt: the response time; auto is the "
	    "policy's own"},
    {.name = "interval",
	.type = WEIR_KNOB_DURATION,
	MEMBER(weir_admission_spec, interval_ns),
	.def = "auto",
	.min = 1e6,
	.max = 1e11,
	.flags = WEIR_KNOB_LIVE | WEIR_KNOB_AUTO,
	.help = "policy codel: time over which the least wait counts; auto is 100ms"},
    {.name = NULL}};

/* Shortest and longest step: the control thread looks every 100 ms; an hour is a guess. */
#define DEGRADE_STEP_MIN_NS 1e8
#define DEGRADE_STEP_MAX_NS 3600e9

const struct weir_knob weir_degrade_knobs[] = {
    {.name = "above",
	.type = WEIR_KNOB_RATIO,
	MEMBER(weir_degrade_spec, above),
	.def = "100%", /* serving worse is for the operator to allow */
	.min = 0.01,
	.max = 1,
	.flags = WEIR_KNOB_LIVE,
	.help = "pressure over which the stage serves worse, a tenth per step; 100% is never"},
    {.name = "below",
	.type = WEIR_KNOB_RATIO,
	MEMBER(weir_degrade_spec, below),
	.def = "20%", /* guess: well apart from `above` */
	.max = 0.99,
	.flags = WEIR_KNOB_LIVE,
	.help = "pressure under which it serves better again; in between it stays as it is"},
    {.name = "step",
	.type = WEIR_KNOB_DURATION,
	MEMBER(weir_degrade_spec, step_ns),
	.def = "500ms", /* guess: from best to cheapest in 5 s, longer than a burst */
	.min = DEGRADE_STEP_MIN_NS,
	.max = DEGRADE_STEP_MAX_NS,
	.flags = WEIR_KNOB_LIVE,
	.help = "time between two tenths"},
    {.name = NULL}};

const struct weir_knob weir_stage_knobs[] = {
    {.name = "threads",
	.type = WEIR_KNOB_MAP,
	MEMBER(weir_stage_spec, threads),
	.fields = weir_threads_knobs,
	.help = "the stage's own pool; a number for a fixed one, 'inline' for the caller's thread"},
    {.name = "queue",
	.type = WEIR_KNOB_MAP,
	MEMBER(weir_stage_spec, queue),
	.fields = weir_queue_knobs,
	.help = "where events wait for a thread"},
    {.name = "cohort",
	.type = WEIR_KNOB_MAP,
	MEMBER(weir_stage_spec, cohort),
	.fields = weir_cohort_knobs,
	.help = "how many events the handler gets at once"},
    {.name = "admission",
	.type = WEIR_KNOB_MAP,
	MEMBER(weir_stage_spec, admission),
	.fields = weir_admission_knobs,
	.help = "which events may enter the queue"},
    {.name = "degrade",
	.type = WEIR_KNOB_MAP,
	MEMBER(weir_stage_spec, degrade),
	.fields = weir_degrade_knobs,
	.help = "when the stage serves worse so that it can serve more"},
    {.name = "mode",
	.type = WEIR_KNOB_ENUM,
	MEMBER(weir_stage_spec, mode),
	.def = "shared",
	.choices = "shared|exclusive|partitioned",
	.help =
	    "shared runs in any threads at once, exclusive in one at a time, partitioned by key"},
    {.name = "key",
	.type = WEIR_KNOB_STRING,
	MEMBER(weir_stage_spec, key),
	.def = "",
	.help = "mode partitioned: events equal in this field stay in one thread and in order"},
    {.name = "group",
	.type = WEIR_KNOB_STRING,
	MEMBER(weir_stage_spec, group),
	.def = "",
	.help = "share the threads of this group instead of having a pool"},
    {.name = "slo",
	.type = WEIR_KNOB_DURATION,
	MEMBER(weir_stage_spec, slo_ns),
	.def = "auto",
	.min = SLO_MIN_NS,
	.max = SLO_MAX_NS,
	.flags = WEIR_KNOB_AUTO,
	.help = "how long an event may take to pass, queue included; auto: the shortest of the "
		"classes"},
    {.name = NULL}};

const struct weir_knob weir_group_knobs[] = {
    {.name = "schedule",
	.type = WEIR_KNOB_STRING,
	MEMBER(weir_group_spec, schedule),
	.def = "shared",
	.help = "which stage a thread of the group visits next"},
    {.name = "threads",
	.type = WEIR_KNOB_MAP,
	MEMBER(weir_group_spec, threads),
	.fields = weir_threads_knobs,
	.help = "the threads that the stages of the group share"},
    {.name = NULL}};
