/* SPDX-License-Identifier: MIT */
/*
 * A main() for fuzz drivers without libFuzzer: gives every file of the folders named on the command
 * line to the driver once, in the order of their names. Fails when there is no file, since then
 * nothing was tested.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** Inputs are kept small; a longer one was put there by mistake. */
#define REPLAY_INPUT_MAX (4 << 20)

static int replay_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int replay_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = malloc(REPLAY_INPUT_MAX);
	uint8_t *exact = NULL;
	int rc = -1;

	if (file && data) {
		size_t n = fread(data, 1, REPLAY_INPUT_MAX, file);
		/* A block of just that size, so that a sanitizer sees a read beyond it. */
		exact = malloc(n ? n : 1);
		if (exact && feof(file)) {
			memcpy(exact, data, n);
			LLVMFuzzerTestOneInput(exact, n);
			rc = 0;
		}
	}
	if (rc != 0)
		fprintf(stderr, "cannot read %s\n", path);
	if (file)
		fclose(file);
	free(exact);
	free(data);
	return rc;
}

/** Returns how many files were replayed, -1 when one could not be. */
static int replay_folder(const char *folder)
{
	struct dirent **names;
	char path[4096];
	int n = scandir(folder, &names, replay_visible, alphasort);
	int done = 0;

	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);
		if (done >= 0)
			done = replay_file(path) == 0 ? done + 1 : -1;
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	return n < 0 ? -1 : done;
}

int main(int argc, char **argv)
{
	int total = 0;

	for (int i = 1; i < argc; i++) {
		int n = replay_folder(argv[i]);
		if (n <= 0) {
			fprintf(stderr, "%s: nothing to replay\n", argv[i]);
			return 1;
		}
		total += n;
	}
	printf("%d inputs replayed\n", total);
	return total > 0 ? 0 : 1;
}
