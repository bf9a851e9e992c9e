/* SPDX-License-Identifier: MIT */
/* The stage types of the storm that split events, put them back, leave them behind or die. The choice is
 * random for each event. */
#include <stdlib.h>
#include <string.h>

#include "storm.h"

/* Parts are split until they are so deep. */
#define LEVELS 3
/* How often an event returns to a stage. */
#define TURNS 4

struct blob {
	char bytes[64];
};

static const struct weir_payload_type blob_type = {
    .name = "storm.blob", .size = sizeof(struct blob), .summary = "some memory"};

/* ---- requests ---- */

enum { FRONT_PART, FRONT_ON };

static const struct weir_outlet front_outlets[] = {
    [FRONT_PART] = {"part", &part_type, false, "children of the request"},
    [FRONT_ON] = {"on", &weir_http_request_type, false, "the request"},
    {.name = NULL}};

static void answer(struct weir_event **ev)
{
	struct weir_slice body = {"storm\n", 6};
	int rc = weir_http_respond_copy(weir_http_request(*ev), 200, "text/plain", body);

	weir_event_finish(ev, rc);
}

static void joined(struct weir_stage *st, struct weir_event **ev, int n);

static void split_request(struct weir_stage *st, struct weir_event **ev, bool family, bool first)
{
	if (family)
		weir_http_family(weir_http_request(*ev));
	storm_split(st, *ev, FRONT_PART, 0);
	if (first)
		weir_await_first(st, ev, joined);
	else
		weir_await(st, ev, joined);
}

static void leave_orphans(struct weir_stage *st, struct weir_event **ev)
{
	storm_split(st, *ev, FRONT_PART, 0);
	if (storm_random(2))
		answer(ev);
	else
		weir_emit(st, FRONT_ON, ev);
}

static void front_one(struct weir_stage *st, struct weir_event **ev)
{
	uint32_t way = storm_random(16);

	if (way < 5) {
		split_request(st, ev, way & 1, way == 4);
	} else if (way == 5) {
		split_request(st, ev, true, true);
	} else if (way < 8) {
		leave_orphans(st, ev);
	} else if (way == 8) {
		weir_requeue(st, ev);
	} else if (way == 9) {
		weir_await(st, ev, joined); /* no children */
	} else if (way == 10) {
		weir_event_finish(ev, storm_status());
	} else if (way == 11) {
		storm_alone(st, FRONT_PART, 0);
		weir_emit(st, FRONT_ON, ev);
	} else if (way == 12 && storm_random(8) == 0) {
		return; /* left behind */
	} else {
		weir_emit(st, FRONT_ON, ev);
	}
}

static void joined(struct weir_stage *st, struct weir_event **ev, int n)
{
	uint32_t keys = storm_enter(st, ev, 0);

	for (int i = 0; i < n; i++) {
		int status = weir_ended_status(ev[i]);
		storm_look(ev[i]);
		switch (storm_random(6)) {
		case 0:
			split_request(st, &ev[i], false, false); /* call and return */
			break;
		case 1:
			weir_requeue(st, &ev[i]);
			break;
		case 2:
			weir_event_finish(&ev[i], status);
			break;
		case 3:
			answer(&ev[i]);
			break;
		default:
			weir_emit(st, FRONT_ON, &ev[i]);
		}
	}
	storm_leave(st, keys);
}

static void front_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	uint32_t keys = storm_enter(st, ev, 0);

	for (int i = 0; i < n; i++)
		front_one(st, &ev[i]);
	storm_leave(st, keys);
}

static void tail_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	uint32_t keys = storm_enter(st, ev, 0);

	for (int i = 0; i < n; i++)
		if (storm_random(16) == 0)
			weir_event_finish(&ev[i], storm_status());
		else
			answer(&ev[i]);
	storm_leave(st, keys);
}

/* ---- parts ---- */

enum { PART_SUB, PART_ON };

static const struct weir_outlet part_outlets[] = {
    [PART_SUB] = {"sub", &part_type, true, "children of the part"},
    [PART_ON] = {"on", &part_type, true, "the part"},
    {.name = NULL}};

static void part_joined(struct weir_stage *st, struct weir_event **ev, int n);

static void pass_on(struct weir_stage *st, struct weir_event **ev)
{
	if (weir_outlet_linked(st, PART_ON))
		weir_emit(st, PART_ON, ev);
	else
		weir_event_finish(ev, WEIR_OK);
}

/* Give the part a payload, or do something to the one that it has. */
static void handle_payload(struct weir_stage *st, struct weir_event *ev)
{
	struct blob *blob = weir_payload(ev, &blob_type);

	if (!blob) {
		blob = weir_payload_new(st, ev, &blob_type);
		if (blob && weir_payload_reserve(st, blob, 1 + storm_random(100000)) == 0)
			memset(blob->bytes, 1, sizeof(blob->bytes));
	} else if (storm_random(2)) {
		weir_payload_drop(ev, &blob_type);
	} else {
		void *taken = weir_payload_take(ev, &blob_type);
		if (storm_random(2) || weir_payload_put(ev, &taken) != 0)
			weir_payload_free(taken);
	}
}

static void split_part(struct weir_stage *st, struct weir_event **ev, uint32_t how)
{
	struct part *p = storm_part(*ev);

	storm_split(st, *ev, PART_SUB, p->level + 1);
	if (how == 0)
		weir_await_first(st, ev, part_joined);
	else if (how == 1)
		pass_on(st, ev); /* its children are orphans */
	else if (how == 2 && p->turns++ < TURNS)
		weir_requeue(st, ev); /* they are, too */
	else
		weir_await(st, ev, part_joined);
}

static bool may_split(struct weir_stage *st, struct weir_event *ev)
{
	return storm_part(ev)->level < LEVELS && weir_outlet_linked(st, PART_SUB);
}

static void part_one(struct weir_stage *st, struct weir_event **ev)
{
	struct part *p = storm_part(*ev);
	uint32_t way = storm_random(20);

	if (way < 5 && may_split(st, *ev)) {
		split_part(st, ev, way);
	} else if (way == 5 && p->turns++ < TURNS) {
		weir_requeue(st, ev);
	} else if (way == 6) {
		weir_event_finish(ev, storm_status());
	} else if (way == 7 && storm_random(8) == 0) {
		return; /* left behind */
	} else if (way == 8 && storm_random(8) == 0) {
		weir_family_end(weir_family_of(*ev));
		pass_on(st, ev);
	} else if (way == 9 && may_split(st, *ev)) {
		storm_alone(st, PART_SUB, p->level + 1);
		pass_on(st, ev);
	} else if (way == 10) {
		weir_await(st, ev, part_joined); /* no children, unless it had some */
	} else if (way < 14) {
		handle_payload(st, *ev);
		pass_on(st, ev);
	} else if (way < 17) {
		pass_on(st, ev);
	} else {
		weir_event_finish(ev, WEIR_OK);
	}
}

static void part_joined(struct weir_stage *st, struct weir_event **ev, int n)
{
	uint32_t keys = storm_enter(st, ev, n);

	for (int i = 0; i < n; i++) {
		struct part *p = storm_part(ev[i]);
		storm_look(ev[i]);
		switch (storm_random(5)) {
		case 0:
			if (p->turns++ < TURNS && may_split(st, ev[i]))
				split_part(st, &ev[i], 3);
			else
				pass_on(st, &ev[i]);
			break;
		case 1:
			weir_event_finish(&ev[i], weir_ended_status(ev[i]));
			break;
		case 2:
			if (p->turns++ < TURNS)
				weir_requeue(st, &ev[i]);
			else
				weir_event_finish(&ev[i], WEIR_OK);
			break;
		default:
			pass_on(st, &ev[i]);
		}
	}
	storm_leave(st, keys);
}

static void part_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	uint32_t keys = storm_enter(st, ev, n);

	for (int i = 0; i < n; i++)
		part_one(st, &ev[i]);
	storm_leave(st, keys);
}

/* The drain runs inline stages in its own thread. */
static void stop(struct weir_stage *st, int64_t until_ns)
{
	(void)st;
	(void)until_ns;
	storm_undying = true;
}

#define COMMON                                                                                     \
	.abi = WEIR_STAGE_ABI, .knobs = storm_knobs, .conf_size = sizeof(struct storm_conf),       \
	.state_size = sizeof(struct storm_state), .stop = stop

const struct weir_stage_ops weir_stage_storm_front = {COMMON, .flags = WEIR_STAGE_REPLICABLE,
    .name = "storm_front", .summary = "Splits requests", .accepts = &weir_http_request_type,
    .outlets = front_outlets, .children = 1 << FRONT_PART, .handle = front_handle};

const struct weir_stage_ops weir_stage_storm_tail = {COMMON, .flags = WEIR_STAGE_REPLICABLE,
    .name = "storm_tail", .summary = "Answers requests", .accepts = &weir_http_request_type,
    .handle = tail_handle};

const struct weir_stage_ops weir_stage_storm_part = {COMMON, .flags = WEIR_STAGE_REPLICABLE,
    .name = "storm_part", .summary = "Splits parts", .accepts = &part_type, .outlets = part_outlets,
    .children = 1 << PART_SUB, .handle = part_handle};

/* Its children may come back to it. */
const struct weir_stage_ops weir_stage_storm_turn = {COMMON,
    .flags = WEIR_STAGE_REPLICABLE | WEIR_STAGE_RECURSES, .name = "storm_turn",
    .summary = "Splits parts, and their parts", .accepts = &part_type, .outlets = part_outlets,
    .children = 1 << PART_SUB, .handle = part_handle};
