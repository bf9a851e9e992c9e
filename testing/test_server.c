/* SPDX-License-Identifier: MIT */
/*
 * The server of a test; see weir/test.h.
 *
 * Its YAML is a temporary file, which is removed once the server is open. The stages behind the outlets
 * are of a type of this file, test.end, and know their outlet by their name, "left-OUTLET".
 */
#include <weir/test.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/http.h>
#include <weir/plugin.h>
#include <weir/server.h>
#include <weir/view.h>

#define OUTLETS_MAX 32
#define PATIENCE_NS INT64_C(60000000000)
#define LOOK_NS     1000000
#define PREFIX      "left-"

struct weir_test {
	const struct weir_stage_ops *ops;
	struct weir_server *server;
	bool attached; /* the thread of the test, for weir_offer */
	void (*on_left)(void *arg, const char *outlet, struct weir_event *ev);
	void *arg;
	atomic_llong left[OUTLETS_MAX];
};

/* The test of the process, for the handlers of test.end. */
static struct weir_test *current;

static int outlet_of(const struct weir_test *t, const char *name)
{
	const struct weir_outlet *o = t->ops->outlets;

	for (int i = 0; o && o[i].name && i < OUTLETS_MAX; i++)
		if (strcmp(o[i].name, name) == 0)
			return i;
	return -1;
}

static void end_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	struct weir_test *t = current;
	const char *outlet = weir_stage_name(st) + strlen(PREFIX);
	int index = outlet_of(t, outlet);

	for (int i = 0; i < n; i++) {
		if (t->on_left)
			t->on_left(t->arg, outlet, ev[i]);
		atomic_fetch_add(&t->left[index], 1);
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

static const struct weir_stage_ops end_ops = {
    .abi = WEIR_STAGE_ABI,
    .name = "test.end",
    .summary = "Counts and finishes what leaves the stage of a test",
    .accepts = WEIR_ANY_EVENT,
    .handle = end_handle,
};

/* Write the configuration. Returns false if that fails. */
static bool write_yaml(const char *path, const struct weir_stage_ops *ops, const char *members)
{
	FILE *out = fopen(path, "we");
	bool requests = !(ops->flags & WEIR_STAGE_SOURCE) &&
			(ops->accepts == &weir_http_request_type || ops->accepts == WEIR_ANY_EVENT);

	if (!out)
		return false;
	fprintf(out, "weir: 1\nlog: { level: warn }\nstages:\n");
	if (requests)
		fprintf(out, "  source: { use: http.server, with: { listen: '127.0.0.1:0' }, "
			     "to: { request: test } }\n");
	fprintf(out, "  test: { use: %s%s%s", ops->name, members && *members ? ", " : "",
	    members ? members : "");
	for (const struct weir_outlet *o = ops->outlets; o && o->name; o++)
		fprintf(out, "%s%s: " PREFIX "%s", o == ops->outlets ? ", to: { " : ", ", o->name,
		    o->name);
	fprintf(out, "%s }\n", ops->outlets && ops->outlets->name ? " }" : "");
	for (const struct weir_outlet *o = ops->outlets; o && o->name; o++)
		fprintf(out, "  " PREFIX "%s: { use: test.end, threads: inline }\n", o->name);
	return fclose(out) == 0;
}

static int open_server(struct weir_test *t, const char *members, struct weir_errs *errs)
{
	const char *tmp = getenv("TMPDIR");
	char folder[4096], path[4200];

	snprintf(folder, sizeof(folder), "%s/weir-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(folder))
		return weir_errs_add(
		    errs, NULL, WEIR_ESYS, "set TMPDIR", "'%s' cannot be created", folder);
	snprintf(path, sizeof(path), "%s/test.yaml", folder);
	int rc = write_yaml(path, t->ops, members)
		     ? weir_server_open(path, NULL, 0, &t->server, errs)
		     : weir_errs_add(errs, NULL, WEIR_ESYS, NULL, "%s cannot be written", path);
	unlink(path);
	rmdir(folder);
	return rc;
}

int weir_test_open(const struct weir_stage_ops *ops, const char *members, struct weir_test **test,
    struct weir_errs *errs)
{
	struct weir_err err = {0};
	struct weir_test *t;

	*test = NULL;
	if (current)
		return weir_errs_add(
		    errs, NULL, WEIR_EBUSY, NULL, "close the other test first (weir_test_close)");
	int rc = weir_stage_register(ops, &err);
	if (rc == 0)
		rc = weir_stage_register(&end_ops, &err);
	if (rc != 0)
		return weir_errs_add(errs, NULL, rc, *err.hint ? err.hint : NULL, "%s", err.text);
	t = calloc(1, sizeof(*t));
	if (!t)
		return weir_errs_add(errs, NULL, WEIR_ENOMEM, NULL, "out of memory");
	t->ops = ops;
	current = t;
	rc = open_server(t, members, errs);
	if (rc == 0)
		rc = weir_server_start(t->server, errs);
	if (rc == 0)
		*test = t;
	else
		weir_test_close(t);
	return rc;
}

int weir_test_close(struct weir_test *t)
{
	struct weir_drain_report report = {0};

	if (!t)
		return 0;
	if (t->attached)
		weir_thread_detach();
	t->attached = false;
	weir_server_close(t->server, &report);
	if (report.left > 0)
		return WEIR_EFAILED; /* handlers still use the test */
	current = NULL;
	free(t);
	return report.closed == 0 && report.lost == 0 && report.law_error == 0 ? 0 : WEIR_EFAILED;
}

struct weir_graph *weir_test_graph(struct weir_test *t)
{
	return weir_server_graph(t->server);
}

struct weir_stage *weir_test_stage(struct weir_test *t)
{
	return weir_graph_stage(weir_test_graph(t), "test");
}

int weir_test_offer(struct weir_test *t, struct weir_event **ev, int n)
{
	struct weir_stage *st = weir_test_stage(t);
	int reason = WEIR_ENOMEM, admitted = 0;

	if (!t->attached)
		t->attached = weir_thread_attach(weir_test_graph(t), "test") == 0;
	if (t->attached)
		admitted = weir_offer(st, ev, n, &reason);
	for (int i = 0; i < n; i++)
		if (ev[i])
			weir_event_finish(&ev[i], reason);
	if (t->attached)
		weir_thread_flush();
	return admitted;
}

int64_t weir_test_left(struct weir_test *t, const char *outlet)
{
	int i = outlet_of(t, outlet);

	return i < 0 ? -1 : atomic_load(&t->left[i]);
}

bool weir_test_await(struct weir_test *t, const char *outlet, int64_t n)
{
	const struct timespec look = {0, LOOK_NS};

	for (int64_t waited_ns = 0; weir_test_left(t, outlet) < n; waited_ns += LOOK_NS) {
		if (waited_ns > PATIENCE_NS)
			return false;
		nanosleep(&look, NULL);
	}
	return true;
}

void weir_test_on_left(struct weir_test *t,
    void (*fn)(void *arg, const char *outlet, struct weir_event *ev), void *arg)
{
	t->on_left = fn;
	t->arg = arg;
}

int64_t weir_test_metric(struct weir_test *t, const char *name)
{
	struct weir_graph_view *v = NULL;
	int64_t value = -1;

	if (weir_graph_view(weir_test_graph(t), &v) != 0)
		return -1;
	for (int i = 0; i < v->n_stages; i++) {
		const struct weir_stage_view *s = &v->stages[i];
		if (strcmp(s->name, "test") != 0)
			continue;
		for (int m = 0; m < WEIR_METRICS_MAX && t->ops->metrics && t->ops->metrics[m].name;
		     m++)
			if (strcmp(t->ops->metrics[m].name, name) == 0)
				value = s->metric[m];
	}
	weir_graph_view_free(v);
	return value;
}
