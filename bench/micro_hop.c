/* SPDX-License-Identifier: MIT */
/*
 * Measures the cost of a hop to a stage: sink, admission, queue, wake-ups, metrics, handle, finish.
 *
 *   two cores  A sender on core 0 offers runs of events, as fast as it can, to a stage with one
 *              handler thread on core 1. The row shows the ns per event of the slower side. A
 *              counter limits the events in flight to IN_FLIGHT, and shows the sender which events
 *              it may reuse.
 *   inline     The same stage runs in the sender's thread.
 *   bare       Two queues without the framework, for comparison: a mutex around a spliced list, and
 *              a bounded ring of sequenced cells (Vyukov) that are claimed in runs. The consumer
 *              reads each item.
 *   idle       The time from offering an event to a parked handler until the handler runs, compared
 *              with a bare futex.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <weir/graph.h>
#include <weir/stage.h>

#include "bench.h"

#define EVENTS    4096    /* events in total */
#define IN_FLIGHT 3072    /* maximum in flight, so that the queue never refuses */
#define ITEMS     2000000 /* per round */
#define IDLE_HOPS 2000

static struct weir_event events[EVENTS] __attribute__((aligned(64)));
static _Alignas(64) atomic_ulong consumed;
static _Alignas(64) _Atomic int64_t ran_at_ns;

/* ---- the stage under test ---- */

static uint64_t ended; /* used only by the handler thread */

static void hop_finish(struct weir_event *ev, int status)
{
	(void)ev, (void)status;
	ended++;
}

static const struct weir_event_type hop_type = {
    .name = "hop", .size = sizeof(struct weir_event), .finish = hop_finish};

static void hop_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	weir_event_finish_run(ev, n, WEIR_OK);
	atomic_store_explicit(&consumed, ended, memory_order_release);
}

static void idle_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	atomic_store(&ran_at_ns, bench_now_ns());
	hop_handle(st, ev, n);
}

static int pin_second(struct weir_stage *st)
{
	(void)st;
	bench_pin(1);
	return 0;
}

static int pin_none(struct weir_stage *st)
{
	(void)st;
	return 0;
}

#define OPS(id, text, fn, init)                                                                    \
	static const struct weir_stage_ops id = {.abi = WEIR_STAGE_ABI,                            \
	    .name = text,                                                                          \
	    .summary = "bench",                                                                    \
	    .accepts = &hop_type,                                                                  \
	    .handle = fn,                                                                          \
	    .thread_init = init}
OPS(hop_ops, "b.hop", hop_handle, pin_second);
OPS(inline_ops, "b.inline", hop_handle, pin_none);
OPS(idle_ops, "b.idle", idle_handle, pin_second);

/* Build a graph with one stage. The admission policy matters only in the rows "two cores": in the
 * other rows its cost is too small to be visible. */
static struct weir_graph *graph_of(
    const struct weir_stage_ops *ops, bool inlined, const char *spin, const char *policy)
{
	struct weir_spec *spec = weir_spec_new("bench");
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	struct weir_err err = {0};
	struct weir_graph *g = NULL;
	char why[256] = "";

	weir_stage_register(ops, &err);
	struct weir_stage_spec *s = weir_spec_add_stage(spec, "hop", ops->name);
	if (weir_stage_spec_set(s, "threads.max", "1", why, sizeof(why)) != 0 ||
	    (policy && weir_stage_spec_set(s, "admission.policy", policy, why, sizeof(why)) != 0) ||
	    (spin && weir_stage_spec_set(s, "threads.spin", spin, why, sizeof(why)) != 0) ||
	    (s->inlined = inlined, weir_graph_build(spec, &g, errs)) != 0 ||
	    weir_graph_start(g, errs) != 0 || weir_thread_attach(g, "bench") != 0) {
		fprintf(stderr, "graph: %s %s\n", why, errs->err[0].text);
		exit(1);
	}
	free(errs);
	return g;
}

static void graph_end(struct weir_graph *g)
{
	struct weir_drain_report r;

	weir_thread_detach();
	weir_graph_drain(g, 10000000000LL, &r);
	weir_graph_free(g);
	if (r.law_error != 0 || r.closed != 0) {
		fprintf(stderr, "events were lost (%ld) or closed before they were complete\n",
		    (long)r.law_error);
		exit(1);
	}
}

struct hop {
	struct weir_stage *stage;
	int run;
};

static double hop_run(void *arg)
{
	const struct hop *h = arg;
	struct weir_event *run[WEIR_BATCH_MAX];
	uint64_t sent = 0;

	bench_pin(0);
	ended = 0;
	atomic_store(&consumed, 0);
	int64_t start = bench_now_ns();
	while (sent < ITEMS) {
		while (sent - atomic_load_explicit(&consumed, memory_order_acquire) > IN_FLIGHT)
			__builtin_ia32_pause();
		for (int i = 0; i < h->run; i++) {
			struct weir_event *ev = &events[(sent + (uint64_t)i) % EVENTS];
			weir_event_init(ev, &hop_type, start);
			run[i] = ev;
		}
		int taken = weir_offer(h->stage, run, h->run, NULL);
		if (taken != h->run) {
			fprintf(stderr, "the stage refused events: other processes used the second "
					"core for too long\n");
			exit(1);
		}
		sent += (uint64_t)h->run;
	}
	while (atomic_load_explicit(&consumed, memory_order_acquire) < sent)
		__builtin_ia32_pause();
	return (double)(bench_now_ns() - start) / (double)sent;
}

/* Measure the benchmark's own cost per event: initialise runs of events without offering them to a
 * stage. This is the first row, and the thread is not pinned yet: a pool that is made by a pinned
 * thread believes that there is one core, and its threads neither spin nor pause. */
static double making_run(void *arg)
{
	const struct hop *h = arg;
	struct weir_event *run[WEIR_BATCH_MAX];
	uint64_t sent = 0;

	int64_t start = bench_now_ns();
	while (sent < ITEMS) {
		for (int i = 0; i < h->run; i++) {
			struct weir_event *ev = &events[(sent + (uint64_t)i) % EVENTS];
			ev->state = WEIR_EVENT_IDLE;
			weir_event_init(ev, &hop_type, start);
			run[i] = ev;
		}
		__asm__ volatile("" : : "r"(run) : "memory");
		sent += (uint64_t)h->run;
	}
	for (int i = 0; i < EVENTS; i++)
		events[i].state = WEIR_EVENT_IDLE;
	return (double)(bench_now_ns() - start) / (double)sent;
}

/* ---- bare structures ---- */

struct bare {
	int run;
	void *(*consumer)(void *arg);
	void (*push)(struct weir_event **ev, int n);
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct weir_event *list_head, **list_tail = &list_head;

static void touch(struct weir_event *ev)
{
	ev->state = WEIR_EVENT_FINISHED;
	ended++;
}

static void list_push(struct weir_event **ev, int n)
{
	for (int i = 0; i + 1 < n; i++)
		ev[i]->next = ev[i + 1];
	ev[n - 1]->next = NULL;
	pthread_mutex_lock(&list_lock);
	*list_tail = ev[0];
	list_tail = &ev[n - 1]->next;
	pthread_mutex_unlock(&list_lock);
}

static void *list_consumer(void *arg)
{
	bench_pin(1);
	while (ended < ITEMS) {
		pthread_mutex_lock(&list_lock);
		struct weir_event *ev = list_head;
		list_head = NULL;
		list_tail = &list_head;
		pthread_mutex_unlock(&list_lock);
		for (struct weir_event *next; ev; ev = next) {
			next = ev->next;
			touch(ev);
		}
		atomic_store_explicit(&consumed, ended, memory_order_release);
	}
	return arg;
}

struct cell {
	atomic_ulong sequence;
	struct weir_event *ev;
};
static struct cell cells[EVENTS];
static _Alignas(64) atomic_ulong ring_tail;
static _Alignas(64) atomic_ulong ring_head;

static void ring_push(struct weir_event **ev, int n)
{
	unsigned long at = atomic_fetch_add(&ring_tail, (unsigned long)n);

	for (int i = 0; i < n; i++) {
		struct cell *c = &cells[(at + (unsigned long)i) % EVENTS];
		c->ev = ev[i];
		atomic_store_explicit(
		    &c->sequence, at + (unsigned long)i + 1, memory_order_release);
	}
}

static void *ring_consumer(void *arg)
{
	unsigned long head = 0;

	bench_pin(1);
	atomic_store(&ring_head, 0);
	while (ended < ITEMS) {
		int n = 0;
		while (n < 64 &&
		       atomic_load_explicit(&cells[(head + (unsigned long)n) % EVENTS].sequence,
			   memory_order_acquire) == head + (unsigned long)n + 1)
			n++;
		for (int i = 0; i < n; i++)
			touch(cells[(head + (unsigned long)i) % EVENTS].ev);
		head += (unsigned long)n;
		if (n)
			atomic_store_explicit(&consumed, ended, memory_order_release);
	}
	return arg;
}

static double bare_run(void *arg)
{
	const struct bare *b = arg;
	struct weir_event *run[WEIR_BATCH_MAX];
	pthread_t thread;
	uint64_t sent = 0;

	ended = 0;
	atomic_store(&consumed, 0);
	atomic_store(&ring_tail, 0);
	for (int i = 0; i < EVENTS; i++)
		atomic_store(&cells[i].sequence, 0);
	if (pthread_create(&thread, NULL, b->consumer, NULL) != 0)
		exit(1);
	bench_pin(0);
	int64_t start = bench_now_ns();
	while (sent < ITEMS) {
		while (sent - atomic_load_explicit(&consumed, memory_order_acquire) > IN_FLIGHT)
			__builtin_ia32_pause();
		for (int i = 0; i < b->run; i++) {
			struct weir_event *ev = &events[(sent + (uint64_t)i) % EVENTS];
			*ev = (struct weir_event){.type = &hop_type, .arrival_ns = start};
			run[i] = ev;
		}
		b->push(run, b->run);
		sent += (uint64_t)b->run;
	}
	pthread_join(thread, NULL);
	double ns = (double)(bench_now_ns() - start) / (double)sent;
	for (int i = 0; i < EVENTS; i++)
		events[i].state = WEIR_EVENT_IDLE;
	return ns;
}

/* ---- latency of waking an idle thread ---- */

/* Sleep for `ns`, so that the other side goes to sleep. */
static void idle_for(int64_t ns)
{
	struct timespec ts = {0, ns};

	nanosleep(&ts, NULL);
}

struct idle {
	struct weir_stage *stage;
	/* time between hops: long, so that the handler parks, or short, so that it keeps
	 * spinning */
	int64_t pause_ns;
};

static double idle_run(void *arg)
{
	const struct idle *h = arg;
	static double v[IDLE_HOPS];

	bench_pin(0);
	for (int i = 0; i < IDLE_HOPS; i++) {
		struct weir_event *ev = &events[i % EVENTS];
		if (h->pause_ns >= 50000)
			idle_for(h->pause_ns);
		else
			for (int64_t end = bench_now_ns() + h->pause_ns; bench_now_ns() < end;)
				__builtin_ia32_pause();
		atomic_store(&ran_at_ns, 0);
		weir_event_init(ev, &hop_type, 1);
		int64_t start = bench_now_ns(), at;
		weir_offer(h->stage, &ev, 1, NULL);
		while ((at = atomic_load(&ran_at_ns)) == 0)
			__builtin_ia32_pause();
		v[i] = (double)(at - start);
	}
	return bench_summary(v, IDLE_HOPS).median;
}

static atomic_uint word;
static atomic_bool futex_stop;

static void *futex_sleeper(void *arg)
{
	bench_pin(1);
	while (!atomic_load(&futex_stop)) {
		while (atomic_load(&word) == 0)
			syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
		atomic_store(&ran_at_ns, bench_now_ns());
		atomic_store(&word, 0);
	}
	return arg;
}

static double futex_run(void *arg)
{
	static double v[IDLE_HOPS];
	pthread_t thread;

	(void)arg;
	atomic_store(&futex_stop, false);
	if (pthread_create(&thread, NULL, futex_sleeper, NULL) != 0)
		exit(1);
	bench_pin(0);
	for (int i = 0; i < IDLE_HOPS; i++) {
		idle_for(100000);
		atomic_store(&ran_at_ns, 0);
		if (i == IDLE_HOPS - 1)
			atomic_store(&futex_stop, true);
		int64_t start = bench_now_ns(), at;
		atomic_store(&word, 1);
		syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		while ((at = atomic_load(&ran_at_ns)) == 0)
			__builtin_ia32_pause();
		v[i] = (double)(at - start);
	}
	pthread_join(thread, NULL);
	return bench_summary(v, IDLE_HOPS).median;
}

/* ---- the table ---- */

static double row(const char *what, struct bench_stat s, const char *aim)
{
	printf("%-44s %9.1f %9.1f %9.1f   %-10s%s\n", what, s.median, s.low, s.high, aim,
	    s.far ? " (cores far)" : "");
	fflush(stdout);
	return s.median;
}

static void hop_rows(const char *what, const struct weir_stage_ops *ops, bool inlined,
    const char *policy, const char *const *aims)
{
	const int runs[] = {64, 8, 1};
	struct weir_graph *g = graph_of(ops, inlined, NULL, policy);
	char name[64];

	for (int i = 0; i < 3; i++) {
		struct hop h = {weir_graph_stage(g, "hop"), runs[i]};
		snprintf(name, sizeof(name), "%s, runs of %d", what, runs[i]);
		row(name, bench_measure(hop_run, &h), aims[i]);
	}
	graph_end(g);
}

static void bare_rows(
    const char *what, void *(*consumer)(void *), void (*push)(struct weir_event **, int))
{
	const int runs[] = {64, 8, 1};
	char name[64];

	for (int i = 0; i < 3; i++) {
		struct bare b = {runs[i], consumer, push};
		snprintf(name, sizeof(name), "%s, runs of %d", what, runs[i]);
		row(name, bench_measure(bare_run, &b), "");
	}
}

static void idle_rows(void)
{
	double futex = row("idle: bare futex, parked", bench_measure(futex_run, NULL), "");
	struct weir_graph *g = graph_of(&idle_ops, false, "0ns", NULL);
	struct idle parked = {weir_graph_stage(g, "hop"), 100000};
	double hop = row("idle: stage hop, parked", bench_measure(idle_run, &parked), "");

	graph_end(g);
	printf("%-44s %9.2f %29s\n", "  ratio to the bare futex", hop / futex, "<= 1.2");
	g = graph_of(&idle_ops, false, "100us", NULL);
	struct idle spinning = {weir_graph_stage(g, "hop"), 5000};
	row("idle: stage hop, spinning", bench_measure(idle_run, &spinning), "<= 1000");
	graph_end(g);
}

static void idle_cpu_row(void)
{
	struct weir_graph *g = graph_of(&inline_ops, false, NULL, NULL);
	struct timespec ts = {3, 0}, a, b;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
	nanosleep(&ts, NULL);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	double cpu = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9;
	printf("%-44s %8.3f%% %29s\n", "idle: CPU of a graph with nothing to do", cpu / 3 * 100,
	    "< 1 %");
	graph_end(g);
}

int main(void)
{
	static const char *const hop_aims[] = {"<= 25", "<= 60", "<= 150"};
	static const char *const inline_aims[] = {"<= 8", "", ""};

	bench_header("micro_hop");
	printf("%-44s %9s %9s %9s   %s\n", "ns per event", "median", "low", "high", "aim");
	struct hop making = {NULL, 64};
	row("making an event, part of all rows below", bench_measure(making_run, &making), "");
	hop_rows("hop, two cores", &hop_ops, false, NULL, hop_aims);
	hop_rows("hop, two cores, no policy", &hop_ops, false, "none", hop_aims);
	hop_rows("hop, inline", &inline_ops, true, NULL, inline_aims);
	bare_rows("bare mutex + spliced list", list_consumer, list_push);
	bare_rows("bare ring, claims in runs", ring_consumer, ring_push);
	idle_rows();
	idle_cpu_row();
	return 0;
}
