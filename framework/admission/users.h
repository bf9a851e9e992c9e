/* SPDX-License-Identifier: MIT */
/*
 * Refusal by user, for the policies that serve a part of a class: all requests of a user fare alike
 * while the part stays the same, so that a user who was served can finish what he began (DAGOR).
 * Users are numbers even over 0..65535; of a class whose part is `theta` / 65536, the users below
 * theta are served.
 */
#ifndef WEIR_ADMISSION_USERS_H
#define WEIR_ADMISSION_USERS_H

#include "admission/admission.h"

/** A theta that serves all. */
#define USERS_ALL 65536u

/* 65536 over the golden ratio, odd: multiples modulo 65536 meet every number once, and any few in a
 * row lie evenly (Knuth, volume 3, 6.4). */
#define USERS_STEP 40503u

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
