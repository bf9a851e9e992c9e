/* SPDX-License-Identifier: MIT */
/* Parses Accept-Encoding; see coding.h. */
#include "coding.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

/* Return the weight (RFC 9110, 12.4.2) at `p` in thousandths, or -1 if it is malformed. A value has
 * at most three decimals and ends with the element: at a comma, white space or the end. */
static int weight_at(const char *p)
{
	if (*p != '0' && *p != '1')
		return -1;
	int q = (*p++ - '0') * 1000;
	if (*p == '.')
		p++;
	for (int unit = 100; unit > 0 && *p >= '0' && *p <= '9'; unit /= 10)
		q += (*p++ - '0') * unit;
	return q <= 1000 && strchr(", \t", *p) ? q : -1; /* strchr also matches the NUL */
}

/* Return the weight of the element whose name ends at `p`: 1000 without one, -1 if malformed. */
static int weight_behind(const char *p)
{
	p += strspn(p, " \t");
	if (*p != ';')
		return *p == '\0' || *p == ',' ? 1000 : -1;
	p += 1 + strspn(p + 1, " \t");
	if ((*p != 'q' && *p != 'Q') || p[1] != '=')
		return -1;
	return weight_at(p + 2);
}

static bool is_named(const char *p, size_t n, const char *name)
{
	return n == strlen(name) && strncasecmp(p, name, n) == 0;
}

bool coding_takes_gzip(const char *p)
{
	int gzip = -1, star = -1, identity = -1;

	while (p && *p) {
		p += strspn(p, " \t,");
		size_t n = strcspn(p, " \t,;");
		int q = weight_behind(p + n);
		if (is_named(p, n, "gzip") || is_named(p, n, "x-gzip"))
			gzip = gzip < 0 ? q : gzip;
		else if (is_named(p, n, "identity"))
			identity = identity < 0 ? q : identity;
		else if (is_named(p, n, "*"))
			star = star < 0 ? q : star;
		p += strcspn(p, ",");
	}
	return (gzip >= 0 ? gzip : star) > 0 && (gzip >= 0 ? gzip : star) >= identity;
}
