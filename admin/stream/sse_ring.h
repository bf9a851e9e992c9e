/* SPDX-License-Identifier: MIT */
/*
 * Server-sent events for watchers. The text of each event is built once and shared by all watchers.
 *
 * Three rings hold the newest frames: one the events (decisions, changes, config), and one each the
 * ticks of 1 Hz and of 4 Hz. Ids increase across all rings. They start at the Unix time of the
 * server's start in milliseconds, so the ids of an earlier server are always smaller.
 *
 * The state of a watcher is the smallest id that has not been sent to it; its next frame is the
 * first one with that id or a later one. Of the ticks that were added after the watcher connected,
 * only the newest matters, so a slow watcher skips the others. Older ticks, which it may have
 * requested with `last`, are not skipped. Used by one thread.
 */
#ifndef WEIR_ADMIN_SSE_RING_H
#define WEIR_ADMIN_SSE_RING_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Number of frames stored for watchers that reconnect. The events cover some minutes, even if a
 *  controller makes a decision each second; the ticks cover a few seconds. Both numbers are
 *  guesses. Each event takes at most 8 KiB, so all take at most 2 MB. */
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
		unsigned n; /* number of frames added so far; `slot` holds the newest ones */
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

/** Add an event called `event`. `data` is consumed; it is NULL if it could not be allocated.
 *  Returns false if the frame could not be built, or if it is too long for an event. */
bool sse_ring_add(
    struct sse_ring *sse_ring, enum sse_ring_ring ring, const char *event, json_t *data);

/** Like sse_ring_add, for JSON text of n bytes on one line. */
bool sse_ring_add_text(struct sse_ring *sse_ring, enum sse_ring_ring ring, const char *event,
    const char *json, size_t n);

/**
 * Return the next frame to send to a watcher: the first one with an id of at least `from`, among
 * the events and the ticks of ring `ticks` (SSE_RING_EVENT selects no ticks). Of the ticks with ids
 * above `old`, only the newest is considered. Returns NULL if there is no such frame. The rings own
 * the frame, so take a reference before adding anything.
 */
struct frame *sse_ring_next(
    const struct sse_ring *sse_ring, enum sse_ring_ring ticks, uint64_t from, uint64_t old);

#endif
