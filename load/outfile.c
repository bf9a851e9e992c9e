/* SPDX-License-Identifier: MIT */
/*
 * Writes to a temporary name, then renames; see outfile.h. An existing target that is not a regular
 * file is written in place: a rename would, for example, replace /dev/null with a file.
 */
#include "load/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int outfile_fail(struct weir_err *err, int code, const char *what, const char *path)
{
	int saved = errno;

	err->code = code;
	if (code == WEIR_ENOMEM)
		snprintf(err->text, sizeof(err->text), "out of memory");
	else
		snprintf(
		    err->text, sizeof(err->text), "cannot %s %s: %s", what, path, strerror(saved));
	return code;
}

/* Free the names and reset `out`. */
static void outfile_clear(struct outfile *out)
{
	free(out->path);
	free(out->temporary);
	*out = (struct outfile){0};
}

static int outfile_in_place(struct outfile *out, const char *path, struct weir_err *err)
{
	out->file = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
	return out->file ? 0 : outfile_fail(err, WEIR_ESYS, "write", path);
}

static int outfile_create(struct outfile *out, struct weir_err *err)
{
	size_t size = strlen(out->path) + 32;

	out->temporary = malloc(size);
	if (!out->temporary)
		return outfile_fail(err, WEIR_ENOMEM, "", "");
	snprintf(out->temporary, size, "%s.%ld.tmp", out->path, (long)getpid());
	int fd = open(out->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd == -1)
		return outfile_fail(err, WEIR_ESYS, "write", out->temporary);
	out->file = fdopen(fd, "w");
	if (out->file)
		return 0;
	close(fd);
	unlink(out->temporary);
	return outfile_fail(err, WEIR_ENOMEM, "", "");
}

int outfile_open(struct outfile *out, const char *path, struct weir_err *err)
{
	struct stat st;
	bool there = stat(path, &st) == 0;

	*out = (struct outfile){0};
	if (strcmp(path, "-") == 0 || (there && !S_ISREG(st.st_mode)))
		return outfile_in_place(out, path, err);
	out->path = there ? realpath(path, NULL) : strdup(path);
	int rc = out->path ? outfile_create(out, err) : outfile_fail(err, WEIR_ENOMEM, "", "");
	if (rc != 0)
		outfile_clear(out);
	return rc;
}

/* Close the file. Returns false, with errno set, if this or an earlier write failed. */
static bool outfile_close(struct outfile *out)
{
	bool bad = ferror(out->file) != 0;

	if (out->file == stdout)
		return fflush(stdout) == 0 && !bad;
	return fclose(out->file) == 0 && !bad;
}

int outfile_commit(struct outfile *out, struct weir_err *err)
{
	int rc = 0;

	errno = EIO; /* reported if an earlier write failed; its own errno is lost */
	if (!outfile_close(out))
		rc = outfile_fail(err, WEIR_ESYS, "write", out->path ? out->path : "the output");
	else if (out->path && rename(out->temporary, out->path) != 0)
		rc = outfile_fail(err, WEIR_ESYS, "write", out->path);
	if (rc != 0 && out->temporary)
		unlink(out->temporary);
	outfile_clear(out);
	return rc;
}

void outfile_abandon(struct outfile *out)
{
	if (out->file && out->file != stdout)
		fclose(out->file);
	if (out->temporary)
		unlink(out->temporary);
	outfile_clear(out);
}
