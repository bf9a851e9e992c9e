/* SPDX-License-Identifier: MIT */
/* ask: waits 20 ms, as for another server, and answers then. */
#include <stdlib.h>
#include <weir/http.h>
#include <weir/weir.h>

struct question {
	struct weir_timer answer; /* stands in for a socket, which would be a struct weir_watch */
	struct weir_event *ev;
};

static void answered(struct weir_loop *loop, struct weir_timer *t)
{
	(void)loop;
	struct question *q = (struct question *)t;
	weir_event_finish(&q->ev, weir_http_respond_status(weir_http_request(q->ev), 200));
	free(q);
}

static void ask_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct question *q = calloc(1, sizeof(*q));
		if (!q) {
			weir_event_finish(&ev[i], WEIR_ENOMEM);
			continue;
		}
		*q = (struct question){.answer.fire = answered, .ev = ev[i]};
		weir_hold(st, &ev[i]);
		weir_timer_set(weir_loop_here(), &q->answer, weir_now_ns(st) + 20000000);
	}
}

const struct weir_stage_ops weir_stage_ask = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS | WEIR_STAGE_LOOP,
    .name = "ask",
    .summary = "Waits for an answer",
    .accepts = &weir_http_request_type,
    .handle = ask_handle};
