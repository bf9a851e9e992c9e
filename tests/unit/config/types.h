/* SPDX-License-Identifier: MIT */
/*
 * Stage types for the tests of config/: a source, a stage with every kind of knob, one that may
 * block.
 *
 * They are registered in addition to weir's own types, so changes to weir's knobs do not change the
 * messages expected by these tests.
 */
#ifndef WEIR_TESTS_CONFIG_TYPES_H
#define WEIR_TESTS_CONFIG_TYPES_H

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <weir/stage.h>

struct types_limit {
	char *path;
	double rate;
};

struct types_conf {
	char *listen, *root;
	int64_t connections, size_bytes, time_ns;
	double rate, share;
	bool verbose;
	int dist;
	struct weir_strings names;
	struct weir_records limits;
	struct types_limit limit;
};

void types_handle(struct weir_stage *st, struct weir_event **ev, int n);

/** Register the types once. Every test calls it first. */
void types_register(void);

#endif
