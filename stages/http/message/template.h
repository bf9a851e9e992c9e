/* SPDX-License-Identifier: MIT */
/* Texts of the configuration with placeholders such as {host}. */
#ifndef WEIR_HTTP_TEMPLATE_H
#define WEIR_HTTP_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

/** A part of the text: bytes as they are, or a placeholder. */
struct template_piece {
	const char *p; /* the bytes, or the name of the placeholder */
	size_t n;
	int name; /* index in the names; -1 for bytes */
};

struct http_template {
	int n;
	struct template_piece *piece; /* owned; points into the text */
};

/**
 * Split `text`, which must stay valid and unchanged, into pieces. A placeholder is one of `names`, which
 * ends with NULL, in braces. Other lower-case words in braces are an error if `strict`; other braces are
 * bytes as they are. Returns 0; WEIR_EINVAL with advice in hint[size]; WEIR_ENOMEM. Any thread.
 */
int http_template_parse(struct http_template *t, const char *text, size_t n,
    const char *const *names, bool strict, char *hint, size_t size);
void http_template_fini(struct http_template *t);

/** Whether the template has the placeholder number `name`. */
bool http_template_has(const struct http_template *t, int name);

#endif
