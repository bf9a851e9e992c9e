/* SPDX-License-Identifier: MIT */
/*
 * Checks `with:`. It is stored as written and bound when the graph is built. It is also bound here,
 * into a temporary block, so that its mistakes are reported together with those of other sections.
 * A stage key that is in `with:` by mistake is reported with a hint.
 */
#include "bind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tree.h"

static const struct weir_knob no_knobs[] = {{.name = NULL}};

static bool is_misplaced(const struct weir_stage_ops *ops, const char *key)
{
	return config_is_stage_key(key) && !weir_knob_find(ops->knobs, key);
}

static void report_misplaced(
    struct bind *bind, const struct weir_stage_ops *ops, const struct weir_node *name)
{
	weir_errs_add(bind->errs, &name->mark, WEIR_EINVAL,
	    "move the key to the stage, beside 'with:'", "'%s' is not a key of '%s'", name->text,
	    ops->name);
}

/* Report the misplaced entries of `node`. Copy the others to the arrays of `placed`, which share
 * their nodes with `node`. */
static int keep_placed(struct bind *bind, const struct weir_stage_ops *ops,
    const struct weir_node *node, struct weir_node *placed)
{
	placed->item = calloc((size_t)node->n + 1, sizeof(*placed->item));
	placed->name = calloc((size_t)node->n + 1, sizeof(*placed->name));
	if (!placed->item || !placed->name)
		return WEIR_ENOMEM;
	for (int i = 0; i < node->n; i++) {
		if (is_misplaced(ops, node->name[i]->text)) {
			report_misplaced(bind, ops, node->name[i]);
			continue;
		}
		placed->name[placed->n] = node->name[i];
		placed->item[placed->n++] = node->item[i];
	}
	return 0;
}

static int check_stage(
    struct bind *bind, const struct weir_stage_ops *ops, const struct weir_stage_spec *stage)
{
	const struct weir_knob *knobs = ops->knobs ? ops->knobs : no_knobs;
	struct weir_node placed = {.kind = WEIR_NODE_MAP, .mark = stage->use_mark};
	void *scratch = calloc(1, ops->conf_size + 1);
	char where[160];
	int rc = scratch ? 0 : WEIR_ENOMEM;

	snprintf(where, sizeof(where), "'with' of stage '%.64s' (%.40s)", stage->name, ops->name);
	if (rc == 0 && stage->with)
		rc = keep_placed(bind, ops, stage->with, &placed);
	if (rc == 0)
		rc = weir_knobs_init(knobs, scratch);
	if (rc == 0) {
		weir_knobs_bind(knobs, &placed, scratch, where, bind->errs);
		weir_knobs_fini(knobs, scratch);
	}
	free(scratch);
	free(placed.item);
	free(placed.name);
	return rc == 0 ? 0 : source_no_memory(bind->errs);
}

/* Report a stage type whose plug-in only an earlier configuration has named. The plug-in is still
 * loaded, but it would not be after a restart. */
static void report_left(struct bind *bind, const struct weir_stage_spec *stage)
{
	weir_errs_add(bind->errs, &stage->use_mark, WEIR_ENOENT, "add 'plugin: FILE.so'",
	    "stage type '%s' comes from a plug-in that this file does not name", stage->use);
}

int bind_check_with(struct bind *bind)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < bind->spec->n_stages; i++) {
		const struct weir_stage_spec *stage = &bind->spec->stages[i];
		const struct weir_stage_ops *ops = weir_stage_type_find(stage->use);
		if (ops && weir_stage_type_left(stage->use))
			report_left(bind, stage);
		else if (ops)
			rc = check_stage(bind, ops, stage);
	}
	return rc;
}
