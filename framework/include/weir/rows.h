/* SPDX-License-Identifier: MIT */
/*
 * Rows of numbers that a stage keeps for things which its configuration does not bound one by one, such as
 * the addresses of its origins. A stage type offers a table; the admin endpoint reads it.
 *
 * Metrics (weir/metric.h) have one value for each stage. Rows have a name each, and come and go.
 */
#ifndef WEIR_ROWS_H
#define WEIR_ROWS_H

#include <weir/annotate.h>
#include <weir/error.h>
#include <weir/stage.h>

WEIR_C_BEGIN

struct weir_graph;

enum weir_row_kind {
	WEIR_ROW_LABEL, /* text that tells the row from others; the first columns */
	WEIR_ROW_TEXT,
	WEIR_ROW_GAUGE,
	WEIR_ROW_COUNTER, /* its name ends in _total */
};

/** A column. All texts are static. */
struct weir_row_column {
	const char *name; /* lower case and '_'; NULL ends the table */
	enum weir_row_kind kind;
	const char *unit; /* "requests", "seconds", "" */
	const char *help;
};

struct weir_row_value {
	const char *text; /* of labels and texts; never NULL */
	double number;    /* of gauges and counters */
};

/** Maximum number of columns. */
#define WEIR_ROW_COLUMNS_MAX 24

/** Called for each row; `value` has one entry for each column and is valid until it returns. */
typedef void (*weir_row_visit)(void *to, const struct weir_row_value *value);

struct weir_rows {
	const char
	    *what; /* one thing that has a row, such as "origin"; begins the names of metrics */
	const struct weir_row_column *column;
	/* Call `visit` for each row. Any thread, while others change the values; must not block for long. */
	void (*read)(struct weir_stage *st, weir_row_visit visit, void *to);
};

/** Offer `rows`, which must stay, until weir_rows_withdraw. Once for a stage, in ops->start. Returns 0 or
 *  WEIR_ENOMEM. */
WEIR_API int weir_rows_offer(struct weir_stage *st, const struct weir_rows *rows);

/** End that; no read is under way when this returns. In ops->fini. No effect if nothing is offered. */
WEIR_API void weir_rows_withdraw(struct weir_stage *st);

/** Read the rows of the stage called `stage`: call `begin` (may be NULL) with its table, and `visit` for each
 *  row. Returns 0, or WEIR_EINVAL if there is no such stage or it offers none. Any thread; holds a lock of the
 *  process meanwhile. */
WEIR_API int weir_graph_rows(const struct weir_graph *graph, const char *stage,
    void (*begin)(void *to, const struct weir_rows *rows), weir_row_visit visit, void *to);

WEIR_C_END

#endif
