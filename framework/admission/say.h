/* SPDX-License-Identifier: MIT */
/* Builds the one-line description of a policy's state, piece by piece. */
#ifndef WEIR_ADMISSION_SAY_H
#define WEIR_ADMISSION_SAY_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "base/number_text.h"

/** Append formatted text to `buf[size]`, which already holds `at` bytes. Truncates text that does
 *  not fit, and terminates the buffer unless size is 0. Returns the new length. */
__attribute__((format(printf, 4, 5))) static inline int say(
    char *buf, size_t size, int at, const char *format, ...)
{
	va_list args;
	size_t left = (size_t)at < size ? size - (size_t)at : 0;

	if (left == 0)
		return at;
	va_start(args, format);
	int len = vsnprintf(buf + at, left, format, args);
	va_end(args);
	return len < 0 ? at : at + ((size_t)len < left ? len : (int)left - 1);
}

/** A measured number with three digits, for an argument of say(). */
#define SAY_NUMBER(v) number_text(NUMBER_ROOM, (v), 3)

/** Append " of class NAME", with the number of the class if `names` is NULL. Nothing is appended if
 *  there is only one class. Arguments and result are otherwise those of say(); `names` is that of
 *  struct admission_policy. */
static inline int say_class(char *buf, size_t size, int at, const char *const *names, int class_id)
{
	if (!names)
		return say(buf, size, at, " of class %d", class_id);
	return names[0] && names[1] ? say(buf, size, at, " of class %s", names[class_id]) : at;
}

#endif
