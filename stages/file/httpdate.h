/* SPDX-License-Identifier: MIT */
/* Dates of HTTP (RFC 9110, 5.6.7): one form to write, three to read. Pure, any thread. */
#ifndef WEIR_STAGES_FILE_HTTPDATE_H
#define WEIR_STAGES_FILE_HTTPDATE_H

#include <stddef.h>
#include <stdint.h>

#include <weir/event.h>

/** "Sun, 06 Nov 1994 08:49:37 GMT" and its NUL. */
#define HTTPDATE_SIZE 30

/** Write the seconds `at_s` since 1970, within the years 1 to 9999 (else cut to them), into `out`.
 *  Does not depend on the locale. */
void httpdate_format(int64_t at_s, char out[HTTPDATE_SIZE]);

/** Read IMF-fixdate, RFC 850 or asctime form into *at_s. 0 or WEIR_EINVAL, *at_s then unchanged. */
int httpdate_parse(struct weir_slice text, int64_t *at_s);

#endif
