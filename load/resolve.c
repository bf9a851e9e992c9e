/* SPDX-License-Identifier: MIT */
/* Resolves host names; see resolve.h. */
#include "load/resolve.h"

#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "load/sentence.h"

/* Time limit for an address to accept a connection if the host has several. 1 s is a guess. */
#define TRY_MS 1000

static bool answers(const struct addrinfo *a)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int why = -1;
	socklen_t n = sizeof(why);

	if (fd == -1)
		return false;
	if (connect(fd, a->ai_addr, a->ai_addrlen) == 0) {
		why = 0;
	} else {
		struct pollfd p = {.fd = fd, .events = POLLOUT};
		if (poll(&p, 1, TRY_MS) == 1)
			getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &n);
	}
	close(fd);
	return why == 0;
}

int resolve(const struct load_plan *plan, struct sockaddr_storage *address, socklen_t *n,
    struct weir_err *err)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *list, *use;

	if (plan->socket[0]) {
		struct sockaddr_un file = {.sun_family = AF_UNIX};
		memcpy(file.sun_path, plan->socket, sizeof(plan->socket));
		memcpy(address, &file, sizeof(file));
		*n = sizeof(file);
		return 0;
	}
	if (getaddrinfo(plan->host, plan->port, &hints, &list) != 0)
		return sentence(err, WEIR_EINVAL, "host '%s' cannot be resolved", plan->host);
	use = list;
	for (struct addrinfo *a = list; list->ai_next && a; a = a->ai_next) {
		if (answers(a)) {
			use = a;
			break;
		}
	}
	memcpy(address, use->ai_addr, use->ai_addrlen);
	*n = use->ai_addrlen;
	freeaddrinfo(list);
	return 0;
}
