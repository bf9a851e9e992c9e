/* SPDX-License-Identifier: MIT */
/* Judges answers; see answer.h. */
#include "http/cache/answer.h"

#include <string.h>
#include <strings.h>

#include "http/request/request.h"

static void read_line(struct hcache_answer *a, const struct cache_line *l)
{
	if (weir_slice_is(l->name, "cache-control"))
		hcache_control_add(&a->control, l->value);
	else if (weir_slice_is(l->name, "vary"))
		hcache_vary_add(&a->vary, l->value);
	else if (weir_slice_is(l->name, "set-cookie"))
		a->sets_cookie = true;
	else if (weir_slice_is(l->name, "content-range"))
		a->has_range = true;
	else
		hcache_times_add(&a->times, l->name, l->value);
	a->has_validator |= weir_slice_is(l->name, "etag");
}

void hcache_answer_read(
    struct hcache_answer *a, const struct weir_http_request *req, uint32_t start)
{
	*a = (struct hcache_answer){
	    .status = req->res.status, .fields = cache_fields_of(req, start)};
	hcache_control_init(&a->control);
	hcache_times_init(&a->times);
	for (int i = 0; i < 2; i++) {
		struct weir_slice rest = a->fields.part[i];
		struct cache_line l;
		while (cache_line_next(&rest, &l))
			read_line(a, &l);
	}
	a->has_validator |= a->times.modified_s != HCACHE_ABSENT;
}

void hcache_answer_relist(struct hcache_answer *a)
{
	struct weir_slice rest = a->fields.part[0];
	struct cache_line l;

	hcache_control_init(&a->control);
	while (cache_line_next(&rest, &l))
		if (weir_slice_is(l.name, "cache-control"))
			hcache_control_add(&a->control, l.value);
}

bool hcache_answer_names(const struct hcache_answer *a, struct weir_slice name)
{
	for (int i = 0; i < 2; i++) {
		struct weir_slice rest = a->fields.part[i];
		struct cache_line l;
		while (cache_line_next(&rest, &l))
			if (l.name.n == name.n && strncasecmp(l.name.p, name.p, name.n) == 0)
				return true;
	}
	return false;
}

void hcache_answer_inherit(struct hcache_answer *a, struct weir_slice old)
{
	struct cache_line l;

	while (cache_line_next(&old, &l))
		if (!hcache_answer_names(a, l.name))
			read_line(a, &l);
}

void hcache_answer_time(
    struct hcache_answer *a, const struct hcache_heuristic *h, int64_t now_s, int64_t delay_ns)
{
	a->age_s = hcache_age_s(&a->times, now_s, delay_ns / 1000000000);
	a->lifetime_s = hcache_lifetime_s(&a->control, &a->times, a->status, h, now_s);
}

/* Statuses that are stored. Others concern the request rather than the resource: errors that a client can
 * provoke with fields that are not in the key (400, 403, 405, 413, 414, 431) would be served to all. */
static bool status_kept(int status)
{
	switch (status) {
	case 200:
	case 203:
	case 204:
	case 300:
	case 301:
	case 302:
	case 303:
	case 307:
	case 308:
	case 404:
	case 410:
	case 451:
		return true;
	default:
		return false;
	}
}

enum hcache_verdict hcache_answer_judge(
    const struct hcache_answer *a, const struct hcache_asker *asker)
{
	const struct hcache_control *c = &a->control;
	bool is_explicit = hcache_is_explicit(c, &a->times);
	bool shared = c->is_public || c->s_maxage_s != HCACHE_ABSENT;

	if (a->status >= 500 || a->status == 408 || a->status == 429)
		return HCACHE_IGNORE;
	if (!status_kept(a->status) || c->no_store || c->is_private || a->vary.any || a->has_range)
		return HCACHE_REFUSE;
	if (a->sets_cookie && !shared)
		return HCACHE_REFUSE;
	if (asker->authorized && !shared && !c->must_revalidate) /* RFC 9111, 3.5 */
		return HCACHE_REFUSE;
	if (asker->cookie && !is_explicit && !c->is_public)
		return HCACHE_REFUSE; /* it may be the page of one user */
	bool fresh = a->lifetime_s > a->age_s && !c->no_cache;
	return fresh || (a->has_validator && a->status == 200) ? HCACHE_STORE : HCACHE_REFUSE;
}

bool hcache_answer_keeps(const struct hcache_answer *a, const struct cache_line *l)
{
	/* Set-Cookie is for the client that asked, even where `public` allows to store the answer. */
	static const char *const names[] = {"age", "set-cookie", "set-cookie2", "connection",
	    "content-length", "date", "keep-alive", "proxy-authenticate",
	    "proxy-authentication-info", "proxy-authorization", "proxy-connection", "te", "trailer",
	    "transfer-encoding", "upgrade", "x-weir-trace"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (weir_slice_is(l->name, names[i]))
			return false;
	return !hcache_control_lists(&a->control, l->name);
}
