/* SPDX-License-Identifier: MIT */
/*
 * Chooses the file to serve for a name: the file itself, or a neighbour with the same content
 * precompressed (page.css.br beside page.css). Blocks on the disk and costs one openat2 and one
 * fstat per neighbour tried. Any thread.
 */
#ifndef WEIR_STAGES_FILE_VARIANT_H
#define WEIR_STAGES_FILE_VARIANT_H

#include "encoding.h"
#include "open.h"

/** Codings whose neighbours are tried, in the server's order of preference. */
struct variant_order {
	int n;
	enum encoding e[ENCODING_N];
};

struct variant {
	struct file file; /* open */
	enum encoding encoding;
	bool varies; /* neighbours exist: the response depends on Accept-Encoding */
};

/**
 * Choose for a client with `wish`. On entry v->file is the file `name` below `root`, open; on
 * success it is the chosen file, open, and the others are closed.
 *
 * A neighbour is eligible if it may be served itself and is not older than the file. Compressors
 * that copy the file's time may truncate it to seconds or microseconds; a truncated time counts as
 * equal. Returns 0; WEIR_ENOENT if the client accepts neither the file nor any neighbour (so there
 * is at least one neighbour); WEIR_EPRESSURE if out of descriptors or memory. On failure v->file is
 * closed.
 */
int variant_choose(int root, enum file_links links, const char *name,
    const struct variant_order *order, const struct encoding_wish *wish, struct variant *v);

#endif
