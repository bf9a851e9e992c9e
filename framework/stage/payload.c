/* SPDX-License-Identifier: MIT */
/* Payloads that stages make: the calls that need the graph's budget and the stage's counters. */
#include <weir/log.h>
#include <weir/op.h>

#include "stage/stage.h"

static WEIR_COLD void refused(const struct weir_stage *st, enum weir_payload_refusal why)
{
	struct thread *t = thread_current;

	/* the owner of a payload that was taken may be a thread outside the graph */
	if (!t || t->graph != st->graph)
		return;
	struct book *book = book_take(t, st->id);
	book_add(&book->payload_refused[why], 1);
	book_give(t, st->id, book);
}

/* A fifth payload, or a second one of a type, is a bug in the graph or in a stage. */
static WEIR_COLD void no_slot(
    struct weir_stage *st, const struct weir_event *ev, const struct weir_payload_type *type)
{
	refused(st, WEIR_PAYLOAD_SLOTS);
	if (!weir_log_first(&st->payload_logged))
		return;
	if (!ev->type->payloads)
		weir_log(WEIR_LOG_ERROR,
		    "stage '%s' (%s) could not make a payload '%s': events of type %s have none",
		    st->name, st->ops->name, type->name, ev->type->name);
	else
		weir_log(WEIR_LOG_ERROR,
		    "stage '%s' (%s) could not make a payload '%s': the event has %s", st->name,
		    st->ops->name, type->name,
		    weir_payload(ev, type)             ? "one of this type"
		    : ev->state == WEIR_EVENT_FINISHED ? "ended"
						       : "as many payloads as are allowed");
}

void *weir_payload_new(
    struct weir_stage *st, struct weir_event *ev, const struct weir_payload_type *type)
{
	enum weir_payload_refusal why;

	if (WEIR_UNLIKELY(payload_fits(ev, type) != 0)) {
		no_slot(st, ev, type);
		return NULL;
	}
	void *payload = payload_make(st->payloads, weir_family_of(ev), type, &why);
	if (WEIR_UNLIKELY(!payload)) {
		refused(st, why);
		return NULL;
	}
	payload_add(ev, payload);
	return payload;
}

int weir_payload_reserve(struct weir_stage *st, void *payload, size_t bytes)
{
	WEIR_ASSERT(payload != NULL);
	int rc = payload_reserve(st->payloads, payload, bytes);

	if (WEIR_UNLIKELY(rc != 0))
		refused(st, rc == WEIR_ELIMIT ? WEIR_PAYLOAD_FAMILY : WEIR_PAYLOAD_BUDGET);
	return rc;
}
