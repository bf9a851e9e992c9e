/* SPDX-License-Identifier: MIT */
/* The event loops of http.client: those of the stage itself, its guests in other loops, and their mail. */
#include <stdlib.h>

#include "http/client/client_calls.h"

void client_released(struct client_loop *cl)
{
	if (atomic_fetch_sub(&cl->held, 1) == 1 && atomic_load(&cl->client->closing))
		sem_post(&cl->client->ended);
}

/* ---- mail of a loop to itself ---- */

static void admit(struct weir_loop *loop, struct weir_event *ev)
{
	struct client_loop *cl =
	    (struct client_loop *)((char *)ev - offsetof(struct client_loop, admit));

	(void)loop;
	cl->admits = false;
	exchange_admit(cl);
}

static const struct weir_event_type admit_type = {
    .name = "http.client.admit", .size = sizeof(struct weir_event), .arrive = admit};

void client_loop_room(struct client_loop *cl)
{
	if (!cl->waiting || cl->admits)
		return;
	cl->admits = true;
	weir_loop_send(cl->loop, &cl->admit);
}

static void quit(struct weir_loop *loop, struct weir_event *ev)
{
	struct client_loop *cl =
	    (struct client_loop *)((char *)ev - offsetof(struct client_loop, quit));

	(void)loop;
	while (cl->all)
		exchange_end(cl->all, WEIR_ECLOSED, 0);
	tunnel_end_all(cl);
}

static const struct weir_event_type quit_type = {
    .name = "http.client.quit", .size = sizeof(struct weir_event), .arrive = quit};

/* ---- life ---- */

struct client_loop *client_loop_new(struct client *c, int index)
{
	struct client_loop *cl = calloc(1, sizeof(*cl));

	if (!cl)
		return NULL;
	cl->client = c;
	if (names_new(cl) != 0) {
		names_free(cl);
		free(cl);
		return NULL;
	}
	cl->admit.type = &admit_type;
	cl->quit.type = &quit_type;
	cl->waiting_end = &cl->waiting;
	cl->tokens = CLIENT_TOKENS_FIRST;
	cl->seed = (uint64_t)index + 1;
	return cl;
}

void client_loop_free(struct client_loop *cl)
{
	while (cl->n_kept > 0)
		free(cl->kept[--cl->n_kept]);
	while (cl->spare) {
		struct exchange *x = cl->spare;
		cl->spare = x->next;
		free(x);
	}
	names_free(cl);
	free(cl);
}

static void close_all(struct client_loop *cl)
{
	names_stop(cl);
	health_stop(cl);
	for (int i = 0; i < cl->n_slots; i++)
		upstream_close_idle(cl, &cl->origin[i]);
}

/* ---- loops of the stage ---- */

static struct client_loop *of(struct weir_loop *loop)
{
	return weir_loop_data(loop);
}

static void mail(struct weir_loop *loop, struct weir_event *list)
{
	while (list) {
		struct weir_event *ev = list;
		list = ev->next;
		exchange_new(of(loop), ev);
	}
}

static void turn_end(struct weir_loop *loop)
{
	(void)loop;
}

static int start(struct weir_loop *loop)
{
	struct client_loop *cl = of(loop);
	int rc;

	cl->loop = loop;
	rc = cl->client->n_loops == 0 ? health_start(cl) : 0;
	if (rc == 0)
		rc = names_start(cl);
	if (rc != 0)
		close_all(cl);
	return rc;
}

static void stop(struct weir_loop *loop)
{
	close_all(of(loop));
}

const struct weir_loop_ops client_loop_ops = {
    .start = start, .stop = stop, .mail = mail, .turn_end = turn_end};

/* ---- guests ---- */

static struct client_loop *guest_new(struct client *c, struct weir_loop *loop)
{
	static atomic_int index = CLIENT_LOOPS_MAX;
	struct client_loop *cl = client_loop_new(c, atomic_fetch_add(&index, 1));

	if (!cl)
		return NULL;
	cl->loop = loop;
	if (names_start(cl) != 0) {
		close_all(cl);
		client_loop_free(cl);
		return NULL;
	}
	pthread_mutex_lock(&c->lock);
	cl->next = c->guests;
	cl->prev = &c->guests;
	if (cl->next)
		cl->next->prev = &cl->next;
	c->guests = cl;
	pthread_mutex_unlock(&c->lock);
	return cl;
}

struct client_loop *client_loop_here(struct weir_stage *st)
{
	struct weir_loop *loop = weir_loop_here();

	if (!loop)
		return NULL;
	if (weir_loop_stage(loop) == st)
		return of(loop);
	struct client_thread *t = weir_thread_state(st);
	if (!t->guest)
		t->guest = guest_new(weir_state(st), loop);
	return t->guest;
}

void client_loop_leave(struct weir_stage *st)
{
	struct client_thread *t = weir_thread_state(st);
	struct client_loop *cl = t->guest;

	if (!cl)
		return;
	quit(cl->loop, &cl->quit); /* nothing is left, unless the drain has given up */
	pthread_mutex_lock(&cl->client->lock);
	*cl->prev = cl->next;
	if (cl->next)
		cl->next->prev = cl->prev;
	pthread_mutex_unlock(&cl->client->lock);
	close_all(cl);
	if (cl->shares)
		atomic_fetch_sub(&cl->client->sharers, 1);
	client_loop_free(cl);
	t->guest = NULL;
}
