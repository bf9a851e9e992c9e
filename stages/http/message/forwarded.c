/* SPDX-License-Identifier: MIT */
/* Finds the client of a request that came through proxies; see forwarded.h. */
#include "http/message/forwarded.h"

#include <string.h>
#include <strings.h>

#include <weir/http_guard.h>

#include "text/ows.h"

static bool is_called(struct weir_slice name, const char *text)
{
	return name.n == strlen(text) && strncasecmp(name.p, text, name.n) == 0;
}

static bool is_port(const char *p, const char *end)
{
	const char *at = p;

	while (at < end && *at >= '0' && *at <= '9')
		at++;
	return at == end && at > p && at - p <= 5;
}

/* Read an address with or without a port: 192.0.2.1, 192.0.2.1:80, 2001:db8::1, [2001:db8::1], [::1]:80. */
static bool read_node(struct weir_slice node, struct net_address *out)
{
	const char *end = node.p + node.n, *colon, *close;

	if (node.n == 0)
		return false;
	if (*node.p == '[') {
		close = memchr(node.p, ']', node.n);
		if (!close || (close + 1 < end && (close[1] != ':' || !is_port(close + 2, end))))
			return false;
		return memchr(node.p, ':', (size_t)(close - node.p)) &&
		       net_address_read(
			   (struct weir_slice){node.p + 1, (size_t)(close - node.p - 1)}, out);
	}
	colon = memchr(node.p, ':', node.n);
	if (colon && memchr(node.p, '.', (size_t)(colon - node.p)) && is_port(colon + 1, end))
		node.n = (size_t)(colon - node.p);
	return net_address_read(node, out);
}

/* Follow the chain one address further. Returns whether to go on, since it is that of a proxy. */
static bool follow(
    struct weir_slice node, const struct networks *trust, struct forwarded *out, int *hops)
{
	struct net_address at;

	if (!read_node(node, &at)) {
		out->malformed = true;
		return false;
	}
	out->client = at;
	out->known = true;
	return networks_have(trust, &at) && ++*hops < FORWARDED_HOPS_MAX;
}

static struct weir_slice scheme_of(struct weir_slice text)
{
	if (is_called(text, "https"))
		return (struct weir_slice){"https", 5};
	if (is_called(text, "http"))
		return (struct weir_slice){"http", 4};
	return (struct weir_slice){NULL, 0};
}

/* ---- X-Forwarded-For ---- */

static bool follow_list(
    struct weir_slice list, const struct networks *trust, struct forwarded *out, int *hops)
{
	const char *end = list.p + list.n;

	for (;;) {
		const char *comma = memrchr(list.p, ',', (size_t)(end - list.p));
		struct weir_slice node = ows_trim(comma ? comma + 1 : list.p, end);
		if (!follow(node, trust, out, hops))
			return false;
		if (!comma)
			return true;
		end = comma;
	}
}

static void read_x(
    const struct weir_http_request *req, const struct networks *trust, struct forwarded *out)
{
	int hops = 0, protos = 0;
	bool more = true;

	for (int i = req->n_headers - 1; i >= 0; i--) {
		const struct weir_http_header *h = &req->headers[i];
		if (more && is_called(h->name, "x-forwarded-for"))
			more = follow_list(h->value, trust, out, &hops);
		if (is_called(h->name, "x-forwarded-proto") && protos++ == 0)
			out->scheme = scheme_of(h->value);
	}
	if (protos > 1) /* one of them may be the client's own */
		out->scheme = (struct weir_slice){NULL, 0};
}

/* ---- Forwarded ---- */

/* What one proxy has said: its peer, and the scheme with which that connected. */
struct element {
	struct weir_slice node, scheme;
};

/* The last elements of a field, in a ring. */
struct elements {
	int n; /* all of them; the ring has the last FORWARDED_HOPS_MAX */
	struct element ring[FORWARDED_HOPS_MAX];
};

static bool ends_token(char c)
{
	return ows_is(c) || strchr(",;=\"", c);
}

static const char *read_token(const char *p, const char *end, struct weir_slice *out)
{
	const char *begin = p;

	while (p < end && !ends_token(*p))
		p++;
	*out = (struct weir_slice){begin, (size_t)(p - begin)};
	return p > begin ? p : NULL;
}

/* Read a token or a quoted string without escapes, which no address has. Returns its end, or NULL. */
static const char *read_value(const char *p, const char *end, struct weir_slice *out)
{
	const char *close;

	if (p == end || *p != '"')
		return read_token(p, end, out);
	close = memchr(p + 1, '"', (size_t)(end - p - 1));
	if (!close || memchr(p, '\\', (size_t)(close - p)))
		return NULL;
	*out = (struct weir_slice){p + 1, (size_t)(close - p - 1)};
	return close + 1;
}

/* Read "name=value". Each name may occur once in an element. Returns the end, or NULL. */
static const char *read_pair(const char *p, const char *end, struct element *e)
{
	struct weir_slice name, value;

	p = read_token(p, end, &name);
	if (!p || p == end || *p != '=')
		return NULL;
	p = read_value(p + 1, end, &value);
	if (!p)
		return NULL;
	struct weir_slice *to = is_called(name, "for")     ? &e->node
				: is_called(name, "proto") ? &e->scheme
							   : NULL;
	if (to && to->p)
		return NULL;
	if (to)
		*to = value;
	return p;
}

static const char *skip_space(const char *p, const char *end)
{
	while (p < end && ows_is(*p))
		p++;
	return p;
}

/* Read one element. Returns the position of the comma behind it, or the end, or NULL. */
static const char *read_element(const char *p, const char *end, struct element *e)
{
	*e = (struct element){0};
	for (;;) {
		p = skip_space(p, end);
		if (p < end && *p != ',' && *p != ';') {
			p = read_pair(p, end, e);
			if (!p)
				return NULL;
			p = skip_space(p, end);
		}
		if (p == end || *p == ',')
			return p;
		if (*p != ';')
			return NULL;
		p++;
	}
}

/* Returns false if the field is malformed anywhere: where its elements end cannot be told then. */
static bool read_elements(struct weir_slice list, struct elements *all)
{
	const char *p = list.p, *end = list.p + list.n;

	all->n = 0;
	for (;;) {
		struct element *e = &all->ring[all->n++ % FORWARDED_HOPS_MAX];
		p = read_element(p, end, e);
		if (!p)
			return false;
		if (p == end)
			return true;
		p++;
	}
}

static bool follow_elements(
    struct weir_slice list, const struct networks *trust, struct forwarded *out, int *hops)
{
	struct elements all;

	if (!read_elements(list, &all)) {
		out->malformed = true;
		return false;
	}
	for (int i = all.n - 1; i >= 0 && i >= all.n - FORWARDED_HOPS_MAX; i--) {
		const struct element *e = &all.ring[i % FORWARDED_HOPS_MAX];
		bool more = follow(e->node, trust, out, hops);
		if (!out->malformed)
			out->scheme = scheme_of(e->scheme);
		if (!more)
			return false;
	}
	return true;
}

void forwarded_read(const struct weir_http_request *req, enum forwarded_from from,
    const struct networks *trust, struct forwarded *out)
{
	int hops = 0;

	*out = (struct forwarded){0};
	if (from == FORWARDED_X)
		read_x(req, trust, out);
	if (from != FORWARDED_RFC)
		return;
	for (int i = req->n_headers - 1; i >= 0; i--)
		if (is_called(req->headers[i].name, "forwarded") &&
		    !follow_elements(req->headers[i].value, trust, out, &hops))
			return;
}
