/* SPDX-License-Identifier: MIT */
/*
 * Builds bodies with several ranges. See multipart.h.
 *
 *   CRLF --boundary CRLF Content-Range CRLF Content-Type CRLF CRLF bytes   for each range
 *   CRLF --boundary-- CRLF
 *
 * The boundary is random, since a file that contained a predictable one could end a part early.
 */
#include "multipart.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include <weir/clock.h>
#include <weir/random.h>

/* Maximum size of the lines before a part, without the media type. */
#define PART_HEAD_BYTES 192

void multipart_init(
    struct multipart *m, const struct range_set *set, struct weir_slice type, int64_t file_bytes)
{
	uint64_t random;

	*m = (struct multipart){.set = set, .type = type, .file_bytes = file_bytes};
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random)) {
		/* shortly after boot: the kernel has no entropy yet */
		random = weir_random_at((uint64_t)weir_clock_ns(CLOCK_REALTIME), 0);
	}
	snprintf(m->boundary, sizeof(m->boundary), "%016" PRIx64, random);
}

/* Write the lines before range `i`. If there is a media type, the caller appends it and the end of
 * the head. */
static size_t part_head(const struct multipart *m, int i, char out[PART_HEAD_BYTES])
{
	const struct byte_range *r = &m->set->range[i];
	int n = snprintf(out, PART_HEAD_BYTES,
	    "\r\n--%s\r\nContent-Range: bytes %" PRId64 "-%" PRId64 "/%" PRId64 "\r\n%s",
	    m->boundary, r->offset, r->offset + r->length - 1, m->file_bytes,
	    m->type.n > 0 ? "Content-Type: " : "\r\n");

	return (size_t)n;
}

/* "CRLF--boundary--CRLF" */
#define CLOSE_BYTES (2 + 2 + MULTIPART_BOUNDARY_SIZE - 1 + 2 + 2)

size_t multipart_text_bytes(const struct multipart *m)
{
	char head[PART_HEAD_BYTES];
	size_t n = CLOSE_BYTES;

	for (int i = 0; i < m->set->n; i++)
		n += part_head(m, i, head) + (m->type.n > 0 ? m->type.n + 4 : 0);
	return n;
}

static char *put(char *to, const void *p, size_t n)
{
	memcpy(to, p, n);
	return to + n;
}

static struct weir_http_piece text_piece(const char *from, const char *to)
{
	return (struct weir_http_piece){.p = from, .n = to - from};
}

static struct weir_http_piece range_piece(const struct byte_range *r, const char *bytes)
{
	if (bytes)
		return text_piece(bytes + r->offset, bytes + r->offset + r->length);
	return (struct weir_http_piece){.offset = r->offset, .n = r->length};
}

int multipart_pieces(const struct multipart *m, char *text, const char *bytes,
    struct weir_http_piece piece[MULTIPART_PIECES])
{
	char head[PART_HEAD_BYTES], *to = text;
	int n = 0;

	for (int i = 0; i < m->set->n; i++) {
		const struct byte_range *r = &m->set->range[i];
		const char *from = to;
		to = put(to, head, part_head(m, i, head));
		if (m->type.n > 0) {
			to = put(to, m->type.p, m->type.n);
			to = put(to, "\r\n\r\n", 4);
		}
		piece[n++] = text_piece(from, to);
		piece[n++] = range_piece(r, bytes);
	}
	const char *from = to;
	to = put(to, "\r\n--", 4);
	to = put(to, m->boundary, MULTIPART_BOUNDARY_SIZE - 1);
	to = put(to, "--\r\n", 4);
	piece[n++] = text_piece(from, to);
	return n;
}

void multipart_type(const struct multipart *m, char type[MULTIPART_TYPE_SIZE])
{
	snprintf(type, MULTIPART_TYPE_SIZE, "multipart/byteranges; boundary=%s", m->boundary);
}
