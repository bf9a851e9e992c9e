/* SPDX-License-Identifier: MIT */
/*
 * trace: show the slowest requests of the last two minutes. Each stage of a request is one line:
 * its wait, its service time, and both as a bar on the time axis of the request. A stage at which it
 * waited for its children has another line for that time, and the stages of those children that
 * ended last follow. A last line shows
 * the time that the request spent at no stage: before the first stage, between two stages, and
 * after the last one until the response was returned. With it, the lines add up to the duration of
 * the request.
 */
#include "cli/act.h"
#include "cli/client/plain.h"

#include <string.h>

/* Width of a bar. A whole line fits into 80 columns. */
#define BAR 32

static double number(const json_t *map, const char *key)
{
	return json_number_value(json_object_get(map, key));
}

static int column(double at, double took)
{
	double c = took > 0 ? at / took * BAR : 0;

	return c < 0 ? 0 : c > BAR ? BAR : (int)(c + 0.5);
}

/* Draw the bar of a span: blanks before the arrival, '.' for the wait, and at least one '#' for the
 * service. */
static void draw(char bar[BAR + 1], const json_t *span, double took)
{
	double after = number(span, "after"), begun = after + number(span, "wait");
	int from = column(after, took), start = column(begun, took);
	int end = column(begun + number(span, "service"), took);

	start = start < BAR ? start : BAR - 1;
	end = end > start ? end : start + 1;
	memset(bar, ' ', BAR);
	for (int i = from; i < start; i++)
		bar[i] = '.';
	memset(bar + start, '#', (size_t)(end - start));
	bar[BAR] = '\0';
}

/* Print a span, and the time for which the request then waited for children. */
static void print_span(const char *name, const json_t *span, double took)
{
	char bar[BAR + 1], text[2][32];
	double awaiting = number(span, "awaiting");

	draw(bar, span, took);
	plain_print(stdout, "  %-16.16s %8s %8s |%s|\n", name,
	    act_duration(text[0], number(span, "wait")),
	    act_duration(text[1], number(span, "service")), bar);
	if (awaiting <= 0)
		return;
	double from = number(span, "after") + number(span, "wait") + number(span, "service");
	int first = column(from, took), end = column(from + awaiting, took);
	memset(bar, ' ', BAR);
	memset(bar + first, '~', (size_t)(end - first));
	plain_print(stdout, "  %-16s %8s %8s |%s|\n", "(its children)",
	    act_duration(text[0], awaiting), "", bar);
}

/* Print the stages of the children that ended last, on the time axis of the request. */
static void print_children(const json_t *request, double took)
{
	const json_t *spans = json_object_get(request, "child_spans");
	char name[64];

	for (size_t i = 0; i < json_array_size(spans); i++) {
		const json_t *span = json_array_get(spans, i);
		snprintf(name, sizeof(name), " child %lld %s",
		    (long long)json_integer_value(json_object_get(span, "child")),
		    act_text(span, "stage"));
		print_span(name, span, took);
	}
	long long all = json_integer_value(json_object_get(request, "children"));
	if (all > 0)
		plain_print(stdout, "  it awaited %lld child%s last; of %s shown\n", all,
		    all == 1 ? "" : "ren",
		    json_array_size(spans) ? "these, those that ended last are" : "these, none is");
}

/* Return the time within `took` (seconds) that no span covers, and draw it as '-' in `bar`. The
 * spans must be ordered by their start. */
static double elsewhere(char bar[BAR + 1], const json_t *spans, double took)
{
	double at = 0, rest = 0;

	memset(bar, ' ', BAR);
	bar[BAR] = '\0';
	for (size_t i = 0; i <= json_array_size(spans); i++) {
		const json_t *span = json_array_get(spans, i); /* NULL after the last one */
		double begin = span ? number(span, "after") : took;
		if (begin > at) {
			int from = column(at, took);
			memset(bar + from, '-', (size_t)(column(begin, took) - from));
			rest += begin - at;
		}
		double end = begin + number(span, "wait") + number(span, "service") +
			     number(span, "awaiting");
		at = end > at ? end : at;
	}
	return rest;
}

static void print_request(const json_t *request)
{
	const json_t *spans = json_object_get(request, "spans");
	double took = number(request, "took");
	char at[32], text[3][32], bar[BAR + 1];

	const char *trace = act_text(request, "trace");
	plain_print(stdout, "%8s  %s  (%s, %s, %s%s%s)\n", act_duration(text[0], took),
	    act_text(request, "path"), act_text(request, "class"), act_text(request, "outcome"),
	    act_time(at, number(request, "at")), *trace ? ", trace " : "", trace);
	for (size_t i = 0; i < json_array_size(spans); i++) {
		const json_t *span = json_array_get(spans, i);
		print_span(act_text(span, "stage"), span, took);
	}
	print_children(request, took);
	double rest = elsewhere(bar, spans, took);
	/* Print this line only if the time at no stage is longer than half a column, so that its
	 * bar is visible. */
	if (json_array_size(spans) > 0 && rest * BAR * 2 > took)
		plain_print(stdout, "  %-16s %8s %8s |%s|\n", "(at no stage)", "",
		    act_duration(text[1], rest), bar);
	long long more = json_integer_value(json_object_get(request, "hops")) -
			 (long long)json_array_size(spans);
	if (more > 0)
		plain_print(stdout,
		    "  stages not shown: %lld; their time is included in that of the last stage "
		    "shown\n",
		    more);
}

int verb_trace(const struct verb *verb, const struct verb_args *args)
{
	char path[ACT_PATH_MAX];
	json_t *doc;
	int n = 10;

	if (!act_count(verb, args, 500, &n))
		return VERB_USAGE;
	snprintf(path, sizeof(path), "/api/v1/requests/slowest?n=%d", n);
	int rc = act_ask(verb, args, "GET", path, NULL, &doc);
	if (rc != VERB_OK || args->json)
		return rc != VERB_OK ? rc : act_print(doc);
	const json_t *list = json_object_get(doc, "requests");
	if (json_array_size(list) == 0)
		puts("no request ended in the last two minutes");
	else
		plain_print(stdout, "  %-16s %8s %8s\n", "STAGE", "WAIT", "SERVICE");
	for (size_t i = 0; i < json_array_size(list); i++)
		print_request(json_array_get(list, i));
	json_decref(doc);
	return VERB_OK;
}
