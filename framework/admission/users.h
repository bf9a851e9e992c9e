/* SPDX-License-Identifier: MIT */
/*
 * Chooses by user which events of a class to refuse, for policies that serve a fraction of a class.
 * While that fraction is constant, all requests of a user are treated alike, so that a user that
 * was served can finish its work (as in DAGOR). Users have numbers that are uniform over 0..65535.
 * To serve the fraction theta / 65536 of a class, the users with numbers below theta are served.
 *
 * All numbers decrease at the same speed, by the whole range in USERS_TURN_NS, and wrap around to
 * the top. This is a rota: every user is served as often as any other, for one contiguous part of
 * each period. (DAGOR assigns new numbers once an hour, so an unlucky user is refused for that
 * long.) The number also determines how long a refused user must wait: (number - theta) / 65536 of
 * a period.
 */
#ifndef WEIR_ADMISSION_USERS_H
#define WEIR_ADMISSION_USERS_H

#include "admission/admission.h"

/** Value of theta that serves all users. */
#define USERS_ALL 65536u

/* 65536 divided by the golden ratio, made odd. Its multiples modulo 65536 visit every number once,
 * and any few consecutive multiples are spread evenly (Knuth, volume 3, 6.4). */
#define USERS_STEP 40503u

/** Period of the rota: long enough for a user to finish an activity of a few requests, and short
 *  enough to wait for, since a refused client is asked to wait at most this long. 10 s is a choice;
 *  other lengths were not measured. */
#define USERS_TURN_NS 10000000000LL

/** Return the position of the user `id` in the rota at time 0. `id` may be any hash. */
static inline uint16_t users_first(uint64_t id)
{
	return (uint16_t)(id * 0x9e3779b97f4a7c15ULL >> 48); /* Knuth, TAOCP 3, 6.4: golden ratio */
}

/** Return how far all positions have fallen since time 0. */
static inline uint16_t users_fallen(int64_t now_ns)
{
	return (uint16_t)((uint64_t)(now_ns % USERS_TURN_NS) * USERS_ALL / USERS_TURN_NS);
}

/** Return the current position of the user `id` in the rota. */
static inline uint16_t users_place(uint64_t id, int64_t now_ns)
{
	return (uint16_t)(users_first(id) - users_fallen(now_ns));
}

/** Return the number of an event whose user is at position `place`: the position itself, or twice
 *  the position if the event is a retry. So retries are served for half as long as first attempts,
 *  but in every period. (With numbers in the upper half for all retries, a client that retries
 *  after the requested wait would be refused until over half of its class is served.) */
static inline uint16_t users_number(uint16_t place, bool retry)
{
	return retry ? (uint16_t)(place < 0x8000 ? 2 * place : USERS_ALL - 1) : place;
}

/** Return the user number of event `i` in the view. If users are unknown, return the next number of
 *  the sequence `*spread`. Its numbers are evenly spaced, so that the same fraction of every batch
 *  is served. */
static inline uint32_t users_of(const struct admission_view *v, int i, uint16_t *spread)
{
	if (v->user)
		return v->user[i];
	*spread = (uint16_t)(*spread + USERS_STEP);
	return *spread;
}

#endif
