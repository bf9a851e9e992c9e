/* SPDX-License-Identifier: MIT */
/*
 * Compares two configurations. Each is a text of "path value" lines, which are sorted and merged.
 *
 * The loader's tables of rows determine whether a knob is live. The first matching class wins, so
 * the order of the classes is significant: the list of their names is compared as an additional
 * value.
 */
#include "diff.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>
#include <weir/spec.h>
#include <weir/stage.h>

#define CLASSES "classes"
#define STAGES  "stages."
#define GROUPS  "groups."

/** A configuration, split into lines. */
struct values {
	struct value {
		char *path;
		const char *text;
	} * at;
	int n;
};

struct comparing {
	struct values before, after;
	struct config_diff *diff;
	bool no_memory;
};

/* ---- reading ---- */

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct value *)a)->path, ((const struct value *)b)->path);
}

/* Add the names of the classes, in their order, as one value. The names are written to `order`.
 * Classes are found by the line ".guarantee", which every class has. */
static void add_class_order(struct values *v, char *order)
{
	static const char last[] = ".guarantee";
	const size_t skip = sizeof(CLASSES), cut = sizeof(last) - 1;
	char *end = order;

	*end = '\0';
	for (int i = 0; i < v->n; i++) {
		const char *path = v->at[i].path;
		size_t n = strlen(path);
		if (n > skip + cut && strncmp(path, CLASSES ".", skip) == 0 &&
		    strcmp(path + n - cut, last) == 0)
			end += sprintf(end, "%s%.*s", end == order ? "" : " ",
			    (int)(n - skip - cut), path + skip);
	}
	v->at[v->n++] = (struct value){order + strlen(order) + 1, order};
	strcpy(v->at[v->n - 1].path, CLASSES);
}

/* Split a copy of `text` into values. The values point into *copy, which the caller frees. */
static int read_values(const char *text, struct values *v, char **copy)
{
	size_t bytes = strlen(text) + 1, n_lines = 1;

	for (const char *p = text; *p; p++)
		n_lines += *p == '\n';
	/* The copy is followed by space for the order of the classes, which is shorter than the
	 * text. */
	*copy = malloc(2 * bytes + sizeof(CLASSES));
	v->at = calloc(n_lines + 1, sizeof(*v->at));
	v->n = 0;
	if (!*copy || !v->at)
		return WEIR_ENOMEM;
	memcpy(*copy, text, bytes);
	for (char *line = *copy, *next; *line; line = next) {
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		char *space = line + strcspn(line, " ");
		if (*space)
			*space++ = '\0';
		v->at[v->n++] = (struct value){line, space};
	}
	add_class_order(v, *copy + bytes);
	qsort(v->at, (size_t)v->n, sizeof(*v->at), by_path);
	return 0;
}

static const char *value_of(const struct values *v, const char *path)
{
	const struct value key = {(char *)(uintptr_t)path, NULL};
	const struct value *found =
	    v->n > 0 ? bsearch(&key, v->at, (size_t)v->n, sizeof(key), by_path) : NULL;

	return found ? found->text : NULL;
}

/* ---- classifying ---- */

/* Return the type of the stage called name[0..n), or NULL if `v` has no such stage. */
static const char *type_of(const struct values *v, const char *name, size_t n)
{
	char use[256];

	snprintf(use, sizeof(use), STAGES "%.*s.use", (int)n, name);
	return value_of(v, use);
}

/* Return the length of the stage name in `path`, or 0 if `path` is not below a stage. Names may
 * contain dots, so the longest name that exists in either configuration is used. */
static size_t stage_bytes(const struct comparing *c, const char *path)
{
	const char *name = path + sizeof(STAGES) - 1;
	size_t found = 0;

	if (strncmp(path, STAGES, sizeof(STAGES) - 1) != 0)
		return 0;
	for (size_t n = strcspn(name, "."); name[n]; n += 1 + strcspn(name + n + 1, "."))
		if (type_of(&c->before, name, n) || type_of(&c->after, name, n))
			found = n;
	return found;
}

static bool row_is_live(const struct weir_knob *table, const char *path)
{
	char word[128];
	size_t n = strcspn(path, ".");

	snprintf(word, sizeof(word), "%.*s", (int)n, path);
	const struct weir_knob *row = table ? weir_knob_find(table, word) : NULL;
	if (row && row->type == WEIR_KNOB_MAP && path[n] == '.')
		return row_is_live(row->fields, path + n + 1);
	return row && path[n] == '\0' && row->flags & WEIR_KNOB_LIVE;
}

static bool knob_is_live(const char *type, const char *knob)
{
	const struct weir_stage_ops *ops = weir_stage_type_find(type);

	if (strncmp(knob, "with.", 5) != 0)
		return row_is_live(weir_stage_knobs, knob);
	/* Only direct members of `with:` can be live. */
	return ops && !strchr(knob + 5, '.') && row_is_live(ops->knobs, knob + 5);
}

/* Return the knob in `path`, which is below a group; NULL if it is not. Names may contain dots, so the
 * longest name of a group is used. Every group has a line ".schedule". */
static const char *group_knob(const struct comparing *c, const char *path)
{
	const char *name = path + sizeof(GROUPS) - 1, *found = NULL;
	char line[256];

	if (strncmp(path, GROUPS, sizeof(GROUPS) - 1) != 0)
		return NULL;
	for (size_t n = strcspn(name, "."); name[n]; n += 1 + strcspn(name + n + 1, ".")) {
		snprintf(line, sizeof(line), GROUPS "%.*s.schedule", (int)n, name);
		if (value_of(&c->after, line))
			found = name + n + 1;
	}
	return found;
}

/* Return the knob in `path`, which is below a class; NULL if it is not. No knob of a class has a dot
 * in its name. */
static const char *class_knob(const char *path)
{
	const char *dot = strrchr(path, '.');

	return strncmp(path, CLASSES ".", sizeof(CLASSES)) == 0 ? dot + 1 : NULL;
}

/* Only a new graph can turn a pool into a core group, and give CPUs to the cores one by one. */
static bool group_is_live(const char *knob, const struct config_difference *d)
{
	if (strcmp(knob, "schedule") == 0)
		return strcmp(d->from, "shared") != 0 && strcmp(d->to, "shared") != 0;
	if (strcmp(knob, "cores") == 0)
		return !strpbrk(d->from, "-,") && !strpbrk(d->to, "-,");
	return row_is_live(weir_group_knobs, knob);
}

static bool differs(const struct comparing *c, const char *path)
{
	const char *a = value_of(&c->before, path), *b = value_of(&c->after, path);

	return strcmp(a ? a : "", b ? b : "") != 0;
}

static bool has_tls(const struct values *v)
{
	const char *cert = value_of(v, "admin.tls.cert");

	return cert && strcmp(cert, "\"\"") != 0;
}

bool config_diff_waits(const struct config_diff *diff, const char *path)
{
	/* `path` may be followed by a space and the value. */
	if (strncmp(path, "user", 4) == 0 && (path[4] == '\0' || path[4] == ' '))
		return true;
	return strncmp(path, "admin.", 6) == 0 &&
	       (diff->admin_waits || strncmp(path, "admin.listen", 12) == 0 ||
		   strncmp(path, "admin.history.", 14) == 0);
}

static enum config_effect effect_of(const struct comparing *c, const struct config_difference *d)
{
	const char *name = d->path + sizeof(STAGES) - 1;

	if (config_diff_waits(c->diff, d->path))
		return CONFIG_RESTART;
	if (strncmp(d->path, "drain.", 6) == 0 || strncmp(d->path, "overload.", 9) == 0 ||
	    strncmp(d->path, "payloads.", 9) == 0 || strncmp(d->path, "log.", 4) == 0 ||
	    strncmp(d->path, "alerts.", 7) == 0 || strncmp(d->path, "admin.", 6) == 0)
		return CONFIG_LIVE;
	const char *of_group = d->from && d->to ? group_knob(c, d->path) : NULL;
	if (of_group)
		return group_is_live(of_group, d) ? CONFIG_LIVE : CONFIG_REBUILD;
	const char *of_class = d->from && d->to ? class_knob(d->path) : NULL;
	if (of_class)
		return row_is_live(weir_class_knobs, of_class) ? CONFIG_LIVE : CONFIG_REBUILD;
	if (d->stage_n == 0 || !d->from || !d->to)
		return CONFIG_REBUILD;
	return knob_is_live(type_of(&c->after, name, (size_t)d->stage_n), name + d->stage_n + 1)
		   ? CONFIG_LIVE
		   : CONFIG_REBUILD;
}

/* ---- collecting ---- */

static void add(struct comparing *c, struct config_difference item)
{
	struct config_diff *d = c->diff;
	struct config_difference *more = realloc(d->item, ((size_t)d->n + 1) * sizeof(*more));

	c->no_memory |= !more;
	if (!more)
		return;
	d->item = more;
	d->item[d->n++] = item;
}

/* Compare a value. `from` or `to` is NULL if that side does not have it. If only one side has the
 * stage, only its type is reported. */
static void compare(struct comparing *c, char *path, const char *from, const char *to)
{
	struct config_difference d = {.path = path, .from = from, .to = to};

	if (from && to && strcmp(from, to) == 0)
		return;
	d.stage_n = (int)stage_bytes(c, path);
	char *knob = path + sizeof(STAGES) - 1 + d.stage_n + 1;
	const char *name = path + sizeof(STAGES) - 1;
	bool was = d.stage_n && type_of(&c->before, name, (size_t)d.stage_n);
	bool is = d.stage_n && type_of(&c->after, name, (size_t)d.stage_n);
	if (was == is) {
		d.effect = effect_of(c, &d);
		add(c, d);
	} else if (strcmp(knob, "use") == 0) {
		d.effect = is ? CONFIG_ADD : CONFIG_REMOVE;
		add(c, d);
	}
}

static void merge(struct comparing *c)
{
	const struct values *a = &c->before, *b = &c->after;

	for (int i = 0, k = 0; i < a->n || k < b->n;) {
		int order = i == a->n ? 1 : k == b->n ? -1 : strcmp(a->at[i].path, b->at[k].path);
		char *path = order <= 0 ? a->at[i].path : b->at[k].path;
		const char *from = order <= 0 ? a->at[i++].text : NULL;
		const char *to = order >= 0 ? b->at[k++].text : NULL;
		compare(c, path, from, to);
	}
}

static bool same_stage(const struct config_difference *a, const struct config_difference *b)
{
	return a->stage_n > 0 && a->stage_n == b->stage_n &&
	       memcmp(a->path, b->path, sizeof(STAGES) - 1 + (size_t)a->stage_n) == 0;
}

/* Count the stages by the strongest effect of their differences. */
static void count(struct config_diff *d)
{
	d->live = true;
	for (int i = 0; i < d->n; i++) {
		enum config_effect worst = d->item[i].effect;
		bool first = true;
		d->n_restart += worst == CONFIG_RESTART;
		d->n_plugins += strncmp(d->item[i].path, "plugin.", 7) == 0;
		d->live &= worst == CONFIG_LIVE || worst == CONFIG_RESTART;
		for (int k = 0; k < d->n; k++) {
			if (!same_stage(&d->item[i], &d->item[k]))
				continue;
			first &= k >= i;
			worst = d->item[k].effect > worst ? d->item[k].effect : worst;
		}
		if (!first || d->item[i].stage_n == 0)
			continue;
		d->n_changed += worst == CONFIG_LIVE;
		d->n_rebuilt += worst == CONFIG_REBUILD;
		d->n_added += worst == CONFIG_ADD;
		d->n_removed += worst == CONFIG_REMOVE;
	}
}

/* Shorten the paths of added and removed stages to "stages.NAME". The NULs are written into the
 * copied texts, which are not searched any more. */
static void cut_paths(struct config_diff *d)
{
	for (int i = 0; i < d->n; i++) {
		struct config_difference *item = &d->item[i];
		if (item->effect == CONFIG_ADD || item->effect == CONFIG_REMOVE)
			((char *)(uintptr_t)
				item->path)[sizeof(STAGES) - 1 + (size_t)item->stage_n] = '\0';
	}
}

int config_diff(const char *before, const char *after, struct config_diff *diff)
{
	struct comparing c = {.diff = diff};

	*diff = (struct config_diff){0};
	int rc = read_values(before, &c.before, &diff->texts[0]);
	if (rc == 0)
		rc = read_values(after, &c.after, &diff->texts[1]);
	if (rc == 0) {
		diff->admin_waits =
		    differs(&c, "admin.listen") || has_tls(&c.before) != has_tls(&c.after);
		merge(&c);
	}
	free(c.before.at);
	free(c.after.at);
	if (rc != 0 || c.no_memory) {
		config_diff_free(diff);
		return WEIR_ENOMEM;
	}
	count(diff);
	cut_paths(diff);
	return 0;
}

/* Copy to `out` the lines of `text` whose change waits for a restart if `waiting` is true, else the
 * other lines. Returns the end of the copied lines. */
static char *copy_lines(char *out, const struct config_diff *diff, const char *text, bool waiting)
{
	for (const char *next; *text; text = next) {
		next = text + strcspn(text, "\n");
		next += *next == '\n';
		if (config_diff_waits(diff, text) == waiting)
			out = mempcpy(out, text, (size_t)(next - text));
	}
	return out;
}

char *config_diff_carry(const struct config_diff *diff, const char *before, const char *after)
{
	char *text = malloc(strlen(before) + strlen(after) + 1);

	if (text)
		*copy_lines(copy_lines(text, diff, before, true), diff, after, false) = '\0';
	return text;
}

void config_diff_free(struct config_diff *d)
{
	free(d->item);
	free(d->texts[0]);
	free(d->texts[1]);
	*d = (struct config_diff){0};
}

/* ---- reporting ---- */

const char *config_effect_word(enum config_effect effect)
{
	static const char *const word[CONFIG_EFFECTS] = {
	    "live", "rebuild", "add", "remove", "restart"};

	return word[effect];
}

static int say_count(
    char *buf, unsigned long size, int at, int n, const char *one, const char *many)
{
	if (n == 0)
		return at;
	return at + snprintf(buf + at, (unsigned long)at < size ? size - (unsigned long)at : 0,
			"%s%d %s", at ? ", " : "", n, n == 1 ? one : many);
}

void config_diff_say(const struct config_diff *d, char *buf, unsigned long size)
{
	int at = 0;

	buf[0] = '\0';
	if (d->n == 0) {
		snprintf(buf, size, "nothing changes");
		return;
	}
	at = say_count(buf, size, at, d->n_plugins, "plug-in changes", "plug-ins change");
	at = say_count(buf, size, at, d->n_changed, "stage changes", "stages change");
	at = say_count(buf, size, at, d->n_rebuilt, "stage is rebuilt", "stages are rebuilt");
	at = say_count(buf, size, at, d->n_added, "stage is added", "stages are added");
	at = say_count(buf, size, at, d->n_removed, "stage is removed", "stages are removed");
	if (at == 0)
		at = snprintf(
		    buf, size, "%s", d->live ? "no stage changes" : "every stage is rebuilt");
	if ((unsigned long)at < size)
		snprintf(buf + at, size - (unsigned long)at, ", 0 connections dropped%s",
		    d->n_restart ? "; some changes wait for the next start" : "");
}
