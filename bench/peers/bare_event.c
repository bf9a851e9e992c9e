/* SPDX-License-Identifier: MIT */
/*
 * A server that uses libevent's evhttp under the best conditions: one thread, and the same response
 * to every request.
 *
 *   bare_event PORT BYTES      answers with BYTES bytes
 *   bare_event PORT FILE       answers with the file, opened for each request
 */
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char *body;
static size_t body_n;
static const char *file;

static void handle(struct evhttp_request *req, void *arg)
{
	struct evbuffer *out = evbuffer_new();
	struct stat st;

	(void)arg;
	evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type", "text/plain");
	if (file) {
		int fd = open(file, O_RDONLY | O_CLOEXEC);
		if (fd == -1 || fstat(fd, &st) == -1 ||
		    evbuffer_add_file(out, fd, 0, st.st_size) == -1) {
			evbuffer_free(out);
			evhttp_send_error(req, 500, NULL);
			return;
		}
	} else {
		evbuffer_add_reference(out, body, body_n, NULL, NULL);
	}
	evhttp_send_reply(req, 200, "OK", out);
	evbuffer_free(out);
}

int main(int argc, char **argv)
{
	struct event_base *base = event_base_new();
	struct evhttp *http = base ? evhttp_new(base) : NULL;
	struct rlimit r;

	if (argc != 3 || !http)
		return 2;
	if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
	if (argv[2][0] == '/') {
		file = argv[2];
	} else {
		body_n = strtoul(argv[2], NULL, 10);
		body = malloc(body_n ? body_n : 1);
		if (!body)
			return 1;
		memset(body, 'x', body_n);
	}
	evhttp_set_gencb(http, handle, NULL);
	if (evhttp_bind_socket(http, "127.0.0.1", (unsigned short)strtoul(argv[1], NULL, 10)) !=
	    0) {
		fprintf(stderr, "bare_event: it did not start\n");
		return 1;
	}
	return event_base_dispatch(base);
}
