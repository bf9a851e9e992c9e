/* SPDX-License-Identifier: MIT */
/*
 * In each graph, the stages s0, s1, s2 and s3 are serial by the field `user`, or one of them by
 * `other`; s4 is serial by `user`, or not at all. Memory that is written without a lock in handlers
 * belongs to one key, so that ThreadSanitizer finds events of one key that overlap.
 */
#include "torture/serial_stage.h"

#include <time.h>
#include <weir/hold.h>
#include <weir/random.h>

#include "base/clock.h"
#include "event/local.h"
#include "sched/cores.h"
#include "stage/stage.h"

atomic_ullong faults, deaths, handled;
atomic_bool may_die, may_hold;
atomic_int spin;

/* What handlers know of a key: field 0 is `user`, 1 is `other`. */
static struct known {
	_Alignas(64) atomic_int busy;      /* thread that is in a handler with events of the key */
	uint64_t calls;                    /* events in handlers so far */
	uint64_t next;                     /* stamp of the next event in s0 */
	uint64_t from[STAGES][SENDERS][2]; /* last place of what a core has sent, by outlet */
	uint64_t last[STAGES];             /* stamp of the last event with a place, by stage */
	uint64_t of_producer[PRODUCERS];   /* sequence number of its last event in s0 */
} known[2][KEYS];

void fault(const char *what, uint64_t a, uint64_t b)
{
	if (atomic_fetch_add(&faults, 1) < 10)
		fprintf(
		    stderr, "%s: %llu, %llu\n", what, (unsigned long long)a, (unsigned long long)b);
}

void serial_begin(void)
{
	for (int f = 0; f < 2; f++)
		for (int k = 0; k < KEYS; k++) {
			if (atomic_load(&known[f][k].busy))
				fault("a handler is left", (uint64_t)k, (uint64_t)f);
			memset(&known[f][k], 0, sizeof(known[f][k]));
		}
}

/* ---- the events ---- */

static struct weir_slice user_of(const struct weir_event *ev, const char *arg)
{
	const struct work *w = (const struct work *)ev;

	(void)arg;
	return (struct weir_slice){w->user, sizeof(w->user)};
}

static struct weir_slice other_of(const struct weir_event *ev, const char *arg)
{
	const struct work *w = (const struct work *)ev;

	(void)arg;
	return (struct weir_slice){w->other, sizeof(w->other)};
}

static const struct weir_field work_fields[] = {
    {"user", user_of, "the sender"}, {"other", other_of, "another key"}, {.name = NULL}};

const struct weir_event_type work_type = {
    .name = "work", .size = sizeof(struct work), .finish = probe_finish, .fields = work_fields};

/* ---- the laws ---- */

/* The serial field of a stage, or -1. */
static int field_of(const struct weir_stage *st)
{
	const char *own = st->spec->serial;

	return strcmp(own, "none") == 0 ? -1 : strcmp(own, "other") == 0;
}

/* Take or let go the keys of ev[0..n). */
static void keep_apart(int field, struct weir_event **ev, int n, bool begins)
{
	int self = thread_self()->tid;

	for (int i = 0; i < n; i++) {
		if (!ev[i])
			continue;
		int key = ((struct work *)ev[i])->key[field];
		int before = atomic_exchange(&known[field][key].busy, begins ? self : 0);
		if (begins && before != 0 && before != self)
			fault("two events of a key at a time", (uint64_t)key, (uint64_t)field);
	}
}

static void check_first(struct known *k, struct work *w)
{
	uint64_t *last = &k->of_producer[w->p.producer];

	if (w->p.seq <= *last)
		fault("s0: not in the order of the producer", *last, w->p.seq);
	*last = w->p.seq;
	w->stamp = ++k->next;
}

/* What a core sends over one outlet comes in the order in which it was sent. */
static void check_sender(struct known *k, struct work *w, int id)
{
	uint64_t *before = &k->from[id][w->by][w->outlet];

	if (w->sent == 0)
		return;
	if (w->sent <= *before)
		fault("not in the order of the sender", w->sent, *before);
	*before = w->sent;
	w->sent = 0;
}

static void check_order(const struct weir_stage *st, struct weir_event **ev, int n)
{
	int id = st->id, field = field_of(st);

	for (int i = 0; i < n; i++) {
		struct work *w = (struct work *)ev[i];
		struct known *k = field < 0 ? NULL : &known[field][w->key[field]];
		if (k)
			k->calls++;
		if (field != 0) /* the order by `user` ends here */
			w->loose = true;
		if (field == 0)
			check_sender(k, w, id);
		if (w->loose)
			continue;
		if (id == 0)
			check_first(k, w);
		if (w->stamp <= k->last[id])
			fault("not in the order of the stage before", w->stamp, (uint64_t)id);
		k->last[id] = w->stamp;
	}
}

/* ---- what is held ---- */

struct ours {
	pthread_mutex_t lock; /* all zeros are an initialised one */
	struct weir_event *first;
	bool ends;
};

static bool hold(struct weir_stage *st, struct weir_event **slot)
{
	struct ours *o = weir_state(st);
	struct weir_event *ev = *slot;

	pthread_mutex_lock(&o->lock);
	bool holds = !o->ends;
	if (holds) {
		((struct work *)ev)->loose = true;
		((struct work *)ev)->sent = 0;
		weir_hold(st, slot);
		ev->next = o->first;
		o->first = ev;
	}
	pthread_mutex_unlock(&o->lock);
	return holds;
}

static struct weir_event *take_held(struct weir_stage *st, bool ends)
{
	struct ours *o = weir_state(st);

	pthread_mutex_lock(&o->lock);
	struct weir_event *ev = o->first;
	if (ev)
		o->first = ev->next;
	o->ends |= ends;
	pthread_mutex_unlock(&o->lock);
	return ev;
}

static void let_go(struct weir_stage *st, struct weir_event **slot, uint64_t r)
{
	if (r % 3 == 0)
		weir_requeue(st, slot);
	else
		weir_emit(st, 0, slot);
}

static void work_stop(struct weir_stage *st, int64_t until_ns)
{
	struct weir_event *ev;

	(void)until_ns;
	while ((ev = take_held(st, true)))
		weir_emit(st, 0, &ev);
}

static void work_expired(struct weir_stage *st, struct weir_event **ev, int n)
{
	int field = field_of(st);

	if (field >= 0) {
		keep_apart(field, ev, n, true);
		for (int i = 0; i < n; i++)
			known[field][((struct work *)ev[i])->key[field]].calls++;
		keep_apart(field, ev, n, false);
	}
	for (int i = 0; i < n; i++)
		let_go(st, &ev[i], ((struct work *)ev[i])->p.seq);
}

/* ---- the handler ---- */

static void take_time(uint64_t r)
{
	int turns = atomic_load_explicit(&spin, memory_order_relaxed);

	for (volatile int i = 0; i < turns * (int)(r % 8); i++)
		;
	if (r % 64 == 0)
		sched_yield();
}

static void send(struct weir_stage *st, int outlet, struct weir_event **slot)
{
	static atomic_ullong sent[SENDERS];
	const struct core *core = thread_self()->core;
	struct work *w = (struct work *)*slot;

	if (core && field_of(st) != 0) {
		w->by = core->number;
		w->outlet = outlet;
		w->sent = atomic_fetch_add(&sent[core->number], 1) + 1;
	}
	weir_emit(st, outlet, slot);
}

static void one(struct weir_stage *st, struct weir_event **slot)
{
	struct work *w = (struct work *)*slot;
	uint64_t r = weir_random_at(
	    0, w->p.seq << 8 ^ (uint64_t)w->p.producer << 4 ^ (uint64_t)++w->p.status);

	switch (w->p.status > 12 ? 0 : r >> 32 & 127) {
	case 0:
		weir_event_finish(slot, WEIR_OK);
		break;
	case 1:
		w->loose = true;
		weir_requeue(st, slot);
		break;
	case 2:
		if (!atomic_load(&may_hold) || !hold(st, slot))
			send(st, 0, slot);
		break;
	case 3:
		w->loose = true;
		if (weir_stage_type(st) == &work_hold_ops)
			weir_hold_until(st, slot, weir_now_ns(st) + 300000);
		else
			send(st, 0, slot);
		break;
	case 4:
		w->loose = true;
		send(st, 1, slot);
		break;
	default:
		send(st, 0, slot);
	}
}

static void die(struct weir_event **ev, int n, int field, uint64_t r)
{
	if (r % 4001 != 0 || !atomic_load(&may_die))
		return;
	if (field >= 0)
		keep_apart(field, ev, n, false);
	atomic_fetch_add(&deaths, 1);
	pthread_exit(NULL);
}

/* Sleep for 20 ms, so that a spare thread stands in for the core. */
static void doze(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

static void work_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	int field = field_of(st);
	struct weir_event *held;

	if (field >= 0)
		keep_apart(field, ev, n, true);
	check_order(st, ev, n);
	uint64_t r = weir_random_at(1, atomic_fetch_add(&handled, (uint64_t)n));
	take_time(r);
	die(ev, n, field, r);
	if (r % 2003 == 0)
		doze();
	for (int i = 0; i < n; i++)
		take_time(((struct work *)ev[i])->p.seq);
	/* before events are let go, since afterwards they belong to others */
	if (field >= 0)
		keep_apart(field, ev, n, false);
	for (int i = 0; i < n; i++)
		one(st, &ev[i]);
	for (int i = 0; i < 4 && (held = take_held(st, false)); i++)
		let_go(st, &held, r + (uint64_t)i);
}

static const struct weir_outlet work_outlets[] = {
    {"out", &work_type, true, ""}, {"side", &work_type, true, ""}, {.name = NULL}};

const struct weir_stage_ops work_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.work",
    .summary = "checks the laws of serial keys",
    .accepts = &work_type,
    .outlets = work_outlets,
    .state_size = sizeof(struct ours),
    .handle = work_handle,
    .expired = work_expired,
    .stop = work_stop};

const struct weir_stage_ops work_hold_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.work-hold",
    .summary = "the same, with a width and tickets",
    .accepts = &work_type,
    .outlets = work_outlets,
    .state_size = sizeof(struct ours),
    .handle = work_handle,
    .expired = work_expired,
    .flags = WEIR_STAGE_HOLDS,
    .stop = work_stop};
