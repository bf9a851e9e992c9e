/* SPDX-License-Identifier: MIT */
/* Sessions: found by their id only, limited in time, and evicted per token. */
#include "admin/auth/sessions.h"

#include <stdio.h>
#include <string.h>

#include "cunit_main.h"

#define NOW 1000000000LL

static struct sessions s;

static int find(const char *id, uint64_t *serial, int64_t now_ns)
{
	return sessions_find(&s, (struct weir_slice){id, strlen(id)}, serial, now_ns);
}

static void test_find(void)
{
	char a[SESSION_ID_LETTERS + 1], b[SESSION_ID_LETTERS + 1], wrong[SESSION_ID_LETTERS + 1];
	uint64_t serial = 0;

	CU_ASSERT_EQUAL_FATAL(sessions_init(&s, 2), 0);
	uint64_t first = sessions_begin(&s, 0, a, NOW), second = sessions_begin(&s, 1, b, NOW);
	CU_ASSERT_TRUE(first != 0 && second != 0 && first != second);
	CU_ASSERT_EQUAL(strlen(a), SESSION_ID_LETTERS);
	CU_ASSERT_NOT_EQUAL(strcmp(a, b), 0);
	CU_ASSERT_EQUAL(find(a, &serial, NOW), 0);
	CU_ASSERT_EQUAL(serial, first);
	CU_ASSERT_EQUAL(find(b, &serial, NOW), 1);
	CU_ASSERT_EQUAL(serial, second);
	for (size_t i = 0; i < SESSION_ID_LETTERS; i++) {
		memcpy(wrong, a, sizeof(wrong));
		wrong[i] = wrong[i] == '0' ? '1' : '0';
		CU_ASSERT_EQUAL(find(wrong, &serial, NOW), -1);
	}
	a[SESSION_ID_LETTERS - 1] = '\0';
	CU_ASSERT_EQUAL(find(a, &serial, NOW), -1);
	CU_ASSERT_EQUAL(find("", &serial, NOW), -1);
	/* The id itself is not stored. */
	for (int i = 0; i < s.n; i++)
		CU_ASSERT_PTR_NULL(memmem(&s.slot[i], sizeof(s.slot[i]), b, 16));
	sessions_end(&s, second);
	CU_ASSERT_EQUAL(find(b, &serial, NOW), -1);
	sessions_end(&s, second);
	sessions_fini(&s);
}

static void test_time(void)
{
	char id[SESSION_ID_LETTERS + 1];
	uint64_t serial;
	int64_t now_ns = NOW;

	CU_ASSERT_EQUAL_FATAL(sessions_init(&s, 1), 0);
	uint64_t first = sessions_begin(&s, 0, id, now_ns);
	CU_ASSERT_EQUAL(sessions_ends_ns(&s, first), NOW + SESSION_LIFE_NS);
	now_ns += SESSION_IDLE_NS - 1;
	CU_ASSERT_EQUAL(find(id, &serial, now_ns), 0); /* used: another hour */
	now_ns += SESSION_IDLE_NS - 1;
	CU_ASSERT_TRUE(sessions_use(&s, first, now_ns)); /* used by its serial: another hour, too */
	now_ns += SESSION_IDLE_NS;
	CU_ASSERT_FALSE(sessions_use(&s, first, now_ns));
	CU_ASSERT_EQUAL(find(id, &serial, now_ns), -1);
	/* A session ends, however often it is used. */
	first = sessions_begin(&s, 0, id, NOW);
	for (now_ns = NOW; now_ns < NOW + SESSION_LIFE_NS; now_ns += SESSION_IDLE_NS / 2)
		CU_ASSERT_TRUE(sessions_use(&s, first, now_ns));
	CU_ASSERT_FALSE(sessions_use(&s, first, now_ns));
	CU_ASSERT_FALSE(sessions_use(&s, 0, NOW));
	CU_ASSERT_EQUAL(sessions_ends_ns(&s, 0), 0);
	sessions_fini(&s);
}

/* One more than a token has slots for evicts that token's oldest session. */
static void test_places(void)
{
	char id[SESSIONS_PER_TOKEN + 1][SESSION_ID_LETTERS + 1], other[SESSION_ID_LETTERS + 1];
	uint64_t serial;

	CU_ASSERT_EQUAL_FATAL(sessions_init(&s, 2), 0);
	sessions_begin(&s, 1, other, NOW);
	for (int i = 0; i <= SESSIONS_PER_TOKEN; i++)
		sessions_begin(&s, 0, id[i], NOW + 1 + i);
	CU_ASSERT_EQUAL(find(id[0], &serial, NOW + 99), -1);
	for (int i = 1; i <= SESSIONS_PER_TOKEN; i++)
		CU_ASSERT_EQUAL(find(id[i], &serial, NOW + 99), 0);
	CU_ASSERT_EQUAL(find(other, &serial, NOW + 99), 1);
	sessions_end_all(&s, 0);
	for (int i = 0; i <= SESSIONS_PER_TOKEN; i++)
		CU_ASSERT_EQUAL(find(id[i], &serial, NOW + 99), -1);
	CU_ASSERT_EQUAL(find(other, &serial, NOW + 99), 1);
	sessions_fini(&s);
}

CUNIT_MAIN("sessions", {"find", test_find}, {"time", test_time}, {"places", test_places})
