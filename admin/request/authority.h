/* SPDX-License-Identifier: MIT */
/*
 * Determines where the endpoint listens, and which Host and Origin values belong to it.
 *
 * A foreign page whose name resolves to our address (DNS rebinding) still sends its own name in
 * Host. Therefore a Host must be "localhost", a literal address of ours, or one of the names in
 * `hosts`, with our port. Literals are parsed, not compared by prefix ("127.0.0.1.evil.example" is
 * a name). auth.h decides whether the address may be reachable from other hosts.
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
	int port;    /* TCP port; 0 for a socket file */
	bool tls;    /* clients use TLS, so their default port is 443, not 80 */
	bool shared; /* users other than the owner may connect to the socket file */
	const struct weir_strings *hosts; /* additional names, borrowed; NULL if none */
};

/** Parse `listen`: "127.0.0.1:9900", "[::1]:9900", "localhost:9900", "unix:/path". Returns 0 or
 *  WEIR_EINVAL with the message in `err`. */
int authority_parse(const char *listen, struct authority *address, struct weir_err *err);

/** Return whether the address can be reached from other hosts. */
bool authority_is_exposed(const struct authority *address);

/** Return whether `host` may be listed in `hosts`: a name, or a name with a port. */
bool authority_host_fits(const char *host);

/** Bind and listen, non-blocking; port 0 is replaced by the port that the kernel chose. A socket
 *  file is created with mode 0600, which is changed to 0666 if `shared` is set. A stale file from
 *  an earlier run is replaced. Returns 0, or WEIR_EBUSY or WEIR_ESYS with the message in `err`. */
int authority_listen(struct authority *address, int *fd, struct weir_err *err);

/** Set whether other users may connect to the socket file from now on. Has no effect for TCP.
 *  Returns 0 or WEIR_ESYS. */
int authority_share(struct authority *address, bool shared);

/** Remove the socket file, if the address is one. */
void authority_unlink(const struct authority *address);

/** Return whether a request with this Host value may be answered. */
bool authority_allows_host(const struct authority *address, struct weir_slice host);

/**
 * Return whether a request may change the server's state. `host` has passed authority_allows_host.
 * `origin` and `fetch_site` are the values of Origin and Sec-Fetch-Site, or NULL if not sent.
 * Programs send neither, browsers send both.
 */
bool authority_allows_act(const char *host, const char *origin, const char *fetch_site);

#endif
