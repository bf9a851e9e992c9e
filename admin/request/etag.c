/* SPDX-License-Identifier: MIT */
/* Entity tags; see etag.h. */
#include "etag.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/event.h>

bool etag_matches(const char *p, const char *tag)
{
	size_t n = strlen(tag);

	while (p && *p) {
		p += strspn(p, " \t,");
		if (*p == '*')
			return true;
		if (strncmp(p, "W/", 2) == 0) /* If-None-Match compares weakly */
			p += 2;
		if (*p != '"')
			return false;
		const char *end = strchr(p + 1, '"');
		if (!end)
			return false;
		if ((size_t)(end + 1 - p) == n && memcmp(p, tag, n) == 0)
			return true;
		p = end + 1;
	}
	return false;
}

/* Write the tag of p[n] into tag[size]. */
static void tag_of(const char *p, size_t n, char *tag, size_t size)
{
	snprintf(tag, size, "\"%016llx-%zx\"",
	    (unsigned long long)weir_hash((struct weir_slice){p, n}), n);
}

void etag_apply(const char *field, struct reply *r)
{
	char tag[sizeof(r->etag)];

	if (r->status != 200)
		return;
	tag_of(r->body, r->n, tag, sizeof(tag));
	bool varies = r->varies;
	if (etag_matches(field, tag))
		reply_static(r, 304, r->type, "", 0);
	r->varies = varies; /* a 304 has the field Vary of the 200, but no Content-Encoding */
	memcpy(r->etag, tag, sizeof(tag));
}

void etag_apply_weak(json_t *still, const char *field, struct reply *r)
{
	char *text = still ? json_dumps(still, JSON_COMPACT) : NULL;
	char tag[sizeof(r->etag) - 2];

	json_decref(still);
	if (!text || r->status != 200) {
		free(text);
		return;
	}
	tag_of(text, strlen(text), tag, sizeof(tag));
	free(text);
	if (etag_matches(field, tag))
		reply_static(r, 304, r->type, "", 0);
	snprintf(r->etag, sizeof(r->etag), "W/%s", tag);
}
