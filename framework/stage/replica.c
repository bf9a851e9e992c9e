/* SPDX-License-Identifier: MIT */
/* Keeps one state per core for stages with `mode: replicated`; see replica.h. */
#include "stage/replica.h"

#include <stdlib.h>
#include <string.h>

struct replicas {
	int n;
	size_t bytes; /* of a state, a multiple of the cache line */
	unsigned char *state;
};

static _Thread_local int entered = NO_REPLICA;

int replicas_new(struct weir_stage *st, int n)
{
	size_t line = WEIR_CACHE_LINE;
	struct replicas *r = calloc(1, sizeof(*r));

	if (!r)
		return WEIR_ENOMEM;
	st->replicas = r;
	r->n = n;
	r->bytes = (st->ops->state_size + line - 1) & -line;
	if (r->bytes == 0)
		return 0;
	r->state = aligned_alloc(line, (size_t)n * r->bytes);
	if (!r->state)
		return WEIR_ENOMEM;
	memset(r->state, 0, (size_t)n * r->bytes);
	return 0;
}

void replicas_free(struct weir_stage *st)
{
	if (!st->replicas)
		return;
	free(st->replicas->state);
	free(st->replicas);
	st->replicas = NULL;
}

int replicas_of(const struct weir_stage *st)
{
	return st->replicas ? st->replicas->n : 0;
}

int replica_enter(int k)
{
	int before = entered;

	entered = k;
	return before;
}

int replica_entered(void)
{
	return entered;
}

static void *own_state(const struct weir_stage *st)
{
	const struct replicas *r = st->replicas;

	if (!r || !r->state || entered < 0 || entered >= r->n)
		return NULL;
	return r->state + (size_t)entered * r->bytes;
}

void *weir_state(const struct weir_stage *st)
{
	return WEIR_LIKELY(st->state != NULL) ? st->state : own_state(st);
}

/* Call ops->fini for the replicas k-1 .. 0. */
static void fini_replicas(struct weir_stage *st, int k)
{
	while (st->ops->fini && k-- > 0) {
		int before = replica_enter(k);
		st->ops->fini(st);
		replica_enter(before);
	}
}

static int init_replicas(struct weir_stage *st, struct weir_err *err)
{
	for (int k = 0; st->ops->init && k < st->replicas->n; k++) {
		int before = replica_enter(k);
		int rc = st->ops->init(st, err);
		replica_enter(before);
		if (rc == 0)
			continue;
		fini_replicas(st, k);
		return rc;
	}
	return 0;
}

int stage_init(struct weir_stage *st, struct weir_err *err)
{
	int rc = st->replicas ? init_replicas(st, err) : st->ops->init ? st->ops->init(st, err) : 0;

	st->inited = rc == 0;
	return rc;
}

void stage_fini(struct weir_stage *st)
{
	if (!st->inited)
		return;
	if (st->replicas)
		fini_replicas(st, st->replicas->n);
	else if (st->ops->fini)
		st->ops->fini(st);
}

void stage_refresh(struct weir_stage *st, struct weir_stage *wanted)
{
	if (!st->ops->refresh)
		return;
	if (!st->replicas)
		st->ops->refresh(st, wanted);
	for (int k = 0; k < replicas_of(st) && k < replicas_of(wanted); k++) {
		int before = replica_enter(k);
		st->ops->refresh(st, wanted);
		replica_enter(before);
	}
}

bool stage_renewed(struct weir_stage *st, struct weir_stage *wanted, char *text, size_t size)
{
	bool renewed = false;

	if (!st->ops->renewed)
		return false;
	/* the other graph may run the stage in another mode */
	if (!st->replicas != !wanted->replicas)
		return false;
	if (!st->replicas)
		return st->ops->renewed(st, wanted, text, size);
	for (int k = 0; !renewed && k < replicas_of(st) && k < replicas_of(wanted); k++) {
		int before = replica_enter(k);
		renewed = st->ops->renewed(st, wanted, text, size);
		replica_enter(before);
	}
	return renewed;
}
