/* SPDX-License-Identifier: MIT */
/* A table with every type of knob, for the knob tests. */
#ifndef WEIR_TESTS_KNOB_TABLE_H
#define WEIR_TESTS_KNOB_TABLE_H

#include <stddef.h>
#include <string.h>

#include <weir/knob.h>

struct inner {
	int64_t n;
	char *name;
};

struct all {
	bool flag;
	int64_t count, signed_count, size_bytes, wait_ns, spare_ns;
	double rate, share;
	char *text, *more;
	int choice;
	struct weir_strings list;
	struct weir_records records;
	struct inner inner;
};

#define AT(member)       .offset = offsetof(struct all, member)
#define AT_INNER(member) .offset = offsetof(struct inner, member)

static const struct weir_knob inner_knobs[] = {
    {.name = "n", .type = WEIR_KNOB_INT, AT_INNER(n), .def = "3", .min = 1, .max = 9},
    {.name = "name",
	.type = WEIR_KNOB_STRING,
	AT_INNER(name),
	.flags = WEIR_KNOB_REQUIRED,
	.help = "what it is called"},
    {.name = NULL}};

static const struct weir_knob plain_inner_knobs[] = {
    {.name = "n", .type = WEIR_KNOB_INT, AT_INNER(n), .def = "3", .min = 1, .max = 9},
    {.name = "name", .type = WEIR_KNOB_STRING, AT_INNER(name), .def = "in"}, {.name = NULL}};

static const struct weir_knob all_knobs[] = {
    {.name = "flag", .type = WEIR_KNOB_BOOL, AT(flag), .def = "true"},
    {.name = "count",
	.type = WEIR_KNOB_INT,
	AT(count),
	.def = "auto",
	.min = 1,
	.max = 1e6,
	.flags = WEIR_KNOB_AUTO | WEIR_KNOB_LIVE},
    {.name = "signed_count", .type = WEIR_KNOB_INT, AT(signed_count)},
    {.name = "size", .type = WEIR_KNOB_BYTES, AT(size_bytes), .def = "64KiB"},
    {.name = "wait",
	.type = WEIR_KNOB_DURATION,
	AT(wait_ns),
	.def = "1.5s",
	.min = 1000,
	.max = 60e9},
    {.name = "spare", .type = WEIR_KNOB_DURATION, AT(spare_ns), .flags = WEIR_KNOB_AUTO},
    {.name = "rate", .type = WEIR_KNOB_RATE, AT(rate), .def = "20k"},
    {.name = "share", .type = WEIR_KNOB_RATIO, AT(share), .def = "5%"},
    {.name = "text", .type = WEIR_KNOB_STRING, AT(text), .def = "hello"},
    {.name = "more", .type = WEIR_KNOB_STRING, AT(more)},
    {.name = "choice",
	.type = WEIR_KNOB_ENUM,
	AT(choice),
	.def = "blue",
	.choices = "red|green|blue"},
    {.name = "list", .type = WEIR_KNOB_STRINGS, AT(list), .def = "a, b"},
    {.name = "records",
	.type = WEIR_KNOB_RECORDS,
	AT(records),
	.fields = inner_knobs,
	.record_size = sizeof(struct inner)},
    {.name = "inner", .type = WEIR_KNOB_MAP, AT(inner), .fields = plain_inner_knobs},
    {.name = NULL}};

static inline const struct weir_knob *row_of(const char *name)
{
	return weir_knob_find(all_knobs, name);
}

#endif
