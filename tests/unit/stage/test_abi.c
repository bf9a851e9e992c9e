/* SPDX-License-Identifier: MIT */
/* The layout of the structs that stages share with the server. Plug-ins are compiled with it, so a
 * change needs a new WEIR_STAGE_ABI: raise it once in a release, name the change in CHANGELOG.md,
 * then write the new layout here. The structs of weir/view.h and weir/spec.h are not listed: stages
 * cannot get one, and programs that embed weir are bound to the version of libweir. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <weir/http.h>
#include <weir/weir.h>

#include "cunit_main.h"

#define MEMBERS_MAX 32

/* The compiler reports an error if the headers for stages define these, too. */
struct weir_stage_view {
	int mine;
};
struct weir_stage_spec {
	int mine;
};

struct layout {
	const char *name, *want; /* "SIZE: OFFSET ..." */
	size_t size;
	int n;
	size_t at[MEMBERS_MAX];
};

/* clang-format off */
#define N_ARGS(...) (int)(sizeof((size_t[]){__VA_ARGS__}) / sizeof(size_t))
#define LAYOUT(type, want, ...) {#type, want, sizeof(struct type), N_ARGS(__VA_ARGS__), {__VA_ARGS__}}

static const struct layout layouts[] = {
    LAYOUT(weir_slice, "16: 0 8",
	offsetof(struct weir_slice, p), offsetof(struct weir_slice, n)),
    LAYOUT(weir_field, "24: 0 8 16",
	offsetof(struct weir_field, name), offsetof(struct weir_field, get),
	offsetof(struct weir_field, help)),
    LAYOUT(weir_hop, "16: 0 4 8 12",
	offsetof(struct weir_hop, stage), offsetof(struct weir_hop, queued_us),
	offsetof(struct weir_hop, started_us), offsetof(struct weir_hop, left_us)),
    LAYOUT(weir_trace, "40: 0 16 24 32",
	offsetof(struct weir_trace, id), offsetof(struct weir_trace, parent),
	offsetof(struct weir_trace, span), offsetof(struct weir_trace, sampled)),
    LAYOUT(weir_trail, "208: 0 2 4 168",
	offsetof(struct weir_trail, n_hops), offsetof(struct weir_trail, traced),
	offsetof(struct weir_trail, hop), offsetof(struct weir_trail, trace)),
    LAYOUT(weir_event_type, "88: 0 8 16 24 32 40 48 56 64 72 80",
	offsetof(struct weir_event_type, name), offsetof(struct weir_event_type, size),
	offsetof(struct weir_event_type, finish), offsetof(struct weir_event_type, fields),
	offsetof(struct weir_event_type, trail), offsetof(struct weir_event_type, describe),
	offsetof(struct weir_event_type, may_match), offsetof(struct weir_event_type, cost),
	offsetof(struct weir_event_type, op), offsetof(struct weir_event_type, payloads),
	offsetof(struct weir_event_type, arrive)),
    LAYOUT(weir_op, "64: 0 8 16 24 32 40 44 48 52 54 56 58 60 61",
	offsetof(struct weir_op, parent), offsetof(struct weir_op, family),
	offsetof(struct weir_op, next), offsetof(struct weir_op, children),
	offsetof(struct weir_op, sibling), offsetof(struct weir_op, pending),
	offsetof(struct weir_op, n_unsent), offsetof(struct weir_op, n_awaited),
	offsetof(struct weir_op, status), offsetof(struct weir_op, unsent_status),
	offsetof(struct weir_op, maker), offsetof(struct weir_op, outlet),
	offsetof(struct weir_op, depth), offsetof(struct weir_op, flags)),
    LAYOUT(weir_payload_type, "40: 0 8 16 24 32",
	offsetof(struct weir_payload_type, name), offsetof(struct weir_payload_type, size),
	offsetof(struct weir_payload_type, drop), offsetof(struct weir_payload_type, fields),
	offsetof(struct weir_payload_type, summary)),
    LAYOUT(weir_payload_field, "32: 0 8 16 24",
	offsetof(struct weir_payload_field, name), offsetof(struct weir_payload_field, text),
	offsetof(struct weir_payload_field, number), offsetof(struct weir_payload_field, help)),
    LAYOUT(weir_payload_at, "16: 0 8",
	offsetof(struct weir_payload_at, type), offsetof(struct weir_payload_at, outlet)),
    LAYOUT(weir_payloads, "72: 0 8 40",
	offsetof(struct weir_payloads, n), offsetof(struct weir_payloads, type),
	offsetof(struct weir_payloads, payload)),
    LAYOUT(weir_event, "64: 0 8 16 24 32 40 48 56 60 62 63",
	offsetof(struct weir_event, next), offsetof(struct weir_event, type),
	offsetof(struct weir_event, key), offsetof(struct weir_event, trace_id),
	offsetof(struct weir_event, arrival_ns), offsetof(struct weir_event, queued_ns),
	offsetof(struct weir_event, deadline_ns), offsetof(struct weir_event, session),
	offsetof(struct weir_event, stage), offsetof(struct weir_event, class_id),
	offsetof(struct weir_event, state)),
    LAYOUT(weir_strings, "16: 0 8",
	offsetof(struct weir_strings, n), offsetof(struct weir_strings, items)),
    LAYOUT(weir_option, "16: 0 8",
	offsetof(struct weir_option, name), offsetof(struct weir_option, help)),
    LAYOUT(weir_knob, "96: 0 8 16 24 32 40 48 56 64 72 80 88",
	offsetof(struct weir_knob, name), offsetof(struct weir_knob, type),
	offsetof(struct weir_knob, offset), offsetof(struct weir_knob, def),
	offsetof(struct weir_knob, min), offsetof(struct weir_knob, max),
	offsetof(struct weir_knob, flags), offsetof(struct weir_knob, choices),
	offsetof(struct weir_knob, fields), offsetof(struct weir_knob, record_size),
	offsetof(struct weir_knob, help), offsetof(struct weir_knob, option)),
    LAYOUT(weir_node, "80: 0 8 40 48 56 64 72",
	offsetof(struct weir_node, kind), offsetof(struct weir_node, mark),
	offsetof(struct weir_node, quoted), offsetof(struct weir_node, text),
	offsetof(struct weir_node, n), offsetof(struct weir_node, item),
	offsetof(struct weir_node, name)),
    LAYOUT(weir_metric, "32: 0 8 16 24",
	offsetof(struct weir_metric, name), offsetof(struct weir_metric, kind),
	offsetof(struct weir_metric, unit), offsetof(struct weir_metric, help)),
    LAYOUT(weir_watch, "16: 0 8",
	offsetof(struct weir_watch, ready), offsetof(struct weir_watch, fd)),
    LAYOUT(weir_timer, "32: 0 8 16 24",
	offsetof(struct weir_timer, fire), offsetof(struct weir_timer, next),
	offsetof(struct weir_timer, prev), offsetof(struct weir_timer, at_ns)),
    LAYOUT(weir_loop_ops, "32: 0 8 16 24",
	offsetof(struct weir_loop_ops, start), offsetof(struct weir_loop_ops, stop),
	offsetof(struct weir_loop_ops, mail), offsetof(struct weir_loop_ops, turn_end)),
    LAYOUT(weir_outlet, "32: 0 8 16 24",
	offsetof(struct weir_outlet, name), offsetof(struct weir_outlet, type),
	offsetof(struct weir_outlet, optional), offsetof(struct weir_outlet, help)),
    LAYOUT(weir_stage_ops, "240: 0 4 8 16 24 32 40 48 56 64 72 80 88 96 104 112 120 128 136 144 152 160 168 176 184 192 200 208 216 224 232",
	offsetof(struct weir_stage_ops, abi), offsetof(struct weir_stage_ops, flags),
	offsetof(struct weir_stage_ops, name), offsetof(struct weir_stage_ops, summary),
	offsetof(struct weir_stage_ops, accepts), offsetof(struct weir_stage_ops, outlets),
	offsetof(struct weir_stage_ops, knobs), offsetof(struct weir_stage_ops, conf_size),
	offsetof(struct weir_stage_ops, metrics), offsetof(struct weir_stage_ops, state_size),
	offsetof(struct weir_stage_ops, thread_state_size), offsetof(struct weir_stage_ops, init),
	offsetof(struct weir_stage_ops, start), offsetof(struct weir_stage_ops, handle),
	offsetof(struct weir_stage_ops, stop), offsetof(struct weir_stage_ops, fini),
	offsetof(struct weir_stage_ops, thread_init), offsetof(struct weir_stage_ops, thread_fini),
	offsetof(struct weir_stage_ops, key), offsetof(struct weir_stage_ops, refused),
	offsetof(struct weir_stage_ops, service_ns), offsetof(struct weir_stage_ops, pause),
	offsetof(struct weir_stage_ops, refresh), offsetof(struct weir_stage_ops, renewed),
	offsetof(struct weir_stage_ops, expired), offsetof(struct weir_stage_ops, per_loop),
	offsetof(struct weir_stage_ops, children), offsetof(struct weir_stage_ops, needs), offsetof(struct weir_stage_ops, gives), offsetof(struct weir_stage_ops, takes),
	offsetof(struct weir_stage_ops, clients)),
    LAYOUT(weir_clients, "32: 0 8 12 16 24",
	offsetof(struct weir_clients, per_loop), offsetof(struct weir_clients, loops),
	offsetof(struct weir_clients, full), offsetof(struct weir_clients, idle),
	offsetof(struct weir_clients, waiting)),
    LAYOUT(weir_mark, "32: 0 8 16 20 24",
	offsetof(struct weir_mark, file), offsetof(struct weir_mark, excerpt),
	offsetof(struct weir_mark, line), offsetof(struct weir_mark, col),
	offsetof(struct weir_mark, len)),
    LAYOUT(weir_err, "892: 0 4 8 12 16 20 276 532 692",
	offsetof(struct weir_err, code), offsetof(struct weir_err, line),
	offsetof(struct weir_err, col), offsetof(struct weir_err, len),
	offsetof(struct weir_err, caret), offsetof(struct weir_err, file),
	offsetof(struct weir_err, text), offsetof(struct weir_err, hint),
	offsetof(struct weir_err, excerpt)),
    LAYOUT(weir_http_header, "32: 0 16",
	offsetof(struct weir_http_header, name), offsetof(struct weir_http_header, value)),
    LAYOUT(weir_http_tap, "16: 0 8",
	offsetof(struct weir_http_tap, fn), offsetof(struct weir_http_tap, next)),
    LAYOUT(weir_http_piece, "24: 0 8 16",
	offsetof(struct weir_http_piece, p), offsetof(struct weir_http_piece, offset),
	offsetof(struct weir_http_piece, n)),
    LAYOUT(weir_http_response, "88: 0 2 3 4 6 8 24 40 48 56 64 72 80",
	offsetof(struct weir_http_response, status), offsetof(struct weir_http_response, no_length),
	offsetof(struct weir_http_response, close), offsetof(struct weir_http_response, streamed),
	offsetof(struct weir_http_response, n_pieces), offsetof(struct weir_http_response, fields),
	offsetof(struct weir_http_response, body), offsetof(struct weir_http_response, fd),
	offsetof(struct weir_http_response, offset), offsetof(struct weir_http_response, length),
	offsetof(struct weir_http_response, piece), offsetof(struct weir_http_response, release),
	offsetof(struct weir_http_response, release_arg)),
    LAYOUT(weir_http_request, "544: 0 64 68 69 72 88 104 120 136 152 168 176 264 272 280 284 288",
	offsetof(struct weir_http_request, ev), offsetof(struct weir_http_request, method),
	offsetof(struct weir_http_request, minor), offsetof(struct weir_http_request, n_headers),
	offsetof(struct weir_http_request, method_text), offsetof(struct weir_http_request, target),
	offsetof(struct weir_http_request, path), offsetof(struct weir_http_request, query),
	offsetof(struct weir_http_request, host), offsetof(struct weir_http_request, body),
	offsetof(struct weir_http_request, headers), offsetof(struct weir_http_request, res),
	offsetof(struct weir_http_request, taps), offsetof(struct weir_http_request, fields),
	offsetof(struct weir_http_request, n_fields), offsetof(struct weir_http_request, fields_size),
	offsetof(struct weir_http_request, fields_inline)),
};
/* clang-format on */

static void test_layouts(void)
{
	CU_ASSERT_EQUAL(WEIR_STAGE_ABI, 6);
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		const struct layout *l = &layouts[i];
		char text[512];
		int at = snprintf(text, sizeof(text), "%zu:", l->size);
		for (int k = 0; k < l->n; k++)
			at += snprintf(text + at, sizeof(text) - (size_t)at, " %zu", l->at[k]);
		if (strcmp(text, l->want) != 0)
			fprintf(
			    stderr, "struct %s is \"%s\", it was \"%s\"\n", l->name, text, l->want);
		CU_ASSERT_STRING_EQUAL(text, l->want);
	}
}

CUNIT_MAIN("abi", {"layouts", test_layouts})
