/* SPDX-License-Identifier: MIT */
/* Which certificate a name selects, and which certificates have all names of another. */
#include "net/tls/tls_names.h"

#include <string.h>

#include "cunit_main.h"

static struct tls_names names;

static void add(int cert, const char *text)
{
	CU_ASSERT_PTR_NOT_NULL_FATAL(tls_names_add(&names, cert, text, strlen(text)));
}

static int find(const char *text)
{
	return tls_names_find(&names, text, strlen(text));
}

static void test_find(void)
{
	CU_ASSERT_EQUAL(find("a"), -1);
	add(1, "b.example");
	add(0, "A.example");
	add(2, "b.example");
	add(2, "*.b.example");
	tls_names_sort(&names);
	CU_ASSERT_EQUAL(find("a.EXAMPLE"), 0);
	CU_ASSERT_EQUAL(find("b.example"), 1);
	CU_ASSERT_EQUAL(find("x.b.example"), 2);
	CU_ASSERT_EQUAL(find("x.y.b.example"), -1);
	CU_ASSERT_EQUAL(find(""), -1);
	tls_names_free(&names);
}

/* A wildcard stands for exactly one label, which is not empty. The longest name is found. */
static void test_limits(void)
{
	char name[TLS_NAME_MAX + 2];

	memset(name, 'n', sizeof(name));
	name[TLS_NAME_MAX] = '\0';
	add(0, name);
	add(1, "*.w");
	add(2, "nodot");
	tls_names_sort(&names);
	CU_ASSERT_EQUAL(tls_names_find(&names, name, TLS_NAME_MAX), 0);
	CU_ASSERT_EQUAL(tls_names_find(&names, name, TLS_NAME_MAX - 1), -1);
	name[TLS_NAME_MAX] = 'n';
	CU_ASSERT_EQUAL(tls_names_find(&names, name, TLS_NAME_MAX + 1), -1);
	CU_ASSERT_EQUAL(find("a.w"), 1);
	CU_ASSERT_EQUAL(find("aa.W"), 1);
	CU_ASSERT_EQUAL(find(".w"), -1);
	CU_ASSERT_EQUAL(find("w"), -1);
	CU_ASSERT_EQUAL(find("nodot"), 2);
	CU_ASSERT_EQUAL(find("nodo"), -1);
	tls_names_free(&names);
	CU_ASSERT_EQUAL(names.n, 0);
}

static void test_connections(void)
{
	int peer[4];

	add(0, "a");
	add(0, "b");
	add(1, "b");
	add(2, "b");
	add(2, "a");
	add(2, "c");
	add(3, "c");
	add(4, "a");
	add(4, "B");
	add(4, "a"); /* twice */
	tls_names_sort(&names);
	CU_ASSERT_EQUAL(tls_names_peers(&names, 0, peer, 4), 2);
	CU_ASSERT(peer[0] == 2 && peer[1] == 4);
	CU_ASSERT_EQUAL(tls_names_peers(&names, 0, peer, 1), 1);
	CU_ASSERT_EQUAL(tls_names_peers(&names, 1, peer, 4), 3); /* 0, 2, 4 */
	CU_ASSERT_EQUAL(tls_names_peers(&names, 2, peer, 4), 0);
	CU_ASSERT_EQUAL(tls_names_peers(&names, 3, peer, 4), 1);
	CU_ASSERT_EQUAL(tls_names_peers(&names, 4, peer, 4), 2);
	CU_ASSERT_EQUAL(tls_names_peers(&names, 5, peer, 4), 0); /* certificate 5 has no names */
	tls_names_free(&names);
}

CUNIT_MAIN("tls names", {"find", test_find}, {"limits", test_limits}, {"peers", test_connections})
