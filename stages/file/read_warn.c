/* SPDX-License-Identifier: MIT */
/*
 * What of file.read's configuration is no mistake but does not do what it seems to: said once, when the stage is made, so by `weir check`, too.
 */
#include "read.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "path.h"

/* In a pattern '^' and '$' are themselves, and names of files hardly ever begin or end so. */
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
		    "'%.100s' looks like a regular expression; 'match' takes patterns, as "
		    "\"*.css\" or \"/assets/*\", as shells have them",
		    r[i].match);
	}
}

/* A page may be put there later: it is looked for with every answer. */
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
	    "'%.100s' is no file below 'root' that can be served: while it is not, an answer of %d "
	    "has "
	    "a line of text",
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
