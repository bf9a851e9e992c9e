/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a run file: refused with a message, or read. Then a report on it and a comparison
 * with itself finish, the page has one script, and the comparison finds nothing worse.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "report/compare.h"
#include "report/html.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(int cond, const char *what)
{
	if (cond)
		return;
	fprintf(stderr, "fuzz_runfile: %s\n", what);
	abort();
}

/* The bytes as an unlinked file. Its path in path[size]; returns its descriptor. */
static int put(const uint8_t *data, size_t size, char *path, size_t path_size)
{
	int fd = memfd_create("run", MFD_CLOEXEC);

	if (fd == -1 || write(fd, data, size) != (ssize_t)size) {
		perror("fuzz_runfile");
		abort();
	}
	snprintf(path, path_size, "/proc/self/fd/%d", fd);
	return fd;
}

static void report(const struct rundata *run)
{
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);

	if (!out)
		return;
	expect(report_html(run, 1, true, out) == 0, "no report");
	fclose(out);
	const char *script = strstr(text, "<script");
	expect(script && !strstr(script + 1, "<script"), "more than one script");
	free(text);
}

static void compare(const struct rundata *run)
{
	struct comparison c;
	struct weir_err err = {0};
	char text[400];

	if (compare_runs(run, run, true, &c, &err) != 0) {
		expect(*err.text, "not compared without a word");
		return;
	}
	expect(c.count[STATS_WORSE] == 0, "worse than itself");
	expect(*compare_sentence(&c, text, sizeof(text)), "no sentence");
	compare_fini(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rundata run;
	struct weir_err err = {0};
	char path[64];
	int fd = put(data, size, path, sizeof(path));

	int rc = rundata_read(path, &run, &err);
	close(fd);
	if (rc != 0) {
		expect(*err.text, "refused without a word");
		return 0;
	}
	report(&run);
	compare(&run);
	rundata_fini(&run);
	return 0;
}
