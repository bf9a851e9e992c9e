/* SPDX-License-Identifier: MIT */
/* Lines of a crash report: of any length, and the frames of a stack with their objects. */
#include "server/crash_line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cunit_main.h"

static int out, kept; /* stderr is a file meanwhile */

static void catch (void)
{
	out = memfd_create("stderr", MFD_CLOEXEC);
	kept = dup(STDERR_FILENO);
	CU_ASSERT_FATAL(out >= 0 && kept >= 0 && dup2(out, STDERR_FILENO) >= 0);
}

static const char *caught(void)
{
	static char text[1 << 16];

	CU_ASSERT_EQUAL(dup2(kept, STDERR_FILENO), STDERR_FILENO);
	ssize_t n = pread(out, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	close(out);
	close(kept);
	return text;
}

static void test_lines(void)
{
	struct crash_line line = {.n = 0};

	catch ();
	crash_append(&line, "one");
	crash_append(&line, "");
	crash_append(&line, " two");
	crash_append_foreign(&line, " a\x01z\x7f~\xc3\xa4 ");
	CU_ASSERT_EQUAL(line.n, 16);
	crash_write(&line);
	CU_ASSERT_EQUAL(line.n, 0);
	crash_append(&line, "three");
	crash_write(&line);
	crash_write(&line);
	CU_ASSERT_STRING_EQUAL(caught(), "one two a?z?~?? \nthree\n\n");
}

/* The part that does not fit is dropped, but never the line end. */
static void test_long(void)
{
	struct crash_line line = {.n = 0};
	char text[1000];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	catch ();
	crash_append(&line, "a");
	crash_append(&line, text);
	crash_append(&line, "b");
	crash_append_foreign(&line, "c");
	CU_ASSERT_EQUAL(line.n, sizeof(line.text) - 1);
	crash_write(&line);
	const char *said = caught();
	CU_ASSERT_EQUAL(strlen(said), sizeof(line.text));
	CU_ASSERT_EQUAL(said[0], 'a');
	CU_ASSERT_EQUAL(strspn(said + 1, "x"), sizeof(line.text) - 2);
	CU_ASSERT_EQUAL(said[sizeof(line.text) - 1], '\n');
}

/* The stack from `pc` on. */
static __attribute__((noinline)) const char *stack_from(uintptr_t pc)
{
	crash_stack_prepare();
	catch ();
	crash_stack_write(pc);
	return caught();
}

static __attribute__((noinline)) const char *stack_here(void)
{
	return stack_from((uintptr_t)__builtin_return_address(0));
}

/* Each frame has a number, the object that it belongs to, and the offset there. */
static void test_stack(void)
{
	const char *text = stack_here();
	const char *program = program_invocation_short_name;
	char begins[200];
	int n = 0;

	snprintf(begins, sizeof(begins), "weir:   #0 %s(+0x", program);
	CU_ASSERT_EQUAL(strncmp(text, begins, strlen(begins)), 0);
	for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
		snprintf(begins, sizeof(begins), "weir:   #%d ", n++);
		CU_ASSERT_EQUAL(strncmp(line, begins, strlen(begins)), 0);
		const char *offset = strstr(line, "(+0x");
		CU_ASSERT_PTR_NOT_NULL_FATAL(offset);
		CU_ASSERT_EQUAL(offset[4 + strspn(offset + 4, "0123456789abcdef")], ')');
	}
	CU_ASSERT_TRUE(n >= 3);
	/* the offset is that of the symbol in the object */
	uintptr_t offset = strtoul(strstr(text, "(+0x") + 4, NULL, 16);
	extern const char __executable_start[];
	uintptr_t at = (uintptr_t)test_stack - (uintptr_t)__executable_start;
	CU_ASSERT_TRUE(offset > at && offset < at + 4096);
}

/* An address outside of all objects, to which the code has jumped: it is the first frame. */
static void test_nowhere(void)
{
	const char *text = stack_from(0x123);

	CU_ASSERT_EQUAL(strncmp(text, "weir:   #0 0x123\n", 17), 0);
	CU_ASSERT_EQUAL(strncmp(text + 17, "weir:   #1 ", 11), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, program_invocation_short_name));
}

CUNIT_MAIN("crash lines", {"lines", test_lines}, {"long lines", test_long}, {"stack", test_stack},
    {"nowhere", test_nowhere})
