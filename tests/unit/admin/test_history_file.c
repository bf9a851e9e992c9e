/* SPDX-License-Identifier: MIT */
/* The history file: what is restored after a restart, and that a broken or foreign file is never
 * worse than one that is not read. */
#include "admin/history/history_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/log.h>

#include "cunit_main.h"
#include "made_up.h"

#define T0 1700000000LL

static struct made_up made_up;
static char dir[64], path[80], bad[90];

static void setup(void)
{
	weir_log_set_fd(-1);
	made_up_init(&made_up);
	made_up.view.n_stages = 2;
	snprintf(dir, sizeof(dir), "/tmp/weir-test-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/h", dir);
	snprintf(bad, sizeof(bad), "%s.bad", path);
}

static void teardown(void)
{
	unlink(path);
	unlink(bad);
	CU_ASSERT_EQUAL(rmdir(dir), 0); /* no other file is left */
}

static unsigned feed(struct history *h, int64_t second)
{
	made_up.view.wall_ns = (T0 + second) * 1000000000LL;
	made_up.view.now_ns = (1000000 + second) * 1000000000LL;
	return history_feed(h, &made_up.view);
}

/* A server that runs from second `from` to `to`, with n events in second n. */
static void run(int64_t from, int64_t to)
{
	struct history *h = history_new();
	struct history_file *f = history_file_open(path, h);

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	for (int64_t s = from; s <= to; s++) {
		made_up.stage[MADE_CACHE].class_view[1].offered += (uint64_t)s;
		history_file_save(f, h, feed(h, s));
	}
	history_file_close(f, h);
	history_free(h);
}

static double in_of(const struct history *h, const char *stage, int64_t s)
{
	uint16_t code = COMPACT_NONE;
	int series = history_find(h, stage);

	if (series >= 0)
		history_column(h, HISTORY_1S, series, SAMPLE_IN, T0 + s, 1, &code);
	return compact_unpack(code);
}

/* Open the existing file. Returns the value restored for "cache" at second `s`, NaN when there is
 * none. */
static double reread(int64_t s)
{
	struct history *h = history_new();
	struct history_file *f = history_file_open(path, h);
	double v = in_of(h, "cache", s);

	CU_ASSERT_PTR_NOT_NULL(f);
	history_file_close(f, h);
	history_free(h);
	return v;
}

static void test_restart(void)
{
	setup();
	run(0, 30);
	run(100, 105); /* the server was down for 70 s */
	struct history *h = history_new();
	struct history_file *f = history_file_open(path, h);
	CU_ASSERT_EQUAL(history_newest(h, HISTORY_1S), T0 + 105);
	for (int s = 1; s <= 30; s++)
		CU_ASSERT_EQUAL(in_of(h, "cache", s), s);
	CU_ASSERT_TRUE(isnan(in_of(h, "cache", 31)));
	/* the first sample has nothing to compare with */
	CU_ASSERT_TRUE(isnan(in_of(h, "cache", 100)));
	CU_ASSERT_EQUAL(in_of(h, "cache", 105), 105);
	CU_ASSERT_EQUAL(in_of(h, "web", 105), 0);
	/* the history continues where it ended */
	made_up.stage[MADE_CACHE].class_view[1].offered += 7;
	feed(h, 106);
	feed(h, 107);
	CU_ASSERT_EQUAL(in_of(h, "cache", 105), 105);
	CU_ASSERT_EQUAL(in_of(h, "cache", 107), 0);
	history_file_close(f, h);
	history_free(h);
	CU_ASSERT_NOT_EQUAL(access(bad, F_OK), 0);
	teardown();
}

/* Other stages and classes after the restart: the old ones are still shown. */
static void test_other_graph(void)
{
	setup();
	run(0, 20);
	made_up.stage[MADE_WEB].name = "door";
	made_up.view.n_classes = 3;
	made_up.view.class_name[2] = "more";
	run(30, 40);
	struct history *h = history_new();
	struct history_file *f = history_file_open(path, h);
	CU_ASSERT_EQUAL(in_of(h, "web", 20), 0);
	CU_ASSERT_TRUE(isnan(in_of(h, "web", 40)));
	CU_ASSERT_EQUAL(in_of(h, "door", 40), 0);
	CU_ASSERT_EQUAL(in_of(h, "cache", 20), 20);
	CU_ASSERT_EQUAL(in_of(h, "cache", 40), 40);
	CU_ASSERT_EQUAL(history_n_classes(h), 3);
	history_file_close(f, h);
	history_free(h);
	teardown();
}

static size_t size_of(const char *name)
{
	struct stat st;

	return stat(name, &st) == 0 ? (size_t)st.st_size : 0;
}

static void flip(const char *name, size_t at)
{
	int fd = open(name, O_RDWR | O_CLOEXEC);
	char b = 0;

	CU_ASSERT_EQUAL(pread(fd, &b, 1, (off_t)at), 1);
	b ^= 0x40;
	CU_ASSERT_EQUAL(pwrite(fd, &b, 1, (off_t)at), 1);
	close(fd);
}

/* The file was not read and has been renamed. It is renamed back for the next attempt. */
static void is_refused(void)
{
	size_t size = size_of(path);

	unlink(bad);
	CU_ASSERT_TRUE(isnan(reread(10)));
	CU_ASSERT_EQUAL_FATAL(size_of(bad), size);
	CU_ASSERT_EQUAL(rename(bad, path), 0);
}

/* Every length within the header and just after it, then steps that reach each offset in a slot. */
static void test_cut(void)
{
	setup();
	run(0, 12);
	CU_ASSERT_EQUAL(reread(10), 10);
	size_t whole = size_of(path);
	CU_ASSERT_TRUE_FATAL(whole > 100000);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	CU_ASSERT_EQUAL(ftruncate(fd, (off_t)whole + 1), 0);
	is_refused();
	for (size_t n = whole - 1; n > 0; n -= n > 3000 ? (n > 4093 ? 1021 : 1) : 1) {
		CU_ASSERT_EQUAL(ftruncate(fd, (off_t)n), 0);
		is_refused();
	}
	/* an empty file is fine: open() has just created it */
	CU_ASSERT_EQUAL(ftruncate(fd, 0), 0);
	CU_ASSERT_TRUE(isnan(reread(10)));
	CU_ASSERT_NOT_EQUAL(access(bad, F_OK), 0);
	close(fd);
	teardown();
}

/* A damaged byte in the header: the whole file is refused. In a slot: that slot is a gap. */
static void test_damage(void)
{
	static const char names[] = "\0web\0cache";

	setup();
	run(0, 12);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char head[256];
	CU_ASSERT_EQUAL(pread(fd, head, sizeof(head), 0), sizeof(head));
	close(fd);
	const char *at = memmem(head, sizeof(head), names, sizeof(names));
	CU_ASSERT_PTR_NOT_NULL_FATAL(at);
	size_t head_bytes = ((size_t)(at - head) + sizeof(names) + 7) & ~(size_t)7;
	for (size_t i = 0; i < head_bytes; i++) {
		flip(path, i);
		is_refused();
		flip(path, i);
	}
	CU_ASSERT_EQUAL(reread(10), 10);
	size_t slot = (size_of(path) - head_bytes) / (HISTORY_SLOTS_1S + HISTORY_SLOTS_10S);
	size_t tenth = head_bytes + slot * ((T0 + 10) % HISTORY_SLOTS_1S);
	for (size_t i = 0; i < slot; i++) {
		flip(path, tenth + i);
		CU_ASSERT_TRUE(isnan(reread(10)));
		CU_ASSERT_EQUAL(reread(11), 11);
		flip(path, tenth + i);
	}
	CU_ASSERT_NOT_EQUAL(access(bad, F_OK), 0);
	teardown();
}

static void write_text(const char *name, const char *text)
{
	FILE *f = fopen(name, "we");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(text, f);
	fclose(f);
}

/* A file of another program is kept under another name, and the history starts a new one. */
static void test_foreign(void)
{
	char text[32] = "";

	setup();
	write_text(path, "the shopping list\n");
	run(0, 12);
	FILE *f = fopen(bad, "re");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_PTR_NOT_NULL(fgets(text, sizeof(text), f));
	fclose(f);
	CU_ASSERT_STRING_EQUAL(text, "the shopping list\n");
	CU_ASSERT_EQUAL(reread(10), 10);
	teardown();
}

/* Paths that cannot be a history are left alone: folders, devices, folders that do not exist. */
static void test_no_file(void)
{
	struct history *h = history_new();

	setup();
	CU_ASSERT_PTR_NULL(history_file_open(dir, h));
	CU_ASSERT_PTR_NULL(history_file_open("/dev/null", h));
	CU_ASSERT_EQUAL(access("/dev/null", F_OK), 0);
	CU_ASSERT_PTR_NULL(history_file_open("/nowhere/at/all/h", h));
	history_free(h);
	teardown();
}

/* A second server with the same path keeps its history in memory; that of the first one
 * continues. */
static void test_two_servers(void)
{
	struct history *h = history_new(), *other = history_new();

	setup();
	struct history_file *f = history_file_open(path, h);
	CU_ASSERT_PTR_NULL(history_file_open(path, other)); /* nothing is written yet */
	history_file_save(f, h, feed(h, 0));
	CU_ASSERT_PTR_NULL(history_file_open(path, other));
	made_up.stage[MADE_CACHE].class_view[1].offered += 5;
	history_file_save(f, h, feed(h, 1));
	history_file_close(f, h);
	CU_ASSERT_EQUAL(reread(1), 5);
	history_free(h);
	history_free(other);
	teardown();
}

/* A folder disappears and comes back: the server continues, and so does the file. */
static void test_trouble(void)
{
	struct history *h = history_new();
	char away[80];

	setup();
	struct history_file *f = history_file_open(path, h);
	snprintf(away, sizeof(away), "%s-away", dir);
	CU_ASSERT_EQUAL(rename(dir, away), 0);
	history_file_save(f, h, feed(h, 0)); /* cannot create the file */
	history_file_wait(f);
	CU_ASSERT_TRUE(history_file_failing(f));
	history_file_save(f, h, feed(h, 1));
	history_file_wait(f);
	CU_ASSERT_EQUAL(rename(away, dir), 0);
	made_up.stage[MADE_CACHE].class_view[1].offered += 40;
	for (int s = 9; s <= 12; s++)
		history_file_save(f, h, feed(h, s));
	history_file_close(f, h);
	CU_ASSERT_EQUAL(reread(9), 5);
	CU_ASSERT_EQUAL(reread(12), 0);
	history_free(h);
	teardown();
}

CUNIT_MAIN("history file", {"restart", test_restart}, {"another graph", test_other_graph},
    {"cut at every length", test_cut}, {"damaged bytes", test_damage},
    {"foreign file", test_foreign}, {"no file", test_no_file}, {"two servers", test_two_servers},
    {"trouble comes and goes", test_trouble})
