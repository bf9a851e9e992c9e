/* SPDX-License-Identifier: MIT */
/*
 * Access to the admin endpoint: any bytes as a request, with tokens and a valid session. A request
 * that is allowed more than is open to all must contain a whole token or the whole id of the
 * session. Also, any bytes as a token file.
 *
 * Input: a byte. If it is 0 modulo 4, the rest is a token file, and the higher bits give its mode.
 * Otherwise the rest is a request, in which the bytes 1, 2 and 3 stand for the operator's token,
 * the viewer's token, and the cookie.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/log.h>
#include <weir/spec.h>

#include "admin/auth/auth.h"
#include "admin/auth/secret.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BOSS "boss-boss-0123456789-abcdef"
#define EYE  "00112233445566778899aabbccddeeff"
enum { REQUEST_BYTES = 16384 };

static struct auth *auth;
static struct authority here;
static char cookie[160];

static void expect(bool cond, const char *what)
{
	if (cond)
		return;
	fprintf(stderr, "fuzz_gate: %s\n", what);
	abort();
}

/* ---- a file in memory that has a path ---- */

static int file_of(const void *p, size_t n, mode_t mode, char path[64])
{
	int fd = memfd_create("token", MFD_CLOEXEC);

	expect(fd >= 0 && fchmod(fd, mode) == 0 && write(fd, p, n) == (ssize_t)n, "no file");
	snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

/* Is this the text of one token: characters of RFC 6750, then only white space? */
static bool one_token(const char *p, size_t n)
{
	static const char hex[] = "0123456789abcdefABCDEF";
	static const char letters[] = "ghijklmnopqrstuvwxyzGHIJKLMNOPQRSTUVWXYZ-._~+/=";
	size_t token = 0, others = 0, end;
	int different = 0;

	for (; token < n && p[token] && (strchr(hex, p[token]) || strchr(letters, p[token]));
	     token++) {
		others += strchr(letters, p[token]) != NULL;
		different += memchr(p, p[token], token) == NULL;
	}
	for (end = token; end < n && p[end] && strchr(" \t\r\n", p[end]); end++)
		;
	return end == n && n < 4096 && token >= (others ? 22 : 32) && token <= SECRET_TOKEN_MAX &&
	       different >= 8;
}

static void check_file(unsigned shape, const char *p, size_t n)
{
	static const mode_t modes[] = {0600, 0400, 0640, 0604, 0601, 0600};
	mode_t mode = modes[shape % 6];
	struct weir_err err = {0};
	char token[SECRET_TOKEN_MAX + 1] = "", path[64];
	int fd = file_of(p, n, mode, path);
	int rc = secret_text(path, "the token 'x'", token, &err);
	bool good = (mode & 077) == 0 && one_token(p, n);

	expect((rc == 0) == good, "two readers, two verdicts on a file");
	expect(rc == 0 || err.text[0], "refused without a word");
	expect(rc != 0 || (strlen(token) <= n && memcmp(token, p, strlen(token)) == 0),
	    "another token");
	close(fd);
}

/* ---- requests ---- */

static void make_gate(void)
{
	static const char *const names[] = {"boss", "eye"}, *const tokens[] = {BOSS "\n", EYE "\n"};
	struct weir_spec *spec = weir_spec_new("fuzz");
	struct weir_errs errs = {0};
	struct weir_err err = {0};
	struct auth_pass pass = {.token = 0};
	int fd[2];
	char path[64];

	expect(spec && authority_parse("127.0.0.1:9900", &here, &err) == 0, "no spec");
	weir_spec_text(&spec->admin.listen, "127.0.0.1:9900");
	for (int i = 0; i < 2; i++) {
		fd[i] = file_of(tokens[i], strlen(tokens[i]), 0600, path);
		struct weir_admin_client_spec *c = weir_spec_add_client(spec, names[i], path);
		expect(c != NULL, "no client");
		c->role = i == 0 ? WEIR_ADMIN_OPERATOR : WEIR_ADMIN_VIEWER;
	}
	expect(auth_new(&spec->admin, &here, &auth, &errs) == 0, "no auth");
	for (int i = 0; i < 2; i++)
		close(fd[i]);
	weir_spec_free(spec);
	static const char request[] =
	    "POST / HTTP/1.1\r\nHost: localhost:9900\r\nAuthorization: Bearer " BOSS "\r\n\r\n";
	struct auth_from from = {0};
	struct head_problem problem;
	expect(
	    auth_judge(auth, &from, request, sizeof(request) - 1, 0, &pass, &problem), "no pass");
	expect(auth_begin(auth, &pass, cookie, sizeof(cookie), 0) == 0, "no session");
	*strchr(cookie, ';') = '\0';
}

/* The request with the bytes 1, 2 and 3 replaced. */
static size_t filled(const char *p, size_t n, char *out)
{
	size_t to = 0;

	for (size_t i = 0; i < n && to + sizeof(cookie) < REQUEST_BYTES; i++) {
		const char *text = p[i] == 1 ? BOSS : p[i] == 2 ? EYE : p[i] == 3 ? cookie : NULL;
		if (text)
			to += (size_t)snprintf(out + to, REQUEST_BYTES - to, "%s", text);
		else
			out[to++] = p[i];
	}
	return to;
}

/* The value of the field `name` in the head, read line by line; "" when it is missing. */
static void field_of(const char *p, size_t n, const char *name, char value[REQUEST_BYTES])
{
	size_t k = strlen(name);

	*value = '\0';
	for (const char *end = p + n, *nl; (nl = memchr(p, '\n', (size_t)(end - p))) && nl > p + 1;
	     p = nl + 1) {
		if ((size_t)(nl - p) <= k || strncasecmp(p, name, k) != 0 || p[k] != ':')
			continue;
		const char *from = p + k + 1, *to = nl - 1;
		while (from < to && strchr(" \t", *from))
			from++;
		while (to > from && strchr(" \t", to[-1]))
			to--;
		snprintf(value, REQUEST_BYTES, "%.*s", (int)(to - from), from);
	}
}

/* The client that the request authenticates: "boss", "eye", or "". */
static const char *who(const char *p, size_t n)
{
	static char value[REQUEST_BYTES];
	char *at, *part;

	field_of(p, n, "Authorization", value);
	if (*value) {
		if (strncasecmp(value, "Bearer ", 7) != 0)
			return "";
		for (at = value + 7; *at == ' '; at++)
			;
		return strcmp(at, BOSS) == 0 ? "boss" : strcmp(at, EYE) == 0 ? "eye" : "";
	}
	field_of(p, n, "Cookie", value);
	for (part = strtok_r(value, ";", &at); part; part = strtok_r(NULL, ";", &at))
		if (strcmp(part + strspn(part, " "), cookie) == 0)
			return "boss";
	return "";
}

/* Is the requested path open to all? */
static bool is_open(const char *p)
{
	static const char *const prefix[] = {
	    "GET /api", "HEAD /api", "GET /metrics", "HEAD /metrics"};

	for (size_t i = 0; i < sizeof(prefix) / sizeof(prefix[0]); i++)
		if (strncmp(p, prefix[i], strlen(prefix[i])) == 0)
			return false;
	return strncmp(p, "GET /", 5) == 0 || strncmp(p, "HEAD /", 6) == 0;
}

static void check_request(const char *p, size_t n)
{
	static unsigned serial;
	struct head_problem problem = {0};
	struct auth_pass pass = {0};
	struct auth_from from = {.address = {.ss_family = AF_INET}};
	enum head_verdict verdict = head_check(&here, p, n, &problem);

	expect(verdict != HEAD_BAD || (problem.status >= 400 && *problem.why),
	    "refused without a word");
	if (verdict != HEAD_WHOLE)
		return;
	/* A new address each time, so that earlier failures do not count. */
	((struct sockaddr_in *)(void *)&from.address)->sin_addr.s_addr = ++serial;
	bool in = auth_judge(auth, &from, p, n, serial, &pass, &problem);
	expect(in || (problem.status >= 400 && *problem.why), "refused without a word");
	if (in && pass.anyone)
		expect(pass.role == WEIR_ADMIN_VIEWER && is_open(p), "open to all");
	else if (in)
		expect(strcmp(pass.name, who(p, n)) == 0 &&
			   (pass.role == WEIR_ADMIN_OPERATOR) == (pass.name[0] == 'b'),
		    "let in by nothing that it says");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char request[REQUEST_BYTES];

	if (!auth) {
		weir_log_set_fd(-1);
		make_gate();
	}
	if (size == 0)
		return 0;
	if (data[0] % 4 == 0)
		check_file(data[0] >> 2, (const char *)data + 1, size - 1);
	else
		check_request(request, filled((const char *)data + 1, size - 1, request));
	return 0;
}
