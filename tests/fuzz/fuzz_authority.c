/* SPDX-License-Identifier: MIT */
/*
 * Which Host and Origin values the admin endpoint accepts, compared with a second parser that works
 * from the end: the port after the last ':', then the whole name. Every accepted name is ours, and
 * is refused with anything added before or after it.
 *
 * Input: a byte for the endpoint, then texts separated by newlines: Host, Origin, Sec-Fetch-Site,
 * an address to listen on, a name for `hosts:`.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "admin/request/authority.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXTS = 5, HOST = 0, ORIGIN, SITE, LISTEN, NAME, TEXT_BYTES = 512 };

static const char *const places[] = {"127.0.0.1:9900", "[::1]:80", "0.0.0.0:443", "[::]:9900",
    "192.0.2.7:9900", "[2001:db8::7]:443", "unix:/run/weir/admin.sock", "127.0.0.5:80"};
#define PLACES (sizeof(places) / sizeof(places[0]))

static char plain[] = "weir.example.org", ported[] = "other.example.org:9901";

static void expect(bool cond, const char *what)
{
	if (cond)
		return;
	fprintf(stderr, "fuzz_authority: %s\n", what);
	abort();
}

static bool allows(const struct authority *a, const char *host)
{
	return authority_allows_host(a, (struct weir_slice){host, strlen(host)});
}

/* ---- the second parser ---- */

/* The port after `colon`; -1 when it is not valid. */
static long port_at(const char *colon)
{
	char *end, again[24];
	long port = strtol(colon + 1, &end, 10);

	snprintf(again, sizeof(again), "%ld", port);
	return *end || strcmp(again, colon + 1) != 0 || port < 0 || port > 65535 ? -1 : port;
}

static bool address_ours(const struct authority *a, const char *name, bool brackets)
{
	unsigned char ip[16], any[16] = {0}, six[16] = {[15] = 1}, four[] = {127, 0, 0, 1};
	int family = brackets ? AF_INET6 : AF_INET;
	size_t n = brackets ? 16 : 4;

	if (inet_pton(family, name, ip) != 1)
		return false;
	if (memcmp(ip, brackets ? six : four, n) == 0)
		return true;
	if (a->sa.any.sa_family == AF_UNIX)
		return false;
	const void *own = a->sa.any.sa_family == AF_INET6 ? (const void *)&a->sa.v6.sin6_addr
							  : (const void *)&a->sa.v4.sin_addr;
	return memcmp(own, any, a->sa.any.sa_family == AF_INET6 ? 16 : 4) == 0 ||
	       (a->sa.any.sa_family == family && memcmp(own, ip, n) == 0);
}

static bool is_name(const struct authority *a, const char *whole, const char *name, long port)
{
	for (int i = 0; a->hosts && i < a->hosts->n; i++)
		if (port != 0 && (strcasecmp(a->hosts->items[i], name) == 0 ||
				     strcasecmp(a->hosts->items[i], whole) == 0))
			return true;
	return false;
}

/* May a request with the Host `text` be answered? */
static bool ours(const struct authority *a, const char *text)
{
	char name[TEXT_BYTES];
	size_t n = strlen(text);
	bool brackets = text[0] == '[', file = a->sa.any.sa_family == AF_UNIX;
	const char *colon = strrchr(text, ':'), *close = strrchr(text, ']');
	long port = -2; /* no port given */

	if (colon && (!brackets || (close && colon > close))) {
		port = port_at(colon);
		n = (size_t)(colon - text);
	}
	if (n == 0 || n >= 262 || port == -1)
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)n, text);
	if (brackets) {
		if (name[n - 1] != ']')
			return false;
		name[n - 1] = '\0';
		memmove(name, name + 1, n - 1);
	} else if (strchr(name, ':')) {
		return false;
	} else if (is_name(a, text, name, port)) {
		return true;
	}
	if (!file && (port == -2 ? (a->tls ? 443 : 80) : port) != a->port)
		return false;
	return (!brackets && strcasecmp(name, "localhost") == 0) || address_ours(a, name, brackets);
}

/* ---- the checks ---- */

static void check_host(const struct authority *a, char *host)
{
	bool in = allows(a, host);
	char other[TEXT_BYTES + 32];

	expect(in == (strlen(host) < 262 && ours(a, host)), "two readers, two verdicts on Host");
	if (!in)
		return;
	for (const char *p = host; *p; p++)
		expect(isalnum((unsigned char)*p) || strchr(".-_:[]", *p), "Host with that in it");
	snprintf(other, sizeof(other), "evil.%s", host);
	expect(!allows(a, other), "something in front of Host");
	snprintf(other, sizeof(other), "%s.evil.example", host);
	expect(!allows(a, other), "something behind Host");
	snprintf(other, sizeof(other), "%s", host);
	for (char *p = other; *p; p++)
		*p = (char)(isupper((unsigned char)*p) ? tolower((unsigned char)*p)
						       : toupper((unsigned char)*p));
	expect(allows(a, other), "letters of another case");
	expect(!authority_allows_host(a, (struct weir_slice){host, strlen(host) + 1}), "a NUL");
}

static void check_act(const char *host, const char *origin, const char *site)
{
	char http[TEXT_BYTES + 16], https[TEXT_BYTES + 16];

	snprintf(http, sizeof(http), "http://%s", host);
	snprintf(https, sizeof(https), "https://%s", host);
	bool same = strcasecmp(origin, http) == 0 || strcasecmp(origin, https) == 0;
	bool from = strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;
	expect(authority_allows_act(host, origin, site) == (same && from), "Origin and site");
	expect(authority_allows_act(host, origin, NULL) == same, "Origin");
	expect(authority_allows_act(host, NULL, site) == from, "Sec-Fetch-Site");
}

/* An accepted address is a file or numeric, and the endpoint there accepts it as its own Host. */
static void check_listen(const char *listen)
{
	struct weir_err err = {0};
	struct authority a;
	int rc = authority_parse(listen, &a, &err);
	char ip[INET6_ADDRSTRLEN] = "", again[80];

	expect(rc == 0 || (rc == WEIR_EINVAL && err.text[0]), "refused without a word");
	if (rc != 0)
		return;
	if (a.sa.any.sa_family == AF_UNIX) {
		expect(listen[5] == '/' && strcmp(listen + 5, a.sa.file.sun_path) == 0,
		    "another path");
		return;
	}
	bool six = a.sa.any.sa_family == AF_INET6;
	inet_ntop(a.sa.any.sa_family,
	    six ? (const void *)&a.sa.v6.sin6_addr : (const void *)&a.sa.v4.sin_addr, ip,
	    sizeof(ip));
	snprintf(again, sizeof(again), six ? "[%s]:%d" : "%s:%d", ip, a.port);
	expect(allows(&a, again), "its own address is none of its Hosts");
	expect(a.port == port_at(strrchr(listen, ':')), "another port");
}

static void check_name(const struct authority *a, char *name)
{
	struct weir_strings hosts = {1, &name};
	struct authority b = *a;

	b.hosts = &hosts;
	if (authority_host_fits(name))
		expect(allows(&b, name), "a name that may be listed, and is of no use there");
}

static void take_texts(const char *p, const char *end, char text[TEXTS][TEXT_BYTES])
{
	for (int i = 0; i < TEXTS; i++) {
		const char *nl = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
		const char *stop = nl ? nl : end;
		size_t n = (size_t)(stop - p);
		n = n < TEXT_BYTES ? n : TEXT_BYTES - 1;
		memcpy(text[i], p, n);
		text[i][n] = '\0';
		p = nl ? nl + 1 : end;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char *names[] = {plain, ported};
	static const struct weir_strings hosts = {2, names};
	char text[TEXTS][TEXT_BYTES];
	struct weir_err err = {0};
	struct authority a;

	if (size == 0)
		return 0;
	expect(authority_parse(places[data[0] % PLACES], &a, &err) == 0, "no place");
	a.tls = data[0] & 64;
	a.hosts = data[0] & 128 ? &hosts : NULL;
	take_texts((const char *)data + 1, (const char *)data + size, text);
	check_host(&a, text[HOST]);
	check_act(text[HOST], text[ORIGIN], text[SITE]);
	check_listen(text[LISTEN]);
	check_name(&a, text[NAME]);
	return 0;
}
