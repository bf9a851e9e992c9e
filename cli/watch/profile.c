/* SPDX-License-Identifier: MIT */
/*
 * profile: show what each thread did at each stage in a window of time, and what it sent where
 * (Larus and Parkes, Using Cohort Scheduling to Enhance Server Performance, USENIX 2002, figure 4).
 *
 * The server is asked at the beginning and at the end of the window; a signal ends it early. Two
 * tables are printed: the stages by thread, and the arcs: each link by thread. Between them is a
 * table of the stages that have made events, if there are any. Rows in which
 * nothing happened are left out, and several rows of a stage or link are followed by their sums.
 * The tables fit into 100 columns, so long names are truncated; `-o json` prints all.
 */
#include "profile.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include <weir/clock.h>
#include <weir/knob.h>

#include "cli/act.h"
#include "cli/client/client.h"
#include "cli/client/plain.h"

#define PROFILE_PATH "/api/v1/profile"

/* Default window. 10 s is a guess: long against a batch, short for a person. */
#define FOR_DEFAULT_NS 10000000000LL

static const struct weir_knob for_row = {
    .name = "for", .type = WEIR_KNOB_DURATION, .min = 1e8, .max = 3600e9};

static volatile sig_atomic_t told_to_end;

static void on_signal(int number)
{
	(void)number;
	told_to_end = 1;
}

/* ---- cells ---- */

static double number(const json_t *map, const char *key)
{
	return json_number_value(json_object_get(map, key));
}

/* Print a name in `width` characters; '~' marks a truncated one. */
static void print_name(const char *name, int width)
{
	if ((int)strlen(name) <= width)
		plain_print(stdout, "%-*s ", width, name);
	else
		plain_print(stdout, "%.*s~ ", width - 1, name);
}

/* Format a count in at most eight characters. */
static const char *count_text(char buf[32], double n)
{
	if (n < 1e7)
		snprintf(buf, 32, "%.0f", n);
	else if (n < 1e9)
		snprintf(buf, 32, "%.2fM", n / 1e6);
	else
		snprintf(buf, 32, "%.2fG", n / 1e9);
	return buf;
}

/* Format the mean length of a queue. */
static const char *length_text(char buf[32], double n)
{
	snprintf(buf, 32, n < 10 ? "%.3f" : n < 1000 ? "%.1f" : "%.0f", n);
	return buf;
}

/* Print the head of a table. */
static void print_head(const char *head)
{
	bool bold = verb_styled(stdout);

	fputs(bold ? "\033[1m" : "", stdout);
	fputs(head, stdout);
	fputs(bold ? "\033[0m\n" : "\n", stdout);
}

/* ---- the stages ---- */

/* What is printed of a row, or of the sum of several. */
struct line {
	double queue, started, restarted, completed, shed, failed;
	double waits, wait_s; /* number of waits, and their sum */
	double longest_s;     /* negative if nothing waited, infinite above 100 s */
};

static struct line line_of(const json_t *row)
{
	struct line l = {.queue = number(row, "queue_mean"),
	    .started = number(row, "started"),
	    .restarted = number(row, "restarted"),
	    .completed = number(row, "completed"),
	    .shed = number(row, "shed"),
	    .failed = number(row, "failed"),
	    .waits = number(row, "waits"),
	    .longest_s = -1};
	const json_t *longest = json_object_get(row, "wait_longest");

	l.wait_s = l.waits * number(row, "wait_mean");
	if (l.waits > 0)
		l.longest_s = json_is_number(longest) ? json_number_value(longest) : INFINITY;
	return l;
}

static bool is_idle(const struct line *l)
{
	return l->started + l->restarted + l->completed + l->shed + l->failed <= 0;
}

static void add_line(struct line *sum, const struct line *l)
{
	sum->queue += l->queue;
	sum->started += l->started;
	sum->restarted += l->restarted;
	sum->completed += l->completed;
	sum->shed += l->shed;
	sum->failed += l->failed;
	sum->waits += l->waits;
	sum->wait_s += l->wait_s;
	sum->longest_s = fmax(sum->longest_s, l->longest_s);
}

static void print_line(const char *stage, const char *on, const struct line *l)
{
	char t[8][32];
	bool waits = l->waits > 0;

	print_name(stage, 14);
	print_name(on, 11);
	plain_print(stdout, "%8s %9s %9s %9s %7s %7s %8s %8s\n",
	    waits ? length_text(t[0], l->queue) : "-", count_text(t[1], l->started),
	    count_text(t[2], l->restarted), count_text(t[3], l->completed),
	    count_text(t[4], l->shed), count_text(t[5], l->failed),
	    waits ? act_duration(t[6], l->wait_s / l->waits) : "-",
	    isinf(l->longest_s) ? "over100s" : act_duration(t[7], l->longest_s));
}

static void print_stage(const json_t *stage)
{
	const json_t *rows = json_object_get(stage, "rows");
	struct line sum = {.longest_s = -1};
	int n = 0;

	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		struct line l = line_of(row);
		if (is_idle(&l))
			continue;
		print_line(n == 0 ? act_text(stage, "name") : "", act_text(row, "on"), &l);
		add_line(&sum, &l);
		n++;
	}
	if (n > 1)
		print_line("", "all", &sum);
	if (n == 0)
		print_line(act_text(stage, "name"), "-", &sum);
}

/* ---- children ---- */

static bool makes(const json_t *stage)
{
	const json_t *rows = json_object_get(stage, "rows");

	for (size_t i = 0; i < json_array_size(rows); i++)
		if (number(json_array_get(rows, i), "spawned") > 0)
			return true;
	return number(stage, "awaiting") > 0;
}

static void print_children_line(
    const char *stage, const char *on, double spawned, double departed, const char *awaiting)
{
	char t[2][32];

	print_name(stage, 14);
	print_name(on, 11);
	plain_print(stdout, "%8s %9s %9s\n", count_text(t[0], spawned), count_text(t[1], departed),
	    awaiting);
}

/* Print what the threads of the stage have made, and how many events wait for their children now. */
static void print_children(const json_t *stage)
{
	const json_t *rows = json_object_get(stage, "rows");
	double spawned = 0, departed = 0;
	char awaiting[32];
	int n = 0;

	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		double made = number(row, "spawned"), left = number(row, "departed");
		if (made + left <= 0)
			continue;
		print_children_line(
		    n == 0 ? act_text(stage, "name") : "", act_text(row, "on"), made, left, "-");
		spawned += made;
		departed += left;
		n++;
	}
	print_children_line(n == 0 ? act_text(stage, "name") : "", "all", spawned, departed,
	    count_text(awaiting, number(stage, "awaiting")));
}

static void print_all_children(const json_t *stages)
{
	bool any = false;

	for (size_t i = 0; i < json_array_size(stages); i++) {
		const json_t *stage = json_array_get(stages, i);
		if (!makes(stage))
			continue;
		if (!any)
			print_head("\nCHILDREN OF    ON           SPAWNED  DEPARTED  AWAITING");
		any = true;
		print_children(stage);
	}
}

/* ---- the arcs ---- */

static void print_arc(const char *from, const char *outlet, const char *to, const char *on,
    double sent, double refused, double span_s)
{
	char t[3][32];

	print_name(from, 14);
	print_name(outlet, 14);
	print_name(to, 14);
	print_name(on, 11);
	plain_print(stdout, "%9s %10s %8s\n", count_text(t[0], sent),
	    count_text(t[1], span_s > 0 ? sent / span_s : 0), count_text(t[2], refused));
}

/* Print the arcs of the link of arcs[first], which follow one another. Returns the next index. */
static size_t print_link(const json_t *arcs, size_t first, double span_s)
{
	const json_t *a = json_array_get(arcs, first);
	const char *from = act_text(a, "from"), *outlet = act_text(a, "outlet");
	double sent = 0, refused = 0;
	size_t i = first;
	int n = 0;

	for (; i < json_array_size(arcs); i++) {
		const json_t *b = json_array_get(arcs, i);
		double by = number(b, "sent"), lost = fmax(0, number(b, "offered") - by);
		if (strcmp(act_text(b, "from"), from) != 0 ||
		    strcmp(act_text(b, "outlet"), outlet) != 0)
			break;
		if (by + lost <= 0)
			continue;
		print_arc(n ? "" : from, n ? "" : outlet, n ? "" : act_text(b, "to"),
		    act_text(b, "on"), by, lost, span_s);
		sent += by;
		refused += lost;
		n++;
	}
	if (n > 1)
		print_arc("", "", "", "all", sent, refused, span_s);
	return i;
}

/* ---- the page ---- */

static void print_tables(const json_t *doc, const char *url)
{
	const json_t *stages = json_object_get(doc, "stages"), *arcs = json_object_get(doc, "arcs");
	bool replaced = json_is_true(json_object_get(doc, "replaced"));
	double span_s = number(doc, "seconds");

	plain_print(stdout, "%s  %s  %.1f s%s\n", act_text(doc, "name"), url, span_s,
	    replaced ? ", since a reload has replaced the stages" : "");
	print_head("STAGE          ON             QUEUE   STARTED RESTARTED COMPLETED    SHED  "
		   "FAILED     WAIT  LONGEST");
	for (size_t i = 0; i < json_array_size(stages); i++)
		print_stage(json_array_get(stages, i));
	print_all_children(stages);
	fputs("\n", stdout);
	print_head("FROM           OUTLET         TO             ON               SENT PER SECOND  "
		   "REFUSED");
	for (size_t i = 0; i < json_array_size(arcs);)
		i = print_link(arcs, i, span_s);
}

/* ---- the window ---- */

/* Wait until `until_ns`, or for a signal. */
static void wait_until(int64_t until_ns)
{
	struct sigaction act = {.sa_handler = on_signal}; /* no SA_RESTART: it must end poll */
	struct sigaction before[2];

	sigaction(SIGINT, &act, &before[0]);
	sigaction(SIGTERM, &act, &before[1]);
	while (!told_to_end) {
		int64_t left_ns = until_ns - weir_clock_ns(CLOCK_MONOTONIC);
		if (left_ns <= 0 ||
		    (poll(NULL, 0, (int)(left_ns / 1000000) + 1) < 0 && errno != EINTR))
			break;
	}
	sigaction(SIGINT, &before[0], NULL);
	sigaction(SIGTERM, &before[1], NULL);
}

static int show(const struct verb_args *args, json_t *doc)
{
	if (args->json)
		return act_print(doc);
	print_tables(doc, args->admin ? args->admin : CLIENT_DEFAULT_URL);
	json_decref(doc);
	return VERB_OK;
}

int verb_profile(const struct verb *verb, const struct verb_args *args)
{
	int64_t for_ns = FOR_DEFAULT_NS;
	json_t *then = NULL, *now = NULL, *doc = NULL;
	char why[160];

	if (args->for_ && weir_knob_parse(&for_row, args->for_, &for_ns, why, sizeof(why)) != 0)
		return verb_misused(verb, "--for: %s", why);
	int64_t until_ns = weir_clock_ns(CLOCK_MONOTONIC) + for_ns;
	int rc = act_ask(verb, args, "GET", PROFILE_PATH, NULL, &then);
	if (rc != VERB_OK)
		return rc;
	if (json_is_array(json_object_get(then, "stages"))) {
		wait_until(until_ns);
		client_renew();
		rc = act_ask(verb, args, "GET", PROFILE_PATH, NULL, &now);
	}
	if (rc == VERB_OK)
		doc = profile_window(then, now);
	json_decref(then);
	json_decref(now);
	if (rc != VERB_OK)
		return rc;
	if (doc)
		return show(args, doc);
	plain_print(stderr, "weir profile: the server has sent no profile\n");
	return VERB_UNREACHABLE;
}
