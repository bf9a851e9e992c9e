/* SPDX-License-Identifier: MIT */
/* The table of tickets of a stage; see tickets.c. For tickets.c and tickets_all.c only. */
#ifndef WEIR_GRAPH_TICKETS_H
#define WEIR_GRAPH_TICKETS_H

#include "graph/graph.h"
#include "io/timer.h"

struct weir_family;

/* A ticket is a generation and, in the low bits, the index of a slot. A use of a slot takes two of
 * the 2^40 generations, so a slot that is used a million times a second repeats a ticket after 6
 * days. */
#define INDEX_BITS 24
#define GENERATION (1ULL << INDEX_BITS)
#define INDEX_MASK (GENERATION - 1)

/* Chunk i has CHUNK_FIRST << i slots, so CHUNKS chunks have nearly 2^INDEX_BITS slots. */
#define CHUNK_FIRST 64
#define CHUNKS      18
_Static_assert(CHUNK_FIRST *((1ULL << CHUNKS) - 1) <= INDEX_MASK, "indexes fit into a ticket");

struct slot {
	WEIR_ALIGNED _Atomic uint64_t word;
	struct weir_event *ev; /* belongs to the thread that advances `word` */
	/* family of `ev`, or NULL; written before `word` becomes a ticket. Other threads read it,
	 * since they may not touch `ev`. */
	_Atomic(struct weir_family *) family;
	_Atomic int64_t at_ns; /* deadline of the hold */
	/* time at which the wheel fires the slot; INT64_MAX if it is not in the wheel */
	_Atomic int64_t filed_ns;
	_Atomic(struct slot *) next_free;
	struct slot *next_fresh;
	atomic_bool is_fresh; /* on the list `fresh` */
	struct tickets *tk;
	struct weir_timer timer; /* under tickets.lock */
};

struct tickets {
	struct weir_stage *stage;
	_Atomic(struct slot *) chunk[CHUNKS]; /* written under lock */
	/* the graph ends: weir_hold_until finishes events as WEIR_ECLOSED instead of holding
	 * them */
	atomic_bool closed;
	/* Number of the first free slot (its index + 1), or 0 if there is none. The high half
	 * counts the calls of put_free, against ABA. */
	WEIR_ALIGNED _Atomic uint64_t free;
	_Atomic(struct slot *) fresh;
	/* guards the wheel and the growth; a thread that holds it may take queue.lock */
	struct lock lock;
	int n_chunks WEIR_GUARDED_BY(lock);
	struct weir_event *due WEIR_GUARDED_BY(lock); /* to be given back; linked by `next` */
	struct timer_wheel wheel WEIR_GUARDED_BY(lock);
	int64_t now_ns WEIR_GUARDED_BY(lock); /* valid while the wheel runs */
};

/** Take the event out of the slot with this ticket. Returns NULL if it is not there any more.
 *  Otherwise the caller owns the slot, which is free. */
static inline struct weir_event *ticket_take_out(struct slot *s, uint64_t ticket)
{
	if (!atomic_compare_exchange_strong(&s->word, &ticket, ticket + GENERATION))
		return NULL;
	return s->ev;
}

static inline bool is_ticket(uint64_t word)
{
	return word & GENERATION;
}

/** Put a chain of free slots, linked by next_free, in front of the others. Any thread. */
void tickets_put_free(struct tickets *tk, struct slot *first, struct slot *last);

/** Add the event with this ticket to tk->due, unless the stage claims it first. The caller holds
 *  tickets.lock. */
void tickets_take_due(struct tickets *tk, struct slot *s, uint64_t ticket);

/** Pass the events of `list`, linked by `next`, which were taken out of their slots, to the threads of
 *  the stage. Does not wake a thread if the stage has a single partition. Any thread. */
void tickets_give_back(struct tickets *tk, struct weir_event *list);

#endif
