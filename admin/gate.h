/* SPDX-License-Identifier: MIT */
/*
 * Who asks, and what he may do.
 *
 *   socket file        the kernel tells the user: root and the server's own are operators, others
 *                      have the role that `users:` gives them, and none without
 *   TCP, no tokens     everybody on this machine is an operator (only loopback is allowed then)
 *   TCP with tokens    a bearer token, or the cookie of a session that was begun with one; without
 *                      either only the page's own files, /healthz and /readyz
 *
 * A wrong token costs its address one of five tries a minute (failures.h); when they are used up no
 * token from there is looked at, good or not. Sessions go on meanwhile: their ids can not be tried
 * out, and a mistake in a script shall not throw an operator out of his page. Requests without
 * credentials, and cookies that have run out, cost nothing.
 *
 * The gate copies what it needs of the spec. The admin thread; gate_new, gate_free of one that is not in use: any.
 */
#ifndef WEIR_ADMIN_GATE_H
#define WEIR_ADMIN_GATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <weir/spec.h>

#include "authority.h"
#include "head.h"
#include "reply.h"
#include "sessions.h"

/** Tokens, and users. A guess: more is the work of a proxy in front. */
#define GATE_CLIENTS_MAX 32

struct gate;

/** What one request may do, and under which name. */
struct gate_pass {
	enum weir_admin_role role;
	char name[WEIR_ADMIN_NAME_MAX + 1];
	bool anyone;      /* nobody was asked for: the path is open to all */
	int token;        /* its number when it was judged, -1 without */
	uint64_t edition; /* which token or user, as it was then; 0: neither */
	uint64_t session; /* its serial, 0 without */
};

/** Where a connection comes from. */
struct gate_from {
	struct sockaddr_storage address; /* TCP */
	bool by_file;                    /* else a socket file, and `uid` is whose process it is */
	uid_t uid;
};

/** Add to `errs` what `spec` says about an endpoint at `address` that can not be. Reads no file. */
void gate_rules(
    const struct weir_admin_spec *spec, const struct authority *address, struct weir_errs *errs);

/** Read the tokens of `spec` (NULL: none), look up its users. 0, or a code with `errs` filled. */
int gate_new(const struct weir_admin_spec *spec, const struct authority *address,
    struct gate **gate, struct weir_errs *errs);
void gate_free(struct gate *gate);

/**
 * May the request p[n], which head_check found whole, be looked at? true with *pass; false with
 * *problem, whose sentence is good until the next call. What an operator alone may do is for the
 * routes to say, which know what it is.
 */
bool gate_judge(struct gate *gate, const struct gate_from *from, const char *p, size_t n,
    int64_t now_ns, struct gate_pass *pass, struct head_problem *problem);

/** Is a pass of earlier still good: its token in use, its session not over? It counts as used. */
bool gate_still(struct gate *gate, const struct gate_pass *pass, int64_t now_ns);

/**
 * Be as `next`, which gate_new made for the same address and which is freed: tokens and users that are in both, with the same
 * name, role and token, keep their sessions and passes, all others are good no longer. What failed before still counts.
 */
void gate_become(struct gate *gate, struct gate *next);

/** Read the files of the tokens again. A token that changed ends its sessions; one that can not be
 *  read stays as it was, with a line in the log. */
void gate_reload(struct gate *gate);

/** "operator" or "viewer"; of NULL, who came past no gate, "operator". Static. */
const char *gate_role_word(const struct gate_pass *pass);

/** Its copy of `hosts:`. */
const struct weir_strings *gate_hosts(const struct gate *gate);

/** Does it ask for tokens? */
bool gate_asks(const struct gate *gate);

/**
 * Begin a session for the holder of `pass`, which came with a token. The value for Set-Cookie in
 * `cookie[size]`, 160 is enough, which holds the id: wipe it when it is sent. 0 or WEIR_ESYS.
 */
int gate_begin(
    struct gate *gate, struct gate_pass *pass, char *cookie, size_t size, int64_t now_ns);

/** End the session of `pass`, if it has one; the value of Set-Cookie that makes a browser forget. */
void gate_end(struct gate *gate, const struct gate_pass *pass, char *cookie, size_t size);

/** How long the session of `pass` can last, in ns from now; 0: it has none. */
int64_t gate_left_ns(const struct gate *gate, const struct gate_pass *pass, int64_t now_ns);

#endif
