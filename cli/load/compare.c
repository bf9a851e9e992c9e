/* SPDX-License-Identifier: MIT */
/*
 * compare: compare load runs with the first one, phase by phase, in words and ratios.
 *
 * The exit code is 1 if any figure is worse by more than the noise, so a script can stop a release.
 */
#include "cli/verb.h"

#include <string.h>

#include <jansson.h>

#include "report/compare.h"
#include "report/format.h"

/* Return the width of a text in a terminal, assuming one column per character. */
static int compare_width(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xC0) != 0x80;
	return n;
}

static void compare_pad(const char *text, int width)
{
	printf(
	    "%*s%s", width - compare_width(text) > 0 ? width - compare_width(text) : 0, "", text);
}

/* Print a text from a run file, such as a label or a phase name. Control characters must not reach
 * the terminal, so they are replaced. */
static void compare_print_name(const char *text)
{
	for (; *text; text++)
		putchar((unsigned char)*text < 0x20 || *text == 0x7F ? '?' : *text);
}

static void compare_print_cell(
    const char *point, const struct compare_cell *cell, enum run_metric metric)
{
	char a[FORMAT_MAX], b[FORMAT_MAX], ratio[FORMAT_MAX];
	const struct stats_ratio *r = &cell->ratio;
	bool share = compare_is_share(metric);
	char interval[64];

	printf("%-12.12s %-10s ", point, run_metric[metric].heading);
	compare_pad(compare_format[metric](a, cell->a), 12);
	compare_pad(compare_format[metric](b, cell->b), 12);
	if (share)
		snprintf(ratio, sizeof(ratio), "%+.1f pt", (cell->b - cell->a) * 100);
	compare_pad(share ? ratio : format_ratio(ratio, r->ratio), 11);
	compare_pad(compare_interval(cell, metric, interval, sizeof(interval)), 16);
	printf("  %s\n", compare_word(r));
}

static void compare_print_rows(const struct comparison *c)
{
	bool bold = verb_styled(stdout);

	printf("%s%-12s %-10s %12s%12s%11s%16s  %s%s\n", bold ? "\033[1m" : "", "LOAD", "FIGURE",
	    "BASELINE", "THIS", "RATIO", "95 %", "VERDICT", bold ? "\033[0m" : "");
	for (int i = 0; i < c->n; i++)
		for (int m = 0; m < RUN_N_METRICS; m++)
			if (c->row[i].cell[m].known)
				compare_print_cell(m ? "" : c->row[i].name, &c->row[i].cell[m],
				    (enum run_metric)m);
}

static void compare_print(const struct comparison *c)
{
	char text[400];

	compare_print_name(c->b->name);
	printf(" against ");
	compare_print_name(c->a->name);
	putchar('\n');
	compare_print_rows(c);
	printf("\n");
	compare_print_name(compare_sentence(c, text, sizeof(text)));
	putchar('\n');
	for (int i = 0; compare_note(c, i); i++)
		printf("  %s\n", compare_note(c, i));
	putchar('\n');
}

/* ---- JSON ---- */

static json_t *compare_cell_json(const struct compare_cell *cell)
{
	return json_pack("{s:f, s:f, s:f, s:[f,f], s:i, s:s}", "baseline", cell->a, "this", cell->b,
	    "ratio", cell->ratio.ratio, "interval", cell->ratio.low, cell->ratio.high, "samples",
	    cell->ratio.n, "verdict", compare_word(&cell->ratio));
}

static json_t *compare_row_json(const struct compare_row *row)
{
	json_t *map = json_pack("{s:s, s:b}", "load", row->name, "paired", (int)row->paired);

	for (int m = 0; map && m < RUN_N_METRICS; m++)
		if (row->cell[m].known && json_object_set_new(map, run_metric[m].word,
					      compare_cell_json(&row->cell[m])) != 0) {
			json_decref(map);
			map = NULL;
		}
	return map;
}

static json_t *compare_json(const struct comparison *c)
{
	json_t *loads = json_array(), *notes = json_array();
	char text[400];

	for (int i = 0; i < c->n; i++)
		json_array_append_new(loads, compare_row_json(&c->row[i]));
	for (int i = 0; compare_note(c, i); i++)
		json_array_append_new(notes, json_string(compare_note(c, i)));
	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "baseline", c->a->name, "this",
	    c->b->name, "verdict", compare_verdict(c), "sentence",
	    compare_sentence(c, text, sizeof(text)), "notes", notes, "loads", loads);
}

static int compare_print_json(json_t *list, int n)
{
	int rc = (int)json_array_size(list) == n && json_dumpf(list, stdout, JSON_INDENT(2)) == 0
		     ? 0
		     : WEIR_ENOMEM;

	putchar('\n');
	return rc;
}

/* ---- the verb ---- */

static int compare_refused(const struct weir_err *err)
{
	fprintf(stderr, "weir compare: %s\n", err->text);
	return VERB_USAGE;
}

/* Compare run `i` to the first and print the result. Returns VERB_FINDING if something is worse. */
static int compare_one(const struct rundata *run, int i, const struct verb_args *args, json_t *list)
{
	struct comparison c;
	struct weir_err err = {0};

	if (compare_runs(&run[0], &run[i], args->force, &c, &err) != 0)
		return compare_refused(&err);
	if (args->json)
		json_array_append_new(list, compare_json(&c));
	else
		compare_print(&c);
	int rc = c.count[STATS_WORSE] > 0 ? VERB_FINDING : VERB_OK;
	compare_fini(&c);
	return rc;
}

static int compare_all(const struct rundata *run, const struct verb_args *args)
{
	json_t *list = json_array();
	int worst = VERB_OK;

	for (int i = 1; i < args->n && worst != VERB_USAGE; i++) {
		int rc = compare_one(run, i, args, list);
		worst = rc > worst ? rc : worst;
	}
	if (args->json && worst != VERB_USAGE && compare_print_json(list, args->n - 1) != 0) {
		fputs("weir compare: out of memory\n", stderr);
		worst = VERB_FINDING;
	}
	json_decref(list);
	return worst;
}

int verb_compare(const struct verb *verb, const struct verb_args *args)
{
	struct rundata *run;
	struct weir_err err = {0};

	(void)verb;
	if (rundata_read_all(args->operand, args->n, &run, &err) != 0)
		return compare_refused(&err);
	int rc = compare_all(run, args);
	rundata_free_all(run, args->n);
	return rc;
}
