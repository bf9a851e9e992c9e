/* SPDX-License-Identifier: MIT */
/*
 * Measures serial keys of core groups.
 *
 *   hop    Events circulate through six stages of a group with one core, as in micro_cells: without a
 *          serial key, with the key that the event has, and with a field of 8 bytes, which is hashed
 *          at each stage. CPU ns per hop of the whole process; the ratio is to the row without a key,
 *          measured before and after in the same round.
 *   move   The price of giving slots away, while nothing else happens: `n` events of 64 keys wait in
 *          the inboxes of a stage, in a group of six serial stages.
 *
 * micro_serial [hop|move]
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/graph.h>
#include <weir/stage.h>

#include "bench.h"
#include "bench_graph.h"
#include "graph/graph.h"
#include "sched/serial.h"

#define EVENTS 512
#define STAGES 6
#define RUN_NS 100000000L
#define MOVES  200

struct hop {
	struct weir_event ev;
	char user[8];
};

static struct hop events[EVENTS] __attribute__((aligned(64)));
static atomic_ulong hops, ended;
static atomic_bool ends;

static void hop_finish(struct weir_event *ev, int status)
{
	(void)ev, (void)status;
	atomic_fetch_add(&ended, 1);
}

static struct weir_slice user_of(const struct weir_event *ev, const char *arg)
{
	const struct hop *h = (const struct hop *)ev;

	(void)arg;
	return (struct weir_slice){h->user, sizeof(h->user)};
}

static const struct weir_field fields[] = {{"user", user_of, "the sender"}, {.name = NULL}};

static const struct weir_event_type hop_type = {
    .name = "hop", .size = sizeof(struct hop), .finish = hop_finish, .fields = fields};

static void hop_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	/* one thread at a time runs */
	atomic_store_explicit(&hops,
	    atomic_load_explicit(&hops, memory_order_relaxed) + (unsigned long)n,
	    memory_order_relaxed);
	if (WEIR_UNLIKELY(atomic_load_explicit(&ends, memory_order_relaxed)))
		weir_event_finish_run(ev, n, WEIR_OK);
	else
		weir_emit_run(st, 0, ev, n);
}

static const struct weir_outlet outlets[] = {{"out", &hop_type, true, ""}, {.name = NULL}};
static const struct weir_stage_ops hop_ops = {.abi = WEIR_STAGE_ABI,
    .name = "b.hop",
    .summary = "bench",
    .accepts = &hop_type,
    .outlets = outlets,
    .handle = hop_handle};

/* ---- graphs ---- */

static void add_group(struct weir_spec *spec, const char *group, const char *serial, int cores)
{
	struct weir_group_spec *gs = weir_spec_add_group(spec, group);
	char name[16], to[16], n[16];

	snprintf(n, sizeof(n), "%d", cores);
	weir_spec_text(&gs->schedule, "fifo");
	weir_spec_text(&gs->cores, n);
	weir_spec_text(&gs->serial, serial);
	for (int i = 0; i < STAGES; i++) {
		snprintf(name, sizeof(name), "%s%d", group, i);
		snprintf(to, sizeof(to), "%s%d", group, (i + 1) % STAGES);
		struct weir_stage_spec *s = weir_spec_add_stage(spec, name, "b.hop");
		weir_spec_link(s, "out", to, i == STAGES - 1);
		weir_spec_text(&s->group, group);
		weir_spec_text(&s->admission.policy, "none");
		s->queue.limit = 20000;
	}
}

static void send(struct weir_graph *g, const char *stage, int n)
{
	struct weir_event *run[EVENTS];

	atomic_store(&ended, 0);
	for (int i = 0; i < n; i++) {
		events[i].ev.state = WEIR_EVENT_IDLE;
		weir_event_init(&events[i].ev, &hop_type, bench_now_ns());
		events[i].ev.key = (uint64_t)i % 64;
		snprintf(events[i].user, sizeof(events[i].user), "u%d", i % 64);
		run[i] = &events[i].ev;
	}
	if (weir_offer(weir_graph_stage(g, stage), run, n, NULL) != n)
		exit(1);
}

static void await_end(int n)
{
	while (atomic_load(&ended) < (unsigned long)n)
		usleep(100);
	atomic_store(&ends, false);
}

/* ---- hops ---- */

static double hop_ns(struct weir_graph *g, const char *group, int n)
{
	struct timespec ts = {0, RUN_NS};
	char name[16];

	snprintf(name, sizeof(name), "%s0", group);
	send(g, name, n);
	int64_t began = bench_cpu_ns();
	unsigned long before = atomic_load(&hops);
	nanosleep(&ts, NULL);
	unsigned long done = atomic_load(&hops) - before;
	double ns = (double)(bench_cpu_ns() - began) / (double)(done ? done : 1);
	atomic_store(&ends, true);
	await_end(n);
	return ns;
}

static void print_row(const char *what, int n, double *ns, double *ratio)
{
	struct bench_stat s = bench_summary(ns, BENCH_ROUNDS);
	struct bench_stat r = bench_summary(ratio, BENCH_ROUNDS);

	printf("%-24s %4d under way %8.1f %8.1f %8.1f   %.2f (%.2f to %.2f)\n", what, n, s.median,
	    s.low, s.high, r.median, r.low, r.high);
	fflush(stdout);
}

static void hop_rows(int n)
{
	static const char *const name[] = {"none", "key", "user"};
	static const char *const serial[] = {"", "event", "user"};
	double ns[3][BENCH_ROUNDS], ratio[3][BENCH_ROUNDS];
	struct weir_spec *spec = weir_spec_new("serial");

	for (int k = 0; k < 3; k++)
		add_group(spec, name[k], serial[k], 1);
	struct weir_graph *g = bench_graph_start(spec);
	for (int r = 0; r < BENCH_ROUNDS; r++) {
		double before = hop_ns(g, name[0], n);
		for (int k = 1; k < 3; k++)
			ns[k][r] = hop_ns(g, name[k], n);
		ns[0][r] = (before + hop_ns(g, name[0], n)) / 2;
		for (int k = 0; k < 3; k++)
			ratio[k][r] = ns[k][r] / ns[0][r];
	}
	bench_graph_end(g);
	print_row("no serial key", n, ns[0], ratio[0]);
	print_row("serial: event", n, ns[1], ratio[1]);
	print_row("serial: user", n, ns[2], ratio[2]);
}

/* ---- moves ---- */

static double move_ns(struct core_group *group)
{
	struct slots slots = {0};
	int64_t began, took = 0;

	for (unsigned s = 0; s < 64; s++)
		slots_add(&slots, s);
	/* the first move collects them on core 1 */
	serial_give(&group->core[0], 1, &slots);
	for (int i = 0; i < MOVES; i++) {
		began = bench_now_ns();
		if (serial_give(&group->core[1 - i % 2], i % 2, &slots) < 0)
			exit(1);
		took += bench_now_ns() - began;
	}
	return (double)took / MOVES;
}

/* All stages are paused, so the threads of the group sleep. */
static void move_row(int n)
{
	struct weir_spec *spec = weir_spec_new("serial");
	double ns[BENCH_ROUNDS];
	char name[16], why[200];

	add_group(spec, "move", "event", 2);
	struct weir_graph *g = bench_graph_start(spec);
	struct core_group *group = weir_graph_stage(g, "move0")->pool->cores;
	for (int i = 0; i < STAGES; i++) {
		snprintf(name, sizeof(name), "move%d", i);
		weir_graph_steer(g, name, WEIR_STEER_PAUSE, why, sizeof(why));
	}
	if (n > 0)
		send(g, "move0", n);
	usleep(100000);
	for (int r = 0; r < BENCH_ROUNDS; r++)
		ns[r] = move_ns(group);
	atomic_store(&ends, true);
	for (int i = 0; i < STAGES; i++) {
		snprintf(name, sizeof(name), "move%d", i);
		weir_graph_steer(g, name, WEIR_STEER_RUN, why, sizeof(why));
	}
	await_end(n);
	bench_graph_end(g);
	struct bench_stat s = bench_summary(ns, BENCH_ROUNDS);
	printf("move of 64 slots, %3d events    %8.0f %8.0f %8.0f\n", n, s.median, s.low, s.high);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const int runs[] = {64, 8, 1}, waiting[] = {0, 64, 512};
	const char *only = argc > 1 ? argv[1] : NULL; /* "hop" or "move" */
	struct weir_err err = {0};

	bench_header("micro_serial");
	weir_stage_register(&hop_ops, &err);
	printf("%-40s %8s %8s %8s   ratio\n", "ns", "median", "low", "high");
	for (int i = 0; i < 3; i++)
		if (!only || strcmp(only, "hop") == 0)
			hop_rows(runs[i]);
	for (int i = 0; i < 3; i++)
		if (!only || strcmp(only, "move") == 0)
			move_row(waiting[i]);
	return 0;
}
