/* SPDX-License-Identifier: MIT */
/*
 * run: a server from its YAML to its last event.
 *
 *   load -> build -> admin -> start -> (running) -> SIGTERM, Ctrl-C -> drain -> admin ends -> free
 *
 * The admin endpoint comes before the first source and goes after the last event, so that it can be
 * asked during start and drain; /readyz says which it is. The main thread sleeps until a signal
 * comes. Exit code 0 says that every accepted event was completed or answered; 1 that something had
 * to be given up when the grace time ended or a second signal came. A service manager is told when
 * the server is ready and when it stops, feeds on its ticks, and may pass sockets (notify.h, weir/io.h).
 * The log has the server's first and last words wherever it is. SIGUSR1 has all logs opened again. SIGHUP and the admin endpoint order reloads (reload.h), after which the graph is another one.
 */
#include "verb.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <weir/graph.h>
#include <weir/http.h>
#include <weir/io.h>
#include <weir/log_file.h>
#include <weir/spec.h>

#include "admin.h"
#include "base/clock.h"
#include "crash.h"
#include "listen.h"
#include "config.h"
#include "notify.h"
#include "otlp.h"
#include "reload.h"
#include "reload_report.h"
#include "run_config.h"
#include "run_log.h"
#include "signals.h"

/** Sockets are what a server runs out of first: take all that the hard limit allows. */
static void run_raise_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		weir_log(WEIR_LOG_WARN, "cannot raise the limit of open files");
}

/** Print where `listen` leads: an address that means "all" is not one a browser can open. `port` is
 *  the one that was bound, 0 for a socket file. */
static void run_print_url(const char *scheme, const char *listen, int port)
{
	const char *colon = strrchr(listen, ':');

	if (port == 0 || !colon) {
		puts(listen);
		return;
	}
	int host_bytes = (int)(colon - listen);
	bool all = host_bytes == 0 || strncmp(listen, "0.0.0.0:", 8) == 0 ||
		   strncmp(listen, "[::]:", 5) == 0 || strncmp(listen, "*:", 2) == 0;
	printf("%s://%.*s:%d/%s\n", scheme, all ? 9 : host_bytes, all ? "127.0.0.1" : listen, port,
	    all ? " (and every other address of this machine)" : "");
}

/** Say where the server can be reached: one line per address, and one for the admin. */
static void run_announce(const struct weir_graph *graph, const struct admin *admin)
{
	const struct weir_spec *spec = weir_graph_spec(graph);
	int port;

	for (int s = 0; s < spec->n_stages; s++) {
		const struct weir_stage_spec *st = &spec->stages[s];
		if (!listen_listens(st))
			continue;
		const struct weir_stage *stage = weir_graph_stage(graph, st->name);
		for (int i = 0; (port = weir_http_port(stage, i)) != 0; i++) {
			printf("weir %s: ", spec->name);
			run_print_url(weir_node_get(st->with, "tls") ? "https" : "http",
			    listen_text(st, i), port);
		}
	}
	if (admin) {
		printf("weir %s: admin ", spec->name);
		run_print_url(*spec->admin.tls.cert ? "https" : "http", spec->admin.listen,
		    admin_port(admin));
	}
	fflush(stdout);
}

static int run_report(const char *name, const struct weir_drain_report *report, bool hurried)
{
	char closed[120] = "", law[100] = "";

	if (report->closed)
		snprintf(closed, sizeof(closed),
		    "; %llu accepted event%s ended unfinished, because %s",
		    (unsigned long long)report->closed, report->closed == 1 ? " was" : "s were",
		    hurried ? "a second signal came" : "the grace time was over");
	if (report->law_error)
		snprintf(law, sizeof(law),
		    "; the books are off by %lld events, which is a bug of weir",
		    (long long)report->law_error);
	bool whole = report->closed == 0 && report->law_error == 0;
	run_log_say(name, whole ? WEIR_LOG_INFO : WEIR_LOG_WARN, "drained in %.2f s%s%s%s",
	    (double)report->took_ns / 1e9, whole ? ", nothing was lost" : "", closed, law);
	return whole ? VERB_OK : VERB_FINDING;
}

/** `reloader` may be NULL. Requests that began before a reload have the same time to end as those behind it. */
static int run_drain(struct weir_graph *graph, struct reloader *reloader)
{
	int64_t until_ns = clock_now_ns() + weir_graph_spec(graph)->grace_ns;
	const struct weir_spec *spec = weir_graph_spec(graph);
	struct weir_drain_report report = {0};

	run_log_say(spec->name, WEIR_LOG_INFO,
	    "finishing what was accepted, at most %.3g s; once more ends it at once",
	    (double)spec->grace_ns / 1e9);
	signals_hurry_on_next(graph);
	weir_graph_drain(graph, spec->grace_ns, &report);
	if (reloader)
		reload_wait(reloader, until_ns, signals_hurry);
	return run_report(spec->name, &report, signals_calm());
}

static uint64_t run_ask(void *arg, bool preview, const char *by)
{
	return reload_ask(arg, preview, by);
}

static char *run_status(void *arg)
{
	return reload_status(arg);
}

static void run_counts(void *arg, struct admin_reload_counts *counts)
{
	reload_counts(arg, counts);
}

/** Wait for a signal that is about the server, and obey those that are about its logs. */
static int run_told(void)
{
	int sig;

	while ((sig = signals_wait()) == SIGUSR1)
		weir_log_reopen();
	return sig;
}

/** Serve until a signal says to end, reloading when told; what then runs is in *r. */
static struct reloader *run_until_told(struct running *r, const char *path)
{
	static struct admin_reloading reloading = {
	    .ask = run_ask, .status = run_status, .counts = run_counts};
	struct reloader *reloader;

	notify_ready(
	    r->notify, r->graph); /* first: from reload_start on the graph is the reloader's */
	if (reload_start(r, path, &reloader) != 0) {
		weir_log(WEIR_LOG_ERROR, "reload: out of memory or threads: this server can not");
		while (run_told() == SIGHUP)
			weir_log(WEIR_LOG_ERROR, "SIGHUP: this server can not reload");
		return NULL;
	}
	reloading.arg = reloader;
	admin_allow_reload(r->admin, &reloading);
	while (run_told() == SIGHUP)
		reload_ask(reloader, false, RELOAD_BY_SIGNAL);
	reload_stop(reloader, r);
	return reloader;
}

static int run_admin(struct weir_graph *graph, const char *config, struct admin **admin)
{
	const struct weir_admin_spec *spec = &weir_graph_spec(graph)->admin;
	struct weir_err err = {0};
	struct weir_errs errs = {0};

	*admin = NULL;
	if (!spec->listen || !*spec->listen)
		return 0;
	int rc = admin_start(graph, config, spec->listen, admin, &err);
	if (rc == 0)
		return 0;
	weir_errs_add(&errs, &spec->mark, rc, err.hint, "%s", err.text);
	verb_print_errors(&errs, "Nothing was started.");
	return rc;
}

static int run_export(struct weir_graph *graph, struct otlp **otlp)
{
	struct weir_err err = {0};
	struct weir_errs errs = {0};
	int rc = otlp_start(graph, otlp, &err);

	if (rc == 0)
		return 0;
	weir_errs_add(&errs, &weir_graph_spec(graph)->trace.mark, rc, err.hint[0] ? err.hint : NULL,
	    "%s", err.text);
	verb_print_errors(&errs, "Nothing was started.");
	return rc;
}

/** From a started graph to the exit code. */
static int run_serve(struct running *r, const char *path)
{
	uint64_t closed = 0;

	run_announce(r->graph, r->admin);
	struct reloader *reloader = run_until_told(r, path);
	notify_stopping(r->notify);
	int rc = run_drain(r->graph, reloader);
	admin_stop(r->admin);
	r->admin = NULL;
	if (reloader)
		closed = reload_end(reloader);
	otlp_stop(r->otlp);
	r->otlp = NULL;
	if (closed > 0)
		run_log_say(weir_graph_spec(r->graph)->name, WEIR_LOG_WARN,
		    "%llu events of earlier configurations ended unfinished",
		    (unsigned long long)closed);
	return closed > 0 ? VERB_FINDING : rc;
}

/** From a built graph to the exit code. */
static int run_graph(struct running *r, const char *path)
{
	struct weir_errs errs = {0};

	weir_log(WEIR_LOG_INFO, "%s: weir %s (commit %s) starts, process %d, configuration %s",
	    weir_graph_spec(r->graph)->name, WEIR_VERSION, WEIR_COMMIT, (int)getpid(), path);
	json_t *hidden = report_hidden(weir_graph_spec(r->graph));
	r->config = run_config_json(weir_graph_spec(r->graph),
	    &(struct run_config){r->values, hidden, "", r->args->n_sets, r->args->sets});
	json_decref(hidden);
	if (run_admin(r->graph, r->config, &r->admin) != 0 || run_export(r->graph, &r->otlp) != 0) {
		admin_stop(r->admin);
		return VERB_FINDING;
	}
	int rc = VERB_FINDING;
	int failed = weir_graph_start(r->graph, &errs);
	weir_passed_report();
	if (failed != 0)
		verb_print_errors(&errs, "Nothing is running.");
	else
		rc = run_serve(r, path);
	otlp_stop(r->otlp);
	admin_stop(r->admin);
	return rc;
}

/** Where the file is whatever the working directory becomes; NULL without memory. */
static char *run_path(const char *operand)
{
	char *folder = *operand == '/' ? strdup("") : getcwd(NULL, 0);
	char *path = NULL;

	if (folder && asprintf(&path, "%s%s%s", folder, *folder ? "/" : "", operand) < 0)
		path = NULL;
	free(folder);
	return path;
}

int verb_run(const struct verb *verb, const struct verb_args *args)
{
	struct weir_errs errs = {0};
	struct notify notify;
	struct running r = {.args = args, .notify = &notify};
	int rc = VERB_FINDING;

	if (args->check)
		return verb_check(verb_find("check"), args);
	(void)verb;
	signals_block();
	crash_install();
	run_raise_limits();
	weir_passed_take();
	notify_init(&notify);
	char *path = run_path(args->operand[0]);
	if (!path || verb_build_values(args, &r.graph, &r.values, &errs) != 0)
		r.graph = NULL;
	if (r.graph && run_log_begin(&weir_graph_spec(r.graph)->log, &errs) == 0)
		rc = run_graph(&r, path);
	else
		verb_print_errors(&errs, "Nothing was started.");
	notify_end(&notify);
	weir_graph_free(r.graph);
	run_log_end();
	free(r.config);
	free(r.values);
	free(path);
	return rc;
}
