/* SPDX-License-Identifier: MIT */
/* Builds and runs a chain of inline stages; see work.h. */
#include "work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/spec.h>
#include <weir/stage.h>

/* Types that are registered a second time, by position in the chain. They are static, since
 * registered types must stay valid until the process exits. */
static struct weir_stage_ops inline_ops[WORK_STAGES_MAX];
static char inline_name[WORK_STAGES_MAX][64];

/* Return the name under which the type `use` may run inline, or NULL if the type does not exist. */
static const char *inline_type(const char *use, int at, struct weir_errs *errs)
{
	const struct weir_stage_ops *ops = weir_stage_type_find(use);
	struct weir_err err = {0};

	if (!ops) {
		weir_errs_add(errs, NULL, WEIR_ENOENT, NULL, "there is no stage type '%s'", use);
		return NULL;
	}
	if (!(ops->flags & WEIR_STAGE_BLOCKS))
		return ops->name;
	snprintf(inline_name[at], sizeof(inline_name[at]), "inline%d.%s", at, use);
	inline_ops[at] = *ops;
	inline_ops[at].name = inline_name[at];
	inline_ops[at].flags &= ~(unsigned)WEIR_STAGE_BLOCKS;
	if (weir_stage_register(&inline_ops[at], &err) == 0)
		return inline_name[at];
	weir_errs_add(errs, NULL, err.code, NULL, "%s", err.text);
	return NULL;
}

/* Parse "KNOB=VALUE,KNOB=VALUE" into `with:` of `s`. Modifies `text`. */
static int set_knobs(struct weir_stage_spec *s, char *text, struct weir_errs *errs)
{
	char *rest = text, *pair, path[96], why[256] = "";

	while ((pair = strsep(&rest, ",")) != NULL) {
		char *value = strchr(pair, '=');
		if (!value)
			return weir_errs_add(
			    errs, NULL, WEIR_EINVAL, "write KNOB=VALUE", "'%s' sets nothing", pair);
		*value++ = '\0';
		snprintf(path, sizeof(path), "with.%s", pair);
		if (weir_stage_spec_set(s, path, value, why, sizeof(why)) != 0)
			return weir_errs_add(errs, NULL, WEIR_EINVAL, NULL, "%s", why);
	}
	return 0;
}

static int add_stage(struct weir_spec *spec, const char *word, int at, struct weir_errs *errs)
{
	char name[16], *use = strdup(word);
	char *knobs = use ? strchr(use, ':') : NULL;
	int rc = use ? 0 : weir_errs_add(errs, NULL, WEIR_ENOMEM, NULL, "out of memory");

	if (knobs)
		*knobs++ = '\0';
	const char *type = rc == 0 ? inline_type(use, at, errs) : NULL;
	snprintf(name, sizeof(name), "work%d", at);
	struct weir_stage_spec *s = type ? weir_spec_add_stage(spec, name, type) : NULL;
	if (!s)
		rc = WEIR_EINVAL;
	if (rc == 0) {
		s->inlined = true;
		rc = knobs ? set_knobs(s, knobs, errs) : 0;
	}
	free(use);
	return rc;
}

static int add_links(struct weir_spec *spec)
{
	for (int i = 0; i + 1 < spec->n_stages; i++)
		if (weir_spec_link(&spec->stages[i], "", spec->stages[i + 1].name, false) != 0)
			return WEIR_ENOMEM;
	return 0;
}

int work_open(struct work *w, char *const *word, int n, struct weir_errs *errs)
{
	struct weir_spec *spec = weir_spec_new("threaded");
	int rc = spec ? 0 : WEIR_ENOMEM;

	*w = (struct work){0};
	for (int i = 0; rc == 0 && i < n; i++)
		rc = add_stage(spec, word[i], i, errs);
	if (rc == 0)
		rc = add_links(spec);
	if (rc == 0)
		rc = weir_graph_build(spec, &w->graph, errs);
	if (rc != 0) {
		weir_spec_free(spec);
		return rc;
	}
	rc = weir_graph_start(w->graph, errs);
	if (rc != 0) {
		weir_graph_free(w->graph);
		return rc;
	}
	w->door = weir_graph_stage(w->graph, "work0");
	return 0;
}

int64_t work_close(struct work *w)
{
	struct weir_drain_report report;

	weir_graph_drain(w->graph, 1000000000LL, &report);
	weir_graph_free(w->graph);
	*w = (struct work){0};
	return report.law_error;
}

void work_run(const struct work *w, struct weir_http_request *req)
{
	struct weir_event *ev = &req->ev;
	struct timespec ts;
	int reason = WEIR_OK;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	weir_event_init(ev, &weir_http_request_type, ts.tv_sec * 1000000000LL + ts.tv_nsec);
	if (weir_offer(w->door, &ev, 1, &reason) == 0)
		weir_event_finish(&ev, reason);
}
