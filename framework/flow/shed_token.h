/* SPDX-License-Identifier: MIT */
/*
 * Shed tokens: why an event was refused, in the 64 bits of its trace id.
 *
 * The server that refuses a million requests a second can not remember why it refused each. So the answer carries the
 * reason itself: the sink packs what it knew at that moment into `ev->trace_id`, http.server prints it as
 * `X-Weir-Shed-Id`, and `weir why --shed ID` reads it. Nothing is kept. It is no secret and no proof: a client may make
 * one up.
 *
 *   bit   63  62..59  58..51  50..48  47..40  39..33  32..26  25..0
 *         1   reason  stage   class   user    part    wait    at
 *
 * The mark in bit 63 makes a token never 0 and tells it from the ids of requests, whose bit 63 is 0. All 64 bits are
 * used, so what is left of a check is that mark, the range of `reason`, and the alphabet and length of the text.
 * Pure functions, any thread, a few ns each.
 */
#ifndef WEIR_FLOW_SHED_TOKEN_H
#define WEIR_FLOW_SHED_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/error.h>
#include <weir/stage.h>

/** Set in every token, in no other trace id. */
#define SHED_TOKEN_MARK (1ULL << 63)

/** `stage` of one whose id does not fit, or is not known. */
#define SHED_TOKEN_STAGE_UNKNOWN 255
/** `part` that means the whole class was let in. */
#define SHED_TOKEN_PART_ALL 127
/** `wait` is in 1/32 of the objective: 32 is the objective itself. */
#define SHED_TOKEN_WAIT_UNIT 32
/** `wait` that means 126/32 of the objective (3.9 times) or more. */
#define SHED_TOKEN_WAIT_MOST 126
/** `wait` of policies that predict none, and of stages without an objective. */
#define SHED_TOKEN_WAIT_UNKNOWN 127
/** `at` counts modulo that: 77 days of tenths of a second. */
#define SHED_TOKEN_AT_WRAP (1U << 26)

/** For how long users' numbers turn until each has been every number: the share of a class that is let in goes
 *  round all users in that time. Guess: as long as people wait before they try again. */
#define SHED_TOKEN_TURN_NS 10000000000

struct shed_token {
	uint8_t reason_index; /* weir_shed_index() of the code, 0 .. WEIR_SHED_REASONS - 1 */
	uint16_t stage;   /* id of the stage on whose behalf, 0..254; SHED_TOKEN_STAGE_UNKNOWN */
	uint8_t class_id; /* of the event, 0..7 */
	uint8_t user;     /* the user's place in the turn, its highest 8 bits: user / 256 is 0..1 */
	uint8_t part;     /* share of the class that was let in then, in 1/127, 0..127 */
	uint8_t wait;     /* predicted wait over the stage's objective: see SHED_TOKEN_WAIT_* */
	uint32_t at; /* tenths of a second since the graph started, 0 .. SHED_TOKEN_AT_WRAP - 1 */
};

/** The token as a number, never 0. Fields over their range: a stage becomes unknown, `part` and `wait` their largest,
 *  `at` wraps, `reason_index` and `class_id` are cut to their bits. */
uint64_t shed_token_pack(const struct shed_token *t);

/** Is `id` a token? Then fill *t. false: 0, or the id of a request, or a reason that does not exist; *t is as it was. */
bool shed_token_unpack(uint64_t id, struct shed_token *t);

/** `part` for a share of 0..1, rounded, but 0 and SHED_TOKEN_PART_ALL for exactly none and all; what is outside counts as
 *  the nearest. */
uint8_t shed_token_part(double share);

/** `wait`, rounded, for a predicted wait of `wait_ns` (negative: not known) at an objective of `slo_ns` (not above 0: none). */
uint8_t shed_token_wait(int64_t wait_ns, int64_t slo_ns);

/** `at` for a time `since_ns` >= 0 after the start of the graph. */
uint32_t shed_token_at(int64_t since_ns);

/** When was it, in ns after the start of the graph, seen from `now_ns` after it? The last moment that fits: what is older
 *  than 77 days looks younger. Not below 0. */
int64_t shed_token_since_ns(const struct shed_token *t, int64_t now_ns);

/**
 * Write `id` as 13 digits of Crockford's base 32 (0-9 and A-Z without I, L, O, U) and a NUL into `text`:
 * can be read out on the telephone and selected with a double click.
 */
void shed_token_print(uint64_t id, char text[WEIR_SHED_ID_BYTES]);

/** Read what shed_token_print wrote; lower case, and o, i, l for 0, 1, 1 are taken. 0, or WEIR_EINVAL when it is no token,
 *  *id being as it was. */
int shed_token_parse(const char *text, uint64_t *id);

/**
 * When could the event be let in? ns from its refusal, 0 when that is not known.
 *
 * Refused for `priority`: users' places fall evenly by 1 per SHED_TOKEN_TURN_NS, and retries of those below half of `part` are let
 * in, so a user (`known_user`) waits for (user - part / 2) of a turn; nobody's events, and a class of which nobody is let in,
 * may try after 1 s. For `delay`, `hopeless`, `limit`, `queue_full` and `threshold`: the wait that was predicted, of
 * the objective `slo_ns` (not above 0: not known).
 */
int64_t shed_token_retry_ns(const struct shed_token *t, bool known_user, int64_t slo_ns);

#endif
