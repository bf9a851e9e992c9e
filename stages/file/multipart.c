/* SPDX-License-Identifier: MIT */
/*
 * Bodies of several ranges. See multipart.h.
 *
 *   CRLF --boundary CRLF Content-Type CRLF Content-Range CRLF CRLF bytes   for each range
 *   CRLF --boundary-- CRLF
 *
 * The boundary is random: a file that holds a known one could end a part early.
 */
#include "multipart.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* Longest lines of a part, but for the media type. */
#define PART_HEAD_BYTES 192

void multipart_init(
    struct multipart *m, const struct range_set *set, struct weir_slice type, int64_t file_bytes)
{
	uint64_t random;

	*m = (struct multipart){.set = set, .type = type, .file_bytes = file_bytes};
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random)) {
		struct timespec ts; /* a machine that has just been started */
		clock_gettime(CLOCK_REALTIME, &ts);
		random = (uint64_t)ts.tv_sec * 1000000007u ^ (uint64_t)ts.tv_nsec;
	}
	snprintf(m->boundary, sizeof(m->boundary), "%016" PRIx64, random);
}

/* The lines in front of range `i`, which end in those of the type's own bytes. */
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

size_t multipart_bytes(const struct multipart *m)
{
	char head[PART_HEAD_BYTES];
	size_t n = CLOSE_BYTES;

	for (int i = 0; i < m->set->n; i++) {
		n += part_head(m, i, head) + (size_t)m->set->range[i].length;
		n += m->type.n > 0 ? m->type.n + 4 : 0;
	}
	return n;
}

static char *put(char *to, const void *p, size_t n)
{
	memcpy(to, p, n);
	return to + n;
}

int multipart_write(const struct multipart *m, char *to, multipart_copy *copy, void *arg)
{
	char head[PART_HEAD_BYTES];

	for (int i = 0; i < m->set->n; i++) {
		const struct byte_range *r = &m->set->range[i];
		to = put(to, head, part_head(m, i, head));
		if (m->type.n > 0) {
			to = put(to, m->type.p, m->type.n);
			to = put(to, "\r\n\r\n", 4);
		}
		int rc = copy(arg, to, r->offset, (size_t)r->length);
		if (rc < 0)
			return rc;
		to += r->length;
	}
	to = put(to, "\r\n--", 4);
	to = put(to, m->boundary, MULTIPART_BOUNDARY_SIZE - 1);
	put(to, "--\r\n", 4);
	return 0;
}

void multipart_type(const struct multipart *m, char type[MULTIPART_TYPE_SIZE])
{
	snprintf(type, MULTIPART_TYPE_SIZE, "multipart/byteranges; boundary=%s", m->boundary);
}
