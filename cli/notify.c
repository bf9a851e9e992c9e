/* SPDX-License-Identifier: MIT */
/* Talking to the service manager; see notify.h. */
#include "notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/log.h>

#include "base/clock.h"

/* Five ticks of the control thread (control.h): one that comes late on a busy machine is not stuck. */
#define TICK_OLD_NS (500 * NS_PER_MS)
/* So long a send may wait for a manager that does not read. Guess: longer than a busy one takes. */
#define SEND_WAIT_S 1

/* ---- the environment ---- */

/* The whole number that a variable holds, 1 at least; 0 for anything else. */
static int64_t env_number(const char *name)
{
	const char *text = getenv(name);
	char *end;

	if (!text || *text < '0' || *text > '9')
		return 0;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	return errno == 0 && *end == '\0' ? value : 0;
}

static int64_t watchdog_from_env(void)
{
	int64_t usec = env_number("WATCHDOG_USEC");

	if (usec == 0 || usec > INT64_MAX / NS_PER_US)
		return 0;
	/* Whom the manager watches is somebody else, as when a shell started us. */
	if (getenv("WATCHDOG_PID") && env_number("WATCHDOG_PID") != getpid())
		return 0;
	return usec * NS_PER_US;
}

/* A path, or with '@' an abstract name, whose length is part of it. */
static bool parse_address(struct notify *n, const char *text)
{
	size_t bytes = strlen(text);

	if ((text[0] != '/' && text[0] != '@') || bytes < 2 || bytes >= sizeof(n->addr.sun_path))
		return false;
	n->addr.sun_family = AF_UNIX;
	memcpy(n->addr.sun_path, text, bytes + 1);
	if (text[0] == '@')
		n->addr.sun_path[0] = '\0';
	n->addr_bytes =
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes + (text[0] == '/'));
	return true;
}

static void open_socket(struct notify *n)
{
	const char *text = getenv("NOTIFY_SOCKET");
	struct timeval wait = {.tv_sec = SEND_WAIT_S};

	if (!text || !*text)
		return;
	if (!parse_address(n, text)) {
		weir_log(WEIR_LOG_WARN,
		    "NOTIFY_SOCKET is '%s', which is no path and no @NAME: nobody is notified",
		    text);
		return;
	}
	n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (n->fd == -1)
		weir_log(WEIR_LOG_WARN, "NOTIFY_SOCKET: no socket: %s", strerror(errno));
	else
		setsockopt(n->fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
}

void notify_init(struct notify *n)
{
	pthread_condattr_t attr;

	memset(n, 0, sizeof(*n));
	n->fd = -1;
	open_socket(n);
	n->watchdog_ns = n->fd == -1 ? 0 : watchdog_from_env();
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	pthread_mutex_init(&n->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&n->cond, &attr);
	pthread_condattr_destroy(&attr);
}

bool notify_say(const struct notify *n, const char *text)
{
	ssize_t sent;

	if (n->fd == -1)
		return false;
	do
		sent = sendto(n->fd, text, strlen(text), MSG_NOSIGNAL,
		    (const struct sockaddr *)&n->addr, n->addr_bytes);
	while (sent == -1 && errno == EINTR);
	return sent != -1;
}

/* ---- the watchdog ---- */

bool notify_ticks(int64_t now_ns, int64_t ticked_ns, int64_t watchdog_ns)
{
	int64_t old_ns = watchdog_ns / 2 > TICK_OLD_NS ? watchdog_ns / 2 : TICK_OLD_NS;

	return now_ns - ticked_ns <= old_ns;
}

static void stop_feeding(struct notify *n, int64_t age_ns)
{
	char text[160];

	n->silent = true;
	weir_log(WEIR_LOG_ERROR,
	    "the control thread has not ticked for %.1f s: the watchdog is not fed until it does",
	    (double)age_ns / NS_PER_S);
	snprintf(text, sizeof(text),
	    "STATUS=the control thread has not ticked for %.1f s; the watchdog is not fed",
	    (double)age_ns / NS_PER_S);
	notify_say(n, text);
}

static int64_t last_tick(struct notify *n)
{
	pthread_mutex_lock(&n->mutex);
	int64_t ticked_ns = weir_graph_tick_ns(n->graph);
	if (ticked_ns < n->graph_ns)
		ticked_ns = n->graph_ns;
	pthread_mutex_unlock(&n->mutex);
	return ticked_ns;
}

static void feed(struct notify *n, bool stopping)
{
	int64_t now_ns = clock_now_ns(), ticked_ns = last_tick(n);
	char text[200];

	if (!stopping && !notify_ticks(now_ns, ticked_ns, n->watchdog_ns)) {
		if (!n->silent)
			stop_feeding(n, now_ns - ticked_ns);
		return;
	}
	snprintf(text, sizeof(text), "WATCHDOG=1%s%s", n->silent && !stopping ? "\nSTATUS=" : "",
	    n->silent && !stopping ? n->status : "");
	n->silent = false;
	notify_say(n, text);
}

/* Sleep to `at_ns`, or until told to end; true when told. */
static bool sleep_until(struct notify *n, int64_t at_ns, bool *stopping)
{
	struct timespec ts = {at_ns / NS_PER_S, at_ns % NS_PER_S};
	int rc = 0;

	pthread_mutex_lock(&n->mutex);
	while (!n->ended && rc == 0)
		rc = pthread_cond_timedwait(&n->cond, &n->mutex, &ts);
	bool ended = n->ended;
	*stopping = n->stopping;
	pthread_mutex_unlock(&n->mutex);
	return ended;
}

static void *feed_main(void *arg)
{
	struct notify *n = arg;
	bool stopping = false;

	while (!sleep_until(n, clock_now_ns() + n->watchdog_ns / 2, &stopping))
		feed(n, stopping);
	return NULL;
}

/* ---- life ---- */

void notify_ready(struct notify *n, const struct weir_graph *graph)
{
	const struct weir_spec *spec = weir_graph_spec(graph);
	char text[200];

	notify_graph(n, graph);
	snprintf(
	    n->status, sizeof(n->status), "%.100s serves, %d stages", spec->name, spec->n_stages);
	snprintf(text, sizeof(text), "READY=1\nSTATUS=%s", n->status);
	if (n->fd != -1 && !notify_say(n, text))
		weir_log(WEIR_LOG_WARN,
		    "NOTIFY_SOCKET: nobody could be told that the server runs: %s",
		    strerror(errno));
	if (n->watchdog_ns == 0)
		return;
	n->feeding = task_start(&n->task, "notify", feed_main, n) == 0;
	if (!n->feeding)
		weir_log(WEIR_LOG_WARN, "no thread to feed the watchdog: it will end this server");
}

void notify_graph(struct notify *n, const struct weir_graph *graph)
{
	pthread_mutex_lock(&n->mutex);
	n->graph = graph;
	n->graph_ns = clock_now_ns();
	pthread_mutex_unlock(&n->mutex);
}

void notify_reloading(const struct notify *n)
{
	char text[80];

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lld",
	    (long long)(clock_now_ns() / 1000));
	notify_say(n, text);
}

void notify_reloaded(const struct notify *n)
{
	notify_say(n, "READY=1");
}

void notify_stopping(struct notify *n)
{
	char text[200];

	pthread_mutex_lock(&n->mutex);
	n->stopping = true;
	double grace_s = (double)weir_graph_spec(n->graph)->grace_ns / NS_PER_S;
	pthread_mutex_unlock(&n->mutex);
	snprintf(text, sizeof(text),
	    "STOPPING=1\nSTATUS=finishing what was accepted, at most %.3g s", grace_s);
	notify_say(n, text);
}

void notify_end(struct notify *n)
{
	pthread_mutex_lock(&n->mutex);
	n->ended = true;
	pthread_cond_signal(&n->cond);
	pthread_mutex_unlock(&n->mutex);
	if (n->feeding)
		task_join(&n->task);
	n->feeding = false;
	if (n->fd != -1)
		close(n->fd);
	n->fd = -1;
	pthread_cond_destroy(&n->cond);
	pthread_mutex_destroy(&n->mutex);
}
