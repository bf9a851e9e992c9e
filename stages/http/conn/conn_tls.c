/* SPDX-License-Identifier: MIT */
/*
 * Links the connections of http.server to their TLS state; see conn_tls.h.
 *
 * A connection during its handshake is idle: it has no request, and header_timeout counts from the
 * time at which it was accepted. A client that speaks HTTP without TLS is answered with 400.
 */
#include "http/conn/conn_tls.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/conn/conn.h"
#include "net/handshake.h"

_Static_assert(SERVER_TLS_FAILED_INTERNAL - SERVER_TLS_FAILED_CLOSED ==
		   TLS_FAILED_INTERNAL - TLS_FAILED_CLOSED,
    "the metrics are in the order of enum tls_verdict");

/* ---- failures ---- */

static void count_failure(struct conn *c, enum tls_verdict why)
{
	c->io->count[SERVER_TLS_FAILED_CLOSED + (int)why - TLS_FAILED_CLOSED]++;
}

void conn_tls_timed_out(struct conn *c)
{
	count_failure(c, TLS_FAILED_TIMEOUT);
}

/* Read what is in the socket before closing: otherwise the close would cause a reset, which could
 * destroy the last bytes sent. */
static void on_failed(void *conn, enum tls_verdict why)
{
	struct conn *c = conn;

	count_failure(c, why);
	(void)!TEMP_FAILURE_RETRY(
	    recv(c->net.watch.fd, c->io->scratch.out, sizeof(c->io->scratch.out), MSG_DONTWAIT));
	conn_close(c);
}

static void on_plain(void *conn)
{
	struct conn *c = conn;

	count_failure(c, TLS_FAILED_PLAIN);
	tls_conn_free(conn_tls_set(c, NULL));
	conn_act(c, conn_refuse(c, 400, "this port accepts only HTTPS"));
}

static void on_returned(void *conn)
{
	conn_make_ready(conn);
}

/* ---- steps ---- */

static bool on_emit(void *conn, struct weir_event *step)
{
	struct conn *c = conn;
	struct http_io *io = c->io;

	step->deadline_ns = c->net.wait.since_ns + io->conf.header_timeout_ns;
	if (strcmp(io->conf.user, "address") == 0)
		step->session = (uint32_t)weir_hash((struct weir_slice){
				    c->net.client.address, c->net.client.address_n}) &
				~WEIR_SESSION_RETRY;
	return handshake_emit(&io->net, &c->net, TLS_OUTLET, step);
}

static void on_wait(void *conn, bool rearm)
{
	struct conn *c = conn;

	c->socket.rearm |= rearm;
	conn_settle(c);
}

/* Read the bytes that arrived during the handshake, since epoll does not report them again. */
static void on_opened(void *conn, bool rearm)
{
	struct conn *c = conn;

	c->net.wait.progress_ns = weir_loop_now_ns(c->io->net.loop);
	conn_list_leave(c); /* the idle time begins now, so `c` must rejoin the list at its end */
	c->io->count[tls_is_resumed(c->net.tls) ? SERVER_TLS_RESUMED : SERVER_TLS_FULL]++;
	c->io->count[SERVER_TLS_CONNECTIONS]++;
	c->socket.unread = true;
	c->socket.rearm |= rearm;
	if (io_is_leaving(c->io) && conn_hand_over(c))
		return;
	if (conn_wants_read(c))
		conn_readable(c);
	else
		conn_settle(c);
}

static const struct tls_calls calls = {.emit = on_emit,
    .wait = on_wait,
    .opened = on_opened,
    .failed = on_failed,
    .plain = on_plain,
    .returned = on_returned};

uint32_t conn_tls_ready(struct conn *c, uint32_t events)
{
	if (WEIR_LIKELY(!tls_is_shaking(c->net.tls)))
		return tls_on_ready(c->net.tls, events, c->socket.peer_done, &c->socket.rearm);
	if (tls_is_away(c->net.tls) || conn_wants_read(c)) {
		tls_shake(c->net.tls, c->socket.peer_done);
	} else {
		c->socket.unread = true;
		conn_settle(c);
	}
	return 0;
}

/* ---- lifecycle ---- */

static struct tls_user user_of(struct conn *c)
{
	return handshake_user(&c->io->net, &c->net, &calls, &c->io->pool.held_bytes);
}

void conn_tls_begin(struct conn *c)
{
	struct tls_user user = user_of(c);

	conn_tls_set(c, tls_conn_new(c->io->srv->net.tls, c->net.watch.fd, &user));
}

struct tls_conn *conn_tls_set(struct conn *c, struct tls_conn *t)
{
	struct tls_conn *before = c->net.tls;

	pool_hold(&c->io->pool, tls_conn_bytes(t) - tls_conn_bytes(before));
	c->net.tls = t;
	return before;
}

void conn_tls_adopt(struct conn *c, struct tls_conn *t)
{
	struct tls_user user = user_of(c);

	conn_tls_set(c, t);
	tls_conn_move(t, &user);
}
