/* SPDX-License-Identifier: MIT */
/*
 * Sessions of browsers as routes: /api/v1/session. docs/api.md has the shapes. The admin thread.
 */
#ifndef WEIR_ADMIN_LOGIN_H
#define WEIR_ADMIN_LOGIN_H

#include "routes.h"

/** The path of all three, which a viewer may use, too. */
#define LOGIN_PATH "/api/v1/session"

/** Who asks, and what he may do. */
void answer_session(const struct call *c, struct reply *r);

/** A session for the token that the request came with. */
void act_login(const struct call *c, struct reply *r);

/** End the session that the request came with. */
void act_logout(const struct call *c, struct reply *r);

#endif
