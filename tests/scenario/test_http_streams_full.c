/* SPDX-License-Identifier: MIT */
/* mirror, while its client cannot be sent anything: send() and sendmsg() of the server report that
 * the socket is full until the test opens it. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "fixture/http/parts.h"

#define BUFFER 16384 /* of the body, and of the answer */
#define BODY   (2 * BUFFER + 10000)

static atomic_bool full;
static _Thread_local bool is_client;

static bool refuse(void)
{
	errno = EAGAIN;
	return !is_client && atomic_load(&full);
}

ssize_t send(int fd, const void *p, size_t n, int flags)
{
	return refuse() ? -1 : syscall(SYS_sendto, fd, p, n, flags, NULL, 0);
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return refuse() ? -1 : syscall(SYS_sendmsg, fd, msg, flags);
}

/* Once both buffers are full, the stage has read more than it can write. It continues where it was
 * when there is room, and no byte is lost or sent twice. */
static void test_mirror(void)
{
	struct server s = server_new("mirror");
	struct answer a = {0};
	char trailers[100];

	is_client = true;
	fixture_set(s.web, "with.stream", "1KiB");
	fixture_set(s.web, "with.stream_buffer", "16KiB");
	server_start(&s);
	int fd = client_open(s.port);

	atomic_store(&full, true);
	CU_ASSERT(
	    client_sayf(fd, "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: %d\r\n\r\n", BODY));
	CU_ASSERT(client_pattern(fd, 0, BODY, false));
	AWAIT_METRIC(&s, "http_received_bytes_total", >=, 2 * BUFFER);
	atomic_store(&full, false);
	CU_ASSERT(answer_read_as(fd, &a, true) && a.status == 200);
	CU_ASSERT_EQUAL(chunked_read(fd, trailers, sizeof(trailers)), BODY);
	CU_ASSERT_STRING_EQUAL(trailers, "X-Bytes: 42768\r\n");
	answer_free(&a);
	close(fd);
	server_stop(&s);
}

CUNIT_MAIN("streams, full sockets", {"mirror", test_mirror})
