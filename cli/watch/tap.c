/* SPDX-License-Identifier: MIT */
/*
 * tap: show requests that pass through a stage. Each request is printed as one line when it ends:
 * its duration, its outcome, its wait and service time at each stage, the time for which it waited for children there, and its
 * trace. The server is
 * polled four times a second. It stores at most 256 requests between two polls; the number of
 * requests that were missed is printed at the end. The verb does not close the tap, since the
 * server closes taps that are no longer read.
 */
#include "cli/act.h"
#include "cli/client/client.h"
#include "cli/client/plain.h"

#include <ctype.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include <weir/clock.h>
#include <weir/knob.h>

#define ASK_NS 250000000LL

/* Default duration, so that a tap is not left running by mistake. 60 s is a guess. */
#define FOR_DEFAULT_NS 60000000000LL

static const struct weir_knob for_row = {
    .name = "for", .type = WEIR_KNOB_DURATION, .min = 1e8, .max = 3600e9};

static volatile sig_atomic_t tap_ended;

static void on_signal(int number)
{
	(void)number;
	tap_ended = 1;
}

static double number(const json_t *map, const char *key)
{
	return json_number_value(json_object_get(map, key));
}

/* Print a request and its stages, each with its wait and service time: "work 67ms+19ms". */
static void print_line(const json_t *request)
{
	const json_t *spans = json_object_get(request, "spans");
	char at[32], text[2][32];

	plain_print(stdout, "%s %8s %-10s %s:", act_time(at, number(request, "at")),
	    act_duration(text[0], number(request, "took")), act_text(request, "outcome"),
	    act_text(request, "class"));
	for (size_t i = 0; i < json_array_size(spans); i++) {
		const json_t *span = json_array_get(spans, i);
		plain_print(stdout, " %s %s+%s", act_text(span, "stage"),
		    act_duration(text[0], number(span, "wait")),
		    act_duration(text[1], number(span, "service")));
		if (number(span, "awaiting") > 0)
			plain_print(stdout, "+%s for children",
			    act_duration(text[0], number(span, "awaiting")));
	}
	plain_print(stdout, "%s%s  %s  %s\n", json_array_size(spans) ? "" : " refused by ",
	    json_array_size(spans) ? "" : act_text(request, "end"), act_text(request, "path"),
	    act_text(request, "trace"));
}

static int print_requests(const json_t *doc, bool json, int most)
{
	const json_t *list = json_object_get(doc, "requests");
	int n = 0;

	for (size_t i = 0; i < json_array_size(list) && n < most; i++, n++) {
		if (json) {
			act_print_json(
			    json_array_get(list, i), JSON_COMPACT | JSON_REAL_PRECISION(15));
		} else {
			print_line(json_array_get(list, i));
		}
	}
	fflush(stdout);
	return n;
}

/* Append a parameter such as "&slow=100ms" to `path`. The value may only contain letters, digits
 * and characters that need no encoding in a query. If it contains others or is too long, prints the
 * reason and returns false. */
static bool add(
    const struct verb *verb, char path[ACT_PATH_MAX], const char *key, const char *value)
{
	size_t n = strlen(path);

	if (!value)
		return true;
	for (const char *p = value; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("_.-", *p)) {
			verb_misused(verb, "--%s does not take '%s'", key, value);
			return false;
		}
	int put = snprintf(path + n, ACT_PATH_MAX - n, "&%s=%s", key, value);
	if (put > 0 && (size_t)put < ACT_PATH_MAX - n - 32) /* leave space for "after" */
		return true;
	verb_misused(verb, "--%s is too long", key);
	return false;
}

/* Poll until `until_ns` has passed, `most` requests have been shown or a signal arrives. */
static int follow(const struct verb *verb, const struct verb_args *args, const char *path,
    int64_t until_ns, int most)
{
	const struct timespec pause = {.tv_nsec = ASK_NS};
	long long after = 0, dropped = 0, first = -1;
	int shown = 0, rc = VERB_OK;

	while (!tap_ended && shown < most) {
		char target[ACT_PATH_MAX + 32];
		json_t *doc;
		snprintf(target, sizeof(target), "%s&after=%lld", path, after);
		client_renew();
		rc = act_ask(verb, args, "GET", target, NULL, &doc);
		if (rc != VERB_OK)
			break;
		shown += print_requests(doc, args->json, most - shown);
		after = json_integer_value(json_object_get(doc, "after"));
		dropped = json_integer_value(json_object_get(doc, "dropped"));
		first = first < 0 ? dropped : first;
		json_decref(doc);
		if (weir_clock_ns(CLOCK_MONOTONIC) >= until_ns)
			break;
		if (shown < most)
			nanosleep(&pause, NULL);
	}
	if (rc == VERB_OK && dropped > first)
		plain_print(stderr,
		    "weir tap: %lld more requests arrived faster than they could be shown\n",
		    dropped - first);
	return rc;
}

int verb_tap(const struct verb *verb, const struct verb_args *args)
{
	struct sigaction act = {.sa_handler = on_signal};
	int64_t for_ns = FOR_DEFAULT_NS;
	char path[ACT_PATH_MAX], why[160];
	int most = INT32_MAX;

	if (!act_name_fits(verb, args->operand[0]) || !act_count(verb, args, 1000000, &most))
		return VERB_USAGE;
	if (args->for_ && weir_knob_parse(&for_row, args->for_, &for_ns, why, sizeof(why)) != 0)
		return verb_misused(verb, "--for: %s", why);
	int n = snprintf(path, sizeof(path), "/api/v1/stages/%s/tap?n=256", args->operand[0]);
	if (n < 0 || (size_t)n >= sizeof(path) - 32)
		return verb_misused(verb, "'%s' is too long", args->operand[0]);
	if (!add(verb, path, "slow", args->slow) || !add(verb, path, "class", args->class_) ||
	    !add(verb, path, "outcome", args->outcome))
		return VERB_USAGE;
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	return follow(verb, args, path, weir_clock_ns(CLOCK_MONOTONIC) + for_ns, most);
}
