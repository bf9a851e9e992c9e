/* SPDX-License-Identifier: MIT */
/*
 * Measures the cost of clients that watch events: opens N connections to /events of a running
 * server, discards their data, and reads the CPU time of the server's thread "admin" from /proc.
 *
 *   watchers PORT PID [N=500] [HZ=1] [SECONDS=20]
 *
 * Prints the share of a core that the thread uses without watchers (for 5 s) and with N watchers,
 * and the ticks and bytes per watcher.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

#define WATCHERS_MAX 600

struct watcher {
	int fd;
	long ticks, bytes;
};

static struct watcher watcher[WATCHERS_MAX];
static struct pollfd polled[WATCHERS_MAX];

/* Return the CPU time in ns of the thread "admin" of process `pid`, from its schedstat, or -1 if
 * there is no such thread. */
static long long admin_ns(const char *pid)
{
	char path[128], word[64];
	long long ns = -1;
	struct dirent *e;

	snprintf(path, sizeof(path), "/proc/%.20s/task", pid);
	DIR *dir = opendir(path);
	while (dir && ns < 0 && (e = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%.20s/task/%.20s/comm", pid, e->d_name);
		FILE *f = fopen(path, "re");
		bool found = f && fgets(word, sizeof(word), f) && strcmp(word, "admin\n") == 0;
		if (f)
			fclose(f);
		if (!found)
			continue;
		snprintf(path, sizeof(path), "/proc/%.20s/task/%.20s/schedstat", pid, e->d_name);
		f = fopen(path, "re");
		if (f && fscanf(f, "%lld", &ns) != 1)
			ns = -1;
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return ns;
}

static int come(int port, int hz)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
	    .sin_port = htons((uint16_t)port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	char request[128];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int n = snprintf(request, sizeof(request),
	    "GET /events?hz=%d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", hz, port);

	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0 ||
	    send(fd, request, (size_t)n, MSG_NOSIGNAL) != n)
		return -1;
	return fd;
}

/* Read from all watchers until `until_ns`. Ticks are counted by their first line; a line that is
 * split between two reads is missed. */
static void watch(int n, int64_t until_ns)
{
	static char buf[1 << 17];

	for (int64_t left; (left = until_ns - bench_now_ns()) > 0;) {
		poll(polled, (nfds_t)n, (int)(left / 1000000) + 1);
		for (int i = 0; i < n; i++) {
			if (!(polled[i].revents & (POLLIN | POLLHUP)))
				continue;
			ssize_t got = recv(polled[i].fd, buf, sizeof(buf) - 1, MSG_DONTWAIT);
			if (got <= 0) {
				polled[i].fd = -1; /* disconnected: poll ignores it */
				continue;
			}
			buf[got] = '\0';
			watcher[i].bytes += got;
			for (const char *p = buf; (p = strstr(p, "event: tick")); p++)
				watcher[i].ticks++;
		}
	}
}

static double share(const char *pid, int n, int seconds)
{
	int64_t then_ns = bench_now_ns();
	long long before = admin_ns(pid);

	watch(n, then_ns + seconds * 1000000000LL);
	return (double)(admin_ns(pid) - before) / (double)(bench_now_ns() - then_ns) * 100;
}

int main(int argc, char **argv)
{
	int port = argc > 2 ? atoi(argv[1]) : 0, n = argc > 3 ? atoi(argv[3]) : 500;
	int hz = argc > 4 ? atoi(argv[4]) : 1, seconds = argc > 5 ? atoi(argv[5]) : 20;
	struct rlimit limit = {4096, 4096};
	long ticks = 0, bytes = 0;
	int here = 0;

	if (port <= 0 || n < 1 || n > WATCHERS_MAX || admin_ns(argv[2]) < 0) {
		fprintf(stderr, "usage: watchers PORT PID [N=500] [HZ=1] [SECONDS=20]\n");
		return 2;
	}
	setrlimit(RLIMIT_NOFILE, &limit);
	bench_header("watchers");
	printf("nobody: %.2f %% of a core\n", share(argv[2], 0, 5));
	for (int i = 0; i < n; i++)
		polled[i] = (struct pollfd){.fd = come(port, hz), .events = POLLIN};
	watch(n, bench_now_ns() + 2000000000LL); /* discard the initial data */
	memset(watcher, 0, sizeof(watcher));
	double cpu = share(argv[2], n, seconds);
	for (int i = 0; i < n; i++) {
		here += polled[i].fd >= 0;
		ticks += watcher[i].ticks;
		bytes += watcher[i].bytes;
	}
	printf("%d watchers (%d stayed) at %d Hz: %.2f %% of a core, %.2f ticks/s and %.0f bytes/s "
	       "each\n",
	    n, here, hz, cpu, (double)ticks / n / seconds, (double)bytes / n / seconds);
	return here == n ? 0 : 1;
}
