/* SPDX-License-Identifier: MIT */
/* Tells by the books whether events are in flight while the graph runs; see graph_is_quiet. */
#include "base/stack.h"
#include "graph/graph.h"
#include "stage/thread.h"

int64_t graph_in_flight(struct weir_graph *g, int id)
{
	struct book b = {0};
	int64_t n = 0;

	graph_sum(g, id, &b, NULL, NULL, NULL, NULL);
	for (int c = 0; c < g->n_classes; c++)
		n += (int64_t)(book_came(&b.class_book[c]) - book_left(&b.class_book[c]));
	return n;
}

int64_t graph_held_at(struct weir_graph *g, const struct weir_stage *st)
{
	struct book b = {0};

	graph_sum(g, st->id, &b, NULL, NULL, NULL, NULL);
	return (int64_t)book_read(&b.held);
}

/* Return the sum of thread.moves, and in *moving whether a thread moves events now. */
static uint64_t moves_of(struct weir_graph *g, bool *moving)
{
	lock_take(&g->threads_lock);
	uint64_t sum = g->gone_moves;
	*moving = false;
	for (const struct thread *t = g->threads; t; t = t->next) {
		uint64_t moves = atomic_load_explicit(&t->moves, memory_order_acquire);
		*moving |= moves & 1;
		sum += moves;
	}
	lock_release(&g->threads_lock);
	return sum;
}

bool graph_is_quiet(struct weir_graph *g, bool rest)
{
	int64_t ended = 0, offered = 0;
	uint64_t awaiting = 0;
	bool moving, moved;
	uint64_t moves = moves_of(g, &moving);

	for (int i = 0; i < g->n_stages; i++) {
		struct book b = {0};
		graph_sum(g, i, &b, NULL, NULL, NULL, NULL);
		if (rest) /* `arriving` is read after `held` */
			ended += (int64_t)book_read(&b.held) - atomic_load(&g->stages[i]->arriving);
		for (int c = 0; c < g->n_classes; c++) {
			ended += (int64_t)book_left(&b.class_book[c]);
			awaiting += rest ? book_read(&b.class_book[c].awaiting) : 0;
		}
	}
	for (int i = 0; i < g->n_stages; i++) {
		struct book b = {0};
		graph_sum(g, i, &b, NULL, NULL, NULL, NULL);
		for (int c = 0; c < g->n_classes; c++)
			offered += (int64_t)book_came(&b.class_book[c]);
	}
	if (WEIR_LIKELY(awaiting == 0))
		return offered == ended;
	return offered == ended + (int64_t)awaiting && !moving && moves_of(g, &moved) == moves;
}
