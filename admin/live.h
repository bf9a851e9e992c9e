/* SPDX-License-Identifier: MIT */
/*
 * Live events: the connections that stay (GET /events), at most LIVE_WATCHERS_MAX, and what they are
 * sent. docs/api.md describes the events.
 *
 *   peers.c --live_wants, live_refuses, live_add--> WATCHING --gone, slow, junk--> closed
 *
 * A connection comes with its request checked by head.c; from then on its socket is watched by an
 * epoll set of its own, in the admin thread. Nothing here waits: a frame goes out as far as the
 * socket takes it, the rest when there is room; meanwhile newer ticks replace older ones (frames.h).
 * Who does not take a frame within LIVE_PATIENCE_S is closed, who closes his side is gone.
 *
 * `now_ns` is CLOCK_MONOTONIC. All calls from the admin thread; the hooks (live_act, live_config,
 * live_decision) allow NULL for `live`, and cost nothing to speak of when nobody watches.
 */
#ifndef WEIR_ADMIN_LIVE_H
#define WEIR_ADMIN_LIVE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frames.h"
#include "head.h"
#include "live_ask.h"

/** More find no room and are answered 503. A quarter of the process's descriptors at most. */
#define LIVE_WATCHERS_MAX 600

/** For taking one frame, seconds. A guess: a page in a tab that sleeps comes back by itself. */
#define LIVE_PATIENCE_S 20

/** Between signs of life when there is nothing to tell, seconds: below what middle boxes cut. */
#define LIVE_BEAT_S 15

struct live;
struct gate;
struct gate_pass;

/** `start_ms` is the Unix time of the server's start. 0, or WEIR_ENOMEM, WEIR_ESYS. */
int live_open(int64_t start_ms, struct live **live);

/** Close all connections and free. NULL is allowed. */
void live_close(struct live *live);

/** Must it be refused? Then `problem` says why. `pass` as for live_add. One token or user has half of the places at most,
 *  viewers three quarters together, so that an operator can always look. */
bool live_refuses(const struct live *live, const char *p, size_t n, const struct gate_pass *pass,
    struct head_problem *problem);

/** Passes of watchers are from `gate`, which must outlive it: who may no longer ask is told no more. */
void live_guard(struct live *live, struct gate *gate);

/** Take over `fd`, whose request p[0..n) has been read off it, and send the head and `hello`. `pass`
 *  is copied; NULL: without a gate. The descriptor is closed when this fails. */
void live_add(struct live *live, int fd, const char *p, size_t n, const struct gate_pass *pass,
    int64_t now_ns);

/** Readable when live_run has something to do. */
int live_fd(const struct live *live);

/** Send what is new as far as sockets take it, and see who has gone. Call it in each turn of the
 *  loop, after whatever may have called a hook. */
void live_run(struct live *live, int64_t now_ns);

/** Once a second: close who is too slow or may no longer ask, and give a sign of life where it was silent. */
void live_second(struct live *live, int64_t now_ns);

/** A reload failed; what docs/api.md shows of it. NULL for `live` is allowed. */
void live_reload(struct live *live, json_t *failed);

/** Who watches: all, and those that want ticks `hz` times a second. */
int live_watchers(const struct live *live);
int live_watchers_at(const struct live *live, int hz);

/** What `hello` says of the graph: its name (copied) and since when it runs (CLOCK_MONOTONIC, 0: not
 *  yet). */
void live_about(struct live *live, const char *name, int64_t started_ns);

/** Send a tick, n bytes of JSON on one line (NULL: no memory was left for it), to all who want `hz` (1 or 4) of
 *  them. */
void live_tick(struct live *live, int hz, const char *tick, size_t n);

/** An element of /api/v1/decisions, as it was taken; used up. */
void live_decision(struct live *live, json_t *decision);

/** An operator's act: {"at", "actor", "what", "target", "from", "to", "id"}; used up. */
void live_act(struct live *live, json_t *act);

/** An alert that was raised or cleared, an element of /api/v1/alerts; used up. */
void live_alert(struct live *live, json_t *alert);

/** The graph was replaced by number `graph`; `at` is Unix time. */
void live_config(struct live *live, double at, int64_t graph);

#endif
