/* SPDX-License-Identifier: MIT */
/*
 * The queues of stages: a list for each class or, with `shortest`, bins (event/bins.h, unmodified).
 * The queue of a core group with replicas has a part for each copy of the group, and that of a serial
 * stage an inbox for each core (group_keys.c).
 */
#include <math.h>
#include <stdlib.h>

#include "event/bins.h"
#include "group.h"
#include "load/rng.h"

#define CHUNK 1024 /* of the events that stand for requests in bins */

/* ---- bins ---- */

/* Return the event that stands for the request in bins. It has the request's slot as its key, and
 * stays where it is. */
static struct weir_event *event_of(struct sim *s, uint32_t slot)
{
	if (!s->chunk)
		s->chunk = calloc(STEP_MASK / CHUNK + 1, sizeof(*s->chunk));
	if (s->chunk && !s->chunk[slot / CHUNK])
		s->chunk[slot / CHUNK] = calloc(CHUNK, sizeof(struct weir_event));
	return s->chunk && s->chunk[slot / CHUNK] ? &s->chunk[slot / CHUNK][slot % CHUNK] : NULL;
}

/* The expected work is the service time, which the hint misses by at most `hint_error`. */
static uint8_t bin_for(const struct stage *st, const struct request *r)
{
	double u = weir_random_unit(weir_random_at(rng_key(st->key, 1), r->serial));
	double factor = pow(1 + st->conf->hint_error, 2 * u - 1);
	int64_t work_ns =
	    r->left_ns > 0 ? r->left_ns : sim_draw_ns(&st->conf->service, st->key, r->serial);

	return bin_of((uint64_t)((double)work_ns * factor));
}

static void put(struct sim *s, struct stage *st, uint32_t slot)
{
	struct request *r = &s->req[slot];
	struct bins **b = &st->bins[r->class_id];
	struct weir_event *ev = event_of(s, slot);

	if (!*b)
		*b = bins_new(1, false);
	if (!ev || !*b || bins_reserve(*b, 1) != 0) {
		s->rc = WEIR_ENOMEM;
		return;
	}
	ev->key = slot;
	ev->queued_ns = r->queued_ns;
	bin_note(ev, bin_for(st, r));
	bins_put(*b, ev);
	st->lane[r->class_id].n++;
}

static uint32_t take(struct sim *s, struct stage *st, int c)
{
	int64_t starve_ns = st->conf->queue_starve_ns;
	struct weir_event *ev;

	bins_take(st->bins[c], 1, starve_ns > 0 ? s->now_ns - starve_ns : INT64_MIN, &ev);
	st->lane[c].n--;
	return (uint32_t)ev->key;
}

struct walk {
	uint32_t n, wrong;
	const struct sim *s;
	int class_id;
};

static bool look(void *arg, const struct weir_event *ev)
{
	struct walk *w = arg;
	const struct request *r = &w->s->req[ev->key];

	w->n++;
	w->wrong += r->class_id != w->class_id || !r->in_server;
	return true;
}

bool waiting_sound(const struct sim *s, const struct stage *st, int c)
{
	struct walk w = {.s = s, .class_id = c};

	if (st->bins[c])
		bins_walk(st->bins[c], INT64_MIN, look, &w);
	return w.n == st->lane[c].n && w.wrong == 0;
}

/* ---- all queues ---- */

void waiting_close(struct stage *st)
{
	for (int c = 0; c < WEIR_CLASSES_MAX; c++)
		bins_free(st->bins[c]);
	free(st->part);
}

static void push(struct sim *s, struct stage *st, int part, uint32_t slot)
{
	uint8_t c = s->req[slot].class_id;

	if (st->conf->serial) {
		keys_push(s, st, slot);
	} else if (st->conf->partition) {
		parts_push(s, st, slot);
	} else if (st->part) {
		lane_push(s, &st->part[part].lane[c], slot);
		st->part[part].n++;
		st->lane[c].n++;
	} else if (stage_shortest(st)) {
		put(s, st, slot);
	} else {
		lane_push(s, &st->lane[c], slot);
	}
}

void waiting_push(struct sim *s, struct stage *st, int part, uint32_t slot)
{
	push(s, st, part, slot);
	linger_watch(s, st);
}

static uint32_t pop(struct sim *s, struct stage *st, int part)
{
	if (st->conf->serial)
		return keys_pop(s, st, keys_inbox(st, part));
	if (st->conf->partition)
		return parts_pop(s, st, part);
	if (st->part) {
		int c = lanes_next(s, st, st->part[part].lane);
		st->part[part].n--;
		st->lane[c].n--;
		return lane_pop(s, &st->part[part].lane[c]);
	}
	int c = lanes_next(s, st, st->lane);
	return stage_shortest(st) ? take(s, st, c) : lane_pop(s, &st->lane[c]);
}

uint32_t waiting_pop(struct sim *s, struct stage *st, int part)
{
	uint32_t slot = pop(s, st, part);

	linger_watch(s, st);
	return slot;
}

static int64_t older_ns(const struct sim *s, const struct lane *l, int64_t at_ns)
{
	if (l->n > 0 && s->req[l->head].queued_ns < at_ns)
		at_ns = s->req[l->head].queued_ns;
	/* in a cell with `newest`, the first is the youngest */
	if (l->n > 0 && s->req[l->tail].queued_ns < at_ns)
		at_ns = s->req[l->tail].queued_ns;
	return at_ns;
}

int64_t lanes_oldest_ns(const struct sim *s, const struct lane *lane)
{
	int64_t at_ns = INT64_MAX;

	for (int c = 0; c < s->conf->n_classes; c++)
		at_ns = older_ns(s, &lane[c], at_ns);
	return at_ns;
}

int64_t waiting_oldest_ns(const struct sim *s, const struct stage *st, int part)
{
	int64_t at_ns = INT64_MAX;

	if (!stage_shortest(st))
		return lanes_oldest_ns(s, waiting_lanes(st, part));
	for (int c = 0; c < s->conf->n_classes; c++)
		if (st->lane[c].n > 0 && bins_oldest(st->bins[c])->queued_ns < at_ns)
			at_ns = bins_oldest(st->bins[c])->queued_ns;
	return at_ns;
}

const struct lane *waiting_lanes(const struct stage *st, int part)
{
	if (st->conf->serial)
		return keys_inbox(st, part)->lane;
	return st->part ? st->part[part].lane : st->lane;
}
