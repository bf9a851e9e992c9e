/* SPDX-License-Identifier: MIT */
/* Maps the system call of a sleeping thread to a reason; see sleep_reason.h. */
#include "base/sleep_reason.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* System calls whose sleeps are not I/O, and the calls that are. Calls that a platform does not have
 * are left out. */
static const struct {
	long number;
	enum sleep_reason reason;
} calls[] = {
    {SYS_futex, SLEEP_LOCK},
    {SYS_flock, SLEEP_LOCK},
    {SYS_semtimedop, SLEEP_LOCK},
    {SYS_clock_nanosleep, SLEEP_TIMED},
    {SYS_nanosleep, SLEEP_TIMED},
    {SYS_mmap, SLEEP_MEMORY},
    {SYS_munmap, SLEEP_MEMORY},
    {SYS_mremap, SLEEP_MEMORY},
    {SYS_mprotect, SLEEP_MEMORY},
    {SYS_madvise, SLEEP_MEMORY},
    {SYS_brk, SLEEP_MEMORY},
    {SYS_wait4, SLEEP_OTHER},
    {SYS_waitid, SLEEP_OTHER},
    {SYS_rt_sigtimedwait, SLEEP_OTHER},
    {SYS_rt_sigsuspend, SLEEP_OTHER},
#ifdef SYS_semop
    {SYS_semop, SLEEP_LOCK},
#endif
#ifdef SYS_pause
    {SYS_pause, SLEEP_OTHER},
#endif
#ifdef SYS_vfork
    {SYS_vfork, SLEEP_OTHER},
#endif
};

/* Command of fcntl that waits for a lock is told apart by its second argument. */
static enum sleep_reason reason_of(long number, const char *args)
{
	char *end;

	if (number == SYS_fcntl) {
		strtoul(args, &end, 16);
		unsigned long command = strtoul(end, NULL, 16);
		return command == F_SETLKW || command == F_OFD_SETLKW ? SLEEP_LOCK : SLEEP_IO;
	}
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].number == number)
			return calls[i].reason;
	return SLEEP_IO;
}

enum sleep_reason sleep_reason_of(const char *text)
{
	char *end;

	if (strncmp(text, "running", 7) == 0)
		return SLEEP_AWAKE;
	long number = strtol(text, &end, 10);
	if (end == text)
		return SLEEP_OTHER;
	/* Outside system calls, a thread sleeps only in a fault. */
	return number < 0 ? SLEEP_MEMORY : reason_of(number, end);
}

/* Read a file of the thread into text[size]. Returns whether it has contents. */
static bool read_file(int tid, const char *name, char *text, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", tid, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return false;
	ssize_t n = read(fd, text, size - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* The state of a thread in `text`, "TID (NAME) STATE ..."; the name may contain parentheses. */
static char state_of(const char *text)
{
	const char *end = strrchr(text, ')');

	return end && end[1] == ' ' ? end[2] : '?';
}

enum sleep_reason sleep_reason(int tid)
{
	char text[160];

	if (read_file(tid, "syscall", text, sizeof(text)))
		return sleep_reason_of(text);
	if (!read_file(tid, "stat", text, sizeof(text)))
		return SLEEP_AWAKE;
	char state = state_of(text);
	return state == 'D' ? SLEEP_IO : state == 'S' ? SLEEP_OTHER : SLEEP_AWAKE;
}
