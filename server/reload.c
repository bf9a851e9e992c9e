/* SPDX-License-Identifier: MIT */
/*
 * Reloads the configuration; see reload.h. reload_report.c stores and reports the results.
 *
 * The reload thread (reload_main) waits for a reload request, and obey() carries it out: it loads
 * and checks the configuration, compares it with the running one, and then either sets live knobs
 * or starts a new graph. All objects that a reload creates are in a struct order. They are freed at
 * the end of the reload, except those that take_over() and follow() move into `now`.
 *
 * In reload_stop, the main thread takes `now` back. A reload that may hang in a stage is abandoned
 * there.
 */
#include "reload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/log.h>

#include "base/clock.h"
#include "base/task.h"
#include "config.h"
#include "reload_report.h"
#include "retire.h"
#include "run_config.h"
#include "run_log.h"
#include "save.h"

/* Polling interval while waiting for a reload or for replaced graphs to end. A drain uses the same
 * interval. */
#define WAIT_LOOK_NS (20 * NS_PER_MS)

struct reloader {
	struct running now; /* `now` and `graphs` are owned by the reload thread while it runs */
	int64_t graphs;     /* number of graphs that have replaced another one */
	char *path;
	/* the folder that was put before a relative path of the command line, or ""; it is removed
	 * from file names that are shown */
	char *folder;
	struct task task;
	/* paths of the running configuration whose values are not shown; NULL hides all values;
	 * owned by the reload thread */
	json_t *hidden;
	struct report report; /* has its own lock */
	pthread_mutex_t lock;
	pthread_cond_t cond, idle;
	struct retirees retirees; /* has its own lock */
	/* under the lock, as are changes of `now` */
	bool stopping, begun, ordered, preview;
	bool busy;     /* a reload is in progress, or the file is being written */
	bool may_hang; /* the reload may hang in callbacks of stages that are not running yet */
	char by[WEIR_ADMIN_NAME_MAX + 1];
	uint64_t orders; /* number of the latest request */
};

/* ---- one reload ---- */

/** A reload request, and the objects that have been created for it. Objects that are not moved
 *  elsewhere are freed at the end. */
struct order {
	struct weir_errs errs;
	struct weir_graph *graph;
	struct otlp *otlp;
	/* change of the endpoint; NULL if there is none or it was taken over */
	struct admin_change *admin;
	char *values, *config;
	/* the values that apply after the reload: `values` without the changes that require a
	 * restart */
	char *carried;
	/* hidden paths of `carried`; out.hidden also contains those of the running configuration */
	json_t *hidden;
	struct config_diff diff;
	struct outcome out;
};

static int fail(struct order *o, int code, const char *text)
{
	return weir_errs_add(&o->errs, NULL, code, NULL, "%s", text);
}

/* Return the paths to hide after the reload: those in `own`, and those in `before` whose changes
 * take effect only after a restart. Consumes the reference to `own`. If `before` or `own` is NULL,
 * returns NULL, which hides everything. */
static json_t *hide_carried(const struct config_diff *diff, const json_t *before, json_t *own)
{
	json_t *waiting = json_object(), *all = NULL;

	for (void *i = json_object_iter((json_t *)(uintptr_t)before); i;
	     i = json_object_iter_next((json_t *)(uintptr_t)before, i))
		if (config_diff_waits(diff, json_object_iter_key(i)))
			json_object_set_new(waiting, json_object_iter_key(i), json_true());
	if (before)
		all = report_hide_both(waiting, own);
	json_decref(waiting);
	json_decref(own);
	return all;
}

/* Load, check and build the new configuration in the folder of its file, as `run` does. If that
 * succeeds, the folder remains the working directory, except in a preview. */
static int prepare(struct reloader *r, struct order *o)
{
	int folder_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	/* `become` is not set, since the user changes only at startup */
	struct build_input in = {.path = r->path,
	    .n_sets = r->now.input.n_sets,
	    .sets = r->now.input.sets,
	    .preview = o->out.preview};

	int rc = build_graph(&in, &o->graph, &o->values, &o->errs);
	if (rc == 0) {
		rc = config_diff(r->now.values, o->values, &o->diff);
		o->carried = config_diff_carry(&o->diff, r->now.values, o->values);
		if (rc != 0 || !o->carried)
			rc = fail(o, WEIR_ENOMEM, "out of memory");
	}
	if (rc == 0) {
		json_t *own = report_hidden(weir_graph_spec(o->graph));
		o->out.hidden = report_hide_both(r->hidden, own);
		o->hidden = hide_carried(&o->diff, r->hidden, own);
		o->out.renewed = report_renewed(r->now.graph, o->graph);
		o->config = run_config_json(weir_graph_spec(o->graph),
		    &(struct run_config){o->carried, o->hidden, r->folder, in.n_sets, in.sets});
		rc = admin_prepare(r->now.admin, weir_graph_spec(o->graph), &o->admin, &o->errs);
	}
	if ((rc != 0 || o->out.preview) && folder_fd != -1 && fchdir(folder_fd) != 0)
		weir_log(WEIR_LOG_WARN,
		    "reload: cannot return to the previous working directory: %s", strerror(errno));
	if (folder_fd != -1)
		close(folder_fd);
	return rc;
}

static bool changes_log(const struct config_diff *diff)
{
	for (int i = 0; i < diff->n; i++)
		if (strncmp(diff->item[i].path, "log.", 4) == 0)
			return true;
	return false;
}

/* Make the configuration in `o` the running one, with `graph` as the running graph. */
static void take_over(struct reloader *r, struct order *o, struct weir_graph *graph)
{
	if (changes_log(&o->diff))
		run_log_change(&weir_graph_spec(o->graph ? o->graph : graph)->log);
	admin_switch(r->now.admin, graph, o->config, r->graphs, o->admin);
	o->admin = NULL;
	free(r->now.config);
	r->now.config = o->config;
	o->config = NULL;
	json_decref(r->hidden);
	r->hidden = json_incref(o->hidden);
	free(r->now.values);
	r->now.values = o->carried;
	o->carried = NULL;
}

/* Start the trace export of the new graph. */
static int start_export(struct order *o)
{
	struct weir_err err = {0};
	int rc = otlp_start(o->graph, &o->otlp, &err);

	if (rc != 0)
		weir_errs_add(&o->errs, &weir_graph_spec(o->graph)->trace.mark, rc,
		    err.hint[0] ? err.hint : NULL, "%s", err.text);
	return rc;
}

static void set_may_hang(struct reloader *r, bool may)
{
	pthread_mutex_lock(&r->lock);
	r->may_hang = may;
	pthread_mutex_unlock(&r->lock);
}

/* Begin the part of a reload that cannot hang. It lasts from the end of the build to the start of
 * the new graph; in this time, reload_stop waits for the reload instead of abandoning it. Fails if
 * the server is already stopping. */
static int pass_gate(struct reloader *r, struct order *o)
{
	pthread_mutex_lock(&r->lock);
	bool stopping = r->stopping;
	r->may_hang = stopping;
	pthread_mutex_unlock(&r->lock);
	return stopping ? fail(o, WEIR_EBUSY, "the server is stopping") : 0;
}

static int follow(struct reloader *r, struct order *o)
{
	struct retired *me = retire_new(&r->retirees);
	struct weir_graph *old = r->now.graph;
	int rc =
	    me ? 0 : fail(o, WEIR_ESYS, "there is no memory or thread to retire the running graph");

	if (rc == 0 && retire_too_many(&r->retirees))
		rc = fail(o, WEIR_EBUSY,
		    "too many earlier graphs still have requests: reload again when these have "
		    "ended");
	if (rc == 0)
		rc = start_export(o);
	if (rc == 0) {
		set_may_hang(r, true);
		rc = weir_graph_succeed(o->graph, old, &o->errs);
	}
	if (rc != 0) {
		retire_none(me);
		return rc;
	}
	struct otlp *otlp = r->now.otlp;
	pthread_mutex_lock(&r->lock);
	r->may_hang = false;
	r->now.otlp = o->otlp;
	r->now.graph = o->graph;
	pthread_mutex_unlock(&r->lock);
	r->graphs++;
	o->graph = NULL;
	o->otlp = NULL;
	take_over(r, o, r->now.graph);
	notify_graph(r->now.notify, r->now.graph);
	retire_begin(me, old, weir_graph_spec(r->now.graph)->old_ns, otlp);
	o->out.followed = true;
	return 0;
}

/* Apply the changes: in place if only live knobs differ, otherwise by replacing the graph. */
static int apply(struct reloader *r, struct order *o)
{
	int n = 0;

	if (o->diff.live && weir_graph_configure(r->now.graph, o->graph, &n) == 0) {
		take_over(r, o, r->now.graph);
		return 0;
	}
	return follow(r, o);
}

/* Remove every occurrence of `folder` from text[]. */
static void cut_out(char *text, const char *folder)
{
	size_t n = strlen(folder);

	for (char *at = text; n > 0 && (at = strstr(at, folder)) != NULL;)
		memmove(at, at + n, strlen(at + n) + 1);
}

/* In all errors, replace the absolute path of the file by the path that the user gave. The file was
 * opened by its absolute path, since the working directory has changed. */
static void name_as_given(struct weir_errs *errs, const char *folder)
{
	for (int i = 0; i < errs->n; i++) {
		cut_out(errs->err[i].file, folder);
		cut_out(errs->err[i].text, folder);
		cut_out(errs->err[i].hint, folder);
	}
}

static bool is_stopping(struct reloader *r)
{
	pthread_mutex_lock(&r->lock);
	bool stopping = r->stopping;
	pthread_mutex_unlock(&r->lock);
	return stopping;
}

static void obey(struct reloader *r, uint64_t id, bool preview, const char *by)
{
	struct order o = {.out = {.id = id, .preview = preview, .by = by}};
	int64_t began_ns = clock_now_ns();

	if (!preview)
		notify_reloading(r->now.notify);
	o.out.rc = prepare(r, &o);
	weir_graph_change_as(strcmp(by, RELOAD_BY_SIGNAL) == 0 ? NULL : by);
	if (o.out.rc == 0 && !preview)
		o.out.rc = pass_gate(r, &o);
	if (o.out.rc == 0 && !preview)
		o.out.rc = apply(r, &o);
	if (!preview && !is_stopping(r))
		notify_reloaded(r->now.notify);
	if (o.out.rc != 0 || preview)
		weir_stage_plugins_revert();
	else
		weir_stage_plugins_keep();
	o.out.took_ns = clock_now_ns() - began_ns;
	name_as_given(&o.errs, r->folder);
	if (o.out.rc == 0 && preview)
		weir_graph_try_overrides(o.graph, r->now.graph);
	if (o.out.rc == 0 && (preview || o.out.followed))
		report_dropped(&o.out, preview ? o.graph : r->now.graph);
	report_order(&r->report, &o.out, &o.diff, &o.errs);
	if (o.out.rc != 0 && !preview) {
		char sentence[768];
		report_summary(&o.out, &o.diff, &o.errs, sentence, sizeof(sentence));
		admin_tell_failed(r->now.admin, by, sentence);
	}
	json_decref(o.hidden);
	json_decref(o.out.hidden);
	json_decref(o.out.renewed);
	admin_change_free(o.admin);
	otlp_stop(o.otlp);
	weir_graph_free(o.graph);
	config_diff_free(&o.diff);
	free(o.values);
	free(o.carried);
	free(o.config);
}

static void *reload_main(void *arg)
{
	struct reloader *r = arg;

	pthread_mutex_lock(&r->lock);
	for (;;) {
		while ((!r->ordered || !r->begun || r->busy) && !r->stopping)
			pthread_cond_wait(&r->cond, &r->lock);
		if (r->stopping)
			break;
		bool preview = r->preview;
		uint64_t id = r->orders;
		char by[sizeof(r->by)];
		memcpy(by, r->by, sizeof(by));
		r->ordered = false;
		r->busy = r->may_hang = true;
		pthread_mutex_unlock(&r->lock);
		obey(r, id, preview, by);
		pthread_mutex_lock(&r->lock);
		r->busy = false;
		pthread_cond_signal(&r->idle);
	}
	if (r->ordered)
		weir_log(WEIR_LOG_WARN,
		    "the reload requested by %s was not started: the server is stopping", r->by);
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* ---- calls ---- */

uint64_t reload_ask(struct reloader *r, bool preview, const char *by)
{
	pthread_mutex_lock(&r->lock);
	if (r->stopping) {
		pthread_mutex_unlock(&r->lock);
		return 0;
	}
	/* Pending requests are merged. A pending preview may become a real reload, but not vice
	 * versa. */
	r->preview = r->ordered ? r->preview && preview : preview;
	r->ordered = true;
	snprintf(r->by, sizeof(r->by), "%s", by);
	uint64_t id = ++r->orders;
	pthread_cond_signal(&r->cond);
	pthread_mutex_unlock(&r->lock);
	return id;
}

char *reload_status(struct reloader *r)
{
	return report_json(&r->report, retire_count(&r->retirees));
}

int reload_save(struct reloader *r, const struct admin_saved *saved, int n, bool preview,
    char **file, char **changes)
{
	pthread_mutex_lock(&r->lock);
	bool mine = !r->busy && !r->ordered && !r->stopping;
	r->busy = r->busy || mine;
	r->may_hang = r->may_hang && !mine;
	pthread_mutex_unlock(&r->lock);
	if (!mine) {
		*file = NULL;
		*changes = strdup("a reload is in progress, or the server is stopping: try again");
		return WEIR_EBUSY;
	}
	int rc = save_values(r->path, r->folder, saved, n, preview, file, changes);
	pthread_mutex_lock(&r->lock);
	r->busy = false;
	pthread_cond_signal(&r->idle);
	pthread_cond_signal(&r->cond);
	pthread_mutex_unlock(&r->lock);
	return rc;
}

void reload_counts(struct reloader *r, struct admin_reload_counts *counts)
{
	report_counts(&r->report, counts);
}

static void reloader_free(struct reloader *r)
{
	json_decref(r->hidden);
	report_fini(&r->report);
	pthread_cond_destroy(&r->idle);
	retirees_fini(&r->retirees);
	pthread_cond_destroy(&r->cond);
	pthread_mutex_destroy(&r->lock);
	free(r->path);
	free(r->folder);
	free(r);
}

void reload_begin(struct reloader *r)
{
	pthread_mutex_lock(&r->lock);
	r->begun = true;
	pthread_cond_signal(&r->cond);
	pthread_mutex_unlock(&r->lock);
}

int reload_start(const struct running *running, const char *path, struct reloader **out)
{
	struct reloader *r = calloc(1, sizeof(*r));

	if (!r)
		return WEIR_ENOMEM;
	r->now = *running;
	r->path = strdup(path);
	r->folder = strndup(path, strlen(path) - strlen(running->input.path));
	report_init(&r->report);
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->cond, NULL);
	retirees_init(&r->retirees);
	pthread_cond_init(&r->idle, NULL);
	r->hidden = report_hidden(weir_graph_spec(running->graph));
	int rc =
	    r->path && r->folder ? task_start(&r->task, "reload", reload_main, r) : WEIR_ENOMEM;
	*out = r;
	if (rc == 0)
		return 0;
	reloader_free(r);
	*out = NULL;
	return rc;
}

/* Abandon the current reload, log that and return true. If the reload cannot hang, or its graph has
 * already replaced the running one, do nothing and return false. */
static bool give_up(struct reloader *r)
{
	if (!r->may_hang || !weir_graph_stay(r->now.graph))
		return false;
	weir_log(WEIR_LOG_WARN, "the reload requested by %s was abandoned: the server is stopping",
	    r->by);
	return true;
}

void reload_stop(struct reloader *r, struct running *running)
{
	pthread_mutex_lock(&r->lock);
	r->stopping = true;
	pthread_cond_signal(&r->cond);
	/* Poll, since nothing signals when a callback that may hang begins or ends. Everything else
	 * takes only a short time. */
	while (r->busy && !give_up(r)) {
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += WAIT_LOOK_NS;
		until.tv_sec += until.tv_nsec / NS_PER_S;
		until.tv_nsec %= NS_PER_S;
		pthread_cond_timedwait(&r->idle, &r->lock, &until);
	}
	*running = r->now;
	pthread_mutex_unlock(&r->lock);
}

bool reload_ended(struct reloader *r, int64_t until_ns)
{
	return task_join_until(&r->task, until_ns);
}

void reload_wait(struct reloader *r, int64_t until_ns, bool (*hurried)(void))
{
	const struct timespec look = {0, WAIT_LOOK_NS};

	while (retire_count(&r->retirees) > 0 && clock_now_ns() < until_ns && !hurried())
		nanosleep(&look, NULL);
}

void reload_end(struct reloader *r, struct retire_losses *losses)
{
	retire_end(&r->retirees, losses);
	if (losses->left == 0)
		reloader_free(r);
}
