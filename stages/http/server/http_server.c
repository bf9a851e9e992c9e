/* SPDX-License-Identifier: MIT */
/*
 * http.server: the source that creates one event per HTTP/1.1 request and writes the responses.
 *
 * This file has the tables (metrics, outlets, ops), the start and stop of the server, and the steps
 * of an I/O thread in each iteration. conn.c, read.c and write.c handle connections; stream.c and
 * the layers below it (guard, parse, chunk) turn bytes into requests. request_type.c and
 * response.c are the interface for stages. listen.c accepts, pause.c pauses, drain.c stops.
 *
 * I/O threads run from start to fini, longer than the drain, so that events that finish late
 * (WEIR_ECLOSED) can still return to their connections.
 */
#include "http/conn/io.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "http/conn/conn.h"
#include "http/conn/conn_tls.h"
#include "net/tls/tls_conn.h"
#include "http/message/guard.h"
#include "http/message/parse.h"
#include "http/message/wire.h"
#include "http/request/transfer.h"
#include "net/drain.h"
#include "net/evict.h"
#include "net/handover.h"
#include "http/server/http_knobs.h"
#include "net/listen.h"
#include "http/server/memory.h"
#include "net/pause.h"
#include "net/reach.h"
#include "net/slot.h"
#include "net/stand_in.h"
#include "net/address.h"
#include "net/clients.h"
#include "net/memory_auto.h"
#include "net/tls/tls_site.h"

static const struct io_calls calls = {.closed = listen_recheck, .hand_over = handover_take_leave};

/* ---- an I/O thread ---- */

static int io_start(struct weir_loop *loop)
{
	struct http_io *io = weir_loop_data(loop);

	io->loop = loop;
	io_touch(io);
	io->pool.part_bytes = (size_t)io->conf.stream_buffer_bytes;
	pause_begin(io);
	return listen_watch(io);
}

static void publish_counts(struct http_io *io)
{
	for (int i = 0; i < SERVER_N_METRICS; i++) {
		if (io->count[i] == 0)
			continue;
		weir_count(io->stage, i, io->count[i]);
		io->count[i] = 0;
	}
}

static void io_turn_end(struct weir_loop *loop)
{
	struct http_io *io = weir_loop_data(loop);

	conn_read_arrived(io);
	/* must precede conn_write_ready: requests that it parses may be refused immediately, which
	 * makes their connections ready */
	pause_check(io);
	handover_adopt(io); /* must also precede conn_write_ready */
	evict_follow(io);
	stand_in_follow(io);
	io_follow_drain(io);
	memory_follow(io);
	conn_write_ready(io);
	memory_tell(io);
	evict_tell(io);
	io_report_drained(io);
	publish_counts(io);
	weir_loop_expect(loop, io->in_graph - io->in_parts);
}

static void io_mail(struct weir_loop *loop, struct weir_event *list)
{
	(void)loop;
	while (list) {
		struct weir_event *ev = list;
		list = ev->next;
		if (WEIR_LIKELY(ev->type == &weir_http_request_type))
			conn_answered(weir_event_cast(ev, &weir_http_request_type));
		else if (ev->type == &transfer_signal_type)
			conn_signalled(weir_event_cast(ev, &transfer_signal_type));
		else
			tls_step_returned(ev);
	}
}

static void io_stop(struct weir_loop *loop)
{
	struct http_io *io = weir_loop_data(loop);

	listen_close(io);
	weir_timer_cancel(loop, &io->drain.linger_timer);
	while (io->conns)
		conn_close(io->conns);
	conn_write_ready(io);
	memory_tell(io);
	publish_counts(io);
	if (io->n_conns > 0)
		weir_log(WEIR_LOG_ERROR, "%s: %lld connections have requests that never ended",
		    weir_stage_name(io->stage), (long long)io->n_conns);
	pool_fini(&io->pool);
	drain_gone(io);
}

static const struct weir_loop_ops loop_ops = {
    .start = io_start, .stop = io_stop, .mail = io_mail, .turn_end = io_turn_end};

/* ---- lifecycle ---- */

static struct http_io *io_new(struct http_server *srv, int index)
{
	struct http_io *io = calloc(1, sizeof(*io));

	if (!io)
		return NULL;
	io->srv = srv;
	io->stage = srv->stage;
	io->index = index;
	io->accept.reserve_fd = io->accept.newcomer.fd = -1;
	atomic_init(&io->evict.idle_since_ns, INT64_MAX);
	io->ready_tail = &io->ready;
	for (int i = 0; i < CONN_LISTS; i++)
		io->list[i].tail = &io->list[i].first;
	pool_init(&io->pool, &srv->body_budget);
	io->pool.meter = &srv->part_meter;
	pool_share(&io->pool, &srv->memory_used);
	/* Ids must differ between runs and threads, but need not be secret. */
	if (getrandom(&io->next_id, sizeof(io->next_id), GRND_NONBLOCK) != sizeof(io->next_id))
		io->next_id = (uint64_t)(uintptr_t)io;
	return io;
}

static int auto_threads(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;

	return n < SERVER_IO_MAX ? n : SERVER_IO_MAX;
}

static int check_conf(struct weir_stage *st, const struct http_conf *conf, struct weir_err *err)
{
	struct address a;
	size_t n = strlen(conf->server_name);

	for (int i = 0; i < conf->listen.n; i++)
		if (http_address_parse(conf->listen.items[i], &a, err) != 0) {
			listen_blame(st, i);
			return WEIR_EINVAL;
		}
	if (conf->listen.n < 1 || conf->listen.n > SERVER_LISTEN_MAX) {
		if (conf->listen.n < 1)
			weir_blame(st, "listen");
		else
			listen_blame(st, SERVER_LISTEN_MAX);
		snprintf(err->text, sizeof(err->text), "'listen' needs 1 to %d addresses",
		    SERVER_LISTEN_MAX);
		snprintf(err->hint, sizeof(err->hint), "%s",
		    conf->listen.n < 1 ? "write an address, such as 127.0.0.1:8080"
				       : "move the others to another stage of this type");
		return WEIR_EINVAL;
	}
	if (n > 64 || guard_span(conf->server_name, n, GUARD_TOKEN | GUARD_QUERY) != n) {
		weir_blame(st, "server_name");
		snprintf(err->text, sizeof(err->text),
		    "'server_name' may have up to 64 visible characters and no spaces");
		return WEIR_EINVAL;
	}
	if (conf->max_body_bytes > SERVER_WHOLE_BODY_MAX && conf->stream_bytes == 0) {
		weir_blame(st, "max_body");
		snprintf(err->text, sizeof(err->text),
		    "'max_body' over 1GiB needs 'stream': whole bodies are kept in memory");
		return WEIR_EINVAL;
	}
	for (int i = 0; i < conf->methods.n; i++) {
		char at[32];
		if (parse_method_good(conf->methods.items[i]))
			continue;
		snprintf(at, sizeof(at), "methods.%d", i + 1);
		weir_blame(st, at);
		snprintf(err->text, sizeof(err->text),
		    "'methods' cannot contain '%.60s': it is standard, never served, or not a "
		    "method",
		    conf->methods.items[i]);
		return WEIR_EINVAL;
	}
	if (!wire_user_known(conf->user)) {
		weir_blame(st, "user");
		snprintf(err->text, sizeof(err->text),
		    "'user' must be address, connection or header.NAME, not '%.60s'", conf->user);
		return WEIR_EINVAL;
	}
	return 0;
}

/* Check that every stage downstream of this one supports streamed bodies; a stage that does not
 * would believe such a body to be empty. */
static int check_behind(struct weir_stage *st, const struct http_conf *conf, struct weir_err *err)
{
	const struct weir_stage *whole =
	    conf->stream_bytes > 0 ? weir_behind_without(st, 0, WEIR_STAGE_IN_PARTS) : NULL;

	if (!whole)
		return 0;
	weir_blame(st, "stream");
	snprintf(err->text, sizeof(err->text),
	    "with 'stream', stage '%s' (%s) would get parts of bodies, but it takes only whole "
	    "ones",
	    weir_stage_name(whole), weir_stage_type(whole)->name);
	snprintf(err->hint, sizeof(err->hint),
	    "remove 'stream', or use a separate http.server for the stages that stream");
	return WEIR_EINVAL;
}

static int server_init(struct weir_stage *st, struct weir_err *err)
{
	const struct http_conf *conf = weir_conf(st);
	struct http_server *srv = weir_state(st);
	pthread_condattr_t attr;

	if (check_conf(st, conf, err) != 0 || check_behind(st, conf, err) != 0 ||
	    tls_site_new(st, TLS_OUTLET, &conf->tls, &srv->tls, err) != 0)
		return WEIR_EINVAL;
	srv->clients = clients_new();
	if (!srv->clients) {
		snprintf(err->text, sizeof(err->text), "no memory for the client table");
		return WEIR_ENOMEM;
	}
	srv->stage = srv->part_meter.stage = st;
	srv->calls = &calls;
	srv->memory_auto_bytes = memory_auto();
	atomic_init(&srv->memory_limit,
	    conf->memory_bytes == -1 ? srv->memory_auto_bytes : conf->memory_bytes);
	srv->retry_after_s = (int)((conf->retry_after_ns + 999999999) / 1000000000);
	atomic_init(&srv->body_budget, conf->body_memory_bytes);
	if (conf->server_name[0])
		snprintf(srv->server_field, sizeof(srv->server_field), "Server: %s\r\n",
		    conf->server_name);
	pthread_mutex_init(&srv->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&srv->reported, &attr);
	pthread_condattr_destroy(&attr);
	return 0;
}

static void close_all(struct http_server *srv)
{
	for (int i = 0; i < srv->n_io; i++)
		if (srv->io[i]->loop)
			weir_loop_stop(srv->io[i]->loop);
	drain_wait_gone(srv);
	for (int i = 0; i < srv->n_io; i++) {
		struct http_io *io = srv->io[i];
		if (io->loop)
			weir_loop_join(io->loop);
		io->loop = NULL;
		listen_close(io);
		handover_fini(io);
		free(io);
	}
	srv->n_io = srv->n_addresses = 0;
}

static int start_loops(struct http_server *srv, struct weir_err *err)
{
	for (int i = 0; i < srv->n_io; i++) {
		struct weir_loop *loop;
		int rc = weir_loop_start(srv->stage, i, &loop_ops, srv->io[i], &loop);
		if (rc == 0) {
			/* Partner: server_wake_all. */
			atomic_store_explicit(&srv->n_loops, i + 1, memory_order_release);
			continue;
		}
		srv->io[i]->loop = NULL;
		err->code = rc;
		snprintf(err->text, sizeof(err->text), "I/O thread %d could not start: %s", i,
		    weir_error_text(rc));
		return rc;
	}
	return 0;
}

static int server_start(struct weir_stage *st, struct weir_err *err)
{
	const struct http_conf *conf = weir_conf(st);
	struct http_server *srv = weir_state(st);
	int n = conf->threads == -1 ? auto_threads() : (int)conf->threads, rc = 0;

	slot_raise_fds(st, conf->max_connections);
	for (int i = 0; i < n && rc == 0; i++) {
		srv->io[i] = io_new(srv, i);
		if (srv->io[i])
			srv->n_io++;
		else
			rc = err->code = WEIR_ENOMEM;
	}
	if (rc == 0 && srv->tls)
		rc = tls_site_start(srv->tls, &conf->tls, handover_site(srv), err);
	if (rc == 0)
		rc = listen_bind(srv, conf, err);
	if (rc == 0)
		rc = start_loops(srv, err);
	if (rc == 0)
		reach_tell(srv, conf);
	else
		close_all(srv);
	return rc;
}

static void server_stop(struct weir_stage *st, int64_t until_ns)
{
	const struct http_conf *conf = weir_conf(st);
	struct http_server *srv = weir_state(st);

	if (srv->n_io > 0)
		drain_run(srv, conf->linger_ns, until_ns);
}

static void server_fini(struct weir_stage *st)
{
	struct http_server *srv = weir_state(st);

	close_all(srv);
	tls_site_free(srv->tls);
	pthread_cond_destroy(&srv->reported);
	pthread_mutex_destroy(&srv->lock);
	clients_free(srv->clients);
}

/* ---- tables ---- */

static const struct weir_metric metrics[] = {
#define METRIC_ROW(id, name, kind, unit, help) {name, WEIR_METRIC_##kind, unit, help},
    SERVER_METRICS(METRIC_ROW)
#undef METRIC_ROW
	{NULL, WEIR_METRIC_COUNTER, NULL, NULL},
};
_Static_assert(SERVER_N_METRICS <= WEIR_METRICS_MAX, "a stage has a bounded number of metrics");

static const struct weir_outlet outlets[] = {
    {"request", &weir_http_request_type, false,
	"every request, once received; over 'stream', before its body is complete"},
    [TLS_OUTLET] = {"handshake", &tls_handshake_type, true,
	"TLS handshakes, to a stage 'use: tls.handshake'; required with 'tls'"},
    {NULL, NULL, false, NULL},
};

static struct tls_site *site_of(struct weir_stage *st)
{
	return ((struct http_server *)weir_state(st))->tls;
}

static void refresh(struct weir_stage *st, struct weir_stage *wanted)
{
	if (site_of(st) && site_of(wanted))
		tls_site_reread(site_of(st), site_of(wanted), weir_stage_name(st));
}

static bool renewed(struct weir_stage *st, struct weir_stage *wanted, char *text, size_t size)
{
	return site_of(st) && site_of(wanted) &&
	       tls_site_renewed(site_of(st), site_of(wanted), text, size);
}

extern const struct weir_stage_ops weir_stage_http_server;
const struct weir_stage_ops weir_stage_http_server = {
    .abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_SOURCE,
    .name = "http.server",
    .summary = "Accepts HTTP/1.1 connections and makes one event per request",
    .outlets = outlets,
    .knobs = server_knobs,
    .conf_size = sizeof(struct http_conf),
    .metrics = metrics,
    .state_size = sizeof(struct http_server),
    .init = server_init,
    .start = server_start,
    .stop = server_stop,
    .fini = server_fini,
    .pause = pause_server,
    .refresh = refresh,
    .renewed = renewed,
};
