/* SPDX-License-Identifier: MIT */
/*
 * Handles TLS connections in their I/O thread; see tls_conn.h.
 *
 * A handshake is sent to the stage only when the whole first record of the client has arrived. A
 * client that sends one byte per second therefore costs only a check of the socket for each byte,
 * until its time limit has passed. A client that does not speak TLS is recognized here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>

#include "net/tls/tls_internal.h"
#include "net/tls/tls_certs.h"
#include "net/tls/tls_hello.h"
#include "net/tls/tls_site.h"
#include "net/tls/tls_ticket.h"

/* ---- lifecycle ---- */

struct tls_conn *tls_conn_new(struct tls_site *site, int fd, const struct tls_user *user)
{
	struct tls_conn *t = aligned_alloc(WEIR_CACHE_LINE, sizeof(*t));
	BIO *bio;

	if (!t)
		return NULL;
	memset(t, 0, sizeof(*t));
	t->user = *user;
	t->closing_fd = -1;
	t->bio.fd = fd;
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

/* Free the members that are not needed after the last byte was sent and received. `t` itself stays,
 * since events may still point to it. */
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

int64_t tls_conn_bytes(const struct tls_conn *t)
{
	return t ? TLS_CONN_BYTES + (int64_t)t->held : 0;
}

void tls_tell(struct tls_conn *t)
{
	uint32_t held = (SSL_has_pending(t->ssl) ? TLS_READ_BYTES : 0) + t->bio.tail_n;

	if (held == t->held)
		return;
	*t->user.held_bytes += (int64_t)held - t->held;
	t->held = held;
}

void tls_conn_move(struct tls_conn *t, const struct tls_user *user)
{
	WEIR_ASSERT(!t->away);
	t->user = *user;
	t->peer_done = false; /* the new watch reports EPOLLRDHUP again */
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

bool tls_is_resumed(const struct tls_conn *t)
{
	return SSL_session_reused(t->ssl);
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

/* ---- failures ---- */

static void failed(struct tls_conn *t, enum tls_verdict why)
{
	t->user.calls->failed(t->user.conn, why);
}

/* Close a connection whose handshake the stage refused. If nothing has been sent yet, an alert can
 * be sent without keys, so send one. */
static void refused(struct tls_conn *t)
{
	static const unsigned char alert[] = {21, 3, 3, 0, 2, 2, SSL_AD_INTERNAL_ERROR};

	if (t->phase == TLS_SHAKING && SSL_in_before(t->ssl))
		(void)!TEMP_FAILURE_RETRY(send(t->bio.fd, alert, sizeof(alert), MSG_NOSIGNAL));
	failed(t, TLS_FAILED_SHED);
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

static void go_on(struct tls_conn *t);

static void send_away(struct tls_conn *t)
{
	weir_event_init(&t->ev, &tls_handshake_type, weir_loop_now_ns(t->user.loop));
	t->away = true;
	t->edge = false;
	if (t->user.calls->emit(t->user.conn, &t->ev))
		return;
	t->away = false;
	failed(t, TLS_FAILED_SHED);
}

static void opened(struct tls_conn *t)
{
	const char *name = SSL_get_servername(t->ssl, TLSEXT_NAMETYPE_host_name);

	t->phase = TLS_OPEN;
	t->version = SSL_get_version(t->ssl);
	t->bio.kernel_out = BIO_get_ktls_send(SSL_get_wbio(t->ssl));
	if (name)
		t->sni = strdup(name);
	t->user.calls->opened(t->user.conn, t->bio.tail_n > 0);
}

/* Act on the result of a step. */
static void after_step(struct tls_conn *t)
{
	switch (t->verdict) {
	case TLS_DONE:
		opened(t);
		return;
	case TLS_WANT_READ:
	case TLS_WANT_WRITE:
		if (t->edge) {
			t->edge = false;
			go_on(t);
			return;
		}
		t->user.calls->wait(
		    t->user.conn, t->bio.tail_n > 0 || t->verdict == TLS_WANT_WRITE);
		return;
	default:
		failed(t, (enum tls_verdict)t->verdict);
	}
}

/* Whether our last flight has been sent, so that the remaining steps need no asymmetric
 * cryptography. */
static bool ours_is_done(SSL *ssl)
{
	unsigned char byte;

	return SSL_get_finished(ssl, &byte, sizeof(byte)) > 0;
}

static void step_here(struct tls_conn *t)
{
	tls_step(&t->ev);
	after_step(t);
}

static void first_step(struct tls_conn *t)
{
	switch (look(t->bio.fd)) {
	case TLS_HELLO_LATER:
		if (t->peer_done)
			failed(t, TLS_FAILED_CLOSED);
		else
			t->user.calls->wait(t->user.conn, false);
		return;
	case TLS_HELLO_WHOLE:
		t->phase = TLS_SHAKING;
		send_away(t);
		return;
	case TLS_HELLO_PLAIN:
		t->user.calls->plain(t->user.conn);
		return;
	case TLS_HELLO_BAD:
		failed(t, TLS_FAILED_PROTOCOL);
		return;
	case TLS_HELLO_NONE:
		failed(t, TLS_FAILED_CLOSED);
		return;
	}
}

/* Continue a handshake whose socket may be ready, and which is not AWAY. */
static void go_on(struct tls_conn *t)
{
	tls_bio_ready(&t->bio, t->peer_done);
	switch (tls_bio_flush(&t->bio)) {
	case -1:
		failed(t, TLS_FAILED_CLOSED);
		return;
	case 0:
		t->user.calls->wait(t->user.conn, true);
		return;
	default:
		break;
	}
	if (t->phase == TLS_HELLO)
		first_step(t);
	else if (ours_is_done(t->ssl))
		step_here(t);
	else
		send_away(t);
}

void tls_shake(struct tls_conn *t, bool peer_done)
{
	t->peer_done = peer_done;
	if (t->away)
		t->edge = true;
	else
		go_on(t);
}

uint32_t tls_on_ready(struct tls_conn *t, uint32_t events, bool peer_done, bool *rearm)
{
	tls_bio_ready(&t->bio, peer_done);
	if (t->phase == TLS_SHUT)
		return events;
	if (tls_bio_flush(&t->bio) == 0)
		*rearm = true;
	tls_tell(t);
	/* epoll does not report bytes that OpenSSL holds. Arming the socket again makes epoll
	 * report EPOLLOUT, so read those bytes on that event. */
	return events & EPOLLOUT ? events | EPOLLIN : events;
}

void tls_step_returned(struct weir_event *ev)
{
	struct tls_conn *t = weir_event_cast(ev, &tls_handshake_type);

	t->away = false;
	if (t->closing_fd != -1) {
		tls_conn_close(t, t->closing_fd);
		t->user.calls->returned(t->user.conn);
		return;
	}
	tls_bio_ready(&t->bio, t->peer_done); /* an edge may have arrived while `t` was AWAY */
	if (t->status == WEIR_OK)
		after_step(t);
	else if (weir_outcome_of(t->status) == WEIR_OUTCOME_SHED || t->status == WEIR_ECLOSED)
		refused(t);
	else
		failed(t, TLS_FAILED_INTERNAL);
}
