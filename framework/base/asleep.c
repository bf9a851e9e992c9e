/* SPDX-License-Identifier: MIT */
/* Reads the states of threads; see asleep.h. */
#include "base/asleep.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool asleep(int tid)
{
	char path[48], text[128];

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return false;
	ssize_t n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	/* "TID (NAME) STATE ..."; the name may contain parentheses */
	const char *end = strrchr(text, ')');
	return end && end[1] == ' ' && (end[2] == 'S' || end[2] == 'D');
}
