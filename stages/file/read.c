/* SPDX-License-Identifier: MIT */
/*
 * file.read: answer requests with files below a root directory.
 *
 *   path --path_map--> name --file_open--> file --variant_choose--> variant
 *        --condition_judge--> 200 206 304 412 416
 *
 * Every step may end the request: 204 and 405 (method), 400 and 404 (path.h), 301 to the
 * directory's own path, 403, 404, 503 (open.h), 406 (variant.h), a listing (listing.h). A request
 * that would get 404 is emitted to the outlet `missing` if that outlet is linked, so that another
 * stage can answer it. A response with one of the statuses 400 to 406 has the page configured in
 * `error_pages` as its body, if there is one.
 *
 * Small bodies are read into memory here, in this stage's pool, since reads may wait for the disk.
 * Bodies larger than `max_read` are passed on as a descriptor for sendfile.
 *
 * Threads share only two things: the descriptor of the root, whose number never changes, and the
 * time of the next check of whether the root path leads to another directory.
 */
#include "read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "listing.h"

/* Space for the fixed part of the fields: names, an ETag of 63 bytes, a date of 29, and media types
 * of up to 63. */
#define READ_FIELDS_BYTES 448

/* Interval between checks of whether the root path leads to another directory. A check costs two
 * stats, which is negligible at this rate. The interval equals the default of `revalidate` in
 * file.cache, so that a new directory is noticed as soon as a new file. */
#define READ_ROOT_LOOK_NS 1000000000LL

static void follow_root(struct weir_stage *st)
{
	struct read_state *state = weir_state(st);
	int64_t now_ns = weir_now_ns(st);
	int_fast64_t due_ns = atomic_load_explicit(&state->root_look_ns, memory_order_relaxed);

	if (now_ns >= due_ns &&
	    atomic_compare_exchange_strong_explicit(&state->root_look_ns, &due_ns,
		now_ns + READ_ROOT_LOOK_NS, memory_order_relaxed, memory_order_relaxed))
		file_root_follow(state->root_path, state->root);
}

/* Open the file for the request path. Returns 0 with *file open, 301 for a directory, or the HTTP
 * status of another failure. */
static int read_open(struct weir_stage *st, const struct weir_http_request *req, struct file *file,
    char name[PATH_MAP_MAX])
{
	const struct read_conf *conf = weir_conf(st);
	const struct read_state *state = weir_state(st);
	int rc = path_map(req->path, conf->index, name, PATH_MAP_MAX);

	if (rc < 0)
		return rc == WEIR_ENOENT ? 404 : 400;
	rc = file_open(state->root, (enum file_links)conf->symlinks, name, file);
	return rc == 0 ? 0 : file->status;
}

/* Respond with the existing file `file`, in the variant that suits the client. */
static int read_answer(
    struct weir_stage *st, struct weir_http_request *req, const struct file *file, const char *name)
{
	const struct read_conf *conf = weir_conf(st);
	const struct read_state *state = weir_state(st);
	struct variant v = {.file = *file, .encoding = ENCODING_IDENTITY};
	struct encoding_wish wish;

	if (state->order.n == 0)
		return answer_file(st, req, &v, name);
	encoding_wish(req, &wish);
	int rc = variant_choose(
	    state->root, (enum file_links)conf->symlinks, name, &state->order, &wish, &v);
	if (rc == 0)
		return answer_file(st, req, &v, name);
	if (rc != WEIR_ENOENT)
		return rc;
	rc = refuse_status(st, req, 406);
	return rc < 0 ? rc : weir_http_add_field(req, "Vary", "Accept-Encoding");
}

/* Respond with a listing of the directory that the path names. Returns false if there is no
 * directory to list. */
static bool read_list(struct weir_stage *st, struct weir_http_request *req, int *outcome)
{
	const struct read_conf *conf = weir_conf(st);
	const struct read_state *state = weir_state(st);
	enum listing_form form = (enum listing_form)conf->listing;
	char name[PATH_MAP_MAX], *body;
	size_t n;

	if (form == LISTING_OFF || path_map_directory(req->path, name, sizeof(name)) < 0)
		return false;
	int rc = listing_make(state->root, (enum file_links)conf->symlinks, name, form, &body, &n);
	if (rc == WEIR_ENOENT)
		return false;
	weir_count(st, READ_LISTINGS, 1);
	if (rc == 0)
		rc = answer_listing(st, req, (struct weir_slice){body, n});
	*outcome = rc;
	return true;
}

/* Refuse a request for which there is no file. The response is set unless an error is returned. */
static int read_refuse(
    struct weir_stage *st, struct weir_http_request *req, int status, const char *name)
{
	if (status == 301)
		return refuse_redirect(req, name);
	if (status == 503)
		return WEIR_EPRESSURE;
	if (status == 500)
		return WEIR_ESYS;
	return refuse_status(st, req, status);
}

static void read_one(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_http_request *req = weir_http_request(*ev);
	char name[PATH_MAP_MAX];
	struct file file;
	int rc;

	if (req->method != WEIR_HTTP_GET && req->method != WEIR_HTTP_HEAD) {
		rc = refuse_method(st, req);
		weir_event_finish(ev, rc);
		return;
	}
	int status = read_open(st, req, &file, name);
	if (status == 404 && read_list(st, req, &rc)) {
		weir_event_finish(ev, rc);
		return;
	}
	if (status == 404 && weir_outlet_linked(st, READ_MISSING)) {
		weir_count(st, READ_REFUSED, 1);
		weir_emit(st, READ_MISSING, ev);
		return;
	}
	weir_count(st, READ_FILES, status == 0);
	rc = status == 0 ? read_answer(st, req, &file, name) : read_refuse(st, req, status, name);
	weir_event_finish(ev, rc);
}

static void read_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	follow_root(st);
	for (int i = 0; i < n; i++)
		read_one(st, &ev[i]);
}

/* ---- lifecycle ---- */

static bool is_one_line(const char *text)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		if ((*p < 0x20 && *p != '\t') || *p == 0x7f)
			return false;
	return true;
}

/* Check all Cache-Control values. The longest one determines the space reserved for fields. */
static int check_cache_control(struct weir_stage *st, struct weir_err *err)
{
	const struct read_conf *conf = weir_conf(st);
	const struct read_rule *r = (const struct read_rule *)(const void *)conf->rules.items;
	size_t longest = strlen(conf->cache_control);
	bool good = is_one_line(conf->cache_control);
	char at[64] = "cache_control";

	for (int i = 0; i < conf->rules.n && good; i++) {
		size_t n = strlen(r[i].value);
		longest = n > longest ? n : longest;
		good = is_one_line(r[i].value);
		snprintf(at, sizeof(at), "cache_rules.%d.value", i + 1);
	}
	((struct read_state *)weir_state(st))->fields_bytes = READ_FIELDS_BYTES + longest;
	if (good)
		return 0;
	weir_blame(st, at);
	snprintf(err->text, sizeof(err->text), "'cache_control' must be one line");
	return WEIR_EINVAL;
}

static int check_precompressed(struct weir_stage *st, struct weir_err *err)
{
	const struct read_conf *conf = weir_conf(st);
	struct read_state *state = weir_state(st);
	char at[32];

	for (int i = 0; i < conf->precompressed.n; i++) {
		const char *text = conf->precompressed.items[i];
		enum encoding e = encoding_find((struct weir_slice){text, strlen(text)});
		bool twice = false;
		for (int k = 0; k < state->order.n; k++)
			twice = twice || state->order.e[k] == e;
		if (e >= ENCODING_IDENTITY || twice) {
			snprintf(err->text, sizeof(err->text),
			    twice ? "'precompressed' names '%.60s' twice"
				  : "'precompressed' cannot contain '%.60s'",
			    text);
			snprintf(err->hint, sizeof(err->hint), "use br, zstd or gzip");
			snprintf(at, sizeof(at), "precompressed.%d", i + 1);
			weir_blame(st, at);
			return WEIR_EINVAL;
		}
		state->order.e[state->order.n++] = e;
	}
	return 0;
}

static int check_page(struct weir_stage *st, int status, const char *path, struct weir_err *err)
{
	char name[PATH_MAP_MAX], at[32];

	if (*path == '\0' ||
	    path_map((struct weir_slice){path, strlen(path)}, "", name, sizeof(name)) == 0)
		return 0;
	snprintf(err->text, sizeof(err->text), "'error_pages' cannot be '%.150s'", path);
	snprintf(err->hint, sizeof(err->hint),
	    "name a file below 'root' by the path of its request: /404.html");
	snprintf(at, sizeof(at), "error_pages.%d", status);
	weir_blame(st, at);
	return WEIR_EINVAL;
}

static int check_pages(struct weir_stage *st, const struct read_pages *pages, struct weir_err *err)
{
	int rc = 0;

#define READ_PAGE(status) rc = rc < 0 ? rc : check_page(st, status, pages->page_##status, err);
	READ_PAGES(READ_PAGE)
#undef READ_PAGE
	return rc;
}

static int read_init(struct weir_stage *st, struct weir_err *err)
{
	const struct read_conf *conf = weir_conf(st);
	struct read_state *state = weir_state(st);

	int rc = check_cache_control(st, err);
	if (rc == 0)
		rc = check_precompressed(st, err);
	if (rc == 0)
		rc = check_pages(st, &conf->pages, err);
	if (rc < 0)
		return rc;
	if (strchr(conf->index, '/')) {
		weir_blame(st, "index");
		snprintf(err->text, sizeof(err->text), "'index' must be a file name, not a path");
		return WEIR_EINVAL;
	}
	state->root_path = file_root_path(conf->root);
	if (!state->root_path || file_root(conf->root, &state->root) < 0) {
		free(state->root_path);
		weir_blame(st, "root");
		snprintf(err->text, sizeof(err->text), "root '%.150s' cannot be opened: %s",
		    conf->root, strerror(errno));
		snprintf(err->hint, sizeof(err->hint),
		    "'root' is a directory; a relative path starts at the folder of the YAML file");
		return WEIR_ESYS;
	}
	read_warn(st);
	return 0;
}

static void read_fini(struct weir_stage *st)
{
	struct read_state *state = weir_state(st);

	close(state->root);
	free(state->root_path);
}

static const struct weir_knob rule_knobs[] = {
    {.name = "match",
	.type = WEIR_KNOB_STRING,
	.offset = offsetof(struct read_rule, match),
	.flags = WEIR_KNOB_REQUIRED,
	.help =
	    "pattern of file names, such as \"*.css\", or, if it has a slash, of paths, such as "
	    "\"/assets/*\"; in a path, a star also matches slashes"},
    {.name = "value",
	.type = WEIR_KNOB_STRING,
	.offset = offsetof(struct read_rule, value),
	.flags = WEIR_KNOB_REQUIRED,
	.help = "value of Cache-Control; empty: none"},
    {0},
};

static const struct weir_knob page_knobs[] = {
#define READ_PAGE(s)                                                                               \
	{.name = #s,                                                                               \
	    .type = WEIR_KNOB_STRING,                                                              \
	    .offset = offsetof(struct read_pages, page_##s),                                       \
	    .def = "",                                                                             \
	    .help =                                                                                \
		"path of the page for " #s ", such as \"/" #s ".html\"; empty: a line of text"},
    READ_PAGES(READ_PAGE)
#undef READ_PAGE
	{0},
};

static const struct weir_knob read_knobs[] = {
    {.name = "root",
	.type = WEIR_KNOB_STRING,
	.offset = offsetof(struct read_conf, root),
	.flags = WEIR_KNOB_REQUIRED,
	.help = "directory that contains the files"},
    {.name = "index",
	.type = WEIR_KNOB_STRING,
	.offset = offsetof(struct read_conf, index),
	.def = "index.html",
	.help = "file that answers for its directory; empty: none does"},
    /* Measured here (wrk, 16 connections, one core): CPU time per request with read, relative to
     * sendfile, is 0.95 at 1 KiB, 1.0 to 1.05 at 4 and 16 KiB, 1.25 at 64, 2.5 at 256, 3.1 at
     * 1024. */
    {.name = "max_read",
	.type = WEIR_KNOB_BYTES,
	.offset = offsetof(struct read_conf, max_read_bytes),
	.def = "16KiB",
	.min = 0,
	.max = 1 << 26,
	.flags = WEIR_KNOB_LIVE,
	.help = "larger bodies are not read into memory, but sent from the open file (by sendfile, "
		"except over TLS without kTLS)"},
    {.name = "cache_control",
	.type = WEIR_KNOB_STRING,
	.offset = offsetof(struct read_conf, cache_control),
	.def = "",
	.help = "value of Cache-Control for every file, such as \"max-age=60\"; empty sends none"},
    {.name = "cache_rules",
	.type = WEIR_KNOB_RECORDS,
	.offset = offsetof(struct read_conf, rules),
	.fields = rule_knobs,
	.record_size = sizeof(struct read_rule),
	.help = "Cache-Control by name: the first match applies, else 'cache_control'"},
    /* Off by default: each coding costs an openat2 for every file that is read, and not every site
     * guarantees that a .gz beside a file has the same content. */
    {.name = "precompressed",
	.type = WEIR_KNOB_STRINGS,
	.offset = offsetof(struct read_conf, precompressed),
	.help = "codings, preferred first, such as [br, zstd, gzip]: a client that accepts one "
		"gets page.css.br, .zst or .gz in place of page.css, unless page.css is newer"},
    {.name = "listing",
	.type = WEIR_KNOB_ENUM,
	.offset = offsetof(struct read_conf, listing),
	.def = "off",
	.choices = "off|html|json",
	.help = "answer to requests for a directory without an index; off answers 404"},
    {.name = "error_pages",
	.type = WEIR_KNOB_MAP,
	.offset = offsetof(struct read_conf, pages),
	.fields = page_knobs,
	.help = "files used as the bodies of error answers, by status"},
    {.name = "symlinks",
	.type = WEIR_KNOB_ENUM,
	.offset = offsetof(struct read_conf, symlinks),
	.def = "no",
	.choices = "no|beneath",
	.help = "symbolic links to follow: none, or relative ones that stay below 'root', even to "
		"dot files"},
    {.name = "etag",
	.type = WEIR_KNOB_ENUM,
	.offset = offsetof(struct read_conf, etag),
	.def = "local",
	.choices = "local|portable",
	.help =
	    "contents of the ETag of a file: size, inode and both times, so that every change "
	    "alters it; or size and modification time, so that copies on several hosts can have "
	    "the same ETag"},
    {.name = "nosniff",
	.type = WEIR_KNOB_BOOL,
	.offset = offsetof(struct read_conf, nosniff),
	.def = "true",
	.help = "send X-Content-Type-Options: nosniff, so that browsers do not guess the type of a "
		"file"},
    {0},
};

static const struct weir_outlet read_outlets[] = {
    [READ_MISSING] = {.name = "missing",
	.type = &weir_http_request_type,
	.optional = true,
	.help = "requests for files that do not exist; if unlinked, they get 404"},
    {0},
};

static const struct weir_metric read_metrics[] = {
    [READ_FILES] = {"file_opened_total", WEIR_METRIC_COUNTER, "files",
	"Files opened to answer requests"},
    [READ_BYTES] = {"file_read_bytes_total", WEIR_METRIC_COUNTER, "bytes",
	"Bytes of files read into memory"},
    [READ_SENDFILES] = {"file_sendfile_total", WEIR_METRIC_COUNTER, "answers",
	"Answers that hold an open file: too large to read, or HEAD"},
    [READ_REFUSED] = {"file_refused_total", WEIR_METRIC_COUNTER, "requests",
	"Requests answered 400, 403, 404, 405 or 406, or sent to 'missing'"},
    [READ_PRECOMPRESSED] = {"file_precompressed_total", WEIR_METRIC_COUNTER, "answers",
	"Responses with a precompressed copy of a file"},
    [READ_LISTINGS] = {"file_listings_total", WEIR_METRIC_COUNTER, "answers",
	"Answers that list a directory"},
    {0},
};

const struct weir_stage_ops weir_stage_file_read = {
    .abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_BLOCKS | WEIR_STAGE_IN_PARTS,
    .name = "file.read",
    .summary = "Answers requests with files from a directory",
    .accepts = &weir_http_request_type,
    .outlets = read_outlets,
    .knobs = read_knobs,
    .conf_size = sizeof(struct read_conf),
    .metrics = read_metrics,
    .state_size = sizeof(struct read_state),
    .init = read_init,
    .handle = read_handle,
    .fini = read_fini,
};
