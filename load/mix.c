/* SPDX-License-Identifier: MIT */
/*
 * Builds requests and checks their parts; see mix.h. load_class_seal() computes the member
 * `cumulative` of each request; until then, `cumulative` contains the weight.
 *
 * The checks ensure that a server parses each request as exactly one request (RFC 9112). A control
 * byte or a second Content-Length from the command line could turn one request into two and would
 * falsify all later counts.
 */
#include "load/mix.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "load/sentence.h"

#define METHOD_MAX_BYTES 32

/* ---- checks ---- */

static size_t token_length(const char *s)
{
	size_t n = 0;

	while (
	    (s[n] > 0 && isalnum((unsigned char)s[n])) || (s[n] && strchr("!#$%&'*+-.^_`|~", s[n])))
		n++;
	return n;
}

static int check_method(const char *method, struct weir_err *err)
{
	size_t n = token_length(method);

	if (n == 0 || n > METHOD_MAX_BYTES || method[n] != '\0')
		return sentence(
		    err, WEIR_EINVAL, "'%.60s' is not a method, such as GET or POST", method);
	if (strcmp(method, "CONNECT") == 0)
		return sentence(err, WEIR_EINVAL,
		    "the method CONNECT is not supported, since it opens a tunnel");
	return 0;
}

static int check_path(const char *path, const char *method, struct weir_err *err)
{
	bool star = strcmp(path, "*") == 0 && strcmp(method, "OPTIONS") == 0;

	if (path[0] != '/' && !star)
		return sentence(
		    err, WEIR_EINVAL, "'%.100s' is not a path: a path begins with /", path);
	for (const char *p = path; *p; p++)
		if ((unsigned char)*p <= 0x20 || (unsigned char)*p >= 0x7f)
			return sentence(err, WEIR_EINVAL,
			    "the path '%.100s' contains the byte 0x%02x: write it as %%%02X", path,
			    (unsigned char)*p, (unsigned char)*p);
	return 0;
}

static bool named(const char *header, const char *name)
{
	size_t n = strlen(name);

	return strncasecmp(header, name, n) == 0 && header[n] == ':';
}

static int check_header(const char *header, struct weir_err *err)
{
	static const char *const ours[] = {
	    "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Expect"};
	size_t n = token_length(header);

	if (n == 0 || header[n] != ':')
		return sentence(
		    err, WEIR_EINVAL, "'%.100s' is not a header: write 'Name: value'", header);
	for (const char *p = header + n; *p; p++)
		if (((unsigned char)*p < 0x20 && *p != '\t') || *p == 0x7f)
			return sentence(err, WEIR_EINVAL,
			    "the header '%.100s' contains the control byte 0x%02x", header,
			    (unsigned char)*p);
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (named(header, ours[i]))
			return sentence(err, WEIR_EINVAL,
			    "the header '%.100s' cannot be set, since the generator decides on it",
			    header);
	return 0;
}

static int check_all(const struct mix_head *head, const char *path, double weight, size_t n_body,
    struct weir_err *err)
{
	int rc = check_method(head->method, err);

	if (rc == 0)
		rc = check_path(path, head->method, err);
	for (int i = 0; i < head->n_headers && rc == 0; i++)
		rc = check_header(head->header[i], err);
	if (rc == 0 && !(weight > 0 && isfinite(weight)))
		rc = sentence(err, WEIR_EINVAL,
		    "the weight %g of '%.100s' is not a finite number above 0", weight, path);
	if (rc == 0 && n_body > MIX_BODY_MAX_BYTES)
		rc = sentence(err, WEIR_EINVAL, "the body for '%.100s' is larger than 64MiB", path);
	return rc;
}

/* ---- requests ---- */

static bool has_host(const struct mix_head *head)
{
	for (int i = 0; i < head->n_headers; i++)
		if (named(head->header[i], "Host"))
			return true;
	return false;
}

/* Whether requests with this method must state the length of their body even if it is empty (RFC
 * 9110, 8.6). */
static bool wants_length(const char *method)
{
	return strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 ||
	       strcmp(method, "PATCH") == 0;
}

/* Append `a`, `b` and `c` to out[0..at), or only count their bytes if `out` is NULL. Returns the
 * new length. Each head is assembled twice, the first time only to determine its length. */
static size_t put(char *out, size_t at, const char *a, const char *b, const char *c)
{
	const char *part[] = {a, b, c};

	for (int i = 0; i < 3; i++) {
		size_t n = strlen(part[i]);
		if (out)
			memcpy(out + at, part[i], n);
		at += n;
	}
	return at;
}

static size_t write_head(
    char *out, const struct mix_head *head, const char *path, bool body, size_t n_body)
{
	char length[32];
	size_t n = put(out, 0, head->method, " ", path);

	n = put(out, n, " HTTP/1.1\r\n", "", "");
	if (!has_host(head))
		n = put(out, n, "Host: ", head->host, "\r\n");
	for (int i = 0; i < head->n_headers; i++)
		n = put(out, n, head->header[i], "\r\n", "");
	if (head->close)
		n = put(out, n, "Connection: close\r\n", "", "");
	if (body || wants_length(head->method)) {
		snprintf(length, sizeof(length), "%zu", n_body);
		n = put(out, n, "Content-Length: ", length, "\r\n");
	}
	return put(out, n, "\r\n", "", "");
}

/* Make space for one more request. The array is full when it has 2^k items; its size is then
 * doubled. */
static int make_room(struct load_class *cls, struct weir_err *err)
{
	int n = cls->n_requests;

	if (n >= MIX_REQUESTS_MAX)
		return sentence(err, WEIR_EINVAL, "class '%.32s' has more than %d requests",
		    cls->name, MIX_REQUESTS_MAX);
	if ((n & (n - 1)) != 0)
		return 0;
	struct load_request *more = realloc(cls->request, (n ? 2 * (size_t)n : 1) * sizeof(*more));
	if (!more)
		return sentence_nomem(err);
	cls->request = more;
	return 0;
}

int mix_add(struct load_class *cls, const struct mix_head *head, const char *path, double weight,
    const char *body, size_t n_body, struct weir_err *err)
{
	int rc = check_all(head, path, weight, n_body, err);

	if (rc == 0)
		rc = make_room(cls, err);
	if (rc != 0)
		return rc;
	struct load_request r = {.at_ns = -1, .cumulative = weight};
	r.no_body = strcmp(head->method, "HEAD") == 0;
	r.n_head = write_head(NULL, head, path, body, n_body);
	r.n_bytes = r.n_head + n_body;
	r.bytes = malloc(r.n_bytes);
	if (!r.bytes)
		return sentence_nomem(err);
	write_head(r.bytes, head, path, body, n_body);
	if (n_body > 0)
		memcpy(r.bytes + r.n_head, body, n_body);
	cls->request[cls->n_requests++] = r;
	return 0;
}

/* ---- bodies ---- */

static int visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Read a file of `size` bytes. If the file shrinks in the meantime, *n is less than `size`. */
static int read_body(int fd, char *body, size_t size, size_t *n)
{
	for (*n = 0; *n < size;) {
		ssize_t got = read(fd, body + *n, size - *n);
		if (got == -1 && errno != EINTR)
			return WEIR_ESYS;
		if (got == 0)
			break;
		*n += got > 0 ? (size_t)got : 0;
	}
	return 0;
}

static int add_body(struct load_class *cls, const struct mix_head *head, const char *path, int fd,
    const char *name, size_t size, struct weir_err *err)
{
	char *body = malloc(size ? size : 1);
	size_t n;

	if (!body)
		return sentence_nomem(err);
	int rc = read_body(fd, body, size, &n);
	rc = rc != 0 ? sentence_errno(err, name) : mix_add(cls, head, path, 1, body, n, err);
	free(body);
	return rc;
}

/* Add a request with the file `name` as its body. Anything but a regular file is skipped. */
static int add_file(struct load_class *cls, const struct mix_head *head, const char *path, int dir,
    const char *name, struct weir_err *err)
{
	struct stat st;
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd == -1)
		return sentence_errno(err, name);
	int rc = fstat(fd, &st) == -1 ? sentence_errno(err, name) : 0;
	if (rc == 0 && S_ISREG(st.st_mode) && st.st_size > MIX_BODY_MAX_BYTES)
		rc = sentence(err, WEIR_EINVAL, "the body '%.180s' is larger than 64MiB", name);
	else if (rc == 0 && S_ISREG(st.st_mode))
		rc = add_body(cls, head, path, fd, name, (size_t)st.st_size, err);
	close(fd);
	return rc;
}

int mix_add_bodies(struct load_class *cls, const struct mix_head *head, const char *path,
    const char *dir, struct weir_err *err)
{
	struct dirent **names = NULL;
	int before = cls->n_requests, rc = 0;
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd == -1)
		return sentence_errno(err, dir);
	int n = scandirat(fd, ".", &names, visible, by_name);
	if (n == -1)
		rc = sentence_errno(err, dir);
	for (int i = 0; i < n; i++) {
		if (rc == 0)
			rc = add_file(cls, head, path, fd, names[i]->d_name, err);
		free(names[i]);
	}
	free(names);
	close(fd);
	if (rc == 0 && cls->n_requests == before)
		rc = sentence(err, WEIR_EINVAL, "the folder '%.180s' contains no file", dir);
	return rc;
}

int load_class_seal(struct load_class *cls, struct weir_err *err)
{
	double sum = 0, before = 0;

	if (cls->n_requests == 0)
		return sentence(err, WEIR_EINVAL, "class '%.32s' has no request", cls->name);
	for (int i = 0; i < cls->n_requests; i++)
		sum += cls->request[i].cumulative;
	for (int i = 0; i < cls->n_requests; i++) {
		before += cls->request[i].cumulative / sum;
		cls->request[i].cumulative = before;
	}
	cls->request[cls->n_requests - 1].cumulative = 1;
	return 0;
}
