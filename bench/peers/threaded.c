/* SPDX-License-Identifier: MIT */
/*
 * Servers with threads but no stages, for comparison. They have the same parser, handlers and
 * responses as weir, but use one thread per connection (--mode thread) or a fixed pool (--mode
 * pool).
 *
 *   weir_threaded --mode pool --threads 4 --queue 64 --listen 8080 \
 *       --stage burn:time=1ms --stage respond:body=done
 *
 * The server listens on 127.0.0.1, prints its address on standard output, and exits with 0 on
 * SIGTERM or SIGINT.
 */
#include "threaded.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define EXIT_USAGE 2

/* Listen backlog, the same as in http.server; the kernel's limit may be lower. */
#define BACKLOG 1024

struct options {
	bool pool;
	int port; /* 0 selects a free port */
	int threads, queue;
	int n_stages;
	char *stage[WORK_STAGES_MAX];
};

static const struct option long_options[] = {
    {"mode", required_argument, NULL, 'm'},
    {"listen", required_argument, NULL, 'l'},
    {"threads", required_argument, NULL, 't'},
    {"queue", required_argument, NULL, 'q'},
    {"stage", required_argument, NULL, 's'},
    {NULL, 0, NULL, 0},
};

static int usage(void)
{
	fputs("usage: weir_threaded --mode thread|pool [--listen PORT] [--threads N] [--queue N]\n"
	      "                     --stage TYPE[:KNOB=VALUE,...] ...\n"
	      "  --threads  mode pool: workers (4); mode thread: connection limit (4096)\n"
	      "  --queue    mode pool: connections that may wait for a worker (64)\n"
	      "  --stage    a stage type of weir, with its knobs; the last one answers\n",
	    stderr);
	return EXIT_USAGE;
}

static bool number(const char *text, int max, int *out)
{
	char *end;
	long v = strtol(text, &end, 10);

	*out = (int)v;
	return *text && !*end && v >= 0 && v <= max;
}

static bool option(struct options *o, int c)
{
	switch (c) {
	case 'm':
		o->pool = strcmp(optarg, "pool") == 0;
		return o->pool || strcmp(optarg, "thread") == 0;
	case 'l':
		return number(optarg, 65535, &o->port);
	case 't':
		return number(optarg, 65536, &o->threads) && o->threads > 0;
	case 'q':
		return number(optarg, 1 << 20, &o->queue) && o->queue > 0;
	case 's':
		if (o->n_stages == WORK_STAGES_MAX)
			return false;
		o->stage[o->n_stages++] = optarg;
		return true;
	default:
		return false;
	}
}

static bool parse(int argc, char **argv, struct options *o)
{
	int c;

	*o = (struct options){.queue = 64};
	while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		if (!option(o, c))
			return false;
	if (o->threads == 0)
		o->threads = o->pool ? 4 : 4096;
	return optind == argc && o->n_stages > 0;
}

static int listen_on(int port)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
	    .sin_port = htons((uint16_t)port),
	    .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof(at);
	int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd == -1)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&at, n) != 0 || listen(fd, BACKLOG) != 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &n) != 0) {
		close(fd);
		return -1;
	}
	printf("http://127.0.0.1:%d/\n", ntohs(at.sin_port));
	fflush(stdout);
	return fd;
}

/* Make the stop signals readable as a descriptor. SIGPIPE is ignored, since send calls report
 * broken connections. */
static int stop_signals(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static void raise_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int run(const struct options *o)
{
	struct threaded s = {.threads = o->threads, .queue = o->queue, .listen_fd = -1};
	struct weir_errs errs = {0};
	char text[4096];

	raise_limits();
	s.stop_fd = stop_signals();
	if (work_open(&s.work, o->stage, o->n_stages, &errs) != 0) {
		weir_errs_format(&errs, text, sizeof(text));
		fprintf(stderr, "weir_threaded: %s", text);
		return EXIT_FAILURE;
	}
	s.listen_fd = s.stop_fd == -1 ? -1 : listen_on(o->port);
	int rc = WEIR_ESYS;
	if (s.listen_fd != -1)
		rc = o->pool ? serve_by_pool(&s) : serve_by_thread(&s);
	if (rc != 0)
		fprintf(stderr, "weir_threaded: %s: %s\n", weir_error_text(rc), strerror(errno));
	if (s.listen_fd != -1)
		close(s.listen_fd);
	if (s.stop_fd != -1)
		close(s.stop_fd);
	int64_t lost = work_close(&s.work);
	if (lost != 0)
		fprintf(stderr, "weir_threaded: %lld events are lost\n", (long long)lost);
	return rc == 0 && lost == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	struct options o;

	return parse(argc, argv, &o) ? run(&o) : usage();
}
