/* SPDX-License-Identifier: MIT */
/*
 * Asks servers for the addresses of names: c-ares in an event loop.
 *
 * All servers share a channel of c-ares, whose sockets and time-outs the loop watches. When resolv.conf
 * changes, questions go to a new channel; the old one is freed once its questions are answered. c-ares
 * compares the id, the question and the source of each answer.
 *
 * Thread: as resolve.h.
 */
#ifndef WEIR_NET_RESOLVE_ASK_H
#define WEIR_NET_RESOLVE_ASK_H

#include "net/resolve.h"

/** An answer of servers, or of /etc/hosts. */
struct ask_result {
	enum resolve_status status; /* RESOLVE_OK, _NONE, _FAILED, _BAD_NAME, _NO_MEMORY */
	int n;
	struct net_address address[RESOLVE_ADDRESSES_MAX];
	int64_t ttl_s; /* the smallest of all records, 0 to INT32_MAX */
	const char *why;
};

struct asker;

/** Create an asker; every ask ends with `found(about, result)`. `conf` has no zero members and must stay.
 * Returns codes as resolver_new does. */
int asker_new(struct weir_loop *loop, const struct resolve_conf *conf,
    void (*found)(void *about, const struct ask_result *result), struct asker **out,
    struct weir_err *err);

/** Free the asker. `found` is not called any more. NULL is allowed. `loop_gone`: as resolver_free. */
void asker_free(struct asker *a, bool loop_gone);

/** Ask for `name`. `found` is called once, perhaps from within this call. */
void ask(struct asker *a, const char *name, void *about);

/** Whether resolv.conf has changed since the last call; if so, it has been reread. It is looked at once a
 * second at most. */
bool asker_look(struct asker *a);

/** Prepare c-ares, once for the process. Any thread. */
void asker_library(void);

#endif
