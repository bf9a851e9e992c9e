/* SPDX-License-Identifier: MIT */
/*
 * Reads the file of decisions and changes as a whole. Its size is checked before any data is used,
 * and each slot by its checksum, its id and its texts.
 */
#include "past_format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/event.h>

#include "admin/text/utf8.h"
#include "kept_file.h"

uint64_t past_sum(const void *slot, size_t n)
{
	uint64_t sum = weir_hash((struct weir_slice){slot, n});

	return sum ? sum : 1; /* 0 is that of an unused slot */
}

void past_head(struct past_head *head)
{
	*head = (struct past_head){.version = PAST_VERSION,
	    .decisions = PAST_DECISIONS,
	    .changes = PAST_CHANGES,
	    .decision_bytes = sizeof(struct past_decision),
	    .change_bytes = sizeof(struct past_change)};
	memcpy(head->magic, PAST_MAGIC, sizeof(head->magic));
	head->sum = past_sum(head, sizeof(*head));
}

/* Whether `text`, of `size` bytes, ends and can be written as JSON. */
static bool is_text(const char *text, size_t size)
{
	return memchr(text, '\0', size) && utf8_whole(text);
}

#define IS_TEXT(member) is_text(member, sizeof(member))
#define COPY(to, from)  snprintf(to, sizeof(to), "%.*s", (int)sizeof(to) - 1, from)

static bool is_good(const struct past_decision *s, uint64_t index)
{
	return s->sum == past_sum(&s->id, sizeof(*s) - sizeof(s->sum)) && s->id > 0 &&
	       s->id % PAST_DECISIONS == index && s->wall_ns > 0 && IS_TEXT(s->stage) &&
	       IS_TEXT(s->actor) && IS_TEXT(s->action) && IS_TEXT(s->rule) && IS_TEXT(s->limit) &&
	       IS_TEXT(s->inputs) && IS_TEXT(s->outcome_5s) && IS_TEXT(s->outcome_30s);
}

static bool is_good_change(const struct past_change *s, uint64_t index)
{
	return s->sum == past_sum(&s->id, sizeof(*s) - sizeof(s->sum)) && s->id > 0 &&
	       s->id % PAST_CHANGES == index && s->wall_ns > 0 && s->expires_wall_ns >= 0 &&
	       s->undone <= 1 && IS_TEXT(s->actor) && IS_TEXT(s->what) && IS_TEXT(s->target) &&
	       IS_TEXT(s->from) && IS_TEXT(s->to);
}

static void take_decision(struct past *past, const struct past_decision *s)
{
	struct weir_decision *d = &past->decision[past->n_decisions++];

	*d = (struct weir_decision){
	    .id = s->id, .wall_ns = s->wall_ns, .from = s->from, .to = s->to};
	COPY(d->stage, s->stage);
	COPY(d->actor, s->actor);
	COPY(d->action, s->action);
	COPY(d->rule, s->rule);
	COPY(d->limit, s->limit);
	COPY(d->inputs, s->inputs);
	COPY(d->outcome_5s, s->outcome_5s);
	COPY(d->outcome_30s, s->outcome_30s);
}

static void take_change(struct past *past, const struct past_change *s)
{
	struct weir_change *c = &past->change[past->n_changes++];

	*c = (struct weir_change){.id = s->id,
	    .wall_ns = s->wall_ns,
	    .expires_wall_ns = s->expires_wall_ns,
	    .undone = s->undone};
	COPY(c->actor, s->actor);
	COPY(c->what, s->what);
	COPY(c->target, s->target);
	COPY(c->from, s->from);
	COPY(c->to, s->to);
}

static int by_decision_id(const void *a, const void *b)
{
	const struct weir_decision *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static int by_change_id(const void *a, const void *b)
{
	const struct weir_change *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* Load the file, which has PAST_BYTES bytes. */
static const char *take_all(const char *data, struct past *past)
{
	struct past_head head, wanted;
	struct past_decision decision;
	struct past_change change;
	const char *p = data + sizeof(head);

	memcpy(&head, data, sizeof(head));
	past_head(&wanted);
	if (memcmp(head.magic, wanted.magic, sizeof(head.magic)) != 0)
		return "it is not a log of weir";
	if (memcmp(&head, &wanted, sizeof(head)) != 0)
		return "it was written by another version, or its header is damaged";
	for (uint64_t i = 0; i < PAST_DECISIONS; i++, p += sizeof(decision)) {
		memcpy(&decision, p, sizeof(decision));
		if (is_good(&decision, i))
			take_decision(past, &decision);
	}
	for (uint64_t i = 0; i < PAST_CHANGES; i++, p += sizeof(change)) {
		memcpy(&change, p, sizeof(change));
		if (is_good_change(&change, i))
			take_change(past, &change);
	}
	qsort(past->decision, (size_t)past->n_decisions, sizeof(*past->decision), by_decision_id);
	qsort(past->change, (size_t)past->n_changes, sizeof(*past->change), by_change_id);
	return NULL;
}

const char *past_load(int fd, uint64_t size, struct past *past)
{
	if (size != PAST_BYTES)
		return "its size is not that of a log of this version";
	char *data = malloc(PAST_BYTES);
	const char *why = kept_no_memory;
	if (data)
		why = kept_read_all(fd, data, PAST_BYTES) ? take_all(data, past)
							  : "it cannot be read";
	free(data);
	return why;
}
