/* SPDX-License-Identifier: MIT */
/*
 * The sources of one load: the texts of the files, their lines for messages, their trees, and the
 * merged tree.
 *
 * The loader creates a `struct sources` and passes it to the spec. The spec frees it last, since
 * its marks point to names and lines in it. Used by one thread at a time.
 */
#ifndef WEIR_CONFIG_SOURCE_H
#define WEIR_CONFIG_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <weir/error.h>
#include <weir/knob.h>

/** A configuration file, or a text from memory. */
struct source {
	char *name;  /* used in messages: the path, or the caller's name for the text */
	char *text;  /* as read, NUL-terminated; freed once the tree is built */
	size_t n;    /* length of `text` */
	char *lines; /* a copy of `text` with NULs at the ends of lines */
	int n_lines;
	char **line; /* n_lines pointers into `lines` */
	/* The last position found. The search for the next position starts here, since that
	 * position is nearly always later in the same line, and a line may be a megabyte long. */
	int seen_line;
	size_t seen_char, seen_byte;
	bool on_disk;
	dev_t dev; /* identifies a file on disk, to detect a second inclusion */
	ino_t ino;
	struct weir_node *root; /* tree of the text; emptied when it is merged */
};

struct sources {
	int n;
	struct source **item;
	int nodes;             /* nodes in all trees, limited by CONFIG_NODES_MAX */
	size_t expanded_bytes; /* length of all expansions of ${}, limited by CONFIG_BYTES_MAX */
	/* values whose ${} could not be expanded; further errors in them are dropped */
	int n_unset;
	struct weir_mark unset[WEIR_ERRS_MAX];
	struct weir_node *root; /* the merged tree */
	int n_sets;
	char **sets; /* "stage.knob=value", as given */
};

/** Create sources without texts. Returns NULL if out of memory. */
struct sources *sources_new(void);

/** Free the sources; used as the free_sources of a spec. NULL is allowed. */
void sources_free(void *sources);

/**
 * Read the regular file `path` of at most CONFIG_BYTES_MAX bytes. `at` is the position that names
 * the file, or NULL. Returns 0 with *source owned by `all`, or WEIR_ENOENT, WEIR_EINVAL, WEIR_ESYS
 * or WEIR_ENOMEM with the reason in `errs`.
 */
int source_read(struct sources *all, const char *path, const struct weir_mark *at,
    struct source **source, struct weir_errs *errs);

/** Like source_read, but from memory; the text is copied. */
int source_text(struct sources *all, const char *text, size_t n, const char *name,
    struct source **source, struct weir_errs *errs);

/** Return the mark for `len_chars` characters that begin at character `col` of line `line` (both
 * from 0). */
struct weir_mark source_mark(struct source *source, size_t line, size_t col, size_t len_chars);

/** Return the mark for line `line` (from 0) without its indentation. If the line is blank, return
 *  the mark for the next line that is not. */
struct weir_mark source_line_mark(struct source *source, size_t line);

/** Return the mark for byte `offset` of the text. */
struct weir_mark source_mark_at(const struct source *source, size_t offset);

/** Return the text of line `line` (from 1); "" if there is no such line. */
const char *source_line(const struct source *source, int line);

/** Report "out of memory". Returns WEIR_ENOMEM. */
int source_no_memory(struct weir_errs *errs);

/** Return whether `errs` contains an out-of-memory error. Binding continues after such an error, as
 *  after any mistake. */
bool source_lacked_memory(const struct weir_errs *errs);

#endif
