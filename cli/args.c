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

enum {
	OPT_SET = 256,
	OPT_CHECK,
	OPT_ADMIN,
	OPT_TOKEN_FILE,
	OPT_CA,
	OPT_FORCE,
	OPT_THREADS,
	OPT_JSON,
	OPT_SHED,
	OPT_FOR,
	OPT_ALL,
	OPT_DRY_RUN,
	OPT_SLOW,
	OPT_CLASS,
	OPT_OUTCOME
};

static const struct option long_options[] = {
    {"help", no_argument, NULL, 'h'},
    {"output", required_argument, NULL, 'o'},
    {"format", required_argument, NULL, 'f'},
    {"set", required_argument, NULL, OPT_SET},
    {"check", no_argument, NULL, OPT_CHECK},
    {"admin", required_argument, NULL, OPT_ADMIN},
    {"token-file", required_argument, NULL, OPT_TOKEN_FILE},
    {"ca", required_argument, NULL, OPT_CA},
    {"force", no_argument, NULL, OPT_FORCE},
    {"threads", no_argument, NULL, OPT_THREADS},
    {"json", no_argument, NULL, OPT_JSON},
    {"shed", required_argument, NULL, OPT_SHED},
    {"for", required_argument, NULL, OPT_FOR},
    {"dry-run", no_argument, NULL, OPT_DRY_RUN},
    {"all", no_argument, NULL, OPT_ALL},
    {"slow", required_argument, NULL, OPT_SLOW},
    {"class", required_argument, NULL, OPT_CLASS},
    {"outcome", required_argument, NULL, OPT_OUTCOME},
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

/** The option bits of which the row must have one for option `c`; 0 for those that every verb takes. */
static unsigned args_option_bit(int c)
{
	switch (c) {
	case 'o':
		return VERB_JSON | VERB_OUTPUT;
	case 'f':
		return VERB_FORMAT;
	case OPT_SET:
		return VERB_SET;
	case OPT_CHECK:
		return VERB_CHECK;
	case OPT_ADMIN:
	case OPT_TOKEN_FILE:
	case OPT_CA:
		return VERB_ADMIN;
	case OPT_FORCE:
		return VERB_FORCE;
	case OPT_THREADS:
		return VERB_THREADS;
	case OPT_JSON:
		return VERB_JSON;
	case OPT_SHED:
		return VERB_SHED;
	case OPT_FOR:
		return VERB_FOR;
	case OPT_DRY_RUN:
		return VERB_DRY_RUN;
	case OPT_ALL:
		return VERB_ALL;
	case OPT_SLOW:
	case OPT_CLASS:
	case OPT_OUTCOME:
		return VERB_WHICH;
	case 'n':
		return VERB_COUNT;
	default:
		return 0;
	}
}

/** "-o" or "--set": option `c` as it may be written. */
static const char *args_option_name(int c, char buf[16])
{
	const struct option *o = long_options;

	while (o->name && o->val != c)
		o++;
	if (c < OPT_SET)
		snprintf(buf, 16, "-%c", c);
	else
		snprintf(buf, 16, "--%s", o->name);
	return buf;
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

/** `-o` says where to, or in which form, by what the row allows. */
static int args_take_output(const struct verb *verb, struct verb_args *args)
{
	if (verb->options & VERB_OUTPUT) {
		args->output = optarg;
		return VERB_OK;
	}
	args->json = strcmp(optarg, "json") == 0;
	return args->json ? VERB_OK : verb_misused(verb, "-o takes 'json', not '%s'", optarg);
}

/** Take over one option that the row allows. */
static int args_take(const struct verb *verb, struct verb_args *args, int c)
{
	switch (c) {
	case 'h':
		args->help = true;
		return VERB_OK;
	case 'o':
		return args_take_output(verb, args);
	case 'f':
		args->format = optarg;
		return VERB_OK;
	case OPT_SET:
		return args_add_set(verb, args, optarg);
	case OPT_CHECK:
		args->check = true;
		return VERB_OK;
	case OPT_FORCE:
		args->force = true;
		return VERB_OK;
	case OPT_THREADS:
		args->threads = true;
		return VERB_OK;
	case OPT_JSON:
		args->json = true;
		return VERB_OK;
	case OPT_SHED:
		args->shed = optarg;
		return VERB_OK;
	case OPT_FOR:
		args->for_ = optarg;
		return VERB_OK;
	case OPT_DRY_RUN:
		args->dry_run = true;
		return VERB_OK;
	case OPT_ALL:
		args->all = true;
		return VERB_OK;
	case 'n':
		args->count = optarg;
		return VERB_OK;
	case OPT_SLOW:
		args->slow = optarg;
		return VERB_OK;
	case OPT_CLASS:
		args->class_ = optarg;
		return VERB_OK;
	case OPT_OUTCOME:
		args->outcome = optarg;
		return VERB_OK;
	case OPT_TOKEN_FILE:
		args->token_file = optarg;
		return VERB_OK;
	case OPT_CA:
		args->ca = optarg;
		return VERB_OK;
	default:
		args->admin = optarg;
		return VERB_OK;
	}
}

/** Say which operand is missing: operands lead the usage, so number `n` is its word `n`. */
static int args_lack(const struct verb *verb, int n)
{
	const char *word = verb->usage;

	for (; n > 0; n--)
		word += strcspn(word, " ") + strspn(word + strcspn(word, " "), " ");
	return verb_misused(verb, "%.*s is missing", (int)strcspn(word, " ."), word);
}

int verb_parse(const struct verb *verb, int argc, char **argv, struct verb_args *args)
{
	int c;

	memset(args, 0, sizeof(*args));
	if (verb->options & VERB_RAW) {
		args->n = argc;
		args->operand = argv;
		return VERB_OK;
	}
	opterr = 0;
	optind = 1;
	while ((c = getopt_long(argc, argv, ":ho:f:n:", long_options, NULL)) != -1) {
		const char *word = argv[optind - 1];
		char name[16];
		if (c == ':')
			return verb_misused(verb, "'%s' needs a value", word);
		if (c == '?')
			return verb_misused(verb, "there is no option like that: '%s'", word);
		if (args_option_bit(c) && !(verb->options & args_option_bit(c)))
			return verb_misused(
			    verb, "'%s' does not take %s", verb->name, args_option_name(c, name));
		int rc = args_take(verb, args, c);
		if (rc != VERB_OK)
			return rc;
	}
	args->n = argc - optind;
	args->operand = argv + optind;
	if (args->help)
		return VERB_OK;
	if (args->n < verb->n_min)
		return args_lack(verb, args->n);
	if (args->n > verb->n_max)
		return verb_misused(verb, "'%s' is one word too many", args->operand[verb->n_max]);
	return VERB_OK;
}

void verb_print_options(const struct verb *verb, FILE *out)
{
	const char *sep = "";

	for (const struct option *o = long_options; o->name; o++) {
		unsigned bit = args_option_bit(o->val);
		if (bit != 0 && !(verb->options & bit))
			continue;
		fprintf(out, "%s--%s", sep, o->name);
		sep = " ";
	}
}

bool verb_styled(FILE *out)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	return isatty(fileno(out)) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}
