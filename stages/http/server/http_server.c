/* SPDX-License-Identifier: MIT */
/*
 * http.server: the source that creates one event per HTTP/1.1 request and writes the responses.
 *
 * This file has the tables (metrics, outlets, ops), the start of the server, and the steps of an
 * I/O thread in each iteration. stages/net accepts, pauses, drains and hands over; it calls this
 * folder through the table of calls.c. conn.c, read.c, emit.c and write.c handle connections;
 * stream.c and the layers below it (guard, parse, chunk) turn bytes into requests. request_type.c
 * and response.c are the interface for stages.
 */
#include "http/conn/io.h"

#include <stdio.h>
#include <string.h>

#include <weir/http.h>

#include "http/conn/conn.h"
#include "http/conn/conn_tls.h"
#include "http/message/guard.h"
#include "http/message/parse.h"
#include "http/message/wire.h"
#include "http/request/transfer.h"
#include "http/server/calls.h"
#include "http/server/http_knobs.h"
#include "http/server/memory.h"
#include "net/drain.h"
#include "net/memory_auto.h"
#include "net/net_server.h"
#include "net/pause.h"
#include "net/per_thread.h"
#include "net/tls/tls_conn.h"
#include "net/tls/tls_site.h"

/* ---- an I/O thread ---- */

static int io_start(struct weir_loop *loop)
{
	struct http_io *io = weir_loop_data(loop);

	io->net.loop = loop;
	io_touch(io);
	io->pool.part_bytes = (size_t)io->conf.stream_buffer_bytes;
	return net_io_start(&io->net);
}

static void publish_counts(struct http_io *io)
{
	for (int i = 0; i < SERVER_N_METRICS; i++) {
		if (io->count[i] == 0)
			continue;
		weir_count(io->net.stage, i, io->count[i]);
		io->count[i] = 0;
	}
}

static void io_turn_end(struct weir_loop *loop)
{
	struct http_io *io = weir_loop_data(loop);

	conn_read_arrived(io);
	/* net_io_follow must precede conn_write_ready: it may parse requests that are refused
	 * immediately, which makes their connections ready */
	net_io_follow(&io->net);
	memory_follow(io);
	conn_write_ready(io);
	memory_tell(io);
	net_io_report(&io->net);
	if (WEIR_UNLIKELY(io->ready)) /* the last clients of the backlog were refused */
		weir_loop_wake(loop);
	publish_counts(io);
	weir_loop_expect(loop, io->in_graph - io->not_awaited);
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

	net_io_stop(&io->net);
	while (io->net.conns)
		conn_close(conn_of_net(io->net.conns));
	conn_write_ready(io);
	memory_tell(io);
	publish_counts(io);
	if (io->net.n_conns > 0)
		weir_log(WEIR_LOG_ERROR, "%s: %lld connections have requests that never ended",
		    weir_stage_name(io->net.stage), (long long)io->net.n_conns);
	pages_leave(io);
	pool_fini(&io->pool);
	drain_gone(&io->net);
}

static const struct weir_loop_ops loop_ops = {
    .start = io_start, .stop = io_stop, .mail = io_mail, .turn_end = io_turn_end};

/* ---- lifecycle ---- */

static int check_conf(struct weir_stage *st, const struct http_conf *conf, struct weir_err *err)
{
	size_t n = strlen(conf->server_name);

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
	int rc;

	if (net_conf_check(st, &conf->net, err) != 0 || check_conf(st, conf, err) != 0 ||
	    check_behind(st, conf, err) != 0)
		return WEIR_EINVAL;
	rc = pages_init(&srv->pages, st, &conf->pages, err);
	if (rc != 0)
		return rc;
	rc = net_server_init(st, &server_calls, TLS_OUTLET, err);
	if (rc != 0) {
		pages_fini(&srv->pages);
		return rc;
	}
	srv->part_meter.stage = st;
	srv->memory_auto_bytes = memory_auto();
	atomic_init(&srv->memory_limit,
	    conf->memory_bytes == -1 ? srv->memory_auto_bytes : conf->memory_bytes);
	srv->retry_after_s = (int)((conf->retry_after_ns + 999999999) / 1000000000);
	atomic_init(&srv->body_budget, conf->body_memory_bytes);
	if (conf->server_name[0])
		snprintf(srv->server_field, sizeof(srv->server_field), "Server: %s\r\n",
		    conf->server_name);
	return 0;
}

static int64_t server_per_loop(const void *conf)
{
	return ((const struct http_conf *)conf)->net.per_thread;
}

static void server_clients(struct weir_stage *st, struct weir_clients *clients)
{
	per_thread_clients(weir_state(st), clients);
}

static int server_start(struct weir_stage *st, struct weir_err *err)
{
	return net_server_start(st, &loop_ops, err);
}

uint16_t weir_http_port(const struct weir_stage *st, int i)
{
	if (weir_stage_type(st) != weir_stage_type_find("http.server"))
		return 0;
	const struct net_server *srv = weir_state(st);

	return i >= 0 && i < srv->n_addresses ? srv->port[i] : 0;
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
	"every request, when it is complete; a request whose body is longer than 'stream', before "
	"the body is complete"},
    [TLS_OUTLET] = {"handshake", &tls_handshake_type, true,
	"TLS handshakes, to a stage 'use: tls.handshake'; required with 'tls'"},
    {NULL, NULL, false, NULL},
};

static struct tls_site *site_of(struct weir_stage *st)
{
	return ((struct net_server *)weir_state(st))->tls;
}

static void refresh(struct weir_stage *st, struct weir_stage *wanted)
{
	struct http_server *srv = weir_state(st), *from = weir_state(wanted);

	pages_reread(&srv->pages, &from->pages);
	if (site_of(st) && site_of(wanted))
		tls_site_reread(site_of(st), site_of(wanted), weir_stage_name(st));
}

static bool renewed(struct weir_stage *st, struct weir_stage *wanted, char *text, size_t size)
{
	struct http_server *srv = weir_state(st), *from = weir_state(wanted);

	if (site_of(st) && site_of(wanted) &&
	    tls_site_renewed(site_of(st), site_of(wanted), text, size))
		return true;
	return pages_renewed(&srv->pages, &from->pages, text, size);
}

static void server_fini(struct weir_stage *st)
{
	struct http_server *srv = weir_state(st);

	net_server_fini(st);
	pages_fini(&srv->pages);
}

extern const struct weir_stage_ops weir_stage_http_server;
const struct weir_stage_ops weir_stage_http_server = {
    .abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_SOURCE | WEIR_STAGE_HOSTS,
    .name = "http.server",
    .summary = "Accepts HTTP/1.1 connections and makes one event per request",
    .outlets = outlets,
    .knobs = server_knobs,
    .conf_size = sizeof(struct http_conf),
    .metrics = metrics,
    .state_size = sizeof(struct http_server),
    .init = server_init,
    .start = server_start,
    .stop = net_server_stop,
    .fini = server_fini,
    .pause = pause_server,
    .refresh = refresh,
    .renewed = renewed,
    .per_loop = server_per_loop,
    .clients = server_clients,
};
