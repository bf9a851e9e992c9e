/* SPDX-License-Identifier: MIT */
#include "unit/config/loading.h"

#include <ftw.h>

struct weir_errs loading_errs;

const char *loading_said(void)
{
	static char buf[64 * 1024];

	weir_errs_format(&loading_errs, buf, sizeof(buf));
	return buf;
}

static struct weir_spec *loading_done(int rc, struct weir_spec *spec)
{
	CU_ASSERT_EQUAL(rc == 0, loading_errs.total == 0);
	CU_ASSERT_EQUAL(rc == 0, spec != NULL);
	return spec;
}

struct weir_spec *load_text(const char *text)
{
	struct weir_spec *spec = NULL;

	types_register();
	loading_errs = (struct weir_errs){0};
	int rc = config_load_text(text, strlen(text), "t.yaml", &spec, &loading_errs);
	return loading_done(rc, spec);
}

struct weir_spec *load_path(const char *path, const char *const *sets, int n_sets)
{
	struct weir_spec *spec = NULL;

	types_register();
	loading_errs = (struct weir_errs){0};
	int rc = config_load(path, sets, n_sets, &spec, &loading_errs);
	return loading_done(rc, spec);
}

struct weir_spec *load_good(const char *text)
{
	struct weir_spec *spec = load_text(text);

	if (!spec)
		fprintf(stderr, "%s", loading_said());
	CU_ASSERT_PTR_NOT_NULL_FATAL(spec);
	return spec;
}

const char *load_bad(const char *text)
{
	struct weir_spec *spec = load_text(text);

	CU_ASSERT_PTR_NULL(spec);
	weir_spec_free(spec);
	return loading_errs.n > 0 ? loading_errs.err[0].text : "";
}

const struct weir_stage_spec *stage_of(const struct weir_spec *spec, const char *name)
{
	for (int i = 0; i < spec->n_stages; i++)
		if (strcmp(spec->stages[i].name, name) == 0)
			return &spec->stages[i];
	CU_FAIL_FATAL("there is no such stage");
	return NULL;
}

void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(text, f);
	CU_ASSERT_EQUAL(fclose(f), 0);
}

const char *enter_folder(void)
{
	static char path[] = "test_config.XXXXXX";

	strcpy(path, "test_config.XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(path));
	CU_ASSERT_EQUAL_FATAL(chdir(path), 0);
	return path;
}

static int leave_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

void leave_folder(const char *path)
{
	CU_ASSERT_EQUAL_FATAL(chdir(".."), 0);
	CU_ASSERT_EQUAL(nftw(path, leave_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}

char *captured;
static size_t captured_size;

FILE *capture_begin(void)
{
	free(captured);
	captured = NULL;
	return open_memstream(&captured, &captured_size);
}

const char *capture_end(FILE *out)
{
	CU_ASSERT_EQUAL(fclose(out), 0);
	return captured;
}

void capture_free(void)
{
	free(captured);
	captured = NULL;
}
