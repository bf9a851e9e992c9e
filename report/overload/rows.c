/* SPDX-License-Identifier: MIT */
/* Reads rows; see rows.h. */
#include "report/overload/rows.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "load/sentence.h"

/* Maximum length of a line. 1 MiB is a guess: a series of 240 bins takes 5 kB. */
#define LINE_BYTES (1 << 20)

static const char *const words[OVER_N_METRICS] = {
#define OVER_WORD(id, word, heading, more, print) word,
    OVER_METRICS(OVER_WORD)
#undef OVER_WORD
};

struct reader {
	const char *path;
	int line;
	struct over_rows *rows;
	struct weir_err *err;
};

static int bad(const struct reader *in, const char *what)
{
	return sentence(in->err, WEIR_EINVAL, "%s:%d: %s", in->path, in->line, what);
}

static int bad_member(const struct reader *in, const char *name)
{
	return sentence(in->err, WEIR_EINVAL, "%s:%d: '%s' is missing or has the wrong type",
	    in->path, in->line, name);
}

/* ---- members ---- */

static void take_text(char *to, size_t size, const json_t *from, const char *name)
{
	const char *text = json_string_value(json_object_get(from, name));

	snprintf(to, size, "%s", text ? text : "");
}

static double number(const json_t *from, const char *name)
{
	const json_t *v = json_object_get(from, name);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static void take_classes(struct over_row *r, const json_t *list)
{
	size_t i;
	json_t *c;

	json_array_foreach(list, i, c)
	{
		struct over_class *to = &r->class[r->n_classes];
		if (r->n_classes == OVER_CLASSES_MAX)
			return;
		take_text(to->name, sizeof(to->name), c, "name");
		to->offered = number(c, "offered");
		to->good = number(c, "good");
		r->n_classes += to->offered > 0 && to->good >= 0;
	}
}

/* Copy the numbers of `list` to `to`; items that are not numbers count as 0. */
static void take_numbers(double *to, const json_t *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = json_number_value(json_array_get(list, i));
}

static int take_series(const struct reader *in, struct over_row *r, const json_t *s)
{
	const json_t *offered = json_object_get(s, "offered"), *good = json_object_get(s, "good");
	size_t n = json_array_size(offered);

	r->bin_s = number(s, "bin_s");
	if (!(r->bin_s > 0) || n == 0 || json_array_size(good) != n)
		return bad_member(in, "series");
	r->offered = calloc(2 * n, sizeof(double));
	if (!r->offered)
		return sentence_nomem(in->err);
	r->good = r->offered + n;
	r->n_bins = (int)n;
	take_numbers(r->offered, offered, n);
	take_numbers(r->good, good, n);
	return 0;
}

static int take_threads(const struct reader *in, struct over_row *r, const json_t *list)
{
	size_t n = json_array_size(list);

	if (n == 0)
		return 0;
	r->threads_s = calloc(2 * n, sizeof(double));
	if (!r->threads_s)
		return sentence_nomem(in->err);
	r->threads = r->threads_s + n;
	r->n_threads = (int)n;
	for (size_t i = 0; i < n; i++) {
		const json_t *pair = json_array_get(list, i);
		r->threads_s[i] = json_number_value(json_array_get(pair, 0));
		r->threads[i] = json_number_value(json_array_get(pair, 1));
	}
	return 0;
}

/* ---- rows ---- */

static int take_about(const struct reader *in, const json_t *doc)
{
	struct over_rows *rows = in->rows;

	if (rows->n_abouts == OVER_ABOUTS_MAX)
		return 0;
	struct over_about *a = &rows->about[rows->n_abouts++];
	take_text(a->where, sizeof(a->where), doc, "where");
	take_text(a->command, sizeof(a->command), doc, "command");
	take_text(a->machine, sizeof(a->machine), doc, "machine");
	take_text(a->version, sizeof(a->version), doc, "version");
	take_text(a->note, sizeof(a->note), doc, "note");
	return 0;
}

static int take_head(const struct reader *in, struct over_row *r, const json_t *doc)
{
	take_text(r->where, sizeof(r->where), doc, "where");
	take_text(r->workload, sizeof(r->workload), doc, "workload");
	take_text(r->what, sizeof(r->what), doc, "what");
	take_text(r->policy, sizeof(r->policy), doc, "policy");
	r->load = number(doc, "load");
	r->round = (int)json_integer_value(json_object_get(doc, "round"));
	r->is_void = json_is_true(json_object_get(doc, "void"));
	r->slo_s = number(doc, "slo_s");
	r->capacity_per_s = number(doc, "capacity_per_s");
	r->for_s = number(doc, "for_s");
	if (!r->where[0])
		return bad_member(in, "where");
	if (!r->workload[0])
		return bad_member(in, "workload");
	if (!r->policy[0])
		return bad_member(in, "policy");
	return r->load > 0 ? 0 : bad_member(in, "load");
}

static int take_run(const struct reader *in, struct over_row *r, const json_t *doc)
{
	const json_t *trouble = json_object_get(doc, "trouble");
	const json_t *series = json_object_get(doc, "series");
	int rc = take_head(in, r, doc);

	for (int m = 0; m < OVER_N_METRICS; m++)
		r->value[m] = words[m][0] ? number(doc, words[m]) : NAN;
	r->from_s = r->to_s = NAN;
	take_classes(r, json_object_get(doc, "classes"));
	if (json_array_size(trouble) == 2) {
		r->from_s = json_number_value(json_array_get(trouble, 0));
		r->to_s = json_number_value(json_array_get(trouble, 1));
	}
	if (rc == 0 && series)
		rc = take_series(in, r, series);
	if (rc == 0)
		rc = take_threads(in, r, json_object_get(doc, "threads"));
	if (rc == 0)
		over_derive(r);
	return rc;
}

static int add_run(const struct reader *in, const json_t *doc)
{
	struct over_rows *rows = in->rows;
	size_t n = (size_t)rows->n;

	if ((n & (n + 1)) == 0) { /* full at 0, 1, 3, 7, ... */
		struct over_row *more = realloc(rows->row, (2 * n + 1) * sizeof(*more));
		if (!more)
			return sentence_nomem(in->err);
		rows->row = more;
	}
	memset(&rows->row[n], 0, sizeof(rows->row[n]));
	rows->n++; /* counted first, so that over_rows_fini frees its memory even after an error */
	return take_run(in, &rows->row[n], doc);
}

static int take_line(const struct reader *in, const char *text)
{
	json_error_t why;
	json_t *doc = json_loads(text, 0, &why);
	const char *row = json_string_value(json_object_get(doc, "row"));
	int rc;

	if (!doc)
		return bad(in, why.text);
	if (row && strcmp(row, "run") == 0)
		rc = add_run(in, doc);
	else if (row && strcmp(row, "about") == 0)
		rc = take_about(in, doc);
	else
		rc = bad_member(in, "row");
	json_decref(doc);
	return rc;
}

int over_rows_read(const char *path, struct over_rows *rows, struct weir_err *err)
{
	struct reader in = {.path = path, .rows = rows, .err = err};
	FILE *f = fopen(path, "r");
	char *text = malloc(LINE_BYTES);
	int rc = 0;

	if (!f || !text)
		rc = f ? sentence_nomem(err)
		       : sentence(err, WEIR_ESYS, "%s: %s", path, strerror(errno));
	while (rc == 0 && fgets(text, LINE_BYTES, f)) {
		in.line++;
		if (text[strspn(text, " \t\r\n")])
			rc = take_line(&in, text);
	}
	if (rc == 0 && ferror(f))
		rc = sentence(err, WEIR_ESYS, "%s: %s", path, strerror(errno));
	free(text);
	if (f)
		fclose(f);
	return rc;
}

void over_rows_fini(struct over_rows *rows)
{
	for (int i = 0; i < rows->n; i++) {
		free(rows->row[i].offered);
		free(rows->row[i].threads_s);
	}
	free(rows->row);
	memset(rows, 0, sizeof(*rows));
}
