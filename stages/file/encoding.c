/* SPDX-License-Identifier: MIT */
/* Parses Accept-Encoding and chooses a content coding. See encoding.h. */
#include "encoding.h"

#include <string.h>

#include "text/ows.h"

struct coding {
	const char *token, *ending;
};

static const struct coding codings[ENCODING_N] = {
#define ENCODING_ROW(id, token, ending) [ENCODING_##id] = {token, ending},
    ENCODINGS(ENCODING_ROW)
#undef ENCODING_ROW
	[ENCODING_IDENTITY] = {"identity", ""},
};

const char *encoding_token(enum encoding e)
{
	return codings[e].token;
}

const char *encoding_ending(enum encoding e)
{
	return codings[e].ending;
}

enum encoding encoding_find(struct weir_slice text)
{
	for (int e = 0; e < ENCODING_N; e++)
		if (weir_slice_is(text, codings[e].token))
			return (enum encoding)e;
	return weir_slice_is(text, "x-gzip") ? ENCODING_GZIP : ENCODING_N;
}

/* ---- Accept-Encoding ---- */

/* Weights in thousandths, -1 if none is given; after weights_settle in half thousandths. "*" is
 * stored at index ENCODING_N. */
#define STAR ENCODING_N
struct weights {
	int q[ENCODING_N + 1];
};

/* Weight of identity if the client does not mention it, in half thousandths. Identity is then
 * acceptable, but with a lower weight than any that a client can specify. */
#define UNASKED_HALVES 1

/* Parse a weight (RFC 9110, 12.4.2): 0 to 1, with up to three decimals. Returns thousandths, or -1
 * if it is malformed. */
static int weight_value(struct weir_slice s)
{
	if (s.n < 1 || s.n > 5 || (s.p[0] != '0' && s.p[0] != '1') || (s.n > 1 && s.p[1] != '.'))
		return -1;
	int q = (s.p[0] - '0') * 1000;
	for (size_t i = 2, unit = 100; i < s.n; i++, unit /= 10) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return -1;
		q += (s.p[i] - '0') * (int)unit;
	}
	return q <= 1000 ? q : -1;
}

/* Parse "q=0.5", the text after the semicolon. */
static int weight_read(struct weir_slice s)
{
	if (s.n < 2 || (s.p[0] | 0x20) != 'q' || s.p[1] != '=')
		return -1;
	return weight_value((struct weir_slice){s.p + 2, s.n - 2});
}

/* Parse one element of the list: "gzip", "gzip;q=0.5", "*". */
static void element_read(struct weir_slice s, struct weights *w)
{
	const char *end = s.p + s.n;
	const char *semicolon = s.n > 0 ? memchr(s.p, ';', s.n) : NULL;
	struct weir_slice name = ows_trim(s.p, semicolon ? semicolon : end);
	int q = semicolon ? weight_read(ows_trim(semicolon + 1, end)) : 1000;
	bool star = name.n == 1 && name.p[0] == '*';
	enum encoding e = encoding_find(name);

	if (e == ENCODING_N && !star)
		return; /* an unknown coding */
	if (q >= 0 && w->q[e] < 0)
		w->q[e] = q;
}

static void list_read(struct weir_slice s, struct weights *w)
{
	const char *p = s.p, *end = p + s.n;

	while (p < end) {
		const char *comma = memchr(p, ',', (size_t)(end - p));
		const char *stop = comma ? comma : end;
		element_read(ows_trim(p, stop), w);
		p = comma ? comma + 1 : end;
	}
}

/* Compute the final weights of all codings, in half thousandths. Codings that are not named get the
 * weight of "*". */
static void weights_settle(struct weights *w)
{
	int star = w->q[STAR];

	for (int e = 0; e < ENCODING_N; e++) {
		int q = w->q[e] >= 0 ? w->q[e] : star;
		bool unasked = q < 0 && e == ENCODING_IDENTITY;
		w->q[e] = unasked ? UNASKED_HALVES : q > 0 ? 2 * q : 0;
	}
}

static int rank_of(const struct weights *w, int e)
{
	int rank = w->q[e] > 0;

	for (int k = 0; k < ENCODING_N; k++) {
		bool first = w->q[k] > 0 && w->q[k] < w->q[e];
		for (int before = 0; before < k && first; before++)
			first = w->q[before] != w->q[k];
		rank += first;
	}
	return rank;
}

void encoding_wish(const struct weir_http_request *req, struct encoding_wish *wish)
{
	static const char name[] = "Accept-Encoding";
	struct weights w = {{-1, -1, -1, -1, -1}};

	_Static_assert(ENCODING_N == 4, "as many as -1 above");
	for (int i = 0; i < req->n_headers; i++) {
		const struct weir_http_header *h = &req->headers[i];
		if (h->name.n == sizeof(name) - 1 && weir_slice_is(h->name, name))
			list_read(h->value, &w);
	}
	weights_settle(&w);
	for (int e = 0; e < ENCODING_N; e++)
		wish->rank[e] = (uint8_t)rank_of(&w, e);
}

unsigned encoding_code(const struct weir_http_request *req)
{
	struct encoding_wish wish;
	unsigned code = 0;

	encoding_wish(req, &wish);
	for (int e = 0; e < ENCODING_N; e++) /* identity, the last, is the lowest octal digit */
		code = code << 3 | wish.rank[e];
	return code ^ 1; /* 0 if identity has rank 1 and every other coding rank 0 */
}

enum encoding encoding_choose(const struct encoding_wish *wish, const enum encoding *order, int n)
{
	enum encoding best = ENCODING_N;
	int rank = 0;

	for (int i = 0; i <= n; i++) {
		enum encoding e = i < n ? order[i] : ENCODING_IDENTITY;
		if (wish->rank[e] > rank) {
			rank = wish->rank[e];
			best = e;
		}
	}
	return best;
}
