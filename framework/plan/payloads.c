/* SPDX-License-Identifier: MIT */
/*
 * Checks payloads: on every way from a source to a stage, a stage gives what this one needs.
 *
 * For each type of payload, a breadth-first search visits the states (stage, whether an event that
 * arrives there has the payload), beginning with the links of the sources. So it covers all ways,
 * including those around loops, and finds a shortest way to each state, which errors name. An event
 * keeps its payloads where a stage emits the type that it accepts, since that is the same event, but not
 * at an outlet for children, which are new events.
 *
 * If a spec has no source, the program that embeds weir offers the events, with payloads or without,
 * so no way is known and nothing is refused.
 */
#include "plan/plan.h"

#include <stdio.h>
#include <string.h>

#define UNSEEN (-2)
#define SOURCE (-1)

/* A state is 2 * (stage id) + (1 if the event has the payload). */
#define STATES (2 * WEIR_STAGES_MAX)

struct ways {
	const struct plan *p;
	const struct weir_payload_type *type;
	int16_t from[STATES];  /* the state before this one, SOURCE or UNSEEN */
	int16_t first[STATES]; /* the source at the beginning of the way, for states with SOURCE */
};

static bool listed(
    const struct weir_payload_at *at, const struct weir_payload_type *type, const char *outlet)
{
	for (; at && at->type; at++)
		if (at->type == type && (!at->outlet || strcmp(at->outlet, outlet) == 0))
			return true;
	return false;
}

bool plan_same_event(const struct plan_stage *ps, const struct plan_outlet *o)
{
	return o->type == ps->type && !o->children;
}

/* Whether an event has the payload when it leaves `ps` by `o`. `has`: it had when it arrived. */
static bool leaves_with(
    const struct ways *w, const struct plan_stage *ps, const struct plan_outlet *o, bool has)
{
	if (listed(ps->ops->gives, w->type, o->name))
		return true;
	return has && plan_same_event(ps, o) && !listed(ps->ops->takes, w->type, o->name);
}

/* Add the states after state `from` of stage `id`, or after the source `id`, to queue[n..). Returns
 * the new n. */
static int follow(struct ways *w, int id, bool has, int from, int16_t *queue, int n)
{
	const struct plan_stage *ps = &w->p->stages[id];

	for (int i = 0; i < ps->n_outlets; i++) {
		const struct plan_outlet *o = &ps->outlets[i];
		if (o->to < 0 || !w->p->stages[o->to].ops)
			continue;
		int state = 2 * o->to + leaves_with(w, ps, o, has);
		if (w->from[state] != UNSEEN)
			continue;
		w->from[state] = (int16_t)from;
		w->first[state] = (int16_t)id;
		queue[n++] = (int16_t)state;
	}
	return n;
}

static void find_ways(struct ways *w, const struct plan *p, const struct weir_payload_type *type)
{
	int16_t queue[STATES];
	int n = 0;

	w->p = p;
	w->type = type;
	for (int i = 0; i < STATES; i++)
		w->from[i] = UNSEEN;
	for (int i = 0; i < p->n; i++)
		if (p->stages[i].ops && p->stages[i].ops->flags & WEIR_STAGE_SOURCE)
			n = follow(w, i, false, SOURCE, queue, n);
	for (int i = 0; i < n; i++)
		n = follow(w, queue[i] / 2, queue[i] % 2, queue[i], queue, n);
}

/* Whether an event may reach stage `id` without the payload. */
static bool may_lack(const struct ways *w, int id)
{
	return w->from[2 * id] != UNSEEN;
}

void plan_write_way(const struct plan *p, const int *way, int n, char *text, size_t size)
{
	size_t at = 0, length = 0;
	int skip = 0;

	for (int i = 0; i < n; i++)
		length += strlen(p->stages[way[i]].spec->name) + 3;
	while (length + 6 > size && n - skip > 3) { /* shorten from the second name on */
		length -= strlen(p->stages[way[1 + skip]].spec->name) + 3;
		skip++;
	}
	for (int i = 0; i < n && at < size; i++) {
		bool hidden = i >= 1 && i <= skip;
		if (hidden && i > 1)
			continue;
		at += (size_t)snprintf(text + at, size - at, "%s%s", i ? " > " : "",
		    hidden ? "..." : p->stages[way[i]].spec->name);
	}
}

static bool takes(const struct ways *w, int id)
{
	for (const struct weir_payload_at *t = w->p->stages[id].ops->takes; t && t->type; t++)
		if (t->type == w->type)
			return true;
	return false;
}

/* Describe in `text` a way on which an event reaches stage `id` without the payload, and why. */
static void say_way(const struct ways *w, int id, char *text, size_t size)
{
	int way[STATES + 1], n = 0, lost = -1;
	char names[130];

	for (int s = 2 * id;; s = w->from[s]) {
		way[n++] = s / 2;
		if (w->from[s] == SOURCE) {
			way[n++] = w->first[s];
			break;
		}
		if (lost < 0 && s % 2 == 0 && w->from[s] % 2 == 1)
			lost = w->from[s] / 2;
	}
	for (int i = 0; i < n / 2; i++) {
		int other = way[i];
		way[i] = way[n - 1 - i];
		way[n - 1 - i] = other;
	}
	plan_write_way(w->p, way, n, names, sizeof(names));
	if (lost < 0)
		snprintf(text, size, "on the way %s no stage gives it", names);
	else
		snprintf(text, size, "on the way %s '%.64s' %s", names,
		    w->p->stages[lost].spec->name,
		    takes(w, lost) ? "takes it" : "sends another event");
}

const char *plan_givers(const struct weir_payload_type *type, char *hint, size_t size)
{
	const struct weir_stage_ops *ops;
	size_t at = 0;

	for (int i = 0; (ops = weir_stage_type_at(i)) && at < size; i++)
		for (const struct weir_payload_at *g = ops->gives; g && g->type; g++) {
			if (g->type != type)
				continue;
			at += (size_t)snprintf(hint + at, size - at, "%s%s",
			    at ? ", " : "put a stage before it that gives it: ", ops->name);
			break;
		}
	if (at == 0)
		snprintf(hint, size, "no known stage type gives it");
	return hint;
}

/* Report that events may reach stage `id` without a payload that is used there: for `field`, the value
 * of the key `what`, or by the handler if these are NULL. */
static void check_way(struct plan *p, const struct weir_payload_type *type, int id,
    const char *what, const char *field)
{
	const struct weir_stage_spec *s = p->stages[id].spec;
	char hint[160], way[256];
	struct ways w;

	find_ways(&w, p, type);
	if (!may_lack(&w, id))
		return;
	say_way(&w, id, way, sizeof(way));
	plan_givers(type, hint, sizeof(hint));
	if (what)
		weir_errs_add(p->errs, &s->mark, WEIR_ENOENT, hint, "'%s' of '%s' is %s; %s", what,
		    s->name, field, way);
	else
		weir_errs_add(p->errs, &s->mark, WEIR_ENOENT, hint, "'%s' needs %s; %s", s->name,
		    type->name, way);
}

static const char *key_of(const struct plan_stage *ps)
{
	return ps->serial ? "serial" : ps->spec->mode == WEIR_MODE_PARTITIONED ? "key" : "by";
}

/* Text of a field as in the configuration: TYPE.NAME. */
static void field_name(const struct field_ref *f, char *text, size_t size)
{
	snprintf(
	    text, size, "%.40s.%.40s", f->payload->name, f->arg ? f->arg : f->of_payload->name);
}

static void check_stage(struct plan *p, int id)
{
	const struct plan_stage *ps = &p->stages[id];
	char field[96];

	for (int i = 0; ps->ops->needs && ps->ops->needs[i]; i++)
		check_way(p, ps->ops->needs[i], id, NULL, NULL);
	if (ps->key.field.payload) {
		field_name(&ps->key.field, field, sizeof(field));
		check_way(p, ps->key.field.payload, id, key_of(ps), field);
	}
	if (ps->cost.field.payload) {
		field_name(&ps->cost.field, field, sizeof(field));
		check_way(p, ps->cost.field.payload, id, "queue.by", field);
	}
}

/* Report an outlet for which the stage gives payloads, but whose events cannot have them. */
static void check_tables(struct plan *p, const struct plan_stage *ps)
{
	for (const struct weir_payload_at *g = ps->ops->gives; g && g->type; g++)
		for (int i = 0; i < ps->n_outlets; i++) {
			const struct plan_outlet *o = &ps->outlets[i];
			if ((g->outlet && strcmp(g->outlet, o->name) != 0) || !o->type ||
			    o->type->payloads || o->to < 0)
				continue;
			weir_errs_add(p->errs, &o->mark, WEIR_ETYPE,
			    "its events need the member 'payloads' (weir/payload.h)",
			    "'%s' gives %s, but events of type %s have no payloads", ps->spec->name,
			    g->type->name, o->type->name);
			return;
		}
}

/* Report a payload type of `ps` whose name another type of the graph has, too. */
static void check_name(
    struct plan *p, const struct plan_stage *ps, const struct weir_payload_type *type)
{
	const struct weir_payload_type *first =
	    plan_payload_named(p, type->name, strlen(type->name));

	if (first != type)
		weir_errs_add(p->errs, &ps->spec->use_mark, WEIR_EINVAL,
		    "stages that share payloads must use the same type, not a copy of it",
		    "stage '%s' (%s) uses another payload type called '%s' than the other stages",
		    ps->spec->name, ps->spec->use, type->name);
}

static void check_names(struct plan *p, const struct plan_stage *ps)
{
	for (int i = 0; ps->ops->needs && ps->ops->needs[i]; i++)
		check_name(p, ps, ps->ops->needs[i]);
	for (const struct weir_payload_at *g = ps->ops->gives; g && g->type; g++)
		check_name(p, ps, g->type);
}

bool plan_source_gives(const struct plan *p, const struct weir_payload_type *type)
{
	for (int i = 0; i < p->n; i++) {
		const struct weir_stage_ops *ops = p->stages[i].ops;
		if (!ops || !(ops->flags & WEIR_STAGE_SOURCE))
			continue;
		for (const struct weir_payload_at *g = ops->gives; g && g->type; g++)
			if (g->type == type)
				return true;
	}
	return false;
}

void plan_payloads(struct plan *p)
{
	for (int i = 0; i < p->n; i++) {
		if (!p->stages[i].ops)
			continue;
		check_names(p, &p->stages[i]);
		check_tables(p, &p->stages[i]);
		if (!(p->stages[i].ops->flags & WEIR_STAGE_SOURCE))
			check_stage(p, i);
	}
}
