/* SPDX-License-Identifier: MIT */
/* Implements the rings of frames; see sse_ring.h. Ids increase within a ring, so a search from the
 * oldest frame finds the first one with at least a given id. */
#include "sse_ring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/log.h>

#include "admin/request/reply.h"

static const unsigned kept[SSE_RING_RINGS] = {[SSE_RING_EVENT] = SSE_RING_EVENTS,
    [SSE_RING_TICK_1] = SSE_RING_TICKS,
    [SSE_RING_TICK_4] = SSE_RING_TICKS};

void sse_ring_init(struct sse_ring *f, uint64_t start_ms)
{
	*f = (struct sse_ring){.newest = start_ms};
}

void sse_ring_fini(struct sse_ring *f)
{
	for (int r = 0; r < SSE_RING_RINGS; r++)
		for (unsigned i = 0; i < kept[r]; i++) {
			frame_unref(f->ring[r].slot[i]);
			f->ring[r].slot[i] = NULL;
		}
}

/* ---- one frame ---- */

static struct frame *frame_empty(size_t n)
{
	struct frame *frame = malloc(sizeof(*frame) + n + 1);

	if (frame)
		*frame = (struct frame){.refs = 1, .n = n};
	return frame;
}

struct frame *frame_new(const char *text, size_t n)
{
	struct frame *frame = frame_empty(n);

	if (frame)
		memcpy(frame->text, text, n);
	return frame;
}

struct frame *frame_ref(struct frame *frame)
{
	frame->refs++;
	return frame;
}

void frame_unref(struct frame *frame)
{
	if (frame && --frame->refs == 0)
		free(frame);
}

static struct frame *frame_of(uint64_t id, const char *event, const char *json, size_t n_json)
{
	char head[96];
	int n = snprintf(
	    head, sizeof(head), "id: %llu\nevent: %.32s\ndata: ", (unsigned long long)id, event);
	struct frame *frame = n > 0 ? frame_empty((size_t)n + n_json + 2) : NULL;

	if (!frame)
		return NULL;
	memcpy(frame->text, head, (size_t)n);
	memcpy(frame->text + n, json, n_json);
	memcpy(frame->text + (size_t)n + n_json, "\n\n", 3);
	frame->id = id;
	return frame;
}

/* ---- the rings ---- */

static void put(struct sse_ring *f, enum sse_ring_ring r, struct frame *frame)
{
	struct frame **slot = &f->ring[r].slot[f->ring[r].n++ % kept[r]];

	if (*slot && r == SSE_RING_EVENT)
		f->forgotten = (*slot)->id;
	frame_unref(*slot);
	*slot = frame;
	f->newest = frame->id;
}

bool sse_ring_add_text(
    struct sse_ring *f, enum sse_ring_ring r, const char *event, const char *json, size_t n)
{
	struct frame *frame = json ? frame_of(f->newest + 1, event, json, n) : NULL;

	if (frame && r == SSE_RING_EVENT && frame->n > SSE_RING_EVENT_MAX) {
		weir_log(WEIR_LOG_WARN, "admin: an event '%s' of %zu bytes is too long to send",
		    event, frame->n);
		frame_unref(frame);
		frame = NULL;
	}
	if (frame)
		put(f, r, frame);
	return frame;
}

bool sse_ring_add(struct sse_ring *f, enum sse_ring_ring r, const char *event, json_t *data)
{
	/* jansson escapes newlines in strings, so the data is one line. */
	char *json = data ? json_dumps(data, JSON_COMPACT | ADMIN_JSON_REALS) : NULL;
	bool added = sse_ring_add_text(f, r, event, json, json ? strlen(json) : 0);

	json_decref(data);
	free(json);
	return added;
}

static struct frame *newest_of(const struct sse_ring *f, enum sse_ring_ring r)
{
	unsigned n = f->ring[r].n;

	return n ? f->ring[r].slot[(n - 1) % kept[r]] : NULL;
}

/* Return the first frame with an id of at least `from`. */
static struct frame *first_of(const struct sse_ring *f, enum sse_ring_ring r, uint64_t from)
{
	unsigned n = f->ring[r].n, have = n < kept[r] ? n : kept[r];

	for (unsigned i = n - have; i != n; i++) {
		struct frame *frame = f->ring[r].slot[i % kept[r]];
		if (frame->id >= from)
			return frame;
	}
	return NULL;
}

static struct frame *next_tick(
    const struct sse_ring *f, enum sse_ring_ring r, uint64_t from, uint64_t old)
{
	struct frame *newest = newest_of(f, r);

	if (!newest || newest->id < from)
		return NULL;
	struct frame *first = from <= old ? first_of(f, r, from) : newest;
	return first->id <= old ? first : newest;
}

struct frame *sse_ring_next(
    const struct sse_ring *f, enum sse_ring_ring ticks, uint64_t from, uint64_t old)
{
	struct frame *newest = newest_of(f, SSE_RING_EVENT);
	/* Most watchers have received all events already, so the ring is seldom searched. */
	struct frame *event =
	    newest && newest->id >= from ? first_of(f, SSE_RING_EVENT, from) : NULL;
	struct frame *tick = ticks == SSE_RING_EVENT ? NULL : next_tick(f, ticks, from, old);

	if (!event || !tick)
		return event ? event : tick;
	return event->id < tick->id ? event : tick;
}
