/* SPDX-License-Identifier: MIT */
/*
 * A server that uses libmicrohttpd under the best conditions: epoll, one thread, and the same
 * response, built at startup, to every request.
 *
 *   bare_mhd PORT BYTES      answers with BYTES bytes
 *   bare_mhd PORT FILE       answers with the file, opened for each request
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct MHD_Response *answer;
static const char *file;

static struct MHD_Response *open_file(void)
{
	struct MHD_Response *r = NULL;
	struct stat st;
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	if (fd != -1 && fstat(fd, &st) == 0)
		r = MHD_create_response_from_fd((size_t)st.st_size, fd);
	if (r)
		MHD_add_response_header(r, "Content-Type", "text/plain");
	else if (fd != -1)
		close(fd);
	return r;
}

static enum MHD_Result handle(void *cls, struct MHD_Connection *c, const char *url,
    const char *method, const char *version, const char *data, size_t *n, void **con)
{
	static int seen;

	(void)cls, (void)url, (void)method, (void)version, (void)data, (void)n;
	if (!*con) { /* only the head has arrived; the second call expects the response */
		*con = &seen;
		return MHD_YES;
	}
	if (!file)
		return MHD_queue_response(c, 200, answer);
	struct MHD_Response *r = open_file();
	if (!r)
		return MHD_NO;
	enum MHD_Result rc = MHD_queue_response(c, 200, r);
	MHD_destroy_response(r);
	return rc;
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	if (argc != 3)
		return 2;
	if (argv[2][0] == '/') {
		file = argv[2];
	} else {
		size_t bytes = strtoul(argv[2], NULL, 10);
		char *body = malloc(bytes ? bytes : 1);
		if (!body)
			return 1;
		memset(body, 'x', bytes);
		answer = MHD_create_response_from_buffer(bytes, body, MHD_RESPMEM_MUST_FREE);
		MHD_add_response_header(answer, "Content-Type", "text/plain");
	}
	a.sin_port = htons((unsigned short)strtoul(argv[1], NULL, 10));
	if (!MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_TURBO, 0, NULL, NULL, handle,
		NULL, MHD_OPTION_SOCK_ADDR, &a, MHD_OPTION_CONNECTION_LIMIT, 15000U,
		MHD_OPTION_LISTEN_BACKLOG_SIZE, 4096U, MHD_OPTION_END)) {
		fprintf(stderr, "bare_mhd: it did not start\n");
		return 1;
	}
	for (;;)
		pause();
}
