/* SPDX-License-Identifier: MIT */
/* Codes, words, sentences and outcomes; how a failed assertion ends the process. */
#include <weir/error.h>

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cunit_main.h"

static void test_outcomes(void)
{
	CU_ASSERT_EQUAL(weir_outcome_of(WEIR_OK), WEIR_OUTCOME_DONE);
	CU_ASSERT_EQUAL(weir_outcome_of(WEIR_EDROPPED), WEIR_OUTCOME_FAILED);
	CU_ASSERT_EQUAL(weir_outcome_of(WEIR_EQUEUE), WEIR_OUTCOME_SHED);
	CU_ASSERT_EQUAL(weir_outcome_of(12345), WEIR_OUTCOME_FAILED);
}

static void test_words(void)
{
	CU_ASSERT_STRING_EQUAL(weir_error_word(WEIR_OK), "ok");
	CU_ASSERT_STRING_EQUAL(weir_error_word(WEIR_ERATE), "rate");
	CU_ASSERT_STRING_EQUAL(weir_error_word(7), "unknown");
	CU_ASSERT_STRING_EQUAL(weir_error_text(WEIR_EGONE), "the client left before the answer");
	CU_ASSERT_STRING_EQUAL(weir_error_text(7), "an unknown error");
}

/* Every SHED code of the table has an index, every index has a code, and no other code has an
 * index. */
static void test_shed_indexes(void)
{
	int shed = 0;

#define COUNT(name, code, kind, word, text)                                                        \
	if (weir_outcome_of(code) == WEIR_OUTCOME_SHED) {                                          \
		shed++;                                                                            \
		CU_ASSERT_EQUAL(weir_shed_code(weir_shed_index(code)), (code));                    \
	} else {                                                                                   \
		CU_ASSERT_EQUAL(weir_shed_index(code), -1);                                        \
	}
	WEIR_ERROR_TABLE(COUNT)
#undef COUNT
	CU_ASSERT_EQUAL(shed, WEIR_SHED_REASONS);
	CU_ASSERT_EQUAL(weir_shed_index(weir_shed_code(WEIR_SHED_REASONS - 1) - 1), -1);
}

/* Fork a child that fails an assertion. Its message goes to `buf`; returns the signal that ended
 * it. */
static int last_words(char *buf, size_t size)
{
	int pipe_fd[2], status;
	ssize_t n;
	size_t used = 0;

	CU_ASSERT_EQUAL_FATAL(pipe(pipe_fd), 0);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(pipe_fd[1], STDERR_FILENO);
		signal(SIGABRT, SIG_DFL);
		WEIR_ASSERT(1 + 1 == 3);
		_exit(0);
	}
	close(pipe_fd[1]);
	while ((n = read(pipe_fd[0], buf + used, size - 1 - used)) > 0)
		used += (size_t)n;
	buf[used] = '\0';
	close(pipe_fd[0]);
	waitpid(pid, &status, 0);
	return status;
}

static void test_assert(void)
{
	char words[1024];

	int status = last_words(words, sizeof(words));
	CU_ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	CU_ASSERT_PTR_NOT_NULL(strstr(words, "weir: bug: '1 + 1 == 3' is false at "));
	CU_ASSERT_PTR_NOT_NULL(strstr(words, "in last_words()"));
	CU_ASSERT_PTR_NOT_NULL(strchr(words, '\n'));
	WEIR_ASSERT(words[0] != '\0'); /* a true condition does nothing */
}

CUNIT_MAIN("error", {"outcomes", test_outcomes}, {"words", test_words},
    {"shed indexes", test_shed_indexes}, {"assert", test_assert})
