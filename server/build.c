/* SPDX-License-Identifier: MIT */
/* Loads, checks and builds a configuration; see build.h. */
#include "build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include <weir/spec.h>
#include <weir/stage.h>

#include "admin/admin.h"
#include "config.h"
#include "listen.h"
#include "origin_check.h"
#include "otlp.h"
#include "run_log.h"
#include "user.h"

/* Change to the folder of the file at `path`. */
static int enter_folder(const char *path, struct weir_errs *errs)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : NULL;

	if (!slash)
		return 0;
	int rc = folder && chdir(folder) == 0 ? 0 : WEIR_ESYS;
	free(folder);
	return rc == 0 ? 0
		       : weir_errs_add(errs, NULL, rc, NULL, "cannot enter the folder of %s: %s",
			     path, strerror(errno));
}

/* Report settings with which the admin endpoint could not start. This includes a stage that listens
 * on the same address. */
static void check_admin(const struct weir_spec *spec, struct weir_errs *errs)
{
	const struct weir_admin_spec *admin = &spec->admin;
	if (!admin->listen || !*admin->listen)
		return;
	if (admin_check(admin, errs) != 0)
		return;
	if (admin->ready.unless_shed && !spec->alerts.rule[WEIR_ALERT_TOP_CLASS_SHED].enabled)
		weir_errs_add(errs, &admin->mark, WEIR_EINVAL,
		    "remove one of 'ready: { unless_shed: true }' and 'enabled: false'",
		    "/readyz cannot report what is shed while the alert 'top_class_shed' is off");
	const struct weir_stage_spec *stage = listen_clash(spec);
	if (stage)
		weir_errs_add(errs, &admin->mark, WEIR_EBUSY, "choose another port for one of them",
		    "the admin endpoint and stage '%s' would both listen on port %s", stage->name,
		    strrchr(admin->listen, ':') + 1);
}

/* A server from a file without a source would never do anything. */
static void check_source(const struct weir_spec *spec, struct weir_errs *errs)
{
	for (int i = 0; i < spec->n_stages; i++) {
		const struct weir_stage_ops *ops = weir_stage_type_find(spec->stages[i].use);
		if (!ops || ops->flags & WEIR_STAGE_SOURCE)
			return;
	}
	weir_errs_add(errs, &spec->stages[0].mark, WEIR_EINVAL,
	    "add one, such as 'web: { use: http.server, to: { request: STAGE } }'",
	    "no stage of this file is a source, so there would be no events");
}

int build_graph(
    const struct build_input *in, struct weir_graph **graph, char **values, struct weir_errs *errs)
{
	struct weir_spec *spec = NULL;
	int rc =
	    (in->preview ? config_look : config_load)(in->path, in->sets, in->n_sets, &spec, errs);

	if (rc == 0 && in->become)
		rc = user_become(spec, in->bind, errs);
	if (rc == 0)
		rc = enter_folder(in->path, errs);
	if (rc == 0 && values && !(*values = config_values_text(spec)))
		rc = weir_errs_add(errs, NULL, WEIR_ENOMEM, NULL, "out of memory");
	if (rc != 0) {
		weir_spec_free(spec);
		return rc;
	}
	rc = weir_graph_build(spec, graph, errs);
	if (rc == 0 && in->serve)
		check_source(spec, errs);
	/* `spec` is valid here, whether the graph owns it or not */
	check_admin(spec, errs);
	run_log_check(&spec->log, errs);
	otlp_check(&spec->trace, errs);
	listen_check(spec, errs);
	origin_check(spec, errs);
	if (rc != 0) {
		weir_spec_free(spec);
	} else if (errs->total > 0) {
		weir_graph_free(*graph);
		*graph = NULL;
		rc = WEIR_EINVAL;
	}
	return rc;
}

static json_t *error_json(const struct weir_err *err)
{
	return json_pack("{s:s, s:i, s:i, s:i, s:s, s:s, s:s}", "file", err->file, "line",
	    err->line, "column", err->col, "length", err->len, "code", weir_error_word(err->code),
	    "text", err->text, "hint", err->hint);
}

json_t *build_errors_json(const struct weir_errs *errs)
{
	json_t *list = json_array();
	int rc = list ? 0 : -1;

	for (int i = 0; rc == 0 && i < errs->n; i++)
		rc = json_array_append_new(list, error_json(&errs->err[i]));
	if (rc == 0)
		return list;
	json_decref(list);
	return NULL;
}
