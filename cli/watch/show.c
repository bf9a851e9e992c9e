/* SPDX-License-Identifier: MIT */
/* show and queue: show one stage or core group of a running server, and the oldest events in a
 * queue. */
#include "cli/act.h"
#include "cli/client/plain.h"
#include "core_groups.h"
#include "stage_state.h"
#include "thread_time.h"

#include <string.h>

static long long whole(const json_t *map, const char *key)
{
	return json_integer_value(json_object_get(map, key));
}

/* ---- show ---- */

static long long sum_of(const json_t *map)
{
	long long n = 0;
	json_t *all = json_deep_copy(map);

	for (void *it = json_object_iter(all); it; it = json_object_iter_next(all, it))
		n += json_integer_value(json_object_iter_value(it));
	json_decref(all);
	return n;
}

static void print_width(const json_t *stage)
{
	const json_t *width = json_object_get(stage, "width");
	char text[200];

	stage_width_text(stage, text, sizeof(text));
	if (!text[0])
		return;
	plain_print(stdout, "width      %s (min %lld, max %lld)", text, whole(width, "min"),
	    whole(width, "max"));
	if (whole(width, "refused_total") > 0)
		plain_print(stdout, "; the other side, for which the stage waits, has refused %lld",
		    whole(width, "refused_total"));
	putchar('\n');
}

/* Print what has become of the events that the stage has made. */
static void print_children(const json_t *stage)
{
	const json_t *children = json_object_get(stage, "children");

	if (whole(children, "spawned_total") == 0 && whole(stage, "awaiting") == 0)
		return;
	plain_print(stdout,
	    "children   %lld made: %lld joined, %lld orphaned, %lld cancelled, %lld in flight; "
	    "%lld "
	    "of the events in flight wait for theirs (at most %lld each)\n",
	    whole(children, "spawned_total"), whole(children, "joined_total"),
	    whole(children, "orphaned_total"), whole(children, "cancelled_total"),
	    whole(children, "in_flight"), whole(stage, "awaiting"), whole(children, "limit"));
	if (whole(children, "refused_total") > 0)
		plain_print(stdout,
		    "           %lld of the orphaned were refused to their parent\n",
		    whole(children, "refused_total"));
}

static void print_head(const json_t *stage)
{
	const json_t *queue = json_object_get(stage, "queue");
	const json_t *threads = json_object_get(stage, "threads");
	const json_t *admission = json_object_get(stage, "admission");
	char age[32];

	plain_print(stdout, "%s  %s (%s)  %s\n", act_text(stage, "name"), act_text(stage, "use"),
	    act_text(stage, "placement"), act_text(stage, "state"));
	if (*act_text(stage, "trouble"))
		plain_print(stdout, "trouble    %s\n", act_text(stage, "trouble"));
	if (whole(queue, "limit") > 0)
		plain_print(stdout, "queue      %lld of %lld, the oldest has waited %s\n",
		    whole(queue, "length"), whole(queue, "limit"),
		    act_duration(
			age, json_number_value(json_object_get(queue, "oldest_wait_seconds"))));
	if (whole(threads, "now") > 0)
		plain_print(stdout, "threads    %lld busy of %lld (min %lld, max %lld)\n",
		    whole(threads, "busy"), whole(threads, "now"), whole(threads, "min"),
		    whole(threads, "max"));
	thread_time_print(stage);
	print_width(stage);
	plain_print(stdout, "admission  %s, %s%s%s\n", act_text(admission, "policy"),
	    act_text(admission, "mode"), *act_text(admission, "why") ? ": " : "",
	    act_text(admission, "why"));
	plain_print(stdout, "in flight  %lld", whole(stage, "in_flight"));
	if (whole(stage, "held") > 0)
		plain_print(stdout, ", %lld of them held", whole(stage, "held"));
	putchar('\n');
	print_children(stage);
	thread_stuck_print(stage, "stuck      ", true);
}

static double p99(const json_t *class, const char *which)
{
	const json_t *v = json_object_get(json_object_get(class, which), "p99");

	return json_is_number(v) ? json_number_value(v) : -1;
}

static void print_classes(const json_t *classes)
{
	char wait[32], service[32];

	plain_print(stdout, "\n%-16s %10s %10s %9s %9s %9s %11s\n", "CLASS", "OFFERED", "COMPLETED",
	    "SHED", "FAILED", "WAIT P99", "SERVICE P99");
	for (size_t i = 0; i < json_array_size(classes); i++) {
		const json_t *c = json_array_get(classes, i);
		plain_print(stdout, "%-16s %10lld %10lld %9lld %9lld %9s %11s\n",
		    act_text(c, "name"), whole(c, "offered_total"), whole(c, "completed_total"),
		    sum_of(json_object_get(c, "shed_total")), whole(c, "failed_total"),
		    act_duration(wait, p99(c, "wait_seconds")),
		    act_duration(service, p99(c, "service_seconds")));
	}
}

static void print_knobs(const json_t *knobs)
{
	char at[32];

	plain_print(stdout, "\n%-24s %-16s %-16s %s\n", "LIVE KNOB", "EFFECTIVE", "CONFIGURED",
	    "OVERRIDDEN");
	for (size_t i = 0; i < json_array_size(knobs); i++) {
		const json_t *k = json_array_get(knobs, i);
		const json_t *expires = json_object_get(k, "expires_at");
		if (!json_is_true(json_object_get(k, "live")))
			continue;
		plain_print(stdout, "%-24s %-16.40s %-16.40s", act_text(k, "name"),
		    act_text(k, "effective"), act_text(k, "configured"));
		if (json_is_number(expires))
			plain_print(stdout, " until %s%s", act_time(at, json_number_value(expires)),
			    json_is_true(json_object_get(k, "stuck"))
				? ", but the value to return to contradicts others"
				: "");
		else if (json_is_string(json_object_get(k, "overridden")))
			plain_print(stdout, " permanently");
		putchar('\n');
	}
}

/* Add what is known of the cores to the knobs of the group, if it is a core group. */
static int add_cores(
    const struct verb *verb, const struct verb_args *args, json_t *group, double *up_s)
{
	json_t *doc;
	int rc = act_ask(verb, args, "GET", "/api/v1/stages", NULL, &doc);

	if (rc != VERB_OK)
		return rc;
	const json_t *cores = core_group_find(doc, args->operand[0]);
	if (cores)
		json_object_update_new(group, json_deep_copy(cores));
	*up_s = json_number_value(json_object_get(doc, "uptime_seconds"));
	json_decref(doc);
	return VERB_OK;
}

/* The threads of a stage in a core group are its cores. */
static void print_cores(const json_t *stage)
{
	long long n = whole(json_object_get(stage, "threads"), "target");

	core_group_table(json_object_get(stage, "cores"), n > 0 ? (size_t)n : 0);
}

/* The operand is the name of a group. */
static int show_group(const struct verb *verb, const struct verb_args *args)
{
	char path[ACT_PATH_MAX], line[400];
	json_t *group;
	double up_s;

	snprintf(path, sizeof(path), "/api/v1/groups/%s/knobs", args->operand[0]);
	int rc = act_ask(verb, args, "GET", path, NULL, &group);
	if (rc != VERB_OK)
		return rc;
	rc = add_cores(verb, args, group, &up_s);
	if (rc != VERB_OK) {
		json_decref(group);
		return rc;
	}
	if (args->json)
		return act_print(group);
	if (json_object_get(group, "cores")) {
		core_group_line(NULL, group, up_s, line, sizeof(line));
		plain_print(stdout, "group %s\n", line);
		core_group_table(json_object_get(group, "cores"), core_group_cores(group));
	} else {
		plain_print(stdout, "group %s\n", args->operand[0]);
	}
	print_knobs(json_object_get(group, "knobs"));
	json_decref(group);
	return VERB_OK;
}

/* ---- origins of http.client ---- */

/* Add the rows of the stage as `origins`. A server that has no such call has none. */
static int add_origins(const struct verb *verb, const struct verb_args *args, json_t *stage)
{
	char path[ACT_PATH_MAX];
	json_t *doc;

	if (strcmp(act_text(stage, "use"), "http.client") != 0)
		return VERB_OK;
	snprintf(path, sizeof(path), "/api/v1/stages/%s/rows", args->operand[0]);
	int rc = act_ask(verb, args, "GET", path, NULL, &doc);
	if (rc != VERB_OK)
		return rc;
	json_object_set(stage, "origins", json_object_get(doc, "rows"));
	json_decref(doc);
	return VERB_OK;
}

static void print_origins(const json_t *list)
{
	char p50[32], p99[32];

	if (json_array_size(list) == 0)
		return;
	plain_print(stdout, "\n%-24s %-24s %-5s %6s %6s %10s %9s %9s %8s %s\n", "ORIGIN", "ADDRESS",
	    "STATE", "BUSY", "OPEN", "REQUESTS", "BYTE P50", "BYTE P99", "FAILED", "LAST FAILURE");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *o = json_array_get(list, i);
		plain_print(stdout, "%-24s %-24s %-5s %6.0f %6.0f %10.0f %9s %9s %8.0f %s\n",
		    act_text(o, "origin"), act_text(o, "address"), act_text(o, "state"),
		    json_number_value(json_object_get(o, "busy")),
		    json_number_value(json_object_get(o, "open_connections")),
		    json_number_value(json_object_get(o, "requests_total")),
		    act_duration(p50, json_number_value(json_object_get(o, "ttfb_p50_seconds"))),
		    act_duration(p99, json_number_value(json_object_get(o, "ttfb_p99_seconds"))),
		    json_number_value(json_object_get(o, "failures_total")),
		    act_text(o, "last_failure"));
	}
}

/* ---- show ---- */

int verb_show(const struct verb *verb, const struct verb_args *args)
{
	char path[ACT_PATH_MAX];
	json_t *stage, *knobs;

	if (!act_name_fits(verb, args->operand[0]))
		return VERB_USAGE;
	int rc = act_ask(verb, args, "GET", "/api/v1/graph", NULL, &stage);
	if (rc != VERB_OK)
		return rc;
	bool group = act_is_group(stage, args->operand[0]);
	json_decref(stage);
	if (group)
		return show_group(verb, args);
	/* first, since its message for an unknown name mentions groups */
	snprintf(path, sizeof(path), "/api/v1/stages/%s/knobs", args->operand[0]);
	rc = act_ask(verb, args, "GET", path, NULL, &knobs);
	if (rc != VERB_OK)
		return rc;
	*strrchr(path, '/') = '\0';
	rc = act_ask(verb, args, "GET", path, NULL, &stage);
	if (rc != VERB_OK) {
		json_decref(knobs);
		return rc;
	}
	json_object_update(stage, knobs);
	json_decref(knobs);
	rc = add_origins(verb, args, stage);
	if (rc != VERB_OK) {
		json_decref(stage);
		return rc;
	}
	if (args->json)
		return act_print(stage);
	print_head(stage);
	if (json_array_size(json_object_get(stage, "cores")) > 0)
		print_cores(stage);
	print_classes(json_object_get(stage, "classes"));
	print_origins(json_object_get(stage, "origins"));
	print_knobs(json_object_get(stage, "knobs"));
	json_decref(stage);
	return VERB_OK;
}

/* ---- queue ---- */

static void print_queued(const json_t *list)
{
	char age[32], left[32];

	plain_print(stdout, "%10s %-16s %10s %s\n", "WAITS", "CLASS", "TIME LEFT", "TYPE");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *q = json_array_get(list, i);
		const json_t *l = json_object_get(q, "deadline_left");
		double seconds = json_is_number(l) ? json_number_value(l) : -1;
		const char *none = json_is_number(l) ? "over" : "-";
		plain_print(stdout, "%10s %-16s %10s %s\n",
		    act_duration(age, json_number_value(json_object_get(q, "age"))),
		    act_text(q, "class"), seconds < 0 ? none : act_duration(left, seconds),
		    act_text(q, "type"));
	}
}

int verb_queue(const struct verb *verb, const struct verb_args *args)
{
	char path[ACT_PATH_MAX];
	json_t *doc;
	int n = 20;

	if (!act_name_fits(verb, args->operand[0]) || !act_count(verb, args, 100, &n))
		return VERB_USAGE;
	snprintf(path, sizeof(path), "/api/v1/stages/%s/queue?n=%d", args->operand[0], n);
	int rc = act_ask(verb, args, "GET", path, NULL, &doc);
	if (rc != VERB_OK || args->json)
		return rc != VERB_OK ? rc : act_print(doc);
	plain_print(stdout, "%lld waiting at %s\n", whole(doc, "length"), args->operand[0]);
	if (json_array_size(json_object_get(doc, "oldest")) > 0)
		print_queued(json_object_get(doc, "oldest"));
	json_decref(doc);
	return VERB_OK;
}
