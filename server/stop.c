/* SPDX-License-Identifier: MIT */
/* The end of a server as clients of the admin endpoint see it; see stop.h. */
#include "stop.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include <weir/log.h>

#include "framework/base/json.h"

/* How long the report is kept for the client that has asked for the end, in seconds. A client polls
 * several times a second, so only one that has gone away lets this time pass. */
#define AWAIT_S 1

enum state { RUNNING, STOPPING, STOPPED };

static struct {
	pthread_mutex_t lock;
	pthread_cond_t read; /* the report was read */
	enum state state;
	bool asked, now;          /* by a client; `now` was sent as a signal */
	unsigned n_asked, n_read; /* requests for the end, and reads of the report */
	bool whole;
	int64_t grace_ns;
	struct weir_drain_report report; /* valid when STOPPED, but for its texts */
} stop = {.lock = PTHREAD_MUTEX_INITIALIZER, .read = PTHREAD_COND_INITIALIZER};

void stop_ask(bool now, const char *by)
{
	pthread_mutex_lock(&stop.lock);
	bool first = !stop.asked, hurry = now && !stop.now && stop.state != STOPPED;
	bool begin = first && stop.state == RUNNING;
	bool draining = stop.state == STOPPING;
	stop.asked = true;
	stop.n_asked++;
	stop.now |= now;
	pthread_mutex_unlock(&stop.lock);
	if (first || hurry)
		weir_log(WEIR_LOG_INFO, "%s asks to stop%s", by, now ? " now" : "");
	if (begin || (hurry && draining)) /* stop_begin sends the second one itself */
		kill(getpid(), SIGTERM);
}

void stop_begin(int64_t grace_ns)
{
	pthread_mutex_lock(&stop.lock);
	stop.state = STOPPING;
	stop.grace_ns = grace_ns;
	bool now = stop.now;
	pthread_mutex_unlock(&stop.lock);
	if (now)
		kill(getpid(), SIGTERM);
}

void stop_done(const struct weir_drain_report *report, bool whole)
{
	pthread_mutex_lock(&stop.lock);
	stop.state = STOPPED;
	stop.report = *report;
	stop.whole = whole;
	pthread_mutex_unlock(&stop.lock);
}

/* Whether each client that has asked may have read the report. A client may read it twice in the place
 * of another, but those of weir read it once. */
static bool is_read(void)
{
	return stop.n_read >= stop.n_asked;
}

bool stop_is_read(void)
{
	pthread_mutex_lock(&stop.lock);
	bool read = is_read();
	pthread_mutex_unlock(&stop.lock);
	return read;
}

void stop_await(void)
{
	struct timespec until;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += AWAIT_S;
	pthread_mutex_lock(&stop.lock);
	while (!is_read() && rc == 0)
		rc = pthread_cond_timedwait(&stop.read, &stop.lock, &until);
	pthread_mutex_unlock(&stop.lock);
}

/* Return when this process began, in clock ticks since the start of the machine, as in field 22 of
 * /proc/PID/stat; 0 if unknown. With the number of the process it names one process. */
static long long process_start(void)
{
	char line[1024];
	FILE *file = fopen("/proc/self/stat", "re");
	long long start = 0;

	if (!file)
		return 0;
	size_t n = fread(line, 1, sizeof(line) - 1, file);
	fclose(file);
	line[n] = '\0';
	const char *p = strrchr(line, ')'); /* the name before it may have any character */
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (p)
		start = strtoll(p, NULL, 10);
	return start;
}

static json_t *report_json(void)
{
	const struct weir_drain_report *r = &stop.report;

	if (stop.state != STOPPED)
		return json_null();
	return json_pack("{s:b, s:f, s:I, s:I}", "whole", stop.whole, "took_seconds",
	    (double)r->took_ns / 1e9, "unfinished", (json_int_t)r->closed, "lost",
	    (json_int_t)r->lost);
}

char *stop_status(void)
{
	static const char *const words[] = {"running", "stopping", "stopped"};

	pthread_mutex_lock(&stop.lock);
	json_t *doc = json_pack("{s:s, s:b, s:I, s:I}", "state", words[stop.state], "now", stop.now,
	    "process", (json_int_t)getpid(), "process_start", (json_int_t)process_start());
	json_put(&doc, "grace_seconds",
	    stop.state == RUNNING ? json_null() : json_real((double)stop.grace_ns / 1e9));
	json_put(&doc, "report", report_json());
	char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	json_decref(doc);
	if (text && stop.state == STOPPED) {
		stop.n_read++;
		pthread_cond_broadcast(&stop.read);
	}
	pthread_mutex_unlock(&stop.lock);
	return text;
}
