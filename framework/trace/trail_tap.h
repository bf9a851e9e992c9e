/* SPDX-License-Identifier: MIT */
/*
 * Observes events as they end. Observers are the taps, which a person opens temporarily, and the
 * collection, which feeds an export.
 *
 * A tap has a filter and a ring of TAP_EVENTS events. The first reader that requests a filter opens
 * a tap for it, and the tap is closed after TAP_LEASE_NS without a reader. Each reader passes the
 * id of the last event that it has received, so any number of readers may share a tap. Events that
 * no reader has received are never overwritten: while the ring is full of them, further events are
 * only counted. So a tap copies at most TAP_EVENTS events between two reads, however busy the
 * server is.
 *
 * The collection is one queue with one reader. It receives the events that a sampler picks, and the
 * slowest ones. When the queue is full, further events are only counted.
 *
 * Without observers, the end of an event costs one relaxed load.
 *
 * | call                                       | threads                                         |
 * |--------------------------------------------|-------------------------------------------------|
 * | taps_offer, collect_offer, collect_below   | any thread that ends events                     |
 * | taps_read, taps_tick, other collect_*      | any thread; takes a lock while copying          |
 * | taps_new, taps_free                        | any thread; no other call may overlap           |
 */
#ifndef WEIR_TRACE_TRAIL_TAP_H
#define WEIR_TRACE_TRAIL_TAP_H

#include <weir/graph.h>

#include "base/lock.h"
#include "base/random.h"

/** Maximum number of open taps. 8 is a guess: enough for a few people and a page. */
#define TAPS_MAX 8
/** Number of events in a tap's ring, which takes 176 KB. A reader that polls four times a second
 *  sees up to a thousand events a second. */
#define TAP_EVENTS 256
/** Time after which a tap without a reader is closed. 3 s is a guess: several polling intervals of
 *  the command that reads taps. */
#define TAP_LEASE_NS (3 * NS_PER_S)
/** Maximum number of events that wait for the export; they take 1.4 MB. 2048 is a guess: about as
 *  many as a collector accepts in a second. */
#define COLLECT_EVENTS 2048

struct taps;
struct slowest;

/** Allocate the taps of a graph. They store the number of observers in *looking, where threads that
 *  end events can check it. *looking must be 0, and must outlive the taps. Returns NULL if out of
 *  memory. */
struct taps *taps_new(atomic_int *looking);
void taps_free(struct taps *taps);

/** Whether there is an observer. The loads are relaxed, so an observer that has just started may
 *  miss an event. */
bool taps_watched(const struct taps *taps);

/** Offer an event of a traced type, which ends at `now_ns` in stage ev->stage, to all observers.
 *  `kept` is true if it is one of the slowest. */
void taps_offer(struct taps *taps, struct weir_event *ev, int status, bool kept, int64_t now_ns);

/** Read a tap like weir_graph_tap, but take the stage by its id and do not fill in names. */
int taps_read(struct taps *taps, int stage, const struct weir_tap *want, uint64_t after,
    struct weir_slow *out, int n, struct weir_tap_state *state);

/** Close the taps that have no reader. The control thread calls this on every tick. */
void taps_tick(struct taps *taps, int64_t now_ns);

/** Return the taps of the graph that owns `s`. */
struct taps *slowest_taps(struct slowest *s);

/* ---- the collection; see weir_graph_collect ---- */

int collect_begin(struct taps *taps, const struct weir_collect *want);
void collect_end(struct taps *taps);
int collect_read(struct taps *taps, struct weir_slow *out, int n);
void collect_sent(struct taps *taps, uint64_t sent, uint64_t failed);
void collect_state(struct taps *taps, struct weir_collect_state *state);

/** Return the sampling bound: a trace that begins now is collected if the low half of its id is
 *  below this bound. */
uint64_t collect_below(const struct taps *taps);

/* ---- ids: trail_trace.c ---- */

/** Assign a trace and a span to the trail if it has none. A new trace is sampled if the low half of
 *  its id is below `sample_below`. */
void trace_make(struct weir_trail *trail, uint64_t sample_below);

/** Assign a trace to `ev`, whose type has a trail, if it has none. Copy the trace to *trace, with
 *  the span of the current hop. `slowest` has the sampling rate; NULL samples nothing. */
void trace_event(struct weir_event *ev, struct slowest *slowest, struct weir_trace *trace);

/** Return the span id of hop `hop`, counted from 0, of an event whose trace has a span.
 *  Deterministic: equal arguments give equal ids. */
uint64_t trace_hop_span(const struct weir_trace *trace, int hop);

/** Fill *slow with a description of an event that is ending, except for the record's id and names.
 *  Assigns a trace to the event if it has none; `below` is passed to trace_make. */
void trail_record(
    struct weir_event *ev, int status, int64_t now_ns, uint64_t below, struct weir_slow *slow);

#endif
