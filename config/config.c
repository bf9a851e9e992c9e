/* SPDX-License-Identifier: MIT */
/*
 * The entry points: load a file or a text, bind it, and pass the spec to the caller.
 *
 * Every step adds its mistakes to the same list and continues. After a mistake in the text, such as
 * a duplicate key or an unset variable, the readable parts are still bound, so one run reports as
 * many mistakes as possible. Finally, the errors are sorted by position.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <weir/spec_names.h>

#include "bind.h"
#include "load.h"

/* Return the rank by which the errors of a file are sorted: its index among the files that were
 * read. Errors without a file come last. */
static int file_rank(const struct sources *all, const char *file)
{
	for (int i = 0; i < all->n; i++)
		if (strncmp(all->item[i]->name, file, sizeof(((struct weir_err *)0)->file) - 1) ==
		    0)
			return i;
	return all->n;
}

static bool is_after(const struct sources *all, const struct weir_err *a, const struct weir_err *b)
{
	int file_a = file_rank(all, a->file), file_b = file_rank(all, b->file);

	if (file_a != file_b)
		return file_a > file_b;
	if (a->line != b->line)
		return a->line > b->line;
	return a->col > b->col;
}

/* Insertion sort: it keeps the order of errors at equal positions, and there are at most
 * WEIR_ERRS_MAX errors. */
static void sort_errors(const struct sources *all, struct weir_errs *errs)
{
	for (int i = 1; i < errs->n; i++) {
		struct weir_err err = errs->err[i];
		int k = i;
		for (; k > 0 && is_after(all, &errs->err[k - 1], &err); k--)
			errs->err[k] = errs->err[k - 1];
		errs->err[k] = err;
	}
}

static bool is_unset(const struct sources *all, const struct weir_err *err)
{
	for (int i = 0; i < all->n_unset; i++) {
		const struct weir_mark *m = &all->unset[i];
		if (m->line == err->line && m->col == err->col && strcmp(m->file, err->file) == 0)
			return true;
	}
	return false;
}

/* From index `from` on, drop the errors about values whose ${} could not be expanded: the failed
 * expansion has been reported. */
static void drop_followers(const struct sources *all, struct weir_errs *errs, int from)
{
	int kept = from;

	for (int i = from; i < errs->n; i++) {
		if (is_unset(all, &errs->err[i]))
			errs->total--;
		else
			errs->err[kept++] = errs->err[i];
	}
	errs->n = kept;
}

/* Set the default name of the server: the file name without directory and extension. */
static int default_name(struct weir_spec *spec, const char *path)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	size_t n = strcspn(base, ".");
	char *stem = strndup(base, n > 0 ? n : strlen(base));

	int rc = stem ? weir_spec_text(&spec->name, stem) : WEIR_ENOMEM;
	free(stem);
	return rc;
}

static int keep_sets(struct sources *all, const char *const *sets, int n_sets)
{
	all->sets = calloc((size_t)n_sets + 1, sizeof(*all->sets));
	if (!all->sets)
		return WEIR_ENOMEM;
	for (; all->n_sets < n_sets; all->n_sets++) {
		all->sets[all->n_sets] = strdup(sets[all->n_sets]);
		if (!all->sets[all->n_sets])
			return WEIR_ENOMEM;
	}
	return 0;
}

static int bind_all(struct load *load, struct weir_spec *spec)
{
	struct bind bind = {
	    .spec = spec, .errs = load->errs, .from_file = load->from_file, .look = load->look};

	int before = load->errs->n;

	int rc = bind_root(&bind, load->root);
	for (int i = 0; rc == 0 && i < load->all->n_sets; i++)
		rc = bind_set(&bind, load->all->sets[i]);
	if (rc == 0)
		rc = bind_check_with(&bind);
	drop_followers(load->all, load->errs, before);
	return rc;
}

/* Create a spec and a load that share their sources. */
static int begin(struct load *load, const char *name, struct weir_spec **spec)
{
	if (load->from_file)
		weir_stage_plugins_begin();
	*spec = weir_spec_new(name);
	load->all = sources_new();
	if (*spec && load->all) {
		(*spec)->sources = load->all;
		(*spec)->free_sources = sources_free;
		load->root = load->all->root = calloc(1, sizeof(*load->root));
		if (load->root) {
			load->root->kind = WEIR_NODE_MAP;
			return default_name(*spec, name) == 0 ? 0 : source_no_memory(load->errs);
		}
	} else {
		sources_free(load->all);
	}
	return source_no_memory(load->errs);
}

/* Whether every stage of the files is in the spec; one with a mistake in its head is not. */
static bool has_all_stages(const struct load *load, const struct weir_spec *spec)
{
	const struct weir_node *stages = weir_node_get(load->root, "stages");
	int n = 0;

	for (int i = 0; stages && stages->kind == WEIR_NODE_MAP && i < stages->n; i++)
		n += strncmp(stages->name[i]->text, "x-", 2) != 0;
	return n == spec->n_stages;
}

/* Finish a load. `rc` is the result of reading. Bind the tree and pass the spec to the caller, or
 * sort the errors and free the spec. */
static int end_load(
    struct load *load, int rc, int errors_before, struct weir_spec *made, struct weir_spec **spec)
{
	bool read = load->errs->total == errors_before;

	if (rc == 0 && load->usable)
		rc = bind_all(load, made);
	if (rc == 0 && load->errs->total > errors_before && read && has_all_stages(load, made))
		weir_spec_check_names(made, load->errs);
	if (rc == 0 && load->errs->total > errors_before)
		rc = source_lacked_memory(load->errs) ? WEIR_ENOMEM : WEIR_EINVAL;
	if (rc != 0) {
		/* every failure must have a message, so add one */
		if (load->errs->total == errors_before)
			source_no_memory(load->errs);
		if (load->root)
			sort_errors(load->all, load->errs);
		weir_spec_free(made);
		return rc;
	}
	*spec = made;
	return 0;
}

static int load_path(struct load *load, const char *path, const char *const *sets, int n_sets,
    struct weir_spec **spec)
{
	struct weir_spec *made;
	int before = load->errs->total;

	int rc = begin(load, path, &made);
	if (rc == 0)
		rc = load_file(load, path, NULL, NULL);
	if (rc == 0 && weir_spec_text(&made->path, path) != 0)
		rc = source_no_memory(load->errs);
	if (rc == 0 && keep_sets(load->all, sets, n_sets) != 0)
		rc = source_no_memory(load->errs);
	return end_load(load, rc, before, made, spec);
}

int config_load(const char *path, const char *const *sets, int n_sets, struct weir_spec **spec,
    struct weir_errs *errs)
{
	struct load load = {.errs = errs, .from_file = true};

	return load_path(&load, path, sets, n_sets, spec);
}

int config_look(const char *path, const char *const *sets, int n_sets, struct weir_spec **spec,
    struct weir_errs *errs)
{
	struct load load = {.errs = errs, .from_file = true, .look = true};

	return load_path(&load, path, sets, n_sets, spec);
}

int config_load_plugins(const char *path, struct weir_errs *errs)
{
	struct load load = {.errs = errs, .from_file = true};
	struct weir_spec *made;
	int before = errs->total;

	int rc = begin(&load, path, &made);
	if (rc == 0)
		rc = load_file(&load, path, NULL, NULL);
	const struct weir_node *plugins =
	    rc == 0 && load.usable ? weir_node_get(load.root, "plugin") : NULL;
	if (plugins) {
		struct bind bind = {.spec = made, .errs = errs, .from_file = true};
		rc = section_plugin(&bind, NULL, plugins);
	}
	if (rc == 0 && errs->total > before)
		rc = WEIR_EINVAL;
	weir_spec_free(made);
	return rc;
}

int config_load_text(
    const char *text, size_t n, const char *name, struct weir_spec **spec, struct weir_errs *errs)
{
	struct load load = {.errs = errs};
	struct weir_spec *made;
	struct source *source;
	int before = errs->total;

	int rc = begin(&load, name, &made);
	if (rc == 0)
		rc = source_text(load.all, text, n, name, &source, errs);
	if (rc == 0)
		rc = load_source(&load, source, NULL);
	return end_load(&load, rc, before, made, spec);
}
