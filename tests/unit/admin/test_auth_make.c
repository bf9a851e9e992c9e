/* SPDX-License-Identifier: MIT */
/* A new auth replaces one in use: which sessions and tokens stay valid. */
#include "auth_rig.h"

/* Replace the auth by a new one, made from the current `spec`. */
static void become(void)
{
	struct auth *old = auth;

	open_gate();
	auth_become(old, auth);
	auth = old;
}

static void spec_of(const char *boss, int role, const char *other)
{
	weir_spec_free(spec);
	spec = weir_spec_new("tested");
	CU_ASSERT_PTR_NOT_NULL_FATAL(spec);
	weir_spec_text(&spec->admin.listen, "127.0.0.1:9900");
	if (other)
		add_token(other, WEIR_ADMIN_VIEWER);
	if (boss)
		add_token(boss, role);
}

static void test_become(void)
{
	char boss[200], eye[200];

	begin_tokens();
	log_in(BOSS, boss, sizeof(boss));
	struct auth_pass boss_session = pass;
	log_in(EYE, eye, sizeof(eye));
	struct auth_pass eye_session = pass;
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(ask("GET", "/metrics", bearer(EYE "x")), 401);
	/* One token is removed and another is added before the one that stays. */
	put("new", "ffeeddccbbaa99887766554433221100");
	spec_of("boss", WEIR_ADMIN_OPERATOR, "new");
	become();
	CU_ASSERT_TRUE(auth_still(auth, &boss_session, 100 * S));
	CU_ASSERT_FALSE(auth_still(auth, &eye_session, 100 * S));
	CU_ASSERT_EQUAL(ask("GET", "/metrics", boss), 200);
	CU_ASSERT_STRING_EQUAL(pass.name, "boss");
	CU_ASSERT_EQUAL(pass.role, WEIR_ADMIN_OPERATOR);
	CU_ASSERT_EQUAL(ask("GET", "/metrics", bearer("ffeeddccbbaa99887766554433221100")), 200);
	CU_ASSERT_STRING_EQUAL(pass.name, "new");
	/* A new session is not taken for one that was carried over. */
	char new_cookie[200];
	struct auth_pass begun = pass;
	CU_ASSERT_EQUAL(auth_begin(auth, &begun, new_cookie, sizeof(new_cookie), 100 * S), 0);
	CU_ASSERT_NOT_EQUAL(begun.session, boss_session.session);
	struct auth_pass new = pass;
	/* Failures are carried over: two attempts of the five are left. */
	CU_ASSERT_EQUAL(ask("GET", "/metrics", bearer(EYE)), 401);
	CU_ASSERT_EQUAL(ask("GET", "/metrics", eye), 401);
	CU_ASSERT_EQUAL(ask("GET", "/metrics", bearer(EYE)), 401);
	CU_ASSERT_EQUAL(ask("GET", "/metrics", bearer(EYE)), 429);
	/* A pass issued before cannot begin a session in the name of another client. */
	char cookie[200];
	CU_ASSERT_NOT_EQUAL(auth_begin(auth, &eye_session, cookie, sizeof(cookie), 100 * S), 0);
	/* The same token with another role is another client. */
	spec_of("boss", WEIR_ADMIN_VIEWER, NULL);
	become();
	CU_ASSERT_FALSE(auth_still(auth, &boss_session, 100 * S));
	CU_ASSERT_FALSE(auth_still(auth, &new, 100 * S));
	CU_ASSERT_EQUAL(ask("GET", "/metrics", boss), 401);
	/* Without tokens every client is allowed. With tokens again, no pass of the time between is
	 * valid. */
	spec_of(NULL, 0, NULL);
	become();
	CU_ASSERT_FALSE(auth_still(auth, &new, 100 * S));
	CU_ASSERT_EQUAL(ask("GET", "/metrics", ""), 200);
	struct auth_pass local = pass;
	CU_ASSERT_TRUE(auth_still(auth, &local, 100 * S));
	spec_of("boss", WEIR_ADMIN_OPERATOR, NULL);
	become();
	CU_ASSERT_FALSE(auth_still(auth, &local, 100 * S));
	end_all();
}

static bool user_may(unsigned uid)
{
	static const char text[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
	const struct auth_from f = {.by_file = true, .uid = uid};

	return auth_judge(auth, &f, text, sizeof(text) - 1, 100 * S, &pass, &problem);
}

static void test_become_users(void)
{
	begin("unix:/tmp/x");
	weir_spec_add_client(spec, "4321", NULL);
	open_gate();
	CU_ASSERT_TRUE(user_may(4321));
	struct auth_pass one = pass;
	CU_ASSERT_TRUE(user_may((unsigned)geteuid()));
	struct auth_pass self = pass;
	weir_spec_add_client(spec, "4322", NULL);
	become();
	CU_ASSERT_TRUE(auth_still(auth, &one, 100 * S));
	CU_ASSERT_TRUE(user_may(4322));
	weir_spec_free(spec);
	spec = weir_spec_new("tested");
	weir_spec_text(&spec->admin.listen, "unix:/tmp/x");
	become();
	CU_ASSERT_FALSE(auth_still(auth, &one, 100 * S));
	CU_ASSERT_FALSE(user_may(4321));
	CU_ASSERT_TRUE(auth_still(auth, &self, 100 * S));
	end_all();
}

CUNIT_MAIN("another auth", {"tokens", test_become}, {"users", test_become_users})
