/* SPDX-License-Identifier: MIT */
/* Certificates, their names and ticket keys give back the memory that they use. */
#include <weir/log.h>

#include "fixture/http/tls.h"
#include "fixture/memory/counted.h"
#include "net/tls/tls_certs.h"
#include "net/tls/tls_names.h"
#include "net/tls/tls_pem.h"
#include "net/tls/tls_ticket.h"

static char pem[2][64], key[2][64];

static void make(void)
{
	weir_log_set_fd(-1);
	tls_folder_make();
	tls_make("a", "DNS:a.example,DNS:*.a.example", false, 30);
	tls_make("b", "DNS:b.example", true, 30);
	for (int i = 0; i < 2; i++) {
		snprintf(pem[i], sizeof(pem[i]), "%s", tls_path(i ? "b.pem" : "a.pem"));
		snprintf(key[i], sizeof(key[i]), "%s", tls_path(i ? "b.key" : "a.key"));
	}
}

static void names(void)
{
	struct tls_names some = {0};

	CU_ASSERT_PTR_NOT_NULL(tls_names_add(&some, 0, "a.example", 9));
	CU_ASSERT_PTR_NOT_NULL(tls_names_add(&some, 1, "b.example", 9));
	tls_names_sort(&some);
	tls_names_free(&some);
}

/* Load two certificates, the second with this key. */
static int load_with(char *second)
{
	struct tls_pair_conf more = {pem[1], second};
	struct tls_conf conf = {.own = {pem[0], key[0]},
	    .certs = {1, (char *)&more},
	    .ciphers = (char *)(uintptr_t) "ECDHE+AESGCM"};
	struct tls_certs *certs = NULL;
	char at[TLS_PATH_BYTES];
	struct weir_err err = {0};
	int rc = tls_certs_load(&conf, "web", &certs, at, &err);

	if (rc == 0) {
		tls_certs_unref(tls_certs_ref(certs));
		tls_certs_unref(certs);
	}
	return rc;
}

static void load(void)
{
	CU_ASSERT_EQUAL(load_with(key[1]), 0);
}

static void load_wrong(void)
{
	CU_ASSERT_EQUAL(load_with(key[0]), WEIR_EINVAL);
	CU_ASSERT_EQUAL(load_with(pem[1]), WEIR_EINVAL);
}

static void tickets(void)
{
	struct tls_tickets *t = tls_tickets_new(1000, 0);

	CU_ASSERT_PTR_NOT_NULL_FATAL(t);
	tls_tickets_unref(tls_tickets_ref(t));
	tls_tickets_unref(t);
}

static void test_names(void)
{
	CU_ASSERT_TRUE(memory_is_given_back(names));
}

static void test_certs(void)
{
	CU_ASSERT_TRUE(memory_is_given_back(load));
}

static void test_wrong(void)
{
	CU_ASSERT_TRUE(memory_is_given_back(load_wrong));
}

static void test_tickets(void)
{
	CU_ASSERT_TRUE(memory_is_given_back(tickets));
}

CUNIT_MAIN("tls memory", {"make files", make}, {"names", test_names}, {"certificates", test_certs},
    {"certificates that are refused", test_wrong}, {"ticket keys", test_tickets},
    {"remove files", tls_folder_remove})
