/* SPDX-License-Identifier: MIT */
/*
 * Divides a stage among the users of a class by max-min fairness.
 *
 * Under overload the policy serves a fraction `phi` of what a class offers. If every user were
 * served in proportion, a user that sends a hundred times as much would get a hundred times as
 * much. Instead a level is computed: users with a demand up to the level are served in full, and
 * the remaining capacity is divided evenly among all others (max-min fairness; Bertsekas and
 * Gallager, Data Networks, 6.5.2). A user that offers x is served for this fraction of each period
 * of the rota (users.h):
 *
 *     part = min(1, level / x),    with    sum of min(x, level) over users = phi * sum of x
 *
 * That is the rule of core-stateless fair queueing (Stoica, Shenker and Zhang, SIGCOMM 1998),
 * except that the level is computed from the distribution of demand instead of being searched for,
 * so a change of `phi` takes effect immediately.
 *
 *   demand  x counts the user's events, including refused ones, and halves every 7 s. It is 1 for
 *           the first event of an unknown user. Only ratios of demands matter, so x needs no unit
 *           and no warm-up.
 *   table   open addressing, one slot of 12 bytes per user. A new table replaces it when it is half
 *           full, and every 30 s. Each event then moves a few users to the new table, so growing
 *           never blocks. Users silent for 30 s are not moved. At most about FAIR_USERS_MAX users
 *           have a slot; a user without a slot has demand 1.
 *   levels  per class, a histogram of offered events by the demand of their user, in quarter
 *           octaves, over about the last second or the last 250 events, whichever is longer.
 *
 * `phi` follows the wait at each decision and oscillates with the wait, so the level is computed
 * for the mean of `phi` over about a second. Users below that level are served in full while the
 * current `phi` covers their events; users above it share the remaining capacity. When `phi` equals
 * its mean, this is the rule above. Only users that demand more than their share notice the
 * oscillation.
 *
 * Not thread-safe: the stage's sink calls everything but fair_new, fair_free and fair_table_new
 * under its queue's lock.
 */
#ifndef WEIR_ADMISSION_FAIR_H
#define WEIR_ADMISSION_FAIR_H

#include <stddef.h>
#include <stdint.h>

/** Maximum number of users with a slot: a million, which takes 25 MB, and up to twice that while
 *  users move. */
#define FAIR_USERS_MAX (FAIR_SLOTS_MAX / 2)
#define FAIR_SLOTS_MAX (1U << 21)

struct fair;
struct fair_table;

/** Allocate shares without any users. A random `seed` keeps clients from choosing ids that collide.
 *  Takes about 3.5 KB for each class that has users, in addition to the table. Returns NULL if out
 *  of memory. The caller frees the shares with fair_free. */
struct fair *fair_new(uint64_t seed);
void fair_free(struct fair *f);

/** Record that the user `id` offers an event of the class at `now_ns`. Returns the user's demand,
 *  at least 1; it is always 1 if memory for the class cannot be allocated. The call costs one or
 *  two cache misses. */
float fair_note(struct fair *f, int class_id, uint64_t id, int64_t now_ns);

/**
 * Return the position in the rota (users.h) of an event whose user has the position `place` and the
 * demand `demand`.
 *
 * A user is served in one contiguous part of each period, so that the user can finish its work.
 * This does not work for a user that sends a large share of all events: while that user is served,
 * it alone overloads the stage, and others are refused because of the resulting wait. So the
 * positions of a user's events are spread over 16 times the user's share of the class's demand:
 * very little for one of a thousand equal users, but over the whole period for a user that sends a
 * sixteenth of all events.
 */
uint16_t fair_place(struct fair *f, int class_id, uint16_t place, float demand);

/** Return the fraction of each period, 0..1, for which a user of demand `demand` is served if the
 *  fraction `phi`, 0..1, of the class is served. Returns `phi` itself while nothing is known of the
 *  class. The call costs about 10 ns. */
double fair_part(const struct fair *f, int class_id, double phi, float demand);

/** Record that a decision used `phi`, 0..1, for the class. The mean of phi is the mean over the
 *  recorded decisions. */
void fair_decided(struct fair *f, int class_id, double phi);

/** Update the levels from the recorded events. Called once per tick; costs about 0.2 us for each
 *  class that has users. */
void fair_tick(struct fair *f, int64_t now_ns);

/** Return the number of slots that the next table should have, or 0 if the current table suffices
 *  or users are still moving into it. */
uint32_t fair_wants(const struct fair *f, int64_t now_ns);

/** Allocate an empty table of `slots` slots, a power of two. Returns NULL if out of memory. */
struct fair_table *fair_table_new(uint32_t slots);

/** Replace the table by `t`, whose size fair_wants returned. `f` takes ownership of `t`. */
void fair_renew(struct fair *f, struct fair_table *t, int64_t now_ns);

/** Return the replaced table once all users have moved out of it, else NULL. The caller must pass
 *  it to fair_table_free. */
struct fair_table *fair_left(struct fair *f);
void fair_table_free(struct fair_table *t);

/** Return the memory in use, in bytes. */
size_t fair_bytes(const struct fair *f);

#endif
