/* SPDX-License-Identifier: MIT */
/* Secrets do not stay in memory after their use: keys, tokens, session ids and requests. The
 * function that wipes them is replaced by one that notes what it wiped. */
#include <sys/socket.h>

#include "admin/http/admin_tls_keys.h"
#include "admin/http/connections.h"
#include "admin/request/reply.h"
#include "auth_rig.h"

static char wiped[1 << 16]; /* all texts, one after the other */

static void note(void *p, size_t n)
{
	size_t used = strlen(wiped);
	volatile char *bytes = p;

	for (size_t i = 0; i < n; i++) {
		if (bytes[i] && used < sizeof(wiped) - 1)
			wiped[used++] = bytes[i];
		bytes[i] = 0;
	}
	wiped[used] = '\0';
}

__attribute__((visibility("default"))) void explicit_bzero(void *p, size_t n)
{
	note(p, n);
}

/* The function that _FORTIFY_SOURCE puts in its place. */
__attribute__((visibility("default"))) void __explicit_bzero_chk(void *p, size_t n, size_t size);

__attribute__((visibility("default"))) void __explicit_bzero_chk(void *p, size_t n, size_t size)
{
	(void)size;
	note(p, n);
}

static void begin_wiping(void)
{
	memset(wiped, 0, sizeof(wiped));
}

/* How often the text was wiped. */
static int times(const char *text)
{
	int n = 0;

	for (const char *p = wiped; (p = strstr(p, text)); p++)
		n++;
	return n;
}

static void test_token_file(void)
{
	struct secret_digest digest;
	struct weir_err err = {0};
	char path[128];

	begin("127.0.0.1:9900");
	snprintf(path, sizeof(path), "%s/boss", folder);
	begin_wiping();
	CU_ASSERT_EQUAL(secret_read(path, "x", &digest, &err), 0);
	CU_ASSERT_EQUAL(times(BOSS), 2); /* as read, and without spaces */
	begin_wiping();
	put("weak", "weak-token");
	snprintf(path, sizeof(path), "%s/weak", folder);
	CU_ASSERT_NOT_EQUAL(secret_read(path, "x", &digest, &err), 0);
	CU_ASSERT_EQUAL(times("weak-token"), 1);
	end_all();
}

static void test_session(void)
{
	char cookie[160], id[100];

	begin_tokens();
	CU_ASSERT_EQUAL(ask("POST", "/api/v1/session", bearer(BOSS)), 200);
	begin_wiping();
	CU_ASSERT_EQUAL(auth_begin(auth, &pass, cookie, sizeof(cookie), 100 * S), 0);
	const char *from = strchr(cookie, '=');
	CU_ASSERT_PTR_NOT_NULL_FATAL(from);
	snprintf(id, sizeof(id), "%.*s", (int)strcspn(from + 1, ";"), from + 1);
	CU_ASSERT_EQUAL(strlen(id), SESSION_ID_LETTERS);
	CU_ASSERT_EQUAL(times(id), 1);
	/* a reply that carries it */
	struct reply reply = {0};
	snprintf(reply.cookie, sizeof(reply.cookie), "%s", cookie);
	begin_wiping();
	reply_fini(&reply);
	CU_ASSERT_EQUAL(times(cookie), 1);
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
	begin_wiping();
	CU_ASSERT_EQUAL(keys_new(cert, key, &keys, &err), WEIR_EINVAL);
	CU_ASSERT_EQUAL(times("-----BEGIN PRIVATE KEY-----\nmade up\n"), 1);
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
		begin_wiping();
		connections_ready(&p, &p.slot[0], 0);
		CU_ASSERT_EQUAL(p.slot[0].state, i ? CONNECTION_CLOSING : CONNECTION_READING);
		CU_ASSERT_PTR_NULL(memmem(p.peek, sizeof(p.peek), "secret", 6));
		CU_ASSERT_TRUE(times("secret-of-a-client") >= 1);
		connections_fini(&p);
		close(fd[1]);
	}
}

CUNIT_MAIN("wiped secrets", {"a token", test_token_file}, {"a session", test_session},
    {"a key", test_key}, {"a request", test_request})
