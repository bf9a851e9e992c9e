/* SPDX-License-Identifier: MIT */
/*
 * Finds the client of a request that came through proxies, from the fields that the proxies add.
 *
 * Each proxy appends the address of its own peer, so the last address is the peer of the nearest
 * proxy. The list is read from there: an address in `trust` is that of another proxy, whose own entry
 * precedes it; the first address that is not is the client. What precedes the client's address was
 * sent by the client and is not read, so nobody can forge an address. Pure, for any thread.
 */
#ifndef WEIR_HTTP_FORWARDED_H
#define WEIR_HTTP_FORWARDED_H

#include <stdbool.h>

#include <weir/http.h>

#include "net/network.h"

/** Where proxies name the client; the order of the choices of `client_from`. */
enum forwarded_from { FORWARDED_X, FORWARDED_RFC, FORWARDED_PROXY };

/** Longest chain of trusted proxies that is followed. Real chains have at most five or so; a longer one
 * ends at the proxy with this number. */
#define FORWARDED_HOPS_MAX 16

struct forwarded {
	bool known; /* `client` is set: a proxy has named an address */
	/* The field has something else than an address where one is expected, such as "unknown". The
	 * client is then the last address before that, if there is one. */
	bool malformed;
	struct net_address client;
	struct weir_slice
	    scheme; /* "http" or "https", as the client used it; n is 0 if it is not known */
};

/** Read X-Forwarded-For and X-Forwarded-Proto (FORWARDED_X), or Forwarded (FORWARDED_RFC, RFC 7239) of a
 * request that one of the proxies in `trust` has sent. Costs about 0.2 us with one proxy. */
void forwarded_read(const struct weir_http_request *req, enum forwarded_from from,
    const struct networks *trust, struct forwarded *out);

#endif
