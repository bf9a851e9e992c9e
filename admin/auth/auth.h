/* SPDX-License-Identifier: MIT */
/*
 * Authentication: who a client is and what it may do.
 *
 *   socket file        the kernel reports the client's user: root and the server's own user are
 *                      operators; other users have the role that `users:` assigns, or no access
 *   TCP, no tokens     everybody on this host is an operator (only loopback is allowed then)
 *   TCP with tokens    clients send a bearer token, or the cookie of a session started with one;
 *                      without either, only the files of the dashboard (admin/ui), /healthz and
 *                      /readyz are served
 *
 * A valid token is always accepted, since many clients may share one address (NAT, a proxy). Wrong
 * tokens are answered with 401 up to five times a minute per address (failures.h), and with 429
 * after that. Requests without credentials and expired cookies are not counted. No response is
 * delayed, so the admin thread never waits for a client.
 *
 * The limit keeps the log short and makes clients with an old token wait. It is not needed against
 * guessing: secret.h refuses tokens of less than 128 random bits. A million attempts a second for a
 * year would find one of 32 tokens with a probability of 3e-24.
 *
 * A struct auth copies what it needs from the spec. All functions are called by the admin thread,
 * except that any thread may call auth_new, and may call auth_free for an object that is not in
 * use.
 */
#ifndef WEIR_ADMIN_AUTH_H
#define WEIR_ADMIN_AUTH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <weir/spec.h>

#include "admin/request/authority.h"
#include "admin/request/head.h"
#include "admin/request/reply.h"
#include "sessions.h"

/** Maximum number of tokens, and of users. 32 is a guess; sites with more can use a proxy. */
#define AUTH_CLIENTS_MAX 32

struct auth;

/** The rights of one request, and the name it is logged under. */
struct auth_pass {
	enum weir_admin_role role;
	char name[WEIR_ADMIN_NAME_MAX + 1];
	bool anyone;      /* no credentials were needed: the path is open to all */
	int token;        /* index of the token when the pass was issued, -1 if none was used */
	uint64_t edition; /* edition of the token or user at that time, 0 if there was neither */
	uint64_t session; /* serial of the session, 0 if there is none */
};

/** The origin of a connection. */
struct auth_from {
	struct sockaddr_storage address; /* of the peer, for TCP */
	bool by_file;                    /* the peer uses a socket file and runs as `uid` */
	uid_t uid;
};

/** Add an error to `errs` for each setting in `spec` that is not allowed for an endpoint at
 *  `address`. Reads no files. */
void auth_rules(
    const struct weir_admin_spec *spec, const struct authority *address, struct weir_errs *errs);

/** Read the token files of `spec` (NULL: no tokens and no users) and look up its users. Returns 0,
 *  or an error code with `errs` filled. */
int auth_new(const struct weir_admin_spec *spec, const struct authority *address,
    struct auth **auth, struct weir_errs *errs);
void auth_free(struct auth *auth);

/**
 * Authenticate the request p[n], which head_check found complete. Returns true and sets *pass, or
 * returns false and sets *problem; its message is valid until the next call. The routes check which
 * requests are reserved for operators.
 */
bool auth_judge(struct auth *auth, const struct auth_from *from, const char *p, size_t n,
    int64_t now_ns, struct auth_pass *pass, struct head_problem *problem);

/** Return whether an earlier pass is still valid: its token or user still exists, and its session
 *  has not ended. Counts as a use of the session. */
bool auth_still(struct auth *auth, const struct auth_pass *pass, int64_t now_ns);

/**
 * Replace the contents with those of `next`, which auth_new created for the same address, and free
 * `next`. Tokens and users that appear in both with the same name, role and token keep their
 * sessions and passes; all others become invalid. Failure counts are retained.
 */
void auth_become(struct auth *auth, struct auth *next);

/** Read the token files again. If a token has changed, its sessions end. If a file cannot be read,
 *  the old token stays valid and an error is logged. */
void auth_reload(struct auth *auth);

/** Return "operator" or "viewer". NULL stands for a request that needed no pass: "operator".
 *  Static. */
const char *auth_role_word(const struct auth_pass *pass);

/** Return the copy of `hosts:` from the spec. */
const struct weir_strings *auth_hosts(const struct auth *auth);

/** Return whether tokens are required. */
bool auth_asks(const struct auth *auth);

/**
 * Begin a session for the owner of `pass`, who has sent a token. Writes the value for Set-Cookie to
 * `cookie[size]` (160 bytes are enough); it contains the session id, so wipe it once it has been
 * sent. Returns 0 or WEIR_ESYS.
 */
int auth_begin(
    struct auth *auth, struct auth_pass *pass, char *cookie, size_t size, int64_t now_ns);

/** End the session of `pass`, if it has one. Writes the value for Set-Cookie that deletes the
 *  cookie to `cookie`. */
void auth_end(struct auth *auth, const struct auth_pass *pass, char *cookie, size_t size);

/** Return the time in ns after which the session of `pass` ends even if it is in use; 0 if `pass`
 *  has no session. */
int64_t auth_left_ns(const struct auth *auth, const struct auth_pass *pass, int64_t now_ns);

#endif
