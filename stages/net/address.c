/* SPDX-License-Identifier: MIT */
/* Parses listen addresses, such as "127.0.0.1:8080", "[::1]:8080", "localhost:8080", ":8080",
 * "unix:/run/weir/web.sock". */
#include "net/address.h"

#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int fail(struct weir_err *err, const char *text, const char *why)
{
	err->code = WEIR_EINVAL;
	snprintf(
	    err->text, sizeof(err->text), "'%s' is not an address to listen on: %s", text, why);
	snprintf(err->hint, sizeof(err->hint),
	    "write HOST:PORT, as in 127.0.0.1:8080 or [::1]:8080, or unix:/PATH");
	return WEIR_EINVAL;
}

/* Split at the last ':' into host (without brackets) and port. */
static bool split(const char *text, char *host, size_t size, const char **port)
{
	const char *colon = strrchr(text, ':');
	const char *begin = text, *end = colon;

	if (!colon)
		return false;
	if (*begin == '[') {
		begin++;
		if (end == text || *--end != ']')
			return false;
	} else if (memchr(begin, ':', (size_t)(end - begin))) {
		return false; /* an IPv6 address without brackets */
	}
	if (end < begin || (size_t)(end - begin) >= size)
		return false;
	memcpy(host, begin, (size_t)(end - begin));
	host[end - begin] = '\0';
	*port = colon + 1;
	return true;
}

static bool port_good(const char *port)
{
	unsigned value = 0;
	size_t n = strspn(port, "0123456789");

	if (n == 0 || n > 5 || port[n] != '\0')
		return false;
	for (size_t i = 0; i < n; i++)
		value = value * 10 + (unsigned)(port[i] - '0');
	return value <= 65535;
}

static int file_fail(struct weir_err *err, const char *path, const char *why, const char *hint)
{
	err->code = WEIR_EINVAL;
	snprintf(err->text, sizeof(err->text), "'unix:%.80s' is not an address to listen on: %s",
	    path, why);
	snprintf(err->hint, sizeof(err->hint), "%s", hint);
	return WEIR_EINVAL;
}

static int parse_file(const char *path, struct address *out, struct weir_err *err)
{
	static const char form[] = "write unix:/PATH, as in unix:/run/weir/web.sock";
	struct sockaddr_un *un = (struct sockaddr_un *)(void *)&out->addr;
	const size_t n = strlen(path);
	char why[80];

	if (path[0] == '@')
		return file_fail(err, path, "abstract names are not supported",
		    "a name without a file has no permissions: any process of the machine could "
		    "connect; write unix:/PATH");
	if (path[0] != '/' || path[n - 1] == '/')
		return file_fail(err, path, "the path of a file must follow, from the root", form);
	if (n >= sizeof(un->sun_path)) {
		snprintf(why, sizeof(why), "the path has %zu bytes, but the kernel takes %zu", n,
		    sizeof(un->sun_path) - 1);
		return file_fail(err, path, why, "choose a shorter folder, such as /run/weir");
	}
	memset(out, 0, sizeof(*out));
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, path, n + 1);
	out->n = sizeof(*un);
	return 0;
}

int address_parse(const char *text, struct address *out, struct weir_err *err)
{
	struct addrinfo hints = {
	    .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	struct addrinfo *found;
	const char *port;
	char host[256];
	int rc;

	if (strncmp(text, "unix:", 5) == 0)
		return parse_file(text + 5, out, err);
	if (!split(text, host, sizeof(host), &port))
		return fail(err, text, "host and port are not separated by ':'");
	if (!port_good(port))
		return fail(err, text, "the port is not a number from 0 to 65535");
	if (host[0] == '\0')
		hints.ai_family = AF_INET;
	rc = getaddrinfo(host[0] ? host : NULL, port, &hints, &found);
	if (rc != 0)
		return fail(err, text, gai_strerror(rc));
	memset(out, 0, sizeof(*out));
	memcpy(&out->addr, found->ai_addr, found->ai_addrlen);
	out->n = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}
