/* SPDX-License-Identifier: MIT */
/*
 * Notifies the service manager; see notify.h.
 *
 * The feeding thread wakes up every half watchdog interval. It checks under the mutex whether the
 * control thread ticks and whether a handler hangs. If both are well, it sends WATCHDOG=1; if not,
 * it logs and sends the reason once. Other threads change the graph and the drain deadline under
 * the same mutex.
 */
#include "notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/log.h>

#include "base/clock.h"
#include "base/text.h"

/* If the last tick is older than this, the control thread may be stuck. The limit is five tick
 * intervals (control.h), since ticks may be late on a busy host. */
#define TICK_OLD_NS (500 * NS_PER_MS)
/* How long a drain may take beyond its grace time, including the time to free everything. 15 s is a
 * guess: the drain abandons handlers 2 s after the grace time. */
#define STOP_LATE_NS (15 * NS_PER_S)
/* Maximum time of a send to a service manager that does not read. 1 s is a guess: longer than a
 * busy manager takes. */
#define SEND_WAIT_S 1

/* ---- the environment ---- */

static int64_t watchdog_from_env(void)
{
	int64_t usec = text_env_number("WATCHDOG_USEC");

	if (usec <= 0 || usec > INT64_MAX / NS_PER_US)
		return 0;
	/* WATCHDOG_PID is another process, for example the shell that started this one: the
	 * watchdog is not for us. */
	if (getenv("WATCHDOG_PID") && text_env_number("WATCHDOG_PID") != getpid())
		return 0;
	return usec * NS_PER_US;
}

/* Parse the address of the socket: a path, or '@' and an abstract name, which is not
 * NUL-terminated. */
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
		    "NOTIFY_SOCKET is '%s', which is neither a path nor @NAME: no notifications "
		    "are sent",
		    text);
		return;
	}
	n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (n->fd == -1)
		weir_log(
		    WEIR_LOG_WARN, "NOTIFY_SOCKET: cannot create a socket: %s", strerror(errno));
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

bool notify_returns(int64_t now_ns, int64_t since_ns, int64_t watchdog_ns)
{
	return since_ns == 0 || now_ns - since_ns <= watchdog_ns;
}

/* Why the watchdog is not fed. */
enum notify_trouble { NOTIFY_FINE, NOTIFY_DRAIN, NOTIFY_TICKS, NOTIFY_HUNG };

static void stop_feeding(struct notify *n, const char *why)
{
	char text[300];

	weir_log(WEIR_LOG_ERROR, "%s, and the watchdog is not fed in the meantime", why);
	snprintf(text, sizeof(text), "STATUS=%s; the watchdog is not fed", why);
	notify_say(n, text);
}

/* Check the server. If the watchdog must not be fed, `why` receives the reason. */
static enum notify_trouble look(struct notify *n, int64_t now_ns, char *why, size_t size)
{
	enum notify_trouble trouble = NOTIFY_FINE;
	const char *stage;

	pthread_mutex_lock(&n->mutex);
	int64_t ticked_ns = weir_graph_tick_ns(n->graph), stop_until_ns = n->stop_until_ns;
	int64_t hung_ns = weir_graph_hung(n->graph, &stage);
	if (ticked_ns < n->graph_ns)
		ticked_ns = n->graph_ns;
	bool ticks = notify_ticks(now_ns, ticked_ns, n->watchdog_ns);
	if (stop_until_ns != 0) {
		if (now_ns > stop_until_ns) {
			trouble = NOTIFY_DRAIN;
			snprintf(why, size,
			    "the drain has not ended, although its grace time is long over");
		}
	} else if (!ticks) {
		trouble = NOTIFY_TICKS;
		snprintf(why, size, "the control thread has made no progress for %.1f s",
		    (double)(now_ns - ticked_ns) / NS_PER_S);
	} else if (!notify_returns(now_ns, hung_ns, n->watchdog_ns)) {
		trouble = NOTIFY_HUNG;
		snprintf(why, size, "a handler of stage '%.60s' has not returned for %.1f s", stage,
		    (double)(now_ns - hung_ns) / NS_PER_S);
	}
	pthread_mutex_unlock(&n->mutex);
	return trouble;
}

static bool is_stopping(struct notify *n)
{
	pthread_mutex_lock(&n->mutex);
	bool stopping = n->stop_until_ns != 0;
	pthread_mutex_unlock(&n->mutex);
	return stopping;
}

static void feed(struct notify *n)
{
	char text[200], why[160];

	enum notify_trouble trouble = look(n, clock_now_ns(), why, sizeof(why));
	if (trouble != NOTIFY_FINE && (int)trouble != n->trouble)
		stop_feeding(n, why);
	bool again = n->trouble != NOTIFY_FINE && !is_stopping(n);
	n->trouble = (int)trouble;
	if (trouble != NOTIFY_FINE)
		return;
	snprintf(
	    text, sizeof(text), "WATCHDOG=1%s%s", again ? "\nSTATUS=" : "", again ? n->status : "");
	notify_say(n, text);
}

/* Sleep until `at_ns` or until notify_end is called. Returns whether notify_end has been called. */
static bool sleep_until(struct notify *n, int64_t at_ns)
{
	struct timespec ts = {at_ns / NS_PER_S, at_ns % NS_PER_S};
	int rc = 0;

	pthread_mutex_lock(&n->mutex);
	while (!n->ended && rc == 0)
		rc = pthread_cond_timedwait(&n->cond, &n->mutex, &ts);
	bool ended = n->ended;
	pthread_mutex_unlock(&n->mutex);
	return ended;
}

static void *feed_main(void *arg)
{
	struct notify *n = arg;

	while (!sleep_until(n, clock_now_ns() + n->watchdog_ns / 2))
		feed(n);
	return NULL;
}

/* ---- ready, reload, stop ---- */

void notify_ready(struct notify *n, const struct weir_graph *graph)
{
	const struct weir_spec *spec = weir_graph_spec(graph);
	char text[200];

	notify_graph(n, graph);
	snprintf(n->status, sizeof(n->status), "%.100s is serving, %d stages", spec->name,
	    spec->n_stages);
	snprintf(text, sizeof(text), "READY=1\nSTATUS=%s", n->status);
	if (n->fd != -1 && !notify_say(n, text))
		weir_log(WEIR_LOG_WARN, "NOTIFY_SOCKET: readiness could not be reported: %s",
		    strerror(errno));
	if (n->watchdog_ns == 0)
		return;
	n->feeding = task_start(&n->task, "notify", feed_main, n) == 0;
	if (!n->feeding)
		weir_log(WEIR_LOG_WARN, "the watchdog will end this server: the thread that feeds "
					"it could not be created");
}

void notify_graph(struct notify *n, const struct weir_graph *graph)
{
	if (!n)
		return;
	pthread_mutex_lock(&n->mutex);
	n->graph = graph;
	n->graph_ns = clock_now_ns();
	pthread_mutex_unlock(&n->mutex);
}

void notify_reloading(const struct notify *n)
{
	char text[80];

	if (!n)
		return;
	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lld",
	    (long long)(clock_now_ns() / 1000));
	notify_say(n, text);
}

void notify_reloaded(const struct notify *n)
{
	if (n)
		notify_say(n, "READY=1");
}

void notify_stopping(struct notify *n)
{
	char text[200];

	pthread_mutex_lock(&n->mutex);
	int64_t grace_ns = weir_graph_spec(n->graph)->grace_ns;
	n->stop_until_ns = clock_now_ns() + grace_ns + STOP_LATE_NS;
	double grace_s = (double)grace_ns / NS_PER_S;
	pthread_mutex_unlock(&n->mutex);
	snprintf(text, sizeof(text), "STOPPING=1\nSTATUS=finishing accepted work, at most %.3g s",
	    grace_s);
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
