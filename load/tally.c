/* SPDX-License-Identifier: MIT */
/* Counts the requests of a worker; see tally.h. */
#include "load/tally.h"

#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

static size_t second_bytes(const struct load_plan *plan)
{
	return sizeof(struct tally_second) +
	       (size_t)plan->n_classes * sizeof(struct tally_second_class);
}

int tally_init(struct tally *t, const struct load_plan *plan, struct tally_exchange *exchange)
{
	*t = (struct tally){.plan = plan, .exchange = exchange};
	t->phase = calloc((size_t)plan->n_phases, sizeof(*t->phase));
	t->now = calloc(1, second_bytes(plan));
	return t->phase && t->now ? 0 : WEIR_ENOMEM;
}

static void free_seconds(struct tally_second **list)
{
	while (*list) {
		struct tally_second *s = *list;
		*list = s->next;
		free(s);
	}
}

void tally_fini(struct tally *t)
{
	for (int i = 0; t->phase && i < t->plan->n_phases; i++)
		for (int c = 0; c < t->plan->n_classes; c++)
			load_class_result_fini(&t->phase[i].class[c]);
	free(t->phase);
	free_seconds(&t->now);
	free_seconds(&t->ready);
	free_seconds(&t->spare);
	*t = (struct tally){0};
}

struct load_class_result *tally_of(struct tally *t, const struct ticket *ticket)
{
	if (t->plan->phase[ticket->phase].warmup)
		return &t->warmup;
	return &t->phase[ticket->phase].class[ticket->class_id];
}

/* Return the counters of the ticket's user, or NULL in a warm-up, if users are not counted, or if
 * out of memory. */
static struct load_user *user_of(
    struct tally *t, struct load_class_result *c, const struct ticket *ticket)
{
	int n = t->plan->class[ticket->class_id].users;

	if (n == 0 || c == &t->warmup)
		return NULL;
	if (!c->user)
		c->user = calloc((size_t)n, sizeof(*c->user));
	if (!c->user)
		t->no_memory = true;
	return c->user ? &c->user[ticket->request % (uint32_t)n] : NULL;
}

void tally_offered(struct tally *t, const struct ticket *ticket)
{
	struct load_class_result *c = tally_of(t, ticket);
	struct load_user *user = user_of(t, c, ticket);

	c->offered++;
	if (user)
		user->offered++;
	t->now->class[ticket->class_id].offered++;
	t->offered++;
}

static void add_latency(struct tally *t, struct hdr **h, int64_t latency_ns)
{
	if (!*h)
		*h = calloc(1, sizeof(**h));
	if (!*h)
		t->no_memory = true;
	else
		hdr_add(*h, latency_ns, 1);
}

void tally_ended(
    struct tally *t, const struct ticket *ticket, enum load_outcome outcome, int64_t latency_ns)
{
	struct load_class_result *c = tally_of(t, ticket);
	struct tally_second_class *s = &t->now->class[ticket->class_id];

	bool good = outcome == LOAD_OK || outcome == LOAD_DEGRADED;
	struct load_user *user = good ? user_of(t, c, ticket) : NULL;

	c->outcome[outcome]++;
	if (user)
		user->good++;
	if (c != &t->warmup)
		add_latency(t, &c->latency[outcome], latency_ns);
	s->outcome[outcome]++;
	if (good)
		hdr_add(&s->latency, latency_ns, 1);
	t->finished++;
}

void tally_retried(struct tally *t, const struct ticket *ticket)
{
	tally_of(t, ticket)->retries++;
	t->now->class[ticket->class_id].retries++;
}

void tally_lag(struct tally *t, int phase, int64_t lag_ns)
{
	if (!t->plan->phase[phase].warmup)
		hdr_add(&t->phase[phase].lag, lag_ns, 1);
	if (t->now->lag_max_ns < lag_ns)
		t->now->lag_max_ns = lag_ns;
}

static struct tally_second *clear(const struct tally *t, struct tally_second *s)
{
	if (s)
		memset(s, 0, second_bytes(t->plan));
	return s;
}

/* Hand over the current second and continue with `next`. */
static void publish(struct tally *t, struct tally_second *next)
{
	struct tally_second **at = &t->ready;

	while (*at)
		at = &(*at)->next;
	*at = t->now;
	t->published = t->now->number + 1;
	t->now = next;
	pthread_cond_signal(&t->exchange->news);
}

void tally_advance(struct tally *t, int64_t number, int64_t connections)
{
	while (t->now->number < number) {
		int64_t following = t->now->number + 1;
		t->now->in_flight = (int64_t)(t->offered - t->finished);
		t->now->connections = connections;
		pthread_mutex_lock(&t->exchange->lock);
		struct tally_second *next = t->spare;
		t->spare = next ? next->next : NULL;
		pthread_mutex_unlock(&t->exchange->lock);
		next = next ? clear(t, next) : calloc(1, second_bytes(t->plan));
		if (!next) {
			t->no_memory = true;
			return;
		}
		next->number = following;
		pthread_mutex_lock(&t->exchange->lock);
		publish(t, next);
		pthread_mutex_unlock(&t->exchange->lock);
	}
}

void tally_close(struct tally *t, int64_t connections)
{
	t->now->in_flight = (int64_t)(t->offered - t->finished);
	t->now->connections = connections;
	pthread_mutex_lock(&t->exchange->lock);
	publish(t, NULL);
	t->published = INT64_MAX;
	t->exchange->n_running--;
	pthread_mutex_unlock(&t->exchange->lock);
}

struct tally_second *tally_take(struct tally *t)
{
	struct tally_second *s = t->ready;

	if (s) {
		t->ready = s->next;
		s->next = NULL;
	}
	return s;
}

void tally_give_back(struct tally *t, struct tally_second *s)
{
	s->next = t->spare;
	t->spare = s;
}
