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

struct respond_conf {
	int64_t status;
	char *body, *type;
	struct weir_strings headers;
};

struct respond {
	struct weir_http_response response;
	char *fields, *body;
};

/* Check the fields in the same way as those of other stages, by adding them to a temporary request,
 * and store the resulting text. */
static int format_fields(struct respond *r, const struct respond_conf *conf, struct weir_err *err)
{
	struct weir_http_request *req = calloc(1, sizeof(*req));
	int rc = req ? 0 : WEIR_ENOMEM;

	if (rc == 0 && conf->type[0])
		rc = weir_http_add_field(req, "Content-Type", conf->type);
	if (rc != 0)
		snprintf(
		    err->text, sizeof(err->text), "'type' is not a valid value of a header field");
	for (int i = 0; rc == 0 && i < conf->headers.n; i++) {
		char *text = strdup(conf->headers.items[i]),
		     *colon = text ? strchr(text, ':') : NULL;
		rc = text ? WEIR_EINVAL : WEIR_ENOMEM;
		if (colon) {
			*colon = '\0';
			rc = weir_http_add_field(req, text, colon + 1 + strspn(colon + 1, " \t"));
		}
		if (rc != 0) {
			snprintf(err->text, sizeof(err->text),
			    "'%s' is not a header field a stage may send", conf->headers.items[i]);
			snprintf(err->hint, sizeof(err->hint), "write \"Name: value\"");
		}
		free(text);
	}
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

static int respond_init(struct weir_stage *st, struct weir_err *err)
{
	const struct respond_conf *conf = weir_conf(st);
	struct respond *r = weir_state(st);
	int rc;

	r->response.status = (uint16_t)conf->status;
	r->response.no_length = conf->status == 204 || conf->status == 304;
	r->response.fd = -1;
	r->body = strdup(conf->body);
	if (!r->body)
		return WEIR_ENOMEM;
	r->response.body = (struct weir_slice){r->body, strlen(r->body)};
	rc = format_fields(r, conf, err);
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
