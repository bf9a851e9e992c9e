/* SPDX-License-Identifier: MIT */
/* Parses Cache-Control; see control.h. */
#include "http/cache/control.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include <weir/http.h>

#include "text/ows.h"

void hcache_control_init(struct hcache_control *c)
{
	*c = (struct hcache_control){.max_age_s = HCACHE_ABSENT,
	    .s_maxage_s = HCACHE_ABSENT,
	    .max_stale_s = HCACHE_ABSENT,
	    .min_fresh_s = HCACHE_ABSENT,
	    .stale_while_revalidate_s = HCACHE_ABSENT,
	    .stale_if_error_s = HCACHE_ABSENT};
}

bool hcache_member_next(struct weir_slice *rest, struct weir_slice *member)
{
	const char *p = rest->p, *end = p + rest->n;

	while (p < end && (ows_is(*p) || *p == ','))
		p++;
	const char *from = p;
	bool quoted = false;
	for (; p < end && (quoted || *p != ','); p++) {
		if (*p == '"')
			quoted = !quoted;
		else if (quoted && *p == '\\' && p + 1 < end)
			p++; /* an escaped quote does not end the string (RFC 9110, 5.6.4) */
	}
	*rest = (struct weir_slice){p, (size_t)(end - p)};
	*member = ows_trim(from, p);
	return member->n > 0;
}

int64_t hcache_seconds(struct weir_slice text)
{
	int64_t v = 0;

	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return HCACHE_ABSENT;
		v = v < HCACHE_SECONDS_MAX ? v * 10 + (text.p[i] - '0') : v;
	}
	if (text.n == 0)
		return HCACHE_ABSENT;
	return v < HCACHE_SECONDS_MAX ? v : HCACHE_SECONDS_MAX;
}

static void keep_least(int64_t *to, struct weir_slice value)
{
	int64_t v = hcache_seconds(value);

	v = v == HCACHE_ABSENT ? 0 : v;
	if (*to == HCACHE_ABSENT || v < *to)
		*to = v;
}

static void keep_most(int64_t *to, struct weir_slice value)
{
	int64_t v = hcache_seconds(value);

	v = v == HCACHE_ABSENT ? HCACHE_SECONDS_MAX : v;
	if (v > *to)
		*to = v;
}

/* A directive that may name fields. Without any it concerns the whole answer. */
static void keep_list(struct hcache_control *c, bool *whole, struct weir_slice value)
{
	struct weir_slice rest = value, name;

	if (!hcache_member_next(&rest, &name) || c->n_lists == HCACHE_LISTS)
		*whole = true;
	else
		c->list[c->n_lists++] = value;
}

struct number {
	const char *name;
	size_t offset;
	void (*keep)(int64_t *to, struct weir_slice value);
};

#define AT(member) offsetof(struct hcache_control, member)

static bool keep_number(struct hcache_control *c, struct weir_slice name, struct weir_slice value)
{
	static const struct number numbers[] = {
	    {"max-age", AT(max_age_s), keep_least},
	    {"s-maxage", AT(s_maxage_s), keep_least},
	    {"max-stale", AT(max_stale_s), keep_least},
	    {"min-fresh", AT(min_fresh_s), keep_most},
	    {"stale-while-revalidate", AT(stale_while_revalidate_s), keep_least},
	    {"stale-if-error", AT(stale_if_error_s), keep_least},
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (weir_slice_is(name, numbers[i].name)) {
			numbers[i].keep((int64_t *)(void *)((char *)c + numbers[i].offset), value);
			return true;
		}
	return false;
}

static void keep_flag(struct hcache_control *c, struct weir_slice name)
{
	static const struct {
		const char *name;
		size_t offset;
	} flags[] = {
	    {"no-store", AT(no_store)},
	    {"public", AT(is_public)},
	    {"must-revalidate", AT(must_revalidate)},
	    {"proxy-revalidate", AT(proxy_revalidate)},
	    {"must-understand", AT(must_understand)},
	    {"immutable", AT(immutable)},
	    {"no-transform", AT(no_transform)},
	    {"only-if-cached", AT(only_if_cached)},
	};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (weir_slice_is(name, flags[i].name))
			*(bool *)((char *)c + flags[i].offset) = true;
}

#undef AT

/* `value` is without its quotes, and {NULL, 0} if the directive has none. */
static void keep(struct hcache_control *c, struct weir_slice name, struct weir_slice value)
{
	static const struct weir_slice any = {"2147483648", 10};

	if (weir_slice_is(name, "no-cache"))
		keep_list(c, &c->no_cache, value);
	else if (weir_slice_is(name, "private"))
		keep_list(c, &c->is_private, value);
	else if (weir_slice_is(name, "max-stale") && !value.p)
		keep_number(c, name, any); /* however stale */
	else if (!keep_number(c, name, value))
		keep_flag(c, name);
}

void hcache_control_add(struct hcache_control *c, struct weir_slice line)
{
	struct weir_slice rest = line, member;

	while (line.n > 0 && hcache_member_next(&rest, &member)) {
		const char *equals = memchr(member.p, '=', member.n), *end = member.p + member.n;
		struct weir_slice value = {NULL, 0};
		if (equals) {
			value = ows_trim(equals + 1, end);
			if (value.n >= 2 && value.p[0] == '"' && value.p[value.n - 1] == '"')
				value = (struct weir_slice){value.p + 1, value.n - 2};
		}
		keep(c, ows_trim(member.p, equals ? equals : end), value);
	}
}

bool hcache_control_lists(const struct hcache_control *c, struct weir_slice name)
{
	for (int i = 0; i < c->n_lists; i++) {
		struct weir_slice rest = c->list[i], member;
		while (hcache_member_next(&rest, &member))
			if (member.n == name.n && strncasecmp(member.p, name.p, name.n) == 0)
				return true;
	}
	return false;
}
