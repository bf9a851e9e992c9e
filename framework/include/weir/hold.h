/* SPDX-License-Identifier: MIT */
/* Events that stay in a stage after its handler has returned. For threads of the graph. */
#ifndef WEIR_HOLD_H
#define WEIR_HOLD_H

#include <weir/annotate.h>
#include <weir/event.h>

WEIR_C_BEGIN

struct weir_stage;

/**
 * Hold `*ev` beyond this handler call and set `*ev` to NULL. The event stays in flight in this
 * stage until the stage emits or finishes it, from any thread of the graph. The stage must keep
 * track of its held events (it may link them by `ev->next`) and end all of them when the graph
 * closes (ops->stop). A held event still occupies a slot: a stage, inline or not, can have at most
 * `queue.limit` queued and held events together, and admission refuses more (WEIR_EQUEUE). If the
 * stage has a width, or has ever held an event, events in its handlers count as well, since they
 * may be held next.
 */
WEIR_API void weir_hold(struct weir_stage *st, struct weir_event **ev);

/**
 * Hold `*ev` until the stage claims it with the returned ticket, and set `*ev` to NULL. If the
 * stage has not claimed the event by `until_ns` or by weir_event.deadline_ns, whichever is earlier,
 * the hold expires: ops->expired is called with the event or, without that callback, the event is
 * finished as WEIR_EDEADLINE. This happens at most 8 ms late if no thread of the stage is in a
 * handler, and otherwise at the latest when that call has returned. `until_ns` may be
 * WEIR_NO_DEADLINE.
 *
 * From this call on the event may end at any moment. The stage keeps the ticket instead of the
 * pointer, and does not use `ev->next`. If the stage emits or finishes the event without a claim,
 * the process aborts. A ticket is never 0.
 *
 * `*ev` must be in a handler of the stage, or held by the stage without a ticket. So a claimed
 * event may be held again, with a new ticket. A drain waits for tickets until its grace period is
 * over, and then ends their events as WEIR_ECLOSED. A stage that holds events only with tickets
 * needs no ops->stop.
 *
 * If memory is short, the event is finished as WEIR_ENOMEM, and 0 is returned. A claim with 0
 * returns NULL. Only for stages with WEIR_STAGE_HOLDS. Any thread of the graph.
 */
WEIR_API uint64_t weir_hold_until(struct weir_stage *st, struct weir_event **ev, int64_t until_ns);

/**
 * Return the event that was held with `ticket`, or NULL if its hold has expired, if it was claimed
 * before, or if it ended with the graph or with its family (weir/op.h). The returned event is held as
 * after weir_hold and does not expire. Either one claim or the expiry gets the event. Any thread; takes
 * no lock.
 */
WEIR_API struct weir_event *weir_hold_claim(struct weir_stage *st, uint64_t ticket);

/**
 * Record that the server or database for which `ev` waits has refused to serve it because of
 * overload. The event stays held until the stage requeues, emits or finishes it. The time of this
 * hold is not counted as service time, and the event is not counted as served. The policy of
 * `width:` lowers the width if many events are refused. Any thread of the graph.
 */
WEIR_API void weir_hold_refused(struct weir_stage *st, struct weir_event *ev);

/**
 * Record that the server or database for which `ev` waits has done its work for it, although the event
 * stays held: its answer waits for a slow client, or its connection now carries another protocol. The
 * service of the event ends now, its place in the width is free, and it no longer counts towards
 * `queue.limit`. The stage must limit the number of such events itself. It may only emit or finish the event
 * afterwards. No effect on a stage without `width:`, on an event that has been refused, or when called again.
 * The event must be held, without a ticket. Any thread of the graph.
 */
WEIR_API void weir_hold_served(struct weir_stage *st, struct weir_event *ev);

/**
 * Put `*ev` back into the queue of the same stage and set `*ev` to NULL; `handle` is then called
 * with the event again. The event must be in a handler of the stage, or held by the stage.
 *
 * The event has already been admitted. So admission is not repeated, a full queue does not refuse
 * it, it is counted as offered only once, and it reaches the handler even if its deadline has
 * passed or its wait has become too long. If the graph is closed by force or a handler thread exits
 * unexpectedly, the event may end without another call (as WEIR_ECLOSED on a close). State that
 * belongs to an event should therefore be freed in a callback that runs for every event at its end,
 * such as a tap of weir_http_add_tap.
 *
 * For inline stages, the requeuing thread calls `handle` when its batch ends. Any thread of the
 * graph; costs about 5 ns plus the push into the queue.
 */
WEIR_API void weir_requeue(struct weir_stage *st, struct weir_event **ev);

WEIR_C_END

#endif
