/* SPDX-License-Identifier: MIT */
/*
 * Shed tokens, which encode in the 64 bits of an event's trace id why the event was refused.
 *
 * A server that refuses a million requests a second cannot store the reason for each refusal, so
 * the response carries it: the sink encodes the reason and the load at that time in `ev->trace_id`,
 * http.server sends it as `X-Weir-Shed-Id`, and `weir why --shed ID` decodes it. Nothing is stored
 * on the server. A token is neither secret nor trustworthy, since a client can forge one.
 *
 *   bit   63  62..59  58..51  50..48  47..40  39..33  32..26  25..0
 *         1   reason  stage   class   user    part    wait    at
 *
 * Bit 63 is set in every token and in no request id, so a token is never 0 and never equals a
 * request id. There is no checksum, since all 64 bits are used; the decoder only checks bit 63, the
 * range of `reason`, and the alphabet and length of the text. Pure functions; any thread; a call
 * costs a few ns.
 */
#ifndef WEIR_STAGE_SHED_TOKEN_H
#define WEIR_STAGE_SHED_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/error.h>
#include <weir/stage.h>

/** Bit that is set in every token and in no other trace id. */
#define SHED_TOKEN_MARK (1ULL << 63)

/** Value of `stage` if the stage id is unknown or too large. */
#define SHED_TOKEN_STAGE_UNKNOWN 255
/** Value of `part` if the whole class was admitted. */
#define SHED_TOKEN_PART_ALL 127
/** Unit of `wait`: 1/32 of the objective. */
#define SHED_TOKEN_WAIT_UNIT 32
/** Largest value of `wait`, for 126/32 of the objective (3.9 times) or more. */
#define SHED_TOKEN_WAIT_MOST 126
/** Value of `wait` if no wait was predicted, or the stage has no objective. */
#define SHED_TOKEN_WAIT_UNKNOWN 127
/** Modulus of `at`, in tenths of a second: 77 days. */
#define SHED_TOKEN_AT_WRAP (1U << 26)

/** Time in ns in which the admitted share of a class rotates through all users: each user's
 *  position takes every value once. 10 s is a guess: about as long as users wait before they try
 *  again. */
#define SHED_TOKEN_TURN_NS 10000000000

struct shed_token {
	uint8_t reason_index; /* weir_shed_index() of the code, 0 .. WEIR_SHED_REASONS - 1 */
	/* id of the stage on whose behalf the event was refused, 0..254, or
	 * SHED_TOKEN_STAGE_UNKNOWN */
	uint16_t stage;
	uint8_t class_id; /* class of the event, 0..7 */
	/* user's position in the rotation, highest 8 bits: user / 256 is in [0, 1) */
	uint8_t user;
	/* share of the class that was admitted at that time, 0..127, in units of 1/127 */
	uint8_t part;
	uint8_t wait; /* predicted wait relative to the stage's objective: SHED_TOKEN_WAIT_* */
	uint32_t at;  /* tenths of a second since the graph started, 0 .. SHED_TOKEN_AT_WRAP - 1 */
};

/** Encode a token; the result is never 0. If a field is out of range, `stage` becomes unknown,
 *  `part` and `wait` become their maximum, `at` wraps, and `reason_index` and `class_id` are
 *  truncated to their bits. */
uint64_t shed_token_pack(const struct shed_token *t);

/** Decode the token `id` into *t. Returns false, with *t unchanged, if `id` is 0 or a request id,
 *  or its reason does not exist. */
bool shed_token_unpack(uint64_t id, struct shed_token *t);

/** Convert a share to `part`, rounded, such that only shares of 0 and 1 give 0 and
 *  SHED_TOKEN_PART_ALL. Shares out of range are clamped to 0..1. */
uint8_t shed_token_part(double share);

/** Convert a predicted wait of `wait_ns` (negative if unknown) to `wait`, rounded, for an objective
 *  of `slo_ns` (0 or less if the stage has none). */
uint8_t shed_token_wait(int64_t wait_ns, int64_t slo_ns);

/** Convert the time `since_ns` >= 0, counted from the start of the graph, to `at`. */
uint32_t shed_token_at(int64_t since_ns);

/** Time of the refusal in ns since the start of the graph: the latest time up to `now_ns` that
 *  matches `at`, but at least 0. `now_ns` is the current time, also counted from the start of the
 *  graph. If the token is older than 77 days, the result is too late. */
int64_t shed_token_since_ns(const struct shed_token *t, int64_t now_ns);

/**
 * Write `id` into `text` as 13 digits of Crockford's base 32 (0-9 and A-Z without I, L, O, U) and a
 * NUL. The text can be dictated over the telephone and selected with a double click.
 */
void shed_token_print(uint64_t id, char text[WEIR_SHED_ID_BYTES]);

/** Parse a text from shed_token_print. Also accepts lower case, o for 0, and i or l for 1. Returns
 *  0, or WEIR_EINVAL, with *id unchanged, if the text is not a token. */
int shed_token_parse(const char *text, uint64_t *id);

/**
 * Estimate how long after its refusal the event may be admitted, in ns. Returns 0 if unknown.
 *
 * For the reason `priority`, a user's position falls steadily by 1 per SHED_TOKEN_TURN_NS, and
 * retries with a position below half of `part` are admitted. So the time is (user - part / 2) *
 * SHED_TOKEN_TURN_NS if the user is known (`known_user`). It is 1 s for an event without a user,
 * and for a class of which nothing is admitted.
 *
 * For the reasons `delay`, `hopeless`, `limit` and `queue_full`, the time is the predicted wait, if
 * there is one, computed from the objective `slo_ns` (0 or less if unknown).
 */
int64_t shed_token_retry_ns(const struct shed_token *t, bool known_user, int64_t slo_ns);

#endif
