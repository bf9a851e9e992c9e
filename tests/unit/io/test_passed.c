/* SPDX-License-Identifier: MIT */
/* Sockets passed by a service manager: descriptors from 3 upwards of this very process. */
#include <weir/io.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cunit_main.h"

/* A socket bound to 127.0.0.1 with a descriptor far from 3: listening if `stream`, otherwise a
 * datagram socket. Its address goes to *at. */
static int make_socket(bool stream, struct sockaddr_in *at)
{
	socklen_t n = sizeof(*at);
	int fd = socket(AF_INET, stream ? SOCK_STREAM : SOCK_DGRAM, 0);

	*at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	CU_ASSERT_FATAL(bind(fd, (struct sockaddr *)at, n) == 0);
	CU_ASSERT_FATAL(!stream || listen(fd, 5) == 0);
	CU_ASSERT_FATAL(getsockname(fd, (struct sockaddr *)at, &n) == 0);
	int far = fcntl(fd, F_DUPFD, 20);
	CU_ASSERT_FATAL(far != -1);
	close(fd);
	return far;
}

/* Act as a service manager: descriptors 3, 4 ... become copies of fd[0..n), which are closed. */
static void pass(const int *fd, int n, int pid, const char *names)
{
	char text[32];

	for (int i = 0; i < n; i++) {
		CU_ASSERT_FATAL(dup2(fd[i], 3 + i) == 3 + i);
		close(fd[i]);
	}
	snprintf(text, sizeof(text), "%d", pid);
	setenv("LISTEN_PID", text, 1);
	snprintf(text, sizeof(text), "%d", n);
	setenv("LISTEN_FDS", text, 1);
	setenv("LISTEN_FDNAMES", names, 1);
}

static bool env_is_clean(void)
{
	return !getenv("LISTEN_PID") && !getenv("LISTEN_FDS") && !getenv("LISTEN_FDNAMES");
}

static void test_by_address(void)
{
	struct sockaddr_in at[3], other;
	int fd[3] = {
	    make_socket(true, &at[0]), make_socket(true, &at[1]), make_socket(false, &at[2])};

	pass(fd, 3, getpid(), "web:spare:udp");
	CU_ASSERT_EQUAL(weir_passed_take(), 3);
	CU_ASSERT(env_is_clean());
	CU_ASSERT(fcntl(3, F_GETFD) & FD_CLOEXEC);
	other = at[0];
	other.sin_addr.s_addr = htonl(INADDR_ANY);
	CU_ASSERT_EQUAL(weir_passed_socket((struct sockaddr *)&other), -1);
	CU_ASSERT_EQUAL(weir_passed_socket((struct sockaddr *)&at[2]), -1);
	CU_ASSERT_EQUAL(weir_passed_socket((struct sockaddr *)&at[1]), 4);
	CU_ASSERT(fcntl(4, F_GETFL) & O_NONBLOCK);
	CU_ASSERT_EQUAL(weir_passed_report(), 2);
	CU_ASSERT_EQUAL(weir_passed_socket((struct sockaddr *)&at[1]), -1);
	CU_ASSERT_EQUAL(weir_passed_socket((struct sockaddr *)&at[0]), 3);
	CU_ASSERT_EQUAL(weir_passed_report(), 1);
	for (int i = 3; i < 6; i++)
		CU_ASSERT_EQUAL(close(i), 0); /* none was closed by anyone else */
}

static void test_ipv6(void)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	socklen_t n = sizeof(at);
	int fd = socket(AF_INET6, SOCK_STREAM, 0);

	if (fd == -1 || bind(fd, (struct sockaddr *)&at, n) == -1) {
		puts("no IPv6 here: not looked at");
		return;
	}
	CU_ASSERT_FATAL(listen(fd, 5) == 0 && getsockname(fd, (struct sockaddr *)&at, &n) == 0);
	int far = fcntl(fd, F_DUPFD, 20);
	close(fd);
	pass(&far, 1, getpid(), "");
	CU_ASSERT_EQUAL(weir_passed_take(), 1);
	struct sockaddr_in6 other = at;
	other.sin6_addr = in6addr_any;
	CU_ASSERT_EQUAL(weir_passed_socket((struct sockaddr *)&other), -1);
	CU_ASSERT_EQUAL(weir_passed_socket((struct sockaddr *)&at), 3);
	close(3);
}

static void test_not_ours(void)
{
	struct sockaddr_in at;
	int fd = make_socket(true, &at);

	pass(&fd, 1, getpid() + 1, "web");
	CU_ASSERT_EQUAL(weir_passed_take(), 0);
	CU_ASSERT(env_is_clean());
	CU_ASSERT_EQUAL(weir_passed_socket((struct sockaddr *)&at), -1);
	CU_ASSERT_EQUAL(weir_passed_report(), 0);
	CU_ASSERT_EQUAL(close(3), 0);
}

static void test_nonsense(void)
{
	static const char *const count[] = {"", "x", "-1", "1x", "99999999999999999999"};
	char pid[32];

	for (size_t i = 0; i < sizeof(count) / sizeof(count[0]); i++) {
		pass(NULL, 0, getpid(), "");
		setenv("LISTEN_FDS", count[i], 1);
		CU_ASSERT_EQUAL(weir_passed_take(), 0);
		CU_ASSERT(env_is_clean());
	}
	/* LISTEN_FDS promises a socket that does not exist. */
	close(3);
	pass(NULL, 0, getpid(), "web");
	setenv("LISTEN_FDS", "1", 1);
	CU_ASSERT_EQUAL(weir_passed_take(), 0);
	snprintf(pid, sizeof(pid), "%dx", getpid());
	setenv("LISTEN_FDS", "1", 1);
	setenv("LISTEN_PID", pid, 1);
	CU_ASSERT_EQUAL(weir_passed_take(), 0);
	CU_ASSERT_EQUAL(weir_passed_take(), 0); /* without the variables */
}

/* A socket that the process bound itself is found like a passed one. The number of sockets is
 * limited. */
static void test_own(void)
{
	struct sockaddr_in at;
	int fd = make_socket(true, &at), n = 1;

	CU_ASSERT_EQUAL(weir_passed_take(), 0);
	CU_ASSERT_EQUAL(weir_passed_add(fd, "own"), 0);
	CU_ASSERT_EQUAL(weir_passed_report(), 1);
	CU_ASSERT_EQUAL(weir_passed_socket((struct sockaddr *)&at), fd);
	CU_ASSERT_EQUAL(weir_passed_socket((struct sockaddr *)&at), -1);
	CU_ASSERT_EQUAL(weir_passed_report(), 0);
	while (weir_passed_add(-1, "more") == 0)
		n++;
	CU_ASSERT_EQUAL(n, 64);
	CU_ASSERT_EQUAL(weir_passed_take(), 0);
	close(fd);
}

CUNIT_MAIN("passed", {"own", test_own}, {"by address", test_by_address}, {"ipv6", test_ipv6},
    {"not ours", test_not_ours}, {"nonsense", test_nonsense})
