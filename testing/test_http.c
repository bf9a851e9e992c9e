/* SPDX-License-Identifier: MIT */
/* HTTP requests of a test; see weir/test.h. Each has a connection, which the server closes after the
 * answer, so an answer ends where the connection does. */
#include <weir/test.h>

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/http.h>

#define PATIENCE_MS 60000

struct weir_test_call {
	int fd;
};

static int connect_to(int port)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
	    .sin_port = htons((uint16_t)port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd != -1 && connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0)
		return fd;
	if (fd != -1)
		close(fd);
	return -1;
}

static bool send_all(int fd, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);
		if (sent == -1 && errno == EINTR)
			continue;
		if (sent <= 0)
			return false;
		p += sent;
		n -= (size_t)sent;
	}
	return true;
}

struct weir_test_call *weir_test_send(struct weir_test *test, const char *method,
    const char *target, const char *fields, const void *body, size_t n)
{
	struct weir_stage *source = weir_graph_stage(weir_test_graph(test), "source");
	struct weir_test_call *call = source ? calloc(1, sizeof(*call)) : NULL;
	char *head = NULL;

	if (!call)
		return NULL;
	call->fd = connect_to(weir_http_port(source, 0));
	int size = asprintf(&head, "%s %s HTTP/1.1\r\nHost: test\r\nConnection: close\r\n%s",
	    method, target, fields ? fields : "");
	bool sent = call->fd != -1 && size >= 0 && send_all(call->fd, head, (size_t)size);
	if (size >= 0)
		free(head);
	char length[64];
	size = n > 0 ? snprintf(length, sizeof(length), "Content-Length: %zu\r\n\r\n", n)
		     : snprintf(length, sizeof(length), "\r\n");
	/* the server may have answered and closed before it has read the body */
	if (sent && send_all(call->fd, length, (size_t)size))
		send_all(call->fd, body, n);
	if (sent)
		return call;
	if (call->fd != -1)
		close(call->fd);
	free(call);
	return NULL;
}

/* Read until the end of the connection. Returns NULL if there is no memory, or after PATIENCE_MS without a
 * byte. */
static char *read_all(int fd, size_t *n)
{
	size_t size = 4096;
	char *text = malloc(size);

	*n = 0;
	while (text) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		if (size - *n < 2) {
			char *bigger = realloc(text, size *= 2);
			if (!bigger)
				break;
			text = bigger;
		}
		if (poll(&p, 1, PATIENCE_MS) == 0)
			break;
		ssize_t got = read(fd, text + *n, size - *n - 1);
		if (got == -1 && errno == EINTR)
			continue;
		if (got <= 0) {
			text[*n] = '\0';
			return text;
		}
		*n += (size_t)got;
	}
	free(text);
	return NULL;
}

/* Join the chunks of a body in place. Returns its length. */
static size_t join_chunks(char *body, size_t n)
{
	char *at = body, *to = body, *end = body + n, *line;

	while (at < end && (line = memchr(at, '\n', (size_t)(end - at)))) {
		size_t size = strtoul(at, NULL, 16);
		at = line + 1;
		if (size == 0 || size > (size_t)(end - at))
			break;
		memmove(to, at, size);
		to += size;
		at += size + 2;
	}
	*to = '\0';
	return (size_t)(to - body);
}

int weir_test_receive(struct weir_test_call *call, struct weir_test_answer *answer)
{
	size_t n;

	*answer = (struct weir_test_answer){0};
	if (!call)
		return WEIR_ESYS;
	answer->text = read_all(call->fd, &n);
	close(call->fd);
	free(call);
	char *body = answer->text ? strstr(answer->text, "\r\n\r\n") : NULL;
	if (!body || sscanf(answer->text, "HTTP/1.%*d %d", &answer->status) != 1) {
		weir_test_answer_free(answer);
		return WEIR_EFAILED;
	}
	body += 4;
	answer->body = body;
	answer->body_n = n - (size_t)(body - answer->text);
	struct weir_slice coding = weir_test_field(answer, "Transfer-Encoding");
	if (weir_slice_is(coding, "chunked"))
		answer->body_n = join_chunks(body, answer->body_n);
	return 0;
}

int weir_test_get(struct weir_test *test, const char *target, struct weir_test_answer *answer)
{
	return weir_test_receive(weir_test_send(test, "GET", target, NULL, NULL, 0), answer);
}

struct weir_slice weir_test_field(const struct weir_test_answer *answer, const char *name)
{
	size_t n = strlen(name);
	const char *line = answer->text;

	while (line && (line = strstr(line, "\r\n")) && (line += 2) < answer->body - 2) {
		if (strncasecmp(line, name, n) != 0 || line[n] != ':')
			continue;
		const char *value = line + n + 1 + strspn(line + n + 1, " \t");
		return (struct weir_slice){value, strcspn(value, "\r")};
	}
	return (struct weir_slice){NULL, 0};
}

void weir_test_answer_free(struct weir_test_answer *answer)
{
	free(answer->text);
	*answer = (struct weir_test_answer){0};
}
