/* SPDX-License-Identifier: MIT */
/*
 * A server inside another program; see weir/server.h.
 *
 * Each call does its work in the thread `home`, in whose working directory the server lives, and waits
 * for it. The reload thread and all others are started there.
 */
#include <weir/server.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/log.h>
#include <weir/spec.h>

#include "admin/admin.h"
#include "base/clock.h"
#include "build.h"
#include "home.h"
#include "otlp.h"
#include "reload.h"
#include "reload_report.h"
#include "run_config.h"
#include "run_log.h"

/* How long weir_server_close waits for a reload in progress that hangs in a stage. */
#define RELOAD_END_NS (2 * NS_PER_S)

/* Whether a server of this process is started: the log of a process has one writer. */
static atomic_bool running;

struct weir_server {
	struct home *home;
	struct running now; /* the reloader has its own, which is the current one while it exists */
	struct reloader *reloader; /* NULL before the start */
	char *path;                /* absolute */
	bool logs, started;
	/* the arguments of the call in progress, and its result */
	struct weir_errs *errs;
	struct weir_drain_report *report;
	int rc;
	/* copies, since reloads use them, too */
	int n_sets;
	char **sets;
};

static int no_memory(struct weir_errs *errs)
{
	return weir_errs_add(errs, NULL, WEIR_ENOMEM, NULL, "out of memory");
}

static void server_free(struct weir_server *s)
{
	weir_graph_free(s->now.graph);
	free(s->now.values);
	free(s->now.config);
	for (int i = 0; s->sets && i < s->n_sets; i++)
		free(s->sets[i]);
	free(s->sets);
	free(s->path);
	free(s);
}

/* ---- open ---- */

static int copy_input(struct weir_server *s, const char *path, const char *const *sets, int n_sets)
{
	char *folder = *path == '/' ? strdup("") : getcwd(NULL, 0);
	int n = folder ? asprintf(&s->path, "%s%s%s", folder, *folder ? "/" : "", path) : -1;

	free(folder);
	if (n < 0) {
		s->path = NULL;
		return WEIR_ENOMEM;
	}
	s->sets = calloc((size_t)n_sets + 1, sizeof(*s->sets));
	if (!s->sets)
		return WEIR_ENOMEM;
	for (; s->n_sets < n_sets; s->n_sets++)
		if (!(s->sets[s->n_sets] = strdup(sets[s->n_sets])))
			return WEIR_ENOMEM;
	/* the path as it was given, for messages: the end of the absolute one */
	s->now.input = (struct build_input){.path = s->path + ((size_t)n - strlen(path)),
	    .n_sets = n_sets,
	    .sets = (const char *const *)(uintptr_t)s->sets};
	return 0;
}

static void open_home(void *arg)
{
	struct weir_server *s = arg;

	s->rc = build_graph(&s->now.input, &s->now.graph, &s->now.values, s->errs);
	if (s->rc != 0) {
		s->now.graph = NULL;
		return;
	}
	const struct weir_spec *spec = weir_graph_spec(s->now.graph);
	json_t *hidden = report_hidden(spec);
	s->now.config = run_config_json(
	    spec, &(struct run_config){s->now.values, hidden, "", s->n_sets, s->now.input.sets});
	json_decref(hidden);
}

int weir_server_open(const char *path, const char *const *sets, int n_sets,
    struct weir_server **server, struct weir_errs *errs)
{
	struct weir_server *s = calloc(1, sizeof(*s));

	*server = NULL;
	if (!s)
		return no_memory(errs);
	int rc = copy_input(s, path, sets, n_sets);
	if (rc != 0)
		no_memory(errs);
	else
		rc = home_start(path, &s->home, errs);
	if (rc == 0) {
		s->errs = errs;
		home_call(s->home, open_home, s);
		rc = s->rc;
	}
	if (rc == 0) {
		*server = s;
		return 0;
	}
	home_end(s->home);
	server_free(s);
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
	const struct weir_spec *spec = weir_graph_spec(s->now.graph);
	const char *listen = spec->admin.listen;
	struct weir_err err = {0};
	int rc = run_log_begin(&spec->log, errs);

	if (rc != 0)
		return rc;
	s->logs = true;
	if (listen && *listen)
		rc = admin_start(s->now.graph, s->now.config, listen, &s->now.admin, &err);
	if (rc != 0)
		return part_failed(&spec->admin.mark, rc, &err, errs);
	rc = otlp_start(s->now.graph, &s->now.otlp, &err);
	return rc == 0 ? 0 : part_failed(&spec->trace.mark, rc, &err, errs);
}

/* Stop what start_parts has started. */
static void stop_parts(struct weir_server *s)
{
	otlp_stop(s->now.otlp);
	admin_stop(s->now.admin);
	s->now.otlp = NULL;
	s->now.admin = NULL;
	if (s->logs)
		run_log_end();
	s->logs = false;
	atomic_store(&running, false);
}

static void start_home(void *arg)
{
	struct weir_server *s = arg;

	s->rc = start_parts(s, s->errs);
	if (s->rc == 0)
		s->rc = weir_graph_start(s->now.graph, s->errs);
	if (s->rc != 0) {
		stop_parts(s);
		return;
	}
	s->started = true;
	if (reload_start(&s->now, s->path, &s->reloader) == 0)
		reload_begin(s->reloader);
}

int weir_server_start(struct weir_server *s, struct weir_errs *errs)
{
	if (atomic_exchange(&running, true))
		return weir_errs_add(errs, NULL, WEIR_EBUSY, "close the other one first",
		    "this process runs another server");
	s->errs = errs;
	home_call(s->home, start_home, s);
	return s->rc;
}

/* ---- running ---- */

int weir_server_reload(
    struct weir_server *s, struct weir_reload_result *result, struct weir_errs *errs)
{
	struct report_result *r = calloc(1, sizeof(*r));
	int rc = WEIR_EINVAL;

	*result = (struct weir_reload_result){0};
	if (!r)
		return no_memory(errs);
	if (!s->reloader)
		weir_errs_add(errs, NULL, rc, NULL,
		    s->started ? "this server cannot reload, because memory or threads ran out at "
				 "its start"
			       : "the server is not started");
	else if (reload_now(s->reloader, r)) {
		rc = r->rc;
		result->changed = r->changed;
		result->new_graph = r->followed;
		snprintf(result->text, sizeof(result->text), "%s", r->text);
		if (rc != 0)
			*errs = r->errs;
	}
	free(r);
	return rc;
}

struct weir_graph *weir_server_graph(struct weir_server *s)
{
	return s->reloader ? reload_graph(s->reloader) : s->now.graph;
}

int weir_server_admin_port(const struct weir_server *s)
{
	return s->now.admin ? admin_port(s->now.admin) : 0;
}

/* ---- close ---- */

static bool never(void)
{
	return false;
}

/* End the reloads and the graphs that they have replaced. Returns false if a reload hangs in a stage. */
static bool end_reloads(struct weir_server *s)
{
	struct weir_drain_report *report = s->report;
	struct retire_losses losses = {0};

	if (!reload_ended(s->reloader, clock_now_ns() + RELOAD_END_NS)) {
		report->left++;
		return false;
	}
	admin_stop(s->now.admin); /* it may ask for the results of reloads */
	s->now.admin = NULL;
	reload_end(s->reloader, &losses);
	report->closed += losses.closed;
	report->lost += losses.lost;
	report->left += losses.left;
	if (losses.left > 0 && !report->left_text[0])
		snprintf(report->left_text, sizeof(report->left_text), "%s", losses.left_text);
	return losses.left == 0;
}

static void close_home(void *arg)
{
	struct weir_server *s = arg;

	if (s->reloader)
		reload_stop(s->reloader, &s->now);
	int64_t grace_ns = weir_graph_spec(s->now.graph)->grace_ns;
	int64_t until_ns = clock_now_ns() + grace_ns;
	if (s->started)
		weir_graph_drain(s->now.graph, grace_ns, s->report);
	if (s->reloader)
		reload_wait(s->reloader, until_ns, never);
	if ((!s->reloader || end_reloads(s)) && s->started)
		stop_parts(s);
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
	s->report = report;
	home_call(s->home, close_home, s);
	if (report->left > 0)
		return;
	home_end(s->home);
	server_free(s);
}
