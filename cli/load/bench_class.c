/* SPDX-License-Identifier: MIT */
/* Builds the requests of one class of `weir bench` from its options. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load/mix.h"
#include "load/sentence.h"

/* Default number of files of a synthetic site. 1000 is a guess: with few files, all requests would
 * be answered from caches. */
#define SITE_FILES 1000

/* Maximum size of a body. 64 MiB is a guess: larger ones are not plausible in a load test. */
#define BODY_MAX (64 << 20)

/* If `text` is "@FILE", read the body from the file; the caller frees *owned. Otherwise, the body
 * is `text` itself, and *owned is NULL. */
static int read_body(const char *text, char **owned, size_t *n, struct weir_err *err)
{
	*owned = NULL;
	*n = strlen(text);
	if (text[0] != '@')
		return 0;
	FILE *f = fopen(text + 1, "rb");
	char *buf = f ? malloc(BODY_MAX + 1) : NULL;
	if (!buf) {
		sentence(err, WEIR_ESYS, "--body '%s' cannot be read", text);
		if (f)
			fclose(f);
		return WEIR_ESYS;
	}
	*n = fread(buf, 1, BODY_MAX + 1, f);
	bool bad = ferror(f) || *n > BODY_MAX;
	fclose(f);
	if (bad) {
		free(buf);
		sentence(err, WEIR_EINVAL, "--body '%s' cannot be read, or is over 64 MiB", text);
		return WEIR_EINVAL;
	}
	*owned = buf;
	return 0;
}

static int add_site(const struct bench_class *from, const struct mix_head *head, const char *path,
    const struct bench_options *opt, struct load_class *cls, struct weir_err *err)
{
	char kind[16], prefix[1024];
	const char *colon = strchr(from->site, ':');
	size_t n = colon ? (size_t)(colon - from->site) : strlen(from->site);
	char *end = NULL;
	long files = colon ? strtol(colon + 1, &end, 10) : SITE_FILES;

	if (n >= sizeof(kind) || (colon && (*end || files < 1 || files > 10000000))) {
		sentence(err, WEIR_EINVAL,
		    "--site '%s': use specweb99 or surge, optionally with :FILES", from->site);
		return WEIR_EINVAL;
	}
	memcpy(kind, from->site, n);
	kind[n] = '\0';
	snprintf(prefix, sizeof(prefix), "%s", path);
	for (size_t len = strlen(prefix); len && prefix[len - 1] == '/';)
		prefix[--len] = '\0';
	int rc = mix_add_site(cls, head, kind, prefix, (int)files, (uint64_t)opt->seed, err);
	if (rc == 0 && opt->make_site)
		rc = mix_write_site(kind, (int)files, (uint64_t)opt->seed, opt->make_site, err);
	return rc;
}

static int add_one(const struct bench_class *from, const struct mix_head *head, const char *path,
    struct load_class *cls, struct weir_err *err)
{
	char *owned = NULL;
	size_t n = 0;
	int rc = from->body ? read_body(from->body, &owned, &n, err) : 0;

	if (rc == 0)
		rc = mix_add(cls, head, path, 1, owned ? owned : from->body, n, err);
	free(owned);
	return rc;
}

/* Add one request per user, in the order of users. The requests differ only in the field X-User. */
static int add_users(const struct bench_class *from, const struct mix_head *head, const char *path,
    struct load_class *cls, struct weir_err *err)
{
	const char *header[33];
	struct mix_head own = *head;
	char field[32];
	int rc = 0;

	memcpy(header, from->header, (size_t)from->n_headers * sizeof(header[0]));
	header[own.n_headers++] = field;
	own.header = header;
	for (int i = 0; rc == 0 && i < from->users; i++) {
		snprintf(field, sizeof(field), "X-User: u%d", i);
		rc = add_one(from, &own, path, cls, err);
	}
	cls->users = from->users;
	return rc;
}

/* Format the value of the Host field: an IPv6 address is in brackets, and the port is omitted if it
 * is the default of the scheme. */
static void host_field(const struct load_plan *plan, char *buf, size_t size)
{
	bool six = strchr(plan->host, ':') != NULL;
	bool own = strcmp(plan->port, plan->tls ? "443" : "80") == 0;

	snprintf(buf, size, "%s%s%s%s%s", six ? "[" : "", plan->host, six ? "]" : "",
	    own ? "" : ":", own ? "" : plan->port);
}

int bench_class_fill(const struct bench_request *req, const struct bench_class *from,
    const struct load_plan *plan, const char *path, struct load_class *cls, struct weir_err *err)
{
	char host[300];
	bool body = from->body || from->bodies;
	struct mix_head head = {.method = from->method ? from->method
					  : body       ? "POST"
						       : "GET",
	    .host = host,
	    .n_headers = from->n_headers,
	    .header = from->header,
	    .close = plan->fresh};
	int rc;

	host_field(plan, host, sizeof(host));
	memcpy(cls->name, from->name, sizeof(cls->name));
	cls->weight = from->weight;
	path = from->path ? from->path : path;
	if (from->expect && expect_parse(from->expect, &cls->expect, err) != 0)
		return WEIR_EINVAL;
	if ((from->replay != NULL) + (from->site != NULL) + (from->paths != NULL) + body > 1) {
		sentence(err, WEIR_EINVAL,
		    "in class '%s', use only one of --body, --bodies, --paths, --replay and --site",
		    from->name);
		return WEIR_EINVAL;
	}
	if (from->users > 0 && (from->replay || from->site || from->bodies || from->paths)) {
		sentence(err, WEIR_EINVAL,
		    "in class '%s', --users works with --path and --body only", from->name);
		return WEIR_EINVAL;
	}
	if (from->replay)
		rc = mix_add_log(cls, &head, from->replay, err);
	else if (from->site)
		rc = add_site(from, &head, path, &req->opt, cls, err);
	else if (from->paths)
		rc = mix_add_paths(cls, &head, from->paths, err);
	else if (from->bodies)
		rc = mix_add_bodies(cls, &head, path, from->bodies, err);
	else if (from->users > 0)
		rc = add_users(from, &head, path, cls, err);
	else
		rc = add_one(from, &head, path, cls, err);
	return rc == 0 ? load_class_seal(cls, err) : rc;
}
