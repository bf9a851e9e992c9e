/* SPDX-License-Identifier: MIT */
/*
 * Knobs: one row per setting; everything that reads settings reads these rows.
 *
 * A table of rows describes the members of a plain struct: the loader fills it, `check` and the
 * admin endpoint refuse bad values with the same words, `describe`, the JSON Schema, the manual and
 * the dashboard print the rows. Values are typed by unit (rule 4): a duration is int64 ns, a size
 * int64 bytes.
 */
#ifndef WEIR_KNOB_H
#define WEIR_KNOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/annotate.h>
#include <weir/error.h>

/* type, member in C, how it is written */
#define WEIR_KNOB_TYPES(X)                                                                         \
	X(BOOL, "bool", "true or false")                                                           \
	X(INT, "int64_t", "a whole number, or with k, M: 20k")                                     \
	X(BYTES, "int64_t", "a size: 64KiB, 1MB")                                                  \
	X(DURATION, "int64_t, ns", "a duration: 200us, 10ms, 1.5s, 2m")                            \
	X(RATE, "double, per s", "a rate per second: 500, 20k")                                    \
	X(RATIO, "double, 0..1", "a share: 5%, 0.05")                                              \
	X(STRING, "char *", "text")                                                                \
	X(ENUM, "int, index into choices", "one of the choices")                                   \
	X(STRINGS, "struct weir_strings", "a list of texts")                                       \
	X(RECORDS, "struct weir_records", "a list of maps")                                        \
	X(MAP, "nested struct", "a map")

enum weir_knob_type {
#define WEIR_KNOB_ENUM(name, member, written) WEIR_KNOB_##name,
	WEIR_KNOB_TYPES(WEIR_KNOB_ENUM)
#undef WEIR_KNOB_ENUM
};

enum weir_knob_flags {
	WEIR_KNOB_LIVE = 1,     /* may change while the graph runs; else fixed at build */
	WEIR_KNOB_REQUIRED = 2, /* no default */
	WEIR_KNOB_AUTO = 4,     /* "auto" is legal and stored as -1 (all numbers) */
};

struct weir_strings {
	int n;
	char **items;
};

struct weir_records {
	int n;
	char *items; /* n structs of the row's record_size bytes, one after the other */
};

struct weir_knob {
	const char *name; /* NULL ends the table */
	enum weir_knob_type type;
	size_t offset;       /* of the member in the struct that the table describes */
	const char *def;     /* as the user would write it; NULL: zero, or REQUIRED */
	double min, max;     /* inclusive, in base units (ns, bytes); both 0: no bounds */
	unsigned flags;      /* enum weir_knob_flags */
	const char *choices; /* ENUM: "a|b|c" */
	const struct weir_knob *fields; /* RECORDS, MAP: rows of one record */
	size_t record_size;             /* RECORDS */
	const char *help;               /* one sentence, no full stop */
};

/** A configuration value as a tree with places: what the YAML loader makes. Owned by its root. */
enum weir_node_kind { WEIR_NODE_SCALAR, WEIR_NODE_LIST, WEIR_NODE_MAP };

struct weir_node {
	enum weir_node_kind kind;
	struct weir_mark mark;   /* of the value */
	bool quoted;             /* SCALAR: written in quotes or as a block */
	char *text;              /* SCALAR: never NULL */
	int n;                   /* LIST, MAP */
	struct weir_node **item; /* LIST, MAP: values */
	struct weir_node **name; /* MAP: keys, scalars, in file order */
};

/** The value under `key` of a map, NULL when there is none or `map` is NULL or no map. */
WEIR_API const struct weir_node *weir_node_get(const struct weir_node *map, const char *key);

/** Free a tree. NULL is allowed. */
WEIR_API void weir_node_free(struct weir_node *node);

/** The row called `name`, NULL when there is none. */
WEIR_API const struct weir_knob *weir_knob_find(const struct weir_knob *table, const char *name);

/** Set every member of `base` that `table` describes to its default. 0 or WEIR_ENOMEM. Members
 *  must be zero before. Undone by weir_knobs_fini. */
WEIR_API int weir_knobs_init(const struct weir_knob *table, void *base);

/** Free what members own and zero them. */
WEIR_API void weir_knobs_fini(const struct weir_knob *table, void *base);

/**
 * Parse `text` into the member of `base` that `row` describes (scalar types only). On failure the
 * member is unchanged and `why[size]` holds the sentence: "'10' needs a unit: write 10ms or 10s".
 * Returns 0, WEIR_EINVAL or WEIR_ENOMEM.
 */
WEIR_API int weir_knob_parse(
    const struct weir_knob *row, const char *text, void *base, char *why, size_t size);

/** Print the member as a user would write it into `buf[size]`; length as snprintf. Any type. */
WEIR_API int weir_knob_print(const struct weir_knob *row, const void *base, char *buf, size_t size);

/**
 * Bind the map `node` (NULL: empty) to `base`, which weir_knobs_init has filled. Unknown keys (but
 * for x-*, which are the user's notes), bad values and missing required rows are added to `errs`,
 * all of them; `where` names the map in messages ("stage 'disk'"). Returns 0 or WEIR_EINVAL /
 * WEIR_ENOMEM.
 */
WEIR_API int weir_knobs_bind(const struct weir_knob *table, const struct weir_node *node,
    void *base, const char *where, struct weir_errs *errs);

/** The name in `names[n]` nearest to `word` (edit distance, at most a third of it), or NULL. */
WEIR_API const char *weir_nearest(const char *word, const char *const *names, int n);

#endif
