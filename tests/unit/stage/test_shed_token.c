/* SPDX-License-Identifier: MIT */
/* Shed tokens: packing and unpacking as number and as text, refusal of invalid tokens, times until
 * a retry. */
#include "stage/shed_token.h"

#include <string.h>

#include <weir/random.h>

#include "cunit_main.h"

#define MS 1000000LL
#define S  1000000000LL

static uint64_t next(void)
{
	static uint64_t drawn;

	return weir_random_at(42, drawn++);
}

static struct shed_token random_token(void)
{
	return (struct shed_token){.reason_index = (uint8_t)(next() % WEIR_SHED_REASONS),
	    .stage = (uint16_t)(next() % 256),
	    .class_id = (uint8_t)(next() % 8),
	    .user = (uint8_t)next(),
	    .part = (uint8_t)(next() % 128),
	    .wait = (uint8_t)(next() % 128),
	    .at = (uint32_t)(next() % SHED_TOKEN_AT_WRAP)};
}

static bool same(const struct shed_token *a, const struct shed_token *b)
{
	return a->reason_index == b->reason_index && a->stage == b->stage &&
	       a->class_id == b->class_id && a->user == b->user && a->part == b->part &&
	       a->wait == b->wait && a->at == b->at;
}

static void test_round_trip(void)
{
	int wrong = 0;

	for (int i = 0; i < 20000; i++) {
		struct shed_token t = random_token(), back, read;
		char text[WEIR_SHED_ID_BYTES], again[WEIR_SHED_ID_BYTES];
		uint64_t id = shed_token_pack(&t), parsed = 0;
		shed_token_print(id, text);
		wrong += id == 0 || !shed_token_unpack(id, &back) || !same(&t, &back);
		wrong += shed_token_parse(text, &parsed) != 0 || parsed != id ||
			 !shed_token_unpack(parsed, &read) || !same(&t, &read);
		for (int k = 0; k < WEIR_SHED_ID_BYTES; k++)
			again[k] = (char)(text[k] >= 'A' ? text[k] - 'A' + 'a' : text[k]);
		wrong += strlen(text) != WEIR_SHED_ID_BYTES - 1 ||
			 shed_token_parse(again, &parsed) != 0 || parsed != id;
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

static void test_ranges(void)
{
	struct shed_token t = {.stage = 254}, back;

	CU_ASSERT(shed_token_unpack(shed_token_pack(&t), &back));
	CU_ASSERT_EQUAL(back.stage, 254);
	t = (struct shed_token){
	    .stage = 4000, .part = 200, .wait = 200, .at = SHED_TOKEN_AT_WRAP + 3};
	CU_ASSERT(shed_token_unpack(shed_token_pack(&t), &back));
	CU_ASSERT_EQUAL(back.stage, SHED_TOKEN_STAGE_UNKNOWN);
	CU_ASSERT_EQUAL(back.part, SHED_TOKEN_PART_ALL);
	CU_ASSERT_EQUAL(back.wait, SHED_TOKEN_WAIT_UNKNOWN);
	CU_ASSERT_EQUAL(back.at, 3);
	CU_ASSERT_EQUAL(shed_token_pack(&(struct shed_token){0}), SHED_TOKEN_MARK);
}

static void test_shares_and_waits(void)
{
	CU_ASSERT_EQUAL(shed_token_part(-1), 0);
	CU_ASSERT_EQUAL(shed_token_part(0), 0);
	CU_ASSERT_EQUAL(shed_token_part(0.0001), 1);
	CU_ASSERT_EQUAL(shed_token_part(0.5), 64);
	CU_ASSERT_EQUAL(shed_token_part(0.9999), 126);
	CU_ASSERT_EQUAL(shed_token_part(1), 127);
	CU_ASSERT_EQUAL(shed_token_part(7), 127);
	CU_ASSERT_EQUAL(shed_token_wait(0, 100 * MS), 0);
	CU_ASSERT_EQUAL(shed_token_wait(100 * MS, 100 * MS), 32);
	CU_ASSERT_EQUAL(shed_token_wait(390 * MS, 100 * MS), 125);
	CU_ASSERT_EQUAL(shed_token_wait(INT64_MAX, 100 * MS), SHED_TOKEN_WAIT_MOST);
	CU_ASSERT_EQUAL(shed_token_wait(-1, 100 * MS), SHED_TOKEN_WAIT_UNKNOWN);
	CU_ASSERT_EQUAL(shed_token_wait(5, 0), SHED_TOKEN_WAIT_UNKNOWN);
}

static void test_times(void)
{
	struct shed_token t = {.at = shed_token_at(1234567 * MS)};

	CU_ASSERT_EQUAL(t.at, 12345);
	CU_ASSERT_EQUAL(shed_token_since_ns(&t, 1234600 * MS), 1234500 * MS);
	/* After the counter has wrapped once, and just before it wraps. */
	int64_t turn_ns = (int64_t)SHED_TOKEN_AT_WRAP * (S / 10);
	CU_ASSERT_EQUAL(shed_token_since_ns(&t, turn_ns + 1300 * S), turn_ns + 1234500 * MS);
	CU_ASSERT_EQUAL(shed_token_since_ns(&t, turn_ns + 1200 * S), 1234500 * MS);
	CU_ASSERT_EQUAL(shed_token_at(turn_ns + 1234567 * MS), 12345);
	/* From another run: later than now. */
	CU_ASSERT_EQUAL(shed_token_since_ns(&t, 5 * S), 1234500 * MS);
}

static void test_what_is_no_token(void)
{
	static const char *const bad[] = {"", "8", "800000000000", "80000000000000",
	    "G000000000000" /* 65 bits */, "R000000000000", "Z000000000000",
	    "0000000000000" /* no mark */, "7ZZZZZZZZZZZZ", "8000-00000000", "800000000000U",
	    "8000 00000000", "80000000000\xc3\xa9", "FZZZZZZZZZZZZ" /* reason 15 */,
	    "8000000000000\n"};
	struct shed_token t = {.at = 7};
	uint64_t id = 17;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (shed_token_parse(bad[i], &id) != WEIR_EINVAL)
			CU_FAIL(bad[i]);
	CU_ASSERT_EQUAL(id, 17);
	CU_ASSERT_FALSE(shed_token_unpack(0, &t));
	CU_ASSERT_FALSE(shed_token_unpack(INT64_MAX, &t)); /* the id of a request */
	CU_ASSERT_FALSE(shed_token_unpack(SHED_TOKEN_MARK | (uint64_t)WEIR_SHED_REASONS << 59, &t));
	CU_ASSERT_EQUAL(t.at, 7);
	/* Characters that are easily misread. */
	CU_ASSERT_EQUAL(shed_token_parse("8OoIiLl000000", &id), 0);
	uint64_t plain = 0;
	CU_ASSERT_EQUAL(shed_token_parse("8001111000000", &plain), 0);
	CU_ASSERT_EQUAL(id, plain);
}

static void test_retry_of_users(void)
{
	struct shed_token t = {.reason_index = (uint8_t)weir_shed_index(WEIR_EPRIORITY),
	    .user = 192,
	    .part = 0,
	    .wait = SHED_TOKEN_WAIT_UNKNOWN};

	CU_ASSERT_EQUAL(shed_token_retry_ns(&t, true, 0), S);
	t.part = shed_token_part(0.25); /* 32 / 127: 0.252 */
	CU_ASSERT_EQUAL(shed_token_retry_ns(&t, false, 100 * MS), S);
	int64_t ns = shed_token_retry_ns(&t, true, 100 * MS);
	CU_ASSERT(ns > 6150 * MS && ns < 6350 * MS); /* 0.75 - 0.25 / 2 of 10 s */
	t.user = 10;                                 /* this user is served already */
	CU_ASSERT_EQUAL(shed_token_retry_ns(&t, true, 100 * MS), 0);
}

static void test_retry_of_waits(void)
{
	static const int waiting[] = {WEIR_EDELAY, WEIR_EHOPELESS, WEIR_ELIMIT, WEIR_EQUEUE};
	static const int silent[] = {
	    WEIR_ETHRESHOLD, WEIR_ERATE, WEIR_EDEADLINE, WEIR_ESTOPPING, WEIR_EPRESSURE};
	struct shed_token t = {.wait = 64, .part = 64};

	for (size_t i = 0; i < sizeof(waiting) / sizeof(waiting[0]); i++) {
		t.reason_index = (uint8_t)weir_shed_index(waiting[i]);
		CU_ASSERT_EQUAL(shed_token_retry_ns(&t, true, 300 * MS), 600 * MS);
		CU_ASSERT_EQUAL(shed_token_retry_ns(&t, true, 0), 0);
	}
	for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++) {
		t.reason_index = (uint8_t)weir_shed_index(silent[i]);
		CU_ASSERT_EQUAL(shed_token_retry_ns(&t, true, 300 * MS), 0);
	}
	t.reason_index = (uint8_t)weir_shed_index(WEIR_EDELAY);
	t.wait = SHED_TOKEN_WAIT_UNKNOWN;
	CU_ASSERT_EQUAL(shed_token_retry_ns(&t, true, 300 * MS), 0);
}

CUNIT_MAIN("shed token", {"round trip", test_round_trip}, {"ranges", test_ranges},
    {"shares and waits", test_shares_and_waits}, {"times", test_times},
    {"what is no token", test_what_is_no_token}, {"retry of users", test_retry_of_users},
    {"retry of waits", test_retry_of_waits})
