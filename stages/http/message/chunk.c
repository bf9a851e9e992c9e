/* SPDX-License-Identifier: MIT */
/*
 * The chunked decoder; see chunk.h for its states.
 *
 * Extensions are checked against their grammar (";" name ["=" token or quoted string], no spaces)
 * and dropped. Trailer fields are also dropped, but those that determine the length or the
 * destination of a message are refused: a downstream parser that merged them would read a different
 * request (RFC 9110, 6.5.1). Spaces around ';' and '=' (which RFC 9112 calls bad) are refused: no
 * client sends them, and parsers disagree about them. A chunk whose size exceeds what is left of
 * the limit is refused at the end of its size line, before any of its bytes are read.
 */
#include "http/message/chunk.h"

#include "http/message/guard.h"

enum chunk_state {
	SIZE,
	EXT_NAME,   /* after ';' */
	EXT_VALUE,  /* after '=' */
	EXT_TOKEN,  /* inside a token value */
	EXT_QUOTED, /* inside a quoted value */
	EXT_ESCAPE, /* after '\' in a quoted value */
	EXT_END,    /* after a quoted value */
	SIZE_LF,
	DATA,
	DATA_CR,
	DATA_LF,
	TRAILER,
	NAME,
	VALUE,
	VALUE_LF,
	END_LF,
	END,
	BAD,
};

void chunk_init(struct chunk *c, uint64_t room)
{
	*c = (struct chunk){.state = SIZE, .room = room};
}

static bool is_text(char b)
{
	return (uint8_t)b >= 0x20 ? b != 0x7f : b == '\t';
}

static int hex_value(char b)
{
	if (b >= '0' && b <= '9')
		return b - '0';
	return (b | 0x20) - 'a' + 10;
}

static enum chunk_state in_size(struct chunk *c, char b)
{
	if (guard_is(b, GUARD_HEX)) {
		if (++c->digits > CHUNK_SIZE_DIGITS)
			return BAD;
		c->left = c->left << 4 | (uint64_t)hex_value(b);
		return SIZE;
	}
	if (c->digits == 0)
		return BAD;
	c->extension = 0;
	return b == '\r' ? SIZE_LF : b == ';' ? EXT_NAME : BAD;
}

/* Return the state after the byte `b`, which follows a complete extension. */
static enum chunk_state after_extension(char b)
{
	return b == '\r' ? SIZE_LF : b == ';' ? EXT_NAME : BAD;
}

/* Flag in `digits`: the current name or value of an extension is not empty. The member can hold
 * this flag because the number of digits is no longer needed once extensions begin. */
#define HAS_BYTE 0x80

static enum chunk_state in_token(struct chunk *c, char b, enum chunk_state here)
{
	bool some = c->digits & HAS_BYTE;

	if (guard_is(b, GUARD_TOKEN)) {
		c->digits |= HAS_BYTE;
		return here;
	}
	c->digits &= (uint8_t)~HAS_BYTE;
	if (!some)
		return BAD;
	return here == EXT_NAME && b == '=' ? EXT_VALUE : after_extension(b);
}

static enum chunk_state in_extension(struct chunk *c, char b)
{
	if (++c->extension > CHUNK_EXTENSION_MAX)
		return BAD;
	switch (c->state) {
	case EXT_NAME:
		return in_token(c, b, EXT_NAME);
	case EXT_VALUE:
		return b == '"' ? EXT_QUOTED : in_token(c, b, EXT_TOKEN);
	case EXT_TOKEN:
		return in_token(c, b, EXT_TOKEN);
	case EXT_QUOTED:
		return b == '"' ? EXT_END : b == '\\' ? EXT_ESCAPE : is_text(b) ? EXT_QUOTED : BAD;
	case EXT_ESCAPE:
		return is_text(b) ? EXT_QUOTED : BAD;
	default:
		return after_extension(b);
	}
}

static const char *const forbidden[] = {
    "content-length", "transfer-encoding", "host", "trailer", "connection"};

#define FORBIDDEN_N (sizeof(forbidden) / sizeof(forbidden[0]))

/* Compare the byte `b` of a trailer's name with the forbidden names. */
static enum chunk_state in_name(struct chunk *c, char b)
{
	if (!guard_is(b, GUARD_TOKEN))
		return BAD;
	for (size_t i = 0; i < FORBIDDEN_N; i++) {
		const char *name = forbidden[i];
		/* setting bit 5 makes a letter lowercase; '-' has the bit set, and '\r', which
		 * would become '-', is not a token byte */
		if ((c->name_may >> i & 1) && (char)(b | 0x20) != name[c->name_at])
			c->name_may &= (uint8_t) ~(1u << i);
	}
	c->name_at++;
	return NAME;
}

/* Check a trailer's name when its ':' has arrived. */
static enum chunk_state name_ends(const struct chunk *c)
{
	for (size_t i = 0; i < FORBIDDEN_N; i++)
		if ((c->name_may >> i & 1) && forbidden[i][c->name_at] == '\0')
			return BAD;
	return VALUE;
}

static enum chunk_state name_begins(struct chunk *c, char b)
{
	c->name_at = 0;
	c->name_may = (uint8_t)((1u << FORBIDDEN_N) - 1);
	return in_name(c, b);
}

static enum chunk_state in_trailer(struct chunk *c, char b)
{
	if (++c->trailer > CHUNK_TRAILER_MAX)
		return BAD;
	switch (c->state) {
	case TRAILER:
		return b == '\r' ? END_LF : name_begins(c, b);
	case NAME:
		return b == ':' ? name_ends(c) : in_name(c, b);
	case VALUE:
		return b == '\r' ? VALUE_LF : is_text(b) ? VALUE : BAD;
	default:
		return b == '\n' ? TRAILER : BAD;
	}
}

static enum chunk_state size_ends(struct chunk *c, char b)
{
	if (b != '\n')
		return BAD;
	c->digits = 0;
	return c->left == 0 ? TRAILER : DATA;
}

/* Return the state after the framing byte `b`. */
static enum chunk_state step(struct chunk *c, char b)
{
	switch (c->state) {
	case SIZE:
		return in_size(c, b);
	case SIZE_LF:
		return size_ends(c, b);
	case DATA_CR:
		return b == '\r' ? DATA_LF : BAD;
	case DATA_LF:
		return b == '\n' ? SIZE : BAD;
	case TRAILER:
	case NAME:
	case VALUE:
	case VALUE_LF:
		return in_trailer(c, b);
	case END_LF:
		return b == '\n' ? END : BAD;
	case END:
	case BAD:
		return BAD;
	default:
		return in_extension(c, b);
	}
}

static enum chunk_verdict take_data(
    struct chunk *c, const char **at, const char *end, struct weir_slice *data)
{
	size_t n = (size_t)(end - *at);

	if (n > c->left)
		n = (size_t)c->left;
	*data = (struct weir_slice){*at, n};
	*at += n;
	c->left -= n;
	c->room -= n;
	if (c->left == 0)
		c->state = DATA_CR;
	return CHUNK_DATA;
}

enum chunk_verdict chunk_next(
    struct chunk *c, const char **at, const char *end, struct weir_slice *data)
{
	while (*at < end) {
		if (c->state == DATA)
			return take_data(c, at, end, data);
		c->state = (uint8_t)step(c, *(*at)++);
		if (c->state == BAD)
			return CHUNK_BAD;
		if (c->state == END)
			return CHUNK_END;
		if (c->state == DATA && c->left > c->room)
			return CHUNK_LARGE;
	}
	return CHUNK_MORE;
}
