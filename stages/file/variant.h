/* SPDX-License-Identifier: MIT */
/*
 * Which file stands for a name: itself, or a neighbour that holds the same bytes precompressed
 * (page.css.br beside page.css). Blocks on the disk, one openat2 and fstat for each neighbour looked
 * for. Any thread.
 */
#ifndef WEIR_STAGES_FILE_VARIANT_H
#define WEIR_STAGES_FILE_VARIANT_H

#include "encoding.h"
#include "open.h"

/** The codings whose neighbours are looked for, dearest to the server first. */
struct variant_order {
	int n;
	enum encoding e[ENCODING_N];
};

struct variant {
	struct file file; /* open */
	enum encoding encoding;
	bool varies; /* there are neighbours: the answer depends on Accept-Encoding */
};

/**
 * Choose for a client with `wish`: v->file is the file `name` below `root`, open, before and the
 * chosen one after, the other being closed. A neighbour counts if it may be served itself and is
 * not older than the file; one whose time was cut to whole seconds or microseconds, as compressors
 * that copy the time do, counts as of the file's time. Returns 0; WEIR_ENOENT when the client
 * refuses all there is (then there are neighbours, and v->file is closed).
 */
int variant_choose(int root, enum file_links links, const char *name,
    const struct variant_order *order, const struct encoding_wish *wish, struct variant *v);

#endif
