/* SPDX-License-Identifier: MIT */
/* The contents of struct auth, shared by auth.c, which checks requests, and auth_make.c, which
 * builds an object and replaces its contents. Used only by the admin thread, except for an object
 * that is not in use yet. */
#ifndef WEIR_ADMIN_AUTH_INTERNAL_H
#define WEIR_ADMIN_AUTH_INTERNAL_H

#include "failures.h"
#include "auth.h"

/** A token or a user. */
struct client {
	char name[WEIR_ADMIN_NAME_MAX + 1];
	enum weir_admin_role role;
	uint64_t edition; /* from 1, never reused; replaced when the token or user changes */
	/* for a token */
	char *file;
	struct secret_digest digest;
	/* for a user */
	uid_t uid;
};

struct auth {
	bool tls;
	/* name of the cookie; contains the port, since browsers share cookies among all ports of a
	 * host */
	char cookie[40];
	int n_tokens, n_users;
	struct client token[AUTH_CLIENTS_MAX];
	struct client user[AUTH_CLIENTS_MAX + 2]; /* root and the server's own user first */
	struct weir_strings hosts;
	struct sessions sessions;
	struct failures failures;
	int lines; /* number of failures logged since `lines_ns` */
	int64_t lines_ns;
	bool silent;       /* the limit was reached, and that was logged */
	uint64_t editions; /* the newest edition issued */
	char why[160];     /* text of the newest refusal */
};

#endif
