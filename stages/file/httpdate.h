/* SPDX-License-Identifier: MIT */
/* Formats HTTP dates (RFC 9110, 5.6.7) as IMF-fixdate and parses all three forms. Pure functions;
 * any thread. */
#ifndef WEIR_STAGES_FILE_HTTPDATE_H
#define WEIR_STAGES_FILE_HTTPDATE_H

#include <stddef.h>
#include <stdint.h>

#include <weir/event.h>

/** "Sun, 06 Nov 1994 08:49:37 GMT" and its NUL. */
#define HTTPDATE_SIZE 30

/** Write the time `at_s` (seconds since 1970, clamped to the years 1 to 9999) into `out`. Does not
 * depend on the locale. */
void httpdate_format(int64_t at_s, char out[HTTPDATE_SIZE]);

/** Parse an IMF-fixdate, RFC 850 or asctime date into *at_s. Returns 0, or WEIR_EINVAL with *at_s
 * unchanged. */
int httpdate_parse(struct weir_slice text, int64_t *at_s);

#endif
