/* SPDX-License-Identifier: MIT */
/*
 * A signal interrupts every second call that moves bytes through a socket: recv, send, sendmsg,
 * sendfile, and the calls below OpenSSL. Sockets are edge-triggered: code that took EINTR for
 * EAGAIN would wait for an edge that has already happened, and the client would wait for its
 * response until the test times out.
 */
#include "fixture/http/site.h"

#include "fixture/http/tls.h"

#include "fault/inject.h"

#define LARGE 3000000

static void begin(void)
{
	fault_client = true;
	atomic_store(&fault_interrupted, 0);
	atomic_store(&fault_interrupts, true);
}

static void end(struct server *s)
{
	CU_ASSERT(atomic_load(&fault_interrupted) > 0);
	atomic_store(&fault_interrupts, false);
	server_stop(s);
}

/* Requests sent whole, in two pieces and pipelined; a response that fills the socket; a connection
 * closed with bytes unread. */
static void test_requests(void)
{
	struct server s = server_new("t.reply");
	struct answer a = {0};

	server_start(&s);
	begin();
	for (int i = 0; i < 20; i++) {
		int fd = client_open(s.port);
		CU_ASSERT(client_say(fd, GET("/a")));
		CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /a\n"));
		CU_ASSERT(client_say(fd, "POST /b HTTP/1.1\r\nHost: t\r\nContent-"));
		CU_ASSERT(client_say(fd, "Length: 3\r\n\r\nab"));
		CU_ASSERT(client_say(fd, "c" GET("/c")));
		CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "POST /b\nabc"));
		CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /c\n"));
		CU_ASSERT(client_say(fd, "POST /d HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\n"
					 "Expect: 100-continue\r\n\r\n"));
		CU_ASSERT(answer_read(fd, &a) && a.status == 100);
		CU_ASSERT(client_say(fd, "ok"));
		CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "POST /d\nok"));
		CU_ASSERT(client_say(fd, GET("/big/3000000")));
		CU_ASSERT(answer_read(fd, &a) && a.n == LARGE);
		CU_ASSERT(client_say(fd, "bad\r\n\r\n"));
		CU_ASSERT(answer_read(fd, &a) && a.status == 400);
		CU_ASSERT(client_at_end(fd));
		close(fd);
	}
	answer_free(&a);
	end(&s);
}

/* Files are sent with sendfile, and ranges in pieces. */
static void test_files(void)
{
	char *pattern = site_pattern(LARGE, 3);
	struct answer a = {0};

	site_make();
	site_put("root/large", pattern, LARGE, 0);
	struct server s = site_serve(true, "");
	begin();
	for (int i = 0; i < 10; i++) {
		int fd = client_open(s.port);
		CU_ASSERT(site_ask(fd, "GET", "/large", NULL, &a));
		CU_ASSERT(a.n == LARGE && memcmp(a.body, pattern, LARGE) == 0);
		CU_ASSERT(site_ask(fd, "GET", "/large", "Range: bytes=0-99,200000-299999\r\n", &a));
		CU_ASSERT(a.status == 206 && a.n > 100000);
		close(fd);
	}
	answer_free(&a);
	free(pattern);
	end(&s);
	site_remove();
}

/* A body in parts is returned in parts. */
static void test_streams(void)
{
	static char got[200000];
	struct server s = server_new("mirror");
	char *pattern = site_pattern(100000, 3);

	fixture_set(s.web, "with.stream", "4KiB");
	server_start(&s);
	begin();
	for (int i = 0; i < 10; i++) {
		int fd = client_open(s.port);
		size_t n = 0;
		CU_ASSERT(client_say(fd, "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 100000\r\n"
					 "Connection: close\r\n\r\n"));
		CU_ASSERT(client_send(fd, pattern, 100000));
		for (ssize_t more; n < sizeof(got) && (more = client_recv(fd, got + n, 1, 0)) > 0;)
			n += (size_t)more;
		CU_ASSERT(n > 100000);
		close(fd);
	}
	free(pattern);
	end(&s);
}

static void test_tls(void)
{
	tls_begin();
	struct server s = tls_server_start("t.reply");
	static char got[LARGE + 1000];

	begin();
	for (int i = 0; i < 10; i++) {
		struct tls_wish wish = {.sni = "localhost"};
		struct tls_client k = tls_client_over(client_open(s.port), &wish);
		CU_ASSERT(tls_shake_hands(&k));
		CU_ASSERT(
		    SSL_write(k.ssl, GET("/big/3000000"), sizeof(GET("/big/3000000")) - 1) > 0);
		int n = 0;
		for (int more; n < LARGE && (more = tls_receive(&k, got + n, sizeof(got) - n)) > 0;)
			n += more;
		CU_ASSERT(n >= LARGE);
		SSL_free(k.ssl);
		close(k.fd);
	}
	end(&s);
	tls_end();
}

CUNIT_MAIN("interrupted calls", {"requests", test_requests}, {"files", test_files},
    {"bodies in parts", test_streams}, {"TLS", test_tls})
