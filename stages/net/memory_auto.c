/* SPDX-License-Identifier: MIT */
/* Computes the value of `memory: auto`; see memory_auto.h. Sources: cgroups(7), the kernel's
 * admin-guide/cgroup-v2. */
#include "net/memory_auto.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Return the number in the file dir/name, or INT64_MAX if the file does not exist or contains
 * "max". */
static int64_t number_in(const char *dir, const char *name)
{
	char path[3 * PATH_MAX], text[32] = "";
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

/* Whether `word` is one of the comma-separated `words`. */
static bool has_word(const char *words, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = words; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (strncmp(at, word, n) == 0 && (at[n] == ',' || at[n] == '\0'))
			return true;
	return false;
}

/* Set `path` to the path of this process's group in `list`, as "/a/b", or to "" if the group is the
 * root or there is none. If `controller` is NULL, the group is that of version 2 (line "0::/a/b"),
 * else that of the version 1 hierarchy with this controller (line "7:memory:/a/b"). */
static void find_group(const char *list, const char *controller, char path[PATH_MAX])
{
	FILE *f = fopen(list, "re");
	char line[PATH_MAX];

	path[0] = '\0';
	while (f && fgets(line, sizeof(line), f)) {
		char *words = strchr(line, ':'), *at = words ? strchr(words + 1, ':') : NULL;
		if (!at || at[1] != '/')
			continue;
		*at++ = '\0';
		at[strcspn(at, "\n")] = '\0';
		bool ours = controller ? has_word(words + 1, controller) : words[1] == '\0';
		if (ours)
			snprintf(path, PATH_MAX, "%s", at[1] ? at : "");
	}
	if (f)
		fclose(f);
}

/* Return the smallest number in the files called `name` of the group `path` below `root` and of all
 * groups above it. Some groups are not visible in a container; a missing file counts as unlimited.
 * The visible root is always checked. */
static int64_t least_above(const char *root, char path[PATH_MAX], const char *name)
{
	char dir[2 * PATH_MAX];
	int64_t bytes = INT64_MAX;

	for (;;) {
		snprintf(dir, sizeof(dir), "%s%s", root, path);
		bytes = least(bytes, number_in(dir, name));
		char *end = strrchr(path, '/');
		if (!end)
			return bytes;
		*end = '\0';
	}
}

int64_t memory_auto_group(const char *root, const char *list)
{
	char path[PATH_MAX], v1[PATH_MAX];

	find_group(list, NULL, path);
	int64_t bytes = least_above(root, path, "memory.max");
	snprintf(v1, sizeof(v1), "%s/memory", root);
	find_group(list, "memory", path);
	return least(bytes, least_above(v1, path, "memory.limit_in_bytes"));
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
