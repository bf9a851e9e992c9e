/* SPDX-License-Identifier: MIT */
/* The lists of connections by what they wait for: their order, and that a connection is in one. */
#include "net/net_conn.h"

#include <string.h>

#include "cunit_main.h"

#define N 4

static struct net_io io;
static struct net_conn conn[N];

static void begin(void)
{
	memset(&io, 0, sizeof(io));
	memset(conn, 0, sizeof(conn));
	for (int i = 0; i < NET_LISTS; i++)
		io.list[i].tail = &io.list[i].first;
}

/* Whether the list `id` has the connections whose numbers are in `order`, in this order. */
static bool is(enum net_list_id id, const char *order)
{
	const struct net_list *list = &io.list[id];
	struct net_conn *const *link = &list->first;

	for (; *order; order++) {
		if (*link != &conn[*order - '0'] || (*link)->wait.prev != link)
			return false;
		link = (struct net_conn *const *)&(*link)->wait.next;
	}
	return !*link && list->tail == link;
}

static void test_join(void)
{
	begin();
	CU_ASSERT_TRUE(is(LIST_IDLE, ""));
	for (int i = 0; i < N; i++)
		net_list_join(&io, &conn[i], LIST_IDLE);
	CU_ASSERT_TRUE(is(LIST_IDLE, "0123"));
	CU_ASSERT_EQUAL(io.list[LIST_IDLE].n, N);
	net_list_join(&io, &conn[0], LIST_IDLE); /* keeps its place */
	CU_ASSERT_TRUE(is(LIST_IDLE, "0123"));
	net_list_join(&io, &conn[1], LIST_SLOW);
	net_list_join(&io, &conn[3], LIST_SLOW);
	CU_ASSERT_TRUE(is(LIST_IDLE, "02"));
	CU_ASSERT_TRUE(is(LIST_SLOW, "13"));
	CU_ASSERT_EQUAL(io.list[LIST_SLOW].n, 2);
}

static void test_leave(void)
{
	begin();
	net_list_leave(&io, &conn[0]); /* is in none */
	for (int i = 0; i < N; i++)
		net_list_join(&io, &conn[i], LIST_HALF);
	net_list_leave(&io, &conn[3]);
	CU_ASSERT_TRUE(is(LIST_HALF, "012"));
	net_list_leave(&io, &conn[0]);
	net_list_leave(&io, &conn[0]);
	CU_ASSERT_TRUE(is(LIST_HALF, "12"));
	net_list_leave(&io, &conn[1]);
	net_list_leave(&io, &conn[2]);
	CU_ASSERT_TRUE(is(LIST_HALF, ""));
	CU_ASSERT_EQUAL(io.list[LIST_HALF].n, 0);
	net_list_join(&io, &conn[2], LIST_HALF);
	CU_ASSERT_TRUE(is(LIST_HALF, "2"));
}

static void test_rotate(void)
{
	begin();
	for (int i = 0; i < N; i++)
		net_list_join(&io, &conn[i], LIST_SLOW);
	net_list_rotate(&io, &conn[1]);
	CU_ASSERT_TRUE(is(LIST_SLOW, "0231"));
	net_list_rotate(&io, &conn[1]);
	CU_ASSERT_TRUE(is(LIST_SLOW, "0231"));
}

static void test_name(void)
{
	struct sockaddr_storage addr = {.ss_family = AF_INET6};

	begin();
	((struct sockaddr_in6 *)&addr)->sin6_addr = in6addr_loopback;
	net_conn_name(&conn[0], &addr);
	CU_ASSERT_STRING_EQUAL(conn[0].client.address, "::1");
	CU_ASSERT_EQUAL(conn[0].client.address_n, 3);
	addr.ss_family = AF_INET;
	((struct sockaddr_in *)&addr)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	net_conn_name(&conn[0], &addr);
	CU_ASSERT_STRING_EQUAL(conn[0].client.address, "127.0.0.1");
}

CUNIT_MAIN("net_conn", {"join", test_join}, {"leave", test_leave}, {"rotate", test_rotate},
    {"name", test_name})
