/* SPDX-License-Identifier: MIT */
/*
 * Server-sent events for watchers. The text of each event is built once and shared by all watchers.
 *
 * Three rings hold the newest frames: one for events (decisions, changes, config), and one for the
 * ticks of each rate. Ids increase across all rings. They start at the Unix time of the server's
 * start in milliseconds, so that an id of an earlier server is never a future id of this one. The
 * state of a watcher is the smallest id that has not been sent to it; its next frame is the first
 * with that id or a later one. Only the newest tick matters, so a slow watcher skips older ones,
 * except for ticks from before its connection that it has requested. Used by one thread.
 */
#ifndef WEIR_ADMIN_SSE_RING_H
#define WEIR_ADMIN_SSE_RING_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Frames stored for watchers that reconnect: the events of some minutes, even if all of them are
 *  decisions of a controller, and the ticks of a few seconds. Both numbers are guesses. Events take
 *  at most 2 MB, since each is at most 8 KiB. */
#define SSE_RING_EVENTS    256
#define SSE_RING_TICKS     16
#define SSE_RING_EVENT_MAX 8192

enum sse_ring_ring { SSE_RING_EVENT, SSE_RING_TICK_1, SSE_RING_TICK_4, SSE_RING_RINGS };

struct frame {
	unsigned refs;
	uint64_t id; /* 0 if the frame is in no ring */
	size_t n;
	char text[];
};

struct sse_ring {
	uint64_t newest;    /* id of the newest frame of all rings */
	uint64_t forgotten; /* id of the newest event that was dropped from its ring */
	struct {
		unsigned n; /* frames added so far; `slot` has the last ones */
		struct frame *slot[SSE_RING_EVENTS];
	} ring[SSE_RING_RINGS];
};

/** Initialize. `start_ms` is the Unix time of the server's start. */
void sse_ring_init(struct sse_ring *sse_ring, uint64_t start_ms);

void sse_ring_fini(struct sse_ring *sse_ring);

/** Create a frame of `n` bytes with one reference, owned by the caller. Returns NULL if out of
 * memory. */
struct frame *frame_new(const char *text, size_t n);

/** Take or drop a reference. The last drop frees the frame. */
struct frame *frame_ref(struct frame *frame);
void frame_unref(struct frame *frame);

/** Add an event called `event` with `data`, which is consumed (NULL if it could not be allocated).
 *  Returns false if the frame could not be built, or if it is too long for an event. */
bool sse_ring_add(
    struct sse_ring *sse_ring, enum sse_ring_ring ring, const char *event, json_t *data);

/** Like sse_ring_add, for JSON text of n bytes on one line. */
bool sse_ring_add_text(struct sse_ring *sse_ring, enum sse_ring_ring ring, const char *event,
    const char *json, size_t n);

/**
 * Return the next frame to send to a watcher: the first with an id of at least `from` among the
 * events and the ticks of ring `ticks` (SSE_RING_EVENT selects no ticks). Among ticks with ids
 * above `old`, only the newest is considered. Returns NULL if all of them have been sent to the
 * watcher. The rings own the frame, so take a reference before adding anything.
 */
struct frame *sse_ring_next(
    const struct sse_ring *sse_ring, enum sse_ring_ring ticks, uint64_t from, uint64_t old);

#endif
