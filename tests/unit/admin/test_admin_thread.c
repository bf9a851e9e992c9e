/* SPDX-License-Identifier: MIT */
/* The admin thread: its name and priority, that it takes no signals of the process, that nothing of
 * it is left when the endpoint has stopped, and why it may not start. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>

#include <weir/log.h>

#include "admin/admin.h"
#include "client.h"
#include "cunit_main.h"
#include "fixture/graph/descriptors.h"
#include "made_up.h"

static struct made_up made_up;

static int start_of(
    struct made_up *m, const char *listen, struct admin **admin, struct weir_err *err)
{
	struct admin_source source = made_up_source(m);

	weir_log_set_fd(-1);
	made_up_init(m);
	*err = (struct weir_err){0};
	return admin_start_source(&source, listen, admin, err);
}

static int start(const char *listen, struct admin **admin, struct weir_err *err)
{
	return start_of(&made_up, listen, admin, err);
}

/* Read a file of a thread into buf[size]. */
static void read_of(int tid, const char *file, char *buf, size_t size)
{
	char path[100];

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", tid, file);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, buf, size - 1);
	buf[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		close(fd);
}

/* The id of the thread called `name`; 0 if there is none. */
static int thread_called(const char *name)
{
	DIR *dir = opendir(THREADS);
	int tid = 0;
	char comm[64];

	for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
		read_of(atoi(e->d_name), "comm", comm, sizeof(comm));
		comm[strcspn(comm, "\n")] = '\0';
		if (strcmp(comm, name) == 0)
			tid = atoi(e->d_name);
	}
	closedir(dir);
	return tid;
}

static void test_thread(void)
{
	struct weir_err err;
	struct admin *admin;
	char text[8192];
	int before = entries_in(DESCRIPTORS);

	CU_ASSERT_EQUAL_FATAL(start("127.0.0.1:0", &admin, &err), 0);
	CU_ASSERT_EQUAL(client_get(admin_port(admin), "/healthz", text, sizeof(text)), 200);
	int tid = thread_called("admin");
	CU_ASSERT_TRUE_FATAL(tid > 0);
	CU_ASSERT_TRUE(getpriority(PRIO_PROCESS, (id_t)tid) >= 10);
	read_of(tid, "status", text, sizeof(text));
	const char *blocked = strstr(text, "\nSigBlk:\t");
	CU_ASSERT_PTR_NOT_NULL_FATAL(blocked);
	/* SIGHUP, SIGINT, SIGTERM, SIGUSR1 and SIGCHLD, for example */
	unsigned long long mask = strtoull(blocked + 9, NULL, 16);
	static const int some[] = {1, 2, 10, 15, 17};
	for (int i = 0; i < 5; i++)
		CU_ASSERT_TRUE(mask >> (some[i] - 1) & 1);
	/* this thread still takes SIGTERM */
	read_of(getpid(), "status", text, sizeof(text));
	mask = strtoull(strstr(text, "\nSigBlk:\t") + 9, NULL, 16);
	CU_ASSERT_EQUAL(mask >> 14 & 1, 0);
	admin_stop(admin);
	CU_ASSERT_EQUAL(thread_called("admin"), 0);
	CU_ASSERT_EQUAL(entries_in(DESCRIPTORS), before);
	admin_stop(NULL);
}

static void refused(const char *listen, int code, const char *words)
{
	static struct made_up other; /* the thread of a first endpoint may be reading `made_up` */
	struct weir_err err;
	struct admin *admin = NULL;
	int before = entries_in(DESCRIPTORS);

	CU_ASSERT_EQUAL(start_of(&other, listen, &admin, &err), code);
	CU_ASSERT_EQUAL(err.code, code);
	if (!strstr(err.text, words))
		fprintf(stderr, "'%s' is not in '%s'\n", words, err.text);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, words));
	CU_ASSERT_PTR_NULL(admin);
	CU_ASSERT_EQUAL(entries_in(DESCRIPTORS), before);
}

static void test_no_start(void)
{
	struct weir_err err;
	struct admin *first;
	char listen[40];

	refused("nonsense", WEIR_EINVAL, "'nonsense' is not an address to listen on");
	refused("0.0.0.0:0", WEIR_EINVAL, "is reachable from other machines");
	refused("unix:relative", WEIR_EINVAL, "needs an absolute path");
	refused("unix:/none/x.sock", WEIR_ESYS, "No such file or directory");
	CU_ASSERT_EQUAL_FATAL(start("127.0.0.1:0", &first, &err), 0);
	snprintf(listen, sizeof(listen), "127.0.0.1:%d", admin_port(first));
	refused(listen, WEIR_EBUSY, "the address is in use");
	admin_stop(first);
	CU_ASSERT_EQUAL_FATAL(start(listen, &first, &err), 0); /* the address is free again */
	admin_stop(first);
}

/* No descriptor is left for the loop. */
static void test_no_descriptors(void)
{
	struct weir_err err;
	struct admin *admin = NULL;
	int before = entries_in(DESCRIPTORS), rc = -1, n = 0;

	for (; rc != 0 && n < 40; n++) {
		rlim_t limit = descriptors_leave(n);
		rc = start("127.0.0.1:0", &admin, &err);
		descriptors_restore(limit);
		if (rc != 0) {
			CU_ASSERT_TRUE(err.text[0]);
			CU_ASSERT_EQUAL(err.code, rc);
			CU_ASSERT_PTR_NULL(admin);
			CU_ASSERT_EQUAL(entries_in(DESCRIPTORS), before);
		}
	}
	CU_ASSERT_EQUAL(rc, 0);
	CU_ASSERT_TRUE(n > 3);
	if (rc == 0)
		admin_stop(admin);
	CU_ASSERT_EQUAL(entries_in(DESCRIPTORS), before);
}

CUNIT_MAIN("admin thread", {"thread", test_thread}, {"no start", test_no_start},
    {"no descriptors", test_no_descriptors})
