/* SPDX-License-Identifier: MIT */
/* Which address a run connects to. */
#include "load/resolve.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "cunit_main.h"

static struct load_plan plan;
static struct weir_err err;

static void test_unknown(void)
{
	struct sockaddr_storage address;
	socklen_t n;

	snprintf(plan.host, sizeof(plan.host), "a..b");
	snprintf(plan.port, sizeof(plan.port), "80");
	CU_ASSERT_EQUAL(resolve(&plan, &address, &n, &err), WEIR_EINVAL);
	CU_ASSERT_STRING_EQUAL(err.text, "host 'a..b' cannot be resolved");
}

static void test_numbers(void)
{
	struct sockaddr_storage address;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address;
	socklen_t n;

	snprintf(plan.host, sizeof(plan.host), "::1");
	snprintf(plan.port, sizeof(plan.port), "8080");
	CU_ASSERT_EQUAL_FATAL(resolve(&plan, &address, &n, &err), 0);
	CU_ASSERT_EQUAL(address.ss_family, AF_INET6);
	CU_ASSERT_EQUAL(n, sizeof(*in6));
	CU_ASSERT_EQUAL(ntohs(in6->sin6_port), 8080);
}

/* Resolving `name` must give the address of the server at `here`. */
static void check_found(const char *name, const struct sockaddr_in *here)
{
	struct sockaddr_storage address;
	socklen_t n = sizeof(address);

	snprintf(plan.host, sizeof(plan.host), "%s", name);
	snprintf(plan.port, sizeof(plan.port), "%d", ntohs(here->sin_port));
	CU_ASSERT_EQUAL_FATAL(resolve(&plan, &address, &n, &err), 0);
	CU_ASSERT_EQUAL(address.ss_family, AF_INET);
	CU_ASSERT_EQUAL(memcmp(&address, here, sizeof(*here)), 0);
}

/* localhost may be both ::1 and 127.0.0.1. The one with a listening server is chosen. A system
 * without /etc/hosts may not know the name. */
static void test_who_listens(void)
{
	struct sockaddr_in here = {
	    .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct addrinfo *known = NULL;
	socklen_t n = sizeof(here);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&here, n), 0);
	CU_ASSERT_EQUAL_FATAL(listen(fd, 8), 0);
	CU_ASSERT_EQUAL_FATAL(getsockname(fd, (struct sockaddr *)&here, &n), 0);
	check_found("127.0.0.1", &here);
	if (getaddrinfo("localhost", NULL, NULL, &known) == 0)
		check_found("localhost", &here);
	else
		puts("this system does not know 'localhost': left out");
	if (known)
		freeaddrinfo(known);
	close(fd);
}

static void test_socket_file(void)
{
	struct sockaddr_storage address;
	const struct sockaddr_un *file = (const struct sockaddr_un *)&address;
	socklen_t n;

	snprintf(plan.socket, sizeof(plan.socket), "/run/app.sock");
	CU_ASSERT_EQUAL_FATAL(resolve(&plan, &address, &n, &err), 0);
	CU_ASSERT_EQUAL(address.ss_family, AF_UNIX);
	CU_ASSERT_STRING_EQUAL(file->sun_path, "/run/app.sock");
	plan.socket[0] = '\0';
}

CUNIT_MAIN("resolve", {"unknown", test_unknown}, {"a socket file", test_socket_file},
    {"numbers", test_numbers}, {"who listens", test_who_listens})
