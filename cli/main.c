/* SPDX-License-Identifier: MIT */
/*
 * The command `weir`. Finds the verb, parses its arguments, runs it, and checks that its output
 * could be written. Each verb is described by its row in verbs.c.
 */
#include "verb.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/client/client.h"

/** Return the verb that --help, -h, --version or -V stands for. Many people try these first. */
static const char *main_alias(const char *word)
{
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
		return "help";
	if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
		return "version";
	return word;
}

static int main_unknown(const char *word)
{
	const char *near = verb_nearest(word);

	fprintf(stderr, "weir: unknown verb '%s'", word);
	if (near)
		fprintf(stderr, "; did you mean '%s'?", near);
	fputs("\nusage: weir VERB ...; 'weir help' lists the verbs\n", stderr);
	return VERB_USAGE;
}

/** Set the server and the credentials of the client. Without --admin, WEIR_ADMIN is used. */
static void main_identify(const struct verb *verb, struct verb_args *args)
{
	const char *admin = getenv("WEIR_ADMIN");

	if (!args->admin && admin && *admin && verb->options & VERB_ADMIN)
		args->admin = admin;
	client_identify(args->token_file, args->ca);
}

static int main_dispatch(int argc, char **argv)
{
	struct verb_args args;

	if (argc == 0) {
		verb_print_overview(stdout);
		return VERB_OK;
	}
	const struct verb *verb = verb_find(main_alias(argv[0]));
	if (!verb)
		return main_unknown(argv[0]);
	int rc = verb_parse(verb, argc, argv, &args);
	if (rc != VERB_OK)
		return rc;
	if (args.help) {
		verb_print_help(verb, stdout);
		return VERB_OK;
	}
	main_identify(verb, &args);
	return verb->fn(verb, &args);
}

/** Open /dev/null in place of a standard descriptor that is closed. Otherwise a file or connection
 *  opened later would get the number of that descriptor, and then receive the messages. /dev/null
 *  is opened for the other direction, so that reads and writes still fail. */
static bool main_reserve_standard(void)
{
	bool good = true;

	for (int fd = STDIN_FILENO; good && fd <= STDERR_FILENO; fd++)
		good = fcntl(fd, F_GETFD) != -1 ||
		       open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) == fd;
	return good;
}

int main(int argc, char **argv)
{
	if (!main_reserve_standard())
		return VERB_FINDING;
	int rc = main_dispatch(argc - 1, argv + 1);

	if (fflush(stdout) != 0 || ferror(stdout)) {
		fprintf(stderr, "weir: cannot write the output: %s\n", strerror(errno));
		return rc == VERB_OK ? VERB_FINDING : rc;
	}
	return rc;
}
