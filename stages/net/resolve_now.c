/* SPDX-License-Identifier: MIT */
/* Asks by c-ares without a loop; see resolve_now.h. */
#include "net/resolve_now.h"

#include <ares.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/clock.h>

#include "net/resolve_ask.h"
#include "net/resolve_name.h"

#define NS_PER_MS 1000000LL

struct now {
	struct net_address *address;
	int n;
	bool done;
	const char *why;
};

static void on_answer(void *arg, int rc, int timeouts, struct ares_addrinfo *info)
{
	struct now *now = arg;

	(void)timeouts;
	now->done = true;
	now->why = rc == ARES_SUCCESS ? "the name has no address" : ares_strerror(rc);
	for (const struct ares_addrinfo_node *node = info ? info->nodes : NULL;
	     node && now->n < RESOLVE_ADDRESSES_MAX; node = node->ai_next) {
		struct sockaddr_storage addr = {0};
		if (node->ai_addrlen > sizeof(addr))
			continue;
		memcpy(&addr, node->ai_addr, node->ai_addrlen);
		now->n += net_address_of(&addr, &now->address[now->n]);
	}
	ares_freeaddrinfo(info);
}

/* Wait for the sockets of `ares` for `most_ns`, and let it read. */
static void step(ares_channel ares, int64_t most_ns)
{
	ares_socket_t fd[ARES_GETSOCK_MAXNUM];
	struct pollfd p[ARES_GETSOCK_MAXNUM];
	struct timeval most = {most_ns / 1000000000, most_ns % 1000000000 / 1000}, tv, *due;
	int bits = ares_getsock(ares, fd, ARES_GETSOCK_MAXNUM), n = 0;

	for (int i = 0; i < ARES_GETSOCK_MAXNUM; i++) {
		short events = (short)((ARES_GETSOCK_READABLE(bits, i) ? POLLIN : 0) |
				       (ARES_GETSOCK_WRITABLE(bits, i) ? POLLOUT : 0));
		if (events)
			p[n++] = (struct pollfd){.fd = fd[i], .events = events};
	}
	due = ares_timeout(ares, &most, &tv);
	poll(p, (nfds_t)n, (int)(due->tv_sec * 1000 + due->tv_usec / 1000 + 1));
	for (int i = 0; i < n; i++)
		ares_process_fd(ares, p[i].revents & ~POLLOUT ? p[i].fd : ARES_SOCKET_BAD,
		    p[i].revents & POLLOUT ? p[i].fd : ARES_SOCKET_BAD);
	ares_process_fd(ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

static const char *ask_now(ares_channel ares, const char *name, int64_t until_ns, struct now *now)
{
	static const struct ares_addrinfo_hints hints = {
	    .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};

	ares_getaddrinfo(ares, name, NULL, &hints, on_answer, now);
	while (!now->done) {
		int64_t left_ns = until_ns - weir_clock_ns(CLOCK_MONOTONIC);
		if (left_ns <= 0)
			break;
		step(ares, left_ns);
	}
	if (now->done)
		return now->n > 0 ? "" : now->why;
	ares_cancel(ares);
	now->n = 0;
	return "no name server has answered in time";
}

/* "localhost" and addresses need no server. Returns whether `name` is one. */
static bool known(const char *name, struct net_address *address, int *n)
{
	char text[RESOLVE_NAME_MAX + 1];

	switch (name_examine(name, text, &address[0])) {
	case NAME_ADDRESS:
		*n = 1;
		return true;
	case NAME_LOCALHOST:
		net_address_read((struct weir_slice){"127.0.0.1", 9}, &address[0]);
		net_address_read((struct weir_slice){"::1", 3}, &address[1]);
		*n = 2;
		return true;
	default:
		return false;
	}
}

const char *resolve_now(const struct resolve_conf *conf, const char *name, int64_t *left_ns,
    struct net_address *address, int *n)
{
	char file[] = "/etc/resolv.conf";
	struct ares_options options = {
	    .timeout = conf->timeout_ns > 0 ? (int)(conf->timeout_ns / NS_PER_MS) : 2000,
	    .tries = conf->tries > 0 ? conf->tries : 2,
	    .resolvconf_path = conf->file ? (char *)(uintptr_t)conf->file : file};
	int64_t begin_ns = weir_clock_ns(CLOCK_MONOTONIC);
	struct now now = {.address = address};
	ares_channel ares;
	const char *why;

	*n = 0;
	if (known(name, address, n))
		return "";
	asker_library();
	if (ares_init_options(
		&ares, &options, ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_RESOLVCONF) != 0)
		return "the resolver of names cannot start";
	if (conf->servers && ares_set_servers_ports_csv(ares, conf->servers) != ARES_SUCCESS)
		why = "'resolve.servers' is not a list of name servers";
	else
		why = ask_now(ares, name, begin_ns + *left_ns, &now);
	ares_destroy(ares);
	*n = now.n;
	*left_ns -= weir_clock_ns(CLOCK_MONOTONIC) - begin_ns;
	return why;
}
