/* SPDX-License-Identifier: MIT */
/*
 * What watchers are sent: server-sent events as text, each built once and shared by all who send it.
 *
 * Three rings keep the newest: one of events (decisions, acts, config), one of ticks for each rate.
 * Ids grow over all of them, and begin at the milliseconds of the server's start, so that an id of
 * an earlier server is never one of this one's future. A watcher is a place in the ids: what it
 * sends next is the first frame from there on, but of ticks only the newest (who is slow skips the
 * rest), unless they are older than its connection and it asked for them. One thread.
 */
#ifndef WEIR_ADMIN_FRAMES_H
#define WEIR_ADMIN_FRAMES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Kept for who comes back: all that a controller decides in minutes, and ticks for a page that
 *  was away for a few seconds. Guesses. At most 2 MB of events, since none is over 8 KiB. */
#define FRAMES_EVENTS    256
#define FRAMES_TICKS     16
#define FRAMES_EVENT_MAX 8192

enum frames_ring { FRAMES_EVENT, FRAMES_TICK_1, FRAMES_TICK_4, FRAMES_RINGS };

struct frame {
	unsigned refs;
	uint64_t id; /* 0: none of a ring */
	size_t n;
	char text[];
};

struct frames {
	uint64_t newest;    /* id of the newest frame, of whatever ring */
	uint64_t forgotten; /* id of the newest event that was let go */
	struct {
		unsigned n; /* ever added; the last ones are kept */
		struct frame *slot[FRAMES_EVENTS];
	} ring[FRAMES_RINGS];
};

/** `start_ms`: Unix time of the server's start. */
void frames_init(struct frames *frames, uint64_t start_ms);

void frames_fini(struct frames *frames);

/** A frame of `n` bytes, held once by the caller; NULL without memory. */
struct frame *frame_new(const char *text, size_t n);

/** Hold it once more; let go. The last one who lets go frees it. */
struct frame *frame_ref(struct frame *frame);
void frame_unref(struct frame *frame);

/** Add an event called `event` with `data`, which is used up (NULL: no memory was left for it).
 *  false: it could not be made, or is no tick and too long. */
bool frames_add(struct frames *frames, enum frames_ring ring, const char *event, json_t *data);

/** The same for JSON that is text on one line, n bytes. */
bool frames_add_text(
    struct frames *frames, enum frames_ring ring, const char *event, const char *json, size_t n);

/**
 * The frame that a watcher sends next: the first with an id of at least `from`, of events and of
 * `ticks` (FRAMES_EVENT: of no ticks). Of ticks above `old` only the newest counts. NULL: it has
 * them all. The rings hold it: take a reference before anything is added.
 */
struct frame *frames_next(
    const struct frames *frames, enum frames_ring ticks, uint64_t from, uint64_t old);

#endif
