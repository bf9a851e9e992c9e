/* SPDX-License-Identifier: MIT */
/* What a gate consists of: for gate.c, which judges, and gate_make.c, which makes and changes it. The admin thread, but for one
 * that is not in use yet. */
#ifndef WEIR_ADMIN_GATE_PRIV_H
#define WEIR_ADMIN_GATE_PRIV_H

#include "failures.h"
#include "gate.h"

/** A token or a user. */
struct client {
	char name[WEIR_ADMIN_NAME_MAX + 1];
	enum weir_admin_role role;
	uint64_t
	    edition; /* from 1; another one when it is no longer the same, and no other's ever */
	/* a token */
	char *file;
	struct secret_digest digest;
	/* a user */
	uid_t uid;
};

struct gate {
	bool tls;
	char cookie[40]; /* its name: browsers keep one jar for all ports of a host */
	int n_tokens, n_users;
	struct client token[GATE_CLIENTS_MAX];
	struct client user[GATE_CLIENTS_MAX + 2]; /* root and ourselves first */
	struct weir_strings hosts;
	struct sessions sessions;
	struct failures failures;
	int lines; /* about failures, since `lines_ns` */
	int64_t lines_ns;
	bool silent;       /* and it was said so */
	uint64_t editions; /* the newest */
	char why[160];     /* of the newest refusal */
};

#endif
