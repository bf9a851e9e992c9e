/* SPDX-License-Identifier: MIT */
/* A file server on real sockets over a root made for the test: web (http.server), cache
 * (file.cache, inline) unless omitted, disk (file.read). Everything is in one temporary folder,
 * which site_remove deletes. Files that must never be served contain SECRET. */
#ifndef WEIR_TESTS_FILE_FIXTURE_H
#define WEIR_TESTS_FILE_FIXTURE_H

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "config.h"
#include "http_fixture.h"

#define SECRET "top secret"

static char site_base[64]; /* contains secret.txt and root/ */

static inline const char *site_path(const char *name)
{
	static char path[300];

	snprintf(path, sizeof(path), "%s/%s", site_base, name);
	return path;
}

/* Time when the last file was put. Its ETag is weak for 100 ms after its ctime, which cannot be
 * set. */
static _Atomic int64_t site_put_ns;

static inline int64_t site_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Wait until the ETags of all files are strong. */
static inline void site_settle(void)
{
	int64_t until_ns = site_put_ns + 110000000;
	struct timespec then = {until_ns / 1000000000, until_ns % 1000000000};

	while (site_now_ns() < until_ns)
		clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &then, NULL);
}

/* Write `n` bytes to `name`, with a date in the past that depends on `age_s`. Atomically, as a
 * deployment does it: a new file replaces the old one. */
static inline void site_put(const char *name, const char *text, size_t n, int age_s)
{
	struct timespec then[2] = {{1500000000 - age_s, 0}, {1500000000 - age_s, 0}};
	char temporary[300];

	snprintf(temporary, sizeof(temporary), "%s", site_path("new"));
	int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CU_ASSERT_NOT_EQUAL_FATAL(fd, -1);
	for (size_t done = 0; done < n;) {
		ssize_t rc = write(fd, text + done, n - done);
		CU_ASSERT_FATAL(rc > 0);
		done += (size_t)rc;
	}
	CU_ASSERT_EQUAL_FATAL(futimens(fd, then), 0);
	close(fd);
	CU_ASSERT_EQUAL_FATAL(rename(temporary, site_path(name)), 0);
	site_put_ns = site_now_ns();
}

static inline void site_text(const char *name, const char *text)
{
	site_put(name, text, strlen(text), 0);
}

/* `n` bytes whose values depend on their position. */
static inline char *site_pattern(size_t n, int salt)
{
	char *p = malloc(n + 1);

	for (size_t i = 0; i < n; i++)
		p[i] = (char)('a' + (i / 7 + i + (size_t)salt) % 26);
	p[n] = '\0';
	return p;
}

static inline void site_dir(const char *name)
{
	CU_ASSERT_EQUAL_FATAL(mkdir(site_path(name), 0755), 0);
}

static inline void site_link(const char *target, const char *name)
{
	CU_ASSERT_EQUAL_FATAL(symlink(target, site_path(name)), 0);
}

static inline void site_socket(const char *name)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%.100s", site_path(name));
	CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	close(fd);
}

static inline void site_make(void)
{
	snprintf(site_base, sizeof(site_base), "/tmp/weir-site-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(site_base));
	site_dir("root");
}

/* Traps: everything that a path might reach but must not. */
static inline void site_set_traps(void)
{
	site_text("secret.txt", SECRET);
	site_dir("root/a");
	site_dir("root/a/b");
	site_dir("root/.git");
	site_dir("root/.well-known");
	site_dir("root/a/.hidden");
	site_text("root/index.html", "welcome");
	site_text("root/a/b/c.txt", "open");
	site_text("root/.well-known/security.txt", "contact");
	site_text("root/.env", SECRET);
	site_text("root/.git/config", SECRET);
	site_text("root/.htaccess", SECRET);
	site_text("root/.well-known/.git", SECRET);
	site_text("root/a/.hidden/b", SECRET);
	site_text("root/..\\secret.txt", SECRET);
	site_text("root/a\\b", SECRET);
	site_text("root/...", SECRET);
	site_link("../secret.txt", "root/out.txt");
	site_link("index.html", "root/in.html");
	site_link("..", "root/up");
	site_link("a", "root/dirlink");
	site_link("/etc", "root/etc");
	site_link("/etc/passwd", "root/passwd");
	site_link("loop", "root/loop");
	site_link("/proc/self/root/etc", "root/magic");
	site_link("../../secret.txt", "root/a/deep.txt");
	site_link("../..", "root/a/up");
	site_link("/proc/self/cwd", "root/cwd");
	site_link("/proc/self/fd", "root/fd");
	/* Neighbours that a compressed answer must not be taken from. */
	site_link("../secret.txt", "root/index.html.br");
	CU_ASSERT_EQUAL_FATAL(mkfifo(site_path("root/index.html.gz"), 0644), 0);
	site_link("../../../secret.txt", "root/a/b/c.txt.br");
	site_link("/proc/self/environ", "root/a/b/c.txt.gz");
	site_dir("root/a/b/c.txt.zst");
	CU_ASSERT_EQUAL_FATAL(mkfifo(site_path("root/fifo"), 0644), 0);
	CU_ASSERT_EQUAL_FATAL(mkfifo(site_path("root/a/index.html"), 0644), 0);
	site_socket("root/socket");
}

/* Number of descriptors of this process that refer to files of the site. */
static inline int site_open_now(void)
{
	DIR *d = opendir("/proc/self/fd");
	char path[300], target[300];
	int n = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(d);
	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%.200s", e->d_name);
		ssize_t length = readlink(path, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = '\0';
		n += strstr(target, site_base) && strstr(target, "/root/");
	}
	closedir(d);
	return n;
}

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void site_remove(void)
{
	CU_ASSERT_EQUAL(nftw(site_base, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* Start the server; `knobs` are "stage.knob", "value", ..., NULL. */
static inline struct server site_start(bool cached, const char *const *knobs)
{
	struct server s = {.spec = weir_spec_new("site")};
	struct weir_stage_spec *web, *stage;

	weir_log_set_level(WEIR_LOG_ERROR);
	web = weir_spec_add_stage(s.spec, "web", "http.server");
	fixture_set(web, "with.listen", "127.0.0.1:0");
	fixture_set(web, "with.threads", "1");
	fixture_set(web, "with.linger", "100ms");
	weir_spec_link(web, "", cached ? "cache" : "disk", false);
	if (cached) {
		stage = weir_spec_add_stage(s.spec, "cache", "file.cache");
		fixture_set(stage, "threads", "inline");
		weir_spec_link(stage, "miss", "disk", false);
	}
	stage = weir_spec_add_stage(s.spec, "disk", "file.read");
	fixture_set(stage, "with.root", site_path("root"));
	for (; *knobs; knobs += 2)
		for (int i = 0; i < s.spec->n_stages; i++) {
			size_t n = strlen(s.spec->stages[i].name);
			if (strncmp(*knobs, s.spec->stages[i].name, n) == 0 && (*knobs)[n] == '.')
				fixture_set(&s.spec->stages[i], *knobs + n + 1, knobs[1]);
		}
	server_start(&s);
	return s;
}

#define SITE_START(cached, ...) site_start(cached, (const char *const[]){__VA_ARGS__, NULL})

/* The same from YAML. `with` are further settings of file.read: "listing: html", or "". */
static inline struct server site_serve_root(bool cached, const char *root, const char *with)
{
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	struct server s = {.spec = NULL};
	char yaml[2048], text[2048];

	weir_log_set_level(WEIR_LOG_ERROR);
	snprintf(yaml, sizeof(yaml),
	    "weir: 1\nadmin: { listen: \"\" }\nstages:\n"
	    "  web: { use: http.server, with: { listen: \"127.0.0.1:0\", threads: 1, linger: "
	    "100ms }, to: { request: %s } }\n%s"
	    "  disk: { use: file.read, with: { root: \"%s\"%s%s }, threads: 2 }\n",
	    cached ? "cache" : "disk",
	    cached
		? "  cache: { use: file.cache, threads: inline, with: { revalidate: 20ms }, to: { "
		  "miss: disk } }\n"
		: "",
	    root, *with ? ", " : "", with);
	if (config_load_text(yaml, strlen(yaml), "test.yaml", &s.spec, errs) != 0) {
		weir_errs_format(errs, text, sizeof(text));
		fprintf(stderr, "%s", text);
		CU_FAIL_FATAL("the configuration is refused");
	}
	free(errs);
	server_start(&s);
	return s;
}

static inline struct server site_serve(bool cached, const char *with)
{
	char root[300];

	snprintf(root, sizeof(root), "%s", site_path("root"));
	return site_serve_root(cached, root, with);
}

/* Value of metric `metric` of stage `name`. */
static inline int64_t stage_metric(const struct server *s, const char *name, const char *metric)
{
	struct weir_graph_view *view;
	int64_t value = -1;

	if (weir_graph_view(s->graph, &view) != 0)
		return -1;
	for (int i = 0; i < view->n_stages; i++)
		for (int m = 0; m < view->stages[i].n_metrics; m++)
			if (strcmp(view->stages[i].name, name) == 0 &&
			    strcmp(view->stages[i].metrics[m].name, metric) == 0)
				value = view->stages[i].metric[m];
	weir_graph_view_free(view);
	return value;
}

/* Request `target` with `headers` ("Name: value\r\n" lines) and read the answer. */
static inline bool ask(
    int fd, const char *method, const char *target, const char *headers, struct answer *a)
{
	char head[2048];
	int n = snprintf(head, sizeof(head), "%s %s HTTP/1.1\r\nHost: t\r\n%s\r\n", method, target,
	    headers ? headers : "");

	site_settle();
	return client_send(fd, head, (size_t)n) &&
	       answer_read_as(fd, a, strcmp(method, "HEAD") == 0);
}

#endif
