/* SPDX-License-Identifier: MIT */
/* The verb `simulate`: parses the options and runs the simulation; see simulate.h. */
#include "simulate.h"

#include <stdlib.h>
#include <string.h>

#include <weir/graph.h>
#include <weir/knob.h>

#include "base/task.h"
#include "config.h"
#include "load/sentence.h"
#include "cli/verb.h"

#define ROW(n, t, member, d, lo, hi, h)                                                            \
	{                                                                                          \
		.name = n, .type = WEIR_KNOB_##t,                                                  \
		.offset = offsetof(struct simulate_options, member), .def = d, .min = lo,          \
		.max = hi, .help = h                                                               \
	}

static const struct weir_knob simulate_knobs[] = {
    ROW("load", STRING, load, "0.8x", 0, 0,
	"2x is a multiple of the capacity; 500 or 20k is a rate per second"),
    {.name = "cores",
	.type = WEIR_KNOB_INT,
	.offset = offsetof(struct simulate_options, cores),
	.def = "auto",
	.min = 1,
	.max = 4096,
	.flags = WEIR_KNOB_AUTO,
	.help = "cores of the simulated machine; auto is as many as this machine has"},
    ROW("admin", STRING, admin, NULL, 0, 0,
	"a running server of this YAML, whose mean service times are used"),
    {.name = "for",
	.type = WEIR_KNOB_DURATION,
	.offset = offsetof(struct simulate_options, for_ns),
	.def = "auto",
	.min = 1e9,
	.max = 3.6e12,
	.flags = WEIR_KNOB_AUTO,
	.help = "virtual time; auto is the time in which 2 million events arrive, but at least 5 s "
		"and at most 60 s; if more than 10 million events arrive in 5 s, auto is the time "
		"in which 10 million arrive, but at least 1 s"},
    ROW("deadline", DURATION, deadline_ns, "0s", 0, 3.6e12,
	"deadline of every request; 0s is the slo of its class"),
    {.name = "keys",
	.type = WEIR_KNOB_INT,
	.offset = offsetof(struct simulate_options, keys),
	.def = "auto",
	.min = 1,
	.max = SIM_VALUES_MAX,
	.flags = WEIR_KNOB_AUTO,
	.help = "different values of each field of a serial key, which all are equally frequent; "
		"auto is "
		"1000"},
    ROW("seed", INT, seed, "1", 0, 9e15, "the same seed gives the same result"),
    ROW("output", STRING, output, NULL, 0, 0, "json, or csv with a row per 100 ms, for plots"),
    ROW("help", BOOL, help, "false", 0, 0, "print this help"),
    {.name = NULL},
};

static const struct {
	const char *name, *help;
	size_t offset;
} word_options[] = {
    {"cost", "STAGE=TIME[,const|exp|lognormal][,cpu|blocks]: service time of an event at the stage",
	offsetof(struct simulate_options, cost)},
    {"share",
	"STAGE.OUTLET=10%: share of the stage's events that leave through the outlet; by default, "
	"all outlets have the same share. Of an outlet for children, their number for each event: "
	"400% are four; 100% by default",
	offsetof(struct simulate_options, share)},
    {"class", "NAME=10%: share of the load; by default, an even share of the rest",
	offsetof(struct simulate_options, classes)},
    {"set", "STAGE.KNOB=VALUE: set as by `weir run`", offsetof(struct simulate_options, set)},
};

#define N_WORD_OPTIONS (sizeof(word_options) / sizeof(word_options[0]))

void simulate_print_options(FILE *out)
{
	for (const struct weir_knob *k = simulate_knobs; k->name; k++) {
		fprintf(out, "  --%-10s %s", k->name, k->help);
		if (k->def && k->type != WEIR_KNOB_BOOL)
			fprintf(out, " (%s)", k->def);
		fputc('\n', out);
	}
	for (size_t i = 0; i < N_WORD_OPTIONS; i++)
		fprintf(
		    out, "  --%-10s %s; any number\n", word_options[i].name, word_options[i].help);
	fputs("short: -o output, -h help\n", out);
}

static struct simulate_words *words_of(struct simulate_options *opt, const char *name)
{
	for (size_t i = 0; i < N_WORD_OPTIONS; i++)
		if (strcmp(word_options[i].name, name) == 0)
			return (void *)((char *)opt + word_options[i].offset);
	return NULL;
}

static int take_knob(
    const char *name, const char *value, struct simulate_options *opt, struct weir_err *err)
{
	const struct weir_knob *row = weir_knob_find(simulate_knobs, name);
	char why[200];

	if (!row)
		return sentence(err, WEIR_EINVAL, "unknown option '--%.40s'", name);
	if (!value && row->type == WEIR_KNOB_BOOL)
		value = "true";
	if (!value)
		return sentence(err, WEIR_EINVAL, "--%s needs a value", name);
	if (weir_knob_parse(row, value, opt, why, sizeof(why)) != 0)
		return sentence(err, WEIR_EINVAL, "--%s: %s", name, why);
	return 0;
}

/* Parse the option argv[*at] and its value. Advances *at if the value is in the next word. */
static int take(int argc, char **argv, int *at, struct simulate_options *opt, struct weir_err *err)
{
	char name[32];
	const char *word = argv[*at], *equals = strchr(word, '='), *value = NULL;
	const char *from = word[1] == '-' ? word + 2 : word[1] == 'o' ? "output" : "help";

	if (word[1] != '-' && ((word[1] != 'o' && word[1] != 'h') || word[2]))
		return sentence(err, WEIR_EINVAL, "unknown option '%.40s'", word);
	int n = word[1] == '-' && equals ? (int)(equals - from) : (int)strlen(from);
	snprintf(name, sizeof(name), "%.*s", n, from);
	if (word[1] == '-' && equals)
		value = equals + 1;
	else if (strcmp(name, "help") != 0 && *at + 1 < argc)
		value = argv[++*at];
	struct simulate_words *words = words_of(opt, name);
	if (!words)
		return take_knob(name, value, opt, err);
	if (!value)
		return sentence(err, WEIR_EINVAL, "--%s needs a value", name);
	if (words->n == SIMULATE_WORDS_MAX)
		return sentence(
		    err, WEIR_EINVAL, "--%s is given more than %d times", name, SIMULATE_WORDS_MAX);
	words->word[words->n++] = value;
	return 0;
}

static int parse(int argc, char **argv, struct simulate_options *opt, struct weir_err *err)
{
	memset(opt, 0, sizeof(*opt));
	if (weir_knobs_init(simulate_knobs, opt) != 0)
		return sentence_nomem(err);
	for (int at = 1; at < argc; at++) {
		if (argv[at][0] == '-' && argv[at][1]) {
			int rc = take(argc, argv, &at, opt, err);
			if (rc != 0 || opt->help)
				return rc;
		} else if (opt->file) {
			return sentence(err, WEIR_EINVAL, "unexpected argument '%.60s'", argv[at]);
		} else {
			opt->file = argv[at];
		}
	}
	if (!opt->file)
		return sentence(err, WEIR_EINVAL, "the FILE is missing");
	if (opt->output && strcmp(opt->output, "json") != 0 && strcmp(opt->output, "csv") != 0)
		return sentence(err, WEIR_EINVAL, "-o takes json or csv, not '%.40s'", opt->output);
	return 0;
}

/* Load and check the configuration. Prints errors and returns NULL on failure. */
static struct weir_spec *load(const struct simulate_options *opt)
{
	struct weir_errs errs = {0};
	struct weir_spec *spec = NULL;

	if (opt->cores > 0)
		task_pretend_cores((int)opt->cores);
	int rc = config_load(opt->file, opt->set.word, opt->set.n, &spec, &errs);
	if (rc == 0)
		rc = weir_spec_check(spec, &errs);
	if (rc == 0)
		return spec;
	verb_print_errors(&errs, "Nothing was simulated.");
	weir_spec_free(spec);
	return NULL;
}

/* From this number of events on, the size of a simulation is printed first, since it takes
 * seconds. */
#define MANY_EVENTS 1e7

static void tell_size(const struct simulate_plan *plan)
{
	if (plan->events < MANY_EVENTS)
		return;
	fprintf(stderr,
	    "weir simulate: %.3g million events will be simulated, %.3g s of virtual time at "
	    "%.0f/s; --for and --load change that\n",
	    plan->events / 1e6, (double)(plan->config.measured_ns + plan->config.warmup_ns) / 1e9,
	    plan->offered_per_s);
}

static int run(
    const struct weir_spec *spec, const struct simulate_options *opt, struct simulate_plan *plan)
{
	struct sim_result *r = NULL;

	tell_size(plan);
	int rc = sim_run(&plan->config, &r);

	if (rc != 0) {
		fprintf(stderr, "weir simulate: %s\n", r ? r->breach : weir_error_text(rc));
		sim_result_free(r);
		return VERB_FINDING;
	}
	if (!opt->output)
		simulate_print(spec, plan, r, stdout);
	else if (strcmp(opt->output, "csv") == 0)
		sim_write_csv(&plan->config, r, stdout);
	else if (simulate_print_json(spec, plan, r, stdout) != 0)
		rc = WEIR_ENOMEM;
	sim_result_free(r);
	return rc == 0 ? VERB_OK : VERB_FINDING;
}

static int plan_and_run(const struct verb *verb, const struct simulate_options *opt)
{
	struct simulate_plan *plan = calloc(1, sizeof(*plan));
	struct weir_spec *spec = plan ? load(opt) : NULL;
	struct weir_err err = {0};
	int code = VERB_FINDING;

	if (spec) {
		int rc = simulate_costs(spec, opt, plan, &err);
		if (rc == 0)
			rc = simulate_plan(spec, opt, plan, &err);
		if (rc == WEIR_EINVAL)
			code = verb_misused(verb, "%s", err.text);
		else if (rc != 0)
			fprintf(stderr, "weir simulate: %s\n", err.text);
		if (rc == WEIR_ESYS)
			code = VERB_UNREACHABLE;
		if (rc == 0)
			code = run(spec, opt, plan);
	}
	weir_spec_free(spec);
	free(plan);
	return code;
}

int verb_simulate(const struct verb *verb, const struct verb_args *args)
{
	struct simulate_options opt;
	struct weir_err err = {0};
	int rc = parse(args->n, args->operand, &opt, &err);

	if (rc != 0)
		rc = verb_misused(verb, "%s", err.text);
	else if (opt.help)
		verb_print_help(verb, stdout);
	else
		rc = plan_and_run(verb, &opt);
	weir_knobs_fini(simulate_knobs, &opt);
	return rc;
}
