/* SPDX-License-Identifier: MIT */
/*
 * Answers in parts: their bytes are collected while they pass on to the client. An answer is stored only if it has
 * come to its end, with the length that its head has announced.
 */
#include <stdlib.h>
#include <string.h>

#include "http/cache/http_cache.h"

/* Answers that are being collected may hold this share of `memory`, besides it. A choice. */
#define CAPTURE_SHARE 4

/* The first allocation for an answer of unknown length. */
#define CAPTURE_FIRST 16384

struct hcache_capture {
	struct hcache_state *state;
	struct hcache_answer a; /* its fields are in `fields` */
	int64_t length;         /* of the body; -1 if unknown */
	char *fields, *body;
	size_t n, room;
};

/* Copy the fields of the answer, since the request's are gone when it has been sent. */
static bool copy_fields(struct hcache_capture *c)
{
	const struct weir_slice *part = c->a.fields.part;
	size_t n = part[0].n + part[1].n;

	c->fields = malloc(n + 1);
	if (!c->fields)
		return false;
	if (part[0].n > 0)
		memcpy(c->fields, part[0].p, part[0].n);
	if (part[1].n > 0)
		memcpy(c->fields + part[0].n, part[1].p, part[1].n);
	c->a.fields = (struct cache_fields){{{c->fields, n}, {NULL, 0}}};
	return true;
}

struct hcache_capture *hcache_capture_new(
    struct hcache_state *state, const struct hcache_answer *a, int64_t length)
{
	struct hcache_capture *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->state = state;
	c->a = *a;
	c->length = length;
	if (!copy_fields(c)) {
		free(c);
		return NULL;
	}
	hcache_answer_relist(&c->a);
	return c;
}

void hcache_capture_free(struct hcache_capture *c)
{
	if (!c)
		return;
	atomic_fetch_sub_explicit(
	    &c->state->capturing_bytes, (int64_t)c->room, memory_order_relaxed);
	free(c->fields);
	free(c->body);
	free(c);
}

static size_t next_room(const struct hcache_capture *c, size_t need, size_t most)
{
	size_t room = 2 * c->room;

	if (room == 0)
		room = c->length > 0 ? (size_t)c->length : CAPTURE_FIRST;
	room = room < most ? room : most;
	return room > need ? room : need;
}

static bool grow(struct hcache_capture *c, const struct hcache_conf *conf, size_t need)
{
	size_t room = next_room(c, need, (size_t)conf->max_object_bytes);
	int64_t more = (int64_t)(room - c->room);
	int64_t before =
	    atomic_fetch_add_explicit(&c->state->capturing_bytes, more, memory_order_relaxed);
	char *bigger = NULL;

	if (before + more <= conf->memory_bytes / CAPTURE_SHARE)
		bigger = realloc(c->body, room);
	if (!bigger) {
		atomic_fetch_sub_explicit(&c->state->capturing_bytes, more, memory_order_relaxed);
		return false;
	}
	c->body = bigger;
	c->room = room;
	return true;
}

bool hcache_capture_add(
    struct hcache_capture *c, const struct hcache_conf *conf, struct weir_slice data)
{
	if ((int64_t)(c->n + data.n) > conf->max_object_bytes)
		return false;
	if (c->n + data.n > c->room && !grow(c, conf, c->n + data.n))
		return false;
	if (data.n > 0)
		memcpy(c->body + c->n, data.p, data.n);
	c->n += data.n;
	return true;
}

enum hcache_brought hcache_capture_store(struct hcache_landing *l, struct hcache_capture *c)
{
	if (c->length >= 0 && (int64_t)c->n != c->length)
		return HCACHE_ERROR;
	return hcache_store_answer(l, &c->a, (struct weir_slice){c->body, c->n});
}
