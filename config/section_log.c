/* SPDX-License-Identifier: MIT */
/* Rows of `log:`, which sets where and how the server writes its own log. */
#include "bind.h"

const struct weir_knob config_log_knobs[] = {
    {.name = "file",
	.type = WEIR_KNOB_STRING,
	.offset = offsetof(struct weir_log_spec, file),
	.def = "stderr",
	.help = "file to append to, reopened on SIGUSR1; or stderr, stdout, journal"},
    {.name = "format",
	.type = WEIR_KNOB_ENUM,
	.offset = offsetof(struct weir_log_spec, format),
	.def = "logfmt",
	.choices = "logfmt|json",
	.help = "format of a line"},
    {.name = "level",
	.type = WEIR_KNOB_ENUM,
	.offset = offsetof(struct weir_log_spec, level),
	.def = "info",
	.choices = "error|warn|info|debug",
	.help = "least severe level that is logged"},
    {.name = NULL}};

int section_log(struct bind *bind, const struct weir_node *name, const struct weir_node *node)
{
	struct weir_log_spec *log = &bind->spec->log;
	const struct weir_node *file = weir_node_get(node, "file");

	log->mark = file ? file->mark : name->mark;
	int rc = weir_knobs_bind(config_log_knobs, node, log, "'log'", bind->errs);
	return rc == WEIR_ENOMEM ? rc : 0;
}
