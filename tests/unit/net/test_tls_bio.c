/* SPDX-License-Identifier: MIT */
/* When the BIO between TLS and a socket reads, and when it knows that the socket is empty. */
#include "net/tls/tls_bio.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cunit_main.h"

static struct tls_bio own;
static BIO *bio;
static int peer;

static void begin(void)
{
	int ends[2];

	CU_ASSERT_EQUAL_FATAL(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
	own = (struct tls_bio){.fd = ends[0]};
	peer = ends[1];
	bio = tls_bio_new(&own);
	CU_ASSERT_PTR_NOT_NULL_FATAL(bio);
}

static void end(void)
{
	BIO_free_all(bio);
	tls_bio_fini(&own);
	close(own.fd);
}

static int read_some(void)
{
	char buf[16];

	return BIO_read(bio, buf, sizeof(buf));
}

static bool would_block(void)
{
	return read_some() == -1 && BIO_should_retry(bio);
}

/* After a short read the socket counts as empty until tls_bio_ready, whatever has arrived. */
static void test_short_read_empties(void)
{
	begin();
	CU_ASSERT_EQUAL(send(peer, "abc", 3, 0), 3);
	CU_ASSERT_EQUAL(read_some(), 3);
	CU_ASSERT_EQUAL(send(peer, "de", 2, 0), 2);
	CU_ASSERT(would_block());
	tls_bio_ready(&own, false);
	CU_ASSERT_EQUAL(read_some(), 2);
	CU_ASSERT(would_block());
	close(peer);
	end();
}

/* Once the peer has shut down its side, no further event announces the end, so it must be read
 * after the last bytes. */
static void test_end_is_read_after_the_last_bytes(void)
{
	begin();
	CU_ASSERT_EQUAL(send(peer, "abc", 3, 0), 3);
	close(peer);
	tls_bio_ready(&own, true);
	CU_ASSERT_EQUAL(read_some(), 3);
	CU_ASSERT_EQUAL(read_some(), 0);
	CU_ASSERT_FALSE(BIO_should_retry(bio));
	end();
}

/* ---- writing ---- */

static char text[100000];

/* Write text[*at, n) until the socket is full or all is accepted. */
static void write_until_full(size_t *at, size_t n)
{
	int rc = 1;

	while (*at < n &&
	       (rc = BIO_write(bio, text + *at, n - *at < 1000 ? (int)(n - *at) : 1000)) > 0)
		*at += (size_t)rc;
	CU_ASSERT(rc > 0 || BIO_should_write(bio));
}

static size_t receive(char *to, size_t n)
{
	ssize_t got = recv(peer, to, n, MSG_DONTWAIT);

	return got > 0 ? (size_t)got : 0;
}

/* Whatever the socket does not take is kept, is sent before what follows, and arrives once. */
static void test_tail(void)
{
	static char got[sizeof(text)];
	size_t sent = 0, n = 0, more;
	int small = 4608;

	begin();
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)(i * 31 + i / 256);
	setsockopt(own.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	CU_ASSERT_EQUAL(tls_bio_flush(&own), 1); /* nothing is kept */
	write_until_full(&sent, sizeof(text));
	CU_ASSERT(sent < sizeof(text) && own.tail_n > 0);
	CU_ASSERT_EQUAL(tls_bio_flush(&own), 0);
	CU_ASSERT_EQUAL(BIO_flush(bio), -1);
	CU_ASSERT(BIO_should_write(bio));
	while (n < sizeof(text)) {
		more = receive(got + n, sizeof(got) - n);
		n += more;
		if (more == 0)
			write_until_full(&sent, sizeof(text));
		if (sent == sizeof(text))
			(void)tls_bio_flush(&own);
	}
	CU_ASSERT_EQUAL(memcmp(got, text, sizeof(text)), 0);
	CU_ASSERT_EQUAL(receive(got, 1), 0);
	CU_ASSERT_EQUAL(tls_bio_flush(&own), 1);
	CU_ASSERT_EQUAL(BIO_flush(bio), 1);
	CU_ASSERT_PTR_NULL(own.tail);
	CU_ASSERT_EQUAL(own.tail_n, 0);
	close(peer);
	end();
}

/* A peer that has gone is an error, not a reason to wait. */
static void test_broken(void)
{
	int small = 4608;
	size_t sent = 0;

	begin();
	close(peer);
	CU_ASSERT_EQUAL(BIO_write(bio, "abc", 3), -1);
	CU_ASSERT_FALSE(BIO_should_retry(bio));
	end();
	begin();
	setsockopt(own.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	write_until_full(&sent, sizeof(text));
	CU_ASSERT(own.tail_n > 0);
	close(peer);
	CU_ASSERT_EQUAL(tls_bio_flush(&own), -1);
	CU_ASSERT_EQUAL(BIO_write(bio, "abc", 3), -1);
	CU_ASSERT_FALSE(BIO_should_retry(bio));
	CU_ASSERT_EQUAL(BIO_flush(bio), -1);
	end();
}

CUNIT_MAIN("tls_bio", {"unsent bytes are kept", test_tail}, {"broken", test_broken},
    {"a short read empties the socket", test_short_read_empties},
    {"the end is read after the last bytes", test_end_is_read_after_the_last_bytes})
