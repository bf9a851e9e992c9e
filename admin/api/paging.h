/* SPDX-License-Identifier: MIT */
/*
 * Paging of long lists. A page has at most `limit` rows. `before=ID` requests the rows that come
 * after row ID in the list; `after=ID` requests the rows that come before it. (The newest rows come
 * first, so rows further down are older.) If there are more than `limit`, the rows nearest to ID
 * are returned. In each response `next` is the path of the next page in the same direction, or null
 * at the end of the list. A cursor identifies a row and not a position, so new rows do not shift
 * the pages.
 */
#ifndef WEIR_ADMIN_PAGING_H
#define WEIR_ADMIN_PAGING_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "routes.h"

/** Maximum number of rows in a page. Nearly all stored decisions fit. */
#define PAGING_MAX 500

/** Largest id in a query: the largest exact integer in JavaScript. */
#define PAGING_ID_MAX 9007199254740991ULL

struct paging {
	int limit;          /* 1 .. PAGING_MAX */
	bool behind, ahead; /* `before=` or `after=` was given; never both */
	uint64_t id;        /* the cursor */
	int first, n;       /* after paging_cut: rows [first, first + n) of the list */
};

/** Parse limit= (older name: n=), before= and after=. Returns false with a 400 in the reply. */
bool paging_take(const char *query, int default_limit, struct paging *page, struct reply *reply);

/** Return the id of row `i`. */
typedef uint64_t paging_id_fn(const void *rows, int i);

/** Select the page among `n` rows. With `falling`, ids decrease from row to row, so a cursor has a
 *  position in the list even after its row has been dropped. Without `falling`, a cursor whose row
 *  has been dropped results in a 404, and the function returns false. */
bool paging_cut(struct paging *page, const void *rows, int n, paging_id_fn *id, bool falling,
    struct reply *reply);

/** Return the path of the next page as a new reference, or JSON null if this page ends the list of
 *  `n` rows. `extra` precedes the parameters: "" or "class=bulk&". */
json_t *paging_next(const struct paging *page, const void *rows, int n, paging_id_fn *id,
    const char *path, const char *extra);

/** Handle GET /api/v1/decisions. */
void answer_decisions(const struct call *call, struct reply *reply);

#endif
