/* SPDX-License-Identifier: MIT */
/* Secrets do not stay in memory after their use: keys, tokens, session ids and requests. */
#include <sys/socket.h>

#include "admin/http/admin_tls_keys.h"
#include "admin/http/connections.h"
#include "admin/request/reply.h"
#include "auth_rig.h"
#include "fixture/memory/wiped.h"

/* Clears the stack below the caller: a buffer that secret_read wipes without having written it may
 * have what the test itself left there. */
static __attribute__((noinline)) void clear_stack(void)
{
	char all[1 << 14];

	memset(all, 0, sizeof(all));
	__asm__ volatile("" : : "r"(all) : "memory");
}

static void test_token_file(void)
{
	struct secret_digest digest;
	struct weir_err err = {0};
	char path[128];

	begin("127.0.0.1:9900");
	snprintf(path, sizeof(path), "%s/boss", folder);
	wiped_begin();
	clear_stack();
	CU_ASSERT_EQUAL(secret_read(path, "x", &digest, &err), 0);
	CU_ASSERT_EQUAL(wiped_times(BOSS), 2); /* as read, and without spaces */
	wiped_begin();
	put("weak", "weak-token");
	snprintf(path, sizeof(path), "%s/weak", folder);
	clear_stack();
	CU_ASSERT_NOT_EQUAL(secret_read(path, "x", &digest, &err), 0);
	CU_ASSERT_EQUAL(wiped_times("weak-token"), 1);
	end_all();
}

static void test_session(void)
{
	char cookie[160], id[100];

	begin_tokens();
	CU_ASSERT_EQUAL(ask("POST", "/api/v1/session", bearer(BOSS)), 200);
	wiped_begin();
	CU_ASSERT_EQUAL(auth_begin(auth, &pass, cookie, sizeof(cookie), 100 * S), 0);
	const char *from = strchr(cookie, '=');
	CU_ASSERT_PTR_NOT_NULL_FATAL(from);
	snprintf(id, sizeof(id), "%.*s", (int)strcspn(from + 1, ";"), from + 1);
	CU_ASSERT_EQUAL(strlen(id), SESSION_ID_LETTERS);
	CU_ASSERT_EQUAL(wiped_times(id), 1);
	/* a reply that carries the session id */
	struct reply reply = {0};
	snprintf(reply.cookie, sizeof(reply.cookie), "%s", cookie);
	wiped_begin();
	reply_fini(&reply);
	CU_ASSERT_EQUAL(wiped_times(cookie), 1);
	end_all();
}

static void test_key(void)
{
	struct keys *keys = NULL;
	struct weir_err err = {0};
	char cert[128], key[128];

	begin("127.0.0.1:9900");
	put("cert", "-----BEGIN CERTIFICATE-----\nxxxx\n");
	put("key", "-----BEGIN PRIVATE KEY-----\nmade up\n");
	snprintf(cert, sizeof(cert), "%s/cert", folder);
	snprintf(key, sizeof(key), "%s/key", folder);
	wiped_begin();
	CU_ASSERT_EQUAL(keys_new(cert, key, &keys, &err), WEIR_EINVAL);
	CU_ASSERT_EQUAL(wiped_times("-----BEGIN PRIVATE KEY-----\nmade up\n"), 1);
	end_all();
}

/* A request that is incomplete, or refused: its bytes are in the buffer of all connections. */
static void test_request(void)
{
	static const char *const text[] = {
	    "GET / HTTP/1.1\r\nAuthorization: Bearer secret-of-a-client\r\n",
	    "GET / HTTP/1.1\r\nAuthorization: Bearer secret-of-a-client\r\n\r\n"};
	struct authority address;
	struct weir_err err;

	weir_log_set_fd(-1);
	CU_ASSERT_EQUAL(authority_parse("127.0.0.1:9900", &address, &err), 0);
	for (int i = 0; i < 2; i++) {
		static struct connections p;
		int fd[2];
		CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
		CU_ASSERT_TRUE(send(fd[1], text[i], strlen(text[i]), 0) > 0);
		p = (struct connections){.epoll_fd = -1, .address = &address, .spare = {-1, -1}};
		p.slot[0] = (struct connection){.fd = fd[0], .state = CONNECTION_READING};
		wiped_begin();
		connections_ready(&p, &p.slot[0], 0);
		CU_ASSERT_EQUAL(p.slot[0].state, i ? CONNECTION_CLOSING : CONNECTION_READING);
		CU_ASSERT_PTR_NULL(memmem(p.peek, sizeof(p.peek), "secret", 6));
		CU_ASSERT_TRUE(wiped_times("secret-of-a-client") >= 1);
		connections_fini(&p);
		close(fd[1]);
	}
}

CUNIT_MAIN("wiped secrets", {"a token", test_token_file}, {"a session", test_session},
    {"a key", test_key}, {"a request", test_request})
