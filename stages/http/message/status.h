/* SPDX-License-Identifier: MIT */
/* Static texts of status codes. */
#ifndef WEIR_HTTP_STATUS_H
#define WEIR_HTTP_STATUS_H

#include <weir/http.h>

struct status {
	int code;
	const char *reason;
	struct weir_slice line; /* "HTTP/1.1 404 Not Found\r\n" */
	struct weir_slice text; /* "404 Not Found\n" */
};

/** Return the row of `code`; NULL if it is not in the table. */
const struct status *status_find(int code);

#endif
