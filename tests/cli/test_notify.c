/* SPDX-License-Identifier: MIT */
/* Messages to a service manager and their address: notify.c alone. test_service.c tests notify.c in
 * a server. */
#include "server/notify.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cunit_main.h"

/* A manager's socket with the address `text` ('@' for an abstract name). */
static int manager_at(const char *text)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	size_t n = strlen(text);
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	memcpy(at.sun_path, text, n);
	if (text[0] == '@')
		at.sun_path[0] = '\0';
	else
		unlink(text);
	CU_ASSERT_FATAL(
	    bind(fd, (struct sockaddr *)&at,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (text[0] == '/'))) == 0);
	return fd;
}

static bool env_is_clean(void)
{
	return !getenv("NOTIFY_SOCKET") && !getenv("WATCHDOG_USEC") && !getenv("WATCHDOG_PID");
}

/* Does a message to `text` reach the manager there? */
static void check_reaches(const char *text)
{
	int fd = manager_at(text);
	struct notify n;
	char heard[64] = "";

	setenv("NOTIFY_SOCKET", text, 1);
	notify_init(&n);
	CU_ASSERT(env_is_clean());
	CU_ASSERT(notify_say(&n, "STATUS=a\nX=b"));
	CU_ASSERT_EQUAL(recv(fd, heard, sizeof(heard) - 1, MSG_DONTWAIT), 12);
	CU_ASSERT_STRING_EQUAL(heard, "STATUS=a\nX=b");
	close(fd); /* without a manager there is neither a signal nor an exit */
	CU_ASSERT(!notify_say(&n, "STATUS=c"));
	notify_end(&n);
}

static void test_addresses(void)
{
	char text[64];

	snprintf(text, sizeof(text), "/tmp/weir-notify-%d", getpid());
	check_reaches(text);
	unlink(text);
	snprintf(text, sizeof(text), "@weir-notify-%d", getpid());
	check_reaches(text);
}

static void test_nobody(void)
{
	char longest[200];
	const char *const text[] = {"", "relative", "vsock:2:1", "/", "@", longest, NULL};

	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	longest[sizeof(longest) - 1] = '\0';
	for (int i = 0; i == 0 || text[i - 1]; i++) { /* the last case is without the variable */
		struct notify n;
		if (text[i])
			setenv("NOTIFY_SOCKET", text[i], 1);
		setenv("WATCHDOG_USEC", "1000000", 1);
		notify_init(&n);
		CU_ASSERT(env_is_clean());
		CU_ASSERT_EQUAL(n.fd, -1);
		CU_ASSERT_EQUAL(n.watchdog_ns, 0);
		CU_ASSERT(!notify_say(&n, "READY=1"));
		notify_end(&n);
	}
}

/* The period for $WATCHDOG_USEC and $WATCHDOG_PID; NULL: not set. */
static int64_t watchdog(const char *usec, const char *pid)
{
	struct notify n;

	setenv("NOTIFY_SOCKET", "@weir-nobody", 1);
	if (usec)
		setenv("WATCHDOG_USEC", usec, 1);
	if (pid)
		setenv("WATCHDOG_PID", pid, 1);
	notify_init(&n);
	CU_ASSERT(env_is_clean());
	int64_t ns = n.watchdog_ns;
	notify_end(&n);
	return ns;
}

static void test_watchdog(void)
{
	char mine[32], other[32];

	snprintf(mine, sizeof(mine), "%d", getpid());
	snprintf(other, sizeof(other), "%d", getpid() + 1);
	CU_ASSERT_EQUAL(watchdog("2500000", NULL), 2500 * NS_PER_MS);
	CU_ASSERT_EQUAL(watchdog("2500000", mine), 2500 * NS_PER_MS);
	CU_ASSERT_EQUAL(watchdog("2500000", other), 0);
	CU_ASSERT_EQUAL(watchdog("2500000", ""), 0);
	CU_ASSERT_EQUAL(watchdog(NULL, mine), 0);
	CU_ASSERT_EQUAL(watchdog("0", NULL), 0);
	CU_ASSERT_EQUAL(watchdog("-5", NULL), 0);
	CU_ASSERT_EQUAL(watchdog("5s", NULL), 0);
	CU_ASSERT_EQUAL(watchdog("9223372036854775807", NULL), 0);
}

static void test_ticks(void)
{
	CU_ASSERT(notify_ticks(20 * NS_PER_S, 20 * NS_PER_S, 10 * NS_PER_S));
	CU_ASSERT(notify_ticks(20 * NS_PER_S, 15 * NS_PER_S, 10 * NS_PER_S));
	CU_ASSERT(!notify_ticks(20 * NS_PER_S, 15 * NS_PER_S - 1, 10 * NS_PER_S));
	/* With a short watchdog, the last tick may be five intervals (500 ms) old. */
	CU_ASSERT(notify_ticks(NS_PER_S, 500 * NS_PER_MS, NS_PER_MS));
	CU_ASSERT(!notify_ticks(NS_PER_S, 499 * NS_PER_MS, NS_PER_MS));
}

static void test_returns(void)
{
	CU_ASSERT(notify_returns(20 * NS_PER_S, 0, NS_PER_S));
	CU_ASSERT(notify_returns(20 * NS_PER_S, 19 * NS_PER_S, NS_PER_S));
	CU_ASSERT(!notify_returns(20 * NS_PER_S, 19 * NS_PER_S - 1, NS_PER_S));
}

CUNIT_MAIN("notify", {"addresses", test_addresses}, {"nobody", test_nobody},
    {"watchdog", test_watchdog}, {"ticks", test_ticks}, {"returns", test_returns})
