/* SPDX-License-Identifier: MIT */
/*
 * Creates specs with default values, extends and frees them. The tables of defaults are in
 * spec_knobs.c; spec_set.c sets knobs by path. A spec may be used by one thread at a time; there is
 * no global state.
 */
#include <weir/log.h>
#include <weir/spec.h>

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "plan/spec_rows.h"

/* Defaults of the two times of `drain:`; both are guesses. 10 s of grace is longer than requests
 * take, and shorter than the stop timeout of service managers (90 s in systemd). */
#define GRACE_DEFAULT_NS (10 * NS_PER_S)
/* Default of `payloads.memory`, a guess: more than most servers need, less than most have. */
#define PAYLOAD_DEFAULT_BYTES (INT64_C(1) << 30)
/* Default of `payloads.family_memory`, a guess: a quarter of the above, so that one client leaves some. */
#define FAMILY_DEFAULT_BYTES (INT64_C(256) << 20)
#define OLD_DEFAULT_NS       (600 * NS_PER_S)

/* Guaranteed share of a class below the highest priority. 2 % is a guess: enough completions to
 * determine whether the class is served well. */
#define GUARANTEE_DEFAULT 0.02

/* Share of the traces that are exported. 1 % is a guess: it covers some requests of every kind and
 * takes little storage. */
#define TRACE_SAMPLE_DEFAULT 0.01

int weir_spec_text(char **member, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return WEIR_ENOMEM;
	free(*member);
	*member = copy;
	return 0;
}

struct weir_spec *weir_spec_new(const char *name)
{
	struct weir_spec *spec = calloc(1, sizeof(*spec));

	if (!spec)
		return NULL;
	spec->grace_ns = GRACE_DEFAULT_NS;
	spec->old_ns = OLD_DEFAULT_NS;
	spec->payload_bytes = PAYLOAD_DEFAULT_BYTES;
	spec->family_bytes = FAMILY_DEFAULT_BYTES;
	spec->overload_mode = WEIR_ADMISSION_ENFORCE;
	spec->alerts = weir_alerts_default();
	spec->trace = (struct weir_trace_spec){.sample = TRACE_SAMPLE_DEFAULT,
	    .slow = WEIR_TRACE_SLOW_ALWAYS,
	    .parent = WEIR_TRACE_PARENT_FOLLOW};
	spec->log = (struct weir_log_spec){.format = WEIR_LOG_LOGFMT, .level = WEIR_LOG_INFO};
	if (weir_spec_text(&spec->name, name) != 0 || weir_spec_text(&spec->user, "") != 0 ||
	    weir_spec_text(&spec->trace.otlp, "") != 0 ||
	    weir_spec_text(&spec->log.file, "stderr") != 0 ||
	    weir_spec_text(&spec->admin.listen, "") != 0 ||
	    weir_spec_text(&spec->admin.history.file, "") != 0 ||
	    weir_spec_text(&spec->admin.tls.cert, "") != 0 ||
	    weir_spec_text(&spec->admin.tls.key, "") != 0) {
		weir_spec_free(spec);
		return NULL;
	}
	return spec;
}

/* Append a zeroed element to *array, which has `n` elements. The caller increments its count. */
static void *append(void **array, int n, size_t size)
{
	void *bigger = realloc(*array, ((size_t)n + 1) * size);

	if (!bigger)
		return NULL;
	*array = bigger;
	return memset((char *)bigger + (size_t)n * size, 0, size);
}

static void free_stage(struct weir_stage_spec *s)
{
	for (int i = 0; i < s->n_to; i++) {
		free(s->to[i].outlet);
		free(s->to[i].stage);
	}
	free(s->to);
	weir_node_free(s->with);
	weir_knobs_fini(weir_stage_knobs, s);
	free(s->name);
	free(s->use);
	*s = (struct weir_stage_spec){0};
}

struct weir_stage_spec *weir_spec_add_stage(
    struct weir_spec *spec, const char *name, const char *use)
{
	void *array = spec->stages;
	struct weir_stage_spec *s = append(&array, spec->n_stages, sizeof(*s));

	spec->stages = array;
	if (!s)
		return NULL;
	if (weir_spec_text(&s->name, name) != 0 || weir_spec_text(&s->use, use) != 0 ||
	    weir_knobs_init(weir_stage_knobs, s) != 0) {
		free_stage(s);
		return NULL;
	}
	spec->n_stages++;
	return s;
}

static void free_group(struct weir_group_spec *g)
{
	weir_knobs_fini(weir_group_knobs, g);
	free(g->name);
	*g = (struct weir_group_spec){0};
}

struct weir_group_spec *weir_spec_add_group(struct weir_spec *spec, const char *name)
{
	void *array = spec->groups;
	struct weir_group_spec *g = append(&array, spec->n_groups, sizeof(*g));

	spec->groups = array;
	if (!g)
		return NULL;
	if (weir_spec_text(&g->name, name) != 0 || weir_knobs_init(weir_group_knobs, g) != 0) {
		free_group(g);
		return NULL;
	}
	spec->n_groups++;
	return g;
}

struct weir_class_spec *weir_spec_add_class(struct weir_spec *spec, const char *name)
{
	void *array = spec->classes;
	struct weir_class_spec *c = append(&array, spec->n_classes, sizeof(*c));

	spec->classes = array;
	if (!c || weir_spec_text(&c->name, name) != 0)
		return NULL;
	c->slo_ns = SLO_DEFAULT_NS;
	c->priority = -1;
	c->guarantee = -1;
	spec->n_classes++;
	return c;
}

struct weir_admin_client_spec *weir_spec_add_client(
    struct weir_spec *spec, const char *name, const char *file)
{
	struct weir_admin_spec *a = &spec->admin;
	struct weir_admin_client_spec **list = file ? &a->tokens : &a->users;
	int *n = file ? &a->n_tokens : &a->n_users;
	void *array = *list;
	struct weir_admin_client_spec *c = append(&array, *n, sizeof(*c));

	*list = array;
	if (!c)
		return NULL;
	/* count the client now, so that weir_spec_free frees its strings if setting one of them
	 * fails */
	++*n;
	c->role = WEIR_ADMIN_VIEWER;
	if (weir_spec_text(&c->name, name) != 0 || weir_spec_text(&c->file, file ? file : "") != 0)
		return NULL;
	return c;
}

void weir_spec_shares(const struct weir_spec *spec, int priority[WEIR_CLASSES_MAX],
    double guarantee[WEIR_CLASSES_MAX])
{
	int next = 0;

	for (int c = 0; c < spec->n_classes && c < WEIR_CLASSES_MAX; c++) {
		const struct weir_class_spec *cs = &spec->classes[c];
		priority[c] = cs->priority < 0 ? next : (int)cs->priority;
		next = priority[c] + 1;
		guarantee[c] = cs->guarantee >= 0           ? cs->guarantee
			       : priority[c] == priority[0] ? 0
							    : GUARANTEE_DEFAULT;
	}
}

const char *weir_spec_admission(const struct weir_stage_spec *stage, bool queued)
{
	const char *policy = stage->admission.policy;

	if (policy && strcmp(policy, "auto") != 0)
		return policy;
	return queued ? "weir" : "none";
}

int64_t weir_spec_width_max(const struct weir_stage_spec *stage)
{
	return stage->width.max < 0 ? stage->queue.limit : stage->width.max;
}

int64_t weir_spec_slo_ns(const struct weir_spec *spec, const struct weir_stage_spec *stage)
{
	int64_t least_ns = INT64_MAX;

	if (stage->slo_ns >= 0)
		return stage->slo_ns;
	for (int c = 0; c < spec->n_classes; c++)
		if (spec->classes[c].slo_ns < least_ns)
			least_ns = spec->classes[c].slo_ns;
	return spec->n_classes > 0 ? least_ns : SLO_DEFAULT_NS;
}

int weir_spec_link(struct weir_stage_spec *stage, const char *outlet, const char *to, bool loop)
{
	void *array = stage->to;
	struct weir_link_spec *l = append(&array, stage->n_to, sizeof(*l));

	stage->to = array;
	if (!l)
		return WEIR_ENOMEM;
	l->loop = loop;
	if (weir_spec_text(&l->outlet, outlet) != 0 || weir_spec_text(&l->stage, to) != 0) {
		free(l->outlet);
		return WEIR_ENOMEM;
	}
	stage->n_to++;
	return 0;
}

static void free_class(struct weir_class_spec *c)
{
	for (int i = 0; i < c->n_match; i++) {
		free(c->match[i].field);
		free(c->match[i].pattern);
	}
	free(c->match);
	free(c->name);
}

static void free_clients(struct weir_admin_client_spec *client, int n)
{
	for (int i = 0; i < n; i++) {
		free(client[i].name);
		free(client[i].file);
	}
	free(client);
}

static void free_admin(struct weir_admin_spec *a)
{
	free_clients(a->tokens, a->n_tokens);
	free_clients(a->users, a->n_users);
	for (int i = 0; i < a->hosts.n; i++)
		free(a->hosts.items[i]);
	free(a->hosts.items);
	free(a->tls.cert);
	free(a->tls.key);
	free(a->listen);
	free(a->history.file);
}

void weir_spec_free(struct weir_spec *spec)
{
	if (!spec)
		return;
	for (int i = 0; i < spec->n_stages; i++)
		free_stage(&spec->stages[i]);
	for (int i = 0; i < spec->n_groups; i++)
		free_group(&spec->groups[i]);
	for (int i = 0; i < spec->n_classes; i++)
		free_class(&spec->classes[i]);
	for (int i = 0; i < spec->n_plugins; i++)
		free(spec->plugins[i].path);
	free(spec->stages);
	free(spec->groups);
	free(spec->classes);
	free(spec->plugins);
	free(spec->name);
	free(spec->path);
	free(spec->user);
	free(spec->trace.otlp);
	free(spec->log.file);
	free_admin(&spec->admin);
	weir_alerts_free(&spec->alerts);
	/* last, since marks point into the sources */
	if (spec->free_sources)
		spec->free_sources(spec->sources);
	free(spec);
}
