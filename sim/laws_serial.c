/* SPDX-License-Identifier: MIT */
/*
 * S4 serial: events with the same value of a field never overlap in the serial stages of the field in
 * a core group, and keep the order of each sender.
 *
 * Check, when a core takes an event: no other core handles an event of the value. And its turn comes
 * after those of all events of the value that the stage has taken before and that came from the same
 * kind of sender: from serial stages of the same field, or from others. A turn is a number in the
 * order in which things happen. In a serial stage, an event gets it when it is taken, so the order is
 * that of handling. From elsewhere, it gets it when it is sent. In virtual time no two senders send at
 * once, so all of them are one sender here: that is more than a server promises.
 *
 * An event that has yielded may have been overtaken in the stage where it yielded, and is not checked
 * there again. It gets a new turn, so that it is checked at the next stage.
 *
 * In a partitioned stage, too, no other core handles an event of the value, and events of a value and a
 * class are taken in the order in which they were queued.
 *
 * What is checked knows nothing of slots and inboxes.
 */
#include "group.h"

#include <stdlib.h>

static size_t values(const struct sim_field *f)
{
	return f->values > 0 ? f->values : WEIR_CLASSES_MAX;
}

static int init_parts(struct sim *s)
{
	for (int i = 0; i < s->conf->n_stages && laws_asked(s, SIM_LAW_SERIAL); i++) {
		int f = s->stage[i].conf->partition - 1;
		if (f < 0)
			continue;
		s->stage[i].part_law = calloc(values(&s->conf->field[f]), sizeof(struct part_laws));
		if (!s->stage[i].part_law)
			return WEIR_ENOMEM;
	}
	return 0;
}

int laws_serial_init(struct sim *s)
{
	for (int i = 0; i < s->conf->n_stages && laws_asked(s, SIM_LAW_SERIAL); i++) {
		struct stage *st = &s->stage[i];
		int f = st->conf->serial - 1;
		if (f < 0)
			continue;
		struct key_use **use = &st->group->use[f];
		size_t n = values(&s->conf->field[f]);
		st->key_law = calloc(n, sizeof(*st->key_law));
		if (!*use)
			*use = calloc(n, sizeof(**use));
		if (!st->key_law || !*use)
			return WEIR_ENOMEM;
	}
	return init_parts(s);
}

void laws_serial_free(struct sim *s)
{
	for (int i = 0; i < SIM_STAGES_MAX; i++)
		free(s->stage[i].key_law);
	for (int i = 0; i < SIM_STAGES_MAX; i++)
		free(s->stage[i].part_law);
	for (int i = 0; s->group && i < s->conf->n_groups; i++)
		for (int f = 0; f < SIM_FIELDS_MAX; f++)
			free(s->group[i].use[f]);
}

/* Whether stage `i` is serial by the same field in the same group. */
static bool is_alike(const struct sim *s, int i, const struct stage *st)
{
	return s->stage[i].group == st->group && s->stage[i].conf->serial == st->conf->serial;
}

/* Whether the request comes from a stage that is alike. */
static bool comes_from_serial(const struct sim *s, const struct stage *st, const struct request *r)
{
	return r->at > 0 && is_alike(s, s->conf->route[r->route].stage[r->at - 1], st);
}

void laws_serial_sent(struct sim *s, const struct stage *from, uint32_t slot)
{
	struct request *r = &s->req[slot];
	const struct sim_route *route = &s->conf->route[r->route];
	bool keeps = from && from->conf->serial && r->at + 1 < route->n &&
		     is_alike(s, route->stage[r->at + 1], from);

	if (!keeps)
		r->turn = ++s->turns;
	r->put_back = false;
}

static void check_overlap(
    struct sim *s, const struct stage *st, const struct key_use *use, uint32_t value, uint32_t id)
{
	laws_saw(s, SIM_LAW_SERIAL, 0);
	if (use->n > 0 && use->worker != id)
		laws_break(s, SIM_LAW_SERIAL, (int)(st - s->stage),
		    "value %u is handled by cores %u and %u at once", value,
		    use->worker - st->group->first, id - st->group->first);
}

static void begin_part(struct sim *s, struct stage *st, uint32_t id, uint32_t slot)
{
	const struct request *r = &s->req[slot];
	uint32_t value = keys_value(s, st, r);
	struct part_laws *law = &st->part_law[value];

	check_overlap(s, st, &law->use, value, id);
	if (r->queued_ns < law->queued_ns[r->class_id])
		laws_break(s, SIM_LAW_SERIAL, (int)(st - s->stage),
		    "value %u: an event of class %d is taken after a younger one", value,
		    r->class_id);
	law->queued_ns[r->class_id] = r->queued_ns;
	law->use.n++;
	law->use.worker = id;
}

void laws_serial_began(struct sim *s, struct stage *st, uint32_t id, uint32_t slot)
{
	struct request *r = &s->req[slot];

	if (st->part_law)
		begin_part(s, st, id, slot);
	if (!st->key_law)
		return;
	uint32_t value = keys_value(s, st, r);
	struct key_use *use = &st->group->use[st->conf->serial - 1][value];
	struct key_laws *law = &st->key_law[value];
	uint64_t *last = comes_from_serial(s, st, r) ? &law->from_serial : &law->from_others;

	check_overlap(s, st, use, value, id);
	if (!r->put_back && r->turn <= *last)
		laws_break(s, SIM_LAW_SERIAL, (int)(st - s->stage),
		    "value %u: turn %llu is taken after turn %llu", value,
		    (unsigned long long)r->turn, (unsigned long long)*last);
	use->n++;
	use->worker = id;
	if (r->turn > *last)
		*last = r->turn;
	r->turn = ++s->turns;
}

void laws_serial_ended(struct sim *s, struct stage *st, uint32_t slot)
{
	if (st->part_law)
		st->part_law[keys_value(s, st, &s->req[slot])].use.n--;
	if (st->key_law)
		st->group->use[st->conf->serial - 1][keys_value(s, st, &s->req[slot])].n--;
}
