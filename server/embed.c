/* SPDX-License-Identifier: MIT */
/* A server inside another program; see weir/server.h. */
#include <weir/server.h>

#include <stdatomic.h>
#include <stdlib.h>

#include <weir/spec.h>

#include "admin/admin.h"
#include "build.h"
#include "otlp.h"
#include "reload_report.h"
#include "run_config.h"
#include "run_log.h"

/* Whether a server of this process is started: the log of a process has one writer. */
static atomic_bool running;

struct weir_server {
	struct weir_graph *graph;
	char *values, *config; /* values: from config_values_text; config: body of /api/v1/config */
	struct admin *admin;
	struct otlp *otlp;
	bool logs, started;
};

static int no_memory(struct weir_errs *errs)
{
	return weir_errs_add(errs, NULL, WEIR_ENOMEM, NULL, "out of memory");
}

int weir_server_open(const char *path, const char *const *sets, int n_sets,
    struct weir_server **server, struct weir_errs *errs)
{
	struct build_input in = {.path = path, .n_sets = n_sets, .sets = sets};
	struct weir_server *s = calloc(1, sizeof(*s));

	*server = NULL;
	if (!s)
		return no_memory(errs);
	int rc = build_graph(&in, &s->graph, &s->values, errs);
	if (rc == 0) {
		const struct weir_spec *spec = weir_graph_spec(s->graph);
		json_t *hidden = report_hidden(spec);
		s->config = run_config_json(
		    spec, &(struct run_config){s->values, hidden, "", n_sets, sets});
		json_decref(hidden);
		*server = s;
		return 0;
	}
	free(s->values);
	free(s);
	return rc;
}

/* Add the error of a part of the server whose section begins at `mark`. */
static int part_failed(
    const struct weir_mark *mark, int rc, const struct weir_err *err, struct weir_errs *errs)
{
	return weir_errs_add(errs, mark, rc, *err->hint ? err->hint : NULL, "%s", err->text);
}

static int start_parts(struct weir_server *s, struct weir_errs *errs)
{
	const struct weir_spec *spec = weir_graph_spec(s->graph);
	const char *listen = spec->admin.listen;
	struct weir_err err = {0};
	int rc = run_log_begin(&spec->log, errs);

	if (rc != 0)
		return rc;
	s->logs = true;
	if (listen && *listen)
		rc = admin_start(s->graph, s->config, listen, &s->admin, &err);
	if (rc != 0)
		return part_failed(&spec->admin.mark, rc, &err, errs);
	rc = otlp_start(s->graph, &s->otlp, &err);
	return rc == 0 ? 0 : part_failed(&spec->trace.mark, rc, &err, errs);
}

/* Stop what start_parts has started. */
static void stop_parts(struct weir_server *s)
{
	otlp_stop(s->otlp);
	admin_stop(s->admin);
	s->otlp = NULL;
	s->admin = NULL;
	if (s->logs)
		run_log_end();
	s->logs = false;
	atomic_store(&running, false);
}

int weir_server_start(struct weir_server *s, struct weir_errs *errs)
{
	if (atomic_exchange(&running, true))
		return weir_errs_add(errs, NULL, WEIR_EBUSY, "close the other one first",
		    "this process runs another server");
	int rc = start_parts(s, errs);
	if (rc == 0)
		rc = weir_graph_start(s->graph, errs);
	if (rc == 0)
		s->started = true;
	else
		stop_parts(s);
	return rc;
}

struct weir_graph *weir_server_graph(struct weir_server *s)
{
	return s->graph;
}

int weir_server_admin_port(const struct weir_server *s)
{
	return s->admin ? admin_port(s->admin) : 0;
}

void weir_server_close(struct weir_server *s, struct weir_drain_report *report)
{
	struct weir_drain_report mine = {0};

	if (report)
		*report = mine;
	else
		report = &mine;
	if (!s)
		return;
	if (s->started)
		weir_graph_drain(s->graph, weir_graph_spec(s->graph)->grace_ns, report);
	if (s->started)
		stop_parts(s);
	if (report->left > 0)
		return;
	weir_graph_free(s->graph);
	free(s->values);
	free(s->config);
	free(s);
}
