/* SPDX-License-Identifier: MIT */
/* A file that another program changes while it is saved keeps that change. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <fcntl.h>

#include <weir/graph.h>

#include "cunit_main.h"

static char folder[64], file[96];
static const char *add; /* the editor adds this line at the next load; NULL: nothing */

static const char first[] =
    "weir: 1\nstages:\n"
    "  web: { use: http.server, with: { listen: '127.0.0.1:0' }, to: { request: it } }\n"
    "  it: { use: respond, queue: { limit: 100 } }\n";

static void begin(void)
{
	setenv("WEIR_TRUST_FILES", "any", 1);
	snprintf(folder, sizeof(folder), "/tmp/weir-save-XXXXXX");
	CU_ASSERT_FATAL(mkdtemp(folder) != NULL);
	snprintf(file, sizeof(file), "%s/it.yaml", folder);
	FILE *out = fopen(file, "we");
	CU_ASSERT_FATAL(out && fputs(first, out) >= 0 && fclose(out) == 0);
}

static void end(void)
{
	unlink(file);
	CU_ASSERT_EQUAL(rmdir(folder), 0); /* no other file was left */
}

static int load(const char *path, const char *const *sets, int n_sets, struct weir_spec **spec,
    struct weir_errs *errs)
{
	FILE *out = add ? fopen(file, "ae") : NULL;

	if (out)
		CU_ASSERT(fputs(add, out) >= 0 && fclose(out) == 0);
	add = NULL;
	return config_look(path, sets, n_sets, spec, errs);
}

static int save(struct weir_errs *errs)
{
	static const struct config_reading reading = {load, weir_spec_check};
	const struct config_change change = {"it", "queue.limit", "200", false};
	char *changes = NULL;
	int rc = config_save(file, &change, 1, &reading, false, &changes, errs);

	free(changes);
	return rc;
}

static bool has(const char *text)
{
	char all[1024] = "";
	FILE *in = fopen(file, "re");

	if (in) {
		CU_ASSERT(fread(all, 1, sizeof(all) - 1, in) > 0);
		fclose(in);
	}
	return strstr(all, text) != NULL;
}

static void test_editor(void)
{
	struct weir_errs errs = {0};

	begin();
	add = "# written by an editor\n";
	CU_ASSERT_EQUAL(save(&errs), WEIR_EBUSY);
	CU_ASSERT_EQUAL_FATAL(errs.n, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(errs.err[0].text, "changed by another program"));
	CU_ASSERT_STRING_EQUAL(errs.err[0].hint, "save again");
	CU_ASSERT(has("# written by an editor") && has("limit: 100"));
	errs = (struct weir_errs){0};
	CU_ASSERT_EQUAL(save(&errs), 0);
	CU_ASSERT(has("# written by an editor") && has("limit: 200"));
	end();
}

/* The lock of the folder is tried for a limited time, since any program may hold it. */
static void test_locked(void)
{
	struct weir_errs errs = {0};

	begin();
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CU_ASSERT_EQUAL_FATAL(flock(fd, LOCK_EX), 0);
	CU_ASSERT_EQUAL(save(&errs), 0);
	CU_ASSERT(has("limit: 200"));
	close(fd);
	end();
}

CUNIT_MAIN(
    "save_race", {"an editor writes the file", test_editor}, {"the folder is locked", test_locked})
