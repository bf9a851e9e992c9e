/* SPDX-License-Identifier: MIT */
/*
 * A main() for fuzz drivers without libFuzzer. It passes to the driver once every file of the
 * folders named on the command line, in the order of their names, and every line of the files named
 * there, in which \xHH stands for a byte. It fails when there is no input, since then nothing was
 * tested.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** Inputs are kept small; a longer one is a mistake. */
#define REPLAY_INPUT_MAX (4 << 20)

static int replay_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Pass the input in an allocation of exactly its size, so that a sanitizer detects reads past its
 * end. */
static int replay_bytes(const uint8_t *p, size_t n)
{
	uint8_t *exact = malloc(n ? n : 1);

	if (!exact)
		return -1;
	memcpy(exact, p, n);
	LLVMFuzzerTestOneInput(exact, n);
	free(exact);
	return 0;
}

static int replay_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = malloc(REPLAY_INPUT_MAX);
	int rc = -1;

	if (file && data) {
		size_t n = fread(data, 1, REPLAY_INPUT_MAX, file);
		if (feof(file))
			rc = replay_bytes(data, n);
	}
	if (rc != 0)
		fprintf(stderr, "cannot read %s\n", path);
	if (file)
		fclose(file);
	free(data);
	return rc;
}

/* Expand the escapes of a line in place. Returns the length; -1: a '\\' that does not begin
 * \xHH. */
static ssize_t replay_expand(char *line, size_t n)
{
	char *out = line;

	for (size_t i = 0; i < n; i++) {
		unsigned byte = (unsigned char)line[i];
		if (line[i] == '\\') {
			if (n - i < 4 || line[i + 1] != 'x' ||
			    !isxdigit((unsigned char)line[i + 2]) ||
			    sscanf(line + i + 2, "%2x", &byte) != 1)
				return -1;
			i += 3;
		}
		*out++ = (char)byte;
	}
	return out - line;
}

/** Returns how many lines were replayed; -1 when one could not be. */
static int replay_lines(const char *path)
{
	FILE *file = fopen(path, "r");
	char *line = NULL;
	size_t room = 0;
	int done = 0;

	for (ssize_t n; file && done >= 0 && (n = getline(&line, &room, file)) > 0;) {
		n = replay_expand(line, (size_t)n - (line[n - 1] == '\n'));
		done =
		    n >= 0 && replay_bytes((const uint8_t *)line, (size_t)n) == 0 ? done + 1 : -1;
	}
	if (done < 0)
		fprintf(stderr, "%s: cannot read a line\n", path);
	free(line);
	if (file)
		fclose(file);
	return done;
}

/** Returns how many files were replayed; -1 when one could not be. */
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
		struct stat st;
		bool folder = stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode);
		int n = folder ? replay_folder(argv[i]) : replay_lines(argv[i]);
		if (n <= 0) {
			fprintf(stderr, "%s: nothing to replay\n", argv[i]);
			return 1;
		}
		total += n;
	}
	printf("%d inputs replayed\n", total);
	return total > 0 ? 0 : 1;
}
