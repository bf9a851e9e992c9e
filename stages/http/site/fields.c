/* SPDX-License-Identifier: MIT */
/*
 * Changes fields; see fields.h.
 *
 * In requests, '_' in a name counts as '-': programs behind CGI and WSGI cannot tell X_User from X-User, so a
 * field that is removed or set here must not arrive under the other name.
 */
#include "http/site/fields.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <weir/http_guard.h>

#include "http/message/guard.h"
#include "http/message/match.h"
#include "http/request/refusal.h"
#include "http/request/request.h"

/* Longest value that is set. */
#define VALUE_MAX 4096

enum name { HOST, AUTHORITY, PATH, QUERY, SCHEME, METHOD, ADDRESS, TRACE };

static const char *const names[] = {
    "host", "authority", "path", "query", "scheme", "method", "address", "trace", NULL};

/* ---- configuration ---- */

static int refuse(struct weir_stage *st, struct weir_err *err, const char *at, const char *field,
    const char *why, const char *hint)
{
	weir_blame(st, at);
	snprintf(err->text, sizeof(err->text), "'%.60s' %s", field, why);
	if (hint)
		snprintf(err->hint, sizeof(err->hint), "%s", hint);
	return WEIR_EINVAL;
}

/* The reason for which no stage may change the field `name`; NULL if it may. */
static const char *forbidden(const char *name, bool answer, const char **hint)
{
	static const char *const framing[] = {"Connection", "Content-Length", "Expect", "Host",
	    "Keep-Alive", "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
	    "Via"};

	*hint = "remove this line";
	for (size_t i = 0; i < sizeof(framing) / sizeof(framing[0]); i++)
		if (strcasecmp(name, framing[i]) == 0)
			return "frames or routes messages; http.server and http.client write it";
	if (answer && strcasecmp(name, "Date") == 0)
		return "is written by the stage with the connections";
	if (answer && strcasecmp(name, "Server") == 0) {
		*hint = "'server_name' of http.server has the value; empty sends none";
		return "is written by the stage with the connections";
	}
	return NULL;
}

static int check_name(
    struct weir_stage *st, struct weir_err *err, const char *at, const char *name, bool answer)
{
	const char *hint, *why = forbidden(name, answer, &hint);

	if (why)
		return refuse(st, err, at, name, why, hint);
	if (!name[0] || guard_span(name, strlen(name), GUARD_TOKEN) != strlen(name))
		return refuse(st, err, at, name, "is no name of a field", "write \"Name: value\"");
	return 0;
}

/* Add the change that `text` ("Name: value", or with `bare` "Name") stands for. */
static int add_change(struct fields *f, struct weir_stage *st, const char *text, const char *at,
    bool bare, bool drops, struct weir_err *err)
{
	size_t n = bare ? strlen(text) : strcspn(text, ":");
	struct field_change *c = &f->change[f->n];
	bool answer = strncmp(at, "answer", 6) == 0;

	c->name = strndup(text, n);
	if (!c->name)
		return WEIR_ENOMEM;
	f->n++;
	if (!bare && !text[n])
		return refuse(st, err, at, text, "has no value", "write \"Name: value\"");
	int rc = check_name(st, err, at, c->name, answer);
	if (rc != 0)
		return rc;
	c->drops = drops;
	c->adds = !bare;
	if (bare)
		return 0;
	const char *value = text + n + 1;
	value += strspn(value, " \t");
	if (!response_field_good("X", value) || strlen(value) > VALUE_MAX)
		return refuse(st, err, at, c->name, "has a value that no field may have",
		    "write it on one line of at most 4096 bytes");
	rc = http_template_parse(
	    &c->value, value, strlen(value), names, true, err->hint, sizeof(err->hint));
	return rc == WEIR_EINVAL ? refuse(st, err, at, c->name, "has an unknown placeholder", NULL)
				 : rc;
}

static int add_list(struct fields *f, struct weir_stage *st, const struct weir_strings *list,
    const char *side, const char *key, struct weir_err *err)
{
	bool bare = strcmp(key, "remove") == 0;
	char at[48];
	int rc = 0;

	for (int i = 0; rc == 0 && i < list->n; i++) {
		snprintf(at, sizeof(at), "%s.%s.%d", side, key, i + 1);
		rc = add_change(f, st, list->items[i], at, bare, strcmp(key, "add") != 0, err);
	}
	return rc;
}

int fields_init(struct fields *f, struct weir_stage *st, const struct fields_conf *conf,
    const char *side, struct weir_err *err)
{
	size_t n = (size_t)conf->remove.n + (size_t)conf->set.n + (size_t)conf->add.n;

	f->scheme = http_field("scheme");
	f->address = http_field("address");
	f->change = calloc(n + 1, sizeof(*f->change));
	if (!f->change)
		return WEIR_ENOMEM;
	int rc = add_list(f, st, &conf->remove, side, "remove", err);
	rc = rc == 0 ? add_list(f, st, &conf->set, side, "set", err) : rc;
	return rc == 0 ? add_list(f, st, &conf->add, side, "add", err) : rc;
}

void fields_fini(struct fields *f)
{
	for (int i = 0; i < f->n; i++) {
		free(f->change[i].name);
		http_template_fini(&f->change[i].value);
	}
	free(f->change);
	*f = (struct fields){0};
}

/* ---- values ---- */

static struct weir_slice placeholder(const struct fields *f, const struct weir_http_request *req,
    int name, char trace[WEIR_TRACE_ID_BYTES])
{
	switch (name) {
	case HOST:
		return weir_http_host_name(req);
	case AUTHORITY:
		return req->host;
	case PATH:
		return req->path;
	case QUERY:
		return req->query;
	case SCHEME:
		return f->scheme->get(&req->ev, NULL);
	case METHOD:
		return req->method_text;
	case ADDRESS:
		return f->address->get(&req->ev, NULL);
	default:
		refusal_trace_text(&req->ev, trace);
		return (struct weir_slice){trace, strlen(trace)};
	}
}

/* Write the value to out[VALUE_MAX + 1], and a NUL. Returns its length, or -1 if it is too long or not
 * valid. */
static long expand(const struct fields *f, const struct field_change *c,
    const struct weir_http_request *req, char *out)
{
	char trace[WEIR_TRACE_ID_BYTES];
	size_t n = 0;

	for (int i = 0; i < c->value.n; i++) {
		const struct template_piece *x = &c->value.piece[i];
		struct weir_slice s = {x->p, x->n};
		if (x->name >= 0)
			s = placeholder(f, req, x->name, trace);
		if (s.n > VALUE_MAX - n)
			return -1;
		if (s.n > 0)
			memcpy(out + n, s.p, s.n);
		n += s.n;
	}
	out[n] = '\0';
	return strlen(out) == n && response_field_good("X", out) ? (long)n : -1;
}

bool fields_is_https(const struct fields *f, const struct weir_http_request *req)
{
	return weir_slice_is(f->scheme->get(&req->ev, NULL), "https");
}

/* ---- messages ---- */

int fields_answer(const struct fields *f, struct weir_http_request *req, int *left)
{
	char value[VALUE_MAX + 1];
	int rc = 0;

	for (int i = 0; rc == 0 && i < f->n; i++) {
		const struct field_change *c = &f->change[i];
		if (c->drops)
			request_field_drop(req, c->name);
		if (!c->adds)
			continue;
		if (expand(f, c, req, value) >= 0)
			rc = weir_http_add_field(req, c->name, value);
		else
			++*left;
	}
	return rc;
}

static bool same_name(struct weir_slice name, const char *other)
{
	size_t i = 0;

	for (; i < name.n && other[i]; i++) {
		char a = name.p[i] == '_' ? '-' : name.p[i], b = other[i] == '_' ? '-' : other[i];
		if (a != b && strncasecmp(&a, &b, 1) != 0)
			return false;
	}
	return i == name.n && !other[i];
}

/* The fields of a request that is being changed. */
struct list {
	struct weir_http_header *h;
	int n;
};

static void drop(struct list *l, const char *name)
{
	int n = 0;

	for (int i = 0; i < l->n; i++)
		if (!same_name(l->h[i].name, name))
			l->h[n++] = l->h[i];
	l->n = n;
}

/* Append a field, if there is room for one more. Returns 0 or WEIR_ENOMEM. */
static int append(
    struct list *l, struct http_req *r, const char *name, const char *value, size_t n, int *left)
{
	if (l->n >= WEIR_HTTP_HEADERS_MAX) {
		++*left;
		return 0;
	}
	char *copy = request_keep(r, n + 1);
	if (!copy)
		return WEIR_ENOMEM;
	memcpy(copy, value, n + 1);
	l->h[l->n++] = (struct weir_http_header){{name, strlen(name)}, {copy, n}};
	return 0;
}

int fields_request(const struct fields *f, struct weir_http_request *req, int *left)
{
	struct http_req *r = (struct http_req *)req;
	char value[VALUE_MAX + 1];

	if (f->n == 0)
		return 0;
	size_t most = (size_t)req->n_headers + (size_t)f->n;
	struct list l = {.h = request_keep(r, most * sizeof(*l.h)), .n = req->n_headers};
	if (!l.h)
		return WEIR_ENOMEM;
	memcpy(l.h, req->headers, (size_t)req->n_headers * sizeof(*l.h));
	for (int i = 0; i < f->n; i++) {
		const struct field_change *c = &f->change[i];
		if (c->drops)
			drop(&l, c->name);
		if (!c->adds)
			continue;
		long n = expand(f, c, req, value);
		if (n < 0)
			++*left;
		else if (append(&l, r, c->name, value, (size_t)n, left) != 0)
			return WEIR_ENOMEM;
	}
	req->headers = l.h;
	req->n_headers = (uint8_t)l.n;
	return 0;
}

/* ---- knobs ---- */

#define LIST_ROW(member, text)                                                                     \
	{                                                                                          \
		.name = #member, .type = WEIR_KNOB_STRINGS,                                        \
		.offset = offsetof(struct fields_conf, member), .help = text                       \
	}

const struct weir_knob fields_knobs[] = {
    LIST_ROW(remove, "names of fields to remove, first of all"),
    LIST_ROW(set,
	"\"Name: value\" each: fields that replace those of the same name; {host}, "
	"{authority}, {path}, {query}, {scheme}, {method}, {address} and {trace} are replaced"),
    LIST_ROW(add, "\"Name: value\" each: fields in addition to those of the same name"),
    {.name = NULL},
};
