/* SPDX-License-Identifier: MIT */
/* Stores sessions in one table with SESSIONS_PER_TOKEN consecutive slots for each token. */
#include "sessions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int sessions_init(struct sessions *s, int tokens)
{
	*s = (struct sessions){.n = tokens * SESSIONS_PER_TOKEN};
	s->slot = calloc((size_t)s->n + 1, sizeof(*s->slot));
	return s->slot ? 0 : WEIR_ENOMEM;
}

void sessions_fini(struct sessions *s)
{
	free(s->slot);
	*s = (struct sessions){0};
}

static bool lives(const struct session *p, int64_t now_ns)
{
	return p->serial != 0 && now_ns - p->begun_ns < SESSION_LIFE_NS &&
	       now_ns - p->used_ns < SESSION_IDLE_NS;
}

/* Return a slot of the token: one that is free or expired, or else the least recently used one. */
static struct session *place_for(struct sessions *s, int token, int64_t now_ns)
{
	struct session *first = &s->slot[token * SESSIONS_PER_TOKEN], *best = first;

	for (struct session *p = first; p < first + SESSIONS_PER_TOKEN; p++) {
		if (!lives(p, now_ns))
			return p;
		if (p->used_ns < best->used_ns)
			best = p;
	}
	return best;
}

uint64_t sessions_begin(
    struct sessions *s, int token, char id[SESSION_ID_LETTERS + 1], int64_t now_ns)
{
	uint8_t random[SESSION_ID_LETTERS / 2];
	struct session fresh = {.begun_ns = now_ns, .used_ns = now_ns};

	if (!secret_random(random, sizeof(random)))
		return 0;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(id + 2 * i, 3, "%02x", random[i]);
	explicit_bzero(random, sizeof(random));
	if (!secret_digest(id, SESSION_ID_LETTERS, &fresh.id))
		return 0;
	fresh.serial = ++s->serial;
	*place_for(s, token, now_ns) = fresh;
	return fresh.serial;
}

int sessions_find(struct sessions *s, struct weir_slice id, uint64_t *serial, int64_t now_ns)
{
	struct secret_digest digest;
	int found = -1;

	if (id.n != SESSION_ID_LETTERS || !secret_digest(id.p, id.n, &digest))
		return -1;
	for (int i = 0; i < s->n; i++)
		if (secret_equal(&s->slot[i].id, &digest) & (unsigned)lives(&s->slot[i], now_ns))
			found = i;
	if (found < 0)
		return -1;
	s->slot[found].used_ns = now_ns;
	*serial = s->slot[found].serial;
	return found / SESSIONS_PER_TOKEN;
}

static struct session *by_serial(const struct sessions *s, uint64_t serial)
{
	for (int i = 0; serial != 0 && i < s->n; i++)
		if (s->slot[i].serial == serial)
			return &s->slot[i];
	return NULL;
}

bool sessions_use(struct sessions *s, uint64_t serial, int64_t now_ns)
{
	struct session *p = by_serial(s, serial);

	if (!p || !lives(p, now_ns))
		return false;
	p->used_ns = now_ns;
	return true;
}

int64_t sessions_ends_ns(const struct sessions *s, uint64_t serial)
{
	const struct session *p = by_serial(s, serial);

	return p ? p->begun_ns + SESSION_LIFE_NS : 0;
}

void sessions_end(struct sessions *s, uint64_t serial)
{
	struct session *p = by_serial(s, serial);

	if (p)
		*p = (struct session){0};
}

void sessions_end_all(struct sessions *s, int token)
{
	memset(&s->slot[token * SESSIONS_PER_TOKEN], 0, SESSIONS_PER_TOKEN * sizeof(*s->slot));
}
