/* SPDX-License-Identifier: MIT */
/* See memory_auto.h. The files: cgroups(7), the kernel's admin-guide/cgroup-v2. */
#include "http/memory_auto.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The number in dir/name; INT64_MAX: no such file, or "max". */
static int64_t number_in(const char *dir, const char *name)
{
	char path[2 * PATH_MAX], text[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "re");
	if (!f)
		return INT64_MAX;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	int64_t n = strtoll(text, NULL, 10);
	return n > 0 ? n : INT64_MAX;
}

/* The path of the group of version 2 in `list`, as "/a/b"; "" for the root or none. */
static void find_group(const char *list, char path[PATH_MAX])
{
	FILE *f = fopen(list, "re");
	char line[PATH_MAX];

	path[0] = '\0';
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "0::/", 4) == 0) {
			line[strcspn(line, "\n")] = '\0';
			snprintf(path, PATH_MAX, "%s", line + (line[4] ? 3 : 4));
		}
	if (f)
		fclose(f);
}

int64_t memory_auto_group(const char *root, const char *list)
{
	char path[PATH_MAX], dir[2 * PATH_MAX];
	int64_t bytes = number_in(root, "memory/memory.limit_in_bytes");

	find_group(list, path);
	for (;;) {
		snprintf(dir, sizeof(dir), "%s%s", root, path);
		bytes = least(bytes, number_in(dir, "memory.max"));
		char *end = strrchr(path, '/');
		if (!end)
			return bytes;
		*end = '\0';
	}
}

int64_t memory_auto_share(int64_t bytes)
{
	bytes /= 8;
	return bytes < MEMORY_AUTO_MIN ? MEMORY_AUTO_MIN : least(bytes, MEMORY_AUTO_MAX);
}

int64_t memory_auto(void)
{
	int64_t bytes = memory_auto_group("/sys/fs/cgroup", "/proc/self/cgroup");
	struct sysinfo si;

	if (sysinfo(&si) == 0)
		bytes = least(bytes, (int64_t)si.totalram * si.mem_unit);
	return memory_auto_share(bytes);
}
