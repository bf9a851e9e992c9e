/* SPDX-License-Identifier: MIT */
/* What the stage types of the storm share; see storm.h. */
#include "storm.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PART_ALIVE 0x616c697665ull
#define PART_ENDED 0x656e646564ull

static struct storm_counts own_counts;
struct storm_counts *storm_counts = &own_counts;

_Thread_local bool storm_undying;

static __attribute__((constructor)) void share_counts(void)
{
	const char *path = getenv("STORM_COUNTS");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;

	if (fd == -1)
		return;
	void *p = mmap(NULL, sizeof(*storm_counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p != MAP_FAILED)
		storm_counts = p;
	close(fd);
}

uint32_t storm_random(uint32_t n)
{
	static _Thread_local uint64_t x;
	static atomic_ullong seeds = 88172645463325252u;

	if (x == 0)
		x = atomic_fetch_add(&seeds, 0x9e3779b97f4a7c15u) | 1;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (uint32_t)((x >> 32) * n >> 32);
}

int storm_status(void)
{
	static const int status[] = {
	    WEIR_OK, WEIR_EFAILED, WEIR_ECANCELLED, WEIR_EPRESSURE, WEIR_EDEADLINE, WEIR_EINVAL};

	return status[storm_random(sizeof(status) / sizeof(*status))];
}

/* ---- parts ---- */

struct part *storm_part(struct weir_event *ev)
{
	struct part *p = weir_event_cast(ev, &part_type);

	if (p->mark != PART_ALIVE) {
		fprintf(
		    stderr, "STORM: a part that is not alive: %llx\n", (unsigned long long)p->mark);
		abort();
	}
	return p;
}

static void part_finish(struct weir_event *ev, int status)
{
	storm_part(ev)->mark = PART_ENDED;
	atomic_fetch_add(&storm_counts->ended, 1);
	if (status == WEIR_ECANCELLED)
		atomic_fetch_add(&storm_counts->cancelled, 1);
}

static struct weir_slice part_key(const struct weir_event *ev, const char *arg)
{
	const struct part *p = (const struct part *)ev;

	(void)arg;
	return (struct weir_slice){p->key, 1};
}

static uint64_t part_cost(const struct weir_event *ev)
{
	return (uint64_t)((const struct part *)ev)->key[0];
}

static const struct weir_field part_fields[] = {{"key", part_key, "a letter"}, {.name = NULL}};

const struct weir_event_type part_type = {.name = "storm.part",
    .size = sizeof(struct part),
    .finish = part_finish,
    .fields = part_fields,
    .cost = part_cost,
    .trail = offsetof(struct part, trail),
    .op = offsetof(struct part, op),
    .payloads = offsetof(struct part, payloads)};

static struct weir_event *part_new(struct weir_stage *st, int level)
{
	struct weir_event *ev = weir_event_new(st, &part_type);

	if (!ev)
		return NULL;
	struct part *p = (struct part *)ev;
	p->mark = PART_ALIVE;
	p->level = (uint8_t)level;
	p->key[0] = (char)('0' + storm_random(STORM_KEYS));
	ev->key = (uint64_t)p->key[0];
	if (storm_random(8) == 0)
		ev->deadline_ns = weir_now_ns(st) + (int64_t)storm_random(20000000);
	atomic_fetch_add(&storm_counts->made, 1);
	return ev;
}

void storm_split(struct weir_stage *st, struct weir_event *ev, int sub, int level)
{
	const struct storm_conf *conf = weir_conf(st);
	int n = 1 + (int)storm_random((uint32_t)conf->kids);

	for (int i = 0; i < n; i++) {
		struct weir_event *child = part_new(st, level);
		weir_child(st, ev, sub, &child);
	}
}

void storm_alone(struct weir_stage *st, int sub, int level)
{
	struct weir_event *ev = part_new(st, level);

	if (ev)
		weir_emit(st, sub, &ev);
}

void storm_look(const struct weir_event *ev)
{
	for (const struct weir_event *c = weir_ended(ev); c; c = c->next)
		if (((const struct part *)c)->mark != PART_ALIVE)
			atomic_fetch_add(&storm_counts->broken, 1);
}

/* ---- handler calls ---- */

int64_t storm_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static void burn(const struct storm_conf *conf)
{
	int64_t until_ns = conf->burn_ns ? storm_clock() + conf->burn_ns : 0;

	while (until_ns && storm_clock() < until_ns)
		;
}

static uint32_t keys_of(struct weir_stage *st, struct weir_event *const *ev, int n)
{
	const struct storm_conf *conf = weir_conf(st);
	uint32_t keys = 0;

	for (int i = 0; i < n && conf->alone == ALONE_KEY; i++)
		keys |= 1u << (storm_part(ev[i])->key[0] - '0');
	return keys;
}

/* Count a call, and whether there is another one. */
static void overlap(atomic_int *calls)
{
	if (atomic_fetch_add(calls, 1) != 0)
		atomic_fetch_add(&storm_counts->overlaps, 1);
}

uint32_t storm_enter(struct weir_stage *st, struct weir_event *const *ev, int n)
{
	const struct storm_conf *conf = weir_conf(st);
	struct storm_state *state = weir_state(st);
	uint32_t keys = keys_of(st, ev, n);

	if (state && conf->alone == ALONE_ALL)
		overlap(&state->inside);
	for (int k = 0; state && k < STORM_KEYS; k++)
		if (keys & 1u << k)
			overlap(&state->key[k]);
	burn(conf);
	if (conf->nap_ns && storm_random(16) == 0)
		usleep(storm_random((uint32_t)(conf->nap_ns / 1000)) + 1);
	return keys;
}

void storm_leave(struct weir_stage *st, uint32_t keys)
{
	const struct storm_conf *conf = weir_conf(st);
	struct storm_state *state = weir_state(st);

	if (state && conf->alone == ALONE_ALL)
		atomic_fetch_sub(&state->inside, 1);
	for (int k = 0; state && k < STORM_KEYS; k++)
		if (keys & 1u << k)
			atomic_fetch_sub(&state->key[k], 1);
	if (conf->die > 0 && !storm_undying && storm_random(1000000) < conf->die) {
		atomic_fetch_add(&storm_counts->deaths, 1);
		pthread_exit(NULL);
	}
}

const struct weir_knob storm_knobs[] = {
    {.name = "kids",
	.type = WEIR_KNOB_INT,
	.offset = offsetof(struct storm_conf, kids),
	.min = 1,
	.max = 64,
	.def = "3",
	.flags = WEIR_KNOB_LIVE,
	.help = "most children at a time"},
    {.name = "burn",
	.type = WEIR_KNOB_DURATION,
	.offset = offsetof(struct storm_conf, burn_ns),
	.def = "0",
	.flags = WEIR_KNOB_LIVE,
	.help = "how long each call works"},
    {.name = "nap",
	.type = WEIR_KNOB_DURATION,
	.offset = offsetof(struct storm_conf, nap_ns),
	.def = "0",
	.flags = WEIR_KNOB_LIVE,
	.help = "how long some calls sleep"},
    {.name = "die",
	.type = WEIR_KNOB_INT,
	.offset = offsetof(struct storm_conf, die),
	.max = 1000000,
	.def = "0",
	.flags = WEIR_KNOB_LIVE,
	.help = "of a million calls, those that end the thread"},
    {.name = "alone",
	.type = WEIR_KNOB_INT,
	.offset = offsetof(struct storm_conf, alone),
	.max = ALONE_KEY,
	.def = "0",
	.help = "1: calls must not overlap; 2: those with equal keys must not"},
    {0},
};
