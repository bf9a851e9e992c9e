/* SPDX-License-Identifier: MIT */
/* Writing over TLS to a socket with little buffer space: how many bytes are reported as sent, and
 * that every byte arrives once. */
#include "net/tls/tls_internal.h"

#include <errno.h>
#include <sys/socket.h>

#include "fixture/http/tls.h"

static struct tls_conn *t;
static int64_t held_bytes;
static SSL *client;
static int ends[2];

static SSL_CTX *server_ctx(void)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	CU_ASSERT_EQUAL_FATAL(
	    SSL_CTX_use_certificate_file(ctx, tls_path("one.pem"), SSL_FILETYPE_PEM), 1);
	CU_ASSERT_EQUAL_FATAL(
	    SSL_CTX_use_PrivateKey_file(ctx, tls_path("one.key"), SSL_FILETYPE_PEM), 1);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	return ctx;
}

static void shake(void)
{
	SSL_CTX *ctx = server_ctx();
	int small = 4608;
	BIO *bio;

	CU_ASSERT_EQUAL_FATAL(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
	t = aligned_alloc(WEIR_CACHE_LINE, sizeof(*t));
	memset(t, 0, sizeof(*t));
	t->user.held_bytes = &held_bytes;
	t->bio.fd = ends[0];
	t->ssl = SSL_new(ctx);
	bio = tls_bio_new(&t->bio);
	SSL_set_bio(t->ssl, bio, bio);
	SSL_set_accept_state(t->ssl);
	client = SSL_new(tls_client_ctx());
	SSL_set_fd(client, ends[1]);
	SSL_set_connect_state(client);
	while (SSL_do_handshake(client) != 1 || SSL_do_handshake(t->ssl) != 1) {
		tls_bio_ready(&t->bio, false);
		SSL_do_handshake(t->ssl);
	}
	SSL_CTX_free(ctx);
	setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
}

static void part(void)
{
	CU_ASSERT_EQUAL(held_bytes, 0); /* no record is partly sent */
	SSL_free(t->ssl);
	tls_bio_fini(&t->bio);
	SSL_free(client);
	free(t);
	close(ends[0]);
	close(ends[1]);
}

/* Read whatever is available. */
static size_t drain(char *p, size_t n)
{
	size_t got = 0;
	int rc;

	while (got < n && (rc = SSL_read(client, p + got, (int)(n - got))) > 0)
		got += (size_t)rc;
	ERR_clear_error();
	return got;
}

/* Send `n` bytes in pieces of `piece`. The last byte is reported as sent only when nothing is
 * buffered here any more. */
static void send_all(size_t n, size_t piece)
{
	char *from = malloc(n), *to = malloc(n);
	size_t sent = 0, got = 0;
	struct iovec iov[64];

	for (size_t i = 0; i < n; i++)
		from[i] = (char)(i * 7 + i / 251);
	while (sent < n) {
		int pieces = 0;
		for (size_t at = sent; at < n && pieces < 64; at += piece, pieces++)
			iov[pieces] = (struct iovec){from + at, n - at < piece ? n - at : piece};
		ssize_t rc = tls_send(t, iov, pieces, false);
		if (rc > 0)
			sent += (size_t)rc;
		else
			CU_ASSERT_EQUAL_FATAL(errno, EAGAIN);
		CU_ASSERT_EQUAL(held_bytes, t->bio.tail_n);
		if (sent == n)
			CU_ASSERT_EQUAL(t->bio.tail_n, 0);
		got += drain(to + got, n - got);
	}
	CU_ASSERT_EQUAL(got, n);
	CU_ASSERT_EQUAL(memcmp(from, to, n), 0);
	free(from);
	free(to);
}

static void test_sizes(void)
{
	static const size_t sizes[] = {1, 2, 1000, 16383, 16384, 16385, 40000, 300000};
	static const size_t pieces[] = {1000000, 16384, 5000};

	shake();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (size_t k = 0; k < sizeof(pieces) / sizeof(pieces[0]); k++)
			send_all(sizes[i], pieces[k]);
	part();
}

CUNIT_MAIN("tls_io", {"make files", tls_begin}, {"sizes", test_sizes}, {"remove files", tls_end})
