/* SPDX-License-Identifier: MIT */
/* The value of `memory: auto`: the share at its limits, and the smallest limit of the control
 * groups of a process. */
#include "net/memory_auto.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cunit_main.h"

#define MIB (1LL << 20)

static char root[32];

static const char *at(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

static void put(const char *name, const char *text)
{
	FILE *f = fopen(at(name), "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(text, f);
	fclose(f);
}

static void test_share(void)
{
	CU_ASSERT_EQUAL(memory_auto_share(0), 64 * MIB);
	CU_ASSERT_EQUAL(memory_auto_share(512 * MIB), 64 * MIB);
	CU_ASSERT_EQUAL(memory_auto_share(1024 * MIB), 128 * MIB);
	CU_ASSERT_EQUAL(memory_auto_share(8192 * MIB), 1024 * MIB);
	CU_ASSERT_EQUAL(memory_auto_share(INT64_MAX), 1024 * MIB);
}

static int64_t group(void)
{
	char list[256];

	snprintf(list, sizeof(list), "%s", at("list"));
	return memory_auto_group(root, list);
}

static void test_groups(void)
{
	char command[64];

	snprintf(root, sizeof(root), "/tmp/weir-group-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(root));
	CU_ASSERT_EQUAL(group(), INT64_MAX); /* no groups at all */
	mkdir(at("a"), 0700);
	mkdir(at("a/b"), 0700);
	put("list", "1:name=systemd:/x\n0::/a/b\n");
	CU_ASSERT_EQUAL(group(), INT64_MAX);
	put("a/b/memory.max", "max\n");
	put("a/memory.max", "300000000\n");
	CU_ASSERT_EQUAL(group(), 300000000); /* that of the parent group */
	put("a/b/memory.max", "200000000\n");
	CU_ASSERT_EQUAL(group(), 200000000);
	put("memory.max", "100000000\n"); /* a container sees its own group as the root */
	CU_ASSERT_EQUAL(group(), 100000000);
	put("list", "0::/\n");
	CU_ASSERT_EQUAL(group(), 100000000);
	put("list", "0::/not/seen/here\n");
	CU_ASSERT_EQUAL(group(), 100000000);
	mkdir(at("memory"), 0700);
	put("memory/memory.limit_in_bytes", "90000000\n");
	CU_ASSERT_EQUAL(group(), 90000000);
	snprintf(command, sizeof(command), "rm -r %s", root);
	CU_ASSERT_EQUAL(system(command), 0);
}

/* Version 1: the limits of the process's own group and of those above it count, not only the
 * root's. */
static void test_groups_of_version_1(void)
{
	char command[64];

	snprintf(root, sizeof(root), "/tmp/weir-group-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(root));
	mkdir(at("memory"), 0700);
	mkdir(at("memory/a"), 0700);
	mkdir(at("memory/a/b"), 0700);
	put("list", "9:cpu,cpuacct:/z\n7:hugetlb,memory:/a/b\n1:name=systemd:/x\n0::/\n");
	put("memory/memory.limit_in_bytes",
	    "9223372036854771712\n"); /* the kernel's value for "unlimited" */
	CU_ASSERT_EQUAL(group(), 9223372036854771712);
	put("memory/a/b/memory.limit_in_bytes", "300000000\n");
	CU_ASSERT_EQUAL(group(), 300000000);
	put("memory/a/memory.limit_in_bytes", "200000000\n");
	CU_ASSERT_EQUAL(group(), 200000000);
	put("memory.max", "250000000\n"); /* both versions at once: the smallest */
	CU_ASSERT_EQUAL(group(), 200000000);
	put("list", "7:memory_not:/a/b\n0::/\n");
	CU_ASSERT_EQUAL(group(), 250000000);
	snprintf(command, sizeof(command), "rm -r %s", root);
	CU_ASSERT_EQUAL(system(command), 0);
}

static void test_here(void)
{
	int64_t bytes = memory_auto();

	CU_ASSERT(bytes >= MEMORY_AUTO_MIN && bytes <= MEMORY_AUTO_MAX);
}

CUNIT_MAIN("memory auto", {"share", test_share}, {"groups", test_groups},
    {"groups of version 1", test_groups_of_version_1}, {"here", test_here})
