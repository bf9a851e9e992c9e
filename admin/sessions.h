/* SPDX-License-Identifier: MIT */
/*
 * Sessions of browsers: who has shown a token gets a cookie with a random id instead, since the
 * page's EventSource can not send a token.
 *
 * Only digests of ids are kept. A session ends SESSION_IDLE_NS after its last use, SESSION_LIFE_NS
 * after its begin, when it is ended, or when its token is no longer good. Each token has
 * SESSIONS_PER_TOKEN places, so that nobody can push out another's sessions: one more takes the
 * place of the token's own that was unused longest. One thread; the time is the caller's.
 */
#ifndef WEIR_ADMIN_SESSIONS_H
#define WEIR_ADMIN_SESSIONS_H

#include "secret.h"

/** Guesses: a working day, and a lunch. */
#define SESSION_LIFE_NS (12 * 3600 * 1000000000LL)
#define SESSION_IDLE_NS (3600 * 1000000000LL)

/** Browsers that one token is used by at once. A guess. */
#define SESSIONS_PER_TOKEN 16

/** Letters of an id: 256 random bits in hexadecimal. */
#define SESSION_ID_LETTERS 64

struct session {
	uint64_t serial; /* 0: free */
	struct secret_digest id;
	int64_t begun_ns, used_ns;
};

struct sessions {
	int n;           /* places: tokens times SESSIONS_PER_TOKEN */
	uint64_t serial; /* of the newest */
	struct session *place;
};

/** For `tokens` tokens, 0 included. 0 or WEIR_ENOMEM. */
int sessions_init(struct sessions *s, int tokens);
void sessions_fini(struct sessions *s);

/** Begin one for token number `token`: its id as text in `id`, its serial as the result; 0: no random
 *  numbers. */
uint64_t sessions_begin(
    struct sessions *s, int token, char id[SESSION_ID_LETTERS + 1], int64_t now_ns);

/** The number of the token whose session has this id, and its serial; it counts as used. -1: there is
 *  none. All places are looked at, whichever it is. */
int sessions_find(struct sessions *s, struct weir_slice id, uint64_t *serial, int64_t now_ns);

/** Is it still there? It counts as used. */
bool sessions_use(struct sessions *s, uint64_t serial, int64_t now_ns);

/** When it ends at the latest, whatever is done; 0: there is none. */
int64_t sessions_ends_ns(const struct sessions *s, uint64_t serial);

void sessions_end(struct sessions *s, uint64_t serial);

/** End all of a token. */
void sessions_end_all(struct sessions *s, int token);

#endif
