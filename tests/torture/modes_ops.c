/* SPDX-License-Identifier: MIT */
#include "torture/modes_ops.h"

#include <weir/random.h>

#include "event/op.h"

#define FAMILIES     4
#define CHILDREN_MAX 6
/* Hops that a child has behind it when it is made, so that its own children end soon. */
#define FIRST_HOP 6

static atomic_ullong made, finished, cancelled, refused; /* the last two: of those that were made */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct weir_family *families[FAMILIES];

/* Join one of the families that take turns. */
static void join_family(struct weir_event *ev, uint64_t r)
{
	struct weir_family **f = &families[r % FAMILIES];

	if (weir_family_of(ev))
		return;
	pthread_mutex_lock(&lock);
	if (!*f)
		*f = weir_family_new(families[(r + 1) % FAMILIES]);
	if (r >> 2 & 1) /* room for some tens of events: children are refused */
		weir_family_set_memory(*f, 64 * sizeof(struct probe));
	weir_family_join(*f, ev);
	pthread_mutex_unlock(&lock);
}

void ops_end_family(unsigned number)
{
	struct weir_family **f = &families[number % FAMILIES], *was;

	pthread_mutex_lock(&lock);
	was = *f;
	*f = NULL;
	pthread_mutex_unlock(&lock);
	weir_family_end(was);
	weir_family_put(was);
}

/* All events have ended. */
void ops_over(void)
{
	for (unsigned i = 0; i < FAMILIES; i++) {
		if (weir_family_memory(families[i]) != 0)
			fault("a family has memory left", weir_family_memory(families[i]), i);
		ops_end_family(i);
	}
}

static struct weir_event *make(struct weir_stage *st, uint64_t r, int hops)
{
	struct weir_event *ev = weir_event_new(st, &probe_type);
	struct probe *p = (struct probe *)ev;

	if (!ev)
		return NULL;
	p->producer = MADE;
	p->seq = r | 1;
	p->status = hops > FIRST_HOP ? hops : FIRST_HOP;
	ev->key = r >> 50;
	atomic_fetch_add(&made, 1);
	return ev;
}

/* A continuation: all children have ended. */
static void joined(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct probe *p = (struct probe *)ev[i];
		uint64_t r = weir_random_at(0, p->seq * 31 + (uint64_t)++p->status);
		uint32_t seen = 0;
		for (struct weir_event *c = weir_ended(ev[i]); c; c = c->next) {
			seen++;
			if (c->state != WEIR_EVENT_FINISHED)
				fault("a child that has not ended", c->state, 0);
		}
		if (seen != op_of(ev[i])->n_awaited)
			fault("children are missing", seen, op_of(ev[i])->n_awaited);
		if (p->status <= HOPS_MAX && r % 4 == 0)
			ops_split(st, &ev[i], r >> 8);
		else if (r % 4 == 1)
			weir_requeue(st, &ev[i]);
		else if (r % 4 == 2)
			weir_emit(st, (int)(r >> 8) % 3, &ev[i]);
		else if (r % 64 != 3) /* else it is left behind */
			weir_event_finish(&ev[i], weir_ended_status(ev[i]));
	}
}

void ops_split(struct weir_stage *st, struct weir_event **slot, uint64_t r)
{
	int n = (int)(r >> 3) % (CHILDREN_MAX + 1), hops = ((struct probe *)*slot)->status;

	if (r >> 20 & 1)
		join_family(*slot, r >> 21);
	for (int i = 0; i < n; i++) {
		uint64_t x = weir_random_at(0, r + (uint64_t)i);
		struct weir_event *c = make(st, x, hops);
		if (weir_child(st, *slot, (int)(x >> 20) % 3, &c) == WEIR_ELIMIT)
			atomic_fetch_add(&refused, 1);
	}
	switch (r % 8) {
	case 0:
		weir_emit(st, 0, slot);
		break;
	case 1:
		weir_requeue(st, slot);
		break;
	case 2:
		weir_event_finish(slot, WEIR_OK);
		break;
	case 3:
		break; /* it is left behind, so its children end */
	default:
		weir_await(st, slot, joined);
	}
}

void ops_spawn(struct weir_stage *st, uint64_t r)
{
	struct weir_event *ev = make(st, r, 0);

	if (ev)
		weir_emit(st, (int)(r >> 20) % 3, &ev);
}

void ops_finished(struct probe *p, int status)
{
	if (p->producer != MADE)
		return;
	atomic_fetch_add(&finished, 1);
	if (status == WEIR_ECANCELLED)
		atomic_fetch_add(&cancelled, 1);
}

void ops_check(struct weir_graph *g)
{
	struct weir_graph_view *v;

	if (weir_graph_view(g, &v) != 0)
		return;
	for (int i = 0; i < v->n_stages; i++) {
		const struct weir_stage_view *s = &v->stages[i];
		if (s->awaiting != 0)
			fault("somebody still awaits", s->awaiting, (uint64_t)i);
		if (s->spawned != s->joined + s->orphaned + s->cancelled)
			fault("not all that was made has ended", s->spawned,
			    s->joined + s->orphaned + s->cancelled);
	}
	weir_graph_view_free(v);
}

uint64_t ops_made(void)
{
	return atomic_load(&made);
}

void ops_report(void)
{
	unsigned long long n = atomic_load(&made);

	if (n != atomic_load(&finished))
		fault("made and lost", n, atomic_load(&finished));
	printf("made %llu cancelled %llu refused %llu, ", n,
	    (unsigned long long)atomic_load(&cancelled), (unsigned long long)atomic_load(&refused));
}
