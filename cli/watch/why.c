/* SPDX-License-Identifier: MIT */
/*
 * why: show what limits a running server, and why a stage was resized or refuses events.
 *
 * Rates are computed from two snapshots of the admin endpoint, taken a second apart. Two laws are
 * printed for each stage. The utilisation law (Denning, Buzen 1978), X = U n / S, shows how far the
 * stage is from its ceiling. Little's law (1961), N = X R, shows whether counters, waits and queue
 * lengths are consistent. If a stage is named, its decisions are listed, newest first.
 */
#include "cli/verb.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "cli/act.h"
#include "cli/client/client.h"
#include "admin/text/number_format.h"
#include "core_groups.h"
#include "payloads.h"
#include "stage_state.h"
#include "thread_time.h"
#include "turned_away.h"
#include "why.h"
#include "why_shed.h"
#include "cli/client/plain.h"

/* Relative tolerance for Little's law. The law holds over long times, but not exactly over one
 * second of a changing system. 0.3 is a guess. */
#define LITTLE_SLACK 0.3

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
	if (rc != 0)
		plain_print(stderr, "weir why: %s\n", err.text);
	else
		plain_print(
		    stderr, "weir why: the server at %s is not a weir admin endpoint\n", url);
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

/* Return by how much a counter has grown; 0 if a reload reset it between the snapshots. */
static double grown(double then, double now)
{
	return now > then ? now - then : 0;
}

/* Return the stage `now` as it was in the first snapshot. If it did not exist then, return `now`
 * itself, so that all differences are 0. */
static const json_t *first_look(const json_t *then, const json_t *now)
{
	for (size_t i = 0; i < json_array_size(then); i++)
		if (strcmp(text(json_array_get(then, i), "name"), text(now, "name")) == 0)
			return json_array_get(then, i);
	return now;
}

/* Return the number of events that wait or are in service. Events that a stage holds, or that wait
 * for their children, are in service if the stage has a width; otherwise they are not counted. */
static double at_stage(const json_t *stage)
{
	bool wide = json_is_object(json_object_get(stage, "width"));

	return number(stage, "in_flight") -
	       (wide ? 0 : number(stage, "held") + number(stage, "awaiting"));
}

/* Number of events that the stage can serve at once. */
static int servers_of(const struct why *w)
{
	return w->width > 0 ? w->width : w->threads;
}

static void apply_laws(struct why *w)
{
	w->ceiling_per_s = ratio(servers_of(w), w->service_s);
	w->expected = w->served_per_s * (w->wait_s + w->service_s);
	w->agrees =
	    fabs(w->expected - w->at_stage) <= 2 + LITTLE_SLACK * fmax(w->expected, w->at_stage);
}

static void compare(const json_t *then, const json_t *now, double span_s, struct why *w)
{
	const struct sums a = sums_of(then), b = sums_of(now);
	const json_t *threads = json_object_get(now, "threads");
	const json_t *queue = json_object_get(now, "queue");
	const json_t *admission = json_object_get(now, "admission");

	*w = (struct why){.then = then,
	    .now = now,
	    .name = text(now, "name"),
	    .policy = text(admission, "policy"),
	    .mode = text(admission, "mode"),
	    .says = text(admission, "why"),
	    .trouble = text(now, "trouble"),
	    .held = stage_held(now),
	    .span_s = span_s};
	w->offered_per_s = grown(a.offered, b.offered) / span_s;
	w->served_per_s = grown(a.completed, b.completed) / span_s;
	w->refused_per_s = grown(a.shed, b.shed) / span_s;
	w->away_per_s = grown(turned_away(then), turned_away(now)) / span_s;
	w->ahead_per_s = grown(a.ahead, b.ahead) / span_s;
	w->service_s = ratio(grown(a.service_s, b.service_s), b.services - a.services);
	w->wait_s = ratio(grown(a.wait_s, b.wait_s), b.waits - a.waits);
	w->at_stage = (at_stage(then) + at_stage(now)) / 2;
	w->waiting = (long long)number(queue, "length");
	w->limit = (long long)number(queue, "limit");
	w->threads = (int)number(threads, "now");
	w->busy = (int)number(threads, "busy");
	w->max = (int)number(threads, "max");
	w->spares = (int)number(threads, "spares");
	w->spares_busy = (int)number(threads, "spares_busy");
	w->width = (int)number(json_object_get(now, "width"), "now");
	stage_width_text(now, w->wide, sizeof(w->wide));
	stage_clients_text(now, w->clients, sizeof(w->clients));
	w->used =
	    ratio(grown(number(then, "busy_seconds_total"), number(now, "busy_seconds_total")),
		span_s * w->threads);
	if (w->width > 0)
		w->used = ratio(number(json_object_get(now, "width"), "in_work"), w->width);
	apply_laws(w);
}

/* ---- printing ---- */

static void print_laws(const struct why *w)
{
	const char *service_ms = number_text(NUMBER_ROOM, w->service_s * 1e3, 3);
	int servers = servers_of(w);
	const char *kind = w->width > 0      ? "at once"
			   : w->spares > 0   ? "threads with spares"
			   : w->threads == 1 ? "thread"
					     : "threads";

	plain_print(stdout,
	    "  ceiling  %d %s / %s ms of service = %s/s; %.0f %% used   [utilisation law, X "
	    "= U n / S]\n",
	    servers, kind, service_ms, number_text(NUMBER_ROOM, w->ceiling_per_s, 4),
	    w->used * 100);
	plain_print(stdout,
	    "  check    %s/s x (%s ms wait + %s ms service) = %s at the stage, counted %s: %s"
	    "   [Little's law, N = X R]\n",
	    number_text(NUMBER_ROOM, w->served_per_s, 4),
	    number_text(NUMBER_ROOM, w->wait_s * 1e3, 3), service_ms,
	    number_text(NUMBER_ROOM, w->expected, 3), number_text(NUMBER_ROOM, w->at_stage, 3),
	    w->agrees ? "agrees" : "moving");
}

/* `only`: the stage was named, so its last stuck call is shown, too, and the call stack. */
static void print_stage(const struct why *w, bool only)
{
	bool pool = w->threads > 0;

	plain_print(stdout, "%s\n", w->name);
	if (w->held)
		plain_print(stdout, "  state    %s by an operator\n", w->held);
	if (*w->trouble)
		plain_print(stdout, "  trouble  %s\n", w->trouble);
	if (only || thread_is_stuck(w->now))
		thread_stuck_print(w->now, "  stuck    ", only);
	plain_print(stdout, "  admit    policy %s, %s%s%s\n", w->policy, w->mode,
	    *w->says ? ": " : "", w->says);
	if (w->wide[0])
		plain_print(stdout, "  width    %s\n", w->wide);
	if (w->clients[0])
		plain_print(stdout, "  clients  %s\n", w->clients);
	plain_print(stdout, "  now      %s offered/s, %s served/s, %s refused/s",
	    number_text(NUMBER_ROOM, w->offered_per_s, 4),
	    number_text(NUMBER_ROOM, w->served_per_s, 4),
	    number_text(NUMBER_ROOM, w->refused_per_s, 4));
	if (w->away_per_s > 0)
		plain_print(
		    stdout, ", %s turned away/s", number_text(NUMBER_ROOM, w->away_per_s, 4));
	if (w->ahead_per_s > 0)
		plain_print(stdout, ", %s/s refused upstream on its behalf",
		    number_text(NUMBER_ROOM, w->ahead_per_s, 4));
	if (pool)
		plain_print(stdout, "; %d of %d threads busy (max %d)", w->busy - w->spares_busy,
		    w->threads - w->spares, w->max);
	if (w->spares > 0)
		plain_print(stdout, " and %d of %d spare%s for blocked cores", w->spares_busy,
		    w->spares, w->spares == 1 ? "" : "s");
	if (pool)
		plain_print(stdout, ", %lld waiting (limit %lld)", w->waiting, w->limit);
	putchar('\n');
	if (*w->awaits)
		plain_print(stdout, "  children %s\n", w->awaits);
	if (pool && w->service_s > 0)
		print_laws(w);
}

static void print_decision(const json_t *d)
{
	char at[32];

	plain_print(stdout, "  %s ", text(d, "action"));
	if (number(d, "from") != number(d, "to"))
		plain_print(stdout, "%.0f -> %.0f %s ", number(d, "from"), number(d, "to"),
		    strcmp(text(d, "action"), "width") == 0 ? "at once" : "threads");
	plain_print(stdout, "at %s  (decision %.0f, %s%s)\n    because  %s\n    inputs   %s\n",
	    act_time(at, number(d, "time")), number(d, "id"), text(d, "actor"),
	    json_is_true(json_object_get(d, "before_restart")) ? ", before the restart" : "",
	    text(d, "rule"), text(d, "inputs"));
	if (*text(d, "limit"))
		plain_print(stdout, "    limits   %s\n", text(d, "limit"));
	if (*text(d, "outcome_5s"))
		plain_print(stdout, "    5 s on   %s\n", text(d, "outcome_5s"));
	if (*text(d, "outcome_30s"))
		plain_print(stdout, "    30 s on  %s\n", text(d, "outcome_30s"));
}

/* Set *list to the newest decisions about `stage`, a new reference. */
static int fetch_decisions(const char *url, const char *stage, json_t **list)
{
	json_t *doc;
	int rc = ask(url, "/api/v1/decisions?limit=500", &doc);

	*list = json_array();
	if (rc != VERB_OK)
		return rc;
	const json_t *all = json_object_get(doc, "decisions");
	for (size_t i = 0; i < json_array_size(all) && json_array_size(*list) < WHY_DECISIONS; i++)
		if (strcmp(text(json_array_get(all, i), "stage"), stage) == 0)
			json_array_append(*list, json_array_get(all, i));
	json_decref(doc);
	return VERB_OK;
}

static void print_decisions(const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		print_decision(json_array_get(list, i));
	if (json_array_size(list) == 0)
		puts("  no decisions about this stage are recorded");
}

/* Print what limits the server. The server evaluates this once a second
 * (admin/metrics/bottleneck.h), and its result is printed unchanged. */
static void print_verdict(const json_t *stages)
{
	const json_t *limit = json_object_get(stages, "bottleneck");

	if (!json_is_object(limit)) {
		puts("Nothing is known yet about what limits the server: it started less than a "
		     "second ago, or has no pool.");
		return;
	}
	plain_print(stdout, "%s\n", text(limit, "text"));
	if (json_is_true(json_object_get(limit, "limits")) && *text(limit, "formula"))
		plain_print(
		    stdout, "  because  %s   [%s]\n", text(limit, "formula"), text(limit, "law"));
}

/* ---- two snapshots ---- */

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

/* Compute what happened to each stage. Returns false, with the reason on stderr, if that is
 * impossible. The caller frees looks->stage. */
static bool compare_all(struct why_looks *looks)
{
	const json_t *a = json_object_get(looks->then, "stages");
	const json_t *b = json_object_get(looks->now, "stages");

	looks->span_s =
	    number(looks->now, "uptime_seconds") - number(looks->then, "uptime_seconds");
	looks->n = json_array_size(b);
	looks->stage = calloc(looks->n + 1, sizeof(*looks->stage));
	if (!looks->stage || looks->span_s <= 0) {
		fputs("weir why: the server was restarted in the meantime\n", stderr);
		return false;
	}
	for (size_t i = 0; i < looks->n; i++) {
		const json_t *s = json_array_get(b, i);
		struct why *w = &looks->stage[i];
		compare(first_look(a, s), s, looks->span_s, w);
		stage_awaits_text(s, b, w->awaits, sizeof(w->awaits));
	}
	return true;
}

static bool is_shown(const struct why_looks *looks, const struct why *w)
{
	return !looks->only || strcmp(w->name, looks->only) == 0;
}

static void print_looks(const struct why_looks *looks)
{
	const char *only = looks->only;

	for (size_t i = 0; i < looks->n; i++)
		if (is_shown(looks, &looks->stage[i]))
			turned_away_print(looks->stage[i].now, looks->stage[i].then, looks->span_s);
	if (!only) {
		print_verdict(looks->now);
		core_groups_why(stdout, looks->then, looks->now, looks->span_s, NULL);
		stages_held_print(json_object_get(looks->now, "stages"));
		payloads_print(looks->now, NULL);
	}
	for (size_t i = 0; i < looks->n; i++)
		if (is_shown(looks, &looks->stage[i]))
			print_stage(&looks->stage[i], only != NULL);
	if (!only)
		return;
	core_groups_why(stdout, looks->then, looks->now, looks->span_s, only);
	payloads_print(looks->now, only);
	print_decisions(looks->decisions);
}

static bool has_stage(const struct why_looks *looks)
{
	for (size_t i = 0; i < looks->n; i++)
		if (is_shown(looks, &looks->stage[i]))
			return true;
	return false;
}

static int explain(struct why_looks *looks, const char *url, bool json)
{
	json_t *decisions = NULL;
	int rc = VERB_OK;

	if (looks->only && !has_stage(looks)) {
		plain_print(stderr, "weir why: there is no stage '%s'%s\n", looks->only,
		    act_is_group(looks->now, looks->only) ? ": it is a group" : "");
		return VERB_USAGE;
	}
	if (looks->only)
		rc = fetch_decisions(url, looks->only, &decisions);
	looks->decisions = decisions;
	if (rc == VERB_OK && json)
		rc = why_print_json(looks);
	else if (rc == VERB_OK)
		print_looks(looks);
	json_decref(decisions);
	return rc;
}

int verb_why(const struct verb *verb, const struct verb_args *args)
{
	const char *url = args->admin ? args->admin : CLIENT_DEFAULT_URL;
	json_t *then = NULL, *now = NULL;

	if (args->shed && args->n)
		return verb_misused(verb, "--shed takes no stage, since the id names the stage");
	if (args->shed)
		return why_shed(args->shed, url, args->json);
	int rc = look_twice(url, &then, &now);
	if (rc != VERB_OK)
		return rc;
	struct why_looks looks = {
	    .then = then, .now = now, .only = args->n ? args->operand[0] : NULL};
	rc = compare_all(&looks) ? explain(&looks, url, args->json) : VERB_FINDING;
	free(looks.stage);
	json_decref(then);
	json_decref(now);
	return rc;
}
