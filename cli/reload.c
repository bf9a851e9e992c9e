/* SPDX-License-Identifier: MIT */
/* Reloading; see reload.h. What an order has come to is kept and told by reload_report.c. */
#include "reload.h"

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
#include "run_config.h"
#include "run_log.h"

/* As long as its requests take: an order of magnitude more than any, in ns. */
#define RETIRE_GRACE_NS (365LL * 24 * 3600 * 1000000000)
/* Between two looks whether the graphs before have ended, or a signal handler wants them to: as a drain does. */
#define WAIT_LOOK_NS (20 * NS_PER_MS)

/** A graph that was followed by another one. */
struct retired {
	struct retired *before; /* freed only when that one has ended; under the lock */
	struct reloader *reloader;
	bool told;                /* what to do: with the graph, or with none; under the lock */
	struct weir_graph *graph; /* NULL when it is freed; under the lock */
	struct otlp *otlp;        /* what exports from it */
	struct task task;
};

struct reloader {
	struct running now; /* the thread's, while it runs, as is */
	int64_t graphs;     /* that followed another one */
	char *path;
	char *
	    folder; /* what of `path` the command line left out, "" nothing: files are named as there */
	struct task task;
	json_t *
	    hidden; /* paths of what runs whose values are not told, NULL: all are such; the thread's */
	struct report report; /* own lock */
	pthread_mutex_t lock;
	pthread_cond_t cond, retiring;
	/* under the lock */
	bool stopping, ordered, preview;
	char by[WEIR_ADMIN_NAME_MAX + 1];
	uint64_t orders; /* number of the newest */
	struct retired *retired;
	int n_retired; /* of which so many have requests: */
	int n_busy;
	uint64_t closed;
};

/* ---- graphs that end ---- */

static void retire_say(struct reloader *r, const struct weir_drain_report *d)
{
	if (d->closed || d->law_error)
		weir_log(WEIR_LOG_WARN,
		    "the graph before: %llu events ended unfinished, books off by %lld",
		    (unsigned long long)d->closed, (long long)d->law_error);
	r->closed += d->closed;
}

/* Wait for what to do: the graph to end, NULL for none. */
static struct weir_graph *retire_told(struct retired *me)
{
	struct reloader *r = me->reloader;

	pthread_mutex_lock(&r->lock);
	while (!me->told)
		pthread_cond_wait(&r->retiring, &r->lock);
	struct weir_graph *graph = me->graph;
	pthread_mutex_unlock(&r->lock);
	return graph;
}

/* The one before hands its connections to this graph, so it must be gone first. */
static void *retire_main(void *arg)
{
	struct retired *me = arg;
	struct reloader *r = me->reloader;
	struct weir_graph *graph = retire_told(me);
	struct weir_drain_report d = {0};

	if (!graph)
		return NULL;
	weir_graph_drain(graph, RETIRE_GRACE_NS, &d);
	otlp_stop(me->otlp);
	pthread_mutex_lock(&r->lock);
	struct retired *before = me->before;
	r->n_busy--;
	pthread_mutex_unlock(&r->lock);
	if (before)
		task_join(&before->task);
	pthread_mutex_lock(&r->lock);
	me->graph = NULL;
	me->before = NULL;
	retire_say(r, &d);
	r->n_retired--;
	pthread_mutex_unlock(&r->lock);
	free(before);
	weir_graph_free(graph);
	return NULL;
}

/* The thread is made before there is something to end: without one the order fails, and nothing has happened. */
static struct retired *retire_new(struct reloader *r)
{
	struct retired *me = calloc(1, sizeof(*me));

	if (!me)
		return NULL;
	me->reloader = r;
	if (task_start(&me->task, "retire", retire_main, me) == 0)
		return me;
	free(me);
	return NULL;
}

/* Not needed after all. NULL is allowed. */
static void retire_none(struct retired *me)
{
	if (!me)
		return;
	pthread_mutex_lock(&me->reloader->lock);
	me->told = true;
	pthread_cond_broadcast(&me->reloader->retiring);
	pthread_mutex_unlock(&me->reloader->lock);
	task_join(&me->task);
	free(me);
}

static void retire(struct reloader *r, struct retired *me, struct weir_graph *graph)
{
	pthread_mutex_lock(&r->lock);
	me->told = true;
	me->graph = graph;
	me->before = r->retired;
	r->retired = me;
	r->n_retired++;
	r->n_busy++;
	pthread_cond_broadcast(&r->retiring);
	pthread_mutex_unlock(&r->lock);
}

static int retired_now(struct reloader *r)
{
	pthread_mutex_lock(&r->lock);
	int n = r->n_retired;
	pthread_mutex_unlock(&r->lock);
	return n;
}

static bool too_many(struct reloader *r)
{
	pthread_mutex_lock(&r->lock);
	bool many =
	    r->n_busy >= RELOAD_RETIRED_MAX || r->n_retired - r->n_busy >= RELOAD_WAITING_MAX;
	pthread_mutex_unlock(&r->lock);
	return many;
}

/* ---- an order ---- */

/** What an order has made so far; all of it is freed at its end but what was taken over. */
struct order {
	struct weir_errs errs;
	struct weir_graph *graph;
	struct otlp *otlp;
	struct admin_change *admin; /* of the endpoint; NULL: there is none, or it was taken over */
	char *values, *config;
	char *
	    carried; /* the values of what would run then: `values` but for what waits for a restart */
	json_t *hidden; /* of those; out.hidden has those of what runs now, too */
	struct config_diff diff;
	struct outcome out;
};

static int fail(struct order *o, int code, const char *text)
{
	return weir_errs_add(&o->errs, NULL, code, NULL, "%s", text);
}

/* The paths that are not told when `own` runs: its, and of what waits for a restart still those of before. Takes `own` over;
 * NULL, which hides all, when one is. */
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

/* Load, check and build it, in the folder of the file as `run` does; the folder stays that if it was good. */
static int prepare(struct reloader *r, struct order *o)
{
	int folder_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char *operand[] = {r->path};
	struct verb_args args = *r->now.args;

	args.operand = operand;
	int rc = verb_build_values(&args, &o->graph, &o->values, &o->errs);
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
		    &(struct run_config){o->carried, o->hidden, r->folder, args.n_sets, args.sets});
		rc = admin_prepare(r->now.admin, weir_graph_spec(o->graph), &o->admin, &o->errs);
	}
	if ((rc != 0 || o->out.preview) && folder_fd != -1 && fchdir(folder_fd) != 0)
		weir_log(WEIR_LOG_WARN, "the working directory can not be entered again");
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

/* What runs now is what `o` has loaded, served by `graph`. */
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

/* What the new graph needs beside it. */
static int start_export(struct order *o)
{
	struct weir_err err = {0};
	int rc = otlp_start(o->graph, &o->otlp, &err);

	if (rc != 0)
		weir_errs_add(&o->errs, &weir_graph_spec(o->graph)->trace.mark, rc,
		    err.hint[0] ? err.hint : NULL, "%s", err.text);
	return rc;
}

static int follow(struct reloader *r, struct order *o)
{
	struct retired *me = retire_new(r);
	struct weir_graph *old = r->now.graph;
	int rc = me ? 0 : fail(o, WEIR_ESYS, "no memory or thread to end the graph that runs");

	if (rc == 0 && too_many(r))
		rc = fail(o, WEIR_EBUSY,
		    "requests of earlier graphs have not ended yet: too many graphs at once");
	if (rc == 0)
		rc = start_export(o);
	if (rc == 0)
		rc = weir_graph_succeed(o->graph, old, &o->errs);
	if (rc != 0) {
		retire_none(me);
		return rc;
	}
	me->otlp = r->now.otlp;
	r->now.otlp = o->otlp;
	r->now.graph = o->graph;
	r->graphs++;
	o->graph = NULL;
	o->otlp = NULL;
	take_over(r, o, r->now.graph);
	notify_graph(r->now.notify, r->now.graph);
	retire(r, me, old);
	o->out.followed = true;
	return 0;
}

/* Make the difference true. */
static int apply(struct reloader *r, struct order *o)
{
	int n = 0;

	if (o->diff.live && weir_graph_configure(r->now.graph, o->graph, &n) == 0) {
		take_over(r, o, r->now.graph);
		return 0;
	}
	return follow(r, o);
}

/* Cut `folder` out of text[] wherever it stands. */
static void cut_out(char *text, const char *folder)
{
	size_t n = strlen(folder);

	for (char *at = text; n > 0 && (at = strstr(at, folder)) != NULL;)
		memmove(at, at + n, strlen(at + n) + 1);
}

/* The file is opened by its whole path, since the working directory is another one by now; people know it by another. */
static void name_as_given(struct weir_errs *errs, const char *folder)
{
	for (int i = 0; i < errs->n; i++) {
		cut_out(errs->err[i].file, folder);
		cut_out(errs->err[i].text, folder);
		cut_out(errs->err[i].hint, folder);
	}
}

static void obey(struct reloader *r, uint64_t id, bool preview, const char *by)
{
	struct order o = {.out = {.id = id, .preview = preview, .by = by}};
	int64_t began_ns = clock_now_ns();

	if (!preview)
		notify_reloading(r->now.notify);
	o.out.rc = prepare(r, &o);
	weir_graph_act_as(strcmp(by, RELOAD_BY_SIGNAL) == 0 ? NULL : by);
	if (o.out.rc == 0 && !preview)
		o.out.rc = apply(r, &o);
	if (!preview)
		notify_reloaded(r->now.notify);
	o.out.took_ns = clock_now_ns() - began_ns;
	name_as_given(&o.errs, r->folder);
	report_order(&r->report, &o.out, &o.diff, &o.errs);
	if (o.out.rc != 0 && !preview) {
		char sentence[256];
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
		while (!r->ordered && !r->stopping)
			pthread_cond_wait(&r->cond, &r->lock);
		if (r->stopping)
			break;
		bool preview = r->preview;
		uint64_t id = r->orders;
		char by[sizeof(r->by)];
		memcpy(by, r->by, sizeof(by));
		r->ordered = false;
		pthread_mutex_unlock(&r->lock);
		obey(r, id, preview, by);
		pthread_mutex_lock(&r->lock);
	}
	if (r->ordered)
		weir_log(WEIR_LOG_WARN,
		    "a reload was ordered by %s and not begun: the server stops", r->by);
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
	/* Who waits for a preview gets one that was made true; never the other way round. */
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
	return report_json(&r->report, retired_now(r));
}

void reload_counts(struct reloader *r, struct admin_reload_counts *counts)
{
	report_counts(&r->report, counts);
}

static void reloader_free(struct reloader *r)
{
	json_decref(r->hidden);
	report_fini(&r->report);
	pthread_cond_destroy(&r->retiring);
	pthread_cond_destroy(&r->cond);
	pthread_mutex_destroy(&r->lock);
	free(r->path);
	free(r->folder);
	free(r);
}

int reload_start(const struct running *running, const char *path, struct reloader **out)
{
	struct reloader *r = calloc(1, sizeof(*r));

	if (!r)
		return WEIR_ENOMEM;
	r->now = *running;
	r->path = strdup(path);
	r->folder = strndup(path, strlen(path) - strlen(running->args->operand[0]));
	report_init(&r->report);
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->cond, NULL);
	pthread_cond_init(&r->retiring, NULL);
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

void reload_stop(struct reloader *r, struct running *running)
{
	pthread_mutex_lock(&r->lock);
	r->stopping = true;
	pthread_cond_signal(&r->cond);
	pthread_mutex_unlock(&r->lock);
	task_join(&r->task);
	*running = r->now;
}

void reload_wait(struct reloader *r, int64_t until_ns, bool (*hurried)(void))
{
	const struct timespec look = {0, WAIT_LOOK_NS};

	while (retired_now(r) > 0 && clock_now_ns() < until_ns && !hurried())
		nanosleep(&look, NULL);
}

uint64_t reload_end(struct reloader *r)
{
	pthread_mutex_lock(&r->lock);
	for (struct retired *me = r->retired; me; me = me->before)
		if (me->graph)
			weir_graph_hurry(me->graph);
	struct retired *last = r->retired;
	pthread_mutex_unlock(&r->lock);
	if (last)
		task_join(&last->task);
	uint64_t closed = r->closed;
	free(last);
	reloader_free(r);
	return closed;
}
