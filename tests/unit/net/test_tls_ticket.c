/* SPDX-License-Identifier: MIT */
/* Ticket keys over time: what they decrypt, when they change, and when they are erased. */
#include "net/tls/tls_ticket.h"

#include <string.h>

#include "cunit_main.h"

#define LIFE 1000

static bool same(const struct tls_ticket_key *a, const struct tls_ticket_key *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static void test_change(void)
{
	struct tls_tickets *t = tls_tickets_new(LIFE, 0);
	struct tls_ticket_key first, second, third, found;

	CU_ASSERT_PTR_NOT_NULL_FATAL(t);
	CU_ASSERT(tls_tickets_seal(t, 0, &first));
	CU_ASSERT(tls_tickets_seal(t, LIFE - 1, &second));
	CU_ASSERT(same(&first, &second));
	CU_ASSERT(tls_tickets_seal(t, LIFE, &second));
	CU_ASSERT_FALSE(same(&first, &second));
	CU_ASSERT(tls_tickets_open(t, 2 * LIFE - 1, first.name, &found));
	CU_ASSERT(same(&first, &found));
	CU_ASSERT(tls_tickets_open(t, 2 * LIFE - 1, second.name, &found));
	CU_ASSERT(same(&second, &found));
	CU_ASSERT_FALSE(tls_tickets_open(t, 2 * LIFE, first.name, &found));
	CU_ASSERT(tls_tickets_open(t, 2 * LIFE, second.name, &found));
	CU_ASSERT(tls_tickets_seal(t, 2 * LIFE, &third));
	CU_ASSERT_FALSE(same(&third, &second));
	CU_ASSERT_FALSE(
	    tls_tickets_open(t, 2 * LIFE, (const unsigned char *)"0123456789abcdef", &found));
	tls_tickets_unref(t);
}

/* After a long time without clients old keys decrypt nothing, however few clients have come
 * since. */
static void test_gap(void)
{
	struct tls_tickets *t = tls_tickets_new(LIFE, 0);
	struct tls_ticket_key first, found;

	CU_ASSERT_PTR_NOT_NULL_FATAL(t);
	CU_ASSERT(tls_tickets_seal(t, 0, &first));
	CU_ASSERT_FALSE(tls_tickets_open(t, 5 * LIFE, first.name, &found));
	tls_tickets_unref(t);
	t = tls_tickets_new(LIFE, 0);
	CU_ASSERT(tls_tickets_seal(t, 0, &first));
	CU_ASSERT(tls_tickets_open(t, 3 * LIFE / 2, first.name, &found));
	CU_ASSERT_FALSE(tls_tickets_open(t, 2 * LIFE, first.name, &found));
	tls_tickets_unref(t);
}

static void test_shared(void)
{
	struct tls_tickets *t = tls_tickets_new(LIFE, 0), *other = tls_tickets_ref(t);
	struct tls_ticket_key first, found;

	CU_ASSERT(tls_tickets_seal(t, 0, &first));
	tls_tickets_unref(t);
	tls_tickets_set_lifetime(other, 10 * LIFE);
	CU_ASSERT(tls_tickets_open(other, 9 * LIFE, first.name, &found));
	tls_tickets_unref(other);
	tls_tickets_unref(NULL);
}

CUNIT_MAIN("tls_ticket", {"change", test_change}, {"gap", test_gap}, {"shared", test_shared})
