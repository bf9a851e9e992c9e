/* SPDX-License-Identifier: MIT */
/* Routes for browser sessions: /api/v1/session. docs/api.md describes the JSON. Admin thread
 * only. */
#ifndef WEIR_ADMIN_LOGIN_H
#define WEIR_ADMIN_LOGIN_H

#include "routes.h"

/** The path of all three routes; viewers may also use them. */
#define LOGIN_PATH "/api/v1/session"

/** Reply with the user of the request and its role. */
void answer_session(const struct call *c, struct reply *r);

/** Start a session for the token sent with the request. */
void answer_login(const struct call *c, struct reply *r);

/** End the session of the request. */
void answer_logout(const struct call *c, struct reply *r);

#endif
