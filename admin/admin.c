/* SPDX-License-Identifier: MIT */
/*
 * The admin thread. It sleeps in one epoll instance, which watches:
 * - the listener, and the connections whose request is still incomplete (connections.h),
 * - libmicrohttpd's own epoll descriptor (mhd.h),
 * - the epoll descriptor of the stream watchers (sse.h), and that of TLS (admin_tls.h),
 * - the eventfd through which other threads wake the admin thread.
 *
 * The thread wakes up when one of these is ready or when a deadline passes. Without clients it
 * wakes once a second for the history (ticker.h).
 *
 * All members of struct admin belong to the admin thread once it runs, except `stopping` (atomic)
 * and `change` (under `lock`). Another thread stores a request in `change`, wakes the admin thread
 * and waits until the request has been applied.
 */
#include "admin.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <weir/clock.h>

#include "admin/auth/auth.h"
#include "admin/http/connections.h"
#include "admin/stream/ticker.h"
#include "admin_change.h"
#include "admin/http/admin_tls.h"
#include "admin/http/admin_tls_keys.h"
#include "admin/auth/secret.h"

/* Nice value of the admin thread; on Linux, nice values are per thread. 10 is a guess. */
#define ADMIN_NICE 10
/* Maximum number of events handled per iteration; the rest wait for the next one. */
#define TURN_EVENTS 16

/** A request by another thread to the admin thread. */
struct change {
	bool serves;              /* whether to apply the next four members */
	struct weir_graph *graph; /* NULL keeps the current one */
	const char *config;
	int64_t number;
	struct admin_change *with;               /* NULL if the endpoint itself does not change */
	const struct admin_reloading *reloading; /* NULL keeps the current one */
	const struct admin_stopping *stopping;   /* NULL keeps the current one */
	json_t *failed;                          /* event for the stream, consumed; may be NULL */
};

struct admin {
	struct admin_source source;
	char *listen; /* as given by the caller */
	struct authority address;
	int listen_fd, epoll_fd, wake_fd; /* -1 until opened */
	struct process process;
	struct auth *auth;
	struct admin_tls *tls; /* NULL without TLS */
	struct mhd *mhd;
	struct connections connections;
	struct ticker ticker;
	pthread_t thread;
	atomic_bool stopping; /* set by admin_stop, read by the thread */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct change *change; /* requested change, under the lock; NULL once done */
};

static void on_gone(void *arg, struct auth_pass *pass)
{
	(void)arg;
	connections_gone(pass);
}

/* ---- the thread ---- */

static int timeout_ms(const struct admin *a)
{
	int mhd = mhd_timeout_ms(a->mhd);
	int connections = connections_timeout_ms(&a->connections);
	int first = ticker_timeout_ms(&a->ticker, weir_clock_ns(CLOCK_MONOTONIC));

	if (mhd >= 0 && mhd < first)
		first = mhd;
	return connections >= 0 && connections < first ? connections : first;
}

/* Connections are handled first and the listener last: a slot that is freed and reused within one
 * iteration must not receive the events of its previous connection. */
static void turn(struct admin *a, const struct epoll_event *ev, int n)
{
	bool more = false;

	for (int i = 0; i < n; i++) {
		void *tag = ev[i].data.ptr;
		if (tag == &a->connections.listen_fd)
			more = true;
		else if (tag != &a->mhd && tag != &a->wake_fd && tag != &a->ticker &&
			 tag != &a->tls)
			connections_ready(&a->connections, tag, ev[i].events);
	}
	if (more)
		connections_accept(&a->connections);
}

static void obey(struct admin *a, const struct change *c)
{
	if (c->reloading)
		a->source.reloading = c->reloading;
	if (c->stopping)
		a->source.stopping = c->stopping;
	if (c->failed)
		sse_reload(a->ticker.sse, c->failed);
	if (!c->serves)
		return;
	if (c->graph)
		a->source.arg = c->graph;
	a->source.config = c->config;
	if (c->with)
		admin_change_make(c->with, &(struct admin_parts){a->auth, a->tls, &a->address,
					       &a->ticker.alerts, &a->source.unless_shed});
	sse_config(a->ticker.sse, (double)weir_clock_ns(CLOCK_REALTIME) / 1e9, c->number);
}

/* Another thread has written to the eventfd: reset it and apply the requested change. */
static void see_wake(struct admin *a)
{
	uint64_t n;

	/* Reset the eventfd first, so that a request stored after this wakes us again. */
	if (read(a->wake_fd, &n, sizeof(n)) < 0)
		return;
	pthread_mutex_lock(&a->lock);
	if (a->change)
		obey(a, a->change);
	a->change = NULL;
	pthread_cond_signal(&a->changed);
	pthread_mutex_unlock(&a->lock);
}

static void *admin_run(void *arg)
{
	struct admin *a = arg;
	struct epoll_event ev[TURN_EVENTS];

	/* If cores are scarce, the data plane has priority, even while the endpoint is under
	 * attack. This thread still gets about a tenth of a core, far more than the ticks need. */
	setpriority(PRIO_PROCESS, 0, ADMIN_NICE);

	while (!atomic_load(&a->stopping)) {
		int n = epoll_wait(a->epoll_fd, ev, TURN_EVENTS, timeout_ms(a));
		turn(a, ev, n);
		connections_expire(&a->connections);
		mhd_run(a->mhd);
		see_wake(a);
		ticker_run(&a->ticker, weir_clock_ns(CLOCK_MONOTONIC));
		sse_run(a->ticker.sse, weir_clock_ns(CLOCK_MONOTONIC));
		if (a->tls) /* last, so that data written above is sent in this iteration */
			admin_tls_run(a->tls, weir_clock_ns(CLOCK_MONOTONIC));
	}
	return NULL;
}

static int start_thread(struct admin *a)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&a->thread, NULL, admin_run, a);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0) {
		errno = rc;
		return WEIR_ESYS;
	}
	pthread_setname_np(a->thread, "admin");
	return 0;
}

/* ---- start and stop ---- */

static int watch(struct admin *a, int fd, void *tag)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = tag};

	return epoll_ctl(a->epoll_fd, EPOLL_CTL_ADD, fd, &ev) == 0 ? 0 : WEIR_ESYS;
}

static int open_loop(struct admin *a)
{
	a->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	a->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (a->epoll_fd < 0 || a->wake_fd < 0)
		return WEIR_ESYS;
	int rc = ticker_init(&a->ticker, &a->source, a->source.history_file);
	struct weir_alerts_spec rules;
	if (rc == 0 && a->source.rules)
		rc = weir_alerts_copy(a->source.rules, &rules);
	if (rc != 0)
		return rc;
	if (a->source.rules)
		alerts_rule(&a->ticker.alerts, &rules);
	a->source.history = a->ticker.history;
	a->source.bottleneck = &a->ticker.bottleneck;
	a->source.alerts = &a->ticker.alerts;
	rc = mhd_open(&a->source, &a->process, a->auth, CONNECTIONS_MAX, on_gone, a, &a->mhd);
	if (rc == 0)
		rc = watch(a, a->wake_fd, &a->wake_fd);
	if (rc == 0)
		rc = watch(a, mhd_fd(a->mhd), &a->mhd);
	if (rc == 0)
		rc = watch(a, sse_fd(a->ticker.sse), &a->ticker);
	if (rc == 0)
		rc = connections_init(&a->connections, a->epoll_fd, a->listen_fd, &a->address);
	a->connections.mhd = a->mhd;
	a->connections.sse = a->ticker.sse;
	a->connections.auth = a->auth;
	a->connections.tls = a->tls;
	sse_guard(a->ticker.sse, a->auth);
	if (rc == 0 && a->tls)
		rc = watch(a, admin_tls_fd(a->tls), &a->tls);
	return rc;
}

static void admin_free(struct admin *a)
{
	mhd_close(a->mhd);
	connections_fini(&a->connections);
	ticker_fini(&a->ticker);
	admin_tls_close(a->tls); /* after the connections that use it */
	auth_free(a->auth);
	free(a->listen);
	process_fini(&a->process);
	if (a->epoll_fd >= 0)
		close(a->epoll_fd);
	if (a->wake_fd >= 0)
		close(a->wake_fd);
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->lock);
	if (a->listen_fd >= 0) {
		close(a->listen_fd);
		authority_unlink(&a->address);
	}
	free(a);
}

static int fail(struct weir_err *err, int code)
{
	err->code = code;
	snprintf(err->text, sizeof(err->text), "the admin endpoint cannot start: %s",
	    code == WEIR_ESYS ? strerror(errno) : weir_error_text(code));
	return code;
}

static struct admin *admin_new(const struct admin_source *source, const char *listen)
{
	struct admin *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->source = *source;
	a->listen = strdup(listen);
	if (!a->listen) {
		free(a);
		return NULL;
	}
	a->listen_fd = a->epoll_fd = a->wake_fd = -1;
	for (int i = 0; i < CONNECTIONS_SPARES; i++)
		a->connections.spare[i] = -1;
	process_init(&a->process);
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	return a;
}

/* ---- checking a spec ---- */

/* Report a file that cannot be opened at its own key, and both if both cannot. */
static void check_tls(
    const struct weir_admin_tls_spec *tls, const struct weir_mark *mark, struct weir_errs *errs)
{
	const struct weir_mark *at_cert = tls->cert_mark.file ? &tls->cert_mark : mark;
	const struct weir_mark *at_key = tls->key_mark.file ? &tls->key_mark : mark;
	struct weir_err err = {0}, of_key = {0};

	if (!*tls->cert || !*tls->key)
		return;
	int cert = keys_open_cert(tls->cert, &err);
	int key = secret_open(tls->key, "the key of the certificate", &of_key);
	if (cert < 0)
		weir_errs_add(errs, at_cert, err.code, err.hint, "%s", err.text);
	if (key < 0)
		weir_errs_add(errs, at_key, of_key.code, of_key.hint, "%s", of_key.text);
	if (cert >= 0 && key >= 0 && admin_tls_check(tls->cert, tls->key, &err) != 0)
		weir_errs_add(errs, at_cert, err.code, err.hint, "%s", err.text);
	if (cert >= 0)
		close(cert);
	if (key >= 0)
		close(key);
}

int admin_check(const struct weir_admin_spec *spec, struct weir_errs *errs)
{
	struct authority address;
	struct weir_err err = {0};
	struct auth *auth = NULL;
	int before = errs->total;

	if (authority_parse(spec->listen, &address, &err) != 0)
		return weir_errs_add(errs, &spec->mark, err.code, err.hint, "%s", err.text);
	auth_rules(spec, &address, errs);
	auth_new(spec, &address, &auth, errs);
	auth_free(auth);
	check_tls(&spec->tls, &spec->tls_mark, errs);
	return errs->total == before ? 0 : WEIR_EINVAL;
}

/* Run admin_check, since the caller may not have done so, and report the first error. */
static int check_first(const struct weir_admin_spec *spec, struct weir_err *err)
{
	struct weir_errs errs = {0};
	int rc = admin_check(spec, &errs);

	if (errs.n > 0)
		*err = errs.err[0];
	return rc;
}

/* ---- start ---- */

/* Set up authentication and TLS and listen. Without a spec, no token is required, and the address
 * must be reachable only from this host. */
static int open_gate(struct admin *a, const char *listen, struct weir_err *err)
{
	char none[] = "";
	struct weir_admin_spec spec = {.tls = {.cert = none, .key = none}};
	struct weir_errs errs = {0};

	if (a->source.admin)
		spec = *a->source.admin;
	spec.listen = (char *)(uintptr_t)listen; /* only read */
	int rc = check_first(&spec, err);
	if (rc != 0)
		return rc;
	a->address.shared = spec.n_users > 0;
	a->address.tls = *spec.tls.cert != '\0';
	rc = authority_listen(&a->address, &a->listen_fd, err);
	if (rc == 0 && auth_new(&spec, &a->address, &a->auth, &errs) != 0) {
		*err = errs.err[0];
		return err->code;
	}
	if (rc == 0)
		a->address.hosts = auth_hosts(a->auth);
	if (rc == 0 && a->address.tls)
		rc = admin_tls_open(spec.tls.cert, spec.tls.key, &a->tls, err);
	return rc;
}

int admin_start_source(
    const struct admin_source *source, const char *listen, struct admin **out, struct weir_err *err)
{
	struct admin *a = admin_new(source, listen);
	int rc;

	if (!a)
		return fail(err, WEIR_ENOMEM);
	rc = authority_parse(listen, &a->address, err);
	if (rc == 0)
		rc = open_gate(a, listen, err);
	if (rc != 0)
		goto failed;
	rc = open_loop(a);
	if (rc == 0)
		rc = start_thread(a);
	if (rc != 0) {
		fail(err, rc);
		goto failed;
	}
	/* The settings of these three have been applied. Forget the pointers: they point into the
	 * graph, which a reload may replace. */
	a->source.admin = NULL;
	a->source.history_file = NULL;
	a->source.rules = NULL;
	*out = a;
	return 0;
failed:
	admin_free(a);
	return rc;
}

int admin_start(struct weir_graph *graph, const char *config, const char *listen,
    struct admin **admin, struct weir_err *err)
{
	struct admin_source source = graph_source(graph);

	source.config = config;
	source.admin = &weir_graph_spec(graph)->admin;
	source.history_file = weir_graph_spec(graph)->admin.history.file;
	source.rules = &weir_graph_spec(graph)->alerts;
	source.unless_shed = weir_graph_spec(graph)->admin.ready.unless_shed;
	return admin_start_source(&source, listen, admin, err);
}

int admin_port(const struct admin *a)
{
	return a->address.port;
}

/* A write to an eventfd fails only when its counter is full, and then the eventfd is readable
 * anyway. */
static void wake(struct admin *a)
{
	uint64_t one = 1;

	WEIR_ASSERT(write(a->wake_fd, &one, sizeof(one)) > 0 || errno == EAGAIN);
}

/* Hand `c` to the admin thread and wait until it has been applied. */
static void change(struct admin *a, struct change *c)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->change = c;
	wake(a);
	while (a->change)
		pthread_cond_wait(&a->changed, &a->lock);
	pthread_mutex_unlock(&a->lock);
}

int admin_prepare(struct admin *a, const struct weir_spec *spec, struct admin_change **out,
    struct weir_errs *errs)
{
	*out = NULL;
	return a ? admin_change_new(spec, a->listen, &a->address, out, errs) : 0;
}

void admin_switch(struct admin *a, struct weir_graph *graph, const char *config, int64_t number,
    struct admin_change *with)
{
	change(a,
	    &(struct change){
		.serves = true, .graph = graph, .config = config, .number = number, .with = with});
	admin_change_free(with);
}

void admin_tell_failed(struct admin *a, const char *by, const char *summary)
{
	json_t *failed =
	    json_pack("{s:f, s:s, s:s, s:s}", "at", (double)weir_clock_ns(CLOCK_REALTIME) / 1e9,
		"by", by, "result", "failed", "summary", summary);

	if (a && failed)
		change(a, &(struct change){.failed = failed});
	else
		json_decref(failed);
}

void admin_allow_reload(struct admin *a, const struct admin_reloading *reloading)
{
	change(a, &(struct change){.reloading = reloading});
}

void admin_allow_stop(struct admin *a, const struct admin_stopping *stopping)
{
	change(a, &(struct change){.stopping = stopping});
}

void admin_stop(struct admin *a)
{
	if (!a)
		return;
	atomic_store(&a->stopping, true);
	wake(a);
	pthread_join(a->thread, NULL);
	admin_free(a);
}
