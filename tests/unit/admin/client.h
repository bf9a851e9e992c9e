/* SPDX-License-Identifier: MIT */
/*
 * A raw client for tests of the admin endpoint. It sends the bytes it is given and reads until the
 * server closes. Waits are bounded, so a hanging server fails the test instead of hanging it.
 */
#ifndef WEIR_TESTS_ADMIN_CLIENT_H
#define WEIR_TESTS_ADMIN_CLIENT_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Reached only when the server hangs. The admin thread runs at the lowest priority: beside four
 * busy processes and under ThreadSanitizer it has needed more than 60 s. */
#define CLIENT_PATIENCE_MS 200000

static inline int client_connect_with(int fd, int port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
	    .sin_port = htons((uint16_t)port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	return connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 ? fd : -1;
}

/* Connect from another address of this host, such as "127.0.0.2". */
static inline int client_connect_from(const char *ip, int port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET, ip, &sa.sin_addr);
	return bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 ? client_connect_with(fd, port)
								 : -1;
}

static inline int client_connect(int port)
{
	return client_connect_with(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port);
}

static inline bool client_send(int fd, const char *text)
{
	size_t n = strlen(text);

	return send(fd, text, n, MSG_NOSIGNAL) == (ssize_t)n;
}

/* Read into `buf` until the server closes. Returns the length, or -1 when it does not close in
 * time. */
static inline ssize_t client_read(int fd, char *buf, size_t size)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	size_t n = 0;

	while (poll(&p, 1, CLIENT_PATIENCE_MS) > 0 && n < size - 1) {
		ssize_t got = recv(fd, buf + n, size - 1 - n, 0);
		if (got <= 0) {
			buf[n] = '\0';
			return (ssize_t)n;
		}
		n += (size_t)got;
	}
	buf[n] = '\0';
	return -1;
}

/* The status of the response in `buf`; 0 when there is none. */
static inline int client_status(const char *buf)
{
	return strncmp(buf, "HTTP/1.1 ", 9) == 0 ? atoi(buf + 9) : 0;
}

/* Send `request` on a new connection. Returns the status; the whole response is in `buf`. */
static inline int client_ask(int port, const char *request, char *buf, size_t size)
{
	int fd = client_connect(port);

	buf[0] = '\0';
	client_send(fd, request);
	ssize_t n = client_read(fd, buf, size);
	close(fd);
	return n < 0 ? -1 : client_status(buf);
}

/* Send "METHOD path" with the right Host, and with these fields and this body. */
static inline int client_do(int port, const char *method, const char *path, const char *fields,
    const char *body, char *buf, size_t size)
{
	char request[4096];

	snprintf(request, sizeof(request),
	    "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%sContent-Length: %zu\r\n\r\n%s", method, path,
	    port, fields, strlen(body), body);
	return client_ask(port, request, buf, size);
}

static inline int client_get(int port, const char *path, char *buf, size_t size)
{
	return client_do(port, "GET", path, "", "", buf, size);
}

#endif
