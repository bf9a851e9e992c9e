/* SPDX-License-Identifier: MIT */
/*
 * respond: answers every request with one fixed response.
 *
 * Everything is formatted once, in init, so that a request costs only a few stores. The body and
 * fields belong to the stage, which outlives all events, so there is nothing to release.
 */
#include <weir/http.h>
#include <weir/weir.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct respond_conf {
	int64_t status;
	char *body, *type;
	struct weir_strings headers;
};

struct respond {
	struct weir_http_response response;
	char *fields, *body;
};

/* Refuse the value at `path`. */
static int refuse(struct weir_stage *st, struct weir_err *err, const char *path, const char *hint)
{
	weir_blame(st, path);
	snprintf(err->hint, sizeof(err->hint), "%s", hint);
	return WEIR_EINVAL;
}

static bool is_named(const char *field, size_t n, const char *name)
{
	return n == strlen(name) && strncasecmp(field, name, n) == 0;
}

/* Refuse a field that another setting writes, or that this stage cannot send. `path` is its
 * place. */
static int check_field(
    struct weir_stage *st, const char *field, bool typed, const char *path, struct weir_err *err)
{
	size_t n = strcspn(field, ":");

	if (is_named(field, n, "Trailer")) {
		snprintf(err->text, sizeof(err->text),
		    "'Trailer' announces fields after the body, and a fixed answer has none");
		return refuse(st, err, path, "remove this line");
	}
	if (is_named(field, n, "Server")) {
		snprintf(
		    err->text, sizeof(err->text), "the stage with the connections writes 'Server'");
		return refuse(
		    st, err, path, "remove this line; 'server_name' of http.server has the value");
	}
	if (is_named(field, n, "Content-Type") && typed) {
		snprintf(err->text, sizeof(err->text), "the answer would have two 'Content-Type'");
		return refuse(
		    st, err, path, "write it in 'type', or set type: \"\" and keep one line");
	}
	return 0;
}

static int add_field(struct weir_http_request *req, const char *field)
{
	char *text = strdup(field), *colon = text ? strchr(text, ':') : NULL;
	int rc = text ? WEIR_EINVAL : WEIR_ENOMEM;

	if (colon) {
		*colon = '\0';
		rc = weir_http_add_field(req, text, colon + 1 + strspn(colon + 1, " \t"));
	}
	free(text);
	return rc;
}

/* Add all fields to `req`, which checks them as those of other stages. */
static int add_fields(struct weir_stage *st, const struct respond_conf *conf,
    struct weir_http_request *req, struct weir_err *err)
{
	bool typed = conf->type[0] != '\0';
	char path[32];

	if (typed && weir_http_add_field(req, "Content-Type", conf->type) != 0) {
		snprintf(
		    err->text, sizeof(err->text), "'type' is not a valid value of a header field");
		return refuse(st, err, "type", "write it on one line");
	}
	for (int i = 0; i < conf->headers.n; i++) {
		const char *field = conf->headers.items[i];
		snprintf(path, sizeof(path), "headers.%d", i + 1);
		int rc = check_field(st, field, typed, path, err);
		if (rc != 0)
			return rc;
		typed |= is_named(field, strcspn(field, ":"), "Content-Type");
		rc = add_field(req, field);
		if (rc == WEIR_ENOMEM)
			return rc;
		if (rc != 0) {
			snprintf(err->text, sizeof(err->text),
			    "'%s' is not a header field a stage may send", field);
			return refuse(st, err, path, "write \"Name: value\"");
		}
	}
	return 0;
}

/* Check the fields, and store the resulting text. */
static int format_fields(
    struct weir_stage *st, struct respond *r, const struct respond_conf *conf, struct weir_err *err)
{
	struct weir_http_request *req = calloc(1, sizeof(*req));
	int rc = req ? add_fields(st, conf, req, err) : WEIR_ENOMEM;

	if (rc == 0) {
		r->fields = malloc(req->n_fields + 1);
		rc = r->fields ? 0 : WEIR_ENOMEM;
	}
	if (rc == 0 && req->n_fields > 0) {
		memcpy(r->fields, req->fields, req->n_fields);
		r->response.fields = (struct weir_slice){r->fields, req->n_fields};
	}
	if (req)
		weir_http_response_reset(req);
	free(req);
	return rc;
}

/* Responses with these status codes have no body (RFC 9110, sections 15.3.5, 15.3.6, 15.4.5). */
static int check_body(struct weir_stage *st, const struct respond_conf *conf, struct weir_err *err)
{
	bool bare = conf->status == 204 || conf->status == 205 || conf->status == 304;

	if (!bare || !conf->body[0])
		return 0;
	snprintf(err->text, sizeof(err->text), "an answer with status %d has no body",
	    (int)conf->status);
	return refuse(st, err, "body", "remove 'body', or set another 'status'");
}

static int respond_init(struct weir_stage *st, struct weir_err *err)
{
	const struct respond_conf *conf = weir_conf(st);
	struct respond *r = weir_state(st);
	int rc = check_body(st, conf, err);

	if (rc != 0)
		return rc;
	r->response.status = (uint16_t)conf->status;
	r->response.no_length = conf->status == 204 || conf->status == 304;
	r->response.fd = -1;
	r->body = strdup(conf->body);
	if (!r->body)
		return WEIR_ENOMEM;
	r->response.body = (struct weir_slice){r->body, strlen(r->body)};
	rc = format_fields(st, r, conf, err);
	if (rc != 0)
		free(r->body);
	return rc;
}

static void respond_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	const struct respond *r = weir_state(st);

	for (int i = 0; i < n; i++) {
		struct weir_http_request *req = weir_http_request(ev[i]);
		if (req->res.status != 0)
			weir_http_response_reset(req);
		req->res = r->response;
	}
	weir_event_finish_run(ev, n, WEIR_OK);
}

static void respond_fini(struct weir_stage *st)
{
	struct respond *r = weir_state(st);

	free(r->fields);
	free(r->body);
}

#define ROW(member) offsetof(struct respond_conf, member)

static const struct weir_knob knobs[] = {
    {.name = "status",
	.type = WEIR_KNOB_INT,
	.offset = ROW(status),
	.def = "200",
	.min = 200,
	.max = 599,
	.help = "status code of the answer"},
    {.name = "body",
	.type = WEIR_KNOB_STRING,
	.offset = ROW(body),
	.def = "",
	.help = "body of the answer"},
    {.name = "type",
	.type = WEIR_KNOB_STRING,
	.offset = ROW(type),
	.def = "text/plain; charset=utf-8",
	.help = "Content-Type; empty: none"},
    {.name = "headers",
	.type = WEIR_KNOB_STRINGS,
	.offset = ROW(headers),
	.help = "further header fields, \"Name: value\" each"},
    {.name = NULL},
};

extern const struct weir_stage_ops weir_stage_respond;
const struct weir_stage_ops weir_stage_respond = {
    .abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_IN_PARTS,
    .name = "respond",
    .summary = "Answers every request with one fixed response",
    .accepts = &weir_http_request_type,
    .knobs = knobs,
    .conf_size = sizeof(struct respond_conf),
    .state_size = sizeof(struct respond),
    .init = respond_init,
    .handle = respond_handle,
    .fini = respond_fini,
};
