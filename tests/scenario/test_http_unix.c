/* SPDX-License-Identifier: MIT */
/* Servers that listen at socket files: permissions, files that servers leave behind, files of others,
 * limits, reloads, drains. */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "fixture/http/server.h"

static char folder[] = "/tmp/weir_unix.XXXXXX", path[64], address[80];

/* ---- servers ---- */

static struct server unix_server(const char *io_threads)
{
	struct server s = server_new("t.reply");

	fixture_set(s.web, "with.threads", io_threads);
	server_listen_also(&s, address);
	return s;
}

static struct server begin(const char *io_threads)
{
	struct server s = unix_server(io_threads);

	server_start(&s);
	return s;
}

static struct weir_graph *build(struct server *s)
{
	struct weir_errs errs = {0};

	CU_ASSERT_EQUAL_FATAL(weir_graph_build(s->spec, &s->graph, &errs), 0);
	return s->graph;
}

/* Whether the start of `s` fails with `text`; frees the graph. */
static bool refuses(struct server *s, const char *text)
{
	struct weir_errs errs = {0};
	bool ok = weir_graph_start(build(s), &errs) != 0 && strstr(errs.err[0].text, text);

	if (!ok)
		fprintf(stderr, "'%s' instead of '%s'\n", errs.err[0].text, text);
	weir_graph_free(s->graph);
	return ok;
}

/* Let `next` replace `s`, whose graph is drained and freed. */
static void reload(struct server *s, struct server *next)
{
	struct weir_drain_report report = {0};
	struct weir_errs errs = {0};

	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(build(next), s->graph, &errs), 0);
	weir_graph_drain(s->graph, 10000000000LL, &report);
	CU_ASSERT_EQUAL(report.law_error, 0);
	CU_ASSERT_EQUAL(report.closed, 0);
	weir_graph_free(s->graph);
}

/* ---- clients ---- */

static bool ask(int fd)
{
	struct answer a = {0};
	bool ok =
	    client_say(fd, GET("/x")) && answer_read(fd, &a) && answer_is(&a, 200, "GET /x\n");

	answer_free(&a);
	return ok;
}

/* Whether a request on a connection of its own is answered. */
static bool served(void)
{
	int fd = client_connect_file(path);
	bool ok = fd != -1 && ask(fd);

	if (fd != -1)
		close(fd);
	return ok;
}

static bool is_there(void)
{
	struct stat info;

	return lstat(path, &info) == 0;
}

static unsigned mode(void)
{
	struct stat info = {0};

	CU_ASSERT_EQUAL(lstat(path, &info), 0);
	CU_ASSERT(S_ISSOCK(info.st_mode));
	return info.st_mode & 07777;
}

/* Bind a socket of `type` to the file. */
static int occupy(int type)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	CU_ASSERT_EQUAL_FATAL(bind(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* ---- the file ---- */

static void check_serves(const char *io_threads, const char *per_thread)
{
	struct server s = unix_server(io_threads);
	int fd[3];

	fixture_set(s.web, "with.per_thread", per_thread);
	server_start(&s);
	CU_ASSERT_EQUAL(weir_http_port(weir_graph_stage(s.graph, "web"), 1), 0);
	for (int i = 0; i < 3; i++)
		fd[i] = client_connect_file(path);
	for (int i = 0; i < 3; i++)
		CU_ASSERT(ask(fd[i]));
	int tcp = client_open(s.port);
	CU_ASSERT(ask(tcp));
	close(tcp);
	for (int i = 0; i < 3; i++)
		close(fd[i]);
	server_stop(&s);
	CU_ASSERT_FALSE(is_there());
}

static void test_serves(void)
{
	check_serves("1", "0");
	check_serves("4", "0");
	check_serves("4", "1");
}

static void test_mode(void)
{
	mode_t before = umask(077);
	char gid[16];

	snprintf(gid, sizeof(gid), "%u", (unsigned)getegid());
	struct server s = begin("2");
	CU_ASSERT_EQUAL(mode(), 0660);
	server_stop(&s);
	s = unix_server("1");
	fixture_set(s.web, "with.socket_mode", "0606");
	fixture_set(s.web, "with.socket_group", gid);
	server_start(&s);
	CU_ASSERT_EQUAL(mode(), 0606);
	struct server next = unix_server("1"); /* a reload changes it */
	fixture_set(next.web, "with.socket_mode", "600");
	reload(&s, &next);
	CU_ASSERT_EQUAL(mode(), 0600);
	server_stop(&next);
	umask(before);
}

/* The file of a server that was killed is replaced. */
static void test_stale(void)
{
	close(occupy(SOCK_STREAM));
	CU_ASSERT(is_there());
	struct server s = begin("2");
	CU_ASSERT(served());
	server_stop(&s);
	CU_ASSERT_FALSE(is_there());
}

/* The file of a server that runs is not, also if its backlog is full. */
static void test_alive(void)
{
	struct server s = begin("2"), second = unix_server("1");

	CU_ASSERT(refuses(&second, "another process listens there"));
	CU_ASSERT(served());
	server_stop(&s);

	int fd = occupy(SOCK_STREAM), client, other;
	CU_ASSERT_EQUAL(listen(fd, 0), 0);
	client = client_connect_file(path);
	second = unix_server("1");
	CU_ASSERT(refuses(&second, "another process listens there"));
	other = accept(fd, NULL, NULL);
	CU_ASSERT_NOT_EQUAL(other, -1);
	close(other);
	close(client);
	close(fd);
	unlink(path);
}

/* Files that are no sockets, and sockets of another type, are left alone. */
static void test_others(void)
{
	struct server s = unix_server("1");
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	CU_ASSERT(refuses(&s, "not a socket"));
	CU_ASSERT(is_there());
	close(fd);
	unlink(path);
	fd = occupy(SOCK_DGRAM);
	s = unix_server("1");
	CU_ASSERT(refuses(&s, "another process listens there"));
	CU_ASSERT(is_there());
	close(fd);
	unlink(path);
	CU_ASSERT_EQUAL(symlink("/nonexistent", path), 0);
	s = unix_server("1");
	CU_ASSERT(refuses(&s, "not a socket"));
	unlink(path);
}

static void test_folder(void)
{
	char before[sizeof(address)];
	struct server s;

	snprintf(before, sizeof(before), "%s", address);
	snprintf(address, sizeof(address), "unix:%s/none/sock", folder);
	s = unix_server("1");
	CU_ASSERT(refuses(&s, "its folder does not exist"));
	snprintf(address, sizeof(address), "%s", before);

	/* somebody holds the lock of the folder for ever */
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CU_ASSERT_EQUAL(flock(fd, LOCK_EX), 0);
	s = unix_server("1");
	CU_ASSERT(refuses(&s, "locked the folder"));
	close(fd);
}

/* A server removes only its own file. */
static void test_replaced(void)
{
	struct server s = begin("1");

	CU_ASSERT_EQUAL(unlink(path), 0);
	int fd = occupy(SOCK_STREAM);
	server_stop(&s);
	CU_ASSERT(is_there());
	close(fd);
	unlink(path);
}

/* ---- limits ---- */

/* The clients that one user starts count as one address. */
static void test_limit(void)
{
	struct server s = unix_server("1");
	struct answer a = {0};

	fixture_set(s.web, "with.max_per_address", "1");
	server_start(&s);
	int first = client_connect_file(path), second, tcp;
	CU_ASSERT(ask(first));
	second = client_connect_file(path);
	CU_ASSERT(client_say(second, GET("/x")) && answer_read(second, &a));
	CU_ASSERT_EQUAL(a.status, 503);
	answer_free(&a);
	tcp = client_open(s.port);
	CU_ASSERT(ask(tcp));
	close(tcp);
	close(first);
	close(second);
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	CU_ASSERT(served());
	server_stop(&s);
}

/* ---- reload ---- */

static void check_reload(const char *before, const char *after)
{
	struct server s = begin(before), next = unix_server(after), bare = server_new("t.reply");
	int fd = client_connect_file(path), silent = client_connect_file(path);

	CU_ASSERT(ask(fd));
	reload(&s, &next);
	CU_ASSERT(ask(fd));
	CU_ASSERT(ask(silent));
	CU_ASSERT(served());
	reload(&next, &bare); /* listens no longer at the file */
	CU_ASSERT_FALSE(is_there());
	CU_ASSERT(ask(fd));
	close(fd);
	close(silent);
	server_stop(&bare);
}

static void test_reload(void)
{
	check_reload("1", "1");
	check_reload("3", "1");
	check_reload("1", "3");
}

/* A new server that cannot start leaves the file to the old one. */
static void test_reload_fails(void)
{
	struct server s = begin("2"), next = unix_server("2");
	struct weir_errs errs = {0};
	struct sockaddr_in taken = {
	    .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(taken);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char port[32];

	CU_ASSERT_EQUAL(bind(fd, (struct sockaddr *)&taken, n), 0);
	CU_ASSERT_EQUAL(listen(fd, 1), 0);
	CU_ASSERT_EQUAL(getsockname(fd, (struct sockaddr *)&taken, &n), 0);
	snprintf(port, sizeof(port), "127.0.0.1:%d", ntohs(taken.sin_port));
	struct weir_stage_spec *other = weir_spec_add_stage(next.spec, "other", "http.server");
	fixture_set(other, "with.listen", port);
	weir_spec_link(other, "", "app", false);
	CU_ASSERT_NOT_EQUAL(weir_graph_succeed(build(&next), s.graph, &errs), 0);
	weir_graph_free(next.graph);
	close(fd);
	CU_ASSERT(served());
	next = unix_server("2");
	reload(&s, &next);
	CU_ASSERT(served());
	server_stop(&next);
	CU_ASSERT_FALSE(is_there());
}

/* ---- no client is lost ---- */

struct stream {
	atomic_bool stop;
	int lost, served;
	pthread_t thread;
};

static void *stream_main(void *arg)
{
	struct stream *t = arg;

	while (!atomic_load(&t->stop)) {
		if (served())
			t->served++;
		else
			t->lost++;
	}
	return NULL;
}

static void check_stream(const char *io_threads, const char *per_thread)
{
	struct server s = unix_server(io_threads);
	struct stream t = {0};

	fixture_set(s.web, "with.per_thread", per_thread);
	server_start(&s);
	pthread_create(&t.thread, NULL, stream_main, &t);
	for (int i = 0; i < 5; i++) {
		struct server next = unix_server(io_threads);
		fixture_set(next.web, "with.per_thread", per_thread);
		FIXTURE_AWAIT(server_offered(&s) > 0);
		reload(&s, &next);
		s = next;
	}
	atomic_store(&t.stop, true);
	pthread_join(t.thread, NULL);
	CU_ASSERT_EQUAL(t.lost, 0);
	CU_ASSERT(t.served > 0);
	server_stop(&s);
}

static void test_stream(void)
{
	check_stream("1", "0");
	check_stream("2", "0");
	check_stream("4", "2");
}

/* Clients of a server that stops are answered, or find nobody; none is reset. */
static void test_drain(void)
{
	for (int i = 0; i < 20; i++) {
		struct server s = unix_server("2");
		int fd[20], n = 0;
		fixture_set(s.web, "with.linger", "0");
		server_start(&s);
		while (n < 20 && (fd[n] = client_connect_file(path)) != -1 &&
		       client_say(fd[n], GET("/x")))
			n++;
		CU_ASSERT_EQUAL(n, 20);
		server_stop(&s);
		CU_ASSERT_EQUAL(client_connect_file(path), -1);
		for (int k = 0; k < n; k++) {
			struct answer a = {0};
			CU_ASSERT(answer_read(fd[k], &a));
			CU_ASSERT(a.status == 200 || a.status == 503);
			answer_free(&a);
			close(fd[k]);
		}
	}
}

static void test_begin(void)
{
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/sock", folder);
	snprintf(address, sizeof(address), "unix:%s", path);
}

static void test_end(void)
{
	CU_ASSERT_EQUAL(rmdir(folder), 0);
}

CUNIT_MAIN("http_unix", {"begin", test_begin}, {"serves", test_serves}, {"mode", test_mode},
    {"stale file", test_stale}, {"living server", test_alive}, {"files of others", test_others},
    {"folder", test_folder}, {"file replaced", test_replaced}, {"limit", test_limit},
    {"reload", test_reload}, {"reload that fails", test_reload_fails}, {"stream", test_stream},
    {"drain", test_drain}, {"end", test_end})
