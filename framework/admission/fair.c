/* SPDX-License-Identifier: MIT */
/*
 * Computes max-min fair shares; see fair.h.
 *
 * How the level is computed: let n[b] be the number of recent events (see MEMORY_EVENTS) whose
 * users have a demand in bucket b, and s[b] the sum of 1 / demand over these events. Of the events
 * of a user with a demand x above the level L, the fraction L / x is served. So the fraction of all
 * events that is served is
 *
 *     F(L) = (sum of n[b] below L + L * sum of s[b] above L) / sum of n[b]
 *
 * which is piecewise linear in L, with its corners at the mean demand of each bucket, n[b] / s[b].
 * A tick computes the sums, finds the segment in which F(L) equals the mean of phi, and solves it
 * for L. The events in the buckets below L, `whole`, are served first.
 */
#include "admission/fair.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include <weir/spec.h>

#include "admission/users.h"

/* Time constant of the decay of a demand, as long as the period of the rota (users.h). With a
 * shorter time, the demand of a user with 5 events a second would fluctuate by more than 10 %
 * (sqrt(1 / (2 * 5 * 10))). */
#define DEMAND_NS 10000000000.0

/* Silence after which a user is forgotten, since its demand has fallen to 5 %. Tables are replaced
 * at the same interval, and users that have been silent for so long are not moved to the new
 * table. */
#define SILENT_NS 30000000000LL

/* Number of slots in the smallest table, which takes 3 KB: enough for the users of most servers. */
#define SLOTS_MIN 256U

/* Number of slots searched for a user. In a table that is half full, 1 of 200 users finds no slot
 * (test_fair); in a full table most find none. */
#define PROBES 16U

/* Number of slots of the old table that each event checks for users to move. A table of n slots is
 * replaced by one of 2n slots when half of it is used. All users have then moved within n/2 events,
 * and the new table is at most half full. */
#define MOVE_SLOTS 2U

/* Buckets of demand: quarter octaves, starting at 1. The last one starts at 2^27, which is more
 * events than a core can refuse in DEMAND_NS. */
#define PER_OCTAVE 4
#define BUCKETS    (27 * PER_OCTAVE + 1)

/* Decay constant of the recorded events and of the mean of phi: this number of events or this time,
 * whichever is longer. A mean with the decay constant 250 is as exact as one over 500 events, so a
 * fraction of one half has a standard error of 2 % (sqrt(0.25 / 500)). A second covers many
 * oscillations of the wait. */
#define MEMORY_EVENTS 250.0
#define MEMORY_NS     1000000000.0

/* The positions of a user's events are spread over SPREAD times its share of the demand
 * (fair_place). So only a user with less than 1/SPREAD of the load is served in one contiguous part
 * of the period. Switching such a user on or off changes the wait by less than 1/SPREAD of what
 * switching the whole load would. 16 is a guess, checked in tests/policy/test_users_share. */
#define SPREAD 16

struct slot {
	uint32_t tag; /* hash of class and user; 0 in an empty slot */
	uint32_t at;  /* time of the last event, in 2^20 ns */
	float demand; /* x in fair.h, at time `at` */
};

struct fair_table {
	uint32_t slots, used;
	struct slot slot[];
};

/* The state of one class. */
struct levels {
	double n[BUCKETS], s[BUCKETS];
	double fresh_n[BUCKETS], fresh_s[BUCKETS]; /* since the last tick */
	uint64_t fresh;
	struct slot class; /* the demand of all users of the class together */
	uint16_t spread;
	double phi_sum, phi_n; /* sums over decisions, decayed like n and s */
	int64_t learnt_ns;
	/* computed at the last tick */
	double all;   /* sum of n */
	double whole; /* sum of n[b] below the level */
	double above; /* sum of s[b] above the level */
	float level;  /* 0 while unknown */
};

struct fair {
	uint64_t seed;
	struct fair_table *table;  /* NULL until fair_renew sets the first */
	struct fair_table *before; /* old table; NULL once all users have moved out */
	uint32_t moved;            /* slots of `before` checked so far */
	int64_t renewed_ns;
	struct levels *levels[WEIR_CLASSES_MAX];
};

struct fair *fair_new(uint64_t seed)
{
	struct fair *f = calloc(1, sizeof(*f));

	if (f)
		f->seed = seed;
	return f;
}

void fair_free(struct fair *f)
{
	if (!f)
		return;
	for (int c = 0; c < WEIR_CLASSES_MAX; c++)
		free(f->levels[c]);
	fair_table_free(f->table);
	fair_table_free(f->before);
	free(f);
}

struct fair_table *fair_table_new(uint32_t slots)
{
	struct fair_table *t = calloc(1, sizeof(*t) + slots * sizeof(t->slot[0]));

	if (t)
		t->slots = slots;
	return t;
}

void fair_table_free(struct fair_table *t)
{
	free(t);
}

size_t fair_bytes(const struct fair *f)
{
	size_t bytes = sizeof(*f);

	for (int c = 0; c < WEIR_CLASSES_MAX; c++)
		bytes += f->levels[c] ? sizeof(*f->levels[c]) : 0;
	if (f->table)
		bytes += sizeof(*f->table) + f->table->slots * sizeof(struct slot);
	if (f->before)
		bytes += sizeof(*f->before) + f->before->slots * sizeof(struct slot);
	return bytes;
}

/* ---- demands ---- */

/* The finalizer of MurmurHash3 (Appleby; public domain): each bit of the key affects all bits of
 * the result. */
static uint64_t mix(uint64_t h)
{
	h = (h ^ h >> 33) * 0xff51afd7ed558ccdULL;
	h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53ULL;
	return h ^ h >> 33;
}

static uint32_t units(int64_t now_ns)
{
	return (uint32_t)(now_ns >> 20);
}

/* Return the user's slot, or an empty slot for the user. Returns NULL if neither is among the
 * PROBES slots searched. */
static struct slot *find(struct fair_table *t, uint32_t tag)
{
	for (uint32_t i = 0; i < PROBES; i++) {
		struct slot *slot = &t->slot[(tag + i) & (t->slots - 1)];
		if (slot->tag == tag || slot->tag == 0)
			return slot;
	}
	return NULL;
}

static int64_t silent_ns(const struct slot *slot, uint32_t at)
{
	/* negative if `at` is an older clock reading, of another thread */
	int32_t since = (int32_t)(at - slot->at);

	return since > 0 ? (int64_t)since << 20 : 0;
}

/* Count one event of the slot's user. Returns the user's new demand. */
static float count(struct slot *slot, uint32_t at)
{
	slot->demand = slot->demand * expf((float)(-(double)silent_ns(slot, at) / DEMAND_NS)) + 1;
	slot->at = at;
	return slot->demand;
}

/* Copy the user of slot `old` to the new table, unless the user is there already or no slot is
 * found. */
static void move(struct fair *f, const struct slot *old)
{
	struct slot *slot = find(f->table, old->tag);

	if (!slot || slot->tag)
		return;
	*slot = *old;
	f->table->used++;
}

/* Move the next users out of the old table. */
static void move_some(struct fair *f, uint32_t at)
{
	for (uint32_t i = 0; i < MOVE_SLOTS && f->moved < f->before->slots; i++) {
		const struct slot *old = &f->before->slot[f->moved++];
		if (old->tag && silent_ns(old, at) < SILENT_NS)
			move(f, old);
	}
}

/* Fill the empty `slot` for a user, copying its slot in the old table if there is one. */
static void enter(struct fair *f, struct slot *slot, uint32_t tag)
{
	const struct slot *old = f->before ? find(f->before, tag) : NULL;

	*slot = old && old->tag ? *old : (struct slot){.tag = tag};
	f->table->used++;
}

static float demand_of(struct fair *f, uint32_t tag, uint32_t at)
{
	if (!f->table)
		return 1;
	if (f->before)
		move_some(f, at);
	struct slot *slot = find(f->table, tag);
	if (!slot)
		return 1;
	if (slot->tag == 0)
		enter(f, slot, tag);
	return count(slot, at);
}

/* ---- levels ---- */

static int bucket_of(float demand)
{
	int b = (int)(PER_OCTAVE * log2f(demand > 1 ? demand : 1));

	return b < BUCKETS ? b : BUCKETS - 1;
}

float fair_note(struct fair *f, int class_id, uint64_t id, int64_t now_ns)
{
	if (!f->levels[class_id])
		f->levels[class_id] = calloc(1, sizeof(*f->levels[0]));
	struct levels *l = f->levels[class_id];
	if (!l)
		return 1;
	uint32_t tag = (uint32_t)mix(id ^ f->seed ^ (uint64_t)class_id << 56);
	float demand = demand_of(f, tag ? tag : 1, units(now_ns));
	int b = bucket_of(demand);
	l->fresh_n[b]++;
	l->fresh_s[b] += 1 / (double)demand;
	l->fresh++;
	count(&l->class, units(now_ns));
	return demand;
}

uint16_t fair_place(struct fair *f, int class_id, uint16_t place, float demand)
{
	struct levels *l = f->levels[class_id];

	if (!l)
		return place;
	float width = SPREAD * demand / l->class.demand;
	l->spread = (uint16_t)(l->spread + USERS_STEP);
	return (uint16_t)(place + (uint16_t)((float)l->spread * (width < 1 ? width : 1)));
}

/* Add the events recorded since the last tick to the decayed older ones. */
static void remember(struct levels *l, int64_t now_ns)
{
	double events = (double)l->fresh / MEMORY_EVENTS;
	double time = (double)(now_ns - l->learnt_ns) / MEMORY_NS;
	double keep = exp(-(events < time ? events : time));

	for (int b = 0; b < BUCKETS; b++) {
		l->n[b] = keep * l->n[b] + l->fresh_n[b];
		l->s[b] = keep * l->s[b] + l->fresh_s[b];
		l->fresh_n[b] = l->fresh_s[b] = 0;
	}
	l->phi_sum *= keep;
	l->phi_n *= keep;
	l->fresh = 0;
	l->learnt_ns = now_ns;
}

/* Find the level at which the mean of phi is served. The search starts at the smallest demand and
 * continues while the level can be raised to the mean demand of the next bucket. */
static void find_level(struct levels *l)
{
	double all = 0, above = 0, below = 0;
	int b = 0;

	for (int i = 0; i < BUCKETS; i++) {
		all += l->n[i];
		above += l->s[i];
	}
	double served = l->phi_n > 0 ? all * l->phi_sum / l->phi_n : all;
	for (; b < BUCKETS; b++) {
		if (l->s[b] <= 0)
			continue;
		if (below + l->n[b] / l->s[b] * above > served)
			break;
		below += l->n[b];
		above -= l->s[b];
	}
	l->all = all;
	l->whole = below;
	l->above = b < BUCKETS ? above : 0;
	l->level = b < BUCKETS ? (float)((served - below) / above) : INFINITY;
}

void fair_tick(struct fair *f, int64_t now_ns)
{
	for (int c = 0; c < WEIR_CLASSES_MAX; c++) {
		struct levels *l = f->levels[c];
		if (!l || l->fresh == 0)
			continue;
		remember(l, now_ns);
		find_level(l);
	}
}

void fair_decided(struct fair *f, int class_id, double phi)
{
	struct levels *l = f->levels[class_id];

	if (!l)
		return;
	l->phi_sum += phi;
	l->phi_n++;
}

double fair_part(const struct fair *f, int class_id, double phi, float demand)
{
	const struct levels *l = f->levels[class_id];

	if (phi >= 1 || !l || l->all <= 0)
		return phi < 1 ? phi : 1;
	double served = phi * l->all;
	if (demand <= l->level || l->above <= 0)
		return served < l->whole ? served / l->whole : 1;
	double level = (served - l->whole) / l->above;
	return level <= 0 ? 0 : level < (double)demand ? level / (double)demand : 1;
}

/* ---- tables ---- */

uint32_t fair_wants(const struct fair *f, int64_t now_ns)
{
	const struct fair_table *t = f->table;

	if (!t)
		return SLOTS_MIN;
	uint32_t slots = t->slots;
	if (f->before)
		return 0;
	if (t->used > slots / 2 && slots < FAIR_SLOTS_MAX)
		return 2 * slots;
	if (now_ns - f->renewed_ns < SILENT_NS || t->used == 0)
		return 0;
	while (slots > SLOTS_MIN && t->used < slots / 8)
		slots /= 2;
	return slots;
}

void fair_renew(struct fair *f, struct fair_table *t, int64_t now_ns)
{
	f->before = f->table;
	f->moved = 0;
	f->table = t;
	f->renewed_ns = now_ns;
}

struct fair_table *fair_left(struct fair *f)
{
	struct fair_table *left = f->before;

	if (!left || f->moved < left->slots)
		return NULL;
	f->before = NULL;
	return left;
}
