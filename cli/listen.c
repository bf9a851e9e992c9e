/* SPDX-License-Identifier: MIT */
/* See listen.h. */
#include "listen.h"

#include <string.h>

#include <weir/stage.h>

bool listen_listens(const struct weir_stage_spec *stage)
{
	return strcmp(stage->use, "http.server") == 0;
}

const char *listen_text(const struct weir_stage_spec *stage, int i)
{
	const struct weir_node *node = weir_node_get(stage->with, "listen");
	const struct weir_stage_ops *ops = weir_stage_type_find(stage->use);

	if (node && node->kind == WEIR_NODE_LIST)
		return i < node->n && node->item[i]->text ? node->item[i]->text : "";
	if (i > 0)
		return "";
	if (node)
		return node->text;
	const struct weir_knob *row =
	    ops && ops->knobs ? weir_knob_find(ops->knobs, "listen") : NULL;
	return row && row->def ? row->def : "";
}

/** Does `listen` mean every address of the machine? */
static bool listen_is_all(const char *listen)
{
	return listen[0] == ':' || strncmp(listen, "0.0.0.0:", 8) == 0 ||
	       strncmp(listen, "[::]:", 5) == 0;
}

/** "localhost" is 127.0.0.1 wherever weir is asked to listen, and happens to be as long. */
static bool listen_hosts_equal(const char *a, size_t a_len, const char *b, size_t b_len)
{
	if (a_len == 9 && strncmp(a, "localhost", 9) == 0)
		a = "127.0.0.1";
	if (b_len == 9 && strncmp(b, "localhost", 9) == 0)
		b = "127.0.0.1";
	return a_len == b_len && strncmp(a, b, a_len) == 0;
}

static bool listen_same(const char *a, const char *b)
{
	const char *port_a = strrchr(a, ':'), *port_b = strrchr(b, ':');

	if (!port_a || !port_b || strcmp(port_a, port_b) != 0 || strcmp(port_a, ":0") == 0)
		return false;
	return listen_is_all(b) ||
	       listen_hosts_equal(a, (size_t)(port_a - a), b, (size_t)(port_b - b));
}

const struct weir_stage_spec *listen_clash(const struct weir_spec *spec)
{
	for (int s = 0; s < spec->n_stages; s++) {
		const struct weir_stage_spec *stage = &spec->stages[s];
		const char *listen;
		for (int i = 0; listen_listens(stage) && *(listen = listen_text(stage, i)); i++)
			if (listen_same(spec->admin.listen, listen))
				return stage;
	}
	return NULL;
}
