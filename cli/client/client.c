/* SPDX-License-Identifier: MIT */
/*
 * The admin client; see client.h. It sends `Connection: close` and reads until the end of the
 * stream, so it uses Content-Length only to check that the response is complete.
 *
 * The total time for all requests of a thread is limited; client_spent_ns is the part that has been
 * used. The settings are static variables, which the main thread sets before the first request.
 */
#include "client.h"

#include <arpa/inet.h>

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include <jansson.h>

#include "base/clock.h"
#include "client_wire.h"
#include "plain.h"
#include "admin/auth/secret.h"

/** Maximum size of a response. 16 MiB is a guess: the stages of a large graph take about 100 KB. */
#define CLIENT_ANSWER_MAX (16u << 20)

/** Valid bytes of a host name or an IPv4 address. */
#define CLIENT_HOST_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_"

static const char *client_token_file, *client_ca; /* set by client_identify */
static int64_t client_timeout_ns = CLIENT_TIMEOUT_NS;
static _Thread_local int64_t client_spent_ns; /* time that this thread has used so far */

/** Return the value of an environment variable, or NULL if it is not set or empty. */
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

void client_allow(int64_t timeout_ns)
{
	client_timeout_ns = timeout_ns;
}

void client_renew(void)
{
	client_spent_ns = 0;
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

/** Split HOST:PORT or [HOST]:PORT; the port is optional. Returns false if the text has another
 *  form. */
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

/** A request; `body` is NULL or JSON. */
struct client_request {
	const char *method, *path, *body;
};

/** Maximum size of a request: the value of a knob may be a page of text. */
#define CLIENT_REQUEST_MAX 16384

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
	int rc = client_wire_send(wire, head, (size_t)n);
	explicit_bzero(head, sizeof(head));
	return rc;
}

/** Read until the peer closes the connection. *text is NUL-terminated. */
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
		ssize_t got = client_wire_recv(wire, *text + *n, size - *n - 1);
		if (got < 0)
			return WEIR_ESYS;
		if (got == 0)
			break;
		*n += (size_t)got;
	}
	(*text)[*n] = '\0';
	return 0;
}

/** Join the chunks of body[0..*n) in place. Returns false if they are truncated or invalid. */
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

/** Return the value of header `name`, or NULL if it was not sent. The head ends at `body`. */
static const char *client_header(const char *head, const char *body, const char *name)
{
	size_t n = strlen(name);

	for (const char *line = strstr(head, "\r\n"); line && line < body - 4;
	     line = strstr(line + 2, "\r\n"))
		if (strncasecmp(line + 2, name, n) == 0 && line[2 + n] == ':')
			return line + 2 + n + 1 + strspn(line + 2 + n + 1, " ");
	return NULL;
}

/** Parse the response in text[0..n) into `answer`: store the status, and move the body to the
 * beginning of `text`. */
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
		if (errno == ETIMEDOUT)
			return client_fail(err, rc,
			    "%s did not answer in time: it sent nothing for %lld s, or took longer "
			    "than --timeout (%.3g s for all requests)",
			    url, CLIENT_STEP_NS / NS_PER_S, (double)client_timeout_ns / 1e9);
		return client_fail(
		    err, rc, "the connection to %s failed: %s", url, strerror(errno));
	case WEIR_ENOMEM:
		return client_fail(err, rc, "the answer of %s does not fit into memory", url);
	default:
		return client_fail(err, rc, "the server at %s is not a weir admin endpoint", url);
	}
}

/* ---- authentication ---- */

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

/** Read the token, which is "" if none is configured. A socket file requires none. */
static int client_take_token(const struct client_wire *wire, const struct client_address *at,
    const char *url, char token[SECRET_TOKEN_MAX + 1], struct weir_err *err)
{
	const char *path = at->unix_path ? NULL : client_token_path();

	token[0] = '\0';
	if (!path)
		return 0;
	if (!wire->tls && !client_is_local(wire->fd))
		return client_fail(err, WEIR_ESYS,
		    "the token was not sent to %s, because anybody on the way could read it: use "
		    "https://",
		    url);
	struct weir_err why = {0};
	int rc = secret_text(path, "the token", token, &why);
	return rc == 0 ? 0
		       : client_fail(err, rc, "%s%s%s", why.text, *why.hint ? "; " : "", why.hint);
}

/** Fail with the explanation in the response, or with `otherwise` if there is none. */
static int client_quote(struct weir_err *err, const char *url, const struct client_answer *answer,
    const char *otherwise)
{
	json_t *doc = json_loadb(answer->body, answer->n, 0, NULL);
	const char *detail = json_string_value(json_object_get(doc, "detail"));
	char text[200];

	plain_text(text, sizeof(text), detail ? detail : otherwise);
	json_decref(doc);
	return client_fail(err, WEIR_EFAILED, "%s denies access: %s", url, text);
}

/** Return 0 if the server grants access, otherwise fail with a message. A 403 for another method
 *  than GET is reported by the verb itself. */
static int client_shut_out(const char *url, const struct client_request *request,
    const struct client_answer *answer, struct weir_err *err)
{
	const char *path = client_token_path();

	if (answer->status == 401 && path)
		return client_fail(err, WEIR_EFAILED,
		    "%s does not accept the token in %s: use one of its 'admin: { tokens: }' with "
		    "--token-file",
		    url, path);
	if (answer->status == 401)
		return client_fail(err, WEIR_EFAILED,
		    "%s requires a token: name the file that holds it with --token-file or in "
		    "WEIR_TOKEN_FILE",
		    url);
	if (answer->status == 429)
		return client_fail(err, WEIR_EFAILED,
		    "%s does not accept this token, and too many wrong ones came from here: check "
		    "--token-file, then try again in %d s",
		    url, answer->retry_after_s);
	if (answer->status == 403 && strcmp(request->method, "GET") == 0)
		return client_quote(err, url, answer, "it answered 403");
	return 0;
}

/* ---- requests ---- */

static int client_exchange(const struct client_wire *wire, const struct client_address *at,
    const char *url, const struct client_request *request, struct client_answer *answer,
    struct weir_err *err)
{
	char token[SECRET_TOKEN_MAX + 1];
	char *text = NULL;
	size_t n = 0;

	int rc = client_take_token(wire, at, url, token, err);
	if (rc != 0)
		return rc == WEIR_EINVAL ? WEIR_ESYS : rc; /* WEIR_EINVAL would mean a wrong URL */
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
	const char *ca = client_ca ? client_ca : client_env("WEIR_CA");
	struct client_address at;
	struct client_wire wire;
	int64_t began_ns = clock_now_ns();

	int rc = client_parse(url, &at, err);
	if (rc != 0)
		return rc;
	*err = (struct weir_err){0};
	rc = client_wire_open(&wire, &at, ca, began_ns + client_timeout_ns - client_spent_ns, err);
	if (rc != 0 && !err->text[0])
		client_fail(
		    err, WEIR_ESYS, "no weir server answers at %s: %s", url, strerror(errno));
	if (rc == 0) {
		rc = client_exchange(&wire, &at, url, request, answer, err);
		client_wire_close(&wire);
	}
	client_spent_ns += clock_now_ns() - began_ns;
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
