/* SPDX-License-Identifier: MIT */
/* The client table: which addresses count as one, counts with several threads, and rates on a
 * virtual clock. */
#include "net/clients.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

static uint64_t key_of(const char *text)
{
	struct sockaddr_storage a = {.ss_family = strchr(text, ':') ? AF_INET6 : AF_INET};
	void *at = a.ss_family == AF_INET6 ? (void *)&((struct sockaddr_in6 *)&a)->sin6_addr
					   : (void *)&((struct sockaddr_in *)&a)->sin_addr;

	CU_ASSERT_EQUAL_FATAL(inet_pton(a.ss_family, text, at), 1);
	return clients_key(&a);
}

static void test_keys(void)
{
	CU_ASSERT_NOT_EQUAL(key_of("127.0.0.1"), key_of("127.0.0.2"));
	CU_ASSERT_EQUAL(key_of("192.0.2.7"), key_of("::ffff:192.0.2.7"));
	CU_ASSERT_EQUAL(key_of("2001:db8::1"), key_of("2001:db8::ffff:0:0:9"));
	CU_ASSERT_NOT_EQUAL(key_of("2001:db8::1"), key_of("2001:db8:0:1::1"));
	CU_ASSERT_NOT_EQUAL(key_of("::1"), 0);
	CU_ASSERT_NOT_EQUAL(key_of("0.0.0.0"), 0);
	CU_ASSERT_NOT_EQUAL(key_of("::1"), key_of("0.0.0.1"));
}

static void test_counts(void)
{
	struct clients *p = clients_new();

	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	CU_ASSERT_EQUAL(clients_count(p, 1), 0);
	for (uint64_t key = 1; key <= 5000; key++) /* the table doubles many times */
		CU_ASSERT_EQUAL(clients_enter(p, key), 1);
	for (uint64_t key = 1; key <= 5000; key++)
		CU_ASSERT_EQUAL(clients_enter(p, key), 2);
	for (uint64_t key = 1; key <= 5000; key += 2) {
		clients_leave(p, key);
		clients_leave(p, key);
	}
	for (uint64_t key = 1; key <= 5000; key++)
		CU_ASSERT_EQUAL(clients_count(p, key), key % 2 ? 0 : 2);
	for (uint64_t key = 1; key <= 5000; key++)
		CU_ASSERT_EQUAL(clients_enter(p, key), key % 2 ? 1 : 3);
	clients_free(p);
	clients_free(NULL);
}

enum { THREADS = 4, KEYS = 300, ROUNDS = 20000 };

struct player {
	pthread_t thread;
	struct clients *clients;
	unsigned seed;
	int has[KEYS];
};

static void *play(void *arg)
{
	struct player *p = arg;

	for (int i = 0; i < ROUNDS; i++) {
		int key = rand_r(&p->seed) % KEYS;
		if (p->has[key] > 0 && rand_r(&p->seed) % 2) {
			clients_leave(p->clients, (uint64_t)key + 1);
			p->has[key]--;
		} else if (clients_enter(p->clients, (uint64_t)key + 1) > 0) {
			p->has[key]++;
		}
	}
	return NULL;
}

/* Whatever the threads do at once, the count of every key is the number of entries minus exits. */
static void test_threads(void)
{
	struct player p[THREADS];
	struct clients *clients = clients_new();

	for (int i = 0; i < THREADS; i++) {
		p[i] = (struct player){.clients = clients, .seed = (unsigned)i};
		pthread_create(&p[i].thread, NULL, play, &p[i]);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(p[i].thread, NULL);
	for (int key = 0; key < KEYS; key++) {
		int64_t has = 0;
		for (int i = 0; i < THREADS; i++)
			has += p[i].has[key];
		CU_ASSERT_EQUAL(clients_enter(clients, (uint64_t)key + 1), has + 1);
	}
	clients_free(clients);
}

static int opens(struct clients *p, uint64_t key, double per_s, int64_t now_ns, int tries)
{
	int n = 0;

	for (int i = 0; i < tries; i++)
		n += clients_may_open(p, key, per_s, now_ns);
	return n;
}

static void test_rates(void)
{
	const int64_t s = 1000000000, now = 5 * s;
	struct clients *p = clients_new();

	CU_ASSERT_EQUAL(opens(p, 1, 100, now, 1000), 100); /* a second's worth at once */
	CU_ASSERT_EQUAL(opens(p, 1, 100, now + s / 10, 1000), 10);
	/* waiting does not save up more */
	CU_ASSERT_EQUAL(opens(p, 1, 100, now + 100 * s, 1000), 100);
	CU_ASSERT_EQUAL(opens(p, 2, 1, now, 1000), 10); /* the smallest burst */
	CU_ASSERT_EQUAL(opens(p, 2, 1, now + s, 1000), 1);
	CU_ASSERT_EQUAL(opens(p, 3, 1e-10, now, 1000), 10); /* a very low rate still has a burst */
	clients_free(p);
}

/* One address that floods hardly affects others, though the rows are small. */
static void test_rate_neighbours(void)
{
	struct clients *p = clients_new();
	int hurt = 0;

	for (uint64_t key = 1; key <= 40; key++)
		opens(p, key << 40, 1, 1, 100);
	for (uint64_t key = 1; key <= 1000; key++)
		hurt += !clients_may_open(p, key, 1, 1);
	/* Expected: 1000 * (40 / 4096)^2 = 0.1; more than 5 once in 10^9 starts. */
	CU_ASSERT(hurt <= 5);
	clients_free(p);
}

CUNIT_MAIN("clients", {"keys", test_keys}, {"counts", test_counts}, {"threads", test_threads},
    {"rates", test_rates}, {"neighbours of a flood", test_rate_neighbours})
