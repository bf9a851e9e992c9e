/* SPDX-License-Identifier: MIT */
/*
 * The verbs of the command `weir VERB ...`.
 *
 * One table (verbs.c) lists the verbs. It is used for help, usage messages, option parsing and
 * dispatch. A verb is a function that gets its parsed arguments and returns an exit code. Verbs
 * print their result on stdout and everything else on stderr; main checks whether writing to stdout
 * failed. Main thread only.
 */
#ifndef WEIR_CLI_VERB_H
#define WEIR_CLI_VERB_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/error.h>

enum verb_exit {
	VERB_OK = 0,
	VERB_FINDING = 1,     /* a negative result, or a failure */
	VERB_USAGE = 2,       /* the command line is wrong, or names an unknown stage or knob */
	VERB_UNREACHABLE = 3, /* no server answers, or it is not a weir server */
};

/** Options that a verb may take, besides --help. */
enum verb_option {
	VERB_JSON = 1,       /* -o json */
	VERB_FORMAT = 2,     /* -f FORMAT */
	VERB_SET = 4,        /* --set STAGE.KNOB=VALUE, any number */
	VERB_CHECK = 8,      /* --check */
	VERB_ADMIN = 16,     /* --admin URL, --token-file FILE, --ca FILE, --timeout TIME */
	VERB_OUTPUT = 32,    /* -o FILE; excludes VERB_JSON */
	VERB_FORCE = 64,     /* --force */
	VERB_THREADS = 256,  /* --threads */
	VERB_SHED = 512,     /* --shed ID */
	VERB_FOR = 1024,     /* --for DURATION */
	VERB_DRY_RUN = 2048, /* --dry-run */
	VERB_COUNT = 4096,   /* -n N */
	VERB_WHICH = 8192,   /* --slow DURATION, --class NAME, --outcome ok|shed|failed */
	VERB_ALL = 16384,    /* --all */
	VERB_NOW = 32768,    /* --now */
	/* the verb parses its own options: args->operand is argv, including the name of the verb */
	VERB_RAW = 128,
};

/** Maximum number of `--set` options on a command line. 64 is a guess: more than anyone uses. */
#define VERB_SETS_MAX 64

/** A parsed command line. All strings point into argv or the environment. */
struct verb_args {
	bool help, json, check, force, threads, dry_run, all, now;
	const char *format;                  /* NULL when not given */
	const char *admin;                   /* NULL when given neither here nor in WEIR_ADMIN */
	const char *token_file, *ca;         /* NULL when not given */
	const char *output;                  /* NULL when not given */
	const char *shed;                    /* NULL when not given */
	const char *for_;                    /* NULL when not given */
	const char *count;                   /* NULL when not given */
	int64_t timeout_ns;                  /* 0 when not given */
	const char *slow, *class_, *outcome; /* NULL when not given */
	int n_sets;
	const char *sets[VERB_SETS_MAX];
	int n; /* operands */
	char **operand;
};

struct verb {
	const char *name; /* NULL ends the table */
	const char *group;
	const char *usage; /* the usage line after "weir NAME " */
	const char *help;  /* one sentence without a full stop */
	const char *example;
	unsigned options; /* enum verb_option */
	int n_min, n_max; /* operands */
	int (*fn)(const struct verb *verb, const struct verb_args *args);
};

extern const struct verb verb_table[];

/** Return the verb called `name`, or NULL if there is none. */
const struct verb *verb_find(const char *name);

/** Return the name of the verb most similar to `word`, or NULL if none is similar enough. */
const char *verb_nearest(const char *word);

/** Parse argv[0..argc), where argv[0] is the name of the verb. Operands are moved to the end of
 *  argv. Returns VERB_OK, or VERB_USAGE after printing the reason and the usage line on stderr. */
int verb_parse(const struct verb *verb, int argc, char **argv, struct verb_args *args);

/** What --help and the manual page say of an option. */
struct verb_option_row {
	unsigned bit;     /* of enum verb_option; 0: every verb takes it */
	const char *form; /* "--admin URL"; NULL ends the table */
	const char *help;
};

extern const struct verb_option_row verb_option_rows[];

/** Whether `verb` takes the option. A verb with VERB_RAW takes --help alone of these. */
bool verb_takes(const struct verb *verb, const struct verb_option_row *row);

/** Print the long options that verb_parse accepts for `verb`, separated by spaces. */
void verb_print_options(const struct verb *verb, FILE *out);

/** Print on stderr why the command line of `verb` is wrong, and its usage. Returns VERB_USAGE. */
int verb_misused(const struct verb *verb, const char *fmt, ...) WEIR_PRINTF(2, 3);

/** Return whether output to `out` may be styled: `out` is a terminal, and neither NO_COLOR nor
 *  TERM=dumb is set. */
bool verb_styled(FILE *out);

/** Print `errs`, their number, and `consequence` ("Nothing was started.") on stderr. */
void verb_print_errors(const struct weir_errs *errs, const char *consequence);

/* ---- the verbs, by file ---- */
int verb_check(const struct verb *verb, const struct verb_args *args);
int verb_explain(const struct verb *verb, const struct verb_args *args);
int verb_graph(const struct verb *verb, const struct verb_args *args);
int verb_new(const struct verb *verb, const struct verb_args *args);
int verb_list(const struct verb *verb, const struct verb_args *args);
int verb_describe(const struct verb *verb, const struct verb_args *args);
int verb_schema(const struct verb *verb, const struct verb_args *args);
int verb_stage(const struct verb *verb, const struct verb_args *args);
int verb_run(const struct verb *verb, const struct verb_args *args);
int verb_ps(const struct verb *verb, const struct verb_args *args);
int verb_stop(const struct verb *verb, const struct verb_args *args);
int verb_reload(const struct verb *verb, const struct verb_args *args);
int verb_diff(const struct verb *verb, const struct verb_args *args);
int verb_doctor(const struct verb *verb, const struct verb_args *args);
int verb_why(const struct verb *verb, const struct verb_args *args);
int verb_overload(const struct verb *verb, const struct verb_args *args);
int verb_set(const struct verb *verb, const struct verb_args *args);
int verb_unset(const struct verb *verb, const struct verb_args *args);
int verb_purge(const struct verb *verb, const struct verb_args *args);
int verb_undo(const struct verb *verb, const struct verb_args *args);
int verb_steer(const struct verb *verb, const struct verb_args *args); /* pause, resume, drain */
int verb_show(const struct verb *verb, const struct verb_args *args);
int verb_queue(const struct verb *verb, const struct verb_args *args);
int verb_snapshot(const struct verb *verb, const struct verb_args *args);
int verb_log(const struct verb *verb, const struct verb_args *args);
int verb_trace(const struct verb *verb, const struct verb_args *args);
int verb_profile(const struct verb *verb, const struct verb_args *args);
int verb_tap(const struct verb *verb, const struct verb_args *args);
int verb_top(const struct verb *verb, const struct verb_args *args);
int verb_save(const struct verb *verb, const struct verb_args *args);
int verb_bench(const struct verb *verb, const struct verb_args *args);
int verb_simulate(const struct verb *verb, const struct verb_args *args);
int verb_compare(const struct verb *verb, const struct verb_args *args);
int verb_report(const struct verb *verb, const struct verb_args *args);
int verb_completion(const struct verb *verb, const struct verb_args *args);
int verb_man(const struct verb *verb, const struct verb_args *args);
int verb_help(const struct verb *verb, const struct verb_args *args);
int verb_version(const struct verb *verb, const struct verb_args *args);

/** Print help on one verb, as `weir VERB --help` does. */
void verb_print_help(const struct verb *verb, FILE *out);

/** Call fn for each group of verbs, in the order of the overview, with its name in verb_table and
 *  its title. */
void verb_each_group(void (*fn)(const char *name, const char *title, FILE *out), FILE *out);

/** Print the options of a verb with VERB_RAW: an option per line, and what it does. */
void verb_print_raw_options(const struct verb *verb, FILE *out);

/** Print the output of `weir` without arguments: what weir is, all verbs by group, and likely next
 *  commands. */
void verb_print_overview(FILE *out);

#endif
