/* SPDX-License-Identifier: MIT */
/* Clients that leave slowly: a client that requests more than it reads holds neither memory nor
 * slots. */
#include "admin/http/admin_tls.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <weir/log.h>

#include "client.h"
#include "cunit_main.h"
#include "admin/http/connections.h"
#include "tls_files.h"

#define S 1000000000LL

static struct admin_tls *tls;
static gnutls_certificate_credentials_t trust;
static int listen_fd, port;

static void setup(void)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(sa);
	struct weir_err err = {0};

	weir_log_set_fd(-1);
	make_files();
	CU_ASSERT_EQUAL_FATAL(admin_tls_open(cert_path, key_path, &tls, &err), 0);
	gnutls_certificate_allocate_credentials(&trust);
	listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CU_ASSERT_EQUAL_FATAL(bind(listen_fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	CU_ASSERT_EQUAL_FATAL(listen(listen_fd, 16), 0);
	getsockname(listen_fd, (struct sockaddr *)&sa, &n);
	port = ntohs(sa.sin_port);
}

static void teardown(void)
{
	admin_tls_close(tls);
	gnutls_certificate_free_credentials(trust);
	close(listen_fd);
	remove_files();
}

static int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Let the server run, and wait until there is something to read for the client, at most 10 ms. */
static void turn(int fd, int64_t now_ns)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	admin_tls_run(tls, now_ns);
	poll(&p, 1, 10);
}

/* A client with small buffers that does not read, after the handshake. Data written to *inner is
 * sent to the client. */
static gnutls_session_t miser(int *fd, int *inner, int64_t now_ns)
{
	int segment = 536, small = 1, rc;
	gnutls_session_t s;
	char byte = 'x';

	*fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(*fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment));
	CU_ASSERT_TRUE_FATAL(client_connect_with(*fd, port) >= 0);
	fcntl(*fd, F_SETFL, O_NONBLOCK);
	int server = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	*inner = admin_tls_wrap(tls, server);
	CU_ASSERT_TRUE_FATAL(*inner >= 0);
	gnutls_init(&s, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);
	gnutls_set_default_priority(s);
	gnutls_credentials_set(s, GNUTLS_CRD_CERTIFICATE, trust);
	gnutls_transport_set_int(s, *fd);
	while ((rc = gnutls_handshake(s)) == GNUTLS_E_AGAIN || rc == GNUTLS_E_INTERRUPTED)
		turn(*fd, now_ns);
	CU_ASSERT_EQUAL_FATAL(rc, GNUTLS_E_SUCCESS);
	/* The server may not have finished its side of the handshake yet. Until it has, it throws
	 * away data written to *inner, so repeat until a byte comes through. */
	do {
		send(*inner, &byte, 1, MSG_NOSIGNAL);
		turn(*fd, now_ns);
		rc = (int)gnutls_record_recv(s, &byte, 1);
	} while (rc == GNUTLS_E_AGAIN || rc == GNUTLS_E_INTERRUPTED);
	CU_ASSERT_EQUAL_FATAL(rc, 1);
	setsockopt(*fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	return s;
}

/* Write more than the sockets hold, then close, as at the end of a response. */
static void answer_much(int inner, int64_t now_ns)
{
	static char much[1 << 16];
	int full = 0;

	while (full < 2) { /* full: two writes in a row found no space */
		ssize_t n = send(inner, much, sizeof(much), MSG_DONTWAIT | MSG_NOSIGNAL);
		full = n < 0 ? full + 1 : 0;
		admin_tls_run(tls, now_ns);
	}
	close(inner);
	admin_tls_run(tls, now_ns);
}

/* The end of the response is queued after bytes that the client never reads. The server notices the
 * end all the same. */
static void test_patience(void)
{
	int fd, inner;

	setup();
	int before = descriptors();
	gnutls_session_t s = miser(&fd, &inner, 100 * S);
	answer_much(inner, 100 * S);
	admin_tls_run(tls, 102 * S);
	admin_tls_run(tls, 108 * S);
	CU_ASSERT_EQUAL(descriptors(), before + 3); /* the client's ten seconds are not over */
	admin_tls_run(tls, 114 * S);
	CU_ASSERT_EQUAL(descriptors(), before + 1);
	gnutls_deinit(s);
	close(fd);
	teardown();
}

/* However many connections are leaving, new ones are accepted: the first ones are evicted. */
static void test_room(void)
{
	enum { MANY = CONNECTIONS_MAX + 10 };
	gnutls_session_t s[MANY];
	int fd[MANY], inner;

	setup();
	int before = descriptors();
	for (int i = 0; i < MANY; i++) {
		s[i] = miser(&fd[i], &inner, 100 * S);
		answer_much(inner, 100 * S);
	}
	/* One descriptor per client, and two for each connection that is leaving. When the last
	 * client arrived the table was full. */
	CU_ASSERT_EQUAL(descriptors(), before + MANY + 2 * CONNECTIONS_MAX);
	for (int i = 0; i < MANY; i++) {
		gnutls_deinit(s[i]);
		close(fd[i]);
	}
	teardown();
}

/* Whether the connection with this inner side has ended. */
static bool has_ended(int inner)
{
	char byte;

	return recv(inner, &byte, 1, MSG_DONTWAIT) == 0;
}

/* Connections that end in any order are taken out of the list, and the others stay. */
static void test_any_order(void)
{
	static const int order[][3] = {{0, 1, 2}, {1, 0, 2}, {1, 2, 0}, {2, 1, 0}};
	int inner[3], pair[3][2];

	setup();
	int before = descriptors();
	for (size_t o = 0; o < sizeof(order) / sizeof(order[0]); o++) {
		for (int i = 0; i < 3; i++) {
			CU_ASSERT_EQUAL_FATAL(
			    socketpair(
				AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair[i]),
			    0);
			inner[i] = admin_tls_wrap(tls, pair[i][1]);
			CU_ASSERT_TRUE_FATAL(inner[i] >= 0);
		}
		for (int n = 0; n < 3; n++) {
			CU_ASSERT_FALSE(has_ended(inner[order[o][n]]));
			close(pair[order[o][n]][0]); /* before the handshake */
			admin_tls_run(tls, 100 * S);
			CU_ASSERT_TRUE(has_ended(inner[order[o][n]]));
			CU_ASSERT_EQUAL(descriptors(), before + 3 * 4 - 3 * (n + 1));
		}
		for (int i = 0; i < 3; i++)
			close(inner[i]);
	}
	CU_ASSERT_EQUAL(descriptors(), before);
	teardown();
}

CUNIT_MAIN(
    "admin_tls", {"patience", test_patience}, {"room", test_room}, {"any order", test_any_order})
