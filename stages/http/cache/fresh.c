/* SPDX-License-Identifier: MIT */
/* Computes ages and lifetimes; see fresh.h. */
#include "http/cache/fresh.h"

#include <stddef.h>

#include <weir/http.h>

#include "file/httpdate.h"

void hcache_times_init(struct hcache_times *t)
{
	*t = (struct hcache_times){
	    HCACHE_ABSENT, HCACHE_ABSENT, HCACHE_ABSENT, HCACHE_ABSENT, false};
}

static int64_t date_of(struct weir_slice value)
{
	int64_t at_s;

	return httpdate_parse(value, &at_s) == 0 && at_s >= 0 ? at_s : HCACHE_ABSENT;
}

void hcache_times_add(struct hcache_times *t, struct weir_slice name, struct weir_slice value)
{
	if (weir_slice_is(name, "date")) {
		t->date_s = date_of(value);
	} else if (weir_slice_is(name, "last-modified")) {
		t->modified_s = date_of(value);
	} else if (weir_slice_is(name, "expires")) {
		t->expires_s = t->has_expires ? HCACHE_ABSENT : date_of(value);
		t->has_expires = true;
	} else if (weir_slice_is(name, "age")) {
		int64_t v = hcache_seconds(value);
		v = v == HCACHE_ABSENT ? HCACHE_SECONDS_MAX : v;
		t->age_s = v > t->age_s ? v : t->age_s;
	}
}

int64_t hcache_age_s(const struct hcache_times *t, int64_t now_s, int64_t delay_s)
{
	int64_t apparent = t->date_s != HCACHE_ABSENT && now_s > t->date_s ? now_s - t->date_s : 0;
	int64_t said = (t->age_s != HCACHE_ABSENT ? t->age_s : 0) + (delay_s > 0 ? delay_s : 0);
	int64_t age = said > apparent ? said : apparent;

	return age < HCACHE_SECONDS_MAX ? age : HCACHE_SECONDS_MAX;
}

bool hcache_is_explicit(const struct hcache_control *c, const struct hcache_times *t)
{
	return c->s_maxage_s != HCACHE_ABSENT || c->max_age_s != HCACHE_ABSENT || t->has_expires;
}

bool hcache_status_heuristic(int status)
{
	switch (status) {
	case 200:
	case 203:
	case 204:
	case 300:
	case 301:
	case 308:
	case 404:
	case 405:
	case 410:
	case 414:
	case 501:
		return true;
	default:
		return false;
	}
}

static int64_t clamp(int64_t s)
{
	if (s < 0)
		return 0;
	return s < HCACHE_SECONDS_MAX ? s : HCACHE_SECONDS_MAX;
}

/* RFC 9111, 4.2.2. Errors are left out, since a short failure must not last. */
static int64_t guess(
    const struct hcache_times *t, int status, const struct hcache_heuristic *h, int64_t date_s)
{
	if (t->modified_s == HCACHE_ABSENT || t->modified_s >= date_s || h->share <= 0 ||
	    !hcache_status_heuristic(status) || status >= 400)
		return 0;
	double s = (double)(date_s - t->modified_s) * h->share;
	return clamp(s < (double)h->most_s ? (int64_t)s : h->most_s);
}

int64_t hcache_lifetime_s(const struct hcache_control *c, const struct hcache_times *t, int status,
    const struct hcache_heuristic *h, int64_t now_s)
{
	int64_t date_s = t->date_s != HCACHE_ABSENT ? t->date_s : now_s;

	if (c->s_maxage_s != HCACHE_ABSENT)
		return c->s_maxage_s;
	if (c->max_age_s != HCACHE_ABSENT)
		return c->max_age_s;
	if (t->has_expires)
		return t->expires_s == HCACHE_ABSENT ? 0 : clamp(t->expires_s - date_s);
	return guess(t, status, h, date_s);
}
