/* SPDX-License-Identifier: MIT */
/*
 * What `weir top` shows, apart from how it is asked for: rows from two answers of the API, their order, and a frame of a
 * screen of given size. Main thread.
 */
#ifndef WEIR_CLI_TOP_H
#define WEIR_CLI_TOP_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#define TOP_STAGES_MAX 256 /* as many as a graph has */

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
	char name[64], state[16];
	int place;               /* in the graph */
	long long queued, limit; /* limit 0: no queue */
	int threads;
	double in, done, shed;   /* per second, of the last one; -1: not known */
	double busy, wait_p99_s; /* 0..1; seconds; -1: not known */
};

struct top {
	char name[64], mode[16];
	double up_s;
	char limit[64];    /* the stage that limits the server, "" for none */
	double limit_used; /* of its threads' time, 0..1 */
	int n;
	struct top_row row[TOP_STAGES_MAX];
	/* what the person chose */
	enum top_order order;
	char filter[32];   /* part of a name; "": all */
	char selected[64]; /* name of a stage */
	char message[160]; /* what the last act did */
	bool typing;       /* the filter is being typed */
};

/** Take over the answers of /api/v1/stages, /api/v1/history?from=-3&step=1s and /api/v1/overload. false: they are none. */
bool top_take(struct top *t, const json_t *stages, const json_t *history, const json_t *overload);

/** Order the rows, and see to it that one that is shown is selected. */
void top_arrange(struct top *t);

/** Select the row `by` further down among those shown. */
void top_move(struct top *t, int by);

/** "shed": the word for an order. */
const char *top_order_word(enum top_order order);

/** Print a frame of `columns` x `lines`, no line longer; `styled`: with colours and the selection. */
void top_draw(const struct top *t, FILE *out, int columns, int lines, bool styled);

#endif
