/* SPDX-License-Identifier: MIT */
/* An error with a formatted message. */
#ifndef WEIR_ADMIN_FAIL_H
#define WEIR_ADMIN_FAIL_H

#include <stdarg.h>
#include <stdio.h>

#include <weir/error.h>

static inline int fail(struct weir_err *err, int code, const char *hint, const char *fmt, ...)
    WEIR_PRINTF(4, 5);

/** Fill `err` and return `code`. `hint` may be NULL. */
static inline int fail(struct weir_err *err, int code, const char *hint, const char *fmt, ...)
{
	va_list args;

	err->code = code;
	va_start(args, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, args);
	va_end(args);
	snprintf(err->hint, sizeof(err->hint), "%s", hint ? hint : "");
	return code;
}

#endif
