/* SPDX-License-Identifier: MIT */
/*
 * Live events: the streaming connections (GET /events), at most LIVE_WATCHERS_MAX, and the events
 * they receive. docs/api.md describes the events.
 *
 *   peers.c --live_wants, live_refuses, live_add--> WATCHING --gone, slow, junk--> closed
 *
 * A connection arrives with its request checked by head.c; from then on its socket is watched by a
 * separate epoll set, in the admin thread. Nothing here blocks: a frame is sent as far as the
 * socket accepts it, and the rest when the socket has space again. Meanwhile newer ticks replace
 * older ones (sse_ring.h). The connection of a watcher that does not accept a frame within
 * LIVE_PATIENCE_S, or closes its side, is closed.
 *
 * `now_ns` is CLOCK_MONOTONIC. All functions are called by the admin thread. The hooks (live_act,
 * live_config, live_decision) accept NULL for `live` and cost almost nothing while there are no
 * watchers.
 */
#ifndef WEIR_ADMIN_LIVE_H
#define WEIR_ADMIN_LIVE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sse_ring.h"
#include "admin/request/head.h"
#include "live_ask.h"

/** Maximum number of watchers; they also use at most a quarter of the process's descriptors.
 *  Further watchers are answered with 503. */
#define LIVE_WATCHERS_MAX 600

/** Time in which a watcher must accept one frame, in seconds. 20 s is a guess; a page in a sleeping
 *  tab reconnects automatically. */
#define LIVE_PATIENCE_S 20

/** Heartbeat interval while there are no events, in seconds; it must be below the idle timeouts of
 *  middleboxes. */
#define LIVE_BEAT_S 15

struct live;
struct auth;
struct auth_pass;

/** Create a struct live; `start_ms` is the Unix time of the server's start. Returns 0, or
 * WEIR_ENOMEM or WEIR_ESYS. */
int live_open(int64_t start_ms, struct live **live);

/** Close all connections and free `live`. NULL is allowed. */
void live_close(struct live *live);

/** Return whether the connection must be refused; `problem` then contains the reason. `pass` is
 *  described at live_add. One token or user can have at most half of the slots, and all viewers
 *  together three quarters, so that a slot is always left for an operator. */
bool live_refuses(const struct live *live, const char *p, size_t n, const struct auth_pass *pass,
    struct head_problem *problem);

/** Set the issuer of the watchers' passes; `auth` must outlive `live`. The connection of a watcher
 *  whose pass becomes invalid is closed. */
void live_guard(struct live *live, struct auth *auth);

/** Take over `fd`, from which the request p[0..n) has been read, and send the response head and
 *  `hello`. `pass` is copied; it is NULL if there is no struct auth. The descriptor is closed on
 *  failure. */
void live_add(struct live *live, int fd, const char *p, size_t n, const struct auth_pass *pass,
    int64_t now_ns);

/** Return the descriptor that is readable when live_run has something to do. */
int live_fd(const struct live *live);

/** Send new frames as far as the sockets accept them, and close connections whose client has
 *  disconnected. Call it in each iteration of the loop, after everything that may have called a
 *  hook. */
void live_run(struct live *live, int64_t now_ns);

/** Close the connections of watchers that are too slow or whose pass is no longer valid, and send
 *  heartbeats on idle ones. Call it once a second. */
void live_second(struct live *live, int64_t now_ns);

/** Report a failed reload; `failed` has the data described in docs/api.md and is consumed. NULL for
 *  `live` is allowed. */
void live_reload(struct live *live, json_t *failed);

/** Return the number of all watchers, and of those that requested ticks `hz` times a second. */
int live_watchers(const struct live *live);
int live_watchers_at(const struct live *live, int hz);

/** Set what `hello` reports about the graph: its name (copied) and its start time (CLOCK_MONOTONIC,
 *  0 if it has not started). */
void live_about(struct live *live, const char *name, int64_t started_ns);

/** Send a tick, n bytes of JSON on one line, to all watchers of rate `hz` (1 or 4). If `tick` is
 *  NULL, because it could not be allocated, nothing is sent. */
void live_tick(struct live *live, int hz, const char *tick, size_t n);

/** Send a decision, an element of /api/v1/decisions; consumed. */
void live_decision(struct live *live, json_t *decision);

/** Send a change by an operator: {"at", "actor", "what", "target", "from", "to", "id"};
 *  consumed. */
void live_act(struct live *live, json_t *act);

/** Send an alert that was raised or cleared, an element of /api/v1/alerts; consumed. */
void live_alert(struct live *live, json_t *alert);

/** Report that the graph was replaced; `graph` is the number of the new one, `at` a Unix time. */
void live_config(struct live *live, double at, int64_t graph);

#endif
