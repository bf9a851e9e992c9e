/* SPDX-License-Identifier: MIT */
/*
 * Runs libmicrohttpd in the caller's thread, as an epoll daemon without a listening socket.
 *
 * An exchange is one request. It is created when the request line has been read. libmicrohttpd then
 * calls the handler several times: the first call only announces the request, the following ones
 * pass the bytes of the body, and a last call without bytes expects the response. The raw target is
 * taken from the log callback: the path passed to the handler is already decoded, so %00 would
 * truncate it.
 */
#include "mhd.h"

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "admin/request/reply.h"
#include "admin/api/routes.h"

/* Memory per connection in libmicrohttpd: request head (8 KiB at most), body chunk, response
 * head. */
#define ENDPOINT_MEMORY_BYTES 32768
#define ENDPOINT_TIMEOUT_S    10

struct mhd {
	struct MHD_Daemon *daemon;
	const struct admin_source *source;
	struct process *process;
	struct auth *auth;
	void (*gone)(void *arg, struct auth_pass *pass);
	void *arg;
	struct auth_pass *adding; /* pass of the connection that mhd_add is adding */
};

struct exchange {
	/* the first handler call has been made; `n_data` is 0 in that call and in the last one */
	bool begun;
	char *target;
	size_t n_body;
	char body[ADMIN_BODY_MAX];
};

static const char *field(struct MHD_Connection *c, const char *name)
{
	return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

/* Build the response, which takes over the reply's body. Returns NULL if out of memory. */
static struct MHD_Response *response_of(struct reply *r)
{
	/* The library only reads a persistent body, although its parameter is not const. */
	struct MHD_Response *out =
	    r->owned ? MHD_create_response_from_buffer(r->n, r->owned, MHD_RESPMEM_MUST_FREE)
		     : MHD_create_response_from_buffer(
			   r->n, (void *)(uintptr_t)r->body, MHD_RESPMEM_PERSISTENT);

	bool keeps = r->etag[0] == '"';

	if (!out)
		return NULL;
	r->owned = NULL;
	enum MHD_Result ok = MHD_add_response_header(out, "Content-Type", r->type);
	for (const struct reply_field *f = reply_fields; ok == MHD_YES && f->name; f++)
		if (!keeps || strcmp(f->name, "Cache-Control") != 0)
			ok = MHD_add_response_header(out, f->name, f->value);
	/* The client may cache the response but must revalidate it each time. */
	if (ok == MHD_YES && keeps)
		ok = MHD_add_response_header(out, "Cache-Control", "private, no-cache");
	if (ok == MHD_YES && r->coding)
		ok = MHD_add_response_header(out, "Content-Encoding", r->coding);
	if (ok == MHD_YES && r->varies)
		ok = MHD_add_response_header(out, "Vary", "Accept-Encoding");
	if (ok == MHD_YES && r->etag[0])
		ok = MHD_add_response_header(out, "ETag", r->etag);
	if (ok == MHD_YES && r->cookie[0])
		ok = MHD_add_response_header(out, "Set-Cookie", r->cookie);
	if (ok == MHD_YES && r->allow[0])
		ok = MHD_add_response_header(out, "Allow", r->allow);
	if (ok == MHD_YES)
		return out;
	MHD_destroy_response(out);
	return NULL;
}

static enum MHD_Result answer(
    struct mhd *d, struct MHD_Connection *c, const char *method, const struct exchange *e)
{
	struct request request = {
	    .method = method,
	    .target = e->target,
	    .host = field(c, "Host"),
	    .origin = field(c, "Origin"),
	    .fetch_site = field(c, "Sec-Fetch-Site"),
	    .content_type = field(c, "Content-Type"),
	    .if_none_match = field(c, "If-None-Match"),
	    .accept_encoding = field(c, "Accept-Encoding"),
	    .body = e->body,
	    .n_body = e->n_body,
	};
	const union MHD_ConnectionInfo *info =
	    MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct reply reply;
	enum MHD_Result ok = MHD_NO;

	request.auth = d->auth;
	request.pass = info ? info->socket_context : NULL;
	if (!request.pass)
		return MHD_NO;

	routes_answer(d->source, d->process, &request, &reply);
	struct MHD_Response *response = response_of(&reply);
	if (response) {
		ok = MHD_queue_response(c, (unsigned)reply.status, response);
		MHD_destroy_response(response);
	}
	reply_fini(&reply);
	return ok; /* MHD_NO closes the connection */
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *c, const char *path,
    const char *method, const char *version, const char *data, size_t *n_data, void **state)
{
	struct exchange *e = *state;

	(void)path;
	(void)version;
	if (!e || !e->target)
		return MHD_NO;
	if (!e->begun) {
		e->begun = true;
		return MHD_YES;
	}
	if (*n_data == 0)
		return answer(arg, c, method, e);
	/* head_check has refused bodies longer than `body`, so this does not happen. */
	if (*n_data > sizeof(e->body) - e->n_body)
		return MHD_NO;
	memcpy(e->body + e->n_body, data, *n_data);
	e->n_body += *n_data;
	*n_data = 0;
	return MHD_YES;
}

static void *on_target(void *arg, const char *target, struct MHD_Connection *c)
{
	struct exchange *e = calloc(1, sizeof(*e));

	(void)arg;
	(void)c;
	if (e)
		e->target = strdup(target);
	return e;
}

static void on_completed(
    void *arg, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode why)
{
	struct exchange *e = *state;

	(void)arg;
	(void)c;
	(void)why;
	if (e)
		free(e->target);
	free(e);
	*state = NULL;
}

/* Do not decode percent-encoded names. No name of ours needs the encoding, so an encoded one is not
 * found. */
static size_t keep_encoded(void *arg, struct MHD_Connection *c, char *text)
{
	(void)arg;
	(void)c;
	return strlen(text);
}

static void on_connection(
    void *arg, struct MHD_Connection *c, void **owner, enum MHD_ConnectionNotificationCode what)
{
	struct mhd *d = arg;

	(void)c;
	if (what == MHD_CONNECTION_NOTIFY_STARTED)
		*owner = d->adding;
	else if (*owner)
		d->gone(d->arg, *owner);
}

static struct MHD_Daemon *start_daemon(struct mhd *d, unsigned connections)
{
	return MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, on_request,
	    d, MHD_OPTION_CONNECTION_LIMIT, connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
	    (size_t)ENDPOINT_MEMORY_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, ENDPOINT_TIMEOUT_S,
	    MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK, on_target, d,
	    MHD_OPTION_UNESCAPE_CALLBACK, keep_encoded, d, MHD_OPTION_NOTIFY_COMPLETED,
	    on_completed, d, MHD_OPTION_NOTIFY_CONNECTION, on_connection, d, MHD_OPTION_END);
}

int mhd_open(const struct admin_source *source, struct process *process, struct auth *auth,
    unsigned connections, void (*gone)(void *arg, struct auth_pass *pass), void *arg,
    struct mhd **out)
{
	struct mhd *d = calloc(1, sizeof(*d));

	if (!d)
		return WEIR_ENOMEM;
	d->source = source;
	d->process = process;
	d->auth = auth;
	d->gone = gone;
	d->arg = arg;
	d->daemon = start_daemon(d, connections);
	if (!d->daemon) {
		free(d);
		return WEIR_ESYS;
	}
	*out = d;
	return 0;
}

void mhd_close(struct mhd *d)
{
	if (!d)
		return;
	MHD_stop_daemon(d->daemon);
	free(d);
}

int mhd_add(struct mhd *d, int fd, struct auth_pass *pass)
{
	struct sockaddr_storage peer = {0};
	socklen_t len = sizeof(peer);

	getpeername(fd, (struct sockaddr *)&peer, &len);
	d->adding = pass;
	enum MHD_Result ok = MHD_add_connection(d->daemon, fd, (const struct sockaddr *)&peer, len);
	d->adding = NULL;
	return ok == MHD_YES ? 0 : WEIR_ENOMEM;
}

int mhd_fd(const struct mhd *d)
{
	return MHD_get_daemon_info(d->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

void mhd_run(struct mhd *d)
{
	MHD_run(d->daemon);
}

int mhd_timeout_ms(const struct mhd *d)
{
	MHD_UNSIGNED_LONG_LONG ms;

	if (MHD_get_timeout(d->daemon, &ms) != MHD_YES)
		return -1;
	return ms > ENDPOINT_TIMEOUT_S * 1000 ? ENDPOINT_TIMEOUT_S * 1000 : (int)ms;
}
