/* SPDX-License-Identifier: MIT */
/* Calls inside http.client, of files that few others use. */
#ifndef WEIR_HTTP_CLIENT_CALLS_H
#define WEIR_HTTP_CLIENT_CALLS_H

#include <weir/rows.h>

#include "http/client/client.h"

/* ---- origins.c ---- */

/** Parse `origins:` without asking for names. Returns 0, or a WEIR_E code with *err filled. */
int origins_parse(const struct weir_strings *texts, struct origin_spec *spec, struct weir_err *err);
/** Check and read `resolve`, `retry_on` and `deny`. Main thread, in ops->init. Returns 0 or WEIR_EINVAL with *err filled. */
int origins_conf(struct client *c, struct weir_err *err);
/** Warn about names that have no address now; asks for them for a second at most. Main thread, in
 * ops->init. */
void origins_look(struct client *c);

/* ---- names.c ---- */

/** Make the table of addresses, c->endpoint. Main thread. Returns 0 or WEIR_ENOMEM. */
int names_table(struct client *c);
/** Make the slots of a loop. Any thread. Returns 0 or WEIR_ENOMEM. */
int names_new(struct client_loop *cl);
void names_free(struct client_loop *cl);
/** Ask for names from now on, and end that. The loop's thread. Returns 0 or a WEIR_E code. */
int names_start(struct client_loop *cl);
void names_stop(struct client_loop *cl);
/** Whether a name waits for its first answer. */
bool names_pending(const struct client_loop *cl);
/** Why there is no origin that could be asked: a static word for X-Weir-Failed. */
const char *names_why_none(const struct client_loop *cl);
/** What a resolver is configured with. *servers is set to a text that must stay and be freed after the
 * resolver, or NULL. Returns false if out of memory. */
bool names_conf(const struct client_conf *conf, struct resolve_conf *out, char **servers);

/* ---- rows.c ---- */

extern const struct weir_rows client_rows;
/** Count for all loops: a request is sent to an address, and is over; the head of its answer has come after
 * `ns`; it has failed for the reason `why`, a static word; it goes on elsewhere; a loop leaves the address
 * out, or no longer; a loop does not use it any more; `n` connections more are open. The thread of the loop. */
void rows_asked(struct origin *o);
void rows_over(struct origin *o);
void rows_forget(struct origin *o);
/** `n` requests more try out whether the address is back. */
void rows_trial(struct origin *o, int n);
void rows_first_byte(struct origin *o, int64_t ns);
void rows_failed(struct origin *o, const char *why);
void rows_retried(struct origin *o);
void rows_out(struct origin *o, bool out);
void rows_open(struct origin *o, int n);

/* ---- trailers.c ---- */

/** Whether the client takes trailers: it has sent `TE: trailers`. */
bool trailers_wanted(const struct weir_http_request *req);
/** Keep `n` bytes of trailers that the decoder of chunks has found good. */
void trailers_keep(struct exchange *x, const char *p, size_t n);
/** Pass on what was kept, at the end of the body. */
void trailers_pass(struct exchange *x);

/* ---- tunnel.c ---- */

/** Whether the request asks for an upgrade that may be passed on. */
bool tunnel_wanted(const struct exchange *x);
/** Count a request for an upgrade. Returns false, and counts nothing, if there are `most`. Any thread. */
bool tunnel_reserve(struct client *c, int64_t most);
/** The origin has answered with 101: join the two sockets. */
enum step tunnel_begin(struct exchange *x, const struct http_head *h);
/** The origin's socket is ready. */
void tunnel_origin_ready(struct tunnel *t);
void tunnel_end_all(struct client_loop *cl);

#endif
