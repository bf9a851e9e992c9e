/* SPDX-License-Identifier: MIT */
/* A server inside a program where unshare(2) is forbidden, as in a container: it starts only from the
 * folder of its file, and says so elsewhere. A filter of the kernel refuses the call, for all threads
 * that this program starts after it. Where no filter can be installed, the tests say so and check
 * nothing. */
#include <weir/server.h>

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "cunit_main.h"

static char folder[64], file[96], here[4096];
static bool forbidden;

/* Let unshare fail with EPERM from now on. */
static void forbid(void)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	forbidden = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 &&
		    unshare(CLONE_FS) == -1 && errno == EPERM;
	if (!forbidden)
		printf("system calls cannot be filtered here: nothing is checked\n");
}

static void begin(void)
{
	char path[128];

	setenv("WEIR_TRUST_FILES", "any", 1);
	snprintf(folder, sizeof(folder), "/tmp/weir-unshare-XXXXXX");
	CU_ASSERT_FATAL(mkdtemp(folder) && getcwd(here, sizeof(here)));
	snprintf(file, sizeof(file), "%s/it.yaml", folder);
	snprintf(path, sizeof(path), "%s/site", folder);
	CU_ASSERT_FATAL(mkdir(path, 0700) == 0);
	FILE *out = fopen(file, "we");
	CU_ASSERT_FATAL(out &&
			fputs("weir: 1\nstages:\n"
			      "  web: { use: http.server, with: { listen: '127.0.0.1:0' }, to: { "
			      "request: it } }\n"
			      "  it: { use: file.read, with: { root: site } }\n",
			    out) >= 0 &&
			fclose(out) == 0);
	if (!forbidden)
		forbid();
}

static void end(void)
{
	char path[128];

	CU_ASSERT_EQUAL(chdir(here), 0);
	snprintf(path, sizeof(path), "%s/site", folder);
	rmdir(path);
	unlink(file);
	rmdir(folder);
}

static void test_elsewhere(void)
{
	struct weir_errs errs = {0};
	struct weir_server *s = NULL;
	char now[4096];

	begin();
	if (forbidden) {
		CU_ASSERT_EQUAL(weir_server_open(file, NULL, 0, &s, &errs), WEIR_ESYS);
		CU_ASSERT_PTR_NULL(s);
		CU_ASSERT_EQUAL_FATAL(errs.n, 1);
		CU_ASSERT_PTR_NOT_NULL(
		    strstr(errs.err[0].text, "unshare: Operation not permitted"));
		CU_ASSERT_STRING_EQUAL(errs.err[0].hint,
		    "make the folder of the file the working directory of the program");
		CU_ASSERT(getcwd(now, sizeof(now)) && strcmp(now, here) == 0);
	}
	end();
}

/* From the folder of the file it starts, finds `site` there, and reloads. */
static void test_here(void)
{
	struct weir_errs errs = {0};
	struct weir_server *s = NULL;
	struct weir_reload_result result;
	struct weir_drain_report report;

	begin();
	if (forbidden && chdir(folder) == 0) {
		CU_ASSERT_EQUAL_FATAL(weir_server_open("it.yaml", NULL, 0, &s, &errs), 0);
		CU_ASSERT_EQUAL(weir_server_start(s, &errs), 0);
		CU_ASSERT_EQUAL(weir_server_reload(s, &result, &errs), 0);
		weir_server_close(s, &report);
		CU_ASSERT(report.left == 0 && report.law_error == 0);
		/* also by a path that leads to the same folder */
		CU_ASSERT_EQUAL_FATAL(weir_server_open(file, NULL, 0, &s, &errs), 0);
		weir_server_close(s, &report);
	}
	end();
}

CUNIT_MAIN("embed_unshare", {"from another folder", test_elsewhere},
    {"from the folder of the file", test_here})
