/* SPDX-License-Identifier: MIT */
/*
 * Searches all tickets of a stage (tickets.c): for the drain, and for events whose family has ended.
 *
 * The control thread searches for families that have ended, only after one has (family_ends). It may
 * not touch the events, which other threads claim meanwhile. So each slot has the family of its event,
 * and family_search_begin keeps families from being freed during the search. An event is taken out by
 * the exchange that a claim uses, so the control thread gets only events that wait. Such events return
 * to the threads of the stage as expired ones do, where stage_expired ends them.
 *
 * An event that begins to wait while its family ends is found, too: the hold writes `word` and then
 * reads whether the family is over; weir_family_end writes that, and the search reads `word`; all
 * seq_cst.
 */
#include "event/op.h"
#include "graph/tickets.h"
#include "sched/pool.h"

/* Call each(tk, slot, ticket) for every slot with an event; `each` may be NULL. Returns the number
 * of these slots. */
static int64_t each_ticket(struct tickets *tk,
    void (*each)(struct tickets *, struct slot *, uint64_t)) WEIR_REQUIRES(&tk->lock)
{
	int64_t found = 0;

	for (int k = 0; k < tk->n_chunks; k++) {
		struct slot *chunk = atomic_load(&tk->chunk[k]);
		for (int i = 0; i < CHUNK_FIRST << k; i++) {
			uint64_t word = atomic_load(&chunk[i].word);
			if (!is_ticket(word))
				continue;
			found++;
			if (each)
				each(tk, &chunk[i], word);
		}
	}
	return found;
}

int64_t graph_tickets_out(struct weir_stage *st)
{
	if (!st->tickets)
		return 0;
	lock_take(&st->tickets->lock);
	int64_t n = each_ticket(st->tickets, NULL);
	lock_release(&st->tickets->lock);
	return n;
}

struct weir_event *graph_tickets_close(struct weir_stage *st)
{
	struct tickets *tk = st->tickets;

	if (!tk)
		return NULL;
	atomic_store(&tk->closed, true);
	lock_take(&tk->lock);
	each_ticket(tk, tickets_take_due);
	struct weir_event *list = tk->due;
	tk->due = NULL;
	lock_release(&tk->lock);
	return list;
}

bool graph_tickets_closed(const struct weir_stage *st)
{
	return st->tickets && atomic_load(&st->tickets->closed);
}

/* Take the events of one chunk whose family has ended out of their slots. */
static struct weir_event *take_over(
    struct tickets *tk, struct slot *chunk, int n, struct weir_event *list)
{
	for (int i = 0; i < n; i++) {
		struct slot *s = &chunk[i];
		uint64_t ticket = atomic_load(&s->word);
		if (!is_ticket(ticket))
			continue;
		if (!weir_family_over(atomic_load_explicit(&s->family, memory_order_relaxed)))
			continue;
		struct weir_event *ev = ticket_take_out(s, ticket);
		if (!ev)
			continue;
		tickets_put_free(tk, s, s);
		ev->next = list;
		list = ev;
	}
	return list;
}

static void end_families(struct weir_stage *st)
{
	struct tickets *tk = st->tickets;
	struct weir_event *list = NULL;

	/* An event that is in no slot and not given back yet counts as held. So that a drain does not
	 * go on meanwhile, the search itself counts as arriving. */
	atomic_fetch_add(&st->arriving, 1);
	for (int k = 0; k < CHUNKS; k++) {
		struct slot *chunk = atomic_load(&tk->chunk[k]);
		if (!chunk)
			break;
		list = take_over(tk, chunk, CHUNK_FIRST << k, list);
	}
	if (list) {
		tickets_give_back(tk, list);
		/* a thread that is about to park reads this time (sched/rest.c) */
		atomic_store(&st->sink.expires_ns, 0);
		if (st->pool)
			pool_wake(st->pool);
	}
	atomic_fetch_sub(&st->arriving, 1);
}

void graph_families_tick(struct weir_graph *g)
{
	uint64_t ends = family_ends();

	if (ends == g->family_ends)
		return;
	g->family_ends = ends;
	family_search_begin();
	for (int i = 0; i < g->n_stages; i++)
		if (g->stages[i]->tickets)
			end_families(g->stages[i]);
	family_search_end();
}
