/* SPDX-License-Identifier: MIT */
/* Runs the compiler for `weir stage build`; see compile.h. */
#include "cli/stage/compile.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/verb.h"

#define ARGUMENTS_MAX 512

extern char **environ;

/** A command line. `text` has the words that are not constants or arguments of this process. */
struct command {
	int n;
	const char *word[ARGUMENTS_MAX];
	size_t used;
	char text[16384];
	bool full;
};

static void add(struct command *c, const char *word)
{
	if (c->n < ARGUMENTS_MAX - 1)
		c->word[c->n++] = word;
	else
		c->full = true;
}

static void add_text(struct command *c, const char *prefix, const char *text, size_t n)
{
	size_t left = sizeof(c->text) - c->used;
	int size = snprintf(c->text + c->used, left, "%s%.*s", prefix, (int)n, text) + 1;

	if ((size_t)size > left) {
		c->full = true;
		return;
	}
	add(c, c->text + c->used);
	c->used += (size_t)size;
}

/* Add the words of an environment variable, or of `otherwise` if it is not set. */
static void add_words(struct command *c, const char *variable, const char *otherwise)
{
	static const char blanks[] = " \t\n";
	const char *at = getenv(variable);

	if (!at || !at[strspn(at, blanks)])
		at = otherwise;
	for (at += strspn(at, blanks); *at; at += strspn(at, blanks)) {
		size_t n = strcspn(at, blanks);
		add_text(c, "", at, n);
		at += n;
	}
}

static bool is_cxx(const char *source)
{
	static const char *const endings[] = {".cc", ".cpp", ".cxx", ".C"};
	const char *dot = strrchr(source, '.');

	for (size_t i = 0; dot && i < sizeof(endings) / sizeof(endings[0]); i++)
		if (strcmp(dot, endings[i]) == 0)
			return true;
	return false;
}

/* Add the folders of the headers: those installed with this program, or those of the clone in which it
 * was built. Otherwise the compiler looks in its own folders. */
static void add_includes(struct command *c)
{
	static const char *const places[] = {WEIR_INCLUDE_FROM_BIN, "../../framework/include",
	    "../../stages/include", "../../server/include"};
	char program[PATH_MAX], path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);

	program[n > 0 ? n : 0] = '\0';
	char *slash = strrchr(program, '/');
	if (!slash)
		return;
	*slash = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s/weir", program, places[i]);
		if (access(path, X_OK) != 0)
			continue;
		add_text(c, "-I", path, strlen(path) - strlen("/weir"));
		if (i == 0)
			return;
	}
}

/* Write the list of exported symbols, as weir_stage() of the CMake package does. */
static int write_exports(const char *path)
{
	FILE *file = fopen(path, "we");

	if (file && fputs("{ global: weir_stage_*; local: *; };\n", file) >= 0 && fclose(file) == 0)
		return VERB_OK;
	fprintf(stderr, "weir stage: cannot write %s: %s\n", path, strerror(errno));
	return VERB_FINDING;
}

/* Run the command and return its result. Ctrl-C ends the compiler, after which this process removes
 * what is left. */
static int run(const struct command *c)
{
	posix_spawnattr_t attributes;
	sigset_t interrupts;
	pid_t pid;
	int status = 0;

	sigemptyset(&interrupts);
	sigaddset(&interrupts, SIGINT);
	sigaddset(&interrupts, SIGQUIT);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigdefault(&attributes, &interrupts);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	/* posix_spawnp takes argv as char *const[] and does not change it */
	int rc = posix_spawnp(
	    &pid, c->word[0], NULL, &attributes, (char *const *)(uintptr_t)c->word, environ);
	posix_spawnattr_destroy(&attributes);
	if (rc != 0)
		fprintf(stderr, "weir stage: cannot run the compiler '%s': %s%s\n", c->word[0],
		    strerror(rc),
		    rc == ENOENT ? "; on Debian: apt-get install gcc libc6-dev, or set CC" : "");
	else
		rc =
		    waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0
			? 0
			: 1;
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	return rc == 0 ? VERB_OK : VERB_FINDING;
}

int stage_compile(char *const *source, int n, const char *scratch, const char *so)
{
	struct command c = {0};
	char exports[PATH_MAX + 64];
	bool cxx = false;

	for (int i = 0; i < n; i++)
		cxx |= is_cxx(source[i]);
	add_words(&c, cxx ? "CXX" : "CC", cxx ? "c++" : "cc");
	add(&c, cxx ? "-std=c++17" : "-std=c11");
	for (const char *const *flag = (const char *const[]){"-O2", "-g", "-Wall", "-Wextra",
		 "-D_GNU_SOURCE", "-fPIC", "-shared", NULL};
	     *flag; flag++)
		add(&c, *flag);
	/* mistakes that would end the server, which C++ never allows */
	for (const char *const *flag = (const char *const[]){"int-conversion",
		 "incompatible-pointer-types", "implicit-function-declaration", NULL};
	     !cxx && *flag; flag++)
		add_text(&c, "-Werror=", *flag, strlen(*flag));
	add_includes(&c);
	add_words(&c, cxx ? "CXXFLAGS" : "CFLAGS", "");
	for (int i = 0; i < n; i++)
		add(&c, source[i]);
	snprintf(exports, sizeof(exports), "%s/exports.map", scratch);
	add_text(&c, "-Wl,--version-script=", exports, strlen(exports));
	add_words(&c, "LDFLAGS", "");
	add(&c, "-o");
	add(&c, so);
	add_words(&c, "LDLIBS", "");
	if (c.full) {
		fputs("weir stage: the command line of the compiler is too long\n", stderr);
		return VERB_FINDING;
	}
	int rc = write_exports(exports);
	if (rc == VERB_OK)
		rc = run(&c);
	unlink(exports);
	return rc;
}
