/* SPDX-License-Identifier: MIT */
/* The random configurations of torture_undo: stage types, shapes, specs and graphs made of them. */
#ifndef WEIR_TESTS_TORTURE_UNDO_SHAPES_H
#define WEIR_TESTS_TORTURE_UNDO_SHAPES_H

#include "fixture/graph/graph.h"

#define STAGES_MAX 6
#define VALUES     6

extern unsigned rnd; /* state of the random numbers */

unsigned below(unsigned n);

/* ---- stage types ---- */

struct word_conf {
	char *word;
	int64_t number;
};

extern const struct weir_stage_ops word_ops;
extern const struct weir_stage_ops single_ops;
extern const struct weir_stage_ops spring_ops;
extern const struct weir_stage_ops mute_ops;

/* ---- what a file may say ---- */

enum place { OWN, IN_G, IN_H, INLINE, PLACES };

struct one {
	char name[8];
	const char *use;
	enum place place;
	int mode; /* enum weir_stage_mode */
	const char *policy;
	char value[VALUES][24]; /* of value_knob[] */
};

/* A source, and a chain behind it. */
struct shape {
	int n;
	struct one one[STAGES_MAX];
	int overload;
};

extern const char *const value_knob[VALUES];
extern const char *const value_text[VALUES][4];

void random_shape(struct shape *f);

/* Make a random change of a kind that a reload can bring. Returns whether only values change. */
bool change_shape(struct shape *f);

/* Build the graph of `f`; NULL when the check refuses `f`. */
struct weir_graph *build(const struct shape *f);

#endif
