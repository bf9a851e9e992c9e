/* SPDX-License-Identifier: MIT */
/*
 * What proxies say of their clients: a PROXY header, and the fields X-Forwarded-For and Forwarded.
 *
 * A header has one verdict, however many of its bytes are judged at a time, and asks for bytes only that
 * belong to it. A client that is found was named by an address in the input, no trusted one unless the
 * chain ends there, and what a client puts in front of a proxy's entry changes nothing.
 *
 * Input: a byte that chooses; then the header, or the value of a field.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/message/forwarded.h"
#include "net/proxy_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool cond, const char *what)
{
	if (cond)
		return;
	fprintf(stderr, "fuzz_proxy: %s\n", what);
	abort();
}

static void header(const uint8_t *data, size_t size)
{
	static struct proxy_header whole, part;
	struct sockaddr_storage named = {0}, again;
	enum proxy_verdict first = PROXY_MORE;
	uint32_t more;

	whole.n = (uint32_t)(size < PROXY_HEADER_MAX ? size : PROXY_HEADER_MAX);
	memcpy(whole.bytes, data, whole.n);
	part = whole;
	for (part.n = 0; part.n < whole.n; part.n += more) {
		first = proxy_header_judge(&part, &more, &named);
		if (first != PROXY_MORE)
			break;
		expect(more >= 1 && part.n + more <= PROXY_HEADER_MAX, "asks for bytes");
		if (part.n + more > whole.n)
			return;
	}
	if (first == PROXY_MORE)
		return;
	/* bytes that follow the header are not part of it */
	struct proxy_header exact = part;
	memset(exact.bytes + part.n, 0xa5, PROXY_HEADER_MAX - part.n);
	expect(proxy_header_judge(&exact, &more, &again) == first, "depends on what follows");
	expect(memcmp(&named, &again, sizeof(named)) == 0, "names two clients");
}

static struct networks trust;

static void read_field(enum forwarded_from from, const char *value, size_t n, struct forwarded *out)
{
	static const char *const names[] = {
	    [FORWARDED_X] = "X-Forwarded-For", [FORWARDED_RFC] = "Forwarded"};
	struct weir_http_header h = {
	    .name = {names[from], strlen(names[from])}, .value = {value, n}};
	struct weir_http_request req = {.headers = &h, .n_headers = 1};

	forwarded_read(&req, from, &trust, out);
}

static bool same(const struct forwarded *a, const struct forwarded *b)
{
	return a->known == b->known && a->malformed == b->malformed &&
	       (!a->known || memcmp(&a->client, &b->client, sizeof(a->client)) == 0);
}

static void field(enum forwarded_from from, const uint8_t *data, size_t size)
{
	static const char proxy[] = "203.0.113.9";
	char *text = malloc(size + 40);
	struct forwarded f, with;
	int n;

	if (!text)
		abort();
	memcpy(text, data, size);
	read_field(from, text, size, &f);
	expect(
	    !f.malformed || !f.known || networks_have(&trust, &f.client), "goes beyond a client");
	/* the nearest proxy names an address that is not trusted: that is the client, whatever precedes it */
	n = snprintf(text + size, 40, from == FORWARDED_X ? ", %s" : ", for=%s", proxy);
	read_field(from, text, size + (size_t)n, &with);
	struct net_address at;
	net_address_read((struct weir_slice){proxy, strlen(proxy)}, &at);
	expect(with.known ? memcmp(&with.client, &at, sizeof(at)) == 0
			  : with.malformed && from == FORWARDED_RFC,
	    "is forged");
	/* a trusted one: the same as without it, but that the chain may have become too long */
	n = snprintf(text + size, 40, from == FORWARDED_X ? ", 10.0.0.1" : ", for=10.0.0.1");
	read_field(from, text, size + (size_t)n, &with);
	expect(same(&f, &with) || with.malformed || networks_have(&trust, &with.client),
	    "depends on a proxy behind");
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weir_err err;

	if (trust.n == 0 && network_parse("10.0.0.0/8", &trust.item[trust.n++], &err) != 0)
		abort();
	if (size == 0)
		return 0;
	if (data[0] % 3 == 0)
		header(data + 1, size - 1);
	else
		field(data[0] % 3 == 1 ? FORWARDED_X : FORWARDED_RFC, data + 1, size - 1);
	return 0;
}
