/* SPDX-License-Identifier: MIT */
/*
 * Parses and binds the listen address, and checks Host and Origin; see authority.h.
 *
 * A listen address is parsed into struct authority (authority_parse), then bound
 * (authority_listen), which fills in the port. The checks of Host and Origin at the end of this
 * file only read it. The module has no state; each object is used by one thread at a time.
 */
#include "authority.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin/text/fail.h"

/* Maximum number of connections waiting to be accepted. 64 is a guess: more than a scraper and a
 * few browsers with six connections each. */
#define AUTHORITY_BACKLOG 64

/* Size of a buffer for Host: a DNS name of at most 255 bytes, ":65535" and a NUL. */
#define HOST_MAX 262

/* ---- parsing ---- */

/* Parse a port, "0" to "65535" without leading zeros. Returns -1 for any other text. */
static int port_of(const char *text)
{
	size_t n = strlen(text);

	if (n == 0 || n > 5 || strspn(text, "0123456789") != n || (n > 1 && text[0] == '0'))
		return -1;
	int port = atoi(text);
	return port <= 65535 ? port : -1;
}

/* Split "host:port" or "[v6]:port" in place. `*port` is NULL if none is given. Returns false if the
 * text is neither form. */
static bool split(char *text, char **host, char **port)
{
	char *end = text;

	*host = text;
	if (*text == '[') {
		*host = text + 1;
		end = strchr(text, ']');
		if (!end)
			return false;
		*end++ = '\0';
	} else {
		end += strcspn(text, ":");
	}
	*port = *end == ':' ? end + 1 : NULL;
	if (*end != ':' && *end != '\0')
		return false;
	*end = '\0';
	return true;
}

/* Parse a literal address: IPv6 if it was in brackets, else IPv4. */
static bool literal(const char *host, bool bracketed, struct authority *a)
{
	*a = (struct authority){0};
	if (bracketed) {
		a->sa.v6.sin6_family = AF_INET6;
		a->len = sizeof(a->sa.v6);
		return inet_pton(AF_INET6, host, &a->sa.v6.sin6_addr) == 1;
	}
	a->sa.v4.sin_family = AF_INET;
	a->len = sizeof(a->sa.v4);
	return inet_pton(AF_INET, host, &a->sa.v4.sin_addr) == 1;
}

static bool is_loopback(const struct authority *a)
{
	if (a->sa.any.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&a->sa.v6.sin6_addr);
	return ntohl(a->sa.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* Return whether the address is 0.0.0.0 or [::]. */
static bool is_wildcard(const struct authority *a)
{
	if (a->sa.any.sa_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&a->sa.v6.sin6_addr);
	return a->sa.v4.sin_addr.s_addr == htonl(INADDR_ANY);
}

bool authority_is_exposed(const struct authority *a)
{
	return a->sa.any.sa_family != AF_UNIX && !is_loopback(a);
}

static void set_port(struct authority *a, int port)
{
	a->port = port;
	if (a->sa.any.sa_family == AF_INET6)
		a->sa.v6.sin6_port = htons((uint16_t)port);
	else
		a->sa.v4.sin_port = htons((uint16_t)port);
}

static int parse_file(const char *path, struct authority *a, struct weir_err *err)
{
	*a = (struct authority){.len = sizeof(a->sa.file)};
	a->sa.file.sun_family = AF_UNIX;
	if (path[0] != '/')
		return fail(err, WEIR_EINVAL, "write unix:/run/weir/admin.sock",
		    "'unix:%s' needs an absolute path", path);
	if (strlen(path) >= sizeof(a->sa.file.sun_path))
		return fail(err, WEIR_EINVAL, NULL,
		    "the path of the admin socket is longer than %zu bytes",
		    sizeof(a->sa.file.sun_path) - 1);
	memcpy(a->sa.file.sun_path, path, strlen(path) + 1);
	return 0;
}

int authority_parse(const char *listen, struct authority *a, struct weir_err *err)
{
	char buf[HOST_MAX];
	char *host, *port;

	if (strncmp(listen, "unix:", 5) == 0)
		return parse_file(listen + 5, a, err);
	if (snprintf(buf, sizeof(buf), "%s", listen) >= (int)sizeof(buf) ||
	    !split(buf, &host, &port) || !port || port_of(port) < 0)
		return fail(err, WEIR_EINVAL, "write 127.0.0.1:9900 or unix:/run/weir/admin.sock",
		    "'%.80s' is not an address to listen on", listen);
	if (strcmp(host, "localhost") == 0)
		literal("127.0.0.1", false, a);
	else if (!literal(host, buf[0] == '[', a))
		return fail(err, WEIR_EINVAL, "write 127.0.0.1:9900 or unix:/run/weir/admin.sock",
		    "the admin endpoint listens on a numeric address, not on '%.80s'", listen);
	set_port(a, port_of(port));
	return 0;
}

/* ---- listening ---- */

/* Remove a socket file that has no listener, left behind by a killed server. */
static void remove_dead_file(const struct authority *a)
{
	struct stat st;
	int fd;

	if (lstat(a->sa.file.sun_path, &st) != 0 || !S_ISSOCK(st.st_mode))
		return;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (connect(fd, &a->sa.any, a->len) != 0 && errno == ECONNREFUSED)
		unlink(a->sa.file.sun_path);
	close(fd);
}

static int prepare(const struct authority *a, int fd)
{
	int one = 1;

	if (a->sa.any.sa_family == AF_UNIX) {
		remove_dead_file(a);
		/* On Linux, bind creates the file with the mode of the socket, reduced by the
		 * umask. Other users therefore cannot connect even for a moment. */
		return fchmod(fd, 0600);
	}
	return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
}

static void learn_port(struct authority *a, int fd)
{
	struct authority bound = {.len = sizeof(bound.sa)};

	if (a->sa.any.sa_family == AF_UNIX || getsockname(fd, &bound.sa.any, &bound.len) != 0)
		return;
	set_port(a,
	    ntohs(a->sa.any.sa_family == AF_INET6 ? bound.sa.v6.sin6_port : bound.sa.v4.sin_port));
}

static void name_of(const struct authority *a, char *buf, size_t size)
{
	char ip[INET6_ADDRSTRLEN] = "";

	if (a->sa.any.sa_family == AF_UNIX) {
		snprintf(buf, size, "unix:%s", a->sa.file.sun_path);
	} else if (a->sa.any.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &a->sa.v6.sin6_addr, ip, sizeof(ip));
		snprintf(buf, size, "[%s]:%d", ip, a->port);
	} else {
		inet_ntop(AF_INET, &a->sa.v4.sin_addr, ip, sizeof(ip));
		snprintf(buf, size, "%s:%d", ip, a->port);
	}
}

int authority_share(struct authority *a, bool shared)
{
	if (a->sa.any.sa_family == AF_UNIX && shared != a->shared &&
	    chmod(a->sa.file.sun_path, shared ? 0666 : 0600) != 0)
		return WEIR_ESYS;
	a->shared = shared;
	return 0;
}

int authority_listen(struct authority *a, int *out, struct weir_err *err)
{
	char name[160];
	bool shared = a->sa.any.sa_family == AF_UNIX && a->shared;
	int fd = socket(a->sa.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	name_of(a, name, sizeof(name));
	if (fd < 0 || prepare(a, fd) != 0 || bind(fd, &a->sa.any, a->len) != 0 ||
	    (shared && chmod(a->sa.file.sun_path, 0666) != 0) ||
	    listen(fd, AUTHORITY_BACKLOG) != 0) {
		int saved = errno;
		if (fd >= 0)
			close(fd);
		if (saved == EADDRINUSE)
			return fail(err, WEIR_EBUSY,
			    "is another server running there? choose another address",
			    "the admin endpoint cannot listen on %s: the address is in use", name);
		return fail(err, WEIR_ESYS, NULL, "the admin endpoint cannot listen on %s: %s",
		    name, strerror(saved));
	}
	learn_port(a, fd);
	*out = fd;
	return 0;
}

void authority_unlink(const struct authority *a)
{
	if (a->sa.any.sa_family == AF_UNIX)
		unlink(a->sa.file.sun_path);
}

/* ---- Host and Origin ---- */

static bool same_address(const struct authority *a, const struct authority *b)
{
	if (a->sa.any.sa_family != b->sa.any.sa_family)
		return false;
	if (a->sa.any.sa_family == AF_INET6)
		return IN6_ARE_ADDR_EQUAL(&a->sa.v6.sin6_addr, &b->sa.v6.sin6_addr);
	return a->sa.v4.sin_addr.s_addr == b->sa.v4.sin_addr.s_addr;
}

/* Return whether `asked` is an address of ours. 127.0.0.1 and [::1] always are, whatever address we
 * are bound to. If we are bound to the wildcard address, we do not know our own addresses and
 * accept any literal. This is safe: a browser that sends a literal address as Host has connected to
 * that address, so it is one of ours. */
static bool is_ours(const struct authority *a, const struct authority *asked)
{
	bool tcp = a->sa.any.sa_family != AF_UNIX;

	if (asked->sa.any.sa_family == AF_INET6 && is_loopback(asked))
		return true;
	if (asked->sa.any.sa_family == AF_INET &&
	    asked->sa.v4.sin_addr.s_addr == htonl(INADDR_LOOPBACK))
		return true;
	return tcp && (is_wildcard(a) || same_address(a, asked));
}

/* Return whether a client may send this port. If no port is sent, the default port of the scheme is
 * meant. A socket file has no port, so its clients may send any port. */
static bool port_allowed(const struct authority *a, const char *port)
{
	if (a->sa.any.sa_family == AF_UNIX)
		return !port || port_of(port) >= 0;
	return (port ? port_of(port) : a->tls ? 443 : 80) == a->port;
}

bool authority_host_fits(const char *text)
{
	char buf[HOST_MAX];
	char *host, *port;

	if (snprintf(buf, sizeof(buf), "%s", text) >= (int)sizeof(buf) || buf[0] == '[' ||
	    !split(buf, &host, &port))
		return false;
	return *host &&
	       strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") ==
		   strlen(host) &&
	       (!port || port_of(port) > 0);
}

/* Return whether `hosts` lists the host. A name without a port matches any port, since a proxy in
 * front of us has its own port. */
static bool is_listed(const struct authority *a, const char *host, const char *port)
{
	char full[HOST_MAX + 8];

	snprintf(full, sizeof(full), "%s:%s", host, port ? port : "");
	for (int i = 0; a->hosts && i < a->hosts->n; i++)
		if (strcasecmp(a->hosts->items[i], host) == 0 ||
		    (port && strcasecmp(a->hosts->items[i], full) == 0))
			return !port || port_of(port) > 0;
	return false;
}

bool authority_allows_host(const struct authority *a, struct weir_slice value)
{
	char buf[HOST_MAX];
	char *host, *port;
	struct authority asked;

	if (value.n == 0 || value.n >= sizeof(buf) || memchr(value.p, '\0', value.n))
		return false;
	memcpy(buf, value.p, value.n);
	buf[value.n] = '\0';
	bool bracketed = buf[0] == '[';
	if (!split(buf, &host, &port))
		return false;
	if (!bracketed && is_listed(a, host, port))
		return true;
	if (!port_allowed(a, port))
		return false;
	if (!bracketed && strcasecmp(host, "localhost") == 0)
		return true;
	return literal(host, bracketed, &asked) && is_ours(a, &asked);
}

/* Return the part of an origin after "http://" or "https://", or NULL for other schemes. An origin
 * with https comes from a client of our own TLS or of a proxy in front of us. With our own TLS,
 * auth.c has already refused origins with http. */
static const char *behind_scheme(const char *origin)
{
	if (strncasecmp(origin, "http://", 7) == 0)
		return origin + 7;
	return strncasecmp(origin, "https://", 8) == 0 ? origin + 8 : NULL;
}

bool authority_allows_act(const char *host, const char *origin, const char *fetch_site)
{
	if (fetch_site && strcmp(fetch_site, "same-origin") != 0 && strcmp(fetch_site, "none") != 0)
		return false;
	if (!origin)
		return true;
	const char *from = behind_scheme(origin);
	return from && strcasecmp(from, host) == 0;
}
