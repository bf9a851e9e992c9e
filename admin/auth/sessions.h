/* SPDX-License-Identifier: MIT */
/*
 * Browser sessions. After a login with a token, the browser receives a cookie with a random id and
 * uses it in place of the token, since the EventSource of the dashboard cannot send a token.
 *
 * Only digests of ids are stored. A session ends SESSION_IDLE_NS after its last use,
 * SESSION_LIFE_NS after its start, on logout, or when its token is no longer valid. Each token has
 * SESSIONS_PER_TOKEN slots, so that one token cannot evict another's sessions. If all of them are
 * in use, a new session replaces the least recently used one of the same token. Used by one thread;
 * the caller passes the time.
 */
#ifndef WEIR_ADMIN_SESSIONS_H
#define WEIR_ADMIN_SESSIONS_H

#include "secret.h"

/** Maximum lifetime of a session, and maximum time without use. Both are guesses: 12 h covers a
 *  working day, and 1 h a lunch break. */
#define SESSION_LIFE_NS (12 * 3600 * 1000000000LL)
#define SESSION_IDLE_NS (3600 * 1000000000LL)

/** Number of browsers that can use one token at the same time. 16 is a guess. */
#define SESSIONS_PER_TOKEN 16

/** Length of an id, which is 256 random bits in hexadecimal. */
#define SESSION_ID_LETTERS 64

struct session {
	uint64_t serial; /* 0 if the slot is free */
	struct secret_digest id;
	int64_t begun_ns, used_ns;
};

struct sessions {
	int n;           /* number of slots: tokens times SESSIONS_PER_TOKEN */
	uint64_t serial; /* of the newest session */
	struct session *slot;
};

/** Initialize for `tokens` tokens, which may be 0. Returns 0 or WEIR_ENOMEM. */
int sessions_init(struct sessions *s, int tokens);
void sessions_fini(struct sessions *s);

/** Start a session for token number `token`. Writes its id as text to `id` and returns its serial,
 *  or 0 if no random numbers are available. */
uint64_t sessions_begin(
    struct sessions *s, int token, char id[SESSION_ID_LETTERS + 1], int64_t now_ns);

/** Find the session with this id. Returns the number of its token and sets *serial, or returns -1
 *  if there is no such session. Counts as a use. All slots are compared, so the time does not
 *  depend on which one matches. */
int sessions_find(struct sessions *s, struct weir_slice id, uint64_t *serial, int64_t now_ns);

/** Return whether the session still exists; counts as a use. */
bool sessions_use(struct sessions *s, uint64_t serial, int64_t now_ns);

/** Return the time at which the session ends even if it is in use, or 0 if it does not exist. */
int64_t sessions_ends_ns(const struct sessions *s, uint64_t serial);

void sessions_end(struct sessions *s, uint64_t serial);

/** End all sessions of a token. */
void sessions_end_all(struct sessions *s, int token);

#endif
