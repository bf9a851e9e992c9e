/* SPDX-License-Identifier: MIT */
/*
 * Long lists in pages. `limit` rows an answer; `before=ID` asks for those behind row ID, `after=ID` for those
 * in front of it, in the list's own order, nearest to the row first kept. Each answer names the next page in the same
 * direction as `next`, null at the end. Rows that come meanwhile do not move the pages: a cursor is a row, not
 * a number of rows.
 */
#ifndef WEIR_ADMIN_PAGING_H
#define WEIR_ADMIN_PAGING_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "routes.h"

/** Most rows of a page: about what is kept of decisions. */
#define PAGING_MAX 500

/** Largest id in a query: what JavaScript counts exactly. */
#define PAGING_ID_MAX 9007199254740991ULL

struct paging {
	int limit;          /* 1 .. PAGING_MAX */
	bool behind, ahead; /* `before=`, `after=` was given; not both */
	uint64_t id;        /* the cursor */
	int first, n;       /* after paging_cut: rows [first, first + n) of the list */
};

/** Read limit= (n= is its older name), before= and after=; false with a 400 made. */
bool paging_take(const char *query, int default_limit, struct paging *page, struct reply *reply);

/** Number of row `i`. */
typedef uint64_t paging_id_fn(const void *rows, int i);

/** Cut the page out of `n` rows. `falling`: ids fall from row to row, so that a cursor whose row is gone still has a
 *  place. Otherwise such a cursor makes a 404 and returns false. */
bool paging_cut(struct paging *page, const void *rows, int n, paging_id_fn *id, bool falling,
    struct reply *reply);

/** The path of the next page, a new reference; null when this one ends the list of `n` rows. `extra` goes in front of
 *  the parameters: "" or "class=bulk&". */
json_t *paging_next(const struct paging *page, const void *rows, int n, paging_id_fn *id,
    const char *path, const char *extra);

/** GET /api/v1/decisions. */
void answer_decisions(const struct call *call, struct reply *reply);

#endif
