/* SPDX-License-Identifier: MIT */
/*
 * Builds a plan from a spec: resolves stage types, configurations and groups. See plan.h.
 *
 * Every check adds its errors and continues, so that one run reports all errors. Later checks skip
 * stages of unknown type.
 */
#include "plan/plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/spec_names.h>

#include <weir/log.h>

#include "stage/stage.h"

/* Whether `name` is valid. Names appear in metrics, JSON and web pages, so only some characters are
 * allowed. */
static bool name_ok(const char *name)
{
	size_t n = strlen(name);

	return n >= 1 && n <= WEIR_NAME_MAX &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
		   n;
}

void plan_name(struct plan *p, const char *kind, const char *name, const struct weir_mark *mark)
{
	if (!name_ok(name))
		weir_errs_add(p->errs, mark, WEIR_EINVAL,
		    "use 1 to 64 letters, digits, '_', '.' and '-'",
		    "'%.80s' cannot be the name of a %s", name, kind);
}

void plan_warn(const struct weir_mark *mark, const char *fmt, ...)
{
	char text[400];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (mark->file)
		weir_log(WEIR_LOG_WARN, "%s:%d:%d: %s", mark->file, mark->line, mark->col, text);
	else
		weir_log(WEIR_LOG_WARN, "%s", text);
}

static const char *nearest_type(const char *use)
{
	const char *names[256];
	int n = 0;

	for (const struct weir_stage_ops *ops; n < 256 && (ops = weir_stage_type_at(n)); n++)
		names[n] = ops->name;
	return weir_nearest(use, names, n);
}

static void resolve_type(struct plan *p, struct plan_stage *ps)
{
	const struct weir_stage_spec *s = ps->spec;
	char hint[120] = "`weir list` shows the stage types";

	ps->ops = weir_stage_type_find(s->use);
	if (ps->ops)
		return;
	const char *near = nearest_type(s->use);
	if (near)
		snprintf(hint, sizeof(hint), "did you mean '%s'?", near);
	weir_errs_add(p->errs, &s->use_mark, WEIR_ENOENT, hint,
	    "there is no stage type '%s' for stage '%s'", s->use, s->name);
}

static void check_conf(struct plan *p, struct plan_stage *ps)
{
	struct conf *conf = NULL;

	int rc = conf_new(ps->ops, ps->spec->with, ps->spec->name, &conf, p->errs);
	if (rc == 0 && ps->ops->service_ns)
		ps->service_ns = ps->ops->service_ns(conf->data);
	if (rc == 0 && ps->ops->per_loop)
		ps->per_loop = ps->ops->per_loop(conf->data);
	conf_put(conf);
}

static void resolve_group(struct plan *p, struct plan_stage *ps)
{
	const struct weir_stage_spec *s = ps->spec;
	char hint[120];

	ps->group = -1;
	if (!s->group || !s->group[0])
		return;
	for (int g = 0; g < p->spec->n_groups; g++)
		if (strcmp(p->spec->groups[g].name, s->group) == 0)
			ps->group = g;
	if (ps->group >= 0)
		return;
	snprintf(
	    hint, sizeof(hint), "declare it at the top level: groups: { %.64s: {} }", s->group);
	weir_errs_add(p->errs, &s->mark, WEIR_ENOENT, hint,
	    "stage '%s' is in group '%s', which does not exist", s->name, s->group);
}

/* Check that the name of `s` is not also the path of a key of another stage. If `s` is called
 * r.admission and another stage r, `--set r.admission.mode=off` could mean either stage. */
static void check_path(struct plan *p, const struct weir_stage_spec *s)
{
	for (int i = 0; i < p->n; i++) {
		const char *other = p->spec->stages[i].name;
		size_t n = strlen(other);
		char key[WEIR_NAME_MAX + 1];
		if (strncmp(s->name, other, n) != 0 || s->name[n] != '.')
			continue;
		snprintf(
		    key, sizeof(key), "%.*s", (int)strcspn(s->name + n + 1, "."), s->name + n + 1);
		if (weir_knob_find(weir_stage_knobs, key) || strcmp(key, "with") == 0)
			weir_errs_add(p->errs, &s->mark, WEIR_EINVAL,
			    "rename one of them, for example with '-' instead of '.'",
			    "the name of stage '%s' is also the path of '%s:' of stage '%s'",
			    s->name, key, other);
	}
}

static void check_stages(struct plan *p)
{
	for (int i = 0; i < p->n; i++) {
		struct plan_stage *ps = &p->stages[i];
		ps->spec = &p->spec->stages[i];
		plan_name(p, "stage", ps->spec->name, &ps->spec->mark);
		for (int k = 0; k < i; k++)
			if (strcmp(p->spec->stages[k].name, ps->spec->name) == 0)
				weir_errs_add(p->errs, &ps->spec->mark, WEIR_EINVAL, NULL,
				    "there are two stages called '%s'", ps->spec->name);
		check_path(p, ps->spec);
		resolve_type(p, ps);
		resolve_group(p, ps);
		if (ps->ops)
			check_conf(p, ps);
	}
}

int plan_make(const struct weir_spec *spec, struct plan *p, struct weir_errs *errs)
{
	int before = errs->total;

	*p = (struct plan){.spec = spec, .n = spec->n_stages, .errs = errs};
	if (p->n == 0)
		return weir_errs_add(
		    errs, NULL, WEIR_EINVAL, "add 'stages:'", "there are no stages");
	if (p->n > WEIR_STAGES_MAX)
		return weir_errs_add(errs, &spec->stages[WEIR_STAGES_MAX].mark, WEIR_EINVAL,
		    "this is the first stage over the limit: merge some stages, or run two servers",
		    "there are %d stages, at most %d are allowed", p->n, WEIR_STAGES_MAX);
	p->stages = calloc((size_t)p->n, sizeof(*p->stages));
	p->order = calloc((size_t)p->n, sizeof(*p->order));
	if (!p->stages || !p->order)
		return weir_errs_add(errs, NULL, WEIR_ENOMEM, NULL, "out of memory");
	check_stages(p);
	plan_links(p);
	plan_order(p);
	plan_types(p);
	plan_children(p);
	plan_classes(p);
	plan_placement(p);
	plan_payloads(p);
	plan_payloads_many(p);
	plan_slo(p);
	return errs->total > before ? WEIR_EINVAL : 0;
}

int weir_spec_check_names(const struct weir_spec *spec, struct weir_errs *errs)
{
	struct plan p = {.spec = spec, .n = spec->n_stages, .errs = errs};
	int before = errs->total;

	if (p.n == 0 || p.n > WEIR_STAGES_MAX) /* weir_spec_check reports it */
		return 0;
	p.stages = calloc((size_t)p.n, sizeof(*p.stages));
	if (!p.stages)
		return weir_errs_add(errs, NULL, WEIR_ENOMEM, NULL, "out of memory");
	for (int i = 0; i < p.n; i++) {
		p.stages[i].spec = &spec->stages[i];
		if (spec->stages[i].use[0]) /* otherwise a loader has reported that it is missing */
			resolve_type(&p, &p.stages[i]);
	}
	int rc = plan_link_names(&p);
	plan_free(&p);
	return rc == 0 && errs->total > before ? WEIR_EINVAL : rc;
}

void plan_free(struct plan *p)
{
	for (int i = 0; p->stages && i < p->n; i++)
		free(p->stages[i].outlets);
	free(p->stages);
	free(p->order);
	*p = (struct plan){0};
}
