/* SPDX-License-Identifier: MIT */
/* one, two and three: stages of one file, under three links, that share a payload. */
#include <weir/http.h>
#include <weir/weir.h>

static const struct weir_payload_type mark_type = {.name = "mark", .size = 1};
static const struct weir_payload_type *const needs_mark[] = {&mark_type, NULL};
static const struct weir_payload_at gives_mark[] = {{&mark_type, NULL}, {.type = NULL}};
static const struct weir_outlet outlets[] = {
    {"out", &weir_http_request_type, false, "requests with a mark"}, {.name = NULL}};

static void one_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		if (weir_payload_new(st, ev[i], &mark_type))
			weir_emit(st, 0, &ev[i]);
		else
			weir_event_finish(&ev[i], WEIR_EPRESSURE);
}

static void two_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	weir_emit_run(st, 0, ev, n);
}

static void three_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		bool marked = weir_payload(ev[i], &mark_type) != NULL;
		struct weir_slice body = {marked ? "marked\n" : "lacks\n", marked ? 7 : 6};
		weir_event_finish(&ev[i],
		    weir_http_respond_copy(weir_http_request(ev[i]), 200, "text/plain", body));
	}
}

const struct weir_stage_ops weir_stage_one = {.abi = WEIR_STAGE_ABI,
    .name = "one",
    .summary = "Gives a mark",
    .accepts = &weir_http_request_type,
    .outlets = outlets,
    .handle = one_handle,
    .gives = gives_mark};
const struct weir_stage_ops weir_stage_two = {.abi = WEIR_STAGE_ABI,
    .name = "two",
    .summary = "Passes requests on",
    .accepts = &weir_http_request_type,
    .outlets = outlets,
    .handle = two_handle,
    .needs = needs_mark};
const struct weir_stage_ops weir_stage_three = {.abi = WEIR_STAGE_ABI,
    .name = "three",
    .summary = "Answers",
    .accepts = &weir_http_request_type,
    .handle = three_handle,
    .needs = needs_mark};
