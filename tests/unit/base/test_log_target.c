/* SPDX-License-Identifier: MIT */
/* Targets of log lines. Only the owner can write a log file, and not everyone can read it. No
 * target leaks a descriptor. A journal that appears, disappears and returns loses only the lines
 * sent while it was away. A slow reader gets everything. */
#include "base/log_target.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "cunit_main.h"
#include "fixture/graph/descriptors.h"

static char folder[] = "/tmp/weir-target-XXXXXX";
static char path[64];
static int said = -1; /* descriptor of the server's own log */

static void begin(void)
{
	strcpy(folder + sizeof(folder) - 7, "XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/log", folder);
	said = memfd_create("said", MFD_CLOEXEC);
	CU_ASSERT_FATAL(said >= 0);
	weir_log_set_fd(said);
}

static void end(void)
{
	weir_log_set_fd(STDERR_FILENO);
	close(said);
	unlink(path);
	CU_ASSERT_EQUAL(rmdir(folder), 0);
}

/* Number of times the server's own log contains `text`. */
static int said_times(const char *text)
{
	static char all[8192];
	ssize_t n = pread(said, all, sizeof(all) - 1, 0);
	int times = 0;

	all[n > 0 ? n : 0] = '\0';
	for (const char *p = all; (p = strstr(p, text)) != NULL; p++)
		times++;
	return times;
}

static bool never(void *arg)
{
	(void)arg;
	return false;
}

static void put(struct log_target *t, const char *line)
{
	char text[128];

	snprintf(text, sizeof(text), "%c%s", log_target_mark(WEIR_LOG_WARN), line);
	log_target_write(t, text, strlen(text), never, NULL);
}

static struct log_target opened(const char *name)
{
	struct log_target t;
	struct weir_err err = {0};

	CU_ASSERT_EQUAL_FATAL(log_target_open(&t, name, true, &err), 0);
	return t;
}

/* ---- files ---- */

static void test_file(void)
{
	struct stat st;
	mode_t mask = umask(0);
	int before;

	begin();
	before = entries_in(DESCRIPTORS);
	struct log_target t = opened(path);
	umask(mask);
	CU_ASSERT_EQUAL(fstat(t.fd, &st), 0);
	CU_ASSERT_EQUAL(st.st_mode & 07777, 0640);
	CU_ASSERT_EQUAL(fcntl(t.fd, F_GETFD), FD_CLOEXEC);
	CU_ASSERT_TRUE(t.regular);
	put(&t, "one\n");
	struct log_target other = opened(path); /* the second one appends */
	put(&other, "two\n");
	put(&t, "three\n");
	CU_ASSERT_EQUAL(fstat(t.fd, &st), 0);
	CU_ASSERT_EQUAL(st.st_size, 14);
	log_target_close(&t);
	log_target_close(&other);
	CU_ASSERT_EQUAL(entries_in(DESCRIPTORS), before);
	end();
}

/* A FIFO without a reader is refused instead of waited for. */
static void test_fifo(void)
{
	struct log_target t;
	struct weir_err err = {0};

	begin();
	CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
	CU_ASSERT_EQUAL(log_target_open(&t, path, true, &err), WEIR_ESYS);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no process reads from this FIFO"));
	CU_ASSERT_STRING_EQUAL(err.hint, "start the reader of the FIFO first");
	end();
}

/* A standard stream of the process stays open for other users. */
static void test_streams(void)
{
	begin();
	struct log_target t = opened("stdout"), u = opened("stderr");
	CU_ASSERT_EQUAL(t.fd, STDOUT_FILENO);
	CU_ASSERT_EQUAL(u.fd, STDERR_FILENO);
	log_target_close(&t);
	log_target_close(&u);
	CU_ASSERT_NOT_EQUAL(fcntl(STDOUT_FILENO, F_GETFD), -1);
	CU_ASSERT_NOT_EQUAL(fcntl(STDERR_FILENO, F_GETFD), -1);
	end();
}

static void test_move(void)
{
	begin();
	struct log_target t = opened(path);
	int before = entries_in(DESCRIPTORS);
	for (int i = 0; i < 5; i++)
		log_target_move(&t, path);
	CU_ASSERT_EQUAL(entries_in(DESCRIPTORS), before);
	log_target_move(&t, "/nowhere/log");
	CU_ASSERT_EQUAL(said_times("'/nowhere/log' cannot be opened for writing: No such file"), 1);
	CU_ASSERT_EQUAL(said_times("logging continues to the previous target"), 1);
	put(&t, "still here\n");
	CU_ASSERT_FALSE(t.failed);
	CU_ASSERT_EQUAL(entries_in(DESCRIPTORS), before);
	log_target_close(&t);
	end();
}

/* If nothing can be written, that is logged once, and later lines are not delayed. */
static void test_full(void)
{
	begin();
	struct log_target t = opened("/dev/full");
	put(&t, "one\n");
	put(&t, "two\n");
	CU_ASSERT_TRUE(t.failed);
	CU_ASSERT_EQUAL(said_times("No space left on device; lines are lost (logged once)"), 1);
	log_target_close(&t);
	end();
}

/* ---- the journal ---- */

static int journal_bind(const char *at)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(a.sun_path, at, strnlen(at, sizeof(a.sun_path)));
	CU_ASSERT_EQUAL_FATAL(bind(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static bool heard(int fd, const char *message)
{
	char want[256], got[256] = "";

	snprintf(want, sizeof(want), "SYSLOG_IDENTIFIER=weir\nPRIORITY=4\nMESSAGE=%s", message);
	return recv(fd, got, sizeof(got) - 1, 0) == (ssize_t)strlen(want) && strcmp(want, got) == 0;
}

static void test_journal_comes_and_goes(void)
{
	char name[80];

	begin();
	snprintf(name, sizeof(name), "journal:%s", path);
	int before = entries_in(DESCRIPTORS);
	struct log_target t = opened(name);
	CU_ASSERT_EQUAL(entries_in(DESCRIPTORS), before); /* no socket yet */
	put(&t, "nobody hears\n");
	put(&t, "nor this\n");
	CU_ASSERT_EQUAL(said_times("lines are lost (logged once)"), 1);
	CU_ASSERT_EQUAL(entries_in(DESCRIPTORS), before);
	for (int i = 0; i < 3; i++) { /* the journal restarts */
		int fd = journal_bind(path);
		put(&t, "heard\n");
		put(&t, "and this\n");
		CU_ASSERT_TRUE(heard(fd, "heard\n"));
		CU_ASSERT_TRUE(heard(fd, "and this\n"));
		CU_ASSERT_EQUAL(entries_in(DESCRIPTORS), before + 2);
		CU_ASSERT_EQUAL(fcntl(t.fd, F_GETFD), FD_CLOEXEC);
		close(fd);
		unlink(path);
	}
	log_target_close(&t);
	CU_ASSERT_EQUAL(entries_in(DESCRIPTORS), before);
	end();
}

/* The longest path that a socket address can hold, and one byte more. */
static void test_journal_path(void)
{
	char name[160], *at = name + 8;
	size_t longest = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;
	struct log_target t;
	struct weir_err err = {0};

	begin();
	int n = snprintf(name, sizeof(name), "journal:%s/", folder);
	memset(name + n, 'a', sizeof(name) - (size_t)n);
	at[longest] = '\0';
	int fd = journal_bind(at);
	t = opened(name);
	put(&t, "far\n");
	CU_ASSERT_TRUE(heard(fd, "far\n"));
	log_target_close(&t);
	close(fd);
	unlink(at);
	at[longest] = 'a';
	at[longest + 1] = '\0';
	CU_ASSERT_EQUAL(log_target_open(&t, name, true, &err), WEIR_ESYS);
	CU_ASSERT_EQUAL(log_target_open(&t, "journal:", true, &err), WEIR_ESYS);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "not a valid socket path"));
	end();
}

/* ---- slow readers ---- */

/* Longer than log_target.c waits for a slow reader after a request to stop. No such request is made
 * here. */
#define LATE_NS (1500000000LL)

static struct late {
	int fd;
	int64_t since_ns;
	size_t got;
} late;

static void on_alarm(int signal)
{
	(void)signal;
}

/* The callback that asks whether to give up; the answer is always no. After LATE_NS it reads
 * everything. */
static bool read_late(void *arg)
{
	char bytes[65536];
	ssize_t n;

	(void)arg;
	if (clock_now_ns() - late.since_ns >= LATE_NS)
		while ((n = read(late.fd, bytes, sizeof(bytes))) > 0)
			late.got += (size_t)n;
	return false;
}

/* Signals in the meantime are not a reason to give up either. */
static void test_late_reader(void)
{
	enum { LINE = 100, LINES = 2000 };
	struct sigaction act = {.sa_handler = on_alarm}, old;
	struct itimerval often = {{0, 30000}, {0, 30000}}, off = {0};
	char *text = malloc(LINE * LINES);

	begin();
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	memset(text, 'x', LINE * LINES);
	for (int i = 1; i <= LINES; i++)
		text[i * LINE - 1] = '\n';
	CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
	late.fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct log_target t = opened(path);
	CU_ASSERT_FALSE(t.regular);
	late.since_ns = clock_now_ns();
	sigaction(SIGALRM, &act, &old);
	setitimer(ITIMER_REAL, &often, NULL);
	log_target_write(&t, text, LINE * LINES, read_late, NULL);
	setitimer(ITIMER_REAL, &off, NULL);
	sigaction(SIGALRM, &old, NULL);
	read_late(NULL);
	CU_ASSERT_FALSE(t.failed);
	CU_ASSERT_EQUAL(late.got, (LINE - 1) * LINES); /* without the level marks */
	log_target_close(&t);
	close(late.fd);
	free(text);
	end();
}

static bool at_once(void *arg)
{
	(void)arg;
	return true;
}

/* Nobody reads, and the server ends: the wait ends too. */
static void test_no_reader(void)
{
	enum { BYTES = 200000 };
	char *text = malloc(BYTES);

	begin();
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	memset(text, 'x', BYTES);
	CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
	int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct log_target t = opened(path);
	log_target_write(&t, text, BYTES, at_once, NULL);
	CU_ASSERT_TRUE(t.failed);
	CU_ASSERT_EQUAL(said_times("timed out; lines are lost (logged once)"), 1);
	log_target_close(&t);
	close(reader);
	free(text);
	end();
}

CUNIT_MAIN("log targets", {"a file", test_file}, {"a FIFO", test_fifo}, {"streams", test_streams},
    {"moved", test_move}, {"full", test_full}, {"a journal", test_journal_comes_and_goes},
    {"a journal far away", test_journal_path}, {"who reads late", test_late_reader},
    {"nobody reads", test_no_reader})
