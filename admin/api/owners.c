/* SPDX-License-Identifier: MIT */
/* Finds the stage, group or class that a request names; see owners.h. */
#include "owners.h"

#include <string.h>

#include <weir/knob.h>

#include "routes.h"

/* Maximum number of stages compared with a misspelled name. */
#define STAGES_NEAR_MAX 256

/* A stage with a pool of its own has its own name as that of its group. */
bool has_group(const struct weir_graph_view *v, const char *name)
{
	for (int i = 0; i < v->n_stages; i++)
		if (strcmp(v->stages[i].group, name) == 0 && strcmp(v->stages[i].name, name) != 0)
			return true;
	return false;
}

const struct weir_stage_view *find_named(
    const struct weir_graph_view *v, const char *name, const char *what, struct reply *r)
{
	const char *names[STAGES_NEAR_MAX];
	int n = 0;

	for (int i = 0; i < v->n_stages; i++) {
		if (strcmp(v->stages[i].name, name) == 0)
			return &v->stages[i];
		if (n < STAGES_NEAR_MAX)
			names[n++] = v->stages[i].name;
	}
	if (has_group(v, name)) {
		reply_problem(r, 404,
		    "there is no stage '%s': it is a group, see " GROUPS_PATH "/%s/knobs", name,
		    name);
		return NULL;
	}
	const char *near = weir_nearest(name, names, n);
	reply_problem(r, 404, "there is no %s '%s'%s%s%s", what, name,
	    near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
	return NULL;
}

bool find_class(const struct weir_graph_view *v, const char *owner, struct reply *r)
{
	const char *name = owner + sizeof(CLASSES_OWNER) - 1;

	for (int i = 0; i < v->n_classes; i++)
		if (strcmp(v->class_name[i], name) == 0)
			return true;
	const char *near = weir_nearest(name, v->class_name, v->n_classes);
	reply_problem(r, 404, "there is no class '%s'%s%s%s", name, near ? ", did you mean '" : "",
	    near ? near : "", near ? "'?" : "");
	return false;
}
