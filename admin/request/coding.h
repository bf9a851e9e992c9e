/* SPDX-License-Identifier: MIT */
/* The content coding that a client accepts (RFC 9110, 12.5.3). A pure function; any thread. */
#ifndef WEIR_ADMIN_CODING_H
#define WEIR_ADMIN_CODING_H

#include <stdbool.h>

/** Return whether `field`, the value of Accept-Encoding (NULL if not sent), accepts gzip at least as
 *  much as identity. False without the field: such a client may understand no coding. Malformed
 *  elements are ignored. */
bool coding_takes_gzip(const char *field);

#endif
