/* SPDX-License-Identifier: MIT */
/*
 * Knobs: tables with one row per setting, used by all code that reads or describes settings.
 *
 * A table of rows describes the members of a plain struct. The loader fills the struct; `check` and
 * the admin endpoint refuse bad values with the same messages; `describe`, the JSON Schema, the
 * manual and the dashboard print the rows. Values are typed by unit: a duration is in
 * int64 ns, a size in int64 bytes.
 */
#ifndef WEIR_KNOB_H
#define WEIR_KNOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/annotate.h>
#include <weir/error.h>

WEIR_C_BEGIN

/* Columns: type, C type of the member, how a user writes a value. */
#define WEIR_KNOB_TYPES(X)                                                                         \
	X(BOOL, "bool", "true or false")                                                           \
	X(INT, "int64_t", "a whole number, also with k or M: 20k")                                 \
	X(BYTES, "int64_t", "a size: 64KiB, 1MB")                                                  \
	X(DURATION, "int64_t, ns", "a duration: 200us, 10ms, 1.5s, 2m")                            \
	X(RATE, "double, per s", "a rate per second: 500, 20k")                                    \
	X(RATIO, "double, 0..1", "a share: 5%, 0.05")                                              \
	X(STRING, "char *", "text")                                                                \
	X(ENUM, "int, index into choices", "one of the choices")                                   \
	X(STRINGS, "struct weir_strings", "a list of strings")                                     \
	X(RECORDS, "struct weir_records", "a list of maps")                                        \
	X(MAP, "nested struct", "a map")

enum weir_knob_type {
#define WEIR_KNOB_ENUM(name, member, written) WEIR_KNOB_##name,
	WEIR_KNOB_TYPES(WEIR_KNOB_ENUM)
#undef WEIR_KNOB_ENUM
};

enum weir_knob_flags {
	/* may change while the graph runs; other knobs are fixed when the graph is built */
	WEIR_KNOB_LIVE = 1,
	WEIR_KNOB_REQUIRED = 2, /* no default */
	WEIR_KNOB_AUTO = 4,     /* for numbers: "auto" is allowed, and stored as -1 */
};

struct weir_strings {
	int n;
	char **items;
};

struct weir_records {
	int n;
	char *items; /* n structs of the row's record_size bytes, contiguous */
};

/** One of the values that a STRING may have, such as the name of a policy. */
struct weir_option {
	const char *name;
	const char *help; /* one sentence, no full stop */
};

struct weir_knob {
	const char *name; /* NULL ends the table */
	enum weir_knob_type type;
	size_t offset; /* offset of the member in the struct that the table describes */
	/* the default as the user would write it; NULL if it is zero or the row is REQUIRED */
	const char *def;
	double min, max;     /* inclusive, in base units (ns, bytes); no bounds if both are 0 */
	unsigned flags;      /* enum weir_knob_flags */
	const char *choices; /* for ENUM: "a|b|c" */
	const struct weir_knob *fields; /* for RECORDS and MAP: rows of a record, or of the map */
	size_t record_size;             /* for RECORDS: size of one record */
	const char *help;               /* one sentence, no full stop */
	/* For a STRING that must be one of several names, such as that of a policy: sets *option to
	 * name number `i`, from 0, and returns false past the last one. NULL for other knobs.
	 * Parsing accepts any text; an unknown name is reported when the name is looked up. */
	bool (*option)(int i, struct weir_option *option);
};

/** A configuration value as a tree with source positions, built by the YAML loader. The root owns
 *  the whole tree. */
enum weir_node_kind { WEIR_NODE_SCALAR, WEIR_NODE_LIST, WEIR_NODE_MAP };

struct weir_node {
	enum weir_node_kind kind;
	struct weir_mark mark;   /* position of the value */
	bool quoted;             /* for SCALAR: written in quotes or as a block */
	char *text;              /* for SCALAR: the text, never NULL */
	int n;                   /* for LIST and MAP: number of entries */
	struct weir_node **item; /* for LIST and MAP: the values */
	struct weir_node **name; /* for MAP: the keys, which are scalars, in file order */
};

/** The value of `key` in a map. Returns NULL if the key is absent, or if `map` is NULL or not a
 *  map. */
WEIR_API const struct weir_node *weir_node_get(const struct weir_node *map, const char *key);

/** Free a tree. NULL is allowed. */
WEIR_API void weir_node_free(struct weir_node *node);

/** The row called `name`, or NULL if the table has none. */
WEIR_API const struct weir_knob *weir_knob_find(const struct weir_knob *table, const char *name);

/** Set every member of `base` that `table` describes to its default. The members must be zero
 *  beforehand. Returns 0 or WEIR_ENOMEM. Free the members with weir_knobs_fini. */
WEIR_API int weir_knobs_init(const struct weir_knob *table, void *base);

/** Free the memory that members own and zero the members. */
WEIR_API void weir_knobs_fini(const struct weir_knob *table, void *base);

/**
 * Parse `text` into the member of `base` that `row` describes (scalar types only). On failure the
 * member is unchanged, and why[size] receives a message such as "'10' needs a unit: write 10ms or
 * 10s". Returns 0, WEIR_EINVAL or WEIR_ENOMEM.
 */
WEIR_API int weir_knob_parse(
    const struct weir_knob *row, const char *text, void *base, char *why, size_t size);

/** Print the member of `base` that `row` describes, of any type, into buf[size] as a user would
 *  write it. Returns the length, as snprintf does. */
WEIR_API int weir_knob_print(const struct weir_knob *row, const void *base, char *buf, size_t size);

/**
 * Set the members of `base`, which weir_knobs_init has filled, from the map `node` (NULL is an
 * empty map). Adds an error to `errs` for every unknown key, bad value and missing required key.
 * Keys that begin with x- are ignored, so users can add their own. `where` names the map in
 * messages ("stage 'disk'"). Returns 0, WEIR_EINVAL or WEIR_ENOMEM.
 */
WEIR_API int weir_knobs_bind(const struct weir_knob *table, const struct weir_node *node,
    void *base, const char *where, struct weir_errs *errs);

/** The name in `names[n]` nearest to `word` (edit distance, at most a third of its length), or
 *  NULL. */
WEIR_API const char *weir_nearest(const char *word, const char *const *names, int n);

WEIR_C_END

#endif
