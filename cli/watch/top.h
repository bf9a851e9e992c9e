/* SPDX-License-Identifier: MIT */
/*
 * The display of `weir top`: converts API responses to rows, sorts the rows, and draws frames that
 * fit a screen size. Main thread.
 */
#ifndef WEIR_CLI_TOP_H
#define WEIR_CLI_TOP_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include <weir/spec.h>

#define TOP_STAGES_MAX WEIR_STAGES_MAX
/** Core groups that are shown; there is rarely more than one. */
#define TOP_GROUPS_MAX 8

enum top_order {
	TOP_GRAPH,
	TOP_SHED,
	TOP_QUEUE,
	TOP_WAIT,
	TOP_BUSY,
	TOP_IN,
	TOP_ORDERS,
};

struct top_row {
	char name[WEIR_NAME_MAX + 1], state[16];
	int place;               /* index in the graph */
	long long queued, limit; /* limit is 0 without a queue */
	int threads;
	double in, done, shed;   /* per second, of the last second; -1 if unknown */
	double busy, wait_p99_s; /* 0..1, and seconds; -1 if unknown */
	char wide[200];          /* describes the width of the stage; "" if it has none */
	char awaits[200];        /* describes the events that wait for their children, or "" */
};

struct top {
	char name[WEIR_NAME_MAX + 1], mode[16];
	double up_s;
	char limit[WEIR_NAME_MAX + 1]; /* the stage that limits the server, "" if none does */
	double limit_used;             /* share of its threads' time or of its width, 0..1 */
	int n;
	struct top_row row[TOP_STAGES_MAX];
	double
	    response_p99_s; /* of the requests answered ok, the longest of all sources; -1 if unknown */
	int n_groups;
	char group[TOP_GROUPS_MAX][400]; /* a line for each core group */
	json_t *before;                  /* the last response of /api/v1/stages; NULL: none */
	/* chosen by the user */
	enum top_order order;
	char filter[32];                  /* part of a name; "" shows all stages */
	char selected[WEIR_NAME_MAX + 1]; /* name of a stage */
	char message[160];                /* result of the last pause, drain or resume */
	bool typing;                      /* the user is typing the filter */
};

/** Read the responses to /api/v1/stages, /api/v1/history?from=-3&step=1s and /api/v1/overload.
 *  Keeps a reference to `stages`. Returns false if they are invalid. */
bool top_take(struct top *t, json_t *stages, const json_t *history, const json_t *overload);

/** Sort the rows, and make sure that a visible row is selected. */
void top_arrange(struct top *t);

/** Move the selection down by `by` visible rows, or up if `by` is negative. */
void top_move(struct top *t, int by);

/** Return the word for a sort order, such as "shed". */
const char *top_order_word(enum top_order order);

/** Print a frame of at most `columns` x `lines` characters. If `styled` is set, it has colours and
 *  shows the selection; otherwise, all rows are printed, whatever `lines` is. Below the rows are
 *  the core groups, if there is enough room, and
 *  the widths of all stages that have one or, if there is not enough room, only that of the
 *  selected stage. */
void top_draw(const struct top *t, FILE *out, int columns, int lines, bool styled);

/** Print a frame as one line of JSON (docs/json.md). All stages are included, in the order of the
 *  graph. */
void top_print_json(const struct top *t);

#endif
