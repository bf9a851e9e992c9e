/* SPDX-License-Identifier: MIT */
/*
 * Command lines: one parser for all verbs; the verb's row says which options it takes. Also the
 * style of what goes to a terminal.
 */
#include "verb.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPT_SET = 256, OPT_CHECK, OPT_ADMIN };

static const struct option long_options[] = {
    {"help", no_argument, NULL, 'h'},
    {"output", required_argument, NULL, 'o'},
    {"format", required_argument, NULL, 'f'},
    {"set", required_argument, NULL, OPT_SET},
    {"check", no_argument, NULL, OPT_CHECK},
    {"admin", required_argument, NULL, OPT_ADMIN},
    {NULL, 0, NULL, 0},
};

int verb_misused(const struct verb *verb, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "weir %s: ", verb->name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\nusage: weir %s%s%s\n", verb->name, *verb->usage ? " " : "", verb->usage);
	return VERB_USAGE;
}

/** The option bit that the row must have for option `c`; 0 for those that every verb takes. */
static unsigned args_option_bit(int c)
{
	switch (c) {
	case 'o':
		return VERB_JSON;
	case 'f':
		return VERB_FORMAT;
	case OPT_SET:
		return VERB_SET;
	case OPT_CHECK:
		return VERB_CHECK;
	case OPT_ADMIN:
		return VERB_ADMIN;
	default:
		return 0;
	}
}

static int args_add_set(const struct verb *verb, struct verb_args *args, const char *text)
{
	const char *equals = strchr(text, '=');
	const char *dot = strchr(text, '.');

	if (!equals || !dot || dot > equals || dot == text)
		return verb_misused(
		    verb, "'%s' is not STAGE.KNOB=VALUE, as in disk.threads.max=8", text);
	if (args->n_sets == VERB_SETS_MAX)
		return verb_misused(verb, "more than %d times --set", VERB_SETS_MAX);
	args->sets[args->n_sets++] = text;
	return VERB_OK;
}

/** Take over one option that the row allows. */
static int args_take(const struct verb *verb, struct verb_args *args, int c)
{
	switch (c) {
	case 'h':
		args->help = true;
		return VERB_OK;
	case 'o':
		args->json = strcmp(optarg, "json") == 0;
		return args->json ? VERB_OK
				  : verb_misused(verb, "-o takes 'json', not '%s'", optarg);
	case 'f':
		args->format = optarg;
		return VERB_OK;
	case OPT_SET:
		return args_add_set(verb, args, optarg);
	case OPT_CHECK:
		args->check = true;
		return VERB_OK;
	default:
		args->admin = optarg;
		return VERB_OK;
	}
}

int verb_parse(const struct verb *verb, int argc, char **argv, struct verb_args *args)
{
	int c;

	memset(args, 0, sizeof(*args));
	opterr = 0;
	optind = 1;
	while ((c = getopt_long(argc, argv, ":ho:f:", long_options, NULL)) != -1) {
		const char *word = argv[optind - 1];
		if (c == ':')
			return verb_misused(verb, "'%s' needs a value", word);
		if (c == '?' || (args_option_bit(c) && !(verb->options & args_option_bit(c))))
			return verb_misused(verb, "there is no option like that: '%s'", word);
		int rc = args_take(verb, args, c);
		if (rc != VERB_OK)
			return rc;
	}
	args->n = argc - optind;
	args->operand = argv + optind;
	if (args->help)
		return VERB_OK;
	if (args->n < verb->n_min)
		return verb_misused(verb, "something is missing");
	if (args->n > verb->n_max)
		return verb_misused(verb, "'%s' is one word too many", args->operand[verb->n_max]);
	return VERB_OK;
}

bool verb_styled(FILE *out)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	return isatty(fileno(out)) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}
