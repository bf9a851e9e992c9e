/* SPDX-License-Identifier: MIT */
/*
 * Refusal by user, for the policies that serve a part of a class: all requests of a user fare alike
 * while the part stays the same, so that a user who was served can finish what he began (DAGOR).
 * Users are numbers even over 0..65535; of a class whose part is `theta` / 65536, the users below
 * theta are served.
 *
 * Numbers fall evenly, by all of the range in USERS_TURN_NS, and start again at the top. So each user
 * is served for a stretch of time as long as it can be, as often as any other: a rota. (DAGOR deals
 * new numbers once an hour, and who was dealt a bad one is out for that long: 0.63 of Jain's index
 * over seconds.) A refused user can be told when its turn comes: (number - theta) of a turn.
 */
#ifndef WEIR_ADMISSION_USERS_H
#define WEIR_ADMISSION_USERS_H

#include "admission/admission.h"

/** A theta that serves all. */
#define USERS_ALL 65536u

/* 65536 over the golden ratio, odd: multiples modulo 65536 meet every number once, and any few in a
 * row lie evenly (Knuth, volume 3, 6.4). */
#define USERS_STEP 40503u

/** How long a number takes around. Long enough to finish what one began with a few requests, short enough
 *  to wait for: a client that was turned away is told so many seconds. A choice, like the 10 s of a
 *  lease; what it costs at other lengths was not measured. */
#define USERS_TURN_NS 10000000000LL

/** Where in the turn the user `id`, any hash of it, was at time 0. */
static inline uint16_t users_first(uint64_t id)
{
	return (uint16_t)(id * 0x9e3779b97f4a7c15ULL >> 48); /* Knuth, TAOCP 3, 6.4: golden ratio */
}

/** How far all have fallen since. */
static inline uint16_t users_fallen(int64_t now_ns)
{
	return (uint16_t)((uint64_t)(now_ns % USERS_TURN_NS) * USERS_ALL / USERS_TURN_NS);
}

/** The place now of the user `id` in the turn. */
static inline uint16_t users_place(uint64_t id, int64_t now_ns)
{
	return (uint16_t)(users_first(id) - users_fallen(now_ns));
}

/** The number of one in that place: the place, or for a repeated attempt (`retry`) twice that, so that
 *  retries are served for half as long as first attempts, but each has its turn. (overload.md 3.3 puts
 *  them all behind the first half; then whoever comes back when told is refused until part is over 0.5.) */
static inline uint16_t users_number(uint16_t place, bool retry)
{
	return retry ? (uint16_t)(place < 0x8000 ? 2 * place : USERS_ALL - 1) : place;
}

/** The user of event `i` of the run. Where users are not known, numbers from `*spread`, so even that
 *  a part of the class is just that part of any run. */
static inline uint32_t users_of(const struct admission_view *v, int i, uint16_t *spread)
{
	if (v->user)
		return v->user[i];
	*spread = (uint16_t)(*spread + USERS_STEP);
	return *spread;
}

#endif
