/* SPDX-License-Identifier: MIT */
/* Implements the BIO of TLS connections; see tls_bio.h. */
#include "net/tls/tls_bio.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Whether a call to the socket BIO was interrupted. OpenSSL treats EINTR as EAGAIN; the caller
 * would then wait for an edge that has already passed (wire_io.h). */
static bool was_interrupted(BIO *b, int n)
{
	return n <= 0 && BIO_should_retry(b) && errno == EINTR;
}

int tls_bio_flush(struct tls_bio *t)
{
	while (t->tail_n > t->tail_off) {
		ssize_t n = TEMP_FAILURE_RETRY(
		    send(t->fd, t->tail + t->tail_off, t->tail_n - t->tail_off, MSG_NOSIGNAL));
		if (n == -1)
			return errno == EAGAIN ? 0 : -1;
		t->tail_off += (uint32_t)n;
	}
	if (t->tail)
		tls_bio_fini(t);
	return 1;
}

void tls_bio_fini(struct tls_bio *t)
{
	free(t->tail);
	t->tail = NULL;
	t->tail_n = t->tail_off = 0;
}

static bool keep(struct tls_bio *t, const char *p, size_t n)
{
	t->tail = malloc(n);
	if (!t->tail)
		return false;
	memcpy(t->tail, p, n);
	t->tail_n = (uint32_t)n;
	t->tail_off = 0;
	return true;
}

/* Write for OpenSSL. Any failure other than a retry makes the caller close the connection. */
static int bio_write(BIO *b, const char *p, int n)
{
	struct tls_bio *t = BIO_get_data(b);
	ssize_t sent;
	int taken;

	BIO_clear_retry_flags(b);
	switch (tls_bio_flush(t)) {
	case -1:
		return -1;
	case 0:
		BIO_set_retry_write(b);
		return -1;
	default:
		break;
	}
	if (BIO_get_ktls_send(BIO_next(b))) {
		do
			taken = BIO_write(BIO_next(b), p, n);
		while (was_interrupted(BIO_next(b), taken));
		BIO_copy_next_retry(b);
		return taken;
	}
	sent = TEMP_FAILURE_RETRY(send(t->fd, p, (size_t)n, MSG_NOSIGNAL));
	if (sent == n)
		return n;
	if (sent == -1 && errno != EAGAIN)
		return -1;
	sent = sent == -1 ? 0 : sent;
	return keep(t, p + sent, (size_t)(n - sent)) ? n : -1;
}

static int bio_read(BIO *b, char *p, int n)
{
	struct tls_bio *t = BIO_get_data(b);
	int got;

	BIO_clear_retry_flags(b);
	t->blocked = t->empty;
	if (t->empty) {
		BIO_set_retry_read(b);
		return -1;
	}
	do
		got = BIO_read(BIO_next(b), p, n);
	while (was_interrupted(BIO_next(b), got));
	BIO_copy_next_retry(b);
	t->blocked = got <= 0 && BIO_should_retry(b);
	/* Bytes that the kernel has decrypted are read one record at a time, so a short read does
	 * not show that the socket is empty. */
	if (got < n && (got > 0 || t->blocked))
		t->empty = !t->end_is_near && !BIO_get_ktls_recv(BIO_next(b));
	return got;
}

static long bio_ctrl(BIO *b, int what, long n, void *p)
{
	struct tls_bio *t = BIO_get_data(b);
	int rc;

	if (!BIO_next(b))
		return 0;
	if (what != BIO_CTRL_FLUSH)
		return BIO_ctrl(BIO_next(b), what, n, p);
	BIO_clear_retry_flags(b);
	rc = tls_bio_flush(t);
	if (rc == 0)
		BIO_set_retry_write(b);
	return rc == 1 ? 1 : -1;
}

static int bio_create(BIO *b)
{
	BIO_set_init(b, 1);
	return 1;
}

/* ---- the method: one for the process, never freed ---- */

static BIO_METHOD *method;

static void make_method(void)
{
	BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_FILTER, "weir socket");

	if (m && BIO_meth_set_write(m, bio_write) && BIO_meth_set_read(m, bio_read) &&
	    BIO_meth_set_ctrl(m, bio_ctrl) && BIO_meth_set_create(m, bio_create)) {
		method = m;
		return;
	}
	BIO_meth_free(m);
}

BIO *tls_bio_new(struct tls_bio *t)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	BIO *b, *inner;

	pthread_once(&once, make_method);
	b = method ? BIO_new(method) : NULL;
	inner = BIO_new_socket(t->fd, BIO_NOCLOSE);
	if (!b || !inner) {
		BIO_free(b);
		BIO_free(inner);
		return NULL;
	}
	BIO_set_data(b, t);
	return BIO_push(b, inner);
}
