/* SPDX-License-Identifier: MIT */
/*
 * stop: end a running server and wait until it has ended.
 *
 *   POST /api/v1/stop, then GET until it reports the end, then wait for the process
 *
 * The server keeps its report until it was read once (server/stop.h). A process on this machine is
 * known by its number and its start, so that `weir stop && weir run` finds all addresses and files
 * free. Of a server elsewhere the end is that its endpoint answers no more.
 */
#include "cli/act.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/client/client.h"
#include "cli/client/plain.h"
#include "framework/base/clock.h"

#define STOP_PATH "/api/v1/stop"
#define LOOK_NS   50000000LL /* between two looks */
/* Time beyond the grace time of the server in which it must have ended: it ends its threads and
 * writes its history. 10 s is a guess. */
#define BEYOND_GRACE_NS 10000000000LL

struct stopping {
	const char *url;
	json_t *status; /* the newest one */
	int64_t began_ns, limit_ns;
	bool fixed_limit; /* by --timeout */
	bool here;        /* the process is on this machine */
};

static long long whole(const json_t *map, const char *key)
{
	return json_integer_value(json_object_get(map, key));
}

static bool has_stopped(const struct stopping *s)
{
	return strcmp(act_text(s->status, "state"), "stopped") == 0;
}

/* Return whether the process of the server exists on this machine. */
static bool process_exists(const json_t *status)
{
	char path[64], line[1024];
	long long process = whole(status, "process"), start = whole(status, "process_start");

	if (process <= 0 || start <= 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%lld/stat", process);
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	size_t n = fread(line, 1, sizeof(line) - 1, file);
	fclose(file);
	line[n] = '\0';
	const char *p = strrchr(line, ')'); /* the name before it may have any character */
	if (p && p[1] && p[2] == 'Z')       /* a zombie has ended */
		return false;
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	return p && strtoll(p, NULL, 10) == start;
}

static bool is_status(const json_t *doc)
{
	const char *state = act_text(doc, "state");

	return strcmp(state, "running") == 0 || strcmp(state, "stopping") == 0 ||
	       strcmp(state, "stopped") == 0;
}

static void take_status(struct stopping *s, json_t *status)
{
	const json_t *grace = json_object_get(status, "grace_seconds");

	json_decref(s->status);
	s->status = status;
	if (json_is_number(grace) && !s->fixed_limit)
		s->limit_ns = (int64_t)(json_number_value(grace) * 1e9) + BEYOND_GRACE_NS;
}

static void pause_a_little(void)
{
	nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
}

static bool in_time(const struct stopping *s)
{
	return clock_now_ns() - s->began_ns < s->limit_ns;
}

/* Read the status once. Returns false if there is no answer. */
static bool look(struct stopping *s)
{
	struct client_answer answer = {0};
	struct weir_err err = {0};

	client_renew();
	int rc = client_get(s->url, STOP_PATH, &answer, &err);
	json_t *status =
	    rc == 0 && answer.status == 200 ? json_loadb(answer.body, answer.n, 0, NULL) : NULL;
	free(answer.body);
	bool good = is_status(status);
	if (good)
		take_status(s, status);
	else
		json_decref(status);
	return good;
}

/* Wait until the server reports its end or is gone, and then until the process has ended. Returns
 * false if that takes too long. */
static bool await(struct stopping *s)
{
	while (!has_stopped(s)) {
		bool answers = look(s);
		if (!answers && !(s->here && process_exists(s->status)))
			return true;
		if (has_stopped(s))
			break;
		if (!in_time(s))
			return false;
		pause_a_little();
	}
	while (s->here && process_exists(s->status)) {
		if (!in_time(s))
			return false;
		pause_a_little();
	}
	return true;
}

static int tell(const struct stopping *s)
{
	const json_t *report = json_object_get(s->status, "report");
	double took_s = json_number_value(json_object_get(report, "took_seconds"));

	if (!json_is_object(report)) {
		plain_print(stderr,
		    "weir stop: %s has ended without a report; its log may say why\n", s->url);
		return VERB_FINDING;
	}
	bool good = json_is_true(json_object_get(report, "whole"));
	plain_print(stdout, "%s has stopped in %.2f s", s->url, took_s);
	if (good)
		plain_print(stdout, ", nothing was lost\n");
	else
		plain_print(stdout,
		    "; accepted events ended unfinished: %lld, lost in handlers that did not "
		    "return: %lld\n",
		    whole(report, "unfinished"), whole(report, "lost"));
	return good ? VERB_OK : VERB_FINDING;
}

static int tell_json(const struct stopping *s)
{
	bool good = json_is_true(json_object_get(json_object_get(s->status, "report"), "whole"));

	act_print_json(s->status, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
	return good ? VERB_OK : VERB_FINDING;
}

int verb_stop(const struct verb *verb, const struct verb_args *args)
{
	struct stopping s = {.url = args->admin ? args->admin : CLIENT_DEFAULT_URL,
	    .began_ns = clock_now_ns(),
	    .fixed_limit = args->timeout_ns > 0,
	    .limit_ns = args->timeout_ns > 0 ? args->timeout_ns : CLIENT_TIMEOUT_NS};
	json_t *status;

	int rc =
	    act_ask(verb, args, "POST", STOP_PATH, args->now ? "{\"now\":true}" : "{}", &status);
	if (rc != VERB_OK)
		return rc;
	if (!is_status(status)) {
		plain_print(
		    stderr, "weir stop: the server at %s is not a weir admin endpoint\n", s.url);
		json_decref(status);
		return VERB_UNREACHABLE;
	}
	take_status(&s, status);
	s.here = process_exists(status);
	if (!await(&s)) {
		plain_print(stderr,
		    "weir stop: %s has not ended after %.3g s: it is still finishing accepted "
		    "work; 'weir stop --now' gives it up\n",
		    s.url, (double)s.limit_ns / 1e9);
		rc = VERB_FINDING;
	} else {
		rc = args->json ? tell_json(&s) : tell(&s);
	}
	json_decref(s.status);
	return rc;
}
