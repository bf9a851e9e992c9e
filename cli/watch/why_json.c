/* SPDX-License-Identifier: MIT */
/* why -o json: prints the facts of `weir why` under the names of docs/json.md; see why.h. */
#include "why.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/act.h"
#include "core_groups.h"
#include "framework/base/json.h"
#include "payloads.h"
#include "stage_state.h"
#include "turned_away.h"

/* A text, or null if there is none. */
static json_t *text_or_null(const char *text)
{
	return text && *text ? json_string(text) : json_null();
}

/* The lines of `text`, without the spaces before them. */
static json_t *lines_of(const char *text)
{
	json_t *list = json_array();

	while (*text) {
		size_t n = strcspn(text, "\n"), indent = strspn(text, " ");
		json_push(&list, json_stringn(text + indent, n - indent));
		text += n + (text[n] == '\n');
	}
	return list;
}

/* What the core groups did, in the words of the text. */
static json_t *core_groups(const struct why_looks *looks)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	json_t *list = NULL;

	if (!out)
		return NULL;
	core_groups_why(out, looks->then, looks->now, looks->span_s, looks->only);
	if (fclose(out) == 0)
		list = lines_of(text);
	free(text);
	return list;
}

static json_t *law_of_service(const struct why *w)
{
	if (w->threads <= 0 || w->service_s <= 0)
		return json_null();
	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:b}", "mean_wait_seconds", w->wait_s,
	    "mean_service_seconds", w->service_s, "ceiling_per_second", w->ceiling_per_s,
	    "expected_at_stage", w->expected, "counted_at_stage", w->at_stage, "agrees", w->agrees);
}

static json_t *threads(const struct why *w)
{
	if (w->threads <= 0)
		return json_null();
	return json_pack("{s:i, s:i, s:i, s:i, s:i}", "busy", w->busy - w->spares_busy, "now",
	    w->threads - w->spares, "max", w->max, "spares", w->spares, "spares_busy",
	    w->spares_busy);
}

static json_t *rates(const struct why *w)
{
	return json_pack("{s:f, s:f, s:f, s:f, s:f}", "offered", w->offered_per_s, "served",
	    w->served_per_s, "refused", w->refused_per_s, "turned_away", w->away_per_s,
	    "refused_upstream", w->ahead_per_s);
}

static json_t *stage(const struct why_looks *looks, const struct why *w)
{
	char refused[300];
	json_t *doc = json_pack("{s:s, s:o, s:o}", "name", w->name, "held", text_or_null(w->held),
	    "trouble", text_or_null(w->trouble));

	payloads_text(looks->now, w->now, refused, sizeof(refused));
	/* the server knows the last such call */
	json_put(&doc, "stuck_call", json_deep_copy(json_object_get(w->now, "stuck_call")));
	json_put(&doc, "admission",
	    json_pack("{s:s, s:s, s:o}", "policy", w->policy, "mode", w->mode, "why",
		text_or_null(w->says)));
	json_put(&doc, "per_second", rates(w));
	json_put(&doc, "turned_away", turned_away_json(w->now, w->then, looks->span_s));
	json_put(&doc, "threads", threads(w));
	json_put(&doc, "used_ratio", json_real(w->used));
	json_put(&doc, "waiting", json_integer(w->waiting));
	json_put(&doc, "queue_limit", json_integer(w->limit));
	json_put(&doc, "laws", law_of_service(w));
	json_put(&doc, "width", text_or_null(w->wide));
	json_put(&doc, "clients", text_or_null(w->clients));
	json_put(&doc, "children", text_or_null(w->awaits));
	json_put(&doc, "payloads", text_or_null(refused));
	if (looks->decisions)
		json_put(&doc, "decisions", json_deep_copy(looks->decisions));
	return doc;
}

int why_print_json(const struct why_looks *looks)
{
	const json_t *limit = json_object_get(looks->now, "bottleneck");
	json_t *stages = json_array();

	for (size_t i = 0; i < looks->n; i++)
		if (!looks->only || strcmp(looks->stage[i].name, looks->only) == 0)
			json_push(&stages, stage(looks, &looks->stage[i]));
	json_t *doc = json_pack("{s:s, s:f, s:o, s:o, s:o}", "server", act_text(looks->now, "name"),
	    "span_seconds", looks->span_s, "bottleneck",
	    json_is_object(limit) ? json_deep_copy(limit) : json_null(), "core_groups",
	    core_groups(looks), "stages", stages);
	if (doc)
		return act_print(doc);
	fputs("weir why: out of memory\n", stderr);
	return VERB_FINDING;
}
