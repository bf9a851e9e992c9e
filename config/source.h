/* SPDX-License-Identifier: MIT */
/*
 * The texts of one load: files as read, their lines for messages, their trees, and all of them
 * merged.
 *
 * A `struct sources` is made by the loader and handed to the spec, which frees it last: marks in
 * the spec point to names and lines in here. One thread at a time.
 */
#ifndef WEIR_CONFIG_SOURCE_H
#define WEIR_CONFIG_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <weir/error.h>
#include <weir/knob.h>

/** One text. */
struct source {
	char *name;  /* as in messages: the path, or what the caller calls the text */
	char *text;  /* as read, NUL behind it; freed once the tree is made */
	size_t n;    /* bytes of it */
	char *lines; /* a copy with NULs at the ends of lines */
	int n_lines;
	char **line; /* n_lines pointers into `lines` */
	/* Where the last place was found: the next is nearly always behind it, in the same line,
	 * and a line may be a megabyte long. */
	int seen_line;
	size_t seen_char, seen_byte;
	bool on_disk;
	dev_t dev; /* on_disk: which file it is, to notice a second visit */
	ino_t ino;
	struct weir_node *root; /* its tree; emptied by the merge */
};

struct sources {
	int n;
	struct source **item;
	int nodes;             /* in all trees, against CONFIG_NODES_MAX */
	size_t expanded_bytes; /* by ${}, against CONFIG_BYTES_MAX */
	int n_unset;           /* values whose ${} failed: what else is wrong there is no news */
	struct weir_mark unset[WEIR_ERRS_MAX];
	struct weir_node *root; /* everything merged */
	int n_sets;
	char **sets; /* "stage.knob=value", as given */
};

/** NULL when out of memory. */
struct sources *sources_new(void);

/** The free_sources of a spec; NULL is allowed. */
void sources_free(void *sources);

/**
 * Read the regular file `path` of at most CONFIG_BYTES_MAX bytes; `at` (may be NULL) is the place
 * that names it. 0; WEIR_ENOENT, WEIR_EINVAL or WEIR_ENOMEM with the reason in `errs`. The source
 * belongs to `all`.
 */
int source_read(struct sources *all, const char *path, const struct weir_mark *at,
    struct source **source, struct weir_errs *errs);

/** The same from memory; the bytes are copied. */
int source_text(struct sources *all, const char *text, size_t n, const char *name,
    struct source **source, struct weir_errs *errs);

/** The place of `len_chars` characters at line `line` (from 0), character `col` (from 0). */
struct weir_mark source_mark(struct source *source, size_t line, size_t col, size_t len_chars);

/** The place of the text in line `line` (from 0) without its indentation, or in the next line that
 *  has any. */
struct weir_mark source_line_mark(struct source *source, size_t line);

/** The place of byte `offset` of the text. */
struct weir_mark source_mark_at(const struct source *source, size_t offset);

/** Line `line` (from 1), "" outside the text. */
const char *source_line(const struct source *source, int line);

/** "out of memory", once more. Returns WEIR_ENOMEM. */
int source_no_memory(struct weir_errs *errs);

/** Is a lack of memory among the errors? Binding goes on after one, as after any mistake. */
bool source_lacked_memory(const struct weir_errs *errs);

#endif
