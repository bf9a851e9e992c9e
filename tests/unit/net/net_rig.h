/* SPDX-License-Identifier: MIT */
/*
 * A server of connections without threads, for tests of stages/net: a test calls what its I/O
 * threads would call, and sets their clock. The protocol does nothing but keep a record.
 */
#ifndef WEIR_TESTS_NET_RIG_H
#define WEIR_TESTS_NET_RIG_H

#include "cunit_main.h"

#include "io/loop.h"
#include "net/clients.h"
#include "net/handover.h"
#include "net/net_conn.h"

/** Maximum number of I/O threads. */
#define RIG_IO 3
/** Keys in the client table of connections that a test makes. */
#define RIG_KEY 7

struct rig_conn {
	struct net_conn net; /* first member */
	struct net_io *io;
	char name;
	bool slow;
};

struct rig_handed {
	struct net_handed net; /* first member */
	char name;
	bool idle;
};

struct rig {
	struct net_server srv;
	struct net_conf conf;
	struct weir_stage stage;
	struct net_io io[RIG_IO];
	int64_t count[RIG_IO][NET_METRICS];
	int64_t now_ns;
	bool adopts; /* false: there is no memory to take a connection over */
	int waits;   /* handed connections that are counted as waiting */
	int said;    /* bytes of `record` */
	char record[4096];
};

extern struct rig rig;

/** Start with `n` I/O threads without connections, at a time of an hour. */
void rig_begin(int n);
/** Close everything; the client table must be empty. */
void rig_finish(void);

/** Let `ns` pass for all threads. Timers do not fire. */
void rig_wait(int64_t ns);
/** Fire the timers of thread `i` that are due. */
void rig_fire(int i);

/** Open a connection in thread `i`, which has been waiting in the list `id` for `waited_ns`. Its
 * address has the key RIG_KEY. */
struct rig_conn *rig_conn(int i, char name, enum net_list_id id, int64_t waited_ns);
/** Make the address of `c` another one. */
void rig_move(struct rig_conn *c, uint64_t key);
void rig_close(struct rig_conn *c);

/** A connection of another server, to be handed over. */
struct net_handed *rig_handed(char name, bool idle);

/** Make thread `i` listen on a free port of 127.0.0.1. */
void rig_listen(int i);
/** Connect a client to thread `i`. Returns once the connection is in the backlog. */
int rig_dial(int i);
/** The same, for a client that has closed its connection again. */
void rig_dial_and_leave(int i);
/** Number of connections of 127.0.0.1 in the client table. */
int64_t rig_clients(void);

/**
 * Whether the calls to the protocol since the last check are exactly `expected`, one word each:
 *   open, open!1        a new connection, or one to be refused for enum net_limit 1
 *   away!0, away!0+     a client without a connection is refused; + if it is told
 *   evict:a             connection `a` is evicted
 *   resume:a settle:a idle:a late:a leave:a
 *   adopt:a drop:a drop:a+     + if late
 */
bool rig_did(const char *expected);

/** How often thread `i` has been woken since the last call. */
int rig_wakes(int i);

#endif
