/* SPDX-License-Identifier: MIT */
/*
 * Allocations fail while the admin endpoint takes a TLS connection: the connection is closed, and
 * neither a slot nor a descriptor is lost. Allocations of libraries do not fail here.
 */
#include "fault/inject.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <weir/log.h>

#include "admin/http/admin_tls.h"
#include "admin/request/authority.h"
#include "fixture/graph/descriptors.h"
#include "admin/http/connections.h"
#include "unit/admin/tls_files.h"

static int listen_on_any_port(struct sockaddr_in *sa)
{
	socklen_t n = sizeof(*sa);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*sa =
	    (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)sa, sizeof(*sa)), 0);
	CU_ASSERT_EQUAL_FATAL(listen(fd, 16), 0);
	getsockname(fd, (struct sockaddr *)sa, &n);
	return fd;
}

/* One client, while the n-th allocation fails. Returns whether one failed. */
static bool client(struct connections *p, const struct sockaddr_in *to, long n)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), before = sockets_open();
	char byte;

	CU_ASSERT_EQUAL_FATAL(connect(fd, (const struct sockaddr *)to, sizeof(*to)), 0);
	atomic_store(&fault_fired, 0);
	atomic_store(&fault_alloc_in, n);
	connections_accept(p);
	atomic_store(&fault_alloc_in, -1);
	if (atomic_load(&fault_fired) > 0) {
		CU_ASSERT_EQUAL(sockets_open(), before);
		CU_ASSERT_TRUE(read(fd, &byte, 1) <= 0);
		for (int i = 0; i < CONNECTIONS_MAX; i++)
			CU_ASSERT_EQUAL(p->slot[i].state, CONNECTION_FREE);
	}
	close(fd);
	return atomic_load(&fault_fired) > 0;
}

static void test_no_memory(void)
{
	struct authority address = {.sa.any.sa_family = AF_INET};
	static struct connections p;
	struct admin_tls *tls;
	struct weir_err err = {0};
	struct sockaddr_in sa;
	long n = 0;

	weir_log_set_fd(-1);
	make_files();
	CU_ASSERT_EQUAL_FATAL(admin_tls_open(cert_path, key_path, &tls, &err), 0);
	int listen_fd = listen_on_any_port(&sa), epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	CU_ASSERT_EQUAL_FATAL(connections_init(&p, epoll_fd, listen_fd, &address), 0);
	p.tls = tls;
	while (client(&p, &sa, n))
		n++;
	CU_ASSERT_TRUE(n > 0);
	connections_fini(&p);
	admin_tls_close(tls);
	close(listen_fd);
	close(epoll_fd);
	remove_files();
}

CUNIT_MAIN("fault admin tls", {"no memory", test_no_memory})
