/* SPDX-License-Identifier: MIT */
/* ask: waits 20 ms, as for another server, and answers then. */
#include <weir/http.h>
#include <weir/io.h>
#include <weir/weir.h>

struct ask {
	struct weir_loop *loop; /* stands in for sockets of the other side */
	struct weir_timer timer;
	struct weir_event *asked; /* linked by `next` */
};

static void answered(struct weir_loop *loop, struct weir_timer *t)
{
	struct ask *a = weir_loop_data(loop);

	(void)t;
	while (a->asked) {
		struct weir_event *ev = a->asked;
		struct weir_slice yes = {"yes\n", 4};
		a->asked = ev->next;
		int rc =
		    weir_http_respond(weir_http_request(ev), 200, "text/plain", yes, NULL, NULL);
		weir_event_finish(&ev, rc);
	}
}

static void ask_mail(struct weir_loop *loop, struct weir_event *list)
{
	struct ask *a = weir_loop_data(loop);
	struct weir_event **end = &a->asked;

	if (!a->asked)
		weir_timer_set(loop, &a->timer, weir_loop_now_ns(loop) + 20000000);
	while (*end)
		end = &(*end)->next;
	*end = list;
}

static void ask_turn_end(struct weir_loop *loop)
{
	(void)loop;
}

static const struct weir_loop_ops ask_loop = {.mail = ask_mail, .turn_end = ask_turn_end};

static int ask_start(struct weir_stage *st, struct weir_err *err)
{
	struct ask *a = weir_state(st);

	(void)err;
	a->timer.fire = answered;
	return weir_loop_start(st, 0, &ask_loop, a, &a->loop);
}

static void ask_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	struct ask *a = weir_state(st);

	for (int i = 0; i < n; i++) {
		struct weir_event *e = ev[i];
		weir_hold(st, &ev[i]);
		weir_loop_send(a->loop, e);
	}
}

static void ask_fini(struct weir_stage *st)
{
	struct ask *a = weir_state(st);

	if (!a->loop)
		return;
	weir_loop_stop(a->loop);
	weir_loop_join(a->loop);
}

const struct weir_stage_ops weir_stage_ask = {
    .abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "ask",
    .summary = "Waits for an answer",
    .accepts = &weir_http_request_type,
    .state_size = sizeof(struct ask),
    .start = ask_start,
    .handle = ask_handle,
    .fini = ask_fini,
};
