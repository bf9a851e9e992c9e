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
	SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY);
	SSL_CTX_set_read_ahead(ctx, 1);
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

/* ---- failures ---- */

/* Whether a call fails because the connection is broken. */
static bool is_reset(ssize_t rc)
{
	return rc == -1 && errno == ECONNRESET && t->broken;
}

static void test_broken(void)
{
	char text[] = "abc", byte;
	struct iovec iov = {text, 3};

	shake();
	close(ends[1]);
	errno = 0;
	CU_ASSERT(is_reset(tls_send(t, &iov, 1, false)));
	errno = 0;
	CU_ASSERT(is_reset(tls_send(t, &iov, 1, false)));
	errno = 0;
	CU_ASSERT(is_reset(tls_recv(t, &byte, 1)));
	ends[1] = -1;
	part();
}

/* ---- reading ---- */

static ssize_t receive(char *p, size_t n)
{
	tls_bio_ready(&t->bio, false);
	errno = 0;
	return tls_recv(t, p, n);
}

static void test_read(void)
{
	char got[100];

	shake();
	CU_ASSERT_EQUAL(receive(got, sizeof(got)), -1);
	CU_ASSERT_EQUAL(errno, EAGAIN);
	CU_ASSERT_FALSE(tls_left(t));
	CU_ASSERT_EQUAL(SSL_write(client, "0123456789", 10), 10);
	CU_ASSERT_EQUAL(receive(got, 4), 4);
	CU_ASSERT_EQUAL(memcmp(got, "0123", 4), 0);
	CU_ASSERT_TRUE(tls_left(t));
	CU_ASSERT_EQUAL(receive(got, sizeof(got)), 6);
	CU_ASSERT_EQUAL(memcmp(got, "456789", 6), 0);
	CU_ASSERT_FALSE(tls_left(t));
	/* two records are read at once */
	CU_ASSERT_EQUAL(SSL_write(client, "ab", 2), 2);
	CU_ASSERT_EQUAL(SSL_write(client, "cd", 2), 2);
	CU_ASSERT_EQUAL(receive(got, sizeof(got)), 4);
	CU_ASSERT_EQUAL(memcmp(got, "abcd", 4), 0);
	part();
}

/* Data that came before close_notify are read first. After it, every read returns the end. */
static void test_end(void)
{
	char got[100];

	shake();
	CU_ASSERT_EQUAL(SSL_write(client, "ab", 2), 2);
	SSL_shutdown(client);
	CU_ASSERT_EQUAL(receive(got, sizeof(got)), 2);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(receive(got, sizeof(got)), 0);
	CU_ASSERT_FALSE(t->broken);
	part();
}

/* The result of a read that finds only a key update. */
static ssize_t read_update(void)
{
	char got[100];

	CU_ASSERT_EQUAL(SSL_key_update(client, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
	CU_ASSERT_EQUAL(SSL_do_handshake(client), 1);
	return receive(got, sizeof(got));
}

/* 32 reads in a row may find nothing but key updates. */
static void test_vain(void)
{
	char got[100];

	shake();
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 32; i++) {
			CU_ASSERT_EQUAL(read_update(), -1);
			CU_ASSERT_EQUAL(errno, EAGAIN);
			CU_ASSERT_TRUE(tls_left(t));
		}
		if (round == 0) { /* bytes of data restart the count of updates */
			CU_ASSERT_EQUAL(SSL_write(client, "ab", 2), 2);
			CU_ASSERT_EQUAL(receive(got, sizeof(got)), 2);
		}
	}
	CU_ASSERT_FALSE(t->broken);
	CU_ASSERT(is_reset(read_update()));
	part();
}

CUNIT_MAIN("tls_io", {"make files", tls_begin}, {"sizes", test_sizes}, {"broken", test_broken},
    {"read", test_read}, {"end", test_end}, {"vain reads", test_vain}, {"remove files", tls_end})
