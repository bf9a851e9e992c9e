/* SPDX-License-Identifier: MIT */
/* Encodes and decodes shed tokens; see shed_token.h. */
#include "stage/shed_token.h"

#include <string.h>

#include "base/clock.h"

/* Bit positions of the fields; see the diagram in shed_token.h. */
enum {
	AT_BIT = 0,
	WAIT_BIT = 26,
	PART_BIT = 33,
	USER_BIT = 40,
	CLASS_BIT = 48,
	STAGE_BIT = 51,
	REASON_BIT = 59
};

/* Crockford, "Base 32": https://www.crockford.com/base32.html */
static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

#define DIGITS     (WEIR_SHED_ID_BYTES - 1)
#define DIGIT_BITS 5

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t shed_token_pack(const struct shed_token *t)
{
	return SHED_TOKEN_MARK | (uint64_t)(t->reason_index & 15) << REASON_BIT |
	       least(t->stage, SHED_TOKEN_STAGE_UNKNOWN) << STAGE_BIT |
	       (uint64_t)(t->class_id & 7) << CLASS_BIT | (uint64_t)t->user << USER_BIT |
	       least(t->part, SHED_TOKEN_PART_ALL) << PART_BIT |
	       least(t->wait, SHED_TOKEN_WAIT_UNKNOWN) << WAIT_BIT |
	       (uint64_t)(t->at % SHED_TOKEN_AT_WRAP) << AT_BIT;
}

bool shed_token_unpack(uint64_t id, struct shed_token *t)
{
	uint8_t reason = (uint8_t)(id >> REASON_BIT & 15);

	if (!(id & SHED_TOKEN_MARK) || reason >= WEIR_SHED_REASONS)
		return false;
	*t = (struct shed_token){.reason_index = reason,
	    .stage = (uint16_t)(id >> STAGE_BIT & 255),
	    .class_id = (uint8_t)(id >> CLASS_BIT & 7),
	    .user = (uint8_t)(id >> USER_BIT & 255),
	    .part = (uint8_t)(id >> PART_BIT & 127),
	    .wait = (uint8_t)(id >> WAIT_BIT & 127),
	    .at = (uint32_t)(id % SHED_TOKEN_AT_WRAP)};
	return true;
}

uint8_t shed_token_part(double share)
{
	if (!(share > 0))
		return 0;
	if (share >= 1)
		return SHED_TOKEN_PART_ALL;
	int part = (int)(share * SHED_TOKEN_PART_ALL + 0.5);
	return (uint8_t)(part < 1                     ? 1
			 : part < SHED_TOKEN_PART_ALL ? part
						      : SHED_TOKEN_PART_ALL - 1);
}

uint8_t shed_token_wait(int64_t wait_ns, int64_t slo_ns)
{
	if (wait_ns < 0 || slo_ns <= 0)
		return SHED_TOKEN_WAIT_UNKNOWN;
	double units = (double)wait_ns * SHED_TOKEN_WAIT_UNIT / (double)slo_ns + 0.5;
	return units < SHED_TOKEN_WAIT_MOST ? (uint8_t)units : SHED_TOKEN_WAIT_MOST;
}

uint32_t shed_token_at(int64_t since_ns)
{
	return (uint32_t)((uint64_t)since_ns / (NS_PER_S / 10) % SHED_TOKEN_AT_WRAP);
}

int64_t shed_token_since_ns(const struct shed_token *t, int64_t now_ns)
{
	int64_t now = now_ns / (NS_PER_S / 10);
	/* division rounds towards 0, so the result is never negative */
	int64_t turns = (now - t->at) / SHED_TOKEN_AT_WRAP;

	return (t->at + turns * SHED_TOKEN_AT_WRAP) * (NS_PER_S / 10);
}

void shed_token_print(uint64_t id, char text[WEIR_SHED_ID_BYTES])
{
	for (int i = 0; i < DIGITS; i++)
		text[i] = digits[id >> (DIGITS - 1 - i) * DIGIT_BITS & 31];
	text[DIGITS] = '\0';
}

/* Value of the digit `c`, or -1 if it is not a digit. Letters that are easily mistaken for 0 or 1
 * are read as 0 or 1. */
static int digit_of(char c)
{
	char upper = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;

	if (upper == 'O')
		upper = '0';
	if (upper == 'I' || upper == 'L')
		upper = '1';
	const char *at = upper ? strchr(digits, upper) : NULL;
	return at ? (int)(at - digits) : -1;
}

int shed_token_parse(const char *text, uint64_t *id)
{
	struct shed_token t;
	uint64_t value = 0;

	/* 13 digits have 65 bits, so only four bits of the first digit are used. */
	if (strlen(text) != DIGITS || digit_of(text[0]) > 15)
		return WEIR_EINVAL;
	for (int i = 0; i < DIGITS; i++) {
		int digit = digit_of(text[i]);
		if (digit < 0)
			return WEIR_EINVAL;
		value = value << DIGIT_BITS | (uint64_t)digit;
	}
	if (!shed_token_unpack(value, &t))
		return WEIR_EINVAL;
	*id = value;
	return 0;
}

/* Time until the user's position in the rotation falls below half the admitted share. The bound is
 * half the share because the client's next attempt is a retry, and retries are admitted for half as
 * long as first attempts (admission/users.h). */
static int64_t turn_ns(const struct shed_token *t, bool known_user)
{
	double ahead = t->user / 256.0 - (double)t->part / SHED_TOKEN_PART_ALL / 2;

	if (!known_user || t->part == 0)
		return NS_PER_S;
	return ahead > 0 ? (int64_t)(ahead * SHED_TOKEN_TURN_NS) : 0;
}

int64_t shed_token_retry_ns(const struct shed_token *t, bool known_user, int64_t slo_ns)
{
	switch (weir_shed_code(t->reason_index)) {
	case WEIR_EPRIORITY:
		return turn_ns(t, known_user);
	case WEIR_EDELAY:
	case WEIR_EHOPELESS:
	case WEIR_ELIMIT:
	case WEIR_EQUEUE:
		if (t->wait == SHED_TOKEN_WAIT_UNKNOWN || slo_ns <= 0)
			return 0;
		return (int64_t)((double)t->wait / SHED_TOKEN_WAIT_UNIT * (double)slo_ns);
	default:
		return 0;
	}
}
