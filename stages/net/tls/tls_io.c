/* SPDX-License-Identifier: MIT */
/*
 * Reads and writes bytes over TLS; see tls_conn.h.
 *
 * The owed byte. OpenSSL accepts whole records, but the socket accepts only what it has space for;
 * the rest of a record waits in the BIO. If all bytes were reported as sent, the caller might close
 * the connection before the rest has been sent. One of the bytes that OpenSSL has accepted is
 * therefore not reported as sent until the rest has been sent. The caller sees a short write, and
 * calls again when the socket is writable. The first byte that it then passes is the owed one,
 * which is skipped.
 *
 * If the kernel encrypts (kTLS), bytes and files are sent to the socket as without TLS.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>

#include "net/tls/tls_internal.h"

/* Maximum number of data bytes in a record: RFC 8446, 5.1. */
#define RECORD_BYTES 16384
/* File bytes read at a time to be encrypted: four records. */
#define FILE_BYTES (4 * RECORD_BYTES)
/* Maximum number of consecutive reads without a byte of data. After more, the client is
 * disconnected, because it sends only key updates or empty records. There is one such read per
 * iteration, and each processes the contents of the buffer (up to the size of a record). 32 is a
 * guess: clients need no more than a few. */
#define VAIN_MAX 32

static ssize_t again(void)
{
	errno = EAGAIN;
	return -1;
}

static ssize_t broken(struct tls_conn *t)
{
	t->broken = true;
	errno = ECONNRESET;
	return -1;
}

/* ---- reading ---- */

enum got { GOT_BYTES, GOT_NOTHING, GOT_OTHER, GOT_END, GOT_BROKEN };

static enum got read_some(struct tls_conn *t, char *p, size_t n, size_t *got)
{
	int rc;

	ERR_clear_error();
	t->bio.blocked = false;
	rc = SSL_read(t->ssl, p, n > INT_MAX ? INT_MAX : (int)n);
	if (rc > 0) {
		*got += (size_t)rc;
		return GOT_BYTES;
	}
	switch (SSL_get_error(t->ssl, rc)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return t->bio.blocked ? GOT_NOTHING : GOT_OTHER;
	case SSL_ERROR_ZERO_RETURN:
		return GOT_END;
	default:
		return GOT_BROKEN;
	}
}

ssize_t tls_recv(struct tls_conn *t, char *p, size_t n)
{
	enum got what = GOT_BYTES;
	size_t got = 0;

	if (t->broken)
		return broken(t);
	while (what == GOT_BYTES && got < n && !t->ended)
		what = read_some(t, p + got, n - got, &got);
	t->ended |= what == GOT_END;
	t->broken |= what == GOT_BROKEN;
	if (got > 0)
		t->vain = 0;
	else if (what == GOT_OTHER && ++t->vain > VAIN_MAX)
		t->broken = true;
	ERR_clear_error();
	tls_tell(t);
	t->left = what != GOT_NOTHING;
	if (got > 0)
		return (ssize_t)got;
	return t->broken ? broken(t) : t->ended ? 0 : again();
}

bool tls_left(const struct tls_conn *t)
{
	return t->left;
}

/* ---- writing ---- */

/* A position in iov[n]. */
struct cursor {
	const struct iovec *iov;
	int n;
	size_t off; /* bytes of iov[0] before the position */
};

static void skip(struct cursor *at, size_t n)
{
	while (at->n > 0 && n >= at->iov->iov_len - at->off) {
		n -= at->iov->iov_len - at->off;
		at->iov++;
		at->n--;
		at->off = 0;
	}
	at->off += n;
}

/* Find the bytes of the next record: in place, or copied into `buf` if they are in small pieces.
 * Returns their number. */
static size_t next_record(const struct cursor *from, char buf[RECORD_BYTES], const char **p)
{
	struct cursor at = *from;
	size_t n = 0;

	skip(&at, 0); /* skips empty pieces */
	if (at.n == 0)
		return 0;
	n = at.iov->iov_len - at.off;
	*p = (const char *)at.iov->iov_base + at.off;
	if (n >= RECORD_BYTES || at.n == 1)
		return n < RECORD_BYTES ? n : RECORD_BYTES;
	for (n = 0; at.n > 0 && n < RECORD_BYTES;) {
		size_t rest = at.iov->iov_len - at.off;
		size_t take = rest < RECORD_BYTES - n ? rest : RECORD_BYTES - n;
		memcpy(buf + n, (const char *)at.iov->iov_base + at.off, take);
		n += take;
		skip(&at, take);
	}
	*p = buf;
	return n;
}

/* Write p[n] as a record. Returns the number of bytes accepted, 0 if the socket is full, or -1 if
 * it is broken. */
static ssize_t write_record(struct tls_conn *t, const char *p, size_t n)
{
	int rc;

	ERR_clear_error();
	rc = SSL_write(t->ssl, p, (int)n);
	if (rc > 0)
		return rc;
	if (SSL_get_error(t->ssl, rc) == SSL_ERROR_WANT_WRITE && t->bio.tail_n > 0)
		return 0;
	ERR_clear_error();
	return -1;
}

static ssize_t send_records(struct tls_conn *t, const struct iovec *iov, int n)
{
	struct cursor at = {.iov = iov, .n = n};
	char buf[RECORD_BYTES];
	const char *p = NULL;
	ssize_t taken = 1;
	size_t done = t->owed, len;

	skip(&at, done);
	t->owed = false;
	while (taken > 0 && t->bio.tail_n == 0 && (len = next_record(&at, buf, &p)) > 0) {
		taken = write_record(t, p, len);
		if (taken == -1)
			return broken(t);
		skip(&at, (size_t)taken);
		done += (size_t)taken;
	}
	if (done > 0 && t->bio.tail_n > 0) {
		t->owed = true;
		done--;
	}
	return done > 0 ? (ssize_t)done : again();
}

/* Whether the kernel can continue to encrypt. Linux before 6.14 cannot change its keys, so a client
 * that requests new keys is disconnected. */
static bool kernel_ok(const struct tls_conn *t)
{
	return SSL_get_key_update_type(t->ssl) == SSL_KEY_UPDATE_NONE;
}

ssize_t tls_send(struct tls_conn *t, const struct iovec *iov, int n, bool more)
{
	struct msghdr msg = {.msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = (size_t)n};

	if (t->broken)
		return broken(t);
	switch (tls_bio_flush(&t->bio)) {
	case 1:
		break;
	case 0:
		return again();
	default:
		return broken(t);
	}
	if (!t->bio.kernel_out) {
		ssize_t sent = send_records(t, iov, n);
		tls_tell(t);
		return sent;
	}
	if (!kernel_ok(t))
		return broken(t);
	return TEMP_FAILURE_RETRY(sendmsg(t->bio.fd, &msg, MSG_NOSIGNAL | (more ? MSG_MORE : 0)));
}

ssize_t tls_sendfile(struct tls_conn *t, int fd, off_t *offset, size_t n)
{
	char buf[FILE_BYTES];
	struct iovec iov = {.iov_base = buf};
	ssize_t got, sent;

	if (t->bio.kernel_out && t->bio.tail_n == 0)
		return kernel_ok(t) ? TEMP_FAILURE_RETRY(sendfile(t->bio.fd, fd, offset, n))
				    : broken(t);
	got = TEMP_FAILURE_RETRY(pread(fd, buf, n < FILE_BYTES ? n : FILE_BYTES, *offset));
	if (got <= 0)
		return got;
	iov.iov_len = (size_t)got;
	sent = tls_send(t, &iov, 1, false);
	if (sent > 0)
		*offset += sent;
	return sent;
}
