/* SPDX-License-Identifier: MIT */
/*
 * Generates synthetic static sites; see mix.h.
 *
 * The path, size and weight of file i are functions of the kind of site, the seed and i. The
 * requests therefore match the files that were written by an earlier run, without a stored list.
 *
 * In "surge", popularity and size are independent: the popularity rank of a file is its number, and
 * its size is drawn at random.
 *
 * SPECweb99 (SPEC, 1999) chooses a folder by Zipf's law, then a class by fixed shares, then one of
 * its nine files. Folders, sizes and shares are as described by Ruan and Pai (USENIX 2006, 2.3).
 * The nine files are ranked as in SPEC's workload description, with the middle one first, and
 * chosen by Zipf's law.
 */
#include "load/mix.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "load/rng.h"
#include "load/sentence.h"

#define NAME_BYTES    64
#define SITE_PATH_MAX 4096
#define CHUNK_BYTES   65536

struct site_file {
	char folder[NAME_BYTES], name[NAME_BYTES]; /* "specweb99/d0003", "class1_4" */
	int64_t bytes;
	double weight;
};

struct site {
	const char *kind;
	int folder_files; /* files per folder; n_files is a multiple of it */
	void (*describe)(unsigned i, uint64_t key, struct site_file *file);
};

/* ---- specweb99 ---- */

#define SPECWEB_FILES  9
#define SPECWEB_FOLDER (4 * SPECWEB_FILES)

static void describe_specweb99(unsigned i, uint64_t key, struct site_file *file)
{
	static const struct {
		double share, step_bytes; /* file k of a class, k = 1..9, has k * step_bytes */
	} classes[] = {{0.35, 102.4}, {0.50, 1024}, {0.14, 10240}, {0.01, 102400}};
	static const int rank[SPECWEB_FILES] = {9, 6, 4, 2, 1, 3, 5, 7, 8};
	unsigned folder = i / SPECWEB_FOLDER, class = i % SPECWEB_FOLDER / SPECWEB_FILES;
	unsigned nth = i % SPECWEB_FILES;

	(void)key;
	file->bytes = (int64_t)((nth + 1) * classes[class].step_bytes);
	file->weight = classes[class].share / rank[nth] / (folder + 1);
	snprintf(file->folder, NAME_BYTES, "specweb99/d%04u", folder);
	snprintf(file->name, NAME_BYTES, "class%u_%u", class, nth + 1);
}

/* ---- surge ---- */

#define SURGE_BODY_SHARE 0.93
#define SURGE_MU         9.357
#define SURGE_SIGMA      1.318
#define SURGE_TAIL_BYTES 133000.0
#define SURGE_ALPHA      1.1
#define SURGE_MAX_BYTES  (64 << 20) /* a guess: the Pareto tail has no largest size */

/* Return a normally distributed number (Box and Muller 1958), computed from the random numbers k
 * and k + 1 of the key. */
static double normal(uint64_t key, uint64_t k)
{
	return sqrt(2 * rng_exp(weir_random_at(key, k))) *
	       cos(2 * M_PI * weir_random_unit(weir_random_at(key, k + 1)));
}

/* Draw the size of a file, from the lognormal body or the Pareto tail of the distribution. A size
 * from the body that is not below the minimum of the tail (3 % of the draws) is drawn again. */
static int64_t surge_bytes(uint64_t key)
{
	double bytes = SURGE_TAIL_BYTES;

	if (weir_random_unit(weir_random_at(key, 0)) > SURGE_BODY_SHARE)
		bytes *= pow(weir_random_unit(weir_random_at(key, 1)), -1 / SURGE_ALPHA);
	else
		for (uint64_t k = 2; bytes >= SURGE_TAIL_BYTES; k += 2)
			bytes = exp(SURGE_MU + SURGE_SIGMA * normal(key, k));
	return bytes < SURGE_MAX_BYTES ? (int64_t)bytes + 1 : SURGE_MAX_BYTES;
}

static void describe_surge(unsigned i, uint64_t key, struct site_file *file)
{
	file->bytes = surge_bytes(rng_key(key, i));
	file->weight = 1.0 / (i + 1);
	snprintf(file->folder, NAME_BYTES, "surge");
	snprintf(file->name, NAME_BYTES, "%06u", i);
}

static const struct site sites[] = {
    {"specweb99", SPECWEB_FOLDER, describe_specweb99}, {"surge", 1, describe_surge}};

/* Find a kind of site, and round *n_files up to a whole number of folders. Returns NULL with
 * err->text if `kind` is unknown or *n_files is out of range. */
static const struct site *find_site(const char *kind, int *n_files, struct weir_err *err)
{
	if (*n_files < 1 || *n_files > MIX_FILES_MAX) {
		sentence(err, WEIR_EINVAL, "a site cannot have %d files: 1 to %d are possible",
		    *n_files, MIX_FILES_MAX);
		return NULL;
	}
	for (size_t i = 0; i < sizeof(sites) / sizeof(sites[0]); i++) {
		if (strcmp(kind, sites[i].kind) != 0)
			continue;
		int each = sites[i].folder_files;
		*n_files = (*n_files + each - 1) / each * each;
		return &sites[i];
	}
	sentence(err, WEIR_EINVAL, "'%.60s' is not a kind of site: use specweb99 or surge", kind);
	return NULL;
}

/* ---- requests ---- */

int mix_add_site(struct load_class *cls, const struct mix_head *head, const char *kind,
    const char *prefix, int n_files, uint64_t seed, struct weir_err *err)
{
	const struct site *site = find_site(kind, &n_files, err);
	struct site_file file;
	char path[SITE_PATH_MAX];
	int rc = site ? 0 : WEIR_EINVAL;

	for (int i = 0; i < n_files && rc == 0; i++) {
		site->describe((unsigned)i, seed, &file);
		int n = snprintf(path, sizeof(path), "%s/%s/%s", prefix, file.folder, file.name);
		if (n >= SITE_PATH_MAX)
			return sentence(err, WEIR_EINVAL, "the path '%.100s' is too long", prefix);
		rc = mix_add(cls, head, path, file.weight, NULL, 0, err);
	}
	return rc;
}

/* ---- files ---- */

/* Create the folder and its parents. */
static int make_folder(const char *path, struct weir_err *err)
{
	char part[SITE_PATH_MAX];
	size_t n = strlen(path);

	for (size_t i = 1; i <= n; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdir(part, 0777) == -1 && errno != EEXIST)
			return sentence_errno(err, part);
	}
	return 0;
}

static int write_bytes(int fd, const char *text, int64_t n)
{
	while (n > 0) {
		ssize_t put = write(fd, text, n < CHUNK_BYTES ? (size_t)n : CHUNK_BYTES);
		if (put == -1 && errno != EINTR)
			return WEIR_ESYS;
		n -= put > 0 ? put : 0;
	}
	return 0;
}

/* Fill `text` with lines of random letters, so that the files look like text. */
static void fill_text(char text[CHUNK_BYTES], uint64_t seed)
{
	for (int i = 0; i < CHUNK_BYTES; i++)
		text[i] = i % 64 == 63
			      ? '\n'
			      : (char)('a' + rng_below(weir_random_at(seed, (uint64_t)i), 26));
}

static int write_file(const char *path, const char *text, int64_t bytes, struct weir_err *err)
{
	struct stat st;

	if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == bytes)
		return 0;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd == -1)
		return sentence_errno(err, path);
	int rc = write_bytes(fd, text, bytes) != 0 ? sentence_errno(err, path) : 0;
	if (close(fd) == -1 && rc == 0)
		rc = sentence_errno(err, path);
	return rc;
}

static int write_site_file(const char *dir, const struct site_file *file, bool new_folder,
    const char *text, struct weir_err *err)
{
	char path[SITE_PATH_MAX];
	int rc = 0;

	if (strlen(dir) + 2 * NAME_BYTES + 2 > SITE_PATH_MAX)
		return sentence(err, WEIR_EINVAL, "the folder '%.100s' is too long", dir);
	snprintf(path, sizeof(path), "%s/%s", dir, file->folder);
	if (new_folder)
		rc = make_folder(path, err);
	if (rc != 0)
		return rc;
	snprintf(path, sizeof(path), "%s/%s/%s", dir, file->folder, file->name);
	return write_file(path, text, file->bytes, err);
}

int mix_write_site(
    const char *kind, int n_files, uint64_t seed, const char *dir, struct weir_err *err)
{
	const struct site *site = find_site(kind, &n_files, err);
	struct site_file file, before = {.folder = ""};
	int rc = 0;

	if (!site)
		return WEIR_EINVAL;
	char *text = malloc(CHUNK_BYTES);
	if (!text)
		return sentence_nomem(err);
	fill_text(text, seed);
	for (int i = 0; i < n_files && rc == 0; i++, before = file) {
		site->describe((unsigned)i, seed, &file);
		bool new_folder = strcmp(file.folder, before.folder) != 0;
		rc = write_site_file(dir, &file, new_folder, text, err);
	}
	free(text);
	return rc;
}
