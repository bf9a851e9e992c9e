/* SPDX-License-Identifier: MIT */
/*
 * torture_queue [producers=4] [consumers=4] [seconds=2] [seed=1]
 *
 * Producers push runs of random length, class and key into one queue. Consumers pop batches of
 * random size, some by key, from partitions under leases, while the limit changes. In three rounds
 * the queue is shared, exclusive and partitioned, and in three more its discipline is `shortest`. Each event carries its producer and a sequence
 * number per (producer, class, key). The test fails, with the numbers, when an event is lost or
 * seen twice, when within one producer, class and key the order is broken (leasing modes), or when
 * the length is not exact at the end. In the output, "pushed" and "popped" are events, "refused"
 * those for which the queue was full.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "event/bins.h"
#include "event/queue.h"

#define KEYS       8
#define CLASSES    3
#define MAX_TASKS  16
#define POOL_SLOTS 4096

struct item {
	struct weir_event ev;
	int producer, key;
	uint64_t seq;
	atomic_bool busy; /* in the queue: set by the producer, cleared by a consumer */
};

enum kind { SHARED, EXCLUSIVE, PARTITIONED };

static struct queue q;
static enum kind kind;
static int producers = 4, consumers = 4;
static unsigned seed = 1;
static atomic_bool stop, producers_done;
static atomic_ullong pushed, popped, refused, faults;
static struct item *items[MAX_TASKS];
/* Last sequence number seen per producer, class and key; exact order is guaranteed only under
 * leases. */
static _Atomic uint64_t last[MAX_TASKS][CLASSES][KEYS];

static void fault(const char *what, const struct item *it)
{
	if (atomic_fetch_add(&faults, 1) < 10)
		fprintf(stderr, "%s: producer %d class %d key %d seq %llu\n", what, it->producer,
		    it->ev.class_id, it->key, (unsigned long long)it->seq);
}

static void *produce(void *arg)
{
	int id = (int)(intptr_t)arg;
	unsigned rnd = seed * 7919 + (unsigned)id;
	uint64_t seq[CLASSES][KEYS] = {{0}};
	int at = 0;

	while (!atomic_load(&stop)) {
		struct weir_event *run[64];
		int n = 0, want = 1 + rand_r(&rnd) % 64;
		for (; n < want; n++, at = (at + 1) % POOL_SLOTS) {
			struct item *it = &items[id][at];
			if (atomic_load(&it->busy))
				break;
			it->ev.class_id = (uint8_t)(rand_r(&rnd) % CLASSES);
			it->key = rand_r(&rnd) % KEYS;
			it->ev.key = (uint64_t)it->key + 1;
			it->ev.queued_ns = clock_now_ns();
			bin_note(&it->ev, (uint8_t)(rand_r(&rnd) % BINS));
			it->producer = id;
			run[n] = &it->ev;
		}
		if (n == 0) {
			sched_yield();
			continue;
		}
		lock_take(&q.lock);
		int room = (int)queue_room_locked(&q);
		int m = n < room ? n : room;
		for (int i = 0; i < m; i++) {
			struct item *it = (struct item *)run[i];
			it->seq = ++seq[it->ev.class_id][it->key];
			atomic_store(&it->busy, true);
		}
		int done = queue_push_locked(&q, run, m);
		lock_release(&q.lock);
		atomic_fetch_add(&pushed, (unsigned long long)done);
		atomic_fetch_add(&refused, (unsigned long long)(n - done));
		at = (at + POOL_SLOTS - (n - done)) % POOL_SLOTS;
		if (done < m)
			fault("a lane did not grow", (struct item *)run[done]);
	}
	return NULL;
}

static void look(struct weir_event *ev)
{
	struct item *it = (struct item *)ev;
	_Atomic uint64_t *l = &last[it->producer][ev->class_id][it->key];

	if (kind != SHARED) {
		if (it->seq != atomic_load(l) + 1)
			fault("out of order or lost", it);
		atomic_store(l, it->seq);
	} else {
		atomic_fetch_add(l, 1);
	}
	if (!atomic_exchange(&it->busy, false))
		fault("seen twice", it);
}

static void *consume(void *arg)
{
	int rank = (int)(intptr_t)arg;
	unsigned rnd = seed * 104729 + (unsigned)rank;
	struct weir_event *out[WEIR_BATCH_MAX];

	for (;;) {
		bool last_look = atomic_load(&producers_done);
		struct queue_take t = {
		    .rank = rank,
		    .n_ranks = consumers,
		    .max = 1 + rand_r(&rnd) % WEIR_BATCH_MAX,
		    .sharers = 1 + rand_r(&rnd) % consumers,
		    .by_key = rand_r(&rnd) % 2,
		    .now_ns = clock_now_ns(),
		};
		int n = queue_pop(&q, &t, out);
		for (int i = 0; i < n; i++)
			look(out[i]);
		atomic_fetch_add(&popped, (unsigned long long)n);
		if (n > 0)
			queue_release(&q, t.part);
		else if (last_look && (kind == PARTITIONED || queue_length(&q) == 0))
			return NULL;
		if (rand_r(&rnd) % 1024 == 0)
			queue_set_limit(&q, 16 + (uint32_t)rand_r(&rnd) % 4096);
	}
}

static void round_of(enum kind k, bool shortest, double seconds)
{
	pthread_t p[MAX_TASKS], c[MAX_TASKS];
	const char *names[] = {"shared", "exclusive", "partitioned"};

	kind = k;
	atomic_store(&stop, false);
	atomic_store(&producers_done, false);
	atomic_store(&pushed, 0);
	atomic_store(&popped, 0);
	atomic_store(&refused, 0);
	memset(last, 0, sizeof(last));
	if (queue_init(&q, CLASSES, k == PARTITIONED ? 5 : 1, 1024, true, k != SHARED) != 0)
		abort();
	if (shortest && queue_set_shortest(&q, NS_PER_MS / 10, k != SHARED) != 0)
		abort();
	for (int i = 0; i < consumers; i++)
		pthread_create(&c[i], NULL, consume, (void *)(intptr_t)i);
	for (int i = 0; i < producers; i++)
		pthread_create(&p[i], NULL, produce, (void *)(intptr_t)i);
	int64_t end_ns = clock_now_ns() + (int64_t)(seconds * NS_PER_S);
	while (clock_now_ns() < end_ns && atomic_load(&faults) == 0)
		sched_yield();
	atomic_store(&stop, true);
	for (int i = 0; i < producers; i++)
		pthread_join(p[i], NULL);
	atomic_store(&producers_done, true);
	for (int i = 0; i < consumers; i++)
		pthread_join(c[i], NULL);
	printf("%-12s %s pushed %llu popped %llu refused %llu left %u\n", names[k],
	    shortest ? "shortest" : "priority", (unsigned long long)atomic_load(&pushed),
	    (unsigned long long)atomic_load(&popped), (unsigned long long)atomic_load(&refused),
	    queue_length(&q));
	if (atomic_load(&pushed) != atomic_load(&popped) || queue_length(&q) != 0) {
		fprintf(stderr, "events were lost\n");
		exit(1);
	}
	queue_fini(&q);
}

int main(int argc, char **argv)
{
	double seconds = argc > 3 ? atof(argv[3]) : 2;

	producers = argc > 1 ? atoi(argv[1]) : producers;
	consumers = argc > 2 ? atoi(argv[2]) : consumers;
	seed = argc > 4 ? (unsigned)atoi(argv[4]) : seed;
	if (producers < 1 || producers > MAX_TASKS || consumers < 1 || consumers > MAX_TASKS) {
		fprintf(stderr, "1 to %d producers and consumers\n", MAX_TASKS);
		return 2;
	}
	for (int i = 0; i < producers; i++)
		items[i] = calloc(POOL_SLOTS, sizeof(struct item));
	for (int k = SHARED; k <= PARTITIONED; k++) {
		round_of((enum kind)k, false, seconds / 6);
		round_of((enum kind)k, true, seconds / 6);
	}
	for (int i = 0; i < producers; i++)
		free(items[i]);
	return atomic_load(&faults) ? 1 : 0;
}
