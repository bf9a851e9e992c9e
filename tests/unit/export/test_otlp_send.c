/* SPDX-License-Identifier: MIT */
/* POSTs to a collector that answers, is silent, or need not be asked any more. */
#include "otlp_send.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cunit_main.h"

static int collector; /* listens */
static _Atomic int64_t give_up_ns;
static struct sender *sender; /* NULL if weir was built without the export */
static _Atomic bool patient;

/* Replaces the function of libc for libcurl, too. While `patient` is set, no wait ends by
 * itself. */
int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	struct timespec ts = {timeout / 1000, timeout % 1000 * 1000000L};
	bool forever = timeout < 0 || (patient && timeout > 0);

	return (int)syscall(SYS_ppoll, fds, n, forever ? NULL : &ts, NULL, 0);
}

int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size);
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size)
{
	(void)size;
	return poll(fds, n, timeout);
}

static void begin(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);
	struct weir_err err = {0};
	char url[64];

	collector = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CU_ASSERT_EQUAL_FATAL(bind(collector, (struct sockaddr *)&a, n), 0);
	CU_ASSERT_EQUAL_FATAL(listen(collector, 4), 0);
	getsockname(collector, (struct sockaddr *)&a, &n);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/v1/traces", ntohs(a.sin_port));
	give_up_ns = 0;
	sender = NULL;
	if (sender_check(url, &err) == 0)
		CU_ASSERT_EQUAL_FATAL(sender_new(url, &give_up_ns, &sender, &err), 0);
}

static void end(void)
{
	sender_free(sender);
	close(collector);
}

struct post {
	pthread_t thread;
	enum sender_result result;
	char why[256];
};

static void *post_main(void *arg)
{
	struct post *p = arg;

	p->result = sender_post(sender, "{\"a\":1}", p->why, sizeof(p->why));
	return NULL;
}

/* Begin a POST. Returns the connection of the collector, which has read all of it. */
static int post_begin(struct post *p)
{
	char text[4096];
	size_t n = 0;

	pthread_create(&p->thread, NULL, post_main, p);
	int fd = accept4(collector, NULL, NULL, SOCK_CLOEXEC);
	CU_ASSERT_NOT_EQUAL_FATAL(fd, -1);
	do {
		ssize_t got = recv(fd, text + n, sizeof(text) - 1 - n, 0);
		CU_ASSERT_FATAL(got > 0);
		n += (size_t)got;
		text[n] = '\0';
	} while (!strstr(text, "{\"a\":1}"));
	CU_ASSERT_PTR_EQUAL(strstr(text, "POST /v1/traces HTTP/1.1\r\n"), text);
	return fd;
}

static void test_answers(void)
{
	static const struct {
		const char *status;
		enum sender_result result;
	} cases[] = {{"200 OK", SENDER_SENT}, {"503 Service Unavailable", SENDER_LATER},
	    {"400 Bad Request", SENDER_REFUSED}};

	begin();
	for (size_t i = 0; sender && i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct post p;
		int fd = post_begin(&p);
		dprintf(fd, "HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
		    cases[i].status);
		close(fd);
		pthread_join(p.thread, NULL);
		CU_ASSERT_EQUAL(p.result, cases[i].result);
	}
	end();
}

/* A POST to a silent collector ends as soon as the sender is woken after its time: without the
 * wake-up it would wait for ever. */
static void test_silent(void)
{
	struct post p;

	begin();
	if (sender) {
		patient = true;
		int fd = post_begin(&p);
		give_up_ns = 1;
		sender_wake(sender);
		pthread_join(p.thread, NULL);
		patient = false;
		CU_ASSERT_EQUAL(p.result, SENDER_LATER);
		CU_ASSERT_STRING_EQUAL(p.why, "it did not answer before the server ended");
		close(fd);
	}
	end();
}

/* After its time the collector is not even connected to. */
static void test_too_late(void)
{
	struct post p;

	begin();
	give_up_ns = 1;
	if (sender) {
		post_main(&p);
		CU_ASSERT_EQUAL(p.result, SENDER_LATER);
		struct pollfd asked = {.fd = collector, .events = POLLIN};
		CU_ASSERT_EQUAL(poll(&asked, 1, 0), 0);
	}
	end();
}

CUNIT_MAIN("otlp sender", {"answers", test_answers}, {"a silent collector", test_silent},
    {"too late", test_too_late})
