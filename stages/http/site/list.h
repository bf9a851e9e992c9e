/* SPDX-License-Identifier: MIT */
/* Comma-separated lists in fields (RFC 9110, 5.6.1). */
#ifndef WEIR_HTTP_SITE_LIST_H
#define WEIR_HTTP_SITE_LIST_H

#include <stdbool.h>

#include <weir/http.h>

/** Take the next member of *list, without the space around it, and advance *list. Empty members are
 * skipped. Returns false at the end. Commas in quoted strings do not separate. Any thread. */
bool list_next(struct weir_slice *list, struct weir_slice *member);

/** Whether the list has the member `name`, ignoring case and parameters (";q=1"). Any thread. */
bool list_has(struct weir_slice list, const char *name);

#endif
