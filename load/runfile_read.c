/* SPDX-License-Identifier: MIT */
/*
 * Reads and validates run files, which are untrusted: every member that a report reads must exist,
 * have the right type, and be within bounds that keep later arithmetic exact.
 *
 * Each object described in bench/RUNFILE.md has a table of its members. The file is checked against
 * the tables recursively. The check stops at the first violation and reports its path
 * ("phases[3].classes[0].offered"). Members that are not in the tables are ignored, so later
 * versions may add members. Of the server's data, only the times and the sizes of lists are
 * checked; the report reads the rest defensively.
 */
#include "load/runfile.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "load/plan.h"

/* Largest accepted values, low enough for their sums to be exact in 64 bits. All are guesses. */
#define RUNFILE_COUNT_MAX  1000000000000000LL
#define RUNFILE_TIME_MAX_S 1e8
#define RUNFILE_RATE_MAX   1e12
/* Maximum number of rows, one per second. A week is a guess. */
#define RUNFILE_SECONDS_MAX 604800

enum member_kind { M_TEXT, M_COUNT, M_TIME, M_NUMBER, M_TRUTH, M_OBJECT, M_LIST };

struct member {
	const char *name; /* NULL ends a table */
	enum member_kind kind;
	bool or_null;  /* may be null */
	bool optional; /* may be absent */
	/* members of the object, or of each object in the list; NULL if they are not checked */
	const struct member *inside;
	int min, max; /* number of entries of a list */
};

static const char *const member_kind_text[] = {"a text", "a whole number of at least 0",
    "a time in seconds of at least 0", "a number of at least 0", "true or false", "an object",
    "a list"};

static const struct member outcome_members[] = {
#define RUNFILE_OUTCOME(id, word, meaning) {.name = word, .kind = M_COUNT},
    LOAD_OUTCOMES(RUNFILE_OUTCOME)
#undef RUNFILE_OUTCOME
	{0}};

static const struct member error_members[] = {
#define RUNFILE_ERROR(id, word, meaning) {.name = word, .kind = M_COUNT, .optional = true},
    LOAD_ERRORS(RUNFILE_ERROR)
#undef RUNFILE_ERROR
	{0}};

static const struct member histogram_members[] = {{.name = "count", .kind = M_COUNT},
    {.name = "mean_s", .kind = M_TIME}, {.name = "min_s", .kind = M_TIME},
    {.name = "max_s", .kind = M_TIME}, {.name = "buckets", .kind = M_LIST, .max = HDR_BUCKETS},
    {0}};

static const struct member latency_members[] = {
#define RUNFILE_LATENCY(id, word, meaning)                                                         \
	{.name = word, .kind = M_OBJECT, .optional = true, .inside = histogram_members},
    LOAD_OUTCOMES(RUNFILE_LATENCY)
#undef RUNFILE_LATENCY
	{0}};

static const struct member class_members[] = {{.name = "name", .kind = M_TEXT},
    {.name = "offered", .kind = M_COUNT}, {.name = "attempts", .kind = M_COUNT},
    {.name = "retries", .kind = M_COUNT}, {.name = "bytes_in", .kind = M_COUNT},
    {.name = "bytes_out", .kind = M_COUNT},
    {.name = "outcomes", .kind = M_OBJECT, .inside = outcome_members},
    {.name = "errors", .kind = M_OBJECT, .inside = error_members},
    {.name = "latency", .kind = M_OBJECT, .inside = latency_members}, {0}};

static const struct member lag_members[] = {{.name = "count", .kind = M_COUNT},
    {.name = "p50_s", .kind = M_TIME}, {.name = "p99_s", .kind = M_TIME},
    {.name = "max_s", .kind = M_TIME}, {0}};

static const struct member phase_members[] = {{.name = "name", .kind = M_TEXT},
    {.name = "from_per_s", .kind = M_NUMBER}, {.name = "to_per_s", .kind = M_NUMBER},
    {.name = "for_s", .kind = M_TIME}, {.name = "multiple", .kind = M_NUMBER},
    {.name = "round", .kind = M_COUNT}, {.name = "warmup", .kind = M_TRUTH},
    {.name = "took_s", .kind = M_TIME}, {.name = "complete", .kind = M_TRUTH},
    {.name = "late", .kind = M_TRUTH, .optional = true},
    {.name = "trial", .kind = M_TRUTH, .optional = true},
    {.name = "lag", .kind = M_OBJECT, .inside = lag_members},
    {.name = "classes", .kind = M_LIST, .inside = class_members, .min = 1, .max = LOAD_CLASSES_MAX},
    {0}};

static const struct member second_part_members[] = {{.name = "offered", .kind = M_COUNT},
    {.name = "outcomes", .kind = M_OBJECT, .inside = outcome_members},
    {.name = "retries", .kind = M_COUNT}, {.name = "p50_s", .kind = M_TIME},
    {.name = "p99_s", .kind = M_TIME}, {0}};

static const struct member second_members[] = {{.name = "t_s", .kind = M_TIME},
    {.name = "phase", .kind = M_COUNT}, {.name = "in_flight", .kind = M_COUNT},
    {.name = "connections", .kind = M_COUNT}, {.name = "lag_max_s", .kind = M_TIME},
    {.name = "all", .kind = M_OBJECT, .inside = second_part_members},
    {.name = "classes",
	.kind = M_LIST,
	.inside = second_part_members,
	.min = 1,
	.max = LOAD_CLASSES_MAX},
    {0}};

static const struct member plan_class_members[] = {
    {.name = "name", .kind = M_TEXT}, {.name = "weight", .kind = M_NUMBER}, {0}};

static const struct member plan_members[] = {{.name = "url", .kind = M_TEXT},
    {.name = "arrivals", .kind = M_TEXT},
    {.name = "classes",
	.kind = M_LIST,
	.inside = plan_class_members,
	.min = 1,
	.max = LOAD_CLASSES_MAX},
    {.name = "connections", .kind = M_COUNT}, {.name = "threads", .kind = M_COUNT},
    {.name = "timeout_s", .kind = M_TIME}, {.name = "retries", .kind = M_COUNT},
    {.name = "lag_limit_s", .kind = M_TIME, .optional = true}, {0}};

static const struct member each_members[] = {{.name = "at_s", .kind = M_TIME},
    {.name = "uptime_seconds", .kind = M_TIME, .optional = true},
    {.name = "process_cpu_seconds", .kind = M_TIME, .optional = true},
    {.name = "stages", .kind = M_LIST, .max = 1024}, {0}};

static const struct member server_members[] = {
    {.name = "start", .kind = M_OBJECT, .optional = true, .or_null = true},
    {.name = "end", .kind = M_OBJECT, .optional = true, .or_null = true},
    {.name = "each",
	.kind = M_LIST,
	.inside = each_members,
	.optional = true,
	.max = RUNFILE_SECONDS_MAX},
    {.name = "decisions", .kind = M_LIST, .optional = true, .max = 100000}, {0}};

static const struct member tool_members[] = {{.name = "version", .kind = M_TEXT},
    {.name = "commit", .kind = M_TEXT}, {.name = "flags", .kind = M_TEXT}, {0}};

static const struct member host_members[] = {{.name = "cpu", .kind = M_TEXT},
    {.name = "cores", .kind = M_COUNT}, {.name = "kernel", .kind = M_TEXT}, {0}};

static const struct member generator_members[] = {{.name = "cpu_user_s", .kind = M_TIME},
    {.name = "cpu_system_s", .kind = M_TIME}, {.name = "connects", .kind = M_COUNT},
    {.name = "realtime", .kind = M_TRUTH, .optional = true}, {0}};

static const struct member objective_members[] = {
    {.name = "text", .kind = M_TEXT}, {.name = "met", .kind = M_TRUTH, .or_null = true}, {0}};

static const struct member run_members[] = {
    {.name = "tool", .kind = M_OBJECT, .inside = tool_members},
    {.name = "command", .kind = M_LIST, .max = 4096}, {.name = "label", .kind = M_TEXT},
    {.name = "started", .kind = M_TEXT}, {.name = "seed", .kind = M_TEXT},
    {.name = "mode", .kind = M_TEXT}, {.name = "host", .kind = M_OBJECT, .inside = host_members},
    {.name = "plan", .kind = M_OBJECT, .inside = plan_members},
    {.name = "void", .kind = M_TEXT, .or_null = true}, {.name = "stopped", .kind = M_TRUTH},
    {.name = "took_s", .kind = M_TIME},
    {.name = "capacity_per_s", .kind = M_NUMBER, .or_null = true},
    {.name = "capacity_note", .kind = M_TEXT},
    {.name = "objective", .kind = M_OBJECT, .optional = true, .inside = objective_members},
    {.name = "generator", .kind = M_OBJECT, .inside = generator_members},
    {.name = "phases", .kind = M_LIST, .inside = phase_members, .min = 1, .max = LOAD_PHASES_MAX},
    {.name = "seconds", .kind = M_LIST, .inside = second_members, .max = RUNFILE_SECONDS_MAX},
    {.name = "server", .kind = M_OBJECT, .or_null = true, .inside = server_members}, {0}};

/* Current position of the check, and the destination of error messages. */
struct check {
	const char *file;
	struct weir_err *err;
	char path[160];
};

static int check_fail(struct check *c, const char *fmt, ...) WEIR_PRINTF(2, 3);

static int check_fail(struct check *c, const char *fmt, ...)
{
	char what[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	c->err->code = WEIR_EINVAL;
	snprintf(c->err->file, sizeof(c->err->file), "%s", c->file);
	snprintf(c->err->text, sizeof(c->err->text), *c->path ? "%.90s: %s %s" : "%.90s%s %s",
	    c->file, c->path, what);
	return WEIR_EINVAL;
}

/* Append a member name or an index to the path. Returns the previous length of the path, for
 * check_leave. */
static size_t check_enter(struct check *c, const char *name, size_t index)
{
	size_t n = strlen(c->path);

	if (name)
		snprintf(c->path + n, sizeof(c->path) - n, "%s%s", n ? "." : "", name);
	else
		snprintf(c->path + n, sizeof(c->path) - n, "[%zu]", index);
	return n;
}

static void check_leave(struct check *c, size_t n)
{
	c->path[n] = '\0';
}

static bool check_number(const json_t *v, double max)
{
	return json_is_number(v) && json_number_value(v) >= 0 && json_number_value(v) <= max;
}

static bool check_kind(const struct member *m, const json_t *v)
{
	switch (m->kind) {
	case M_TEXT:
		return json_is_string(v);
	case M_COUNT:
		return json_is_integer(v) && json_integer_value(v) >= 0 &&
		       json_integer_value(v) <= RUNFILE_COUNT_MAX;
	case M_TIME:
		return check_number(v, RUNFILE_TIME_MAX_S);
	case M_NUMBER:
		return check_number(v, RUNFILE_RATE_MAX);
	case M_TRUTH:
		return json_is_boolean(v);
	case M_OBJECT:
		return json_is_object(v);
	default:
		return json_is_array(v);
	}
}

static int check_object(struct check *c, const struct member *table, const json_t *object);

static int check_list(struct check *c, const struct member *m, const json_t *list)
{
	size_t n = json_array_size(list);
	int rc = 0;

	if (n < (size_t)m->min || n > (size_t)m->max)
		return check_fail(c, "has %zu entries; %d to %d are possible", n, m->min, m->max);
	for (size_t i = 0; m->inside && rc == 0 && i < n; i++) {
		size_t before = check_enter(c, NULL, i);
		const json_t *entry = json_array_get(list, i);
		rc = json_is_object(entry) ? check_object(c, m->inside, entry)
					   : check_fail(c, "is not an object");
		check_leave(c, before);
	}
	return rc;
}

static int check_member(struct check *c, const struct member *m, const json_t *v)
{
	if (!v)
		return m->optional ? 0 : check_fail(c, "is missing");
	if (m->or_null && json_is_null(v))
		return 0;
	if (!check_kind(m, v))
		return check_fail(c, "is not %s", member_kind_text[m->kind]);
	if (m->kind == M_LIST)
		return check_list(c, m, v);
	return m->kind == M_OBJECT && m->inside ? check_object(c, m->inside, v) : 0;
}

static int check_object(struct check *c, const struct member *table, const json_t *object)
{
	int rc = 0;

	for (const struct member *m = table; rc == 0 && m->name; m++) {
		size_t before = check_enter(c, m->name, 0);
		rc = check_member(c, m, json_object_get(object, m->name));
		check_leave(c, before);
	}
	return rc;
}

/* ---- checks across members ---- */

/* Check the histograms of one class for consistency. */
static int check_histograms(struct check *c, const json_t *latency)
{
	struct hdr h;

	for (int i = 0; i < LOAD_N_OUTCOMES; i++) {
		const json_t *one = json_object_get(latency, load_outcome_name[i]);
		size_t before = check_enter(c, load_outcome_name[i], 0);
		if (one && runfile_hdr(one, &h) != 0)
			return check_fail(c, "has buckets that do not add up to its count");
		check_leave(c, before);
	}
	return 0;
}

static int check_phase_classes(struct check *c, const json_t *plan_classes, const json_t *classes)
{
	size_t n = json_array_size(plan_classes), before;
	int rc = 0;

	if (json_array_size(classes) != n)
		return check_fail(c, "does not have the %zu classes of the plan", n);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		const json_t *class = json_array_get(classes, i);
		before = check_enter(c, NULL, i);
		if (!json_equal(json_object_get(class, "name"),
			json_object_get(json_array_get(plan_classes, i), "name")))
			return check_fail(c, "is not the class at this position in the plan");
		check_enter(c, "latency", 0);
		rc = check_histograms(c, json_object_get(class, "latency"));
		if (rc == 0)
			check_leave(c, before);
	}
	return rc;
}

static int check_phases(struct check *c, const json_t *plan_classes, const json_t *phases)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < json_array_size(phases); i++) {
		snprintf(c->path, sizeof(c->path), "phases[%zu].classes", i);
		rc = check_phase_classes(
		    c, plan_classes, json_object_get(json_array_get(phases, i), "classes"));
	}
	return rc;
}

static int check_seconds(
    struct check *c, const json_t *plan_classes, const json_t *phases, const json_t *seconds)
{
	double last_s = 0;

	for (size_t i = 0; i < json_array_size(seconds); i++) {
		const json_t *row = json_array_get(seconds, i);
		double at_s = json_number_value(json_object_get(row, "t_s"));
		snprintf(c->path, sizeof(c->path), "seconds[%zu]", i);
		if ((size_t)json_integer_value(json_object_get(row, "phase")) >=
		    json_array_size(phases))
			return check_fail(c, "belongs to no phase");
		if (json_array_size(json_object_get(row, "classes")) !=
		    json_array_size(plan_classes))
			return check_fail(c, "does not have as many classes as the plan");
		if (at_s < last_s)
			return check_fail(c, "is earlier than the previous row");
		last_s = at_s;
	}
	return 0;
}

static int check_whole(struct check *c, const json_t *run)
{
	const json_t *plan_classes = json_object_get(json_object_get(run, "plan"), "classes");
	const json_t *phases = json_object_get(run, "phases");
	const char *mode = json_string_value(json_object_get(run, "mode"));

	if (strcmp(mode, "open") != 0 && strcmp(mode, "closed") != 0)
		return check_fail(c, "has a mode that is neither 'open' nor 'closed'");
	int rc = check_phases(c, plan_classes, phases);
	if (rc == 0)
		rc = check_seconds(c, plan_classes, phases, json_object_get(run, "seconds"));
	return rc;
}

static int check_run(struct check *c, const json_t *run)
{
	const json_t *version = json_object_get(run, "weir_run");

	if (!version)
		return check_fail(c, "is not a run file of weir: it has no member 'weir_run'");
	if (!json_is_integer(version) || json_integer_value(version) != 1)
		return check_fail(
		    c, "is a run file of another version; this program reads version 1");
	int rc = check_object(c, run_members, run);
	return rc == 0 ? check_whole(c, run) : rc;
}

/* ---- public functions ---- */

static json_t *runfile_parse(const char *path, struct check *c)
{
	json_error_t where;
	json_t *run = json_load_file(path, JSON_REJECT_DUPLICATES, &where);

	if (run)
		return run;
	switch (json_error_code(&where)) {
	case json_error_cannot_open_file:
		check_fail(c, "cannot be read");
		c->err->code = WEIR_ESYS;
		break;
	case json_error_out_of_memory:
		check_fail(c, "does not fit into memory");
		c->err->code = WEIR_ENOMEM;
		break;
	default:
		check_fail(c, "is not JSON: line %d, column %d: %.80s", where.line, where.column,
		    where.text);
	}
	return NULL;
}

int runfile_read(const char *path, json_t **run, struct weir_err *err)
{
	struct check c = {.file = path, .err = err};
	json_t *doc = runfile_parse(path, &c);

	if (!doc)
		return err->code;
	int rc = check_run(&c, doc);
	if (rc != 0) {
		json_decref(doc);
		return rc;
	}
	*run = doc;
	return 0;
}

static int64_t runfile_ns(const json_t *latency, const char *key)
{
	return (int64_t)llround(json_number_value(json_object_get(latency, key)) * 1e9);
}

/* Add one pair [bucket, count], whose bucket must be above `last`. Returns the bucket, or -1 if the
 * pair is invalid. */
static json_int_t runfile_bucket(const json_t *pair, json_int_t last, struct hdr *h)
{
	const json_t *number = json_array_get(pair, 0), *count = json_array_get(pair, 1);
	json_int_t b = json_integer_value(number), n = json_integer_value(count);

	if (!json_is_integer(number) || b <= last || b >= HDR_BUCKETS || !json_is_integer(count) ||
	    n < 1 || n > RUNFILE_COUNT_MAX)
		return -1;
	h->count[b] = (uint64_t)n;
	h->total += (uint64_t)n;
	return b;
}

int runfile_hdr(const json_t *latency, struct hdr *h)
{
	const json_t *buckets = json_object_get(latency, "buckets");
	json_int_t last = -1;

	memset(h, 0, sizeof(*h));
	for (size_t i = 0; i < json_array_size(buckets); i++) {
		last = runfile_bucket(json_array_get(buckets, i), last, h);
		if (last < 0)
			return WEIR_EINVAL;
	}
	if ((json_int_t)h->total != json_integer_value(json_object_get(latency, "count")))
		return WEIR_EINVAL;
	h->min_ns = runfile_ns(latency, "min_s");
	h->max_ns = runfile_ns(latency, "max_s");
	double sum_ns = json_number_value(json_object_get(latency, "mean_s")) * 1e9;
	sum_ns *= (double)h->total;
	h->sum_ns = sum_ns < 9e18 ? (int64_t)sum_ns : INT64_MAX;
	return h->min_ns <= h->max_ns ? 0 : WEIR_EINVAL;
}
