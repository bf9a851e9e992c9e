/* SPDX-License-Identifier: MIT */
/*
 * Checks that no event gets more payloads than it has room for (WEIR_PAYLOADS_MAX).
 *
 * A breadth-first search visits the states (stage, payloads that an event has when it arrives there),
 * beginning with the links of the sources. So it finds a shortest way to each state, which errors name.
 * What an event has when it leaves a stage follows from `gives` and `takes`, as in plan/payloads.c. The
 * search ends after SEEN_MAX states and knows TYPES_MAX types; beyond that, as in graphs without a
 * source, the fifth payload is refused at run time.
 */
#include "plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Both are choices: a graph in which an event has two payloads in all orders needs far fewer. */
#define SEEN_MAX  2048
#define TYPES_MAX 64

struct seen {
	uint64_t set; /* of the types with these numbers */
	int16_t stage;
	int16_t from; /* the state before this one; or -1 - the source */
};

struct search {
	struct plan *p;
	int n_types, n;
	const struct weir_payload_type *type[TYPES_MAX];
	bool told[WEIR_STAGES_MAX]; /* stages with an error */
	struct seen seen[SEEN_MAX];
};

static uint64_t bit_of(struct search *s, const struct weir_payload_type *type)
{
	int i = 0;

	while (i < s->n_types && s->type[i] != type)
		i++;
	if (i == TYPES_MAX)
		return 0;
	if (i == s->n_types)
		s->type[s->n_types++] = type;
	return UINT64_C(1) << i;
}

/* The payloads that `at` lists for the outlet. */
static uint64_t listed(struct search *s, const struct weir_payload_at *at, const char *outlet)
{
	uint64_t set = 0;

	for (; at && at->type; at++)
		if (!at->outlet || strcmp(at->outlet, outlet) == 0)
			set |= bit_of(s, at->type);
	return set;
}

/* Write the names of the types in `set` to text[size]. */
static void write_set(const struct search *s, uint64_t set, char *text, size_t size)
{
	size_t at = 0;

	text[0] = '\0';
	for (int i = 0; i < s->n_types && at < size; i++)
		if (set >> i & 1)
			at += (size_t)snprintf(
			    text + at, size - at, "%s%.24s", at ? ", " : "", s->type[i]->name);
}

/* Report that an event, which has come to stage `id` by the state `from` with the payloads `set`, gets
 * those in `more`. */
static void tell(struct search *s, int id, int from, uint64_t set, uint64_t more)
{
	const struct plan *p = s->p;
	int way[WEIR_STAGES_MAX + 1], back[WEIR_STAGES_MAX + 1], n = 0;
	char names[130], had[130], gets[130];

	for (; from >= 0 && n < WEIR_STAGES_MAX; from = s->seen[from].from)
		back[n++] = s->seen[from].stage;
	if (n == 0 || from < -1) { /* a source has no state of its own */
		back[n] = n == 0 ? id : -2 - from;
		n++;
	}
	for (int i = 0; i < n; i++)
		way[i] = back[n - 1 - i];
	plan_write_way(p, way, n, names, sizeof(names));
	write_set(s, set, had, sizeof(had));
	write_set(s, more, gets, sizeof(gets));
	const struct weir_stage_spec *spec = p->stages[id].spec;
	weir_errs_add(p->errs, &spec->mark, WEIR_EINVAL,
	    "let a stage before it take one that is needed no more (weir_stage_ops.takes)",
	    "'%s' gives %s; on the way %s the event has %s already, and an event has at most %d "
	    "payloads",
	    spec->name, gets, names, set ? had : "none", WEIR_PAYLOADS_MAX);
	s->told[id] = true;
}

/* Visit the states after that of an event with the payloads `set` in stage `id`. `from`: its state, or
 * -1 if the stage is a source. */
static void follow(struct search *s, int id, uint64_t set, int from)
{
	const struct plan_stage *ps = &s->p->stages[id];

	for (int i = 0; i < ps->n_outlets; i++) {
		const struct plan_outlet *o = &ps->outlets[i];
		uint64_t kept =
		    plan_same_event(ps, o) ? set & ~listed(s, ps->ops->takes, o->name) : 0;
		uint64_t left = kept | listed(s, ps->ops->gives, o->name);
		int at = 0;
		if (o->to < 0 || !s->p->stages[o->to].ops)
			continue;
		if (__builtin_popcountll(left) > WEIR_PAYLOADS_MAX) {
			if (!s->told[id])
				tell(s, id, from, kept, left & ~kept);
			continue;
		}
		while (at < s->n && (s->seen[at].stage != o->to || s->seen[at].set != left))
			at++;
		if (at == s->n && s->n < SEEN_MAX)
			s->seen[s->n++] = (struct seen){.set = left,
			    .stage = (int16_t)o->to,
			    .from = (int16_t)(from >= 0 ? from : -2 - id)};
	}
}

void plan_payloads_many(struct plan *p)
{
	struct search *s = calloc(1, sizeof(*s));

	if (!s) {
		weir_errs_add(p->errs, NULL, WEIR_ENOMEM, NULL, "out of memory");
		return;
	}
	s->p = p;
	for (int i = 0; i < p->n; i++)
		if (p->stages[i].ops && p->stages[i].ops->flags & WEIR_STAGE_SOURCE)
			follow(s, i, 0, -1);
	for (int i = 0; i < s->n; i++)
		follow(s, s->seen[i].stage, s->seen[i].set, i);
	free(s);
}
