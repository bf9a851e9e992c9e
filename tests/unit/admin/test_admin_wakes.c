/* SPDX-License-Identifier: MIT */
/* The admin thread sleeps until something happens, and then does it. Here it sleeps without a
 * timeout, so an event that does not wake it is never handled. */
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include <gnutls/gnutls.h>
#include <weir/log.h>

#include "admin/admin.h"
#include "client.h"
#include "cunit_main.h"
#include "made_up.h"
#include "tls_files.h"

static struct made_up made_up;
static struct admin *admin;
static int port;
static atomic_bool for_ever; /* no wait ends because time has passed */

__attribute__((visibility("default"))) int epoll_wait(
    int fd, struct epoll_event *ev, int n, int timeout)
{
	if (atomic_load(&for_ever) && timeout > 0)
		timeout = -1;
	return (int)syscall(SYS_epoll_pwait, fd, ev, n, timeout, NULL, 8);
}

static void start(struct weir_spec *spec)
{
	struct weir_err err = {0};
	struct admin_source source = made_up_source(&made_up);

	weir_log_set_fd(-1);
	made_up_init(&made_up);
	source.admin = spec ? &spec->admin : NULL;
	atomic_store(&for_ever, true);
	CU_ASSERT_EQUAL_FATAL(admin_start_source(&source, "127.0.0.1:0", &admin, &err), 0);
	port = admin_port(admin);
}

static void stop(void)
{
	admin_stop(admin); /* also wakes the thread */
	atomic_store(&for_ever, false);
}

#define KNOB "/api/v1/stages/disk/knobs/threads.max"

static void test_requests(void)
{
	static char answer[1 << 20];
	char request[300];

	start(NULL);
	for (int i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(client_get(port, "/healthz", answer, sizeof(answer)), 200);
	CU_ASSERT_EQUAL(client_get(port, "/api/v1/openapi.json", answer, sizeof(answer)), 200);
	CU_ASSERT_EQUAL(client_get(port, "/none", answer, sizeof(answer)), 404);
	CU_ASSERT_EQUAL(client_ask(port, "nonsense\r\n\r\n", answer, sizeof(answer)), 400);
	/* in pieces, each after the previous one was read */
	int n = snprintf(request, sizeof(request),
	    "PUT " KNOB " HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
	    "Content-Type: application/json\r\nContent-Length: 12\r\n\r\n{\"value\": 8}",
	    port);
	int fd = client_connect(port);
	for (int i = 0; i < n; i += 40)
		CU_ASSERT_TRUE(send(fd, request + i, (size_t)(n - i < 40 ? n - i : 40), 0) > 0);
	CU_ASSERT_TRUE(client_read(fd, answer, sizeof(answer)) > 0);
	CU_ASSERT_EQUAL(client_status(answer), 200);
	close(fd);
	stop();
}

/* Read until `words` have come. */
static bool comes(int fd, const char *words)
{
	static char text[1 << 16];
	size_t n = 0;

	text[0] = '\0';
	while (!strstr(text, words) && n < sizeof(text) - 1) {
		ssize_t got = recv(fd, text + n, sizeof(text) - 1 - n, 0);
		if (got <= 0)
			return false;
		n += (size_t)got;
		text[n] = '\0';
	}
	return strstr(text, words) != NULL;
}

/* Changes by other threads wake the admin thread: watchers get an event. A watcher that leaves
 * frees its slot. */
static void test_streams(void)
{
	char request[200];

	start(NULL);
	snprintf(request, sizeof(request),
	    "GET /events?hz=0 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", port);
	int fd[2];
	for (int i = 0; i < 2; i++) {
		fd[i] = client_connect(port);
		CU_ASSERT_TRUE(client_send(fd[i], request));
		CU_ASSERT_TRUE(comes(fd[i], "event: hello"));
	}
	admin_switch(admin, NULL, "{}", 5, NULL);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_TRUE(comes(fd[i], "\"graph\":5"));
	admin_tell_failed(admin, "ann", "no");
	CU_ASSERT_TRUE(comes(fd[1], "event: reload"));
	shutdown(fd[0], SHUT_WR); /* the watcher leaves, and the server closes */
	CU_ASSERT_FALSE(comes(fd[0], "nothing"));
	close(fd[0]);
	close(fd[1]);
	stop();
}

static void test_tls(void)
{
	gnutls_certificate_credentials_t trust;
	char answer[4096], request[200];
	struct weir_spec *spec = weir_spec_new("tested");

	make_files();
	weir_spec_text(&spec->admin.listen, "127.0.0.1:0");
	weir_spec_text(&spec->admin.tls.cert, cert_path);
	weir_spec_text(&spec->admin.tls.key, key_path);
	start(spec);
	gnutls_certificate_allocate_credentials(&trust);
	for (int i = 0; i < 3; i++) {
		gnutls_session_t s;
		ssize_t got, n = 0;
		int rc, fd = client_connect(port);
		gnutls_init(&s, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL);
		gnutls_set_default_priority(s);
		gnutls_credentials_set(s, GNUTLS_CRD_CERTIFICATE, trust);
		gnutls_transport_set_int(s, fd);
		while ((rc = gnutls_handshake(s)) < 0 && !gnutls_error_is_fatal(rc))
			;
		CU_ASSERT_EQUAL_FATAL(rc, GNUTLS_E_SUCCESS);
		int length = snprintf(request, sizeof(request),
		    "GET /healthz HTTP/1.1\r\nHost: localhost:%d\r\n\r\n", port);
		CU_ASSERT_EQUAL(gnutls_record_send(s, request, (size_t)length), length);
		while (
		    (got = gnutls_record_recv(s, answer + n, sizeof(answer) - 1 - (size_t)n)) > 0 ||
		    got == GNUTLS_E_AGAIN || got == GNUTLS_E_INTERRUPTED)
			n += got > 0 ? got : 0;
		answer[n] = '\0';
		CU_ASSERT_EQUAL(client_status(answer), 200);
		gnutls_deinit(s);
		close(fd);
	}
	stop();
	gnutls_certificate_free_credentials(trust);
	weir_spec_free(spec);
	remove_files();
}

CUNIT_MAIN("what wakes the admin thread", {"requests", test_requests}, {"streams", test_streams},
    {"TLS", test_tls})
