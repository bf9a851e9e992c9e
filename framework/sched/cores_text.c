/* SPDX-License-Identifier: MIT */
/* Reads the value of `cores:` of a group. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/task.h"
#include "sched/cores.h"

/* Read a number from *text and advance it. Returns -1 if there is none, or it is too large. */
static int number(const char **text)
{
	int n = 0;

	if (!isdigit((unsigned char)**text))
		return -1;
	for (; isdigit((unsigned char)**text); ++*text)
		if ((n = n * 10 + (**text - '0')) > POOL_THREADS_MAX)
			return -1;
	return n;
}

/* Append CPUs first to last to `cpu`, which has `n`. Returns the new number, or -1. */
static int append(int *cpu, int n, int first, int last)
{
	if (first < 0 || last < first || n + last - first >= POOL_THREADS_MAX)
		return -1;
	for (int i = first; i <= last; i++) {
		for (int k = 0; k < n; k++)
			if (cpu[k] == i)
				return -1;
		cpu[n++] = i;
	}
	return n;
}

/* Read a number or `auto`, and advance *text. */
static int bound(const char **text)
{
	if (strncmp(*text, "auto", 4) != 0)
		return number(text);
	*text += 4;
	return task_cores();
}

int cores_range(const char *text, int *max)
{
	const char *at = text;
	int min = bound(&at);

	*max = min;
	if (strncmp(at, "..", 2) == 0) {
		at += 2;
		*max = bound(&at);
	}
	return *at == '\0' && min > 0 && *max > 0 ? min : -1;
}

int cores_parse(const char *text, int cpu[POOL_THREADS_MAX], bool *listed)
{
	const char *at = text;
	int n = 0, most;

	*listed = strpbrk(text, "-,") != NULL;
	if (!*listed)
		return (n = cores_range(text, &most)) > 0 && most >= n ? most : -1;
	for (;;) {
		int first = number(&at), last = first;
		if (*at == '-') {
			at++;
			last = number(&at);
		}
		n = append(cpu, n, first, last);
		if (n < 0 || (*at != ',' && *at != '\0'))
			return -1;
		if (*at++ == '\0')
			return n;
	}
}
