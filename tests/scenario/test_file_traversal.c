/* SPDX-License-Identifier: MIT */
/* The row "traversal, symlinks, FIFOs" of reliability.md: hostile paths and a root full of traps,
 * with and without a cache in front. Nothing leaks, nothing hangs, and legitimate paths work all
 * the time. */
#include "fixture/http/site.h"

#include "unit/file/nasty_paths.h"

/* Existing files that must not be served: links, pipes, sockets, dot files, by every route. */
static const char *const traps[] = {"/out.txt", "/in.html", "/up", "/up/", "/up/secret.txt",
    "/up/root/index.html", "/dirlink", "/dirlink/", "/dirlink/b/c.txt", "/etc/passwd", "/etc/",
    "/passwd", "/loop", "/loop/", "/magic/passwd", "/a/deep.txt", "/fifo", "/fifo/", "/a/",
    "/a/index.html", "/socket", "/.env", "/.git/config", "/a/.hidden/b", "/...", "/a/b/../../.env",
    "/a/b/../../out.txt", "/index.html/", "/index.html/x", "/out.txt/", "/a/b/", "/nothing",
    "/%66ifo", "/o%75t.txt", "/index.html.br", "/index.html.gz", "/a/b/c.txt.br", "/a/b/c.txt.gz",
    "/magic", "/magic/", "/cwd/secret.txt", "/fd/0", "/etc", "/dirlink/b/", "/a/up/secret.txt",
    "/hard.txt/", "/socket/", "/socket/x", "/fifo/x", "/loop/x", "/out.txt?x", "/a/deep.txt/"};

/* Sent with every request, so that precompressed neighbours are considered. */
#define ENCODINGS "Accept-Encoding: br, gzip, zstd\r\n"

/* One hostile request on its own connection. */
static void check_refused(const struct server *s, const char *path, size_t n)
{
	struct answer a = {0};
	int fd = client_open(s->port);

	CU_ASSERT(client_say(fd, "GET ") && client_send(fd, path, n) &&
		  client_say(fd, " HTTP/1.1\r\nHost: t\r\n" ENCODINGS "\r\n"));
	bool answered = answer_read(fd, &a);
	if (!answered || (a.status != 400 && a.status != 404))
		fprintf(stderr, "%.*s: %d\n", (int)n, path, a.status);
	CU_ASSERT(answered);
	CU_ASSERT(a.status == 400 || a.status == 404);
	CU_ASSERT(!a.body || !strstr(a.body, SECRET));
	CU_ASSERT(!a.body || !strstr(a.body, "root:"));
	answer_free(&a);
	close(fd);
}

static void check_honest(const struct server *s)
{
	static const struct {
		const char *path, *body;
	} honest[] = {{"/", "welcome"}, {"/index.html", "welcome"}, {"/a/../index.html", "welcome"},
	    {"/a/b/c.txt", "open"}, {"/a//b/./%63.txt", "open"},
	    {"/.well-known/security.txt", "contact"}, {"/.git/../index.html", "welcome"}};
	struct answer a = {0};
	int fd = client_open(s->port);

	for (size_t i = 0; i < sizeof(honest) / sizeof(honest[0]); i++) {
		CU_ASSERT(site_ask(fd, "GET", honest[i].path, ENCODINGS, &a));
		CU_ASSERT(answer_is(&a, 200, honest[i].body));
	}
	answer_free(&a);
	close(fd);
}

static void check_all(bool cached, const char *with)
{
	int n_traps = (int)(sizeof(traps) / sizeof(traps[0]));

	site_make();
	site_set_traps();
	struct server s = site_serve(cached, with);
	CU_ASSERT(n_nasty_paths + n_traps >= 150);
	for (int round = 0; round < 2; round++) { /* the second time, a cache may know them */
		for (int i = 0; i < n_nasty_paths; i++)
			check_refused(&s, nasty_paths[i].path, nasty_paths[i].n);
		for (int i = 0; i < n_traps; i++)
			check_refused(&s, traps[i], strlen(traps[i]));
		check_honest(&s);
	}
	server_stop(&s);
	site_remove();
}

static void test_disk(void)
{
	check_all(false, "");
}

static void test_cache(void)
{
	check_all(true, "");
}

/* Neighbours that are links, pipes and directories, and error pages that are no regular files
 * either. */
static void test_neighbours(void)
{
	const char *with = "precompressed: [br, gzip, zstd], error_pages: { 404: /out.txt, "
			   "400: /fifo }";

	check_all(false, with);
	check_all(true, with);
}

/* A link that replaces a file while it is requested is never followed. */
static void *swap(void *arg)
{
	atomic_bool *stop = arg;
	char file[300], link[300];

	snprintf(file, sizeof(file), "%s", site_path("file"));
	snprintf(link, sizeof(link), "%s", site_path("link"));
	char victim[300];
	snprintf(victim, sizeof(victim), "%s", site_path("root/victim"));
	while (!atomic_load(stop)) {
		int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		(void)!write(fd, "harmless", 8);
		close(fd);
		(void)!symlink("../secret.txt", link);
		rename(file, victim);
		rename(link, victim);
	}
	unlink(victim);
	return NULL;
}

static void test_swapped_link(void)
{
	atomic_bool stop = false;
	struct answer a = {0};
	pthread_t swapper;
	int good = 0, gone = 0;

	site_make();
	site_text("secret.txt", SECRET);
	struct server s = SITE_START(false, "disk.threads", "1");
	int fd = client_open(s.port);
	pthread_create(&swapper, NULL, swap, &stop);
	/* A cache repeats its answer for 1 s. */
	for (int i = 0; i < 2000 || good == 0 || gone == 0; i++) {
		CU_ASSERT_FATAL(site_ask(fd, "GET", "/victim", NULL, &a));
		CU_ASSERT(
		    a.status == 404 || (a.status == 200 && strcmp(a.body ? a.body : "", SECRET)));
		good += a.status == 200;
		gone += a.status == 404;
	}
	atomic_store(&stop, true);
	pthread_join(swapper, NULL);
	close(fd);
	answer_free(&a);
	server_stop(&s);
	site_remove();
}

/* Two names below root/ that are exchanged as fast as possible, so that the kernel meets both
 * states. */
struct exchange {
	char one[300], other[300];
	atomic_bool stop;
};

static void *exchange(void *arg)
{
	struct exchange *x = arg;

	while (!atomic_load(&x->stop))
		CU_ASSERT(renameat2(AT_FDCWD, x->one, AT_FDCWD, x->other, RENAME_EXCHANGE) == 0);
	return NULL;
}

/* root/dir is a directory that may be served or, the next moment, a link out of the root. */
static void check_swapped_directory(bool cached, const char *with, const char *target)
{
	struct exchange x = {.stop = false};
	struct answer a = {0};
	pthread_t swapper;
	int good = 0, gone = 0;

	site_make();
	site_text("f", SECRET);
	site_dir("root/dir");
	site_text("root/dir/f", "harmless");
	site_link(target, "root/link");
	snprintf(x.one, sizeof(x.one), "%s", site_path("root/dir"));
	snprintf(x.other, sizeof(x.other), "%s", site_path("root/link"));
	struct server s = site_serve(cached, with);
	int fd = client_open(s.port);
	pthread_create(&swapper, NULL, exchange, &x);
	/* A cache repeats its answer for 1 s. */
	for (int i = 0; i < 2000 || good == 0 || gone == 0; i++) {
		CU_ASSERT_FATAL(site_ask(fd, "GET", i % 2 ? "/dir/f" : "/link/f", NULL, &a));
		CU_ASSERT(a.status == 404 || a.status == 503 || answer_is(&a, 200, "harmless"));
		good += a.status == 200;
		gone += a.status == 404;
	}
	atomic_store(&x.stop, true);
	pthread_join(swapper, NULL);
	close(fd);
	answer_free(&a);
	server_stop(&s);
	site_remove();
}

static void test_swapped_directory(void)
{
	check_swapped_directory(false, "", "..");
	check_swapped_directory(true, "", "..");
	check_swapped_directory(false, "symlinks: beneath", "..");
	check_swapped_directory(false, "symlinks: beneath, precompressed: [gzip]", site_base);
}

/* Roots that only the kernel provides: no path leads out of them, and no device is read or waited
 * for. Files of /proc have size 0, so they are served as empty. */
static void check_root(const char *root, const char *with, const char *const *paths)
{
	struct answer a = {0};

	site_make();
	struct server s = site_serve_root(true, root, with);
	int fd = client_open(s.port);
	for (; *paths; paths++) {
		CU_ASSERT(site_ask(fd, "GET", *paths, NULL, &a));
		if (a.status == 200)
			CU_ASSERT_EQUAL(a.n, 0);
		CU_ASSERT(a.status == 404 || a.status == 403 || a.status == 301 || a.n == 0);
		CU_ASSERT(!a.body || !strstr(a.body, "root:"));
	}
	close(fd);
	answer_free(&a);
	server_stop(&s);
	site_remove();
}

static void test_proc_and_devices(void)
{
	static const char *const proc[] = {"/environ", "/cmdline", "/maps", "/status",
	    "/root/etc/passwd", "/cwd/CMakeCache.txt", "/exe", "/fd/0", "/fd/1", "/fd/2", "/ns/mnt",
	    "/task/self/root/etc/passwd", "/mem", "/pagemap", "/net/tcp", "/attr/current", NULL};
	static const char *const dev[] = {"/zero", "/null", "/full", "/random", "/urandom", "/tty",
	    "/stdin", "/fd/0", "/core", "/log", "/ptmx", "/console", "/shm/", NULL};

	check_root("/proc/self", "", proc);
	check_root("/proc/self", "symlinks: beneath", proc);
	check_root("/dev", "", dev);
	check_root("/dev", "symlinks: beneath", dev);
}

CUNIT_MAIN("traversal", {"disk alone", test_disk}, {"behind a cache", test_cache},
    {"neighbours", test_neighbours}, {"a link swapped in", test_swapped_link},
    {"a directory swapped for a link", test_swapped_directory},
    {"a root with /proc or devices", test_proc_and_devices})
