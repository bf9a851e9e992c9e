/* SPDX-License-Identifier: MIT */
/* Moves events from cells to queues: to deal them to an idle core, and when a thread exits. */
#include "base/clock.h"
#include "sched/cores.h"
#include "sched/serial.h"
#include "stage/stage.h"

/* Push ev[0..n), which need no admission, since they have entered the stage before. Returns how many
 * were pushed; *why tells why others were not. */
static int push(const struct core *core, struct sink *s, struct weir_event **ev, int n, int *why)
{
	struct queue *q = &s->queue;
	uint64_t parts = 0;
	int pushed = 0;

	for (int i = 0; q->shortest && i < n; i++)
		sink_note_cost(s, ev[i]);
	lock_take(&q->lock);
	*why = q->closed ? WEIR_ECLOSED : WEIR_ENOMEM;
	if (!q->closed && q->copy_cores == 0)
		pushed = queue_push_locked(q, ev, n);
	else if (!q->closed)
		pushed = queue_push_copy_locked(q, ev, n, core_copy(core), &parts);
	uint32_t length = queue_length(q);
	lock_release(&q->lock);
	if (pushed > 0)
		s->wake(s, length - (uint32_t)pushed, length, parts);
	return pushed;
}

uint32_t core_give(struct core *core, int i, uint32_t max)
{
	struct sink *s = core->group->pool->sinks[i];
	struct cell *cell = &core->cell[i];
	struct weir_event *ev[WEIR_BATCH_MAX];
	uint32_t given = 0;
	int why;

	if (cell->serial)
		return serial_clear(core, i);
	while (given < max && cell_length(cell) > 0) {
		int most = max - given < WEIR_BATCH_MAX ? (int)(max - given) : WEIR_BATCH_MAX;
		moves_begin(thread_self());
		int n = cell_take(cell, most, s->queue.fifo, ev);
		int pushed = push(core, s, ev, n, &why);
		moves_end(thread_self());
		given += (uint32_t)n;
		if (pushed == n)
			continue;
		if (why == WEIR_ECLOSED)
			atomic_fetch_add(&core->group->closed, (uint64_t)(n - pushed));
		stage_end_waiting(s->stage, ev + pushed, n - pushed, why);
	}
	core->n -= given;
	if (cell_length(cell) == 0)
		core->filled &= ~(1ULL << i);
	if (given > 0)
		next_gave(&core->next, i, given);
	return given;
}

static int64_t service_ns(const struct core *core, int i)
{
	const struct local *l = thread_self()->local[core->group->pool->sinks[i]->id];

	return l->service_ns > 0 ? l->service_ns : 0;
}

void core_deal(struct core *core)
{
	uint64_t filled;
	uint32_t all = core_live(core, &filled);
	/* of serial stages, only whole slots are dealt */
	if (core->group->serial)
		filled &= ~core->group->serial->stages;
	filled &= ~core->group->kept;
	bool several = (filled & (filled - 1)) != 0;
	int64_t work_ns = 0;
	int most = -1;

	if (!filled || (all < DEAL_EVENTS && !several))
		return;
	for (uint64_t left = filled; left; left &= left - 1) {
		int i = __builtin_ctzll(left);
		work_ns += cell_length(&core->cell[i]) * service_ns(core, i);
		if (most < 0 || cell_length(&core->cell[i]) > cell_length(&core->cell[most]))
			most = i;
	}
	if (work_ns < DEAL_NS)
		return;
	uint32_t n = cell_length(&core->cell[most]);
	n = core_give(core, most, several && n < DEAL_EVENTS ? n : n / 2);
	book_add(&core->book[most].dealt, n);
}

void core_retire(struct handler *h)
{
	if (h->core)
		thread_self()->core = NULL;
}

void core_clear(struct handler *h)
{
	for (int i = 0; h->core && i < h->core->group->n_stages; i++)
		core_give(h->core, i, UINT32_MAX);
	if (h->core && h->core->group->serial && !h->core->stands_in)
		serial_leave(h->core);
	if (h->core)
		core_answer(h->core);
}
