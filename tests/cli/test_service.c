/* SPDX-License-Identifier: MIT */
/*
 * `weir run` under a service manager: which messages it sends and when, that a stuck control thread
 * or a hanging handler stops the watchdog messages, and passed sockets. This process is the
 * manager, with a datagram socket, and listening sockets that become descriptors 3 and up of the
 * child. Tests wait for messages; WAIT_MS only ends a test that hangs.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cunit_main.h"

#define WAIT_MS  60000
#define MESSAGES 200
/* Watchdog messages are sent at half this period. */
#define WATCHDOG_USEC "200000"
/* Five times the interval of watchdog messages. */
#define QUIET_MS 500

static char folder[] = "/tmp/weir-service-XXXXXX";

/* ---- the manager ---- */

struct manager {
	int fd; /* receives the server's messages */
	char address[64], yaml[96], log[96];
	char heard[512]; /* the last message */
	pid_t pid;
};

static void manager_init(struct manager *m)
{
	static int n;
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	memset(m, 0, sizeof(*m));
	snprintf(m->address, sizeof(m->address), "%s/notify-%d", folder, ++n);
	snprintf(m->yaml, sizeof(m->yaml), "%s/server-%d.yaml", folder, n);
	snprintf(m->log, sizeof(m->log), "%s/log-%d", folder, n);
	memcpy(at.sun_path, m->address, sizeof(m->address));
	m->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CU_ASSERT_FATAL(bind(m->fd, (struct sockaddr *)&at, sizeof(at)) == 0);
}

static void manager_fini(struct manager *m)
{
	close(m->fd);
	unlink(m->address);
	unlink(m->yaml);
	unlink(m->log);
}

/* Read messages until one contains `text`: at most MESSAGES, since watchdog messages never end. */
static bool await(struct manager *m, const char *text)
{
	struct pollfd p = {.fd = m->fd, .events = POLLIN};

	for (int i = 0; i < MESSAGES && poll(&p, 1, WAIT_MS) == 1; i++) {
		ssize_t n = recv(m->fd, m->heard, sizeof(m->heard) - 1, 0);
		m->heard[n > 0 ? n : 0] = '\0';
		if (strstr(m->heard, text))
			return true;
	}
	return false;
}

/* ---- the server ---- */

static void write_yaml(const struct manager *m, int port)
{
	FILE *f = fopen(m->yaml, "w");

	CU_ASSERT_FATAL(f != NULL);
	fprintf(f,
	    "weir: 1\nname: served\nstages:\n"
	    "  web:   { use: http.server, with: { listen: \"127.0.0.1:%d\", threads: 2, linger: "
	    "0ms }, to: { request: hello } }\n"
	    "  hello: { use: respond, with: { body: \"hello\\n\" } }\n",
	    port);
	fclose(f);
}

/* In the child: set up descriptors and environment, then exec. */
static void become_server(const struct manager *m, const int *fd, int n)
{
	char text[32];
	int said = open(m->log, O_CREAT | O_WRONLY | O_TRUNC, 0600);

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failing test leaves no server behind */
	dup2(said, 1);
	dup2(said, 2);
	for (int i = 0; i < n; i++)
		dup2(fd[i], 3 + i);
	setenv("NOTIFY_SOCKET", m->address, 1);
	setenv("WATCHDOG_USEC", WATCHDOG_USEC, 1);
	snprintf(text, sizeof(text), "%d", getpid());
	setenv("WATCHDOG_PID", text, 1);
	if (n > 0) {
		setenv("LISTEN_PID", text, 1);
		snprintf(text, sizeof(text), "%d", n);
		setenv("LISTEN_FDS", text, 1);
		setenv("LISTEN_FDNAMES", "web:spare", 1);
	}
	execl(WEIR_PROGRAM, "weir", "run", m->yaml, (char *)NULL);
	_exit(127);
}

static void start_server(struct manager *m, const int *fd, int n)
{
	m->pid = fork();
	CU_ASSERT_FATAL(m->pid != -1);
	if (m->pid == 0)
		become_server(m, fd, n);
}

static void launch(struct manager *m, int port, const int *fd, int n)
{
	write_yaml(m, port);
	start_server(m, fd, n);
}

/* End the server and check its exit status. */
static void finish(struct manager *m)
{
	int status = -1;

	kill(m->pid, SIGTERM);
	CU_ASSERT(await(m, "STOPPING=1"));
	CU_ASSERT_EQUAL(waitpid(m->pid, &status, 0), m->pid);
	CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static bool log_has(const struct manager *m, const char *text)
{
	char all[8192];
	FILE *f = fopen(m->log, "r");
	size_t n = f ? fread(all, 1, sizeof(all) - 1, f) : 0;

	all[n] = '\0';
	if (f)
		fclose(f);
	return strstr(all, text) != NULL;
}

/* ---- clients ---- */

/* A listening socket on 127.0.0.1 with a high descriptor; its port in *port. */
static int listen_somewhere(int *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CU_ASSERT_FATAL(bind(fd, (struct sockaddr *)&at, n) == 0 && listen(fd, 16) == 0);
	CU_ASSERT_FATAL(getsockname(fd, (struct sockaddr *)&at, &n) == 0);
	*port = ntohs(at.sin_port);
	int far = fcntl(fd, F_DUPFD_CLOEXEC, 20);
	close(fd);
	return far;
}

/* Connect to `port` and request `path`. */
static int ask_at(int port, const char *path)
{
	char request[128];
	ssize_t bytes = snprintf(request, sizeof(request),
	    "GET %s HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n", path);
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct timeval limit = {.tv_sec = WAIT_MS / 1000};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	at.sin_port = htons((uint16_t)port);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)); /* also for connect */
	CU_ASSERT_FATAL(connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0);
	CU_ASSERT(send(fd, request, (size_t)bytes, MSG_NOSIGNAL) == bytes);
	return fd;
}

static int ask(int port)
{
	return ask_at(port, "/");
}

static bool answered(int fd)
{
	char text[2048];
	size_t n = 0;
	ssize_t got;

	while (n < sizeof(text) - 1 && (got = recv(fd, text + n, sizeof(text) - 1 - n, 0)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	close(fd);
	return strncmp(text, "HTTP/1.1 200 ", 13) == 0 && strstr(text, "hello\n");
}

/* ---- tests ---- */

static void test_life(void)
{
	struct manager m;

	manager_init(&m);
	launch(&m, 0, NULL, 0);
	CU_ASSERT(await(&m, "READY=1"));
	CU_ASSERT_PTR_NOT_NULL(strstr(m.heard, "\nSTATUS=served is serving, 2 stages"));
	CU_ASSERT(await(&m, "WATCHDOG=1"));
	CU_ASSERT(await(&m, "WATCHDOG=1"));
	CU_ASSERT_PTR_NULL(strstr(m.heard, "STATUS="));
	finish(&m);
	CU_ASSERT(!log_has(&m, "it is ignored"));
	manager_fini(&m);
}

/* The thread of `pid` with the name `name`; 0: none. */
static pid_t thread_called(pid_t pid, const char *name)
{
	char path[300], comm[32];
	pid_t found = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	DIR *dir = opendir(path);
	for (struct dirent *e; dir && !found && (e = readdir(dir));) {
		snprintf(path, sizeof(path), "/proc/%d/task/%s/comm", pid, e->d_name);
		FILE *f = fopen(path, "r");
		if (f && fgets(comm, sizeof(comm), f) && strcmp(comm, name) == 0)
			found = (pid_t)atoi(e->d_name);
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Stop the control thread of the server until it is detached. Returns the thread, or 0 where ptrace
 * is not allowed. */
static pid_t stop_control(const struct manager *m)
{
	pid_t control = thread_called(m->pid, "control\n");
	int status;

	CU_ASSERT_FATAL(control > 0);
	if (ptrace(PTRACE_SEIZE, control, NULL, NULL) == -1) {
		printf("no ptrace here (%s): not looked at ", strerror(errno));
		return 0;
	}
	CU_ASSERT(ptrace(PTRACE_INTERRUPT, control, NULL, NULL) == 0);
	CU_ASSERT(waitpid(control, &status, __WALL) == control);
	return control;
}

static void test_stuck_control(void)
{
	struct manager m;

	manager_init(&m);
	launch(&m, 0, NULL, 0);
	CU_ASSERT_FATAL(await(&m, "WATCHDOG=1"));
	pid_t control = stop_control(&m);
	if (control) {
		CU_ASSERT(await(&m, "STATUS=the control thread has made no progress for "));
		CU_ASSERT_PTR_NULL(strstr(m.heard, "WATCHDOG=1"));
		CU_ASSERT_EQUAL(
		    poll(&(struct pollfd){.fd = m.fd, .events = POLLIN}, 1, QUIET_MS), 0);
		CU_ASSERT(ptrace(PTRACE_DETACH, control, NULL, NULL) == 0);
		CU_ASSERT(await(&m, "WATCHDOG=1"));
		CU_ASSERT_PTR_NOT_NULL(strstr(m.heard, "\nSTATUS=served is serving"));
	}
	finish(&m);
	manager_fini(&m);
}

/* A server whose handler hangs at /hang/go until a file "go" exists. */
static void write_stubborn(const struct manager *m, int port)
{
	FILE *f = fopen(m->yaml, "w");

	CU_ASSERT_FATAL(f != NULL);
	fprintf(f,
	    "weir: 1\nname: served\nplugin: " STUBBORN "\nstages:\n"
	    "  web:   { use: http.server, with: { listen: \"127.0.0.1:%d\", threads: 1, linger: "
	    "0ms }, to: { request: app } }\n"
	    "  app:   { use: stubborn, threads: { min: 1, max: 1, stuck: 10ms } }\n",
	    port);
	fclose(f);
}

static void test_hung_handler(void)
{
	struct manager m;
	char go[64], begun[64];
	int port, fd = listen_somewhere(&port);

	manager_init(&m);
	write_stubborn(&m, port);
	start_server(&m, &fd, 1);
	CU_ASSERT_FATAL(await(&m, "WATCHDOG=1"));
	int client = ask_at(port, "/hang/go");
	CU_ASSERT(await(&m, "STATUS=a handler of stage 'app' has not returned for "));
	CU_ASSERT_PTR_NULL(strstr(m.heard, "WATCHDOG=1"));
	CU_ASSERT_EQUAL(poll(&(struct pollfd){.fd = m.fd, .events = POLLIN}, 1, QUIET_MS), 0);
	snprintf(go, sizeof(go), "%s/go", folder);
	snprintf(begun, sizeof(begun), "%s/go.begun", folder);
	close(open(go, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	CU_ASSERT(await(&m, "WATCHDOG=1"));
	CU_ASSERT_PTR_NOT_NULL(strstr(m.heard, "\nSTATUS=served is serving"));
	close(client);
	finish(&m);
	unlink(go);
	unlink(begun);
	manager_fini(&m);
	close(fd);
}

/* A handler hangs while the control thread does not tick. When that thread goes on, the reason that
 * is reported changes. */
static void test_one_trouble_after_another(void)
{
	struct manager m;
	char go[64], begun[64];
	int port, fd = listen_somewhere(&port);

	manager_init(&m);
	write_stubborn(&m, port);
	start_server(&m, &fd, 1);
	CU_ASSERT_FATAL(await(&m, "WATCHDOG=1"));
	pid_t control = stop_control(&m);
	if (control) {
		int client = ask_at(port, "/hang/go");
		CU_ASSERT(await(&m, "STATUS=the control thread has made no progress for "));
		CU_ASSERT(ptrace(PTRACE_DETACH, control, NULL, NULL) == 0);
		CU_ASSERT(await(&m, "STATUS=a handler of stage 'app' has not returned for "));
		snprintf(go, sizeof(go), "%s/go", folder);
		snprintf(begun, sizeof(begun), "%s/go.begun", folder);
		close(open(go, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
		CU_ASSERT(await(&m, "\nSTATUS=served is serving"));
		close(client);
		unlink(go);
		unlink(begun);
	}
	finish(&m);
	manager_fini(&m);
	close(fd);
}

static void test_passed_sockets(void)
{
	struct manager m;
	int port, spare_port;
	int fd[] = {listen_somewhere(&port), listen_somewhere(&spare_port)};

	/* Twice: a server that ends must not break the socket for the next one. */
	for (int round = 0; round < 2; round++) {
		manager_init(&m);
		int early = ask(port); /* no server yet, but its socket is open */
		launch(&m, port, fd, 2);
		CU_ASSERT(answered(early));
		CU_ASSERT(await(&m, "READY=1"));
		for (int i = 0; i < 8; i++)
			CU_ASSERT(answered(ask(port)));
		finish(&m);
		CU_ASSERT(log_has(&m, "'spare'") && log_has(&m, "it is ignored"));
		CU_ASSERT(!log_has(&m, "'web' passed as descriptor"));
		manager_fini(&m);
	}
	close(fd[0]);
	close(fd[1]);
}

static void test_passed_elsewhere(void)
{
	struct manager m;
	int port, fd = listen_somewhere(&port);

	manager_init(&m);
	launch(&m, 0, &fd, 1);
	CU_ASSERT(await(&m, "READY=1"));
	finish(&m);
	CU_ASSERT(log_has(&m, "'web' passed as descriptor"));
	manager_fini(&m);
	close(fd);
}

int main(void)
{
	static const struct cunit_case cases[] = {{"life", test_life},
	    {"stuck control", test_stuck_control}, {"hung handler", test_hung_handler},
	    {"one trouble after another", test_one_trouble_after_another},
	    {"passed sockets", test_passed_sockets}, {"passed elsewhere", test_passed_elsewhere}};

	if (!mkdtemp(folder))
		return 2;
	int rc = cunit_run("service", cases, sizeof(cases) / sizeof(cases[0]));
	rmdir(folder);
	return rc;
}
