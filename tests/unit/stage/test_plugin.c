/* SPDX-License-Identifier: MIT */
/* Copies of plug-ins: they cannot be changed, and a file that is not a complete plug-in is refused
 * before the loader sees it. */
#include "stage/plugin.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/plugin.h>

#include "cunit_main.h"
#include "stage/registry.h"

#define GOOD   WEIR_BINARY_DIR "/tests/cli/crash.so"
#define SYMBOL "weir_stage_crash"

static char *good;
static size_t good_n;
static char folder[64], path[96];
static struct weir_err err;

static void begin(void)
{
	struct stat st;
	int fd = open(GOOD, O_RDONLY | O_CLOEXEC);

	setenv("WEIR_TRUST_FILES", "any", 1); /* the files of the clone */
	CU_ASSERT_FATAL(fd != -1 && fstat(fd, &st) == 0);
	good_n = (size_t)st.st_size;
	good = malloc(good_n);
	CU_ASSERT_FATAL(good && read(fd, good, good_n) == (ssize_t)good_n);
	close(fd);
	snprintf(folder, sizeof(folder), "/tmp/weir-plugin-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/crash.so", folder);
}

static void end(void)
{
	unlink(path);
	rmdir(folder);
	free(good);
}

static void put(const char *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CU_ASSERT_FATAL(fd != -1 && write(fd, bytes, n) == (ssize_t)n);
	close(fd);
}

static int copy_of(const char *symbol, struct plugin_copy *copy)
{
	err = (struct weir_err){0};
	return plugin_copy(path, symbol, copy, &err);
}

/* The name of an open file, which the maps of a process also show. */
static const char *name_of(int fd)
{
	static char name[128];
	char link[32];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, name, sizeof(name) - 1);
	name[n > 0 ? n : 0] = '\0';
	return name;
}

static void test_sealed(void)
{
	struct plugin_copy copy, again;

	begin();
	put(good, good_n);
	CU_ASSERT_EQUAL_FATAL(copy_of(SYMBOL, &copy), 0);
	CU_ASSERT_EQUAL(copy.size, good_n);
	CU_ASSERT_NOT_EQUAL(copy.id, 0);
	CU_ASSERT_STRING_EQUAL(name_of(copy.fd), "/memfd:crash.so (deleted)");
	CU_ASSERT(fcntl(copy.fd, F_GETFD) & FD_CLOEXEC);
	CU_ASSERT(pwrite(copy.fd, "x", 1, 0) == -1 && errno == EPERM);
	CU_ASSERT(ftruncate(copy.fd, 0) == -1 && errno == EPERM);
	CU_ASSERT(mmap(NULL, 1, PROT_WRITE, MAP_SHARED, copy.fd, 0) == MAP_FAILED);
	CU_ASSERT_EQUAL(copy_of(SYMBOL, &again), 0);
	CU_ASSERT(plugin_same(&copy, &again));
	close(again.fd);
	good[good_n - 1] ^= 1; /* an unused section header */
	put(good, good_n);
	CU_ASSERT_EQUAL(copy_of(SYMBOL, &again), 0);
	CU_ASSERT_FALSE(plugin_same(&copy, &again));
	again.id = copy.id; /* two contents with the same hash */
	CU_ASSERT_FALSE(plugin_same(&copy, &again));
	close(again.fd);
	close(copy.fd);
	end();
}

/* An interrupted copy: every length. */
static void test_cut(void)
{
	struct plugin_copy copy;
	int accepted = 0;

	begin();
	for (size_t n = 0; n < good_n; n += n < 4096 ? 7 : 509) {
		put(good, n);
		accepted += copy_of(SYMBOL, &copy) == 0;
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "crash.so"));
	}
	CU_ASSERT_EQUAL(accepted, 0);
	put(good, good_n - 1);
	CU_ASSERT_EQUAL(copy_of(SYMBOL, &copy), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "is incomplete"));
	end();
}

/* No corrupt byte makes the reader leave the file's bounds. Whether an accepted file works is up to
 * the loader. */
static void test_nonsense(void)
{
	struct plugin_copy copy;
	size_t step = good_n / 1500 + 1;

	begin();
	for (size_t at = 0; at < good_n; at += at < 1024 ? 1 : step) {
		char kept = good[at];
		good[at] = (char)0xff;
		put(good, good_n);
		if (copy_of(SYMBOL, &copy) == 0)
			close(copy.fd);
		good[at] = kept;
	}
	end();
}

/* Bytes before the table of sections that look like the header of an empty symbol table are not
 * one. */
static void test_before_the_sections(void)
{
	Elf64_Shdr fake = {.sh_type = SHT_DYNSYM};
	struct plugin_copy copy;
	Elf64_Ehdr head;

	begin();
	memcpy(&head, good, sizeof(head));
	CU_ASSERT_FATAL(head.e_shoff > sizeof(fake));
	memcpy(good + head.e_shoff - sizeof(fake), &fake, sizeof(fake));
	put(good, good_n);
	CU_ASSERT_EQUAL_FATAL(copy_of(SYMBOL, &copy), 0);
	close(copy.fd);
	end();
}

static void test_symbols(void)
{
	struct plugin_copy copy;

	begin();
	put(good, good_n);
	CU_ASSERT_EQUAL(copy_of("weir_stage_other", &copy), WEIR_ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "has no symbol 'weir_stage_other'"));
	CU_ASSERT_EQUAL(copy_of("weir_stage_cras", &copy), WEIR_ENOENT);
	CU_ASSERT_EQUAL(copy_of("weir_log", &copy), WEIR_ENOENT); /* not defined there */
	put("text", 4);
	CU_ASSERT_EQUAL(copy_of(SYMBOL, &copy), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "is not a shared object"));
	unlink(path);
	CU_ASSERT_EQUAL(copy_of(SYMBOL, &copy), WEIR_ENOENT);
	end();
}

static const struct weir_stage_ops *load(int code)
{
	err = (struct weir_err){0};
	CU_ASSERT_EQUAL(weir_stage_load(path, &err), code);
	return weir_stage_type_find("crash");
}

/* A plug-in may be named twice. A type of the same name from other content is refused in the same
 * configuration, and replaces the old one in the next. */
static void test_replaced(void)
{
	begin();
	put(good, good_n);
	weir_stage_plugins_begin();
	const struct weir_stage_ops *first = load(0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(first);
	CU_ASSERT_PTR_EQUAL(load(0), first);
	good[good_n - 1] ^= 1; /* an unused section header */
	put(good, good_n);
	CU_ASSERT_PTR_EQUAL(load(WEIR_EBUSY), first);
	CU_ASSERT_STRING_EQUAL(err.text, "there is already a stage type 'crash'");
	CU_ASSERT_EQUAL(weir_stage_plugins_loaded(), 1);
	weir_stage_plugins_begin();
	const struct weir_stage_ops *second = load(0);
	CU_ASSERT_PTR_NOT_EQUAL(second, first);
	CU_ASSERT_PTR_EQUAL(load(0), second);
	CU_ASSERT_EQUAL(weir_stage_plugins_loaded(), 2);
	weir_stage_plugins_revert();
	CU_ASSERT_PTR_EQUAL(weir_stage_type_find("crash"), first);
	CU_ASSERT_EQUAL(weir_stage_plugins_loaded(), 1);
	end();
}

/* Load the next content of the file, in a configuration that takes effect. */
static const struct weir_stage_ops *next(void)
{
	good[good_n - 1]++;
	put(good, good_n);
	weir_stage_plugins_begin();
	const struct weir_stage_ops *ops = load(0);
	weir_stage_plugins_keep();
	return ops;
}

/* A replaced plug-in is unloaded once nothing holds it, whatever the order in which graphs end. */
static void test_unloaded(void)
{
	struct plugin_hold *first, *second, *both;

	begin();
	next();
	CU_ASSERT_EQUAL(weir_stage_plugins_loaded(), 1);
	CU_ASSERT_EQUAL(plugins_hold(&first), 0);
	next();
	CU_ASSERT_EQUAL(weir_stage_plugins_loaded(), 2);
	CU_ASSERT_EQUAL(plugins_hold(&second), 0);
	CU_ASSERT_EQUAL(plugins_hold(&both), 0);
	next();
	CU_ASSERT_EQUAL(weir_stage_plugins_loaded(), 3);
	plugins_release(second);
	CU_ASSERT_EQUAL(weir_stage_plugins_loaded(), 3);
	plugins_release(first);
	CU_ASSERT_EQUAL(weir_stage_plugins_loaded(), 2);
	plugins_release(both);
	CU_ASSERT_EQUAL(weir_stage_plugins_loaded(), 1);
	const struct weir_stage_ops *ops = weir_stage_type_take("crash");
	CU_ASSERT_PTR_NOT_EQUAL(next(), ops);
	CU_ASSERT_EQUAL(weir_stage_plugins_loaded(), 2);
	CU_ASSERT_STRING_EQUAL(ops->name, "crash");
	weir_stage_type_put(ops);
	CU_ASSERT_EQUAL(weir_stage_plugins_loaded(), 1);
	weir_stage_type_put(weir_stage_type_take("drop"));
	weir_stage_type_put(weir_stage_type_take("no such type"));
	plugins_release(NULL);
	end();
}

/* A graph that is built before its configuration takes effect holds the new plug-in only. */
static void test_held_before_kept(void)
{
	struct plugin_hold *hold;

	begin();
	next();
	good[good_n - 1]++;
	put(good, good_n);
	weir_stage_plugins_begin();
	load(0);
	CU_ASSERT_EQUAL(plugins_hold(&hold), 0);
	CU_ASSERT_EQUAL(weir_stage_plugins_loaded(), 2);
	weir_stage_plugins_keep();
	CU_ASSERT_EQUAL(weir_stage_plugins_loaded(), 1);
	plugins_release(hold);
	CU_ASSERT_EQUAL(weir_stage_plugins_loaded(), 1);
	end();
}

/* The number of descriptors and mappings does not grow with the number of versions. */
static void test_flat(void)
{
	begin();
	next();
	int fd = dup(0), later;
	close(fd);
	for (int i = 0; i < 200; i++)
		next();
	later = dup(0);
	close(later);
	CU_ASSERT_EQUAL(later, fd);
	CU_ASSERT_EQUAL(weir_stage_plugins_loaded(), 1);
	end();
}

/* ---- threads ---- */

static atomic_bool over;

/* Holds and releases whatever is loaded, as graphs do, and reads from it. */
static void *holder(void *arg)
{
	while (!atomic_load(&over)) {
		struct plugin_hold *hold;
		const struct weir_stage_ops *ops = weir_stage_type_take("crash");
		if (plugins_hold(&hold) == 0 && ops && strcmp(ops->name, "crash") == 0)
			atomic_fetch_add((atomic_int *)arg, 1);
		weir_stage_type_put(ops);
		plugins_release(hold);
	}
	return NULL;
}

static void test_held_by_threads(void)
{
	pthread_t thread[2];
	atomic_int held = 0;

	begin();
	next();
	atomic_store(&over, false);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread[i], NULL, holder, &held), 0);
	for (int i = 0; i < 100 || atomic_load(&held) < 100; i++)
		next();
	atomic_store(&over, true);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	CU_ASSERT_EQUAL(weir_stage_plugins_loaded(), 1);
	end();
}

CUNIT_MAIN("plugin", {"sealed", test_sealed}, {"cut", test_cut}, {"nonsense", test_nonsense},
    {"before the sections", test_before_the_sections}, {"symbols", test_symbols},
    {"replaced", test_replaced}, {"unloaded", test_unloaded},
    {"held before kept", test_held_before_kept}, {"flat", test_flat},
    {"held by threads", test_held_by_threads})
