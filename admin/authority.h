/* SPDX-License-Identifier: MIT */
/*
 * Where the endpoint listens, and which Host and Origin belong to that place.
 *
 * A page of a foreign site that has its name resolve to our address (DNS rebinding) still sends its
 * own name in Host, so a Host must be "localhost", a literal address that is ours, or one of the
 * names in `hosts`, with our port; literals are parsed, not compared by prefix
 * ("127.0.0.1.evil.example" is a name). Whether others may reach the place is for gate.h to say.
 */
#ifndef WEIR_ADMIN_AUTHORITY_H
#define WEIR_ADMIN_AUTHORITY_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <weir/error.h>
#include <weir/event.h>
#include <weir/knob.h>

struct authority {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sockaddr_un file;
	} sa;
	socklen_t len;
	int port;                         /* TCP port; 0 for a socket file */
	bool tls;                         /* then the port that clients leave out is 443, not 80 */
	bool shared;                      /* others than its owner may connect to the socket file */
	const struct weir_strings *hosts; /* more names; NULL: none. Borrowed */
};

/** Parse `listen`: "127.0.0.1:9900", "[::1]:9900", "localhost:9900", "unix:/path". 0 or WEIR_EINVAL
 *  with the sentence in `err`. */
int authority_parse(const char *listen, struct authority *address, struct weir_err *err);

/** Can others than this machine reach it? */
bool authority_is_exposed(const struct authority *address);

/** Could `host` stand in `hosts`: a name, or one with a port? */
bool authority_host_fits(const char *host);

/** Bind and listen, non-blocking; port 0 becomes the one the kernel chose. A socket file gets mode
 *  0600 before it appears, and 0666 when it is `shared`; a dead one of an earlier run is replaced. 0, or WEIR_EBUSY, WEIR_ESYS
 *  with the sentence in `err`. */
int authority_listen(struct authority *address, int *fd, struct weir_err *err);

/** May others than its owner connect to the socket file from now on? Nothing for TCP. 0 or WEIR_ESYS. */
int authority_share(struct authority *address, bool shared);

/** Remove the socket file, if it is one. */
void authority_unlink(const struct authority *address);

/** May a request with this Host value be answered? */
bool authority_allows_host(const struct authority *address, struct weir_slice host);

/**
 * May a request act? `host` has passed authority_allows_host. `origin` and `fetch_site` are the
 * values of Origin and Sec-Fetch-Site, NULL when not sent: programs send neither, browsers both.
 */
bool authority_allows_act(const char *host, const char *origin, const char *fetch_site);

#endif
