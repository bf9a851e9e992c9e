/* SPDX-License-Identifier: MIT */
/*
 * The client table; see clients.h.
 *
 * Counts: 16 shards, each a chained hash table with its own lock, which doubles when it is full. An
 * entry exists while its address has a connection, so the size of the table is bounded by the
 * number of connections. Clients can choose addresses (IPv6 networks are cheap) but must not be
 * able to choose their buckets. The hash therefore has a seed drawn at startup (text/sip.h).
 *
 * Rates: the generic cell rate algorithm (ITU-T I.371), one 64-bit time per cell, in two rows with
 * different hashes. An address is refused only if its cells in both rows are used up (as with the
 * bins of Stochastic Fair Blue, Feng et al. 2001).
 */
#include "net/clients.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <weir/annotate.h>
#include <weir/error.h>

#include "text/sip.h"

/* Number of shards, each with a lock: a power of two. 16 is a guess: most servers have fewer I/O
 * threads. */
#define SHARDS 16
/* Initial buckets of a shard, a power of two. */
#define BUCKETS_FIRST 16
/* Cells per row; a row takes 32 KiB. */
#define CELLS 4096
/* Smallest burst that is allowed; a browser opens 6 connections at the same time. */
#define BURST_MIN 10.0
/* Longest interval between two connections of an address, about 115 days. The smallest burst is ten
 * such intervals, which is still far below the limit of an int64_t. */
#define EACH_MAX_NS 10000000000000000

struct entry {
	struct entry *next;
	uint64_t key, hash;
	uint32_t n;
};

struct shard {
	WEIR_ALIGNED pthread_mutex_t lock;
	struct entry **bucket; /* NULL until the first entry; all members are guarded by lock */
	size_t n_buckets, n_entries;
};

struct clients {
	uint64_t seed[2];
	struct shard shard[SHARDS];
	/* per cell, the time in ns at which the whole burst is available again */
	_Atomic int64_t cell[2][CELLS];
};

/* ---- keys ---- */

uint64_t clients_key(const struct sockaddr_storage *addr)
{
	const uint8_t *six = ((const struct sockaddr_in6 *)addr)->sin6_addr.s6_addr;
	uint32_t four = ((const struct sockaddr_in *)addr)->sin_addr.s_addr;
	uint64_t key;

	if (addr->ss_family == AF_INET6 &&
	    !IN6_IS_ADDR_V4MAPPED(&((const struct sockaddr_in6 *)addr)->sin6_addr)) {
		memcpy(&key, six, sizeof(key));
		return key != 0 ? key : 1;
	}
	if (addr->ss_family == AF_INET6)
		memcpy(&four, six + 12, sizeof(four));
	/* No IPv6 address has this key: as a prefix it would lie in 0000::/8, which is not assigned
	 * (RFC 4291, 2.4). */
	uint8_t bytes[8] = {0, 0, 0xff, 0xff};
	memcpy(bytes + 4, &four, sizeof(four));
	memcpy(&key, bytes, sizeof(key));
	return key;
}

uint64_t clients_key_of_user(uid_t user)
{
	const uint32_t number = user;
	uint8_t bytes[8] = {0, 0, 0xff, 0xfe}; /* as above, and apart from IPv4 addresses */
	uint64_t key;

	memcpy(bytes + 4, &number, sizeof(number));
	memcpy(&key, bytes, sizeof(key));
	return key;
}

static uint64_t hash_key(const struct clients *p, uint64_t key)
{
	return sip_hash(p->seed, &key, sizeof(key));
}

/* ---- lifecycle ---- */

struct clients *clients_new(void)
{
	struct clients *p = aligned_alloc(
	    _Alignof(struct clients), (sizeof(*p) + _Alignof(struct clients) - 1) /
					  _Alignof(struct clients) * _Alignof(struct clients));

	if (!p)
		return NULL;
	memset(p, 0, sizeof(*p));
	if (getrandom(p->seed, sizeof(p->seed), 0) != sizeof(p->seed)) {
		free(p);
		return NULL;
	}
	for (int i = 0; i < SHARDS; i++)
		pthread_mutex_init(&p->shard[i].lock, NULL);
	return p;
}

void clients_free(struct clients *p)
{
	if (!p)
		return;
	for (int i = 0; i < SHARDS; i++) {
		struct shard *s = &p->shard[i];
		for (size_t k = 0; k < s->n_buckets; k++)
			while (s->bucket[k]) {
				struct entry *e = s->bucket[k];
				s->bucket[k] = e->next;
				free(e);
			}
		free(s->bucket);
		pthread_mutex_destroy(&s->lock);
	}
	free(p);
}

/* ---- counts ---- */

static struct shard *shard_of(struct clients *p, uint64_t hash)
{
	return &p->shard[hash >> 60 & (SHARDS - 1)];
}

/* Return the link to the entry of `key`, or the link where the entry would be inserted. The shard
 * must have buckets. */
static struct entry **find(const struct shard *s, uint64_t hash, uint64_t key)
{
	struct entry **at = &s->bucket[hash & (s->n_buckets - 1)];

	while (*at && (*at)->key != key)
		at = &(*at)->next;
	return at;
}

/* Double the number of buckets. Called when there are as many entries as buckets. If out of memory,
 * the chains grow longer instead. */
static void widen(struct shard *s)
{
	size_t n = s->n_buckets ? s->n_buckets * 2 : BUCKETS_FIRST;
	struct entry **wide = calloc(n, sizeof(struct entry *));

	if (!wide)
		return;
	for (size_t k = 0; k < s->n_buckets; k++)
		while (s->bucket[k]) {
			struct entry *e = s->bucket[k];
			s->bucket[k] = e->next;
			e->next = wide[e->hash & (n - 1)];
			wide[e->hash & (n - 1)] = e;
		}
	free(s->bucket);
	s->bucket = wide;
	s->n_buckets = n;
}

static int64_t enter(struct shard *s, uint64_t hash, uint64_t key)
{
	struct entry **at;

	if (s->n_entries >= s->n_buckets)
		widen(s);
	if (!s->bucket)
		return 0;
	at = find(s, hash, key);
	if (!*at) {
		*at = malloc(sizeof(**at));
		if (!*at)
			return 0;
		**at = (struct entry){.key = key, .hash = hash};
		s->n_entries++;
	}
	return ++(*at)->n;
}

int64_t clients_enter(struct clients *p, uint64_t key)
{
	uint64_t hash = hash_key(p, key);
	struct shard *s = shard_of(p, hash);
	int64_t n;

	pthread_mutex_lock(&s->lock);
	n = enter(s, hash, key);
	pthread_mutex_unlock(&s->lock);
	return n;
}

int64_t clients_count(struct clients *p, uint64_t key)
{
	uint64_t hash = hash_key(p, key);
	struct shard *s = shard_of(p, hash);
	struct entry *e;
	int64_t n;

	pthread_mutex_lock(&s->lock);
	e = s->bucket ? *find(s, hash, key) : NULL;
	n = e ? e->n : 0;
	pthread_mutex_unlock(&s->lock);
	return n;
}

void clients_leave(struct clients *p, uint64_t key)
{
	uint64_t hash = hash_key(p, key);
	struct shard *s = shard_of(p, hash);
	struct entry **at, *e, *dead = NULL;

	pthread_mutex_lock(&s->lock);
	at = find(s, hash, key);
	e = *at;
	WEIR_ASSERT(e && e->n > 0);
	if (--e->n == 0) {
		*at = e->next;
		s->n_entries--;
		dead = e;
	}
	pthread_mutex_unlock(&s->lock);
	free(dead);
}

/* ---- rates ---- */

/* Count one connection in the cell at `now_ns`. Returns false if the burst of the cell is used up.
 * Relaxed, since cells are independent numbers. */
static bool cell_take(_Atomic int64_t *cell, int64_t now_ns, int64_t each_ns, int64_t burst_ns)
{
	int64_t at = atomic_load_explicit(cell, memory_order_relaxed);
	int64_t next;

	do {
		if (at - now_ns > burst_ns - each_ns)
			return false;
		next = (at > now_ns ? at : now_ns) + each_ns;
	} while (!atomic_compare_exchange_weak_explicit(
	    cell, &at, next, memory_order_relaxed, memory_order_relaxed));
	return true;
}

bool clients_may_open(struct clients *p, uint64_t key, double per_s, int64_t now_ns)
{
	uint64_t hash = hash_key(p, key);
	int64_t each_ns = 1e9 / per_s < EACH_MAX_NS ? (int64_t)(1e9 / per_s) : EACH_MAX_NS;
	int64_t burst_ns = (int64_t)((double)each_ns * (per_s > BURST_MIN ? per_s : BURST_MIN));
	bool first = cell_take(&p->cell[0][hash % CELLS], now_ns, each_ns, burst_ns);
	bool second = cell_take(&p->cell[1][(hash >> 32) % CELLS], now_ns, each_ns, burst_ns);

	return first || second;
}
