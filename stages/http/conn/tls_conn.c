/* SPDX-License-Identifier: MIT */
/*
 * Handles TLS connections in their I/O thread; see tls_conn.h.
 *
 * A handshake is sent to the stage only when the whole first record of the client has arrived. A
 * client that sends one byte per second therefore costs only a check of the socket for each byte,
 * until header_timeout has passed since it was accepted. A client that does not speak TLS is
 * answered here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>

#include "http/conn/conn.h"
#include "http/conn/tls_internal.h"
#include "net/tls/tls_certs.h"
#include "net/tls/tls_hello.h"
#include "net/tls/tls_site.h"
#include "net/tls/tls_ticket.h"

/* ---- lifecycle ---- */

struct tls_conn *tls_conn_new(struct tls_site *site, struct conn *c)
{
	struct tls_conn *t = aligned_alloc(WEIR_CACHE_LINE, sizeof(*t));
	BIO *bio;

	if (!t)
		return NULL;
	memset(t, 0, sizeof(*t));
	t->conn = c;
	t->loop = c->io->loop;
	t->closing_fd = -1;
	t->bio.fd = c->watch.fd;
	t->version = "";
	t->certs = tls_site_certs(site);
	t->tickets = site->tickets ? tls_tickets_ref(site->tickets) : NULL;
	t->ssl = SSL_new(tls_certs_first(t->certs));
	bio = t->ssl ? tls_bio_new(&t->bio) : NULL;
	if (!bio) {
		ERR_clear_error();
		tls_conn_free(t);
		return NULL;
	}
	SSL_set_bio(t->ssl, bio, bio);
	SSL_set_app_data(t->ssl, t->tickets);
	SSL_set_accept_state(t->ssl);
	return t;
}

/* Free what is not needed after the last byte was sent and received; events may still point to
 * `t`. */
static void drop_session(struct tls_conn *t)
{
	SSL_free(t->ssl);
	t->ssl = NULL;
	tls_bio_fini(&t->bio);
}

void tls_conn_free(struct tls_conn *t)
{
	if (!t)
		return;
	WEIR_ASSERT(!t->away);
	drop_session(t);
	tls_certs_unref(t->certs);
	tls_tickets_unref(t->tickets);
	free(t->sni);
	free(t);
}

static int64_t bytes_of(const struct tls_conn *t)
{
	return t ? TLS_CONN_BYTES + (int64_t)t->held : 0;
}

struct tls_conn *tls_conn_set(struct conn *c, struct tls_conn *t)
{
	struct tls_conn *before = c->tls;

	pool_hold(&c->io->pool, bytes_of(t) - bytes_of(before));
	c->tls = t;
	return before;
}

void tls_tell(struct tls_conn *t)
{
	uint32_t held = (SSL_has_pending(t->ssl) ? TLS_READ_BYTES : 0) + t->bio.tail_n;

	if (held == t->held)
		return;
	pool_hold(&t->conn->io->pool, (int64_t)held - t->held);
	t->held = held;
}

void tls_conn_move(struct tls_conn *t, struct conn *c)
{
	WEIR_ASSERT(!t->away);
	t->conn = c;
	t->loop = c->io->loop;
}

bool tls_is_shaking(const struct tls_conn *t)
{
	return t->phase < TLS_OPEN;
}

bool tls_is_away(const struct tls_conn *t)
{
	return t->away;
}

bool tls_is_open(const struct tls_conn *t)
{
	return t->phase >= TLS_OPEN;
}

const char *tls_version(const struct tls_conn *t)
{
	return t->version;
}

const char *tls_sni(const struct tls_conn *t)
{
	return t->sni ? t->sni : "";
}

/* ---- closing ---- */

/* Send close_notify. Returns the same values as tls_bio_flush. The record can be refused
 * (WANT_WRITE) only if the kernel encrypts. */
static int say_bye(struct tls_conn *t)
{
	int rc;

	ERR_clear_error();
	rc = SSL_shutdown(t->ssl);
	rc = rc < 0 ? SSL_get_error(t->ssl, rc) : SSL_ERROR_NONE;
	ERR_clear_error();
	if (rc == SSL_ERROR_WANT_WRITE)
		return 0;
	t->phase = TLS_SHUT;
	return tls_bio_flush(&t->bio);
}

bool tls_bye(struct tls_conn *t)
{
	int rc;

	if (!t->ssl || t->phase < TLS_OPEN)
		return true;
	rc = t->broken ? -1 : tls_bio_flush(&t->bio);
	if (rc == 1 && t->phase == TLS_OPEN)
		rc = say_bye(t);
	if (rc == -1)
		t->phase = TLS_SHUT;
	return rc != 0;
}

void tls_conn_break(struct tls_conn *t)
{
	t->broken = true;
}

void tls_conn_close(struct tls_conn *t, int fd)
{
	if (t->away) { /* the stage may be using the socket, so the descriptor must not be reused */
		shutdown(fd, SHUT_RDWR);
		t->closing_fd = fd;
		return;
	}
	tls_bye(t);
	drop_session(t);
	close(fd);
}

static void count_failure(struct conn *c, enum tls_verdict why)
{
	c->io->count[SERVER_TLS_FAILED_CLOSED + (int)why - TLS_FAILED_CLOSED]++;
}

void tls_timed_out(struct conn *c)
{
	count_failure(c, TLS_FAILED_TIMEOUT);
}

/* Read what is in the socket before closing: otherwise the close would cause a reset, which could
 * destroy the last bytes sent. */
static void close_politely(struct conn *c)
{
	if (!c->tls->away)
		(void)!TEMP_FAILURE_RETRY(recv(
		    c->watch.fd, c->io->scratch.out, sizeof(c->io->scratch.out), MSG_DONTWAIT));
	conn_close(c);
}

static void failed(struct conn *c, enum tls_verdict why)
{
	count_failure(c, why);
	close_politely(c);
}

/* Close a connection whose handshake the stage refused. If nothing has been sent yet, an alert can
 * be sent without keys, so send one. */
static void refused(struct conn *c)
{
	static const unsigned char alert[] = {21, 3, 3, 0, 2, 2, SSL_AD_INTERNAL_ERROR};

	if (c->tls->phase == TLS_SHAKING && SSL_in_before(c->tls->ssl))
		(void)!TEMP_FAILURE_RETRY(send(c->watch.fd, alert, sizeof(alert), MSG_NOSIGNAL));
	failed(c, TLS_FAILED_SHED);
}

/* Refuse a client that speaks HTTP without TLS, with an HTTP response. */
static void refuse_plain(struct conn *c)
{
	count_failure(c, TLS_FAILED_PLAIN);
	tls_conn_free(tls_conn_set(c, NULL));
	conn_act(c, conn_refuse(c, 400, "this port accepts only HTTPS"));
}

/* ---- the first record ---- */

static enum tls_hello look(int fd)
{
	unsigned char head[TLS_HELLO_HEAD];
	ssize_t n = TEMP_FAILURE_RETRY(recv(fd, head, sizeof(head), MSG_PEEK));
	int waiting = 0;

	if (n <= 0)
		return n == -1 && errno == EAGAIN ? TLS_HELLO_LATER : TLS_HELLO_NONE;
	if (n == TLS_HELLO_HEAD && ioctl(fd, FIONREAD, &waiting) == -1)
		return TLS_HELLO_NONE;
	return tls_hello_judge(head, (size_t)n, (size_t)waiting);
}

/* ---- steps ---- */

static void go_on(struct conn *c);

/* Return the last class, to which events belong that match no other class. */
static uint8_t last_class(const struct weir_stage *st)
{
	int n = 0;

	while (n + 1 < WEIR_CLASSES_MAX && weir_class_name(st, n + 1)[0])
		n++;
	return (uint8_t)n;
}

static void send_away(struct conn *c)
{
	struct tls_conn *t = c->tls;
	struct http_io *io = c->io;
	struct weir_event *ev = &t->ev;

	if (io->drain.phase == SERVER_CLOSED || !weir_outlet_linked(io->stage, TLS_OUTLET)) {
		/* the connection was handed over to a server without TLS, or the graph's counters
		 * may be closed already */
		failed(c, TLS_FAILED_SHED);
		return;
	}
	weir_event_init(ev, &tls_handshake_type, weir_loop_now_ns(io->loop));
	ev->class_id = last_class(io->stage);
	ev->deadline_ns = c->wait.since_ns + io->conf.header_timeout_ns;
	if (strcmp(io->conf.user, "address") == 0)
		ev->session = (uint32_t)weir_hash(
				  (struct weir_slice){c->client.address, c->client.address_n}) &
			      ~WEIR_SESSION_RETRY;
	t->away = true;
	t->edge = false;
	conn_list_join(c, CONN_AWAY);
	weir_emit(io->stage, TLS_OUTLET, &ev);
}

/* Open a connection whose handshake is done, and read the bytes that have arrived in the meantime,
 * since epoll has already reported them. */
static void opened(struct conn *c)
{
	struct tls_conn *t = c->tls;
	const char *name = SSL_get_servername(t->ssl, TLSEXT_NAMETYPE_host_name);

	t->phase = TLS_OPEN;
	c->wait.progress_ns = weir_loop_now_ns(c->io->loop);
	conn_list_leave(c); /* its idle time begins now, so it must be appended to the list again */
	t->version = SSL_get_version(t->ssl);
	t->bio.kernel_out = BIO_get_ktls_send(SSL_get_wbio(t->ssl));
	if (name)
		t->sni = strdup(name);
	c->io->count[SSL_session_reused(t->ssl) ? SERVER_TLS_RESUMED : SERVER_TLS_FULL]++;
	c->io->count[SERVER_TLS_CONNECTIONS]++;
	c->socket.unread = true;
	c->socket.rearm |= t->bio.tail_n > 0;
	if (io_is_leaving(c->io) && conn_hand_over(c))
		return;
	if (conn_wants_read(c))
		conn_readable(c);
	else
		conn_settle(c);
}

/* Act on the result of a step. */
static void after_step(struct conn *c)
{
	struct tls_conn *t = c->tls;

	switch (t->verdict) {
	case TLS_DONE:
		opened(c);
		return;
	case TLS_WANT_READ:
	case TLS_WANT_WRITE:
		if (t->edge) {
			t->edge = false;
			go_on(c);
			return;
		}
		c->socket.rearm |= t->bio.tail_n > 0 || t->verdict == TLS_WANT_WRITE;
		if (io_is_leaving(c->io) && conn_hand_over(c))
			return;
		conn_settle(c);
		return;
	default:
		failed(c, (enum tls_verdict)t->verdict);
	}
}

/* Whether our last flight has been sent, so that the remaining steps need no asymmetric
 * cryptography. */
static bool ours_is_done(SSL *ssl)
{
	unsigned char byte;

	return SSL_get_finished(ssl, &byte, sizeof(byte)) > 0;
}

static void step_here(struct conn *c)
{
	struct tls_conn *t = c->tls;

	tls_step(&t->ev);
	after_step(c);
}

static void first_step(struct conn *c)
{
	switch (look(c->watch.fd)) {
	case TLS_HELLO_LATER:
		if (c->socket.peer_done)
			failed(c, TLS_FAILED_CLOSED);
		else
			conn_settle(c);
		return;
	case TLS_HELLO_WHOLE:
		c->tls->phase = TLS_SHAKING;
		send_away(c);
		return;
	case TLS_HELLO_PLAIN:
		refuse_plain(c);
		return;
	case TLS_HELLO_BAD:
		failed(c, TLS_FAILED_PROTOCOL);
		return;
	case TLS_HELLO_NONE:
		failed(c, TLS_FAILED_CLOSED);
		return;
	}
}

/* Continue a handshake whose socket may be ready, and which is not AWAY. */
static void go_on(struct conn *c)
{
	struct tls_conn *t = c->tls;

	tls_bio_ready(&t->bio, c->socket.peer_done);
	switch (tls_bio_flush(&t->bio)) {
	case -1:
		failed(c, TLS_FAILED_CLOSED);
		return;
	case 0:
		c->socket.rearm = true;
		conn_settle(c);
		return;
	default:
		break;
	}
	if (t->phase == TLS_HELLO)
		first_step(c);
	else if (ours_is_done(t->ssl))
		step_here(c);
	else
		send_away(c);
}

uint32_t tls_on_ready(struct conn *c, uint32_t events)
{
	struct tls_conn *t = c->tls;

	if (t->away) {
		t->edge = true;
		return 0;
	}
	if (t->phase >= TLS_OPEN) {
		tls_bio_ready(&t->bio, c->socket.peer_done);
		if (t->phase == TLS_SHUT)
			return events;
		if (tls_bio_flush(&t->bio) == 0)
			c->socket.rearm = true;
		tls_tell(t);
		/* epoll does not report bytes that OpenSSL holds. Arming the socket again makes it
		 * report EPOLLOUT, so read them on that event */
		return events & EPOLLOUT ? events | EPOLLIN : events;
	}
	if (conn_wants_read(c)) {
		go_on(c);
	} else {
		c->socket.unread = true;
		conn_settle(c);
	}
	return 0;
}

void tls_step_returned(struct weir_event *ev)
{
	struct tls_conn *t = weir_event_cast(ev, &tls_handshake_type);
	struct conn *c = t->conn;

	t->away = false;
	if (!conn_is_open(c)) {
		tls_conn_close(t, t->closing_fd);
		conn_make_ready(c);
		return;
	}
	tls_bio_ready(
	    &t->bio, c->socket.peer_done); /* an edge may have arrived while `t` was AWAY */
	if (t->status == WEIR_OK)
		after_step(c);
	else if (weir_outcome_of(t->status) == WEIR_OUTCOME_SHED || t->status == WEIR_ECLOSED)
		refused(c);
	else
		failed(c, TLS_FAILED_INTERNAL);
}
