/* SPDX-License-Identifier: MIT */
/*
 * How old an answer is, and for how long it is fresh (RFC 9111, 4.2). Pure functions; any thread.
 */
#ifndef WEIR_STAGES_HTTP_CACHE_FRESH_H
#define WEIR_STAGES_HTTP_CACHE_FRESH_H

#include "http/cache/control.h"

/** What the fields of an answer say about its age. */
struct hcache_times {
	int64_t date_s;     /* Date; HCACHE_ABSENT if it is missing or malformed */
	int64_t modified_s; /* Last-Modified; HCACHE_ABSENT if it is missing or malformed */
	int64_t expires_s;  /* with `has_expires`; HCACHE_ABSENT if it is malformed or sent twice */
	int64_t age_s;      /* Age; HCACHE_ABSENT if it is missing, 2^31 if it is malformed */
	bool has_expires;
};

/** Settings for answers that do not say how long they are fresh. */
struct hcache_heuristic {
	double share;   /* of the time since Last-Modified; 0 switches the heuristic off */
	int64_t most_s; /* limit on the result */
};

/** Set all to absent. */
void hcache_times_init(struct hcache_times *t);

/** Take the field into account, if it is one of the four. */
void hcache_times_add(struct hcache_times *t, struct weir_slice name, struct weir_slice value);

/** The age of an answer when it arrived, in seconds, at least 0 (4.2.3). `now_s` is the time of arrival by
 * CLOCK_REALTIME, `delay_s` the time since the request was sent. */
int64_t hcache_age_s(const struct hcache_times *t, int64_t now_s, int64_t delay_s);

/** Whether the answer itself says for how long it is fresh in a shared cache. */
bool hcache_is_explicit(const struct hcache_control *c, const struct hcache_times *t);

/** For how long an answer is fresh in a shared cache, in seconds, counted in its age, at least 0 (4.2.1):
 * s-maxage, max-age, Expires less Date, or the heuristic for `status`, which applies to the statuses that
 * may be stored without being told (RFC 9110, 15.1). An Expires that is malformed is in the past. */
int64_t hcache_lifetime_s(const struct hcache_control *c, const struct hcache_times *t, int status,
    const struct hcache_heuristic *h, int64_t now_s);

/** Whether `status` may be stored without an explicit lifetime (RFC 9110, 15.1). */
bool hcache_status_heuristic(int status);

#endif
