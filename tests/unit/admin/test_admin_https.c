/* SPDX-License-Identifier: MIT */
/* The endpoint over TLS with real clients: requests and responses of any size arrive whole, the
 * connection ends as TLS requires, and certificates are replaced while it serves. */
#include "admin/admin.h"

#include <sys/stat.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <weir/log.h>

#include "admin/http/admin_tls.h"
#include "client.h"
#include "cunit_main.h"
#include "made_up.h"
#include "tls_files.h"

static struct made_up made_up;
static struct weir_spec *spec;
static struct admin *admin;
static int port;
static gnutls_certificate_credentials_t trust;
static char *config; /* a long text */

#define CONFIG_BYTES 3000000

static void setup(void)
{
	struct weir_err err = {0};
	struct admin_source source = made_up_source(&made_up);

	weir_log_set_fd(-1);
	made_up_init(&made_up);
	make_files();
	spec = weir_spec_new("tested");
	CU_ASSERT_PTR_NOT_NULL_FATAL(spec);
	weir_spec_text(&spec->admin.listen, "127.0.0.1:0");
	weir_spec_text(&spec->admin.tls.cert, cert_path);
	weir_spec_text(&spec->admin.tls.key, key_path);
	config = malloc(CONFIG_BYTES + 1);
	for (int i = 0; i < CONFIG_BYTES; i++)
		config[i] = (char)('a' + i % 26 + i / 1000 % 3 * -32);
	config[CONFIG_BYTES] = '\0';
	source.admin = &spec->admin;
	source.config = config;
	CU_ASSERT_EQUAL_FATAL(admin_start_source(&source, spec->admin.listen, &admin, &err), 0);
	port = admin_port(admin);
	gnutls_certificate_allocate_credentials(&trust);
}

static void teardown(void)
{
	admin_stop(admin);
	CU_ASSERT_EQUAL(made_up.n_views, 0);
	gnutls_certificate_free_credentials(trust);
	weir_spec_free(spec);
	remove_files();
	free(config);
}

struct client {
	int fd;
	gnutls_session_t session;
};

/* Connect and shake hands. Returns the result of the handshake. */
static int come(struct client *c, const char *versions)
{
	char priorities[100];
	int rc;

	c->fd = client_connect(port);
	CU_ASSERT_FATAL(c->fd >= 0);
	snprintf(priorities, sizeof(priorities), "NORMAL:-VERS-ALL%s", versions);
	gnutls_init(&c->session, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL);
	CU_ASSERT_EQUAL(gnutls_priority_set_direct(c->session, priorities, NULL), 0);
	gnutls_credentials_set(c->session, GNUTLS_CRD_CERTIFICATE, trust);
	gnutls_transport_set_int(c->session, c->fd);
	while ((rc = gnutls_handshake(c->session)) < 0 && !gnutls_error_is_fatal(rc))
		;
	return rc;
}

static struct client connected(void)
{
	struct client c;

	CU_ASSERT_EQUAL_FATAL(come(&c, ":+VERS-TLS1.3:+VERS-TLS1.2"), GNUTLS_E_SUCCESS);
	return c;
}

static void leave(struct client *c)
{
	gnutls_deinit(c->session);
	close(c->fd);
}

/* Send p[n] in records of at most `most` bytes. */
static void say(struct client *c, const char *p, size_t n, size_t most)
{
	for (size_t at = 0; at < n;) {
		size_t piece = n - at < most ? n - at : most;
		ssize_t sent = gnutls_record_send(c->session, p + at, piece);
		CU_ASSERT_FATAL(sent > 0);
		at += (size_t)sent;
	}
}

/* Read until the server closes. Returns the length, or -1 if it does not close as TLS requires. */
static ssize_t read_all(struct client *c, char *buf, size_t size)
{
	size_t n = 0;
	ssize_t got;

	while (n < size - 1) {
		got = gnutls_record_recv(c->session, buf + n, size - 1 - n);
		if (got == GNUTLS_E_INTERRUPTED || got == GNUTLS_E_AGAIN)
			continue;
		if (got <= 0) {
			buf[n] = '\0';
			return got == 0 ? (ssize_t)n : -1;
		}
		n += (size_t)got;
	}
	return -1;
}

static char response[CONFIG_BYTES + 8192];

/* Send a request with these fields and this body. Returns the status; the response is in
 * `response`. */
static int ask(
    const char *method, const char *path, const char *fields, const char *body, size_t most)
{
	char request[10000];
	struct client c = connected();
	int n = snprintf(request, sizeof(request),
	    "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%sContent-Length: %zu\r\n\r\n%s", method, path,
	    port, fields, strlen(body), body);

	say(&c, request, (size_t)n, most);
	CU_ASSERT_TRUE(read_all(&c, response, sizeof(response)) > 0);
	leave(&c);
	return client_status(response);
}

static const char *body_of(void)
{
	const char *end = strstr(response, "\r\n\r\n");

	CU_ASSERT_PTR_NOT_NULL_FATAL(end);
	return end + 4;
}

#define JSON "Content-Type: application/json\r\n"
#define KNOB "/api/v1/stages/disk/knobs/threads.max"

static void test_requests(void)
{
	setup();
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(ask("GET", "/healthz", "", "", 4096), 200);
		CU_ASSERT_STRING_EQUAL(body_of(), "ok\n");
	}
	/* one byte a record */
	CU_ASSERT_EQUAL(ask("PUT", KNOB, JSON, "{\"value\": \"8\"}", 1), 200);
	CU_ASSERT_STRING_EQUAL(made_up.threads_max, "8");
	CU_ASSERT_EQUAL(ask("GET", "/none", "", "", 7), 404);
	CU_ASSERT_EQUAL(ask("GET", "/", "Host: 127.0.0.1\r\n", "", 4096), 400);
	teardown();
}

/* A body of the maximum size, in few and in many records; a response of several megabytes. */
static void test_sizes(void)
{
	static char body[8193];

	setup();
	int n = snprintf(body, sizeof(body), "{\"value\": \"");
	memset(body + n, 'x', sizeof(body) - 1 - (size_t)n);
	memcpy(body + sizeof(body) - 3, "\"}", 2);
	CU_ASSERT_EQUAL(ask("PUT", KNOB, JSON, body, 16384), 422);
	CU_ASSERT_EQUAL(ask("PUT", KNOB, JSON, body, 100), 422);
	CU_ASSERT_EQUAL(ask("GET", "/api/v1/config", "", "", 4096), 200);
	CU_ASSERT_TRUE(strcmp(body_of(), config) == 0);
	teardown();
}

/* A client that closes its direction after the request still gets the response. */
static void test_half_close(void)
{
	struct client c;
	char request[200];

	setup();
	c = connected();
	int n = snprintf(request, sizeof(request),
	    "GET /api/v1/config HTTP/1.1\r\nHost: localhost:%d\r\n\r\n", port);
	say(&c, request, (size_t)n, 4096);
	CU_ASSERT_EQUAL(gnutls_bye(c.session, GNUTLS_SHUT_WR), 0);
	CU_ASSERT_TRUE(read_all(&c, response, sizeof(response)) > CONFIG_BYTES);
	CU_ASSERT_EQUAL(client_status(response), 200);
	leave(&c);
	/* a client that closes without a request gets nothing */
	c = connected();
	CU_ASSERT_EQUAL(gnutls_bye(c.session, GNUTLS_SHUT_WR), 0);
	CU_ASSERT_EQUAL(read_all(&c, response, sizeof(response)), 0);
	leave(&c);
	teardown();
}

/* Pages that were loaded over TLS may make changes, others may not. */
static void test_origin(void)
{
	char fields[200];

	setup();
	snprintf(fields, sizeof(fields), JSON "Origin: https://127.0.0.1:%d\r\n", port);
	CU_ASSERT_EQUAL(ask("PUT", KNOB, fields, "{\"value\": \"8\"}", 4096), 200);
	snprintf(fields, sizeof(fields), JSON "Origin: http://127.0.0.1:%d\r\n", port);
	CU_ASSERT_EQUAL(ask("PUT", KNOB, fields, "{\"value\": \"9\"}", 4096), 403);
	CU_ASSERT_STRING_EQUAL(made_up.threads_max, "8");
	teardown();
}

/* Only TLS 1.2 and 1.3 are spoken. A client without TLS gets no HTTP. */
static void test_versions(void)
{
	struct client c;
	char text[400];

	setup();
	CU_ASSERT_EQUAL(come(&c, ":+VERS-TLS1.3"), 0);
	CU_ASSERT_EQUAL(gnutls_protocol_get_version(c.session), GNUTLS_TLS1_3);
	leave(&c);
	CU_ASSERT_EQUAL(come(&c, ":+VERS-TLS1.2"), 0);
	CU_ASSERT_EQUAL(gnutls_protocol_get_version(c.session), GNUTLS_TLS1_2);
	leave(&c);
	CU_ASSERT_TRUE(come(&c, ":+VERS-TLS1.1") < 0);
	leave(&c);
	int fd = client_connect(port);
	CU_ASSERT_TRUE(client_send(fd, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"));
	CU_ASSERT_TRUE(client_read(fd, text, sizeof(text)) >= 0);
	CU_ASSERT_PTR_NULL(strstr(text, "HTTP"));
	close(fd);
	CU_ASSERT_EQUAL(ask("GET", "/healthz", "", "", 4096), 200);
	teardown();
}

/* A stream of events, until the server stops. */
static void test_stream(void)
{
	struct client c;
	char request[200];
	size_t n = 0;

	setup();
	c = connected();
	int length = snprintf(
	    request, sizeof(request), "GET /events HTTP/1.1\r\nHost: localhost:%d\r\n\r\n", port);
	say(&c, request, (size_t)length, 4096);
	response[0] = '\0';
	while (!strstr(response, "event: config")) {
		ssize_t got = gnutls_record_recv(c.session, response + n, sizeof(response) - 1 - n);
		CU_ASSERT_FATAL(got > 0);
		n += (size_t)got;
		response[n] = '\0';
		if (strstr(response, "event: hello"))
			admin_switch(admin, NULL, config, 7, NULL);
	}
	CU_ASSERT_EQUAL(client_status(response), 200);
	CU_ASSERT_PTR_NOT_NULL(strstr(response, "event: hello\n"));
	teardown();
	leave(&c);
}

/* The serial of the certificate that the server presents. */
static bool presents(const gnutls_datum_t *cert)
{
	struct client c = connected();
	unsigned n = 0;
	const gnutls_datum_t *chain = gnutls_certificate_get_peers(c.session, &n);
	bool same = n == 1 && chain[0].size == cert->size &&
		    memcmp(chain[0].data, cert->data, cert->size) == 0;

	leave(&c);
	return same;
}

static gnutls_datum_t peer_of(const struct client *c)
{
	unsigned n = 0;
	const gnutls_datum_t *chain = gnutls_certificate_get_peers(c->session, &n);
	gnutls_datum_t copy = {malloc(chain[0].size), chain[0].size};

	memcpy(copy.data, chain[0].data, chain[0].size);
	return copy;
}

/* A reload reads the files again. If they are unusable, the old certificate stays. Connections that
 * are open keep theirs. */
static void test_reload(void)
{
	struct weir_errs errs = {0};
	struct admin_change *change;
	char old_folder[32], old_cert[64], old_key[64], request[200];

	setup();
	struct client open = connected();
	gnutls_datum_t first = peer_of(&open);
	CU_ASSERT_TRUE(presents(&first));
	strcpy(old_folder, folder), strcpy(old_cert, cert_path), strcpy(old_key, key_path);
	make_files();
	weir_spec_text(&spec->admin.tls.cert, cert_path);
	CU_ASSERT_NOT_EQUAL(admin_prepare(admin, spec, &change, &errs), 0); /* another key */
	CU_ASSERT_EQUAL(errs.total, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(errs.err[0].text, "the key does not match the certificate"));
	CU_ASSERT_PTR_NULL(change);
	CU_ASSERT_TRUE(presents(&first));
	weir_spec_text(&spec->admin.tls.key, key_path);
	errs = (struct weir_errs){0};
	CU_ASSERT_EQUAL(admin_prepare(admin, spec, &change, &errs), 0);
	CU_ASSERT_TRUE(presents(&first));
	admin_switch(admin, NULL, config, 1, change);
	CU_ASSERT_FALSE(presents(&first));
	/* the address differs: nothing of the endpoint changes, but its files are read again */
	weir_spec_text(&spec->admin.listen, "127.0.0.1:1");
	CU_ASSERT_EQUAL(admin_prepare(admin, spec, &change, &errs), 0);
	unlink(cert_path);
	admin_switch(admin, NULL, config, 2, change);
	CU_ASSERT_EQUAL(ask("GET", "/healthz", "", "", 4096), 200);
	CU_ASSERT_EQUAL(rename(old_cert, cert_path), 0);
	CU_ASSERT_EQUAL(rename(old_key, key_path), 0);
	CU_ASSERT_EQUAL(admin_prepare(admin, spec, &change, &errs), 0);
	admin_switch(admin, NULL, config, 3, change);
	CU_ASSERT_TRUE(presents(&first));
	int n = snprintf(
	    request, sizeof(request), "GET /healthz HTTP/1.1\r\nHost: localhost:%d\r\n\r\n", port);
	say(&open, request, (size_t)n, 4096);
	CU_ASSERT_TRUE(read_all(&open, response, sizeof(response)) > 0);
	CU_ASSERT_EQUAL(client_status(response), 200);
	leave(&open);
	rmdir(old_folder);
	free(first.data);
	teardown();
}

static void refused(const char *cert, const char *key, const char *words)
{
	struct weir_err err = {0};

	CU_ASSERT_NOT_EQUAL(admin_tls_check(cert, key, &err), 0);
	CU_ASSERT_EQUAL(err.code, WEIR_EINVAL);
	if (!strstr(err.text, words))
		fprintf(stderr, "'%s' is not in '%s'\n", words, err.text);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, words));
}

static void test_files(void)
{
	struct weir_err err = {0};
	char other[80];

	make_files();
	CU_ASSERT_EQUAL(admin_tls_check(cert_path, key_path, &err), 0);
	CU_ASSERT_EQUAL(admin_tls_check("/none", key_path, &err), WEIR_ESYS);
	CU_ASSERT_STRING_EQUAL(
	    err.text, "the certificate /none cannot be used: No such file or directory");
	CU_ASSERT_EQUAL(admin_tls_check(cert_path, "/none", &err), WEIR_ESYS);
	CU_ASSERT_PTR_NOT_NULL(strstr(
	    err.text, "the key of the certificate: cannot read /none: No such file or directory"));
	CU_ASSERT_EQUAL(admin_tls_check("/tmp", key_path, &err), WEIR_ESYS);
	refused(cert_path, cert_path, "the certificate or the key of");
	refused(key_path, key_path, "the certificate or the key of");
	CU_ASSERT_EQUAL(chmod(key_path, 0640), 0);
	refused(cert_path, key_path, "is accessible to users other than its owner");
	CU_ASSERT_EQUAL(chmod(key_path, 0600), 0);
	CU_ASSERT_EQUAL(chmod(cert_path, 0666), 0); /* a certificate is not secret */
	CU_ASSERT_EQUAL(admin_tls_check(cert_path, key_path, &err), 0);
	snprintf(other, sizeof(other), "%s/empty", folder);
	close(open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	refused(other, key_path, "the certificate or the key of");
	refused(cert_path, other, "the certificate or the key of");
	unlink(other);
	remove_files();
}

CUNIT_MAIN("https", {"requests", test_requests}, {"sizes", test_sizes},
    {"half a close", test_half_close}, {"origin", test_origin}, {"versions", test_versions},
    {"a stream", test_stream}, {"reload", test_reload}, {"files", test_files})
