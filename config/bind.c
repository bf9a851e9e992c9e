/* SPDX-License-Identifier: MIT */
/*
 * Binds the top level of the YAML, section by section. `defaults` is bound before the stages that
 * use it, and `alerts` after the stages that it names. This file also has the helpers that the
 * sections share.
 */
#include "bind.h"

#include <stdio.h>
#include <string.h>

#include "tree.h"

/* Characters allowed in names. None of them needs escaping in metrics, JSON or HTML. */
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

struct section {
	const char *key;
	int (*bind)(struct bind *bind, const struct weir_node *name, const struct weir_node *node);
};

/* Bind nothing: used for sections that the loader has already handled. */
static int section_done(
    struct bind *bind, const struct weir_node *name, const struct weir_node *node)
{
	(void)bind;
	(void)name;
	(void)node;
	return 0;
}

static const struct section sections[] = {{"weir", section_done}, {"name", section_name},
    {"user", section_user}, {"include", section_done}, {"plugin", section_plugin},
    {"admin", section_admin}, {"drain", section_drain}, {"overload", section_overload},
    {"payloads", section_payloads}, {"trace", section_trace}, {"log", section_log},
    {"defaults", section_defaults}, {"classes", section_classes}, {"groups", section_groups},
    {"stages", section_stages}, {"alerts", section_alerts}};

#define N_SECTIONS (sizeof(sections) / sizeof(sections[0]))

bool config_is_section(const char *key)
{
	for (size_t i = 0; i < N_SECTIONS; i++)
		if (strcmp(sections[i].key, key) == 0)
			return true;
	return false;
}

const char *bind_hint(const char *word, const char *const *names, int n, char *hint, size_t size)
{
	const char *nearest = weir_nearest(word, names, n);
	size_t used = 0;

	if (nearest) {
		snprintf(hint, size, "did you mean '%s'?", nearest);
		return nearest;
	}
	for (int i = 0; i < n && used < size; i++)
		used += (size_t)snprintf(
		    hint + used, size - used, "%s%s", i > 0 ? ", " : "known here: ", names[i]);
	return NULL;
}

/* Report an unknown section. Returns the name of the section that was probably meant, or NULL. */
static const char *unknown_section(struct bind *bind, const struct weir_node *name)
{
	const char *names[N_SECTIONS];
	char hint[160];

	if (config_is_stage_key(name->text)) {
		weir_errs_add(bind->errs, &name->mark, WEIR_EINVAL,
		    "move the key into a stage, or under 'defaults:'",
		    "'%s' is not a top-level key", name->text);
		return NULL;
	}
	for (size_t i = 0; i < N_SECTIONS; i++)
		names[i] = sections[i].key;
	const char *nearest = bind_hint(name->text, names, N_SECTIONS, hint, sizeof(hint));
	weir_errs_add(bind->errs, &name->mark, WEIR_EINVAL, hint,
	    "unknown key '%s' at the top level", name->text);
	return nearest;
}

static const struct weir_node *name_of(const struct weir_node *root, const char *key)
{
	for (int i = 0; i < root->n; i++)
		if (strcmp(root->name[i]->text, key) == 0)
			return root->name[i];
	return NULL;
}

/* Report unknown keys and missing required keys. If a required key is misspelt, only the misspelt
 * key is reported. */
static void check_keys(struct bind *bind, const struct weir_node *root)
{
	bool weir = weir_node_get(root, "weir"), stages = weir_node_get(root, "stages");
	const struct weir_mark *mark = root->n > 0 ? &root->name[0]->mark : &root->mark;

	for (int i = 0; i < root->n; i++) {
		const char *key = root->name[i]->text;
		if (config_is_section(key))
			continue;
		const char *nearest = unknown_section(bind, root->name[i]);
		weir |= nearest && strcmp(nearest, "weir") == 0;
		stages |= nearest && strcmp(nearest, "stages") == 0;
	}
	if (!weir)
		weir_errs_add(bind->errs, mark, WEIR_EINVAL, "begin with 'weir: 1'",
		    "the configuration does not state its version");
	if (!stages)
		weir_errs_add(bind->errs, mark, WEIR_EINVAL,
		    "add 'stages: { NAME: { use: TYPE } }'", "the configuration has no stages");
}

int bind_root(struct bind *bind, const struct weir_node *root)
{
	int rc = 0;

	check_keys(bind, root);
	for (size_t i = 0; rc == 0 && i < N_SECTIONS; i++) {
		const struct weir_node *name = name_of(root, sections[i].key);
		if (name)
			rc = sections[i].bind(bind, name, weir_node_get(root, sections[i].key));
	}
	return rc;
}

/* ---- shared by sections ---- */

bool bind_check_name(struct bind *bind, const struct weir_node *name, const char *what)
{
	size_t n = strlen(name->text);

	bool owner = strcmp(what, "stage") == 0 || strcmp(what, "group") == 0;

	if (owner && strncmp(name->text, "classes.", 8) == 0) {
		weir_errs_add(bind->errs, &name->mark, WEIR_EINVAL, "choose another name",
		    "'%.80s' cannot be the name of a %s: 'weir set classes.NAME.slo=...' is for "
		    "classes",
		    name->text, what);
		return false;
	}
	if (n >= 1 && n <= WEIR_NAME_MAX && strspn(name->text, NAME_CHARS) == n)
		return true;
	weir_errs_add(bind->errs, &name->mark, WEIR_EINVAL,
	    "use 1 to 64 letters, digits, '_', '.' and '-'", "'%.80s' cannot be the name of a %s",
	    name->text, what);
	return false;
}

/* Report that `node` must be a map. If it is a list, its items are probably meant as names, so the
 * hint shows them as keys of a map. */
static void report_no_map(
    struct bind *bind, const struct weir_node *node, const struct bind_form *form)
{
	const struct weir_node *first =
	    node->kind == WEIR_NODE_LIST && node->n > 0 ? node->item[0] : NULL;
	bool named = first && first->kind == WEIR_NODE_SCALAR && first->text[0];
	char hint[160];

	snprintf(hint, sizeof(hint), "write %s: { %.64s: %s }", form->key,
	    named ? first->text : form->name, form->value);
	weir_errs_add(bind->errs, &node->mark, WEIR_EINVAL, hint, "'%s' must be a map, not %s",
	    form->key, tree_kind(node));
}

int bind_each(struct bind *bind, const struct weir_node *node, const struct bind_form *form,
    int (*one)(struct bind *bind, const struct weir_node *name, const struct weir_node *item))
{
	int rc = 0;

	if (node->kind != WEIR_NODE_MAP) {
		report_no_map(bind, node, form);
		return 0;
	}
	for (int i = 0; rc == 0 && i < node->n; i++)
		rc = one(bind, node->name[i], node->item[i]);
	return rc;
}

void bind_one(struct bind *bind, const struct weir_knob *table, struct weir_node *name,
    struct weir_node *item, void *base, const char *where)
{
	struct weir_node map = {.kind = WEIR_NODE_MAP, .n = 1, .name = &name, .item = &item};

	map.mark = name->mark;
	weir_knobs_bind(table, &map, base, where, bind->errs);
}
