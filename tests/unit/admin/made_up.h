/* SPDX-License-Identifier: MIT */
/*
 * A made-up server for tests of the admin endpoint: five stages, two classes, busy and shedding.
 *
 *   web (source) -> cache (inline) -> disk (pool, sheds) -> cache (a loop) or nowhere
 *   web -> log (group)
 *   a stage without links whose name is markup
 *
 * made_up_init fills it, and tests change the values they are about. made_up_source returns it as a
 * source whose set() accepts only "threads.max" of "disk", from 1 to 64.
 */
#ifndef WEIR_TESTS_ADMIN_MADE_UP_H
#define WEIR_TESTS_ADMIN_MADE_UP_H

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/api/graph_source.h"

#define MADE_UP_STAGES 5

struct made_up {
	struct weir_graph_view view;
	struct weir_stage_view stage[MADE_UP_STAGES];
	struct weir_link_view link[8];
	struct weir_decision decision[3];
	char threads_max[16];
	enum weir_admission_mode overload;
	bool no_memory; /* view() fails */
	int n_views;    /* returned and not yet freed */
};

enum { MADE_WEB, MADE_CACHE, MADE_DISK, MADE_LOG, MADE_ODD };
void made_up_times(struct weir_hist *h, int64_t ns, uint64_t n);
void made_up_init(struct made_up *m);

/* ---- as a source ---- */

int made_up_view(void *arg, struct weir_graph_view **view);
struct admin_source made_up_source(struct made_up *m);

#endif
