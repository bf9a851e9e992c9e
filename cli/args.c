/* SPDX-License-Identifier: MIT */
/*
 * Parses the command lines of all verbs, and decides whether output is styled.
 *
 * All long options of all verbs are in one table, long_options. getopt_long parses against this
 * table; the row of the verb then decides whether it accepts the option (args_option_bit). Options
 * and operands may be mixed. A verb with VERB_RAW gets its arguments unparsed.
 */
#include "verb.h"

#include <getopt.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/knob.h>

#include "cli/client/client.h"
#include "cli/client/plain.h"

enum {
	OPT_SET = 256,
	OPT_CHECK,
	OPT_ADMIN,
	OPT_TOKEN_FILE,
	OPT_CA,
	OPT_TIMEOUT,
	OPT_FORCE,
	OPT_THREADS,
	OPT_JSON,
	OPT_SHED,
	OPT_FOR,
	OPT_ALL,
	OPT_NOW,
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
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"force", no_argument, NULL, OPT_FORCE},
    {"threads", no_argument, NULL, OPT_THREADS},
    {"json", no_argument, NULL, OPT_JSON},
    {"shed", required_argument, NULL, OPT_SHED},
    {"for", required_argument, NULL, OPT_FOR},
    {"dry-run", no_argument, NULL, OPT_DRY_RUN},
    {"all", no_argument, NULL, OPT_ALL},
    {"now", no_argument, NULL, OPT_NOW},
    {"slow", required_argument, NULL, OPT_SLOW},
    {"class", required_argument, NULL, OPT_CLASS},
    {"outcome", required_argument, NULL, OPT_OUTCOME},
    {NULL, 0, NULL, 0},
};

int verb_misused(const struct verb *verb, const char *fmt, ...)
{
	va_list ap;

	plain_print(stderr, "weir %s: ", verb->name);
	va_start(ap, fmt);
	plain_vprint(stderr, fmt, ap);
	va_end(ap);
	plain_print(
	    stderr, "\nusage: weir %s%s%s\n", verb->name, *verb->usage ? " " : "", verb->usage);
	return VERB_USAGE;
}

/** Return the bits of enum verb_option that allow option `c`. A verb accepts the option if its row
 *  has one of these bits. Returns 0 for options that all verbs accept. */
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
	case OPT_TIMEOUT:
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
	case OPT_NOW:
		return VERB_NOW;
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

/** Format option `c` as it is written on a command line: "-o" or "--set". */
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
		return verb_misused(verb, "--set is given more than %d times", VERB_SETS_MAX);
	args->sets[args->n_sets++] = text;
	return VERB_OK;
}

/** Store the value of `-o`. It is a file for some verbs and a format for others, as the row of the
 *  verb says. */
static int args_take_output(const struct verb *verb, struct verb_args *args)
{
	if (verb->options & VERB_OUTPUT) {
		args->output = optarg;
		return VERB_OK;
	}
	args->json = strcmp(optarg, "json") == 0;
	return args->json ? VERB_OK : verb_misused(verb, "-o takes 'json', not '%s'", optarg);
}

static int args_take_timeout(const struct verb *verb, struct verb_args *args)
{
	static const struct weir_knob row = {
	    .name = "timeout", .type = WEIR_KNOB_DURATION, .min = 1e6, .max = 3600e9};
	int64_t timeout_ns;
	char why[160];

	if (weir_knob_parse(&row, optarg, &timeout_ns, why, sizeof(why)) != 0)
		return verb_misused(verb, "--timeout: %s", why);
	client_allow(timeout_ns);
	args->timeout_ns = timeout_ns;
	return VERB_OK;
}

/** A flag, or an option whose value is stored unchanged. */
struct args_member {
	int c;
	size_t offset; /* in struct verb_args */
};

static const struct args_member args_flags[] = {
    {'h', offsetof(struct verb_args, help)},
    {OPT_CHECK, offsetof(struct verb_args, check)},
    {OPT_FORCE, offsetof(struct verb_args, force)},
    {OPT_THREADS, offsetof(struct verb_args, threads)},
    {OPT_JSON, offsetof(struct verb_args, json)},
    {OPT_DRY_RUN, offsetof(struct verb_args, dry_run)},
    {OPT_ALL, offsetof(struct verb_args, all)},
    {OPT_NOW, offsetof(struct verb_args, now)},
};

static const struct args_member args_texts[] = {
    {'f', offsetof(struct verb_args, format)},
    {'n', offsetof(struct verb_args, count)},
    {OPT_SHED, offsetof(struct verb_args, shed)},
    {OPT_FOR, offsetof(struct verb_args, for_)},
    {OPT_SLOW, offsetof(struct verb_args, slow)},
    {OPT_CLASS, offsetof(struct verb_args, class_)},
    {OPT_OUTCOME, offsetof(struct verb_args, outcome)},
    {OPT_TOKEN_FILE, offsetof(struct verb_args, token_file)},
    {OPT_CA, offsetof(struct verb_args, ca)},
    {OPT_ADMIN, offsetof(struct verb_args, admin)},
};

/** Store one option that the verb accepts. */
static int args_take(const struct verb *verb, struct verb_args *args, int c)
{
	if (c == 'o')
		return args_take_output(verb, args);
	if (c == OPT_SET)
		return args_add_set(verb, args, optarg);
	if (c == OPT_TIMEOUT)
		return args_take_timeout(verb, args);
	for (size_t i = 0; i < sizeof(args_flags) / sizeof(args_flags[0]); i++)
		if (args_flags[i].c == c)
			*(bool *)(void *)((char *)args + args_flags[i].offset) = true;
	for (size_t i = 0; i < sizeof(args_texts) / sizeof(args_texts[0]); i++)
		if (args_texts[i].c == c)
			*(const char **)(void *)((char *)args + args_texts[i].offset) = optarg;
	return VERB_OK;
}

/** Report that operand `n` is missing. Its name is word `n` of the usage text, since the usage
 *  lists operands before options. */
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
			return verb_misused(verb, "unknown option: '%s'", word);
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
		return verb_misused(verb, "unexpected argument '%s'", args->operand[verb->n_max]);
	return VERB_OK;
}

void verb_print_options(const struct verb *verb, FILE *out)
{
	const char *sep = "";

	for (const struct option *o = long_options; o->name; o++) {
		unsigned bit = args_option_bit(o->val);
		if (bit != 0 && !(verb->options & bit))
			continue;
		plain_print(out, "%s--%s", sep, o->name);
		sep = " ";
	}
}

bool verb_styled(FILE *out)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	return isatty(fileno(out)) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}
