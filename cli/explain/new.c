/* SPDX-License-Identifier: MIT */
/*
 * new: create a folder with a server that has a stage of its own, ready to build.
 *
 * The folder must not exist. If a file cannot be written, everything created so far is removed, so
 * that the verb can be repeated.
 */
#include "new.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/stage.h>

#include "cli/client/plain.h"
#include "cli/verb.h"
#include "config.h"

/* Longest name. It is a name of a stage, too, and part of names of files and of C. */
#define NEW_NAME_MAX 40
#define NEW_PATH_MAX 4096

#define SCHEMA_NAME "weir.schema.json"

struct new_server {
	const char *folder;
	char name[NEW_NAME_MAX + 1];
	char id[NEW_NAME_MAX + 1]; /* the name with '_' for '-' */
};

/* ---- the name ---- */

/* Whether the name would be used twice: by a stage of the file, or by CMake as a target. */
static bool is_taken(const char *id)
{
	static const char *const taken[] = {"web", "all", "clean", "depend", "edit_cache", "help",
	    "install", "package", "package_source", "rebuild_cache", "test", NULL};

	for (int i = 0; taken[i]; i++)
		if (strcmp(taken[i], id) == 0)
			return true;
	return false;
}

static bool take_name(const struct verb *verb, const char *folder, struct new_server *server)
{
	size_t length = strlen(folder);

	while (length > 0 && folder[length - 1] == '/')
		length--;
	size_t begin = length;
	while (begin > 0 && folder[begin - 1] != '/')
		begin--;
	const char *name = folder + begin;
	size_t n = length - begin;
	bool good = n > 0 && n <= NEW_NAME_MAX && isalpha((unsigned char)name[0]) &&
		    length < NEW_PATH_MAX - 2 * NEW_NAME_MAX;

	for (size_t i = 0; good && i < n; i++)
		good = isalnum((unsigned char)name[i]) || name[i] == '_' || name[i] == '-';
	if (!good) {
		verb_misused(verb,
		    "'%.*s' cannot be the name: it is a letter and then letters, digits, '_' and "
		    "'-', at most %d characters",
		    (int)n, name, NEW_NAME_MAX);
		return false;
	}
	*server = (struct new_server){.folder = folder};
	memcpy(server->name, name, n);
	for (size_t i = 0; i < n; i++)
		server->id[i] = name[i] == '-' ? '_' : name[i];
	if (is_taken(server->id)) {
		verb_misused(verb,
		    "'%s' is a name in the files of every new server: choose another one",
		    server->name);
		return false;
	}
	if (!weir_stage_type_find(server->id) && strncmp(server->id, "weir", 4) != 0)
		return true;
	verb_misused(verb, "'%s' is a name of weir itself: choose another one", server->name);
	return false;
}

/* ---- the files ---- */

/* Write `text` with its placeholders replaced. */
static void put(FILE *out, const struct new_server *server, const char *text)
{
	while (*text) {
		if (strncmp(text, "@NAME@", 6) == 0) {
			fputs(server->name, out);
			text += 6;
		} else if (strncmp(text, "@ID@", 4) == 0) {
			fputs(server->id, out);
			text += 4;
		} else {
			fputc(*text++, out);
		}
	}
}

static bool path_of(const struct new_server *server, const char *name, char path[NEW_PATH_MAX])
{
	char *full = NULL;
	size_t size;
	FILE *out = open_memstream(&full, &size);

	if (!out)
		return false;
	fprintf(out, "%s/", server->folder);
	put(out, server, name);
	bool good = fclose(out) == 0 && size < NEW_PATH_MAX;
	if (good)
		memcpy(path, full, size + 1);
	free(full);
	return good;
}

/* Write one file; without `text`, the JSON Schema. */
static bool write_file(const struct new_server *server, const char *name, const char *text)
{
	char path[NEW_PATH_MAX];
	FILE *out = path_of(server, name, path) ? fopen(path, "wx") : NULL;
	int rc = 0;

	if (!out)
		return false;
	if (text)
		put(out, server, text);
	else
		rc = config_schema(out);
	bool failed = ferror(out) || rc != 0;
	return fclose(out) == 0 && !failed;
}

static bool write_files(const struct new_server *server)
{
	for (const struct new_file *file = new_files; file->name; file++)
		if (!write_file(server, file->name, file->text))
			return false;
	return write_file(server, SCHEMA_NAME, NULL);
}

static void remove_files(const struct new_server *server)
{
	char path[NEW_PATH_MAX];

	for (const struct new_file *file = new_files; file->name; file++)
		if (path_of(server, file->name, path))
			unlink(path);
	if (path_of(server, SCHEMA_NAME, path))
		unlink(path);
	rmdir(server->folder);
}

/* Print a path as a word of a shell. */
static void print_word(const char *path)
{
	size_t n =
	    strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-");

	if (path[n] == '\0') {
		plain_print(stdout, "%s", path);
		return;
	}
	putchar('\'');
	for (; *path; path += n) {
		n = strcspn(path, "'");
		plain_print(stdout, "%.*s", (int)n, path);
		if (path[n] == '\'') {
			fputs("'\\''", stdout);
			n++;
		}
	}
	putchar('\'');
}

static void print_next(const struct new_server *server)
{
	plain_print(stdout, "%s:", server->folder);
	for (const struct new_file *file = new_files; file->name; file++) {
		putchar(' ');
		put(stdout, server, file->name);
	}
	plain_print(stdout,
	    " %s\n\n"
	    "  cd ",
	    SCHEMA_NAME);
	print_word(server->folder);
	plain_print(stdout,
	    "\n"
	    "  cmake -B build && cmake --build build\n"
	    "  weir run %s.yaml\n"
	    "  curl http://127.0.0.1:8080/world\n\n"
	    "After a change of %s.c or %s.yaml: cmake --build build && weir reload\n",
	    server->name, server->id, server->name);
}

int verb_new(const struct verb *verb, const struct verb_args *args)
{
	struct new_server server;

	if (!take_name(verb, args->operand[0], &server))
		return VERB_USAGE;
	if (mkdir(server.folder, 0777) != 0) {
		if (errno == EEXIST)
			plain_print(stderr,
			    "weir new: %s exists already, and nothing in it was changed: choose "
			    "another name\n",
			    server.folder);
		else
			plain_print(stderr, "weir new: %s: %s\n", server.folder, strerror(errno));
		return VERB_FINDING;
	}
	errno = 0;
	if (!write_files(&server)) {
		plain_print(stderr, "weir new: %s: %s\n", server.folder,
		    errno ? strerror(errno) : "a file could not be written");
		remove_files(&server);
		return VERB_FINDING;
	}
	print_next(&server);
	return VERB_OK;
}
