/* SPDX-License-Identifier: MIT */
/* Shows the core groups of a running server; see core_groups.h. */
#include "core_groups.h"

#include <stdio.h>
#include <string.h>

#include "admin/text/number_format.h"
#include "cli/act.h"
#include "cli/client/plain.h"

/* Limits of the advice, all guesses. */
#define ADVICE_BUSY  0.75 /* cores that are less busy need no advice, but see ADVICE_SKEW */
#define ADVICE_SKEW  0.2  /* between the busiest core and the least busy one */
#define ADVICE_PART  0.25 /* share of the visits that `urgent` or `starve` begin */
#define ADVICE_CUT   0.5  /* share of the visits that the gate cuts */
#define ADVICE_VISIT 8    /* events a visit from which on longer visits hardly help */

/* What the cores of a group, or of a stage in it, have done between two responses. */
struct done {
	double visits, urgent, starved, cut_gate, cut_urgent, cut_starved, events, queued, dealt,
	    moved, blocked;
	double busy_s, longest_s;
	double busy_most, busy_least; /* shares of the busiest core and of the least busy one */
};

static double number(const json_t *map, const char *key)
{
	return json_number_value(json_object_get(map, key));
}

static double ratio(double a, double b)
{
	return b > 0 ? a / b : 0;
}

/* Return by how much member `key` has grown; all of it if `then` is NULL. */
static double grown(const json_t *then, const json_t *now, const char *key)
{
	double a = number(then, key), b = number(now, key);

	return b > a ? b - a : 0;
}

static void add_core(struct done *d, const json_t *then, const json_t *now)
{
	double longest_s = number(now, "longest_wait_seconds");

	d->visits += grown(then, now, "visits_total");
	d->urgent += grown(then, now, "urgent_total");
	d->starved += grown(then, now, "starved_total");
	d->cut_gate += grown(then, now, "cut_by_gate_total");
	d->cut_urgent += grown(then, now, "cut_by_urgent_total");
	d->cut_starved += grown(then, now, "cut_by_starved_total");
	d->events += grown(then, now, "events_total");
	d->queued += grown(then, now, "from_queue_total");
	d->dealt += grown(then, now, "dealt_total");
	d->moved += grown(then, now, "moved_total");
	d->blocked += grown(then, now, "blocked_total");
	d->busy_s += grown(then, now, "busy_seconds_total");
	d->longest_s = longest_s > d->longest_s ? longest_s : d->longest_s;
}

static void add_busy(struct done *d, double busy)
{
	d->busy_most = busy > d->busy_most ? busy : d->busy_most;
	d->busy_least = busy < d->busy_least ? busy : d->busy_least;
}

size_t core_group_cores(const json_t *group)
{
	size_t n = json_array_size(json_object_get(group, "cores"));
	const json_t *now = json_object_get(group, "cores_now");

	return json_is_integer(now) && (size_t)json_integer_value(now) < n
		   ? (size_t)json_integer_value(now)
		   : n;
}

/* Add up the cores of `now`, a group or a stage. */
static struct done between(const json_t *then, const json_t *now, double span_s)
{
	const json_t *cores = json_object_get(now, "cores");
	const json_t *past = json_object_get(then, "cores");
	size_t n = core_group_cores(now);
	struct done d = {.busy_least = n > 0 ? 2 : 0};

	for (size_t k = 0; k < json_array_size(cores); k++)
		add_core(&d, json_array_get(past, k), json_array_get(cores, k));
	for (size_t k = 0; k < n; k++)
		add_busy(&d, ratio(grown(json_array_get(past, k), json_array_get(cores, k),
				       "busy_seconds_total"),
				 span_s));
	return d;
}

const json_t *core_group_find(const json_t *stages, const char *name)
{
	const json_t *groups = json_object_get(stages, "groups");

	for (size_t i = 0; i < json_array_size(groups); i++)
		if (strcmp(act_text(json_array_get(groups, i), "name"), name) == 0)
			return json_array_get(groups, i);
	return NULL;
}

/* ---- one line ---- */

/* Write "wavefront, gate time: 10ms, starve 25ms" to buf[size]. */
static void settings_text(const json_t *group, char *buf, size_t size)
{
	char starve[32];
	double starve_s = number(group, "starve_seconds");

	snprintf(buf, size, "%.40s, gate %.60s, %s%s%s%s", act_text(group, "schedule"),
	    act_text(group, "gate"), starve_s > 0 ? "starve " : "no starve",
	    starve_s > 0 ? act_duration(starve, starve_s) : "",
	    json_is_false(json_object_get(group, "balance")) ? ", no balance" : "",
	    strcmp(act_text(group, "order"), "newest") == 0 ? ", newest first" : "");
}

/* Write "2 cores 43 % and 41 % busy" to buf[size]; of more than 4 cores, the range. Cores that have left
 * do not count. */
static void busy_text(const json_t *then, const json_t *now, double span_s, char *buf, size_t size)
{
	const json_t *cores = json_object_get(now, "cores");
	const json_t *past = json_object_get(then, "cores");
	size_t n = core_group_cores(now), at = 0;
	struct done d = between(then, now, span_s);

	at += (size_t)snprintf(buf, size, "%zu core%s ", n, n == 1 ? "" : "s");
	if (n > 4) {
		snprintf(buf + at, size - at, "%.0f to %.0f %% busy", 100 * d.busy_least,
		    100 * d.busy_most);
		return;
	}
	for (size_t k = 0; k < n && at < size; k++) {
		double busy_s =
		    grown(json_array_get(past, k), json_array_get(cores, k), "busy_seconds_total");
		at += (size_t)snprintf(buf + at, size - at, "%s%.0f %%",
		    k == 0      ? ""
		    : k + 1 < n ? ", "
				: " and ",
		    100 * ratio(busy_s, span_s));
	}
	if (at < size)
		snprintf(buf + at, size - at, " busy");
}

void core_group_line(const json_t *then, const json_t *now, double span_s, char *text, size_t size)
{
	char settings[160], busy[80], wait[32], a_visit[48] = "";
	struct done d = between(then, now, span_s);

	settings_text(now, settings, sizeof(settings));
	busy_text(then, now, span_s, busy, sizeof(busy));
	if (d.visits > 0)
		snprintf(a_visit, sizeof(a_visit), ", %s events a visit",
		    number_text(NUMBER_ROOM, d.events / d.visits, 3));
	snprintf(text, size, "%.80s: %s%s, longest wait %s; %s", act_text(now, "name"), busy,
	    a_visit, act_duration(wait, d.longest_s), settings);
}

/* ---- cores that are blocked now ---- */

/* Write "core 0 has slept for 6.2 s in a handler of stage 'a'; a spare thread serves the queues" to
 * buf[size]. A core that has left the group has no spare. A spare that sleeps, too, has none
 * itself. */
static void sleep_text(const json_t *group, size_t k, char *buf, size_t size)
{
	const json_t *core = json_array_get(json_object_get(group, "cores"), k);
	double spare_s = number(core, "spare_blocked_seconds");
	char spare[160] = "";

	if (k < core_group_cores(group) && spare_s > 0)
		snprintf(spare, sizeof(spare),
		    "; its spare thread has slept, too, for %s in one of stage '%.80s'",
		    seconds_text(NUMBER_ROOM, spare_s), act_text(core, "spare_blocked_in"));
	else if (k < core_group_cores(group))
		snprintf(spare, sizeof(spare), "; a spare thread serves the queues");
	snprintf(buf, size, "core %zu has slept for %s in a handler of stage '%.80s'%s", k,
	    seconds_text(NUMBER_ROOM, number(core, "blocked_seconds")),
	    act_text(core, "blocked_in"), spare);
}

/* Print a line for each blocked core of `group`, after `head`. Returns the stage in which one sleeps,
 * NULL if no core is blocked, and sets *began to how many of them have slept for at most `span_s`. */
static const char *print_sleeps(
    FILE *out, const json_t *group, const char *head, double span_s, size_t *began)
{
	const json_t *cores = json_object_get(group, "cores");
	const char *stage = NULL;
	char text[400];

	*began = 0;
	for (size_t k = 0; k < json_array_size(cores); k++) {
		double slept_s = number(json_array_get(cores, k), "blocked_seconds");
		if (slept_s <= 0)
			continue;
		sleep_text(group, k, text, sizeof(text));
		plain_print(out, "%s%s\n", head, text);
		stage = act_text(json_array_get(cores, k), "blocked_in");
		*began += slept_s <= span_s;
	}
	return stage;
}

void core_groups_print(const json_t *stages)
{
	const json_t *groups = json_object_get(stages, "groups");
	double up_s = number(stages, "uptime_seconds");
	char text[400], head[120];
	size_t began;

	for (size_t i = 0; i < json_array_size(groups); i++) {
		const json_t *group = json_array_get(groups, i);
		core_group_line(NULL, group, up_s, text, sizeof(text));
		plain_print(stdout, "group %s\n", text);
		snprintf(head, sizeof(head), "group %.80s: blocked: ", act_text(group, "name"));
		print_sleeps(stdout, group, head, 0, &began);
	}
}

/* ---- the table ---- */

void core_group_table(const json_t *cores, size_t n)
{
	char wait[32];

	plain_print(stdout, "\n%4s %9s %9s %7s %7s %9s %8s %8s %10s %8s %9s\n", "CORE", "BUSY",
	    "VISITS", "URGENT", "STARVED", "GATE CUTS", "EVENTS", "A VISIT", "FROM QUEUE", "DEALT",
	    "MAX WAIT");
	for (size_t k = 0; k < json_array_size(cores); k++) {
		const json_t *c = json_array_get(cores, k);
		double visits = number(c, "visits_total"), events = number(c, "events_total");
		plain_print(stdout,
		    "%4zu %8.1fs %9.0f %7.0f %7.0f %9.0f %8.0f %8s %10.0f %8.0f %9s%s\n", k,
		    number(c, "busy_seconds_total"), visits, number(c, "urgent_total"),
		    number(c, "starved_total"), number(c, "cut_by_gate_total"), events,
		    visits > 0 ? number_text(NUMBER_ROOM, events / visits, 3) : "-",
		    number(c, "from_queue_total"), number(c, "dealt_total"),
		    act_duration(wait, number(c, "longest_wait_seconds")), k < n ? "" : "  left");
	}
}

/* ---- why ---- */

/* The element of `list` that has the name of `now`; `now` itself if there is none, so that all
 * differences are 0. */
static const json_t *same_in(const json_t *list, const json_t *now)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (strcmp(act_text(json_array_get(list, i), "name"), act_text(now, "name")) == 0)
			return json_array_get(list, i);
	return now;
}

static bool has_stage(const json_t *group, const char *stage)
{
	const json_t *list = json_object_get(group, "stages");

	for (size_t i = 0; i < json_array_size(list); i++)
		if (strcmp(act_text(json_array_get(list, i), "name"), stage) == 0)
			return true;
	return false;
}

/* Return the stage of the group that has used most of its time, and its share of that. */
static const char *dearest(
    const json_t *then, const json_t *now, const json_t *group, double busy_s, double *part)
{
	const json_t *list = json_object_get(now, "stages");
	const char *name = "";

	*part = 0;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *s = json_array_get(list, i);
		const json_t *past = same_in(json_object_get(then, "stages"), s);
		if (!has_stage(group, act_text(s, "name")))
			continue;
		double own = ratio(between(past, s, 1).busy_s, busy_s);
		if (own > *part) {
			*part = own;
			name = act_text(s, "name");
		}
	}
	return name;
}

/* Say which setting would help, if one would. */
static void advise(FILE *out, const json_t *then, const json_t *now, const json_t *group,
    const struct done *d, double span_s)
{
	size_t n = core_group_cores(group);
	double mean = ratio(d->busy_s, span_s * (double)n), a_visit = ratio(d->events, d->visits);
	char starve[32];
	double part;

	if (json_is_false(json_object_get(group, "balance")) &&
	    d->busy_most - d->busy_least > ADVICE_SKEW && d->busy_most > ADVICE_BUSY) {
		fputs("  advice   balance: true; the cores are unequally busy, and the idle ones "
		      "get nothing of the others\n",
		    out);
		return;
	}
	if (mean < ADVICE_BUSY)
		return;
	if (d->starved > ADVICE_PART * d->visits)
		plain_print(out,
		    "  advice   a longer starve than %s, or less load; it begins %.0f %% of the "
		    "visits, so the schedule decides the others only\n",
		    act_duration(starve, number(group, "starve_seconds")),
		    100 * ratio(d->starved, d->visits));
	else if (d->urgent > ADVICE_PART * d->visits)
		plain_print(out,
		    "  advice   higher thresholds of urgent; it begins %.0f %% of the visits\n",
		    100 * ratio(d->urgent, d->visits));
	else if (d->cut_gate > ADVICE_CUT * d->visits && a_visit < ADVICE_VISIT)
		plain_print(out,
		    "  advice   a wider gate than '%s'; it cuts %.0f %% of the visits, after %s "
		    "events on average\n",
		    act_text(group, "gate"), 100 * ratio(d->cut_gate, d->visits),
		    number_text(NUMBER_ROOM, a_visit, 3));
	else {
		const char *name = dearest(then, now, group, d->busy_s, &part);
		plain_print(out,
		    "  advice   more cores than %zu, or a cheaper %s, which takes %.0f %% of their "
		    "time\n",
		    n, name, 100 * part);
	}
}

static void explain(
    FILE *out, const json_t *then, const json_t *now, const json_t *group, double span_s)
{
	const json_t *past = same_in(json_object_get(then, "groups"), group);
	struct done d = between(past, group, span_s);
	char settings[160], busy[80], wait[32];
	size_t began;

	settings_text(group, settings, sizeof(settings));
	busy_text(past, group, span_s, busy, sizeof(busy));
	plain_print(out, "group %s\n  cores    %s; %s\n", act_text(group, "name"), busy, settings);
	if (d.visits > 0)
		plain_print(out,
		    "  visits   %s/s of %s events; begun by the schedule %.0f %%, urgent %.0f %%, "
		    "starve %.0f %%; cut by the gate %.0f %%, urgent %.0f %%, starve %.0f %%\n",
		    number_text(NUMBER_ROOM, d.visits / span_s, 4),
		    number_text(NUMBER_ROOM, d.events / d.visits, 3),
		    100 * (d.visits - d.urgent - d.starved) / d.visits, 100 * d.urgent / d.visits,
		    100 * d.starved / d.visits, 100 * d.cut_gate / d.visits,
		    100 * d.cut_urgent / d.visits, 100 * d.cut_starved / d.visits);
	plain_print(out,
	    "  events   %s/s, %.0f %% of them from queues; %s/s dealt to idle cores; longest wait "
	    "%s\n",
	    number_text(NUMBER_ROOM, d.events / span_s, 4), 100 * ratio(d.queued, d.events),
	    number_text(NUMBER_ROOM, d.dealt / span_s, 4), act_duration(wait, d.longest_s));
	if (d.moved > 0)
		plain_print(out, "  serial   %s/s slots of keys moved to other cores\n",
		    number_text(NUMBER_ROOM, d.moved / span_s, 4));
	const char *asleep_in = print_sleeps(out, group, "  blocked  ", span_s, &began);
	if (d.blocked > (double)began)
		plain_print(out,
		    "  blocked  %.0f times a core slept in a handler for 5 ms or longer, and a "
		    "spare thread served the queues\n",
		    d.blocked);
	if (asleep_in)
		plain_print(out,
		    "  advice   move stage '%s' out of the group; a pool has more threads than "
		    "cores\n",
		    asleep_in);
	else
		advise(out, then, now, group, &d, span_s);
}

void core_groups_why(
    FILE *out, const json_t *then, const json_t *now, double span_s, const char *stage)
{
	const json_t *groups = json_object_get(now, "groups");

	for (size_t i = 0; i < json_array_size(groups); i++) {
		const json_t *group = json_array_get(groups, i);
		if (!stage || has_stage(group, stage))
			explain(out, then, now, group, span_s);
	}
}
