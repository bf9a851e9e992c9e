/* SPDX-License-Identifier: MIT */
/*
 * `weir graph`: writes the stages and links of a spec as text, or in the language of dot or
 * mermaid. Names of outlets and types come from the file and have not been checked, so characters
 * that are not allowed in names are replaced.
 */
#include "config.h"

#include <string.h>

#include <weir/stage.h>

#include "groups.h"

#define SAFE_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
/* Room for the description of a core group. */
#define BRIEF_BYTES 200

static void put_safe(FILE *out, const char *text)
{
	for (const char *p = text; *p; p++)
		fputc(strchr(SAFE_CHARS, *p) ? *p : '?', out);
}

static int stage_index(const struct weir_spec *spec, const char *name)
{
	for (int i = 0; i < spec->n_stages; i++)
		if (strcmp(spec->stages[i].name, name) == 0)
			return i;
	return -1;
}

/* Write where the stage runs: "threads 2 to 32", "inline" or "group core". */
static void put_place(FILE *out, const struct weir_stage_spec *s)
{
	const struct weir_knob *table = weir_threads_knobs;
	char min[32], max[32];

	if (s->inlined) {
		fputs("inline", out);
		return;
	}
	if (s->group[0]) {
		fputs("group ", out);
		put_safe(out, s->group);
		return;
	}
	weir_knob_print(weir_knob_find(table, "min"), &s->threads, min, sizeof(min));
	weir_knob_print(weir_knob_find(table, "max"), &s->threads, max, sizeof(max));
	fprintf(out, "threads %s to %s", min, max);
}

static bool is_source(const struct weir_stage_spec *s)
{
	const struct weir_stage_ops *ops = weir_stage_type_find(s->use);

	return ops && ops->flags & WEIR_STAGE_SOURCE;
}

static void put_what(FILE *out, const struct weir_stage_spec *s)
{
	put_safe(out, s->use);
	if (is_source(s) && !s->group[0])
		return;
	fputs(", ", out);
	put_place(out, s);
}

static void put_outlet(FILE *out, const struct weir_link_spec *link)
{
	put_safe(out, link->outlet[0] ? link->outlet : "to");
	fputs(link->loop ? " (loop)" : "", out);
}

/* ---- core groups ---- */

static bool is_in(const struct weir_stage_spec *s, const struct weir_group_spec *group)
{
	return !s->inlined && strcmp(s->group, group->name) == 0;
}

/* Write "wavefront, 2 cores, gate all". Blanks, commas, colons and slashes do no harm in texts that
 * are quoted. */
static void put_brief(FILE *out, const struct weir_spec *spec, const struct weir_group_spec *group)
{
	char brief[BRIEF_BYTES];

	group_brief(spec, group, brief, sizeof(brief));
	for (const char *p = brief; *p; p++)
		fputc(strchr(SAFE_CHARS " ,:/", *p) ? *p : '?', out);
}

/* Write the stages of the group, `before` and their number or name each. */
static void put_members(FILE *out, const struct weir_spec *spec,
    const struct weir_group_spec *group, const char *before, bool by_name)
{
	const char *sep = by_name ? " " : before;

	for (int i = 0; i < spec->n_stages; i++) {
		if (!is_in(&spec->stages[i], group))
			continue;
		fputs(sep, out);
		if (by_name)
			put_safe(out, spec->stages[i].name);
		else
			fprintf(out, "s%d", i);
		sep = before;
	}
}

static void groups_text(const struct weir_spec *spec, FILE *out)
{
	for (int k = 0; k < spec->n_groups; k++) {
		if (!group_is_core(&spec->groups[k]))
			continue;
		fputs("group ", out);
		put_safe(out, spec->groups[k].name);
		fputs(" (", out);
		put_brief(out, spec, &spec->groups[k]);
		fputs("):", out);
		put_members(out, spec, &spec->groups[k], ", ", true);
		fputc('\n', out);
	}
}

static void groups_dot(const struct weir_spec *spec, FILE *out)
{
	for (int k = 0; k < spec->n_groups; k++) {
		if (!group_is_core(&spec->groups[k]))
			continue;
		fprintf(out, "    subgraph cluster_g%d {\n        style=rounded;\n", k);
		fputs("        label=\"", out);
		put_safe(out, spec->groups[k].name);
		fputs("\\n", out);
		put_brief(out, spec, &spec->groups[k]);
		fputs("\";\n       ", out);
		put_members(out, spec, &spec->groups[k], " ", false);
		fputs(";\n    }\n", out);
	}
}

static void groups_mermaid(const struct weir_spec *spec, FILE *out)
{
	for (int k = 0; k < spec->n_groups; k++) {
		if (!group_is_core(&spec->groups[k]))
			continue;
		fprintf(out, "    subgraph g%d[\"", k);
		put_safe(out, spec->groups[k].name);
		fputs("<br/>", out);
		put_brief(out, spec, &spec->groups[k]);
		fputs("\"]", out);
		put_members(out, spec, &spec->groups[k], "\n        ", false);
		fputs("\n    end\n", out);
	}
}

/* ---- formats ---- */

static void graph_text(const struct weir_spec *spec, FILE *out)
{
	for (int i = 0; i < spec->n_stages; i++) {
		const struct weir_stage_spec *s = &spec->stages[i];
		put_safe(out, s->name);
		fputs(" (", out);
		put_what(out, s);
		fputs(")\n", out);
		for (int k = 0; k < s->n_to; k++) {
			fputs("    ", out);
			put_outlet(out, &s->to[k]);
			fputs(" -> ", out);
			put_safe(out, s->to[k].stage);
			fputs(stage_index(spec, s->to[k].stage) < 0 ? " (missing)\n" : "\n", out);
		}
	}
	groups_text(spec, out);
}

static void graph_dot(const struct weir_spec *spec, FILE *out)
{
	fputs("digraph weir {\n    rankdir=LR;\n    node [shape=box, style=rounded];\n", out);
	for (int i = 0; i < spec->n_stages; i++) {
		const struct weir_stage_spec *s = &spec->stages[i];
		fprintf(out, "    s%d [label=\"", i);
		put_safe(out, s->name);
		fputs("\\n", out);
		put_what(out, s);
		fputs(is_source(s) ? "\", style=bold];\n" : "\"];\n", out);
	}
	groups_dot(spec, out);
	for (int i = 0; i < spec->n_stages; i++)
		for (int k = 0; k < spec->stages[i].n_to; k++) {
			const struct weir_link_spec *link = &spec->stages[i].to[k];
			int to = stage_index(spec, link->stage);
			if (to < 0)
				continue;
			fprintf(out, "    s%d -> s%d [label=\"", i, to);
			put_outlet(out, link);
			fputs(link->loop ? "\", style=dashed];\n" : "\"];\n", out);
		}
	fputs("}\n", out);
}

static void graph_mermaid(const struct weir_spec *spec, FILE *out)
{
	fputs("flowchart LR\n", out);
	for (int i = 0; i < spec->n_stages; i++) {
		fprintf(out, "    s%d[\"", i);
		put_safe(out, spec->stages[i].name);
		fputs("<br/>", out);
		put_what(out, &spec->stages[i]);
		fputs("\"]\n", out);
	}
	groups_mermaid(spec, out);
	for (int i = 0; i < spec->n_stages; i++)
		for (int k = 0; k < spec->stages[i].n_to; k++) {
			const struct weir_link_spec *link = &spec->stages[i].to[k];
			int to = stage_index(spec, link->stage);
			if (to < 0)
				continue;
			fprintf(out, "    s%d %s|\"", i, link->loop ? "-.->" : "-->");
			put_outlet(out, link);
			fprintf(out, "\"| s%d\n", to);
		}
}

int config_graph(const struct weir_spec *spec, const char *format, FILE *out)
{
	static const struct {
		const char *name;
		void (*put)(const struct weir_spec *spec, FILE *out);
	} formats[] = {{"text", graph_text}, {"dot", graph_dot}, {"mermaid", graph_mermaid}};

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (strcmp(formats[i].name, format) == 0) {
			formats[i].put(spec, out);
			return 0;
		}
	return WEIR_EINVAL;
}
