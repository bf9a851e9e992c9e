/* SPDX-License-Identifier: MIT */
/* Sessions of browsers as routes; see login.h. Beginning and ending are logged, the id never. */
#include "login.h"

#include <stdint.h>
#include <string.h>
#include <time.h>

#include <weir/log.h>

#include "gate.h"

static int64_t now_ns(void)
{
	struct timespec t = {0};

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static json_t *session_json(const struct call *c)
{
	const struct gate *gate = c->request->gate;
	const struct gate_pass *pass = c->request->pass;
	int64_t left_ns = gate && pass ? gate_left_ns(gate, pass, now_ns()) : 0;

	return json_pack("{s:s, s:s, s:b, s:o}", "name", pass ? pass->name : "operator", "role",
	    gate_role_word(pass), "tokens", gate && gate_asks(gate), "ends_in_seconds",
	    left_ns > 0 ? json_real((double)left_ns / 1e9) : json_null());
}

void answer_session(const struct call *c, struct reply *r)
{
	reply_json(r, 200, session_json(c));
}

void act_login(const struct call *c, struct reply *r)
{
	struct gate *gate = c->request->gate;
	struct gate_pass *pass = c->request->pass;
	char cookie[sizeof(r->cookie)];

	if (!gate || !gate_asks(gate)) {
		reply_problem(r, 409, "no token is needed here, so there is nothing to log in to");
		return;
	}
	if (pass->session != 0) {
		reply_problem(r, 409, "you have a session: send the token itself for another one");
		return;
	}
	if (gate_begin(gate, pass, cookie, sizeof(cookie), now_ns()) != 0) {
		reply_problem(r, 503, "the system has no random numbers to give");
		return;
	}
	weir_log(WEIR_LOG_INFO, "admin: %s (%s) began a session", pass->name, gate_role_word(pass));
	reply_json(r, 200, session_json(c));
	memcpy(r->cookie, cookie, sizeof(cookie)); /* behind reply_json, which begins anew */
	explicit_bzero(cookie, sizeof(cookie));
}

void act_logout(const struct call *c, struct reply *r)
{
	struct gate *gate = c->request->gate;
	struct gate_pass *pass = c->request->pass;
	char cookie[sizeof(r->cookie)];

	if (!gate || pass->session == 0) {
		reply_problem(r, 409, "this request came without a session");
		return;
	}
	gate_end(gate, pass, cookie, sizeof(cookie));
	pass->session = 0;
	weir_log(WEIR_LOG_INFO, "admin: %s ended a session", pass->name);
	reply_json(r, 200, json_pack("{s:b}", "ended", 1));
	memcpy(r->cookie, cookie, sizeof(cookie));
}
