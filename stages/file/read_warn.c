/* SPDX-License-Identifier: MIT */
/*
 * Warns about settings of file.read that are valid but have a surprising effect. The warnings are
 * logged once, when the stage is created. `weir check` also creates the stage, so it logs them,
 * too.
 */
#include "read.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "path.h"

/* Whether `match` looks like a regular expression. In a pattern '^' and '$' are literal, and file
 * names hardly ever begin or end with them. */
static bool is_regex(const char *match)
{
	size_t n = strlen(match);

	return n > 0 && (match[0] == '^' || match[n - 1] == '$');
}

static void warn_rules(struct weir_stage *st, const struct read_conf *conf)
{
	const struct read_rule *r = (const struct read_rule *)(const void *)conf->rules.items;
	char at[64];

	for (int i = 0; i < conf->rules.n; i++) {
		if (!is_regex(r[i].match))
			continue;
		snprintf(at, sizeof(at), "cache_rules.%d.match", i + 1);
		weir_warn(st, at,
		    "'%.100s' looks like a regular expression; 'match' takes shell patterns, such "
		    "as \"*.css\" or \"/assets/*\"",
		    r[i].match);
	}
}

/* Warn if the page cannot be served. This is not an error, since the page is opened for every
 * response and may be created later. */
static void warn_page(struct weir_stage *st, int status, const char *page)
{
	const struct read_conf *conf = weir_conf(st);
	const struct read_state *state = weir_state(st);
	char name[PATH_MAP_MAX], at[32];
	struct file file;

	if (*page == '\0' ||
	    path_map((struct weir_slice){page, strlen(page)}, "", name, sizeof(name)) != 0)
		return;
	if (file_open(state->root, (enum file_links)conf->symlinks, name, &file) == 0) {
		close(file.fd);
		return;
	}
	snprintf(at, sizeof(at), "error_pages.%d", status);
	weir_warn(st, at,
	    "'%.100s' is not a servable file below 'root'; until there is such a file, answers "
	    "with status %d have a line of text",
	    page, status);
}

void read_warn(struct weir_stage *st)
{
	const struct read_conf *conf = weir_conf(st);

	warn_rules(st, conf);
#define READ_PAGE(status) warn_page(st, status, conf->pages.page_##status);
	READ_PAGES(READ_PAGE)
#undef READ_PAGE
}
