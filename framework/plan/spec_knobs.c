/* SPDX-License-Identifier: MIT */
/*
 * The knob tables of stages, groups and their sections, with one row per knob.
 *
 * The loader, `check`, `describe`, `explain`, the schema, the admin endpoint and --set all read
 * these rows, so they cannot disagree. Comments give the source of each number chosen here. Live
 * rows are those that can be changed in a running graph (operate/knobs.c).
 */
#include <weir/spec.h>

#include "plan/policies.h"
#include "plan/spec_rows.h"

/* Longest linger. 1 s is a guess: with a longer one, requests would wait longer than objectives
 * usually allow. */
#define LINGER_MAX_NS 1e9

/* Longest spin: 1 ms, fifty times the time to wake a sleeper (measured: 21 us). */
#define SPIN_MAX_NS 1e6

/* Largest value of `stuck`: an hour is a guess. */
#define STUCK_MAX_NS 3600e9

/* Most children of an event. 65536 is a choice: at 128 bytes and more for a child, 8 MiB. */
#define CHILDREN_MAX 65536

const struct weir_knob weir_threads_knobs[] = {
    {.name = "min",
	.type = WEIR_KNOB_INT,
	MEMBER(weir_threads_spec, min),
	.def = "1", /* the controller adds threads if the stage needs more */
	.min = 1,
	.max = THREADS_MAX,
	.flags = WEIR_KNOB_LIVE | WEIR_KNOB_AUTO,
	.help = "fewest handler threads; auto is the number of cores this process may use, at most "
		"max"},
    {.name = "max",
	.type = WEIR_KNOB_INT,
	MEMBER(weir_threads_spec, max),
	.def = "auto", /* suits handlers that do not block */
	.min = 1,
	.max = THREADS_MAX,
	.flags = WEIR_KNOB_LIVE | WEIR_KNOB_AUTO,
	.help = "most handler threads the controller may use; auto is the number of cores this "
		"process may use, at least min"},
    {.name = "start",
	.type = WEIR_KNOB_INT,
	MEMBER(weir_threads_spec, start),
	.def = "auto",
	.min = 1,
	.max = THREADS_MAX,
	.flags = WEIR_KNOB_AUTO,
	.help = "handler threads at startup; auto is min"},
    {.name = "policy",
	.type = WEIR_KNOB_STRING,
	MEMBER(weir_threads_spec, policy),
	.def = "weir",
	.help = "policy that resizes the pool between min and max",
	.option = policies_resize},
    {.name = "pin",
	.type = WEIR_KNOB_BOOL,
	MEMBER(weir_threads_spec, pinned),
	.def = "false",
	.help = "bind thread i to core i modulo the number of cores"},
    {.name = "spin",
	.type = WEIR_KNOB_DURATION,
	MEMBER(weir_threads_spec, spin_ns),
	.def = "auto",
	.min = 0,
	.max = SPIN_MAX_NS,
	.flags = WEIR_KNOB_AUTO,
	.help =
	    "longest time a thread polls for work before it sleeps; auto adapts, 0 never spins"},
    {.name = "stuck",
	.type = WEIR_KNOB_DURATION,
	MEMBER(weir_threads_spec, stuck_ns),
	.def = "1s", /* a guess: ten times HAProxy's 100 ms, since handlers here may block */
	.min = 0,
	.max = STUCK_MAX_NS,
	.help =
	    "handler calls that take longer than this are logged, one per stage and 10 s with its "
	    "call stack; 0: none is logged"},
    {.name = NULL}};

const struct weir_knob weir_queue_knobs[] = {
    {.name = "limit",
	.type = WEIR_KNOB_INT,
	MEMBER(weir_queue_spec, limit),
	.def = "4096",
	.min = 1,
	.max = QUEUE_MAX,
	.flags = WEIR_KNOB_LIVE,
	.help = "most events that may wait or be held; more are refused as queue_full; with "
		"several classes, all classes below the highest priority together fill at most "
		"half of the queue (docs/overload.md)"},
    {.name = "discipline",
	.type = WEIR_KNOB_ENUM,
	MEMBER(weir_queue_spec, discipline),
	.def = "auto",
	.choices = "auto|priority|fifo|shortest",
	.help = "which event is served first: priority (the highest class), fifo (the oldest), or "
		"shortest (of the highest class, the one with the least expected work); auto is "
		"fifo if the admission policy needs it (docs/overload.md), else priority"},
    {.name = "by",
	.type = WEIR_KNOB_STRING,
	MEMBER(weir_queue_spec, by),
	.def = "",
	.help = "discipline shortest: the field with the expected work of an event, a number in "
		"any unit; empty: what the event type says"},
    {.name = "starve",
	.type = WEIR_KNOB_DURATION,
	MEMBER(weir_queue_spec, starve_ns),
	.def = "auto",
	.min = 0,
	.max = VISIT_MAX_NS,
	.flags = WEIR_KNOB_AUTO,
	.help = "discipline shortest: an event that has waited longer is first in its class; auto "
		"is half of 'slo', 0 is never"},
    {.name = NULL}};

const struct weir_knob weir_cohort_knobs[] = {
    {.name = "max",
	.type = WEIR_KNOB_INT,
	MEMBER(weir_cohort_spec, max),
	.def = "64", /* measured: larger cohorts gain little */
	.min = 1,
	.max = WEIR_BATCH_MAX,
	.flags = WEIR_KNOB_LIVE,
	.help = "maximum number of events in one call of the handler"},
    {.name = "policy",
	.type = WEIR_KNOB_STRING,
	MEMBER(weir_cohort_spec, policy),
	.def = "static",
	.help = "policy that sizes batches below max",
	.option = policies_batch},
    {.name = "linger",
	.type = WEIR_KNOB_DURATION,
	MEMBER(weir_cohort_spec, linger_ns),
	.def = "0", /* lingering delays events, so operators must opt in */
	.min = 0,
	.max = LINGER_MAX_NS,
	.flags = WEIR_KNOB_LIVE,
	.help = "longest wait for a fuller cohort; 0 does not wait"},
    {.name = "by",
	.type = WEIR_KNOB_STRING,
	MEMBER(weir_cohort_spec, by),
	.def = "",
	.help =
	    "events of one cohort have equal values of this field, of the event or of a payload "
	    "(image.width); 'stage' is the key of the stage type; empty: a cohort may have any "
	    "events"},
    {.name = NULL}};

const struct weir_knob weir_admission_knobs[] = {
    {.name = "policy",
	.type = WEIR_KNOB_STRING,
	MEMBER(weir_admission_spec, policy),
	.def = "auto",
	.help = "policy that chooses which events may enter the queue (docs/overload.md)",
	.option = policies_admission},
    {.name = "mode",
	.type = WEIR_KNOB_ENUM,
	MEMBER(weir_admission_spec, mode),
	.def = "enforce",
	.choices = "off|shadow|enforce",
	.flags = WEIR_KNOB_LIVE,
	.help = "enforce refuses; shadow only counts what it would refuse; off does not run the "
		"policy"},
    {.name = "threshold",
	.type = WEIR_KNOB_INT,
	MEMBER(weir_admission_spec, threshold),
	.def = "auto",
	.min = 1,
	.max = QUEUE_MAX,
	.flags = WEIR_KNOB_LIVE | WEIR_KNOB_AUTO,
	.help = "policy threshold: queue length from which events are refused; auto is half the "
		"limit; of K classes, the k-th below the highest is refused from "
		"(1 - k/(2K)) times this length"},
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
	.help = "policies codel and dagor: target wait; seda_rt: target response time; auto is the "
		"policy's default"},
    {.name = "interval",
	.type = WEIR_KNOB_DURATION,
	MEMBER(weir_admission_spec, interval_ns),
	.def = "auto",
	.min = 1e6,
	.max = 1e11,
	.flags = WEIR_KNOB_LIVE | WEIR_KNOB_AUTO,
	.help = "policy codel: time over which the minimum wait is taken; auto is 100ms"},
    {.name = NULL}};

/* Shortest and longest step. 100 ms is the interval at which the control thread checks; an hour is
 * a guess. */
#define DEGRADE_STEP_MIN_NS 1e8
#define DEGRADE_STEP_MAX_NS 3600e9

const struct weir_knob weir_degrade_knobs[] = {
    {.name = "above",
	.type = WEIR_KNOB_RATIO,
	MEMBER(weir_degrade_spec, above),
	.def = "100%", /* off, since operators must opt in to degradation */
	.min = 0.01,
	.max = 1,
	.flags = WEIR_KNOB_LIVE,
	.help =
	    "pressure of the stage (docs/overload.md) above which it lowers its quality, a tenth "
	    "per step; 100% is never"},
    {.name = "below",
	.type = WEIR_KNOB_RATIO,
	MEMBER(weir_degrade_spec, below),
	.def = "20%", /* a guess, far below usual values of `above` */
	.max = 0.99,
	.flags = WEIR_KNOB_LIVE,
	.help = "pressure below which the stage raises its quality again; between 'below' and "
		"'above', the quality stays as it is"},
    {.name = "step",
	.type = WEIR_KNOB_DURATION,
	MEMBER(weir_degrade_spec, step_ns),
	.def = "500ms", /* a guess: from best to cheapest takes 5 s, longer than a burst */
	.min = DEGRADE_STEP_MIN_NS,
	.max = DEGRADE_STEP_MAX_NS,
	.flags = WEIR_KNOB_LIVE,
	.help = "time between two steps of the quality"},
    {.name = NULL}};

const struct weir_knob weir_width_knobs[] = {
    /* first, since the hint for a number in place of the map suggests the first suitable row */
    {.name = "max",
	.type = WEIR_KNOB_INT,
	MEMBER(weir_width_spec, max),
	.def = "auto",
	.min = 1,
	.max = QUEUE_MAX,
	.flags = WEIR_KNOB_LIVE | WEIR_KNOB_AUTO,
	.help = "maximum number of events in progress at once; auto is 'limit' of 'queue'"},
    {.name = "min",
	.type = WEIR_KNOB_INT,
	MEMBER(weir_width_spec, min),
	.def = "1",
	.min = 1,
	.max = QUEUE_MAX,
	.flags = WEIR_KNOB_LIVE,
	.help = "minimum number of events that may be in progress at once"},
    {.name = "policy",
	.type = WEIR_KNOB_STRING,
	MEMBER(weir_width_spec, policy),
	.def = "weir",
	.help = "policy that sets the width between min and max",
	.option = policies_width},
    {.name = NULL}};

const struct weir_knob weir_stage_knobs[] = {
    {.name = "threads",
	.type = WEIR_KNOB_MAP,
	MEMBER(weir_stage_spec, threads),
	.fields = weir_threads_knobs,
	.help = "the stage's own pool; a number for a fixed size, 'inline' to run in the caller's "
		"thread"},
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
	.help = "when the stage lowers its quality to serve more"},
    {.name = "width",
	.type = WEIR_KNOB_MAP,
	MEMBER(weir_stage_spec, width),
	.fields = weir_width_knobs,
	.help = "how many events a stage that holds them may have in work at once"},
    {.name = "mode",
	.type = WEIR_KNOB_ENUM,
	MEMBER(weir_stage_spec, mode),
	.def = "shared",
	.choices = "shared|exclusive|partitioned|replicated",
	.help = "how many threads may run the handler at once: with shared any number, with "
		"exclusive one, with partitioned one for each key; with replicated, each core of "
		"the group has a state of its own"},
    {.name = "key",
	.type = WEIR_KNOB_STRING,
	MEMBER(weir_stage_spec, key),
	.def = "",
	.help = "mode partitioned: events with equal values of this field, of the event or of a "
		"payload (image.width), stay in one thread and in order"},
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
	.flags = WEIR_KNOB_AUTO | WEIR_KNOB_LIVE,
	.help = "how long an event may take in the stage, queue included; auto is the shortest "
		"'slo' of the classes"},
    {.name = "local",
	.type = WEIR_KNOB_ENUM,
	MEMBER(weir_stage_spec, local),
	.def = "auto",
	.choices = "auto|always|never",
	.flags = WEIR_KNOB_LIVE,
	.help = "whether events from the stage's own core group stay on the core of their sender; "
		"auto: unless the stage takes longer than 20us for one"},
    {.name = "children",
	.type = WEIR_KNOB_INT,
	MEMBER(weir_stage_spec, children),
	.def = "256", /* WEIR_CHILDREN */
	.min = 1,
	.max = CHILDREN_MAX,
	.flags = WEIR_KNOB_LIVE,
	.help = "how many children an event may have at a time; further ones end as limit"},
    {.name = "urgent",
	.type = WEIR_KNOB_MAP,
	MEMBER(weir_stage_spec, urgent),
	.fields = weir_urgent_knobs,
	.help = "when a core of the stage's group visits it before all others"},
    {.name = "serial",
	.type = WEIR_KNOB_STRING,
	MEMBER(weir_stage_spec, serial),
	.def = "",
	.help = "in a core group: use this field instead of the group's 'serial'; none: events of "
		"the stage may overlap"},
    {.name = NULL}};
