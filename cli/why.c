/* SPDX-License-Identifier: MIT */
/*
 * why: what limits a running server, and why a stage was resized or refuses.
 *
 * Two looks at the admin endpoint, a second apart, give rates. For each stage the utilisation law
 * (Denning, Buzen 1978) says how far it is from its ceiling, X = U n / S, and Little's law (1961), N = X R, checks that the
 * counters, waits and lengths tell the same story. Then the stage's decisions, newest first.
 */
#include "verb.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "client.h"
#include "turned_away.h"
#include "why_shed.h"

#define DECISIONS_SHOWN 5
/* Little's law holds for long times; over a second of a moving system it may be so far off. Guess. */
#define LITTLE_SLACK 0.3

/* One stage between two looks. */
struct why {
	const char *name, *policy, *mode, *door;
	double span_s;
	double offered_per_s, served_per_s, refused_per_s;
	double away_per_s;        /* turned away in front of the graph, by a source */
	double ahead_per_s;       /* refused at doors upstream, for the sake of the stage */
	double service_s, wait_s; /* means of what was served in between */
	double at_stage;          /* waiting and in handlers, mean of both looks */
	long long waiting, limit;
	int threads, busy, max;
	double used; /* of the threads' time, 0..1 */
};

static double number(const json_t *map, const char *key)
{
	return json_number_value(json_object_get(map, key));
}

static const char *text(const json_t *map, const char *key)
{
	const char *s = json_string_value(json_object_get(map, key));

	return s ? s : "";
}

static int ask(const char *url, const char *path, json_t **doc)
{
	struct client_answer answer = {0};
	struct weir_err err = {0};
	int rc = client_get(url, path, &answer, &err);

	*doc = rc == 0 && answer.status == 200 ? json_loadb(answer.body, answer.n, 0, NULL) : NULL;
	free(answer.body);
	if (*doc)
		return VERB_OK;
	fprintf(stderr, "weir why: %s\n",
	    rc != 0 ? err.text : "what answers there is no weir admin endpoint");
	return VERB_UNREACHABLE;
}

/* ---- arithmetic ---- */

/* Sums over the classes of a stage. */
struct sums {
	double offered, completed, shed, ahead, waits, wait_s, services, service_s;
};

static struct sums sums_of(const json_t *stage)
{
	const json_t *classes = json_object_get(stage, "classes");
	struct sums s = {0};

	for (size_t i = 0; i < json_array_size(classes); i++) {
		const json_t *c = json_array_get(classes, i);
		const json_t *wait = json_object_get(c, "wait_seconds");
		const json_t *service = json_object_get(c, "service_seconds");
		json_t *shed = json_object_get(c, "shed_total");
		s.offered += number(c, "offered_total");
		s.ahead += number(c, "refused_ahead_total");
		s.completed += number(c, "completed_total") + number(c, "failed_total");
		for (void *it = json_object_iter(shed); it; it = json_object_iter_next(shed, it))
			s.shed += json_number_value(json_object_iter_value(it));
		s.waits += number(wait, "count");
		s.wait_s += number(wait, "sum");
		s.services += number(service, "count");
		s.service_s += number(service, "sum");
	}
	return s;
}

static double ratio(double a, double b)
{
	return b > 0 ? a / b : 0;
}

static void compare(const json_t *then, const json_t *now, double span_s, struct why *w)
{
	const struct sums a = sums_of(then), b = sums_of(now);
	const json_t *threads = json_object_get(now, "threads");
	const json_t *queue = json_object_get(now, "queue");
	const json_t *door = json_object_get(now, "admission");

	*w = (struct why){.name = text(now, "name"),
	    .policy = text(door, "policy"),
	    .mode = text(door, "mode"),
	    .door = text(door, "why"),
	    .span_s = span_s};
	w->offered_per_s = (b.offered - a.offered) / span_s;
	w->served_per_s = (b.completed - a.completed) / span_s;
	w->refused_per_s = (b.shed - a.shed) / span_s;
	w->away_per_s = (turned_away(now) - turned_away(then)) / span_s;
	w->ahead_per_s = (b.ahead - a.ahead) / span_s;
	w->service_s = ratio(b.service_s - a.service_s, b.services - a.services);
	w->wait_s = ratio(b.wait_s - a.wait_s, b.waits - a.waits);
	w->at_stage = (number(then, "in_flight") + number(now, "in_flight")) / 2;
	w->waiting = (long long)number(queue, "length");
	w->limit = (long long)number(queue, "limit");
	w->threads = (int)number(threads, "now");
	w->busy = (int)number(threads, "busy");
	w->max = (int)number(threads, "max");
	w->used = ratio(number(now, "busy_seconds_total") - number(then, "busy_seconds_total"),
	    span_s * w->threads);
}

/* ---- printing ---- */

static void print_stage(const struct why *w)
{
	bool pool = w->threads > 0;

	printf("%s\n", w->name);
	printf("  door     policy %s, %s%s%s\n", w->policy, w->mode, *w->door ? ": " : "", w->door);
	printf("  now      %.4g offered/s, %.4g served/s, %.4g refused/s", w->offered_per_s,
	    w->served_per_s, w->refused_per_s);
	if (w->away_per_s > 0)
		printf(", %.4g turned away/s", w->away_per_s);
	if (w->ahead_per_s > 0)
		printf(", %.4g for its sake upstream", w->ahead_per_s);
	if (pool)
		printf("; %d of %d threads busy (max %d), %lld waiting (limit %lld)", w->busy,
		    w->threads, w->max, w->waiting, w->limit);
	putchar('\n');
	if (!pool || w->service_s <= 0)
		return;
	printf("  ceiling  %d thread%s / %.3g ms of service = %.4g/s; used to %.0f %%"
	       "   [utilisation law, X = U n / S]\n",
	    w->threads, w->threads == 1 ? "" : "s", w->service_s * 1e3, w->threads / w->service_s,
	    w->used * 100);
	double expected = w->served_per_s * (w->wait_s + w->service_s);
	bool agrees =
	    fabs(expected - w->at_stage) <= 2 + LITTLE_SLACK * fmax(expected, w->at_stage);
	printf("  check    %.4g/s x (%.3g ms wait + %.3g ms service) = %.3g at the stage, counted "
	       "%.3g: %s   [Little's law, N = X R]\n",
	    w->served_per_s, w->wait_s * 1e3, w->service_s * 1e3, expected, w->at_stage,
	    agrees ? "agrees" : "moving");
}

static void print_time(double unix_s)
{
	time_t t = (time_t)unix_s;
	struct tm tm;

	localtime_r(&t, &tm);
	printf("%02d:%02d:%02d.%03d", tm.tm_hour, tm.tm_min, tm.tm_sec,
	    (int)((unix_s - (double)t) * 1000));
}

static void print_decision(const json_t *d)
{
	printf("  %s ", text(d, "action"));
	if (number(d, "from") != number(d, "to"))
		printf("%.0f -> %.0f threads ", number(d, "from"), number(d, "to"));
	fputs("at ", stdout);
	print_time(number(d, "time"));
	printf("  (decision %.0f, %s)\n    because  %s\n    inputs   %s\n", number(d, "id"),
	    text(d, "actor"), text(d, "rule"), text(d, "inputs"));
	if (*text(d, "limit"))
		printf("    limits   %s\n", text(d, "limit"));
	if (*text(d, "outcome_5s"))
		printf("    5 s on   %s\n", text(d, "outcome_5s"));
	if (*text(d, "outcome_30s"))
		printf("    30 s on  %s\n", text(d, "outcome_30s"));
}

static int print_decisions(const char *url, const char *stage)
{
	json_t *doc;
	int rc = ask(url, "/api/v1/decisions?limit=500", &doc), shown = 0;

	if (rc != VERB_OK)
		return rc;
	const json_t *list = json_object_get(doc, "decisions");
	for (size_t i = 0; i < json_array_size(list) && shown < DECISIONS_SHOWN; i++) {
		const json_t *d = json_array_get(list, i);
		if (strcmp(text(d, "stage"), stage) != 0)
			continue;
		print_decision(d);
		shown++;
	}
	if (shown == 0)
		puts("  no decision about it is kept");
	json_decref(doc);
	return VERB_OK;
}

/* What limits the server is judged there, once a second (admin/bottleneck.h), not here. */
static void print_verdict(const json_t *stages)
{
	const json_t *limit = json_object_get(stages, "bottleneck");

	if (!json_is_object(limit)) {
		puts("Nothing is known yet of what limits the server: it was started this second, "
		     "or has no pool.");
		return;
	}
	puts(text(limit, "text"));
	if (json_is_true(json_object_get(limit, "limits")) && *text(limit, "formula"))
		printf("  because  %s   [%s]\n", text(limit, "formula"), text(limit, "law"));
}

/* ---- two looks ---- */

static int look_twice(const char *url, json_t **then, json_t **now)
{
	struct timespec second = {1, 0};
	int rc = ask(url, "/api/v1/stages", then);

	if (rc != VERB_OK)
		return rc;
	nanosleep(&second, NULL);
	rc = ask(url, "/api/v1/stages", now);
	if (rc != VERB_OK)
		json_decref(*then);
	return rc;
}

static int explain(const char *url, const char *stage, const json_t *then, const json_t *now)
{
	const json_t *a = json_object_get(then, "stages"), *b = json_object_get(now, "stages");
	double span_s = number(now, "uptime_seconds") - number(then, "uptime_seconds");
	size_t n = json_array_size(b);
	struct why *all = calloc(n + 1, sizeof(*all));
	int rc = VERB_OK;
	bool found = false;

	if (!all || json_array_size(a) != n || span_s <= 0) {
		free(all);
		fputs("weir why: the server was restarted meanwhile\n", stderr);
		return VERB_FINDING;
	}
	for (size_t i = 0; i < n; i++)
		compare(json_array_get(a, i), json_array_get(b, i), span_s, &all[i]);
	for (size_t i = 0; i < n; i++)
		if (!stage || strcmp(all[i].name, stage) == 0)
			turned_away_print(json_array_get(b, i), json_array_get(a, i), span_s);
	if (!stage)
		print_verdict(now);
	for (size_t i = 0; i < n && rc == VERB_OK; i++) {
		if (stage && strcmp(all[i].name, stage) != 0)
			continue;
		found = true;
		print_stage(&all[i]);
		if (stage)
			rc = print_decisions(url, stage);
	}
	free(all);
	if (!found) {
		fprintf(stderr, "weir why: there is no stage '%s'\n", stage);
		return VERB_USAGE;
	}
	return rc;
}

int verb_why(const struct verb *verb, const struct verb_args *args)
{
	const char *url = args->admin ? args->admin : CLIENT_DEFAULT_URL;
	json_t *then = NULL, *now = NULL;

	if (args->shed && args->n)
		return verb_misused(verb, "--shed needs no stage: the id names it");
	if (args->shed)
		return why_shed(args->shed, url);
	int rc = look_twice(url, &then, &now);
	if (rc != VERB_OK)
		return rc;
	rc = explain(url, args->n ? args->operand[0] : NULL, then, now);
	json_decref(then);
	json_decref(now);
	return rc;
}
