/* SPDX-License-Identifier: MIT */
/*
 * Cache-Control of requests and answers (RFC 9111, 5.2; RFC 5861; RFC 8246). Pure functions; any thread.
 *
 * Several lines form one list. Where directives contradict each other or occur twice, the strictest one
 * applies. Unknown directives are ignored. A number that is malformed counts as the strictest one, and one
 * above 2^31 as 2^31 (RFC 9111, 1.2.2).
 */
#ifndef WEIR_STAGES_HTTP_CACHE_CONTROL_H
#define WEIR_STAGES_HTTP_CACHE_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/event.h>

/** The value of a number that was not sent. */
#define HCACHE_ABSENT (-1)

/** The largest number of seconds. */
#define HCACHE_SECONDS_MAX 0x80000000LL

/** How many lists of fields (no-cache="a, b") are kept. */
#define HCACHE_LISTS 4

struct hcache_control {
	bool no_store, no_cache, is_private, is_public;
	bool must_revalidate, proxy_revalidate, must_understand, immutable;
	bool no_transform, only_if_cached;
	uint8_t n_lists;
	/* in seconds, or HCACHE_ABSENT */
	int64_t max_age_s, s_maxage_s, max_stale_s, min_fresh_s;
	int64_t stale_while_revalidate_s, stale_if_error_s;
	/* Fields that must not be stored: those that private="..." or no-cache="..." name. They point into
	 * the lines. If there are more lists, the directive counts as one without fields. */
	struct weir_slice list[HCACHE_LISTS];
};

/** Set all to absent. */
void hcache_control_init(struct hcache_control *c);

/** Add the value of one Cache-Control line, which must stay valid while `c` is used. */
void hcache_control_add(struct hcache_control *c, struct weir_slice line);

/** Whether `name` is a field that private or no-cache names. */
bool hcache_control_lists(const struct hcache_control *c, struct weir_slice name);

/** Take the first member of the list *rest, "a, b;x=\"1,2\"": the text up to a comma that is not within
 * quotes, without white space around it. Members that are empty are skipped. Returns false at the end. */
bool hcache_member_next(struct weir_slice *rest, struct weir_slice *member);

/** Parse a number of seconds, digits alone. Returns HCACHE_ABSENT if it is malformed. */
int64_t hcache_seconds(struct weir_slice text);

#endif
