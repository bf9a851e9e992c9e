/* SPDX-License-Identifier: MIT */
/*
 * Runs handshake steps, as events, in their own stage.
 *
 * A step reads what the client has sent, computes, and writes the reply to the socket itself,
 * without blocking; the I/O thread does not touch the connection in the meantime. A handshake that
 * fails because of the client is not a failure of the stage: the event is finished with WEIR_OK,
 * and the source counts the result.
 */
#include <stdio.h>

#include <openssl/err.h>

#include <weir/stage.h>

#include "net/tls/tls_internal.h"

/* ---- a step ---- */

/* Reasons from this number on are alerts sent by the client (ssl.h). */
#define ALERTS SSL_AD_REASON_OFFSET

static enum tls_verdict why_failed(void)
{
	unsigned long e = ERR_peek_error();
	int reason = ERR_GET_REASON(e);

	if (ERR_GET_LIB(e) != ERR_LIB_SSL)
		return e == 0 ? TLS_FAILED_CLOSED : TLS_FAILED_PROTOCOL;
	switch (reason) {
	case SSL_R_UNSUPPORTED_PROTOCOL:
	case SSL_R_VERSION_TOO_LOW:
	case SSL_R_WRONG_VERSION_NUMBER:
	case SSL_R_UNKNOWN_PROTOCOL:
	case SSL_R_NO_SHARED_CIPHER:
	case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
	case SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS:
	case SSL_R_NO_SUITABLE_KEY_SHARE:
	case SSL_R_NO_SHARED_GROUPS:
	case SSL_R_NO_APPLICATION_PROTOCOL:
	case SSL_R_INAPPROPRIATE_FALLBACK:
		return TLS_FAILED_VERSION;
	case SSL_R_UNEXPECTED_EOF_WHILE_READING:
		return TLS_FAILED_CLOSED;
	case ERR_R_MALLOC_FAILURE:
	case ERR_R_INTERNAL_ERROR:
		return TLS_FAILED_INTERNAL;
	default:
		return reason >= ALERTS ? TLS_FAILED_ALERT : TLS_FAILED_PROTOCOL;
	}
}

static enum tls_verdict shake(SSL *ssl)
{
	int rc;

	ERR_clear_error(); /* SSL_get_error checks this thread's error queue */
	rc = SSL_do_handshake(ssl);
	if (rc == 1)
		return TLS_DONE;
	switch (SSL_get_error(ssl, rc)) {
	case SSL_ERROR_WANT_READ:
		return TLS_WANT_READ;
	case SSL_ERROR_WANT_WRITE:
		return TLS_WANT_WRITE;
	case SSL_ERROR_SSL:
		return why_failed();
	default:
		return TLS_FAILED_CLOSED;
	}
}

void tls_step(struct weir_event *ev)
{
	struct tls_conn *t = weir_event_cast(ev, &tls_handshake_type);

	t->verdict = (uint8_t)shake(t->ssl);
	ERR_clear_error();
}

/* ---- the event ---- */

static struct weir_slice get_address(const struct weir_event *ev, const char *arg)
{
	(void)arg;
	return ((const struct tls_conn *)ev)->user.address;
}

static const struct weir_field fields[] = {
    {"address", get_address, "address of the client, without its port"},
    {NULL, NULL, NULL},
};

/* Send the event to the loop even from the loop's own thread, because acting on the result may
 * close the connection that is being processed. */
static void finish(struct weir_event *ev, int status)
{
	struct tls_conn *t = weir_event_cast(ev, &tls_handshake_type);

	t->status = (int16_t)status;
	weir_loop_send(t->user.loop, ev);
}

static void describe(const struct weir_event *ev, char *buf, size_t size)
{
	struct weir_slice address = ((const struct tls_conn *)ev)->user.address;

	snprintf(buf, size, "handshake with %.*s", (int)address.n, address.p);
}

const struct weir_event_type tls_handshake_type = {.name = "tls.handshake",
    .size = sizeof(struct tls_conn),
    .finish = finish,
    .fields = fields,
    .describe = describe};

/* ---- the stage ---- */

static void handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		tls_step(ev[i]);
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

extern const struct weir_stage_ops weir_stage_tls_handshake;
const struct weir_stage_ops weir_stage_tls_handshake = {
    .abi = WEIR_STAGE_ABI,
    .name = "tls.handshake",
    .summary =
	"Performs the handshakes of an http.server with `tls`, one event per flight of a client",
    .accepts = &tls_handshake_type,
    .handle = handle,
};
