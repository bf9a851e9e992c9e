/* SPDX-License-Identifier: MIT */
/* Optional white space in field values of HTTP: spaces and tabs (RFC 9110, 5.6.3). */
#ifndef WEIR_STAGES_TEXT_OWS_H
#define WEIR_STAGES_TEXT_OWS_H

#include <stdbool.h>

#include <weir/event.h>

static inline bool ows_is(char c)
{
	return c == ' ' || c == '\t';
}

/** Return p[0..end) without the white space at both ends. */
static inline struct weir_slice ows_trim(const char *p, const char *end)
{
	while (p < end && ows_is(*p))
		p++;
	while (end > p && ows_is(end[-1]))
		end--;
	return (struct weir_slice){p, (size_t)(end - p)};
}

#endif
