/* SPDX-License-Identifier: MIT */
/*
 * Looking at events as they end: taps, which a person opens for a while, and the collection for an export.
 *
 * A tap has a filter and a ring of TAP_EVENTS. It is opened by the first that reads with its filter and ends when nobody
 * has read for TAP_LEASE_NS. Readers bring the id of the last event they have, so any number may share a tap. What
 * nobody has read yet is never overwritten: while TAP_EVENTS are unread, further ones are counted alone, so however
 * busy the server is, a tap copies at most so many events between two reads.
 *
 * The collection is one queue with one reader: what a sampler picks, and the slowest. When it is full events are
 * counted alone, too.
 *
 * While nobody looks an event pays for a relaxed load.
 *
 * | call                                       | who                                                       |
 * |--------------------------------------------|-----------------------------------------------------------|
 * | taps_offer, collect_offer, collect_below   | any thread that ends events                               |
 * | taps_read, taps_tick, collect_* but begin  | any thread; a lock for the time of copying what is read   |
 * | taps_new, taps_free                        | nothing may overlap                                       |
 */
#ifndef WEIR_FLOW_TRAIL_TAP_H
#define WEIR_FLOW_TRAIL_TAP_H

#include <weir/graph.h>

#include "base/lock.h"
#include "base/random.h"

/** Filters that may be looked through at once. A guess: a few people, or a page and a person. */
#define TAPS_MAX 8
/** Events of a tap, 200 KB. A reader that comes four times a second sees a thousand a second. */
#define TAP_EVENTS 256
/** A tap lives so long without a reader: some of what a person's command takes to ask again. A guess. */
#define TAP_LEASE_NS (3 * NS_PER_S)
/** Events that wait for the export, 1.6 MB: a second of what one collector takes. A guess. */
#define COLLECT_EVENTS 2048

struct taps;
struct slowest;

/** *looking, 0 now, is how many look, for who ends events; it outlives the taps. NULL: out of memory. */
struct taps *taps_new(atomic_int *looking);
void taps_free(struct taps *taps);

/** Does anybody look? A relaxed load: who has just begun to look may miss an event. */
bool taps_watched(const struct taps *taps);

/** An event of a traced type ended at `now_ns`; ev->stage is where. `kept`: it is one of the slowest. */
void taps_offer(struct taps *taps, struct weir_event *ev, int status, bool kept, int64_t now_ns);

/** As weir_graph_tap, with the number of the stage and without names. */
int taps_read(struct taps *taps, int stage, const struct weir_tap *want, uint64_t after,
    struct weir_slow *out, int n, struct weir_tap_state *state);

/** End the taps that nobody reads. The control thread, each tick. */
void taps_tick(struct taps *taps, int64_t now_ns);

/** The taps of a graph: for its threads. */
struct taps *slowest_taps(struct slowest *s);

/* ---- the collection; see weir_graph_collect ---- */

int collect_begin(struct taps *taps, const struct weir_collect *want);
void collect_end(struct taps *taps);
int collect_read(struct taps *taps, struct weir_slow *out, int n);
void collect_sent(struct taps *taps, uint64_t sent, uint64_t failed);
void collect_state(struct taps *taps, struct weir_collect_state *state);

/** A trace that begins now is collected when the low half of its id is below that. */
uint64_t collect_below(const struct taps *taps);

/* ---- ids: trail_trace.c ---- */

/** Give the trail a trace and a span unless it has them; new ones are sampled when their low half is below `sample_below`. */
void trace_make(struct weir_trail *trail, uint64_t sample_below);

/** The span of hop `hop`, from 0, of an event whose trace has a span: the same whenever it is asked for. */
uint64_t trace_hop_span(const struct weir_trace *trace, int hop);

/** Describe the event, which ends now; without an id and names. Makes its trace, `below` as above. */
void trail_record(
    struct weir_event *ev, int status, int64_t now_ns, uint64_t below, struct weir_slow *slow);

#endif
