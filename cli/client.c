/* SPDX-License-Identifier: MIT */
/*
 * The admin client; see client.h. It says `Connection: close` and reads to the end of the stream,
 * so Content-Length only tells whether the answer is whole.
 */
#include "client.h"

#include <arpa/inet.h>

#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "client_tls.h"
#include "secret.h"

/** Longest answer that is believed. The stages of a large graph are some 100 KB: a guess. */
#define CLIENT_ANSWER_MAX (16u << 20)

/** Bytes of a host name or an IPv4 address. */
#define CLIENT_HOST_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_"

struct client_address {
	char host[256];
	char port[16];
	const char *unix_path; /* NULL for TCP */
	bool tls;
};

/** A connection, in clear or not. */
struct client_wire {
	int fd;
	struct client_tls *tls; /* NULL: in clear */
};

static const char *client_token_file, *client_ca; /* client_identify */

/** NULL when it is not set, or empty. */
static const char *client_env(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

void client_identify(const char *token_file, const char *ca)
{
	client_token_file = token_file;
	client_ca = ca;
}

static const char *client_token_path(void)
{
	return client_token_file ? client_token_file : client_env("WEIR_TOKEN_FILE");
}

static int client_fail(struct weir_err *err, int code, const char *fmt, ...) WEIR_PRINTF(3, 4);

static int client_fail(struct weir_err *err, int code, const char *fmt, ...)
{
	va_list ap;

	err->code = code;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return code;
}

/** Split HOST:PORT or [HOST]:PORT; the port may be left out. False when it is neither. */
static bool client_split(const char *text, struct client_address *at)
{
	const char *host = text;
	const char *end = host + strspn(host, CLIENT_HOST_BYTES);

	if (*text == '[') {
		host = text + 1;
		end = host + strspn(host, "0123456789abcdefABCDEF:.%");
		if (*end != ']')
			return false;
	}
	size_t n = (size_t)(end - host);
	if (n == 0 || n >= sizeof(at->host))
		return false;
	memcpy(at->host, host, n);
	at->host[n] = '\0';
	end += *end == ']';
	if (*end == ':') {
		n = strspn(end + 1, "0123456789");
		if (n == 0 || n >= sizeof(at->port))
			return false;
		memcpy(at->port, end + 1, n);
		at->port[n] = '\0';
		end += 1 + n;
	}
	return *end == '\0' || strcmp(end, "/") == 0;
}

static int client_parse(const char *url, struct client_address *at, struct weir_err *err)
{
	*at = (struct client_address){.port = "9900"};
	if (strncmp(url, "unix:", 5) == 0) {
		at->unix_path = url + 5;
		return 0;
	}
	at->tls = strncmp(url, "https://", 8) == 0;
	const char *rest = strncmp(url, "http://", 7) == 0 ? url + 7 : at->tls ? url + 8 : url;
	if (client_split(rest, at))
		return 0;
	return client_fail(
	    err, WEIR_EINVAL, "'%s' is not an address like %s", url, CLIENT_DEFAULT_URL);
}

static int client_try(int family, const struct sockaddr *address, socklen_t n)
{
	const struct timeval wait = {.tv_sec = 5};
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	int rc;
	do /* a signal that stops and continues us ends the call; on Linux the next one goes on with it */
		rc = connect(fd, address, n);
	while (rc != 0 && errno == EINTR);
	if (rc == 0)
		return fd;
	int saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

static int client_connect_unix(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(address.sun_path, path, strlen(path) + 1);
	return client_try(AF_UNIX, (const struct sockaddr *)&address, sizeof(address));
}

static int client_connect_tcp(const struct client_address *at)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *list;
	int fd = -1;

	if (getaddrinfo(at->host, at->port, &hints, &list) != 0) {
		errno = EHOSTUNREACH;
		return -1;
	}
	for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
		fd = client_try(a->ai_family, a->ai_addr, a->ai_addrlen);
	freeaddrinfo(list);
	return fd;
}

/** What is asked: `body` NULL or JSON. */
struct client_request {
	const char *method, *path, *body;
};

/** Longest request: a knob's value may be a page of text. */
#define CLIENT_REQUEST_MAX 16384

/** Send all of p[n]. 0 or WEIR_ESYS. */
static int client_write(const struct client_wire *wire, const char *p, int n)
{
	for (int done = 0; done < n;) {
		ssize_t sent = wire->tls
				   ? client_tls_send(wire->tls, p + done, (size_t)(n - done))
				   : send(wire->fd, p + done, (size_t)(n - done), MSG_NOSIGNAL);
		if (sent < 0 && errno != EINTR)
			return WEIR_ESYS;
		done += sent > 0 ? (int)sent : 0;
	}
	return 0;
}

static int client_send(const struct client_wire *wire, const struct client_address *at,
    const struct client_request *request, const char *token)
{
	bool bare = at->unix_path || strchr(at->host, ':');
	char head[CLIENT_REQUEST_MAX], about[96] = "";

	if (request->body)
		snprintf(about, sizeof(about),
		    "Content-Type: application/json\r\nContent-Length: %zu\r\n",
		    strlen(request->body));
	int n = snprintf(head, sizeof(head),
	    "%s %s HTTP/1.1\r\nHost: %s%s%s%s%s\r\nConnection: close\r\n%s%s%s%s\r\n%s",
	    request->method, request->path, bare && !at->unix_path ? "[" : "",
	    at->unix_path ? "localhost" : at->host, bare && !at->unix_path ? "]" : "",
	    at->unix_path ? "" : ":", at->unix_path ? "" : at->port,
	    *token ? "Authorization: Bearer " : "", token, *token ? "\r\n" : "", about,
	    request->body ? request->body : "");
	if (n < 0 || (size_t)n >= sizeof(head)) {
		errno = EMSGSIZE;
		return WEIR_ESYS;
	}
	int rc = client_write(wire, head, n);
	explicit_bzero(head, sizeof(head));
	return rc;
}

/** Read until the peer closes. *text ends in NUL. */
static int client_read(const struct client_wire *wire, char **text, size_t *n)
{
	size_t size = 0;

	*text = NULL;
	*n = 0;
	for (;;) {
		if (*n + 1 >= size) {
			size = size ? size * 2 : 64 * 1024;
			char *more = size > CLIENT_ANSWER_MAX ? NULL : realloc(*text, size);
			if (!more)
				return WEIR_ENOMEM;
			*text = more;
		}
		ssize_t got = wire->tls ? client_tls_recv(wire->tls, *text + *n, size - *n - 1)
					: recv(wire->fd, *text + *n, size - *n - 1, 0);
		if (got < 0 && errno != EINTR)
			return WEIR_ESYS;
		if (got == 0)
			break;
		*n += got > 0 ? (size_t)got : 0;
	}
	(*text)[*n] = '\0';
	return 0;
}

/** Join the chunks of body[0..*n) in place. False when they are cut short or no chunks. */
static bool client_join_chunks(char *body, size_t *n)
{
	char *from = body, *to = body, *const end = body + *n;

	for (;;) {
		char *line_end;
		unsigned long size = strtoul(from, &line_end, 16);
		line_end = line_end == from ? NULL : strstr(line_end, "\r\n");
		if (!line_end)
			return false;
		if (size == 0)
			break;
		from = line_end + 2;
		if (from > end || size > (size_t)(end - from))
			return false;
		memmove(to, from, size);
		to += size;
		from += size;
		if (strncmp(from, "\r\n", 2) != 0)
			return false;
		from += 2;
	}
	*n = (size_t)(to - body);
	*to = '\0';
	return true;
}

/** The value of header `name` in the head, which ends at `body`; NULL when it has none. */
static const char *client_header(const char *head, const char *body, const char *name)
{
	size_t n = strlen(name);

	for (const char *line = strstr(head, "\r\n"); line && line < body - 4;
	     line = strstr(line + 2, "\r\n"))
		if (strncasecmp(line + 2, name, n) == 0 && line[2 + n] == ':')
			return line + 2 + n + 1 + strspn(line + 2 + n + 1, " ");
	return NULL;
}

/** Make text[0..n) the answer: the status, and the body moved to the front. */
static int client_take(char *text, size_t n, struct client_answer *answer)
{
	char *body = strstr(text, "\r\n\r\n");

	if (!body || sscanf(text, "HTTP/1.%*d %d", &answer->status) != 1)
		return WEIR_EFAILED;
	body += 4;
	size_t length = n - (size_t)(body - text);
	const char *wait = client_header(text, body, "Retry-After");
	answer->retry_after_s = wait ? atoi(wait) : 0;
	const char *encoding = client_header(text, body, "Transfer-Encoding");
	const char *announced = client_header(text, body, "Content-Length");
	if (encoding) {
		if (!client_join_chunks(body, &length))
			return WEIR_EFAILED;
	} else if (announced && strtoull(announced, NULL, 10) != length) {
		return WEIR_EFAILED;
	}
	memmove(text, body, length + 1);
	answer->body = text;
	answer->n = length;
	return 0;
}

static int client_explain(struct weir_err *err, int rc, const char *url)
{
	switch (rc) {
	case WEIR_ESYS:
		return client_fail(err, rc, "%s broke off: %s", url, strerror(errno));
	case WEIR_ENOMEM:
		return client_fail(err, rc, "the answer of %s does not fit into memory", url);
	default:
		return client_fail(err, rc, "what answers at %s is no weir admin endpoint", url);
	}
}

/* ---- who we are ---- */

static bool client_is_local(int fd)
{
	struct sockaddr_storage peer = {0};
	socklen_t n = sizeof(peer);
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&peer;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&peer;

	if (getpeername(fd, (struct sockaddr *)&peer, &n) != 0)
		return false;
	if (peer.ss_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return peer.ss_family == AF_UNIX ||
	       (peer.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr));
}

/** The token, "" without one. A socket file needs none. */
static int client_take_token(const struct client_wire *wire, const struct client_address *at,
    const char *url, char token[SECRET_TOKEN_MAX + 1], struct weir_err *err)
{
	const char *path = at->unix_path ? NULL : client_token_path();

	token[0] = '\0';
	if (!path)
		return 0;
	if (!wire->tls && !client_is_local(wire->fd))
		return client_fail(err, WEIR_ESYS,
		    "the token was not sent to %s, since anybody on the way could read it: use "
		    "https://",
		    url);
	struct weir_err why = {0};
	int rc = secret_text(path, "the token", token, &why);
	return rc == 0 ? 0
		       : client_fail(err, rc, "%s%s%s", why.text, *why.hint ? "; " : "", why.hint);
}

/** What the server says itself, else `otherwise`. */
static int client_quote(struct weir_err *err, const char *url, const struct client_answer *answer,
    const char *otherwise)
{
	const char *from = strstr(answer->body, "\"detail\":\"");
	int n = from ? (int)strcspn(from + 10, "\"") : 0;

	return client_fail(err, WEIR_EFAILED, "%s does not let you look: %.*s", url,
	    n > 0 ? n : (int)strlen(otherwise), n > 0 ? from + 10 : otherwise);
}

/** Does the server answer, but not to us? Acts that we may not do are told by who tried them. */
static int client_shut_out(const char *url, const struct client_request *request,
    const struct client_answer *answer, struct weir_err *err)
{
	const char *path = client_token_path();

	if (answer->status == 401 && path)
		return client_fail(err, WEIR_EFAILED,
		    "%s does not know the token in %s: give one of those under its 'admin: { "
		    "tokens: "
		    "}' with --token-file",
		    url, path);
	if (answer->status == 401)
		return client_fail(err, WEIR_EFAILED,
		    "%s asks for a token: give the file that holds it with --token-file, or in "
		    "WEIR_TOKEN_FILE",
		    url);
	if (answer->status == 429)
		return client_fail(err, WEIR_EFAILED,
		    "%s looks at no token from here for %d s, since too many were wrong: check "
		    "--token-file and try again then",
		    url, answer->retry_after_s);
	if (answer->status == 403 && strcmp(request->method, "GET") == 0)
		return client_quote(err, url, answer, "it says 403");
	return 0;
}

/* ---- asking ---- */

static int client_exchange(const struct client_wire *wire, const struct client_address *at,
    const char *url, const struct client_request *request, struct client_answer *answer,
    struct weir_err *err)
{
	char token[SECRET_TOKEN_MAX + 1];
	char *text = NULL;
	size_t n = 0;

	int rc = client_take_token(wire, at, url, token, err);
	if (rc != 0)
		return rc == WEIR_EINVAL ? WEIR_ESYS : rc; /* the URL is right */
	rc = client_send(wire, at, request, token);
	explicit_bzero(token, sizeof(token));
	if (rc == 0)
		rc = client_read(wire, &text, &n);
	if (rc == 0)
		rc = client_take(text, n, answer);
	if (rc != 0)
		client_explain(err, rc, url);
	else
		rc = client_shut_out(url, request, answer, err);
	if (rc != 0) {
		free(text);
		answer->body = NULL;
	}
	return rc;
}

static int client_ask(const char *url, const struct client_request *request,
    struct client_answer *answer, struct weir_err *err)
{
	struct client_address at;
	struct client_wire wire = {0};

	int rc = client_parse(url, &at, err);
	if (rc != 0)
		return rc;
	wire.fd = at.unix_path ? client_connect_unix(at.unix_path) : client_connect_tcp(&at);
	if (wire.fd < 0)
		return client_fail(
		    err, WEIR_ESYS, "no weir server answers at %s: %s", url, strerror(errno));
	if (at.tls)
		rc = client_tls_begin(wire.fd, at.host,
		    client_ca ? client_ca : client_env("WEIR_CA"), &wire.tls, err);
	if (rc == 0)
		rc = client_exchange(&wire, &at, url, request, answer, err);
	client_tls_end(wire.tls);
	close(wire.fd);
	return rc;
}

int client_get(
    const char *url, const char *path, struct client_answer *answer, struct weir_err *err)
{
	return client_ask(
	    url, &(struct client_request){.method = "GET", .path = path}, answer, err);
}

int client_put(const char *url, const char *path, const char *body, struct client_answer *answer,
    struct weir_err *err)
{
	return client_act(url, "PUT", path, body, answer, err);
}

int client_act(const char *url, const char *method, const char *path, const char *body,
    struct client_answer *answer, struct weir_err *err)
{
	const struct client_request request = {.method = method, .path = path, .body = body};

	return client_ask(url, &request, answer, err);
}
