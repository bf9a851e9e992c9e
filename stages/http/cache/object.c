/* SPDX-License-Identifier: MIT */
/*
 * Makes objects of answers; see object.h.
 *
 * The lines of an answer are sorted while they are copied: Content-Type first, which an answer with several
 * ranges replaces, then the others, and at the end those that a 304 repeats (RFC 9110, 15.4.5). So the fields
 * of each kind of answer are one slice, and a hit formats nothing but Age and Cache-Status.
 */
#include "http/cache/object.h"

#include <stdlib.h>
#include <string.h>

#include "file/httpdate.h"

enum place { PLACE_TYPE, PLACE_OTHER, PLACE_304 };

static enum place place_of(const struct cache_line *l)
{
	if (cache_line_goes_with_304(l))
		return PLACE_304;
	return weir_slice_is(l->name, "content-type") ? PLACE_TYPE : PLACE_OTHER;
}

/* What an object is made of: the lines of an answer and, if it is a 304, of the object that it updates. */
struct source {
	const struct hcache_answer *a;
	const struct hcache_object *old;
};

/* Whether a 304 leaves this field as it was stored, since it describes the stored body (RFC 9111, 3.2). */
static bool describes_body(struct weir_slice name)
{
	return weir_slice_is(name, "content-encoding") || weir_slice_is(name, "content-type") ||
	       weir_slice_is(name, "content-range");
}

/* The lines of the object come from part 0 and 1 of the answer, and 2, the old object. */
static struct weir_slice part_of(const struct source *s, int part)
{
	if (part < 2)
		return s->a->fields.part[part];
	return s->old ? s->old->fields : (struct weir_slice){NULL, 0};
}

/* Whether a line of the old object remains although a 304 has it anew. The tag of a body that was compressed
 * behind the origin is weak, and stays so. */
static bool remains(const struct hcache_object *old, const struct cache_line *l)
{
	return describes_body(l->name) || (weir_slice_is(l->name, "etag") && old->file.etag.n > 2 &&
					      memcmp(old->file.etag.p, "W/", 2) == 0);
}

static bool is_kept(const struct source *s, int part, const struct cache_line *l)
{
	if (part == 2)
		return remains(s->old, l) || !hcache_answer_names(s->a, l->name);
	return hcache_answer_keeps(s->a, l) && !(s->old && remains(s->old, l));
}

static size_t fields_bytes(const struct source *s)
{
	size_t n = 0;

	for (int part = 0; part < 3; part++) {
		struct weir_slice rest = part_of(s, part);
		struct cache_line l;
		while (cache_line_next(&rest, &l))
			n += is_kept(s, part, &l) ? l.whole.n : 0;
	}
	return n;
}

static void learn(struct hcache_object *o, const struct cache_line *l)
{
	if (weir_slice_is(l->name, "content-type"))
		o->type = l->value;
	else if (weir_slice_is(l->name, "content-encoding"))
		o->file.one_part = true;
	else if (weir_slice_is(l->name, "etag"))
		o->file.etag = l->value;
	else if (weir_slice_is(l->name, "last-modified") &&
		 httpdate_parse(l->value, &o->file.modified_s) < 0)
		o->file.modified_s = -1;
	if (cache_line_has_no_ranges(l))
		o->file.no_ranges = true;
}

static char *fields_copy(
    const struct source *s, enum place place, char *to, struct hcache_object *o)
{
	for (int part = 0; part < 3; part++) {
		struct weir_slice rest = part_of(s, part);
		struct cache_line l, copy;
		while (cache_line_next(&rest, &l)) {
			if (place_of(&l) != place || !is_kept(s, part, &l))
				continue;
			memcpy(to, l.whole.p, l.whole.n);
			struct weir_slice at = {to, l.whole.n};
			if (cache_line_next(&at, &copy))
				learn(o, &copy);
			to += l.whole.n;
		}
	}
	return to;
}

/* Allocate an object with its key, and room for `more` bytes. */
static struct hcache_object *alloc(
    enum hcache_kind kind, uint64_t hash, struct weir_slice key, size_t more)
{
	size_t size = sizeof(struct hcache_object) + key.n + more;

	size = (size + WEIR_CACHE_LINE - 1) & -(size_t)WEIR_CACHE_LINE;
	struct hcache_object *o = aligned_alloc(WEIR_CACHE_LINE, size);
	if (!o)
		return NULL;
	memset(o, 0, sizeof(*o));
	if (key.n > 0)
		memcpy(o->bytes, key.p, key.n);
	o->kind = kind;
	o->hash = hash;
	o->key = (struct weir_slice){o->bytes, key.n};
	o->file.modified_s = -1;
	/* with the header of malloc and a bucket */
	o->charge_bytes = (int64_t)size + 32;
	atomic_init(&o->refs, 1);
	return o;
}

static int64_t ns_of(int64_t s)
{
	return s == HCACHE_ABSENT ? -1 : s * 1000000000;
}

static void set_rules(struct hcache_object *o, const struct hcache_answer *a, int64_t now_ns)
{
	const struct hcache_control *c = &a->control;
	bool shared = c->s_maxage_s != HCACHE_ABSENT;

	o->unchecked = !c->no_cache;
	o->must_revalidate = c->must_revalidate || c->proxy_revalidate || c->no_cache;
	o->stale_forbidden = o->must_revalidate || shared; /* RFC 9111, 5.2.2.10 */
	o->for_authorized = c->is_public || shared || c->must_revalidate;
	o->born_ns = now_ns - ns_of(a->age_s);
	o->fresh_ns = ns_of(a->lifetime_s);
	o->while_ns = ns_of(c->stale_while_revalidate_s);
	o->error_ns = ns_of(c->stale_if_error_s);
}

static struct hcache_body *body_new(struct weir_slice bytes)
{
	struct hcache_body *b = malloc(sizeof(*b) + bytes.n);

	if (!b)
		return NULL;
	atomic_init(&b->refs, 1);
	b->n = bytes.n;
	memcpy(b->bytes, bytes.p, bytes.n);
	return b;
}

static bool set_body(
    struct hcache_object *o, struct weir_slice body, const struct hcache_object *old)
{
	if (old && old->body) {
		o->body = old->body;
		atomic_fetch_add_explicit(&o->body->refs, 1, memory_order_relaxed);
	} else if (!old && body.n > 0) {
		o->body = body_new(body);
		if (!o->body)
			return false;
	}
	if (o->body) {
		o->file.size_bytes = (int64_t)o->body->n;
		o->charge_bytes += (int64_t)(sizeof(*o->body) + o->body->n + 16);
	}
	return true;
}

struct hcache_object *hcache_object_make(const struct hcache_answer *a, struct weir_slice body,
    const struct hcache_object *old, uint64_t hash, struct weir_slice key, int64_t now_ns)
{
	struct source s = {a, old};
	struct hcache_object *o = alloc(HCACHE_WHOLE, hash, key, fields_bytes(&s));

	if (!o)
		return NULL;
	char *start = o->bytes + key.n;
	char *rest = fields_copy(&s, PLACE_TYPE, start, o);
	char *tail = fields_copy(&s, PLACE_OTHER, rest, o);
	char *end = fields_copy(&s, PLACE_304, tail, o);
	o->fields = (struct weir_slice){start, (size_t)(end - start)};
	o->fields_parts = (struct weir_slice){rest, (size_t)(end - rest)};
	o->fields_304 = (struct weir_slice){tail, (size_t)(end - tail)};
	o->status = (uint16_t)(old ? old->status : a->status);
	o->varies = o->file.varies = a->vary.n > 0 || (old && old->varies);
	set_rules(o, a, now_ns);
	if (!set_body(o, body, old)) {
		hcache_object_put(o);
		return NULL;
	}
	return o;
}

struct hcache_object *hcache_object_pass(
    uint64_t hash, struct weir_slice key, int64_t now_ns, int64_t keep_ns)
{
	struct hcache_object *o = alloc(HCACHE_PASS, hash, key, 0);

	if (o) {
		o->born_ns = now_ns;
		o->fresh_ns = keep_ns;
	}
	return o;
}

struct hcache_object *hcache_object_fork(
    uint64_t hash, struct weir_slice key, struct weir_slice names, uint64_t id)
{
	struct hcache_object *o = alloc(HCACHE_FORKS, hash, key, names.n);

	if (!o)
		return NULL;
	o->names = (struct weir_slice){o->bytes + key.n, names.n};
	memcpy(o->bytes + key.n, names.p, names.n);
	o->id = id;
	return o;
}

static void leave_account(const struct hcache_object *o)
{
	struct hcache_account *a = o->account;

	atomic_fetch_sub_explicit(&a->pinned_bytes, o->charge_bytes, memory_order_relaxed);
	if (atomic_fetch_sub_explicit(&a->refs, 1, memory_order_acq_rel) == 1)
		free(a);
}

void hcache_object_put(struct hcache_object *o)
{
	/* acq_rel: what other holders did happens before the free */
	if (!o || atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (o->account)
		leave_account(o);
	if (o->body && atomic_fetch_sub_explicit(&o->body->refs, 1, memory_order_acq_rel) == 1)
		free(o->body);
	free(o);
}
