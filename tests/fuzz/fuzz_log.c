/* SPDX-License-Identifier: MIT */
/*
 * Whatever clients send, a log has one line per request, of visible ASCII, with valid quotes and
 * JSON.
 *
 * Input: a byte whose low bits give the format (logfmt, json, common, combined; 4 and 5: the
 * server's own log as logfmt and json), then texts separated by newlines: method, target, host,
 * agent, referer. For the server's own log the rest is the text, up to its first NUL.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <jansson.h>

#include <weir/log.h>
#include <weir/log_file.h>

#include "http/request/access_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool cond, const char *what)
{
	if (cond)
		return;
	fprintf(stderr, "fuzz_log: %s\n", what);
	abort();
}

/* ---- parsing a line in the simplest way ---- */

static void check_bytes(const char *line, size_t n, bool ascii)
{
	expect(n > 1 && line[n - 1] == '\n', "no line");
	for (size_t i = 0; i + 1 < n; i++) {
		unsigned char b = (unsigned char)line[i];
		expect(b >= 0x20 && b != 0x7f && (b < 0x80 || !ascii),
		    "a byte that must not get through");
	}
}

/* name=value: a value without blanks and quotes, or in quotes with '\' before special
 * characters. */
static void check_pairs(const char *p, const char *end)
{
	while (p < end) {
		const char *name = p;
		while (p < end && *p != '=')
			expect(*p++ != ' ', "a name with a blank");
		expect(p > name && p++ < end, "no name and value");
		if (p < end && *p == '"') {
			for (p++; p < end && *p != '"'; p++)
				p += *p == '\\';
			expect(p++ < end, "a quote that does not end");
		} else {
			for (; p < end && *p != ' '; p++)
				expect(*p != '"' && *p != '=', "a word that wants quotes");
		}
		expect(p == end || *p++ == ' ', "something behind a value");
	}
}

static void check_json(const char *line, size_t n)
{
	json_error_t error;
	json_t *v = json_loadb(line, n, JSON_REJECT_DUPLICATES, &error);

	expect(json_is_object(v), error.text);
	json_decref(v);
}

/* common and combined: quotes come in pairs. */
static void check_quotes(const char *p, const char *end)
{
	int quotes = 0;

	for (; p < end; p++) {
		quotes += *p == '"';
		p += *p == '\\';
	}
	expect(quotes % 2 == 0, "a quote is open");
}

/* ---- lines of access_log ---- */

static struct weir_slice next(const char **p, const char *end)
{
	const char *nl = *p < end ? memchr(*p, '\n', (size_t)(end - *p)) : NULL;
	struct weir_slice s = {*p, (size_t)((nl ? nl : end) - *p)};

	*p = nl ? nl + 1 : end;
	return s;
}

static void check_access(enum access_format format, const char *p, const char *end)
{
	static char text[ACCESS_LINE_BYTES];
	struct weir_http_request *req = calloc(1, weir_http_request_type.size);
	struct weir_http_header headers[2] = {
	    {{"User-Agent", 10}, {NULL, 0}}, {{"Referer", 7}, {NULL, 0}}};
	struct access_line line = {
	    .req = req, .class_name = "default", .client = {"192.0.2.1", 9}, .share = 0.5};
	size_t n;

	expect(req != NULL, "no memory");
	weir_event_init(&req->ev, &weir_http_request_type, 0);
	req->method_text = next(&p, end);
	req->target = next(&p, end);
	req->host = next(&p, end);
	headers[0].value = next(&p, end);
	headers[1].value = next(&p, end);
	req->headers = headers;
	req->n_headers = 2;
	req->minor = 1;
	req->res.fd = -1;
	req->res.status = 200;
	n = access_line(format, &line, text);
	expect(n <= sizeof(text), "too long");
	check_bytes(text, n, true);
	if (format == ACCESS_JSON)
		check_json(text, n);
	else if (format == ACCESS_LOGFMT)
		check_pairs(text, text + n - 1);
	else
		check_quotes(text, text + n - 1);
	free(req);
}

/* ---- the server's own log ---- */

static void check_own(bool json, const char *p, size_t size)
{
	static int fd = -1;
	static char line[8192];
	char *text = strndup(p, size);
	ssize_t n;

	if (fd == -1) {
		fd = memfd_create("log", MFD_CLOEXEC);
		weir_log_set_fd(fd);
	}
	expect(fd != -1 && text && ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0, "no file");
	weir_log_set_format(json ? WEIR_LOG_JSON : WEIR_LOG_LOGFMT);
	weir_log(WEIR_LOG_ERROR, "%s", text);
	n = pread(fd, line, sizeof(line), 0);
	expect(n > 0 && n < (ssize_t)sizeof(line), "no line, or an endless one");
	check_bytes(line, (size_t)n, false); /* UTF-8 is allowed */
	if (json)
		check_json(line, (size_t)n);
	else
		check_pairs(line, line + n - 1);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *p = (const char *)data + 1, *end = (const char *)data + size;
	int shape = size > 0 ? data[0] % 6 : 0;

	if (size == 0)
		return 0;
	if (shape < 4)
		check_access((enum access_format)shape, p, end);
	else
		check_own(shape == 5, p, size - 1);
	return 0;
}
