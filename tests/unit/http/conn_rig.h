/* SPDX-License-Identifier: MIT */
/*
 * An I/O thread of http.server without a thread, and connections that a test puts into the state it
 * needs. The test makes the calls, and sets the clock.
 */
#ifndef WEIR_TESTS_CONN_RIG_H
#define WEIR_TESTS_CONN_RIG_H

#include "cunit_main.h"

#include "http/conn/conn.h"
#include "http/conn/limit.h"
#include "io/loop.h"

struct conn_rig {
	struct http_server srv;
	struct http_io io;
	struct weir_stage stage;
};

extern struct conn_rig conn_rig;

/** Start without connections, at a time of an hour, with long time-outs and no rates. */
void conn_rig_begin(void);
/** Close and free all connections and their requests. */
void conn_rig_end(void);
/** Let `ns` pass. Timers do not fire. */
void conn_rig_wait(int64_t ns);

/** An idle connection, in no list. */
struct conn *conn_rig_conn(void);
/** The client's end of the socket of the newest connection. */
int conn_rig_client(void);
/** Let `c` have received `text`, which is not parsed yet. */
void conn_rig_receive(struct conn *c, const char *text);
/** Let `c` wait for `kind` from now on, without a timer. */
void conn_rig_waits(struct conn *c, enum wait_kind kind);
/** Let `c` have received the head of a request, and part of its body. */
void conn_rig_body(struct conn *c);
/** A request of `c` that is in the graph. */
struct http_req *conn_rig_request(struct conn *c);

#endif
