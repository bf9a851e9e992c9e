/* SPDX-License-Identifier: MIT */
/*
 * run: load a server from its YAML and run it until its last event.
 *
 *   load -> build -> admin -> start -> (running) -> SIGTERM, Ctrl-C -> drain -> admin ends -> free
 *
 * The admin endpoint is started before the first source and stopped after the last event. It
 * therefore also responds during startup and drain; /readyz reports these states. The main thread
 * sleeps until a signal arrives. SIGUSR1 reopens all logs. SIGHUP and requests to the admin
 * endpoint trigger reloads (reload.h), which may replace the graph.
 *
 * Exit code 0 means that every accepted event was completed or answered. Exit code 1 means that
 * events were abandoned when the grace time ended or a second signal arrived, or that events were
 * lost in handlers that do not return. The threads of such handlers are still running, so the
 * process then exits without freeing the memory that they use.
 *
 * A service manager is notified when the server is ready and when it stops. Its watchdog is fed,
 * and it may pass sockets (notify.h, weir/io.h). The first and last messages of the server are in
 * its log, wherever that is written.
 */
#include "verb.h"

#include <errno.h>
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

#include "admin/admin.h"
#include "base/clock.h"
#include "server/crash.h"
#include "server/listen.h"
#include "config.h"
#include "server/notify.h"
#include "otlp.h"
#include "server/reload.h"
#include "server/reload_report.h"
#include "server/run_config.h"
#include "server/run_log.h"
#include "server/signals.h"
#include "server/stop.h"
#include "server/user.h"

/* Time that a stopping server waits for an abandoned reload to end. 1 s is a guess. */
#define RELOAD_END_NS NS_PER_S

/** Raise the limit of open files to the hard limit. A server usually runs out of file descriptors
 *  before any other resource. */
static void run_raise_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		weir_log(
		    WEIR_LOG_WARN, "cannot raise the limit on open files: %s", strerror(errno));
}

/** Print a URL for `listen`. The wildcard address is printed as 127.0.0.1, since a browser could
 *  not open it. `port` is the bound port; 0 for a socket file. */
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

/** Print where the server can be reached: one line per address, and one for the admin endpoint. */
static void run_announce(const struct weir_graph *graph, const struct admin *admin)
{
	const struct weir_spec *spec = weir_graph_spec(graph);
	const char *text;

	for (int s = 0; s < spec->n_stages; s++) {
		const struct weir_stage_spec *st = &spec->stages[s];
		if (!listen_listens(st))
			continue;
		const struct weir_stage *stage = weir_graph_stage(graph, st->name);
		for (int i = 0; *(text = listen_text(st, i)); i++) {
			printf("weir %s: ", spec->name);
			run_print_url(weir_node_get(st->with, "tls") ? "https" : "http", text,
			    weir_http_port(stage, i));
		}
	}
	if (admin) {
		printf("weir %s: admin ", spec->name);
		run_print_url(*spec->admin.tls.cert ? "https" : "http", spec->admin.listen,
		    admin_port(admin));
	}
	fflush(stdout);
}

/* Write to `text` how many events were closed or lost, and why. `text` is empty if `closed` is 0
 * and `left_text` is empty. */
static void run_losses(
    uint64_t closed, uint64_t lost, const char *left_text, bool hurried, char *text, size_t size)
{
	size_t n = 0;

	*text = '\0';
	if (closed)
		n = (size_t)snprintf(text, size,
		    "; %llu accepted event%s ended unfinished, because %s",
		    (unsigned long long)closed, closed == 1 ? " was" : "s were",
		    hurried ? "a second signal arrived" : "the grace time was over");
	if (*left_text)
		snprintf(text + n, size - n,
		    "; %llu accepted event%s lost, because handlers did not return: %s",
		    (unsigned long long)lost, lost == 1 ? " was" : "s were", left_text);
}

static int run_report(const char *name, const struct weir_drain_report *report, bool hurried)
{
	char losses[600], law[100] = "";

	run_losses(
	    report->closed, report->lost, report->left_text, hurried, losses, sizeof(losses));
	if (report->law_error)
		snprintf(law, sizeof(law),
		    "; the counters are off by %lld events, which is a bug in weir",
		    (long long)report->law_error);
	bool whole = report->closed == 0 && report->law_error == 0 && report->left == 0;
	run_log_say(name, whole ? WEIR_LOG_INFO : WEIR_LOG_WARN, "drained in %.2f s%s%s%s",
	    (double)report->took_ns / 1e9, whole ? ", nothing was lost" : "", losses, law);
	return whole ? VERB_OK : VERB_FINDING;
}

/** Drain the running graph and wait for the replaced ones. `reloader` may be NULL. Requests in
 *  replaced graphs have the same grace time. */
static int run_drain(struct running *r, struct reloader *reloader)
{
	const struct weir_spec *spec = weir_graph_spec(r->graph);
	int64_t until_ns = clock_now_ns() + spec->grace_ns;
	struct weir_drain_report report = {0};

	run_log_say(spec->name, WEIR_LOG_INFO,
	    "finishing accepted work, at most %.3g s; a second signal ends it immediately",
	    (double)spec->grace_ns / 1e9);
	signals_hurry_on_next(r->graph);
	stop_begin(spec->grace_ns);
	weir_graph_drain(r->graph, spec->grace_ns, &report);
	if (reloader)
		reload_wait(reloader, until_ns, signals_hurry);
	signals_forget();
	r->left = report.left > 0;
	int rc = run_report(spec->name, &report, signals_hurry());
	stop_done(&report, rc == VERB_OK);
	return rc;
}

static void run_stop_ask(void *arg, bool now, const char *by)
{
	(void)arg;
	stop_ask(now, by);
}

static char *run_stop_status(void *arg)
{
	(void)arg;
	return stop_status();
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

static int run_save(
    void *arg, const struct admin_saved *saved, int n, bool preview, char **file, char **changes)
{
	return reload_save(arg, saved, n, preview, file, changes);
}

/** Wait for a signal that ends or reloads the server and return it; SIGUSR1 is handled here. */
static int run_told(void)
{
	int sig;

	while ((sig = signals_wait()) == SIGUSR1)
		weir_log_reopen();
	return sig;
}

/** Start the thread that reloads. Returns NULL if it could not be created. */
static struct reloader *run_reloader(struct running *r, const char *path)
{
	static struct admin_reloading reloading = {
	    .ask = run_ask, .status = run_status, .counts = run_counts, .save = run_save};
	struct reloader *reloader;

	if (reload_start(r, path, &reloader) != 0) {
		weir_log(WEIR_LOG_ERROR, "reload: this server cannot reload, because memory or "
					 "threads ran out at its start");
		return NULL;
	}
	reloading.arg = reloader;
	admin_allow_reload(r->admin, &reloading);
	return reloader;
}

/** Serve until a signal ends the server, and reload on SIGHUP. When the function returns, *r
 *  describes the configuration that is running then. */
static struct reloader *run_until_told(struct running *r, const char *path)
{
	/* The addresses are announced when everything behind them answers, and before a reload may
	 * replace the graph. */
	static const struct admin_stopping stopping = {
	    .ask = run_stop_ask, .status = run_stop_status};
	struct reloader *reloader = run_reloader(r, path);

	admin_allow_stop(r->admin, &stopping);
	run_announce(r->graph, r->admin);
	notify_ready(r->notify, r->graph);
	if (!reloader) {
		while (run_told() == SIGHUP)
			weir_log(WEIR_LOG_ERROR, "SIGHUP is ignored: this server cannot reload");
		return NULL;
	}
	reload_begin(reloader);
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

/** End the graphs that reloads have replaced. Returns VERB_FINDING if events were lost in them. */
static int run_end_reloads(struct running *r, struct reloader *reloader)
{
	struct retire_losses losses = {0};
	char text[600];

	reload_end(reloader, &losses);
	r->left |= losses.left > 0;
	if (losses.closed == 0 && losses.left == 0)
		return VERB_OK;
	run_losses(
	    losses.closed, losses.lost, losses.left_text, signals_hurry(), text, sizeof(text));
	run_log_say(
	    weir_graph_spec(r->graph)->name, WEIR_LOG_WARN, "earlier configurations%s", text);
	return VERB_FINDING;
}

/** Serve a started graph until it has been drained. Returns the exit code. */
static int run_serve(struct running *r, const char *path)
{
	struct reloader *reloader = run_until_told(r, path);
	notify_stopping(r->notify);
	int rc = run_drain(r, reloader);
	if (reloader && !reload_ended(reloader, clock_now_ns() + RELOAD_END_NS)) {
		stop_await();
		r->left = true; /* the reload may still access everything that is freed below */
		return rc;
	}
	stop_await();
	admin_stop(r->admin);
	r->admin = NULL;
	if (reloader && run_end_reloads(r, reloader) != VERB_OK)
		rc = VERB_FINDING;
	otlp_stop(r->otlp);
	r->otlp = NULL;
	return rc;
}

/** Start a built graph and serve it. Returns the exit code. */
static int run_graph(struct running *r, const char *path)
{
	struct weir_errs errs = {0};

	weir_log(WEIR_LOG_INFO, "%s: weir %s (commit %s) starts, process %d, configuration %s",
	    weir_graph_spec(r->graph)->name, WEIR_VERSION, WEIR_COMMIT, (int)getpid(), path);
	json_t *hidden = report_hidden(weir_graph_spec(r->graph));
	r->config = run_config_json(weir_graph_spec(r->graph),
	    &(struct run_config){r->values, hidden, "", r->input.n_sets, r->input.sets});
	json_decref(hidden);
	if (run_admin(r->graph, r->config, &r->admin) != 0 || run_export(r->graph, &r->otlp) != 0) {
		admin_stop(r->admin);
		return VERB_FINDING;
	}
	int rc = VERB_FINDING;
	signals_start();
	int failed = weir_graph_start(r->graph, &errs);
	weir_passed_report();
	if (failed == 0) {
		signals_block();
		rc = run_serve(r, path);
	} else {
		verb_print_errors(&errs, "Nothing is running.");
	}
	if (r->left)
		return rc;
	otlp_stop(r->otlp);
	admin_stop(r->admin);
	return rc;
}

/** Return the absolute path of the file, or NULL on failure. It must be absolute, since the working
 *  directory will change. */
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
	struct running r = {.input = {.path = args->operand[0],
				.n_sets = args->n_sets,
				.sets = args->sets,
				.serve = true,
				.become = true,
				.bind = true},
	    .notify = &notify};
	int rc = VERB_FINDING;

	if (args->check)
		return verb_check(verb_find("check"), args);
	(void)verb;
	signals_start();
	crash_install();
	run_raise_limits();
	weir_passed_take();
	notify_init(&notify);
	char *path = run_path(args->operand[0]);
	if (!path || build_graph(&r.input, &r.graph, &r.values, &errs) != 0)
		r.graph = NULL;
	if (r.graph)
		user_warn(weir_graph_spec(r.graph));
	signals_block();
	if (r.graph && run_log_begin(&weir_graph_spec(r.graph)->log, &errs) == 0)
		rc = run_graph(&r, path);
	else
		verb_print_errors(&errs, "Nothing was started.");
	/* the remaining threads use memory that would be freed below, and that exit() would free */
	if (r.left) {
		run_log_end();
		_exit(rc);
	}
	notify_end(&notify);
	weir_graph_free(r.graph);
	run_log_end();
	free(r.config);
	free(r.values);
	free(path);
	return rc;
}
