/* SPDX-License-Identifier: MIT */
/* Routes for browser sessions; see login.h. The start and end of a session are logged, but never
 * its id. */
#include "login.h"

#include <stdint.h>
#include <string.h>
#include <time.h>

#include <weir/clock.h>
#include <weir/log.h>

#include "admin/auth/auth.h"

static json_t *session_json(const struct call *c)
{
	const struct auth *auth = c->request->auth;
	const struct auth_pass *pass = c->request->pass;
	int64_t left_ns =
	    auth && pass ? auth_left_ns(auth, pass, weir_clock_ns(CLOCK_MONOTONIC)) : 0;

	return json_pack("{s:s, s:s, s:b, s:o}", "name", pass ? pass->name : "operator", "role",
	    auth_role_word(pass), "tokens", auth && auth_asks(auth), "ends_in_seconds",
	    left_ns > 0 ? json_real((double)left_ns / 1e9) : json_null());
}

void answer_session(const struct call *c, struct reply *r)
{
	reply_json(r, 200, session_json(c));
}

void answer_login(const struct call *c, struct reply *r)
{
	struct auth *auth = c->request->auth;
	struct auth_pass *pass = c->request->pass;
	char cookie[sizeof(r->cookie)];

	if (!auth || !auth_asks(auth)) {
		reply_problem(r, 409, "no token is needed here, so there is nothing to log in to");
		return;
	}
	if (pass->session != 0) {
		reply_problem(r, 409,
		    "you already have a session: to start another one, send the token instead of "
		    "the cookie");
		return;
	}
	if (auth_begin(auth, pass, cookie, sizeof(cookie), weir_clock_ns(CLOCK_MONOTONIC)) != 0) {
		reply_problem(r, 503, "the system cannot supply random numbers");
		return;
	}
	weir_log(WEIR_LOG_INFO, "admin: %s (%s) began a session", pass->name, auth_role_word(pass));
	reply_json(r, 200, session_json(c));
	memcpy(r->cookie, cookie, sizeof(cookie)); /* after reply_json, which resets the reply */
	explicit_bzero(cookie, sizeof(cookie));
}

void answer_logout(const struct call *c, struct reply *r)
{
	struct auth *auth = c->request->auth;
	struct auth_pass *pass = c->request->pass;
	char cookie[sizeof(r->cookie)];

	if (!auth || pass->session == 0) {
		reply_problem(r, 409, "this request has no session");
		return;
	}
	auth_end(auth, pass, cookie, sizeof(cookie));
	pass->session = 0;
	weir_log(WEIR_LOG_INFO, "admin: %s ended a session", pass->name);
	reply_json(r, 200, json_pack("{s:b}", "ended", 1));
	memcpy(r->cookie, cookie, sizeof(cookie));
}
