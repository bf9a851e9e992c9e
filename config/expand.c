/* SPDX-License-Identifier: MIT */
/*
 * Expands ${X} in values. This happens after parsing, so that the environment cannot change the
 * structure.
 *
 *   ${X}            the variable X; an error at this position if X is not set
 *   ${X:-default}   `default` if X is not set or empty; ends at the first '}'
 *   ${X:?message}   an error with `message` if X is not set or empty
 *   $${             a literal ${
 *
 * Any other text that begins with ${ is an error. Results are not expanded again.
 */
#include "tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define NAME_DIGITS  "0123456789"

struct expansion {
	struct sources *all;
	struct weir_errs *errs;
	const struct weir_node *node;
	char *out;
	size_t n;
};

/* Return the position of `token` in the line of the scalar. If escapes or line breaks hide the
 * token, return the position of the scalar itself. */
static struct weir_mark place_of(const struct expansion *e, const char *token, size_t len)
{
	struct weir_mark mark = e->node->mark;
	const char *written = mark.excerpt + mark.col - 1;
	const char *found = memmem(written, strnlen(written, (size_t)mark.len), token, len);

	if (found) {
		mark.col += (int)(found - written);
		mark.len = (int)len;
	}
	return mark;
}

static int put(struct expansion *e, const char *text, size_t n)
{
	char *bigger = realloc(e->out, e->n + n + 1);

	if (!bigger)
		return source_no_memory(e->errs);
	e->out = bigger;
	memcpy(bigger + e->n, text, n);
	e->n += n;
	bigger[e->n] = '\0';
	return 0;
}

static int put_value(struct expansion *e, const char *text, size_t n)
{
	e->all->expanded_bytes += n;
	if (e->all->expanded_bytes > CONFIG_BYTES_MAX)
		return weir_errs_add(e->errs, &e->node->mark, WEIR_EINVAL, NULL,
		    "the variables of this configuration expand to more than 1 MiB");
	return put(e, text, n);
}

static int malformed(struct expansion *e, const char *token, size_t len)
{
	struct weir_mark mark = place_of(e, token, len);

	return weir_errs_add(e->errs, &mark, WEIR_EINVAL,
	    "write ${NAME}, ${NAME:-default} or ${NAME:?message}; $${ for a literal ${",
	    "'%.*s' is not a variable", (int)(len < 60 ? len : 60), token);
}

static int missing(struct expansion *e, const char *name, const char *token, size_t len,
    const char *message, size_t message_len)
{
	struct weir_mark mark = place_of(e, token, len);
	char hint[96];

	if (message_len > 0)
		return weir_errs_add(e->errs, &mark, WEIR_EINVAL, NULL,
		    "the variable '%s' is not set: %.*s", name, (int)message_len, message);
	snprintf(hint, sizeof(hint), "set it, or write ${%.40s:-default}", name);
	return weir_errs_add(
	    e->errs, &mark, WEIR_EINVAL, hint, "the variable '%s' is not set", name);
}

/* Expand `token`, which is "${...}" and `len` bytes long. */
static int expand_token(struct expansion *e, const char *token, size_t len)
{
	const char *body = token + 2, *end = token + len - 1;
	size_t n = strspn(body, NAME_LETTERS NAME_DIGITS);
	const char *rest = body + n;
	char name[128];

	bool plain = rest == end, operated = rest + 1 < end && rest[0] == ':';
	if (n == 0 || n >= sizeof(name) || strchr(NAME_DIGITS, body[0]) || (!plain && !operated))
		return malformed(e, token, len);
	char op = plain ? '\0' : rest[1];
	if (!plain && op != '-' && op != '?')
		return malformed(e, token, len);
	memcpy(name, body, n);
	name[n] = '\0';
	const char *value = getenv(name);
	if (value && (value[0] || plain))
		return put_value(e, value, strlen(value));
	const char *word = plain ? NULL : rest + 2;
	size_t word_len = plain ? 0 : (size_t)(end - word);
	if (op == '-')
		return put_value(e, word, word_len);
	return missing(e, name, token, len, word, word_len);
}

/* Expand the element at `*p` and advance `*p`. An element is an escaped ${, a token, or the text up
 * to the next '$'. */
static int expand_step(struct expansion *e, const char **p)
{
	const char *s = *p;

	if (strncmp(s, "$${", 3) == 0) {
		*p = s + 3;
		return put(e, "${", 2);
	}
	if (strncmp(s, "${", 2) == 0) {
		const char *end = strchr(s, '}');
		*p = end ? end + 1 : s + strlen(s);
		return end ? expand_token(e, s, (size_t)(end - s) + 1) : malformed(e, s, strlen(s));
	}
	size_t n = 1 + strcspn(s + 1, "$");
	*p = s + n;
	return put(e, s, n);
}

static int expand_scalar(struct sources *all, struct weir_node *node, struct weir_errs *errs)
{
	struct expansion e = {.all = all, .errs = errs, .node = node};
	int rc = 0;

	if (!strstr(node->text, "${"))
		return 0;
	for (const char *p = node->text; *p;) {
		int one = expand_step(&e, &p);
		rc = rc != 0 ? rc : one;
		if (one == WEIR_ENOMEM)
			break;
	}
	if (rc != 0 && all->n_unset < WEIR_ERRS_MAX)
		all->unset[all->n_unset++] = node->mark;
	if (!e.out && rc == 0)
		rc = put(&e, "", 0);
	if (!e.out)
		return rc;
	free(node->text);
	node->text = e.out;
	/* a variable that is empty yields an empty text, not a missing value */
	node->quoted = true;
	return rc;
}

int tree_expand(struct sources *all, struct weir_node *node, struct weir_errs *errs)
{
	int rc = 0;

	if (node->kind == WEIR_NODE_SCALAR)
		return expand_scalar(all, node, errs);
	for (int i = 0; i < node->n; i++) {
		int one = tree_expand(all, node->item[i], errs);
		rc = rc != 0 ? rc : one;
	}
	return rc;
}
