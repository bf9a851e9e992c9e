/* SPDX-License-Identifier: MIT */
/* Which connection makes room when all slots are in use. No sockets: nothing is accepted
 * afterwards. */
#include "admin/http/connections.h"

#include "cunit_main.h"

static struct connections connections;

/* All slots read requests, each from an address of its own; later slots have later deadlines. */
static void fill(void)
{
	connections = (struct connections){.epoll_fd = -1, .listen_fd = -1, .spare = {-1, -1}};
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		connections.slot[i] = (struct connection){.network = {{4, (uint8_t)i}},
		    .fd = -1,
		    .state = CONNECTION_READING,
		    .until_ns = 1000 + i};
}

static void from_one_address(int first, int last)
{
	for (int i = first; i <= last; i++)
		connections.slot[i].network = connections.slot[first].network;
}

/* Make room. Returns the slot that became free; -1: none or several. */
static int evicted(void)
{
	int free_slot = -1, n = 0;

	connections_accept(&connections);
	for (int i = 0; i < CONNECTIONS_MAX; i++) {
		if (connections.slot[i].state == CONNECTION_FREE) {
			free_slot = i;
			n++;
		}
	}
	return n == 1 ? free_slot : -1;
}

static void test_nearest_deadline(void)
{
	fill();
	CU_ASSERT_EQUAL(evicted(), 0);
	fill();
	connections.slot[9].until_ns = 1;
	CU_ASSERT_EQUAL(evicted(), 9);
	fill();
	connections.slot[CONNECTIONS_MAX - 1].until_ns = 1;
	CU_ASSERT_EQUAL(evicted(), CONNECTIONS_MAX - 1);
}

/* The address that holds the most slots comes before the nearest deadline. */
static void test_largest_crowd(void)
{
	fill();
	from_one_address(3, 4);
	from_one_address(10, 12);
	connections.slot[11].until_ns = 1009;
	CU_ASSERT_EQUAL(evicted(), 11);
}

/* A connection that libmicrohttpd owns is not closed while there is another one. */
static void test_served_last(void)
{
	for (int other = 0; other < CONNECTIONS_MAX; other++) {
		fill();
		from_one_address(0, CONNECTIONS_MAX - 1);
		for (int i = 0; i < CONNECTIONS_MAX; i++)
			connections.slot[i].state = CONNECTION_SERVED;
		connections.slot[other].state = CONNECTION_CLOSING;
		connections.slot[other].network.bytes[1] = 99;
		connections.slot[other].until_ns = 9999;
		CU_ASSERT_EQUAL(evicted(), other);
	}
}

static void test_all_served(void)
{
	fill();
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		connections.slot[i].state = CONNECTION_SERVED;
	CU_ASSERT_EQUAL(evicted(), -1);
}

CUNIT_MAIN("eviction", {"the nearest deadline", test_nearest_deadline},
    {"the largest crowd", test_largest_crowd}, {"those of libmicrohttpd last", test_served_last},
    {"all served", test_all_served})
