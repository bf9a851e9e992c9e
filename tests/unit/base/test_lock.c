/* SPDX-License-Identifier: MIT */
/* Debug builds end at a lock that is released but not held. */
#include "base/lock.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cunit_main.h"

static struct lock lock;

/* Release `lock` in a child. Returns whether the child was aborted. */
static bool aborts(void) WEIR_NO_THREAD_SAFETY
{
	const struct rlimit none = {0, 0};
	int status;
	pid_t pid = fork();

	CU_ASSERT_NOT_EQUAL_FATAL(pid, -1);
	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &none);
		close(STDERR_FILENO);
		lock_release(&lock);
		_exit(0);
	}
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void test_release_of_a_lock_not_held(void) WEIR_NO_THREAD_SAFETY
{
#ifdef NDEBUG
	const bool checked = false;
#else
	const bool checked = true;
#endif

	lock_init(&lock);
	CU_ASSERT_EQUAL(aborts(), checked);
	lock_take(&lock);
	CU_ASSERT_FALSE(aborts());
	lock_release(&lock);
	CU_ASSERT_EQUAL(aborts(), checked);
	CU_ASSERT_TRUE(lock_try(&lock));
	CU_ASSERT_FALSE(aborts());
	lock_release(&lock);
	lock_fini(&lock);
}

CUNIT_MAIN("lock", {"release of a lock that is not held", test_release_of_a_lock_not_held})
