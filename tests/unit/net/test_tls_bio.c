/* SPDX-License-Identifier: MIT */
/* When the BIO between TLS and a socket reads, and when it knows that the socket is empty. */
#include "net/tls/tls_bio.h"

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

CUNIT_MAIN("tls_bio", {"a short read empties the socket", test_short_read_empties},
    {"the end is read after the last bytes", test_end_is_read_after_the_last_bytes})
