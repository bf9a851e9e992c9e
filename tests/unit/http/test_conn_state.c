/* SPDX-License-Identifier: MIT */
/* The table of transitions between the states of a connection: what may follow what, and which ways
 * back do not exist. */
#include "http/conn/conn.h"

#include "cunit_main.h"

static bool may(int from, int to)
{
	return conn_state_may((enum conn_state)from, (enum conn_state)to);
}

/* While requests are served, every state may follow every other within one iteration. */
static void test_serving(void)
{
	for (int from = CONN_STATE_SHAKING; from <= CONN_STATE_WRITING; from++)
		for (int to = CONN_STATE_IDLE; to <= CONN_STATE_CLOSED; to++)
			CU_ASSERT_TRUE(may(from, to));
}

static void test_no_way_back(void)
{
	for (int from = CONN_STATE_IDLE; from < CONN_STATES; from++)
		CU_ASSERT_FALSE(may(from, CONN_STATE_SHAKING));
	for (int to = CONN_STATE_SHAKING; to <= CONN_STATE_WRITING; to++) {
		CU_ASSERT_FALSE(may(CONN_STATE_ENDING, to));
		CU_ASSERT_FALSE(may(CONN_STATE_LINGERING, to));
	}
	CU_ASSERT_TRUE(may(CONN_STATE_SHAKING, CONN_STATE_SHAKING));
	CU_ASSERT_TRUE(may(CONN_STATE_ENDING, CONN_STATE_ENDING));
	CU_ASSERT_TRUE(may(CONN_STATE_ENDING, CONN_STATE_LINGERING));
	CU_ASSERT_TRUE(may(CONN_STATE_ENDING, CONN_STATE_CLOSED));
	CU_ASSERT_TRUE(may(CONN_STATE_LINGERING, CONN_STATE_LINGERING));
	CU_ASSERT_TRUE(may(CONN_STATE_LINGERING, CONN_STATE_CLOSED));
	CU_ASSERT_FALSE(may(CONN_STATE_LINGERING, CONN_STATE_ENDING));
}

static void test_closed_is_last(void)
{
	for (int to = 0; to < CONN_STATES; to++)
		CU_ASSERT_FALSE(may(CONN_STATE_CLOSED, to));
}

/* A phase that ends the connection also ends its input, and the input never opens again. */
static void test_phases(void)
{
	struct conn c = {.phase = CONN_OPEN, .input = INPUT_OPEN};

	CU_ASSERT_EQUAL(conn_state(&c), CONN_STATE_IDLE);
	conn_enter(&c, CONN_ENDING);
	CU_ASSERT_EQUAL(c.input, INPUT_STOPPED);
	CU_ASSERT_EQUAL(c.state, CONN_STATE_ENDING);
	conn_enter(&c, CONN_ENDING);
	conn_enter(&c, CONN_LINGERING);
	CU_ASSERT_EQUAL(c.state, CONN_STATE_LINGERING);
	CU_ASSERT_TRUE(conn_is_open(&c));
	conn_enter(&c, CONN_CLOSED);
	CU_ASSERT_EQUAL(c.state, CONN_STATE_CLOSED);
	CU_ASSERT_FALSE(conn_is_open(&c));
}

static void test_input(void)
{
	struct conn c = {.phase = CONN_OPEN, .input = INPUT_ENDED};

	conn_stop_input(&c);
	CU_ASSERT_EQUAL(c.input, INPUT_ENDED);
	c.input = INPUT_OPEN;
	conn_stop_input(&c);
	CU_ASSERT_EQUAL(c.input, INPUT_STOPPED);
}

CUNIT_MAIN("conn_state", {"serving", test_serving}, {"no way back", test_no_way_back},
    {"closed is last", test_closed_is_last}, {"phases", test_phases}, {"input", test_input})
