/* SPDX-License-Identifier: MIT */
/*
 * Live events: the streaming connections (GET /events), at most SSE_WATCHERS_MAX, and the events
 * they receive. docs/api.md describes the events.
 *
 *   connections.c --sse_wants, sse_refuses, sse_add--> WATCHING --gone, slow, junk--> closed
 *
 * head.c has checked the request before a connection arrives here. From then on, a separate epoll
 * set in the admin thread watches its socket. Nothing here blocks: a frame is sent as far as the
 * socket accepts it, and the rest when the socket has space again. Meanwhile newer ticks replace
 * older ones (sse_ring.h). A connection is closed if the watcher closes its side or does not accept
 * a frame within SSE_PATIENCE_S.
 *
 * `now_ns` is CLOCK_MONOTONIC. All functions are called by the admin thread. The hooks (sse_act,
 * sse_alert, sse_config, sse_decision, sse_reload) accept NULL for `sse` and cost almost nothing
 * while there are no watchers.
 */
#ifndef WEIR_ADMIN_LIVE_H
#define WEIR_ADMIN_LIVE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sse_ring.h"
#include "admin/request/head.h"
#include "sse_request.h"

/** Maximum number of watchers. The number is also limited to a quarter of the process's
 *  descriptors. Further watchers are answered with 503. */
#define SSE_WATCHERS_MAX 600

/** Time in which a watcher must accept one frame, in seconds. 20 s is a guess. A page in a sleeping
 *  tab may take longer; it is disconnected and later reconnects by itself. */
#define SSE_PATIENCE_S 20

/** Heartbeat interval while there are no events, in seconds; it must be below the idle timeouts of
 *  middleboxes. */
#define SSE_BEAT_S 15

struct sse;
struct auth;
struct auth_pass;

/** Create a struct sse; `start_ms` is the Unix time of the server's start. Returns 0, or
 * WEIR_ENOMEM or WEIR_ESYS. */
int sse_open(int64_t start_ms, struct sse **sse);

/** Close all connections and free `sse`. NULL is allowed. */
void sse_close(struct sse *sse);

/** Return whether the connection must be refused; `problem` then contains the reason. `pass` is
 *  described at sse_add. One token or user can have at most half of the slots, and all viewers
 *  together three quarters, so viewers always leave slots for an operator. */
bool sse_refuses(const struct sse *sse, const char *p, size_t n, const struct auth_pass *pass,
    struct head_problem *problem);

/** Set the issuer of the watchers' passes; `auth` must outlive `sse`. The connection of a watcher
 *  whose pass becomes invalid is closed. */
void sse_guard(struct sse *sse, struct auth *auth);

/** Take over `fd`, from which the request p[0..n) has been read, and send the response head and
 *  `hello`. `pass` is copied; it is NULL if there is no struct auth. The descriptor is closed on
 *  failure. */
void sse_add(
    struct sse *sse, int fd, const char *p, size_t n, const struct auth_pass *pass, int64_t now_ns);

/** Return the descriptor that is readable when sse_run has something to do. */
int sse_fd(const struct sse *sse);

/** Send new frames as far as the sockets accept them, and close connections whose client has
 *  disconnected. Call it in each iteration of the loop, after everything that may have called a
 *  hook. */
void sse_run(struct sse *sse, int64_t now_ns);

/** Close the connections of watchers that are too slow or whose pass is no longer valid, and send
 *  heartbeats on idle ones. Call it once a second. */
void sse_second(struct sse *sse, int64_t now_ns);

/** Report a failed reload. `failed` has the data described in docs/api.md and is consumed. `sse`
 *  may be NULL. */
void sse_reload(struct sse *sse, json_t *failed);

/** Return the number of all watchers, and of those that requested ticks `hz` times a second. */
int sse_watchers(const struct sse *sse);
int sse_watchers_at(const struct sse *sse, int hz);

/** Set what `hello` reports about the graph: its name (copied) and its start time (CLOCK_MONOTONIC,
 *  0 if it has not started). */
void sse_about(struct sse *sse, const char *name, int64_t started_ns);

/** Send a tick, n bytes of JSON on one line, to all watchers of rate `hz` (1 or 4). Nothing is sent
 *  if `tick` is NULL, which means that it could not be allocated. */
void sse_tick(struct sse *sse, int hz, const char *tick, size_t n);

/** Send a decision, an element of /api/v1/decisions; consumed. */
void sse_decision(struct sse *sse, json_t *decision);

/** Send a change by an operator: {"at", "actor", "what", "target", "from", "to", "id"};
 *  consumed. */
void sse_act(struct sse *sse, json_t *act);

/** Send an alert that was raised or cleared, an element of /api/v1/alerts; consumed. */
void sse_alert(struct sse *sse, json_t *alert);

/** Report that the graph was replaced; `graph` is the number of the new one, `at` a Unix time. */
void sse_config(struct sse *sse, double at, int64_t graph);

#endif
