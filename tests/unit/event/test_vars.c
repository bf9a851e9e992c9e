/* SPDX-License-Identifier: MIT */
/* The payload of variables. */
#include <weir/vars.h>

#include "cunit_main.h"
#include "event/payload.h"

#include <stdio.h>
#include <string.h>

static struct weir_vars *vars_new(void)
{
	enum weir_payload_refusal why;

	return payload_make(NULL, NULL, &weir_vars_type, &why);
}

static int set(struct weir_vars *vars, const char *name, const char *text)
{
	return weir_vars_set(vars, name, (struct weir_slice){text, strlen(text)});
}

static bool is(const struct weir_vars *vars, const char *name, const char *text)
{
	struct weir_slice s = weir_vars_get(vars, name);

	return text ? s.p && s.n == strlen(text) && memcmp(s.p, text, s.n) == 0 : !s.p;
}

static void test_texts(void)
{
	struct weir_vars *vars = vars_new();
	const char *edge = "twenty-three bytes long", *more = "twenty-four bytes long..";

	CU_ASSERT_EQUAL(strlen(edge), 23);
	CU_ASSERT_TRUE(is(vars, "user", NULL));
	CU_ASSERT_EQUAL(set(vars, "user", ""), 0);
	CU_ASSERT_TRUE(is(vars, "user", ""));
	CU_ASSERT_EQUAL(set(vars, "user", edge), 0);
	CU_ASSERT_TRUE(is(vars, "user", edge));
	CU_ASSERT_EQUAL(set(vars, "user", more), 0);
	CU_ASSERT_TRUE(is(vars, "user", more));
	CU_ASSERT_EQUAL(weir_vars_set(vars, "user", weir_vars_get(vars, "user")), 0);
	CU_ASSERT_TRUE(is(vars, "user", more));
	struct weir_slice rest = weir_vars_get(vars, "user");
	rest.p += 7;
	rest.n = 4;
	CU_ASSERT_EQUAL(weir_vars_set(vars, "user", rest), 0);
	CU_ASSERT_TRUE(is(vars, "user", "four"));
	rest = weir_vars_get(vars, "user");
	rest.p++;
	rest.n = 2;
	CU_ASSERT_EQUAL(weir_vars_set(vars, "user", rest), 0);
	CU_ASSERT_TRUE(is(vars, "user", "ou"));
	CU_ASSERT_TRUE(is(vars, "use", NULL));
	weir_payload_free(vars);
}

static void test_limits(void)
{
	struct weir_vars *vars = vars_new();
	char name[32];

	CU_ASSERT_EQUAL(set(NULL, "a", "x"), WEIR_ENOMEM);
	CU_ASSERT_EQUAL(set(vars, "", "x"), WEIR_EINVAL);
	CU_ASSERT_EQUAL(set(vars, "abcdefghijklmnopqrstuvwx", "x"), WEIR_EINVAL);
	CU_ASSERT_EQUAL(
	    weir_vars_set(vars, "a", (struct weir_slice){"", WEIR_VAR_TEXT_MAX + 1}), WEIR_EINVAL);
	for (int i = 0; i < WEIR_VARS_MAX; i++) {
		snprintf(name, sizeof(name), "name%02d-of-23-bytes-or-.", i);
		name[23] = '\0';
		CU_ASSERT_EQUAL(set(vars, name, name), 0);
	}
	CU_ASSERT_EQUAL(set(vars, "one more", "x"), WEIR_EBUSY);
	CU_ASSERT_EQUAL(set(vars, name, "other"), 0);
	CU_ASSERT_TRUE(is(vars, name, "other"));
	weir_payload_free(vars);
}

static bool reads(struct weir_vars *vars, const char *text, int64_t want)
{
	int64_t n = want + 1;

	return set(vars, "n", text) == 0 && weir_vars_number(vars, "n", &n) && n == want;
}

static void test_numbers(void)
{
	static const char *const bad[] = {
	    "", "-", "x", "1x", "1.5", " 1", "9223372036854775808", "-9223372036854775809"};
	struct weir_vars *vars = vars_new();
	int64_t n = 0;

	CU_ASSERT_FALSE(weir_vars_number(vars, "n", &n));
	CU_ASSERT_TRUE(reads(vars, "0", 0) && reads(vars, "-0", 0) && reads(vars, "007", 7));
	CU_ASSERT_TRUE(reads(vars, "9223372036854775807", INT64_MAX));
	CU_ASSERT_TRUE(reads(vars, "-9223372036854775808", INT64_MIN));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT_EQUAL(set(vars, "n", bad[i]), 0);
		CU_ASSERT_FALSE(weir_vars_number(vars, "n", &n));
	}
	CU_ASSERT_EQUAL(weir_vars_set_number(vars, "n", INT64_MIN), 0);
	CU_ASSERT_TRUE(is(vars, "n", "-9223372036854775808"));
	CU_ASSERT_TRUE(weir_vars_number(vars, "n", &n));
	CU_ASSERT_EQUAL(n, INT64_MIN);
	weir_payload_free(vars);
}

static void test_field(void)
{
	struct weir_vars *vars = vars_new();

	CU_ASSERT_EQUAL(set(vars, "user", "ann"), 0);
	const struct weir_payload_field *f = weir_vars_type.fields;
	CU_ASSERT_STRING_EQUAL(f->name, "");
	struct weir_slice s = f->text(vars, "user");
	CU_ASSERT_EQUAL(s.n, 3);
	CU_ASSERT_PTR_NULL(f->text(vars, "other").p);
	weir_payload_free(vars);
}

CUNIT_MAIN("vars", {"texts", test_texts}, {"limits", test_limits}, {"numbers", test_numbers},
    {"field", test_field})
