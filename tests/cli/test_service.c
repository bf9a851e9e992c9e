/* SPDX-License-Identifier: MIT */
/*
 * `weir run` as a service manager starts it: what it tells and when, that a stuck control thread ends the feeding
 * of the watchdog, and sockets that are passed. This process is the manager: a datagram socket, and listening
 * sockets that become descriptors 3 and up of the child. Waits are for messages; WAIT_MS only ends a test that hangs.
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
/* Half of it is how often the watchdog is fed. */
#define WATCHDOG_USEC "200000"
/* Five times as long as a feeding takes to come. */
#define QUIET_MS 500

static char folder[] = "/tmp/weir-service-XXXXXX";

/* ---- the manager ---- */

struct manager {
	int fd; /* what the server tells */
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

/* Read messages until one has `text`: at most MESSAGES, since feedings never end. */
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

/* In the child: descriptors, environment, exec. */
static void become_server(const struct manager *m, const int *fd, int n)
{
	char text[32];
	int said = open(m->log, O_CREAT | O_WRONLY | O_TRUNC, 0600);

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nothing behind */
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

static void launch(struct manager *m, int port, const int *fd, int n)
{
	write_yaml(m, port);
	m->pid = fork();
	CU_ASSERT_FATAL(m->pid != -1);
	if (m->pid == 0)
		become_server(m, fd, n);
}

/* End it and check how it ended. */
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

/* A listening socket of 127.0.0.1, high up; its port in *port. */
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

/* Connect to `port` and ask. */
static int ask(int port)
{
	static const char request[] = "GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct timeval limit = {.tv_sec = WAIT_MS / 1000};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	at.sin_port = htons((uint16_t)port);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)); /* of connect, too */
	CU_ASSERT_FATAL(connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0);
	CU_ASSERT(send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) == sizeof(request) - 1);
	return fd;
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
	CU_ASSERT_PTR_NOT_NULL(strstr(m.heard, "\nSTATUS=served serves, 2 stages"));
	CU_ASSERT(await(&m, "WATCHDOG=1"));
	CU_ASSERT(await(&m, "WATCHDOG=1"));
	CU_ASSERT_PTR_NULL(strstr(m.heard, "STATUS="));
	finish(&m);
	CU_ASSERT(!log_has(&m, "left alone"));
	manager_fini(&m);
}

/* The thread of `pid` that is called `name`, 0 for none. */
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

static void test_stuck_control(void)
{
	struct manager m;
	int status;

	manager_init(&m);
	launch(&m, 0, NULL, 0);
	CU_ASSERT_FATAL(await(&m, "WATCHDOG=1"));
	pid_t control = thread_called(m.pid, "control\n");
	CU_ASSERT_FATAL(control > 0);
	if (ptrace(PTRACE_SEIZE, control, NULL, NULL) == -1) {
		printf("no ptrace here (%s): not looked at ", strerror(errno));
	} else {
		CU_ASSERT(ptrace(PTRACE_INTERRUPT, control, NULL, NULL) == 0);
		CU_ASSERT(waitpid(control, &status, __WALL) == control);
		CU_ASSERT(await(&m, "STATUS=the control thread has not ticked for "));
		CU_ASSERT_PTR_NULL(strstr(m.heard, "WATCHDOG=1"));
		CU_ASSERT_EQUAL(
		    poll(&(struct pollfd){.fd = m.fd, .events = POLLIN}, 1, QUIET_MS), 0);
		CU_ASSERT(ptrace(PTRACE_DETACH, control, NULL, NULL) == 0);
		CU_ASSERT(await(&m, "WATCHDOG=1"));
		CU_ASSERT_PTR_NOT_NULL(strstr(m.heard, "\nSTATUS=served serves"));
	}
	finish(&m);
	manager_fini(&m);
}

static void test_passed_sockets(void)
{
	struct manager m;
	int port, spare_port;
	int fd[] = {listen_somewhere(&port), listen_somewhere(&spare_port)};

	/* Twice: what one server does to the socket at its end must not hurt the next. */
	for (int round = 0; round < 2; round++) {
		manager_init(&m);
		int early = ask(port); /* nobody is there yet: that is what the socket is for */
		launch(&m, port, fd, 2);
		CU_ASSERT(answered(early));
		CU_ASSERT(await(&m, "READY=1"));
		for (int i = 0; i < 8; i++)
			CU_ASSERT(answered(ask(port)));
		finish(&m);
		CU_ASSERT(log_has(&m, "'spare'") && log_has(&m, "left alone"));
		CU_ASSERT(!log_has(&m, "'web' that was passed"));
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
	CU_ASSERT(log_has(&m, "'web' that was passed"));
	manager_fini(&m);
	close(fd);
}

int main(void)
{
	static const struct cunit_case cases[] = {{"life", test_life},
	    {"stuck control", test_stuck_control}, {"passed sockets", test_passed_sockets},
	    {"passed elsewhere", test_passed_elsewhere}};

	if (!mkdtemp(folder))
		return 2;
	int rc = cunit_run("service", cases, sizeof(cases) / sizeof(cases[0]));
	rmdir(folder);
	return rc;
}
