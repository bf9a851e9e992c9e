/* SPDX-License-Identifier: MIT */
/* Every file of tests/config/good and config/servers loads; the latter are the ones that users
 * run. */
#include <dirent.h>

#include <weir/graph.h>

#include "loading.h"

static int is_yaml(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);

	return n > 5 && strcmp(entry->d_name + n - 5, ".yaml") == 0;
}

static void check_folder(const char *folder, int at_least)
{
	struct dirent **names;
	char path[1024];

	int n = scandir(folder, &names, is_yaml, alphasort);
	CU_ASSERT_FATAL(n >= at_least);
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);
		struct weir_spec *spec = load_path(path, NULL, 0);
		if (!spec)
			fprintf(stderr, "%s", loading_said());
		CU_ASSERT_PTR_NOT_NULL(spec);
		weir_spec_free(spec);
		free(names[i]);
	}
	free(names);
}

static void test_good(void)
{
	check_folder(WEIR_SOURCE_DIR "/tests/config/good", 8);
}

static void test_servers(void)
{
	check_folder(WEIR_SOURCE_DIR "/config/servers", 5);
}

/* A file that loads and also passes `check`: the settings of classes and of the kill switch. */
static void test_checked(void)
{
	const char *path = WEIR_SOURCE_DIR "/tests/config/good/shares.yaml";
	struct weir_spec *spec = load_path(path, NULL, 0);

	CU_ASSERT_PTR_NOT_NULL_FATAL(spec);
	CU_ASSERT_EQUAL(weir_spec_check(spec, &loading_errs), 0);
	if (loading_errs.total)
		fprintf(stderr, "%s", loading_said());
	weir_spec_free(spec);
}

CUNIT_MAIN("good files", {"good", test_good}, {"servers", test_servers}, {"checked", test_checked})
