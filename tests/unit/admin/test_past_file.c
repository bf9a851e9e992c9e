/* SPDX-License-Identifier: MIT */
/* The file of decisions and changes: what is saved is there after a restart; damage costs single slots. */
#include "admin/history/past_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin/history/past_format.h"
#include "cunit_main.h"

static char folder[] = "/tmp/weir-past-XXXXXX";
static char history[64], path[72], bad[80];
static struct past past, loaded;

static void setup(void)
{
	unlink(path);
	unlink(bad);
	memset(&past, 0, sizeof(past));
	memset(&loaded, 0, sizeof(loaded));
}

/* Let `past` have `n` decisions and `m` changes, newest first, as the graph gives them. */
static void happen(int n, int m)
{
	past.n_decisions = n < PAST_DECISIONS ? n : PAST_DECISIONS;
	past.n_changes = m < PAST_CHANGES ? m : PAST_CHANGES;
	for (int i = 0; i < past.n_decisions; i++) {
		struct weir_decision *d = &past.decision[i];
		*d = (struct weir_decision){.id = (uint64_t)(n - i), .wall_ns = n - i, .at_ns = 7};
		snprintf(d->stage, sizeof(d->stage), "work%d", n - i);
		strcpy(d->actor, "weir");
		strcpy(d->action, "grow");
		d->to = n - i;
	}
	for (int i = 0; i < past.n_changes; i++) {
		struct weir_change *c = &past.change[i];
		*c = (struct weir_change){.id = (uint64_t)(m - i), .wall_ns = m - i, .at_ns = 7};
		strcpy(c->actor, "operator");
		strcpy(c->what, "set");
		snprintf(c->target, sizeof(c->target), "work.threads.max%d", m - i);
	}
}

static struct past_file *open_file(void)
{
	memset(&loaded, 0, sizeof(loaded));
	return past_file_open(history, &loaded);
}

static void save_all(struct past_file *f)
{
	for (int i = 0; i < 2000 && !past_file_save(f, &past); i++)
		past_file_wait(f);
	CU_ASSERT_TRUE(past_file_save(f, &past));
}

static void is_loaded(int n, int first, int m, int first_change)
{
	CU_ASSERT_EQUAL_FATAL(loaded.n_decisions, n);
	CU_ASSERT_EQUAL_FATAL(loaded.n_changes, m);
	for (int i = 0; i < n; i++) {
		char name[32];
		snprintf(name, sizeof(name), "work%d", first + i);
		CU_ASSERT_STRING_EQUAL(loaded.decision[i].stage, name);
		CU_ASSERT_EQUAL(loaded.decision[i].wall_ns, first + i);
		CU_ASSERT_EQUAL(loaded.decision[i].to, first + i);
	}
	for (int i = 0; i < m; i++)
		CU_ASSERT_EQUAL(loaded.change[i].wall_ns, first_change + i);
}

static void test_restart(void)
{
	setup();
	struct past_file *f = open_file();
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	is_loaded(0, 0, 0, 0);
	CU_ASSERT_FALSE(past_file_save(f, &past)); /* the whole file, without slots */
	happen(3, 2);
	save_all(f);
	/* an outcome and an undo change slots that are in the file */
	strcpy(past.decision[0].outcome_5s, "helped");
	past.change[1].undone = true;
	CU_ASSERT_FALSE(past_file_save(f, &past));
	past_file_close(f, &past);
	f = open_file();
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	is_loaded(3, 1, 2, 1);
	CU_ASSERT_STRING_EQUAL(loaded.decision[2].outcome_5s, "helped");
	CU_ASSERT_TRUE(loaded.change[0].undone);
	CU_ASSERT_EQUAL(loaded.decision[0].at_ns, 0);
	past_file_close(f, NULL);
}

/* The newest are kept, however the slots wrap around, and whatever one job can hold. */
static void test_bounded(void)
{
	setup();
	struct past_file *f = open_file();
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	happen(10, 10);
	save_all(f);
	happen(PAST_DECISIONS + 30, PAST_CHANGES + 70);
	for (int i = 0; i < 20; i++) /* changes in many places at once */
		past.decision[i * 20].outcome_5s[0] = 'h';
	past_file_close(f, &past);
	struct stat st;
	CU_ASSERT_EQUAL(stat(path, &st), 0);
	CU_ASSERT_EQUAL((size_t)st.st_size, PAST_BYTES);
	f = open_file();
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	is_loaded(PAST_DECISIONS, 31, PAST_CHANGES, 71);
	past_file_close(f, NULL);
}

static void damage(off_t at, const char *with, size_t n)
{
	int fd = open(path, O_WRONLY);

	CU_ASSERT_EQUAL(pwrite(fd, with, n, at), (ssize_t)n);
	close(fd);
}

static void make_file(void)
{
	setup();
	struct past_file *f = open_file();
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	happen(3, 2);
	past_file_close(f, &past);
}

static void test_torn_slot(void)
{
	make_file();
	damage((off_t)(sizeof(struct past_head) + sizeof(struct past_decision) + 40), "xy", 2);
	struct past_file *f = open_file();
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_EQUAL(loaded.n_decisions, 2);
	CU_ASSERT_EQUAL(loaded.decision[0].id, 2);
	CU_ASSERT_EQUAL(loaded.n_changes, 2);
	past_file_close(f, NULL);
}

static void is_set_aside(void)
{
	struct past_file *f = open_file();

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	is_loaded(0, 0, 0, 0);
	CU_ASSERT_EQUAL(access(bad, F_OK), 0);
	happen(1, 0);
	past_file_close(f, &past);
	f = open_file();
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	is_loaded(1, 1, 0, 0);
	past_file_close(f, NULL);
}

static void test_other_files(void)
{
	make_file();
	damage(8, "\x09", 1); /* the version */
	is_set_aside();
	make_file();
	damage(0, "x", 1);
	is_set_aside();
	make_file();
	CU_ASSERT_EQUAL(truncate(path, 1000), 0);
	is_set_aside();
}

static void test_locked(void)
{
	setup();
	struct past_file *f = open_file();
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_PTR_NULL(past_file_open(history, &loaded));
	past_file_close(f, NULL);
	CU_ASSERT_PTR_NULL(past_file_open("/nowhere/history", &loaded));
	past_file_close(NULL, NULL);
}

static int begin(void)
{
	if (!mkdtemp(folder))
		return -1;
	snprintf(history, sizeof(history), "%s/history", folder);
	snprintf(path, sizeof(path), "%s.log", history);
	snprintf(bad, sizeof(bad), "%s.bad", path);
	return 0;
}

static void test_folder(void)
{
	CU_ASSERT_EQUAL_FATAL(begin(), 0);
}

static void test_end(void)
{
	unlink(path);
	unlink(bad);
	CU_ASSERT_EQUAL(rmdir(folder), 0);
}

CUNIT_MAIN("past_file", {"folder", test_folder}, {"restart", test_restart},
    {"bounded", test_bounded}, {"torn slot", test_torn_slot}, {"other files", test_other_files},
    {"locked", test_locked}, {"end", test_end})
