/* SPDX-License-Identifier: MIT */
/* Starts and stops servers; see net_server.h. */
#include "net/net_server.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/address.h"
#include "net/bind.h"
#include "net/clients.h"
#include "net/drain.h"
#include "net/evict.h"
#include "net/handover.h"
#include "net/listen.h"
#include "net/pause.h"
#include "net/per_thread.h"
#include "net/reach.h"
#include "net/slot.h"
#include "net/socket_file.h"
#include "net/stand_in.h"
#include "net/tls/tls_site.h"

/* ---- an I/O thread ---- */

void net_io_init(struct net_io *io, struct net_server *srv, int index, const struct net_conf *conf,
    int64_t *count)
{
	io->srv = srv;
	io->stage = srv->stage;
	io->index = index;
	io->conf = conf;
	io->count = count;
	io->accept.reserve_fd = io->accept.newcomer.fd = -1;
	atomic_init(&io->evict.idle_since_ns, INT64_MAX);
	for (int i = 0; i < NET_LISTS; i++)
		io->list[i].tail = &io->list[i].first;
}

int net_io_start(struct net_io *io)
{
	pause_begin(io);
	return listen_watch(io);
}

void net_io_follow(struct net_io *io)
{
	pause_check(io);
	handover_adopt(io);
	evict_follow(io);
	stand_in_follow(io);
	drain_follow(io);
	per_thread_follow(io);
}

void net_io_report(struct net_io *io)
{
	per_thread_report(io);
	evict_tell(io);
	drain_report(io);
}

void net_io_stop(struct net_io *io)
{
	listen_close(io);
	weir_timer_cancel(io->loop, &io->drain.linger_timer);
}

/* ---- main ---- */

/* A limit above that of the whole server would be none. */
static int check_per_thread(
    struct weir_stage *st, const struct net_conf *conf, struct weir_err *err)
{
	if (conf->per_thread <= conf->max_connections)
		return 0;
	weir_blame(st, "per_thread");
	snprintf(err->text, sizeof(err->text),
	    "'per_thread' is %lld, but all threads together have at most 'max_connections', %lld",
	    (long long)conf->per_thread, (long long)conf->max_connections);
	snprintf(err->hint, sizeof(err->hint), "lower 'per_thread'; 1 is a thread per connection");
	return WEIR_EINVAL;
}

static int read_trust(struct weir_stage *st, const struct net_conf *conf, struct net_server *srv,
    struct weir_err *err)
{
	struct networks *out = &srv->trust;
	char at[32];
	int i;

	out->n = 0;
	for (i = 0; i < conf->trust.n; i++) {
		if (strcmp(conf->trust.items[i], NET_UNIX_NAME) == 0)
			srv->trusts_unix = true;
		else if (out->n == NETWORKS_MAX ||
			 network_parse(conf->trust.items[i], &out->item[out->n], err) != 0)
			break;
		else
			out->n++;
	}
	if (i == conf->trust.n)
		return 0;
	snprintf(at, sizeof(at), "trust.%d", i + 1);
	weir_blame(st, at);
	if (out->n == NETWORKS_MAX)
		snprintf(err->text, sizeof(err->text), "'trust' takes at most %d networks",
		    NETWORKS_MAX);
	return WEIR_EINVAL;
}

int net_conf_check(struct weir_stage *st, const struct net_conf *conf, struct weir_err *err)
{
	struct address a;

	if (check_per_thread(st, conf, err) != 0 || socket_file_check(st, conf, err) != 0)
		return WEIR_EINVAL;

	for (int i = 0; i < conf->listen.n; i++)
		if (address_parse(conf->listen.items[i], &a, err) != 0) {
			listen_blame(st, i);
			return WEIR_EINVAL;
		}
	if (conf->listen.n >= 1 && conf->listen.n <= NET_LISTEN_MAX)
		return 0;
	if (conf->listen.n < 1)
		weir_blame(st, "listen");
	else
		listen_blame(st, NET_LISTEN_MAX);
	snprintf(err->text, sizeof(err->text), "'listen' needs 1 to %d addresses", NET_LISTEN_MAX);
	snprintf(err->hint, sizeof(err->hint), "%s",
	    conf->listen.n < 1 ? "write an address, such as 127.0.0.1:8080"
			       : "move the others to another stage of this type");
	return WEIR_EINVAL;
}

static int auto_threads(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;

	return n < NET_IO_MAX ? n : NET_IO_MAX;
}

/* One per core of the group, if the server is in one. */
static int n_threads(const struct weir_stage *st, const struct net_conf *conf)
{
	int cores = weir_loop_cores(st);

	if (cores > 0)
		return cores < NET_IO_MAX ? cores : NET_IO_MAX;
	return conf->threads == -1 ? auto_threads() : (int)conf->threads;
}

/* Connections beyond the limit of the whole server are refused when they are accepted. */
static void warn_of_threads(struct weir_stage *st, const struct net_conf *conf)
{
	int n = n_threads(st, conf);
	int64_t room = n * conf->per_thread;

	if (room > conf->max_connections)
		weir_warn(st, "per_thread",
		    "%d I/O threads with 'per_thread: %lld' have room for %lld connections, but "
		    "'max_connections' is %lld, so the threads beyond can only refuse clients: "
		    "raise 'max_connections', or lower 'threads'",
		    n, (long long)conf->per_thread, (long long)room,
		    (long long)conf->max_connections);
}

int net_server_init(
    struct weir_stage *st, const struct net_calls *calls, int outlet, struct weir_err *err)
{
	const struct net_conf *conf = weir_conf(st);
	struct net_server *srv = weir_state(st);
	pthread_condattr_t attr;

	if (read_trust(st, conf, srv, err) != 0 ||
	    tls_site_new(st, outlet, &conf->tls, &srv->tls, err) != 0)
		return WEIR_EINVAL;
	srv->clients = clients_new();
	if (!srv->clients) {
		snprintf(err->text, sizeof(err->text), "no memory for the client table");
		return WEIR_ENOMEM;
	}
	warn_of_threads(st, conf);
	srv->stage = st;
	srv->calls = calls;
	pthread_mutex_init(&srv->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&srv->reported, &attr);
	pthread_condattr_destroy(&attr);
	return 0;
}

static void close_all(struct net_server *srv)
{
	for (int i = 0; i < srv->n_io; i++)
		if (srv->io[i]->loop)
			weir_loop_stop(srv->io[i]->loop);
	drain_wait_gone(srv);
	for (int i = 0; i < srv->n_io; i++) {
		struct net_io *io = srv->io[i];
		if (io->loop)
			weir_loop_join(io->loop);
		io->loop = NULL;
		if (atomic_load(&srv->phase) == NET_RUNNING) /* the start has failed */
			socket_file_undo(srv);
		listen_close(io);
		handover_fini(io);
		per_thread_fini(io);
		free(io->listener);
		srv->calls->io_free(io);
	}
	srv->n_io = srv->n_addresses = 0;
}

static int new_threads(struct net_server *srv, int n, struct weir_err *err)
{
	for (int i = 0; i < n; i++) {
		srv->io[i] = srv->calls->io_new(srv, i);
		if (!srv->io[i])
			return err->code = WEIR_ENOMEM;
		srv->n_io++;
	}
	return 0;
}

static int start_loops(
    struct net_server *srv, const struct weir_loop_ops *ops, struct weir_err *err)
{
	for (int i = 0; i < srv->n_io; i++) {
		struct weir_loop *loop;
		int rc = weir_loop_start(srv->stage, i, ops, srv->io[i], &loop);
		if (rc == 0) {
			/* pairs with net_wake_all */
			atomic_store_explicit(&srv->n_loops, i + 1, memory_order_release);
			continue;
		}
		srv->io[i]->loop = NULL;
		err->code = rc;
		snprintf(err->text, sizeof(err->text), "I/O thread %d could not start: %s", i,
		    weir_error_text(rc));
		if (rc == WEIR_ESYS)
			snprintf(err->hint, sizeof(err->hint),
			    "lower 'threads', or raise the limits of threads and of open files");
		return rc;
	}
	return 0;
}

int net_server_start(struct weir_stage *st, const struct weir_loop_ops *ops, struct weir_err *err)
{
	const struct net_conf *conf = weir_conf(st);
	struct net_server *srv = weir_state(st);
	int n = n_threads(st, conf), rc;

	srv->per_thread = conf->per_thread;
	slot_raise_fds(st, conf->max_connections, n, conf->listen.n);
	rc = new_threads(srv, n, err);
	if (rc == 0 && srv->tls)
		rc = tls_site_start(srv->tls, &conf->tls, handover_site(srv), err);
	if (rc == 0)
		rc = listen_bind(srv, conf, err);
	if (rc == 0)
		rc = start_loops(srv, ops, err);
	if (rc == 0 && srv->per_thread > 0)
		weir_loop_wake(srv->io[0]->loop); /* now they may accept; it wakes the others */
	if (rc == 0)
		reach_tell(srv, conf);
	else
		close_all(srv);
	return rc;
}

void net_server_stop(struct weir_stage *st, int64_t until_ns)
{
	const struct net_conf *conf = weir_conf(st);
	struct net_server *srv = weir_state(st);

	if (srv->n_io > 0)
		drain_run(srv, conf->linger_ns, until_ns);
}

void net_server_fini(struct weir_stage *st)
{
	struct net_server *srv = weir_state(st);

	close_all(srv);
	tls_site_free(srv->tls);
	pthread_cond_destroy(&srv->reported);
	pthread_mutex_destroy(&srv->lock);
	clients_free(srv->clients);
}
