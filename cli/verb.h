/* SPDX-License-Identifier: MIT */
/*
 * The verbs of the command `weir VERB ...`.
 *
 * One table (verbs.c) names them; help, usage messages, option parsing and dispatch read it. A verb
 * is one function that gets its parsed arguments and returns an exit code. Verbs print what was
 * asked for on stdout and everything else on stderr; main checks that stdout could be written.
 * Main thread only.
 */
#ifndef WEIR_CLI_VERB_H
#define WEIR_CLI_VERB_H

#include <stdbool.h>
#include <stdio.h>

#include <weir/error.h>

enum verb_exit {
	VERB_OK = 0,
	VERB_FINDING = 1,     /* it worked, and the answer is bad news; or it could not work */
	VERB_USAGE = 2,       /* the command line is wrong */
	VERB_UNREACHABLE = 3, /* no server answers there */
};

/** Options that a verb may take, besides --help. */
enum verb_option {
	VERB_JSON = 1,       /* -o json */
	VERB_FORMAT = 2,     /* -f FORMAT */
	VERB_SET = 4,        /* --set STAGE.KNOB=VALUE, any number */
	VERB_CHECK = 8,      /* --check */
	VERB_ADMIN = 16,     /* --admin URL, --token-file FILE, --ca FILE */
	VERB_OUTPUT = 32,    /* -o FILE; a verb has this one or VERB_JSON */
	VERB_FORCE = 64,     /* --force */
	VERB_THREADS = 256,  /* --threads */
	VERB_SHED = 512,     /* --shed ID */
	VERB_FOR = 1024,     /* --for DURATION */
	VERB_DRY_RUN = 2048, /* --dry-run */
	VERB_COUNT = 4096,   /* -n N */
	VERB_WHICH = 8192,   /* --slow DURATION, --class NAME, --outcome ok|shed|failed */
	VERB_ALL = 16384,    /* --all */
	VERB_RAW = 128,      /* parses its own: args->operand is argv with the verb's name */
};

/** `--set` options of one command line. More than anyone writes by hand: a guess. */
#define VERB_SETS_MAX 64

/** A parsed command line; all pointers are into argv. */
struct verb_args {
	bool help, json, check, force, threads, dry_run, all;
	const char *format;                  /* NULL when not given */
	const char *admin;                   /* NULL when neither given nor in WEIR_ADMIN */
	const char *token_file, *ca;         /* NULL when not given */
	const char *output;                  /* NULL when not given */
	const char *shed;                    /* NULL when not given */
	const char *for_;                    /* NULL when not given */
	const char *count;                   /* NULL when not given */
	const char *slow, *class_, *outcome; /* NULL when not given */
	int n_sets;
	const char *sets[VERB_SETS_MAX];
	int n; /* operands */
	char **operand;
};

struct verb {
	const char *name; /* NULL ends the table */
	const char *group;
	const char *usage; /* behind "weir NAME " */
	const char *help;  /* one sentence, no full stop */
	const char *example;
	unsigned options; /* enum verb_option */
	int n_min, n_max; /* operands */
	int (*fn)(const struct verb *verb, const struct verb_args *args);
};

extern const struct verb verb_table[];

/** The verb called `name`, NULL when there is none. */
const struct verb *verb_find(const char *name);

/** The verb whose name is nearest to `word`, NULL when none is near. */
const char *verb_nearest(const char *word);

/** Parse argv[0..argc), argv[0] being the verb's name. VERB_OK, or VERB_USAGE with the reason and
 *  the usage line on stderr. Operands are moved behind the options. */
int verb_parse(const struct verb *verb, int argc, char **argv, struct verb_args *args);

/** Print the long options that verb_parse takes for `verb`, with a blank between them. */
void verb_print_options(const struct verb *verb, FILE *out);

/** Print the reason why the command line of `verb` is wrong, and its usage. Returns VERB_USAGE. */
int verb_misused(const struct verb *verb, const char *fmt, ...) WEIR_PRINTF(2, 3);

/** May output to `out` use bold type? A terminal, and neither NO_COLOR nor TERM=dumb. */
bool verb_styled(FILE *out);

struct weir_spec;
struct weir_graph;

/**
 * Load the server of operand 0 with its `--set`s, and build it: all that can be known before a
 * thread starts. The working directory becomes that of the file, so that paths in it lead where the
 * file is. 0, or a WEIR_E code with `errs` filled.
 */
int verb_build(const struct verb_args *args, struct weir_graph **graph, struct weir_errs *errs);

/** The same, and *values (may be NULL) is what it means, as config_values_text, the caller's to free. */
int verb_build_values(
    const struct verb_args *args, struct weir_graph **graph, char **values, struct weir_errs *errs);

struct json_t;

/** An error as `check -o json` shows it; NULL without memory. */
struct json_t *verb_error_json(const struct weir_err *err);

/** Print all of `errs` to stderr, how many they are, and `consequence` ("Nothing was started."). */
void verb_print_errors(const struct weir_errs *errs, const char *consequence);

/* ---- the verbs, by file ---- */
int verb_check(const struct verb *verb, const struct verb_args *args);
int verb_explain(const struct verb *verb, const struct verb_args *args);
int verb_graph(const struct verb *verb, const struct verb_args *args);
int verb_list(const struct verb *verb, const struct verb_args *args);
int verb_describe(const struct verb *verb, const struct verb_args *args);
int verb_schema(const struct verb *verb, const struct verb_args *args);
int verb_run(const struct verb *verb, const struct verb_args *args);
int verb_ps(const struct verb *verb, const struct verb_args *args);
int verb_reload(const struct verb *verb, const struct verb_args *args);
int verb_diff(const struct verb *verb, const struct verb_args *args);
int verb_doctor(const struct verb *verb, const struct verb_args *args);
int verb_why(const struct verb *verb, const struct verb_args *args);
int verb_overload(const struct verb *verb, const struct verb_args *args);
int verb_set(const struct verb *verb, const struct verb_args *args);
int verb_unset(const struct verb *verb, const struct verb_args *args);
int verb_undo(const struct verb *verb, const struct verb_args *args);
int verb_steer(const struct verb *verb, const struct verb_args *args); /* pause, resume, drain */
int verb_show(const struct verb *verb, const struct verb_args *args);
int verb_queue(const struct verb *verb, const struct verb_args *args);
int verb_snapshot(const struct verb *verb, const struct verb_args *args);
int verb_log(const struct verb *verb, const struct verb_args *args);
int verb_trace(const struct verb *verb, const struct verb_args *args);
int verb_tap(const struct verb *verb, const struct verb_args *args);
int verb_top(const struct verb *verb, const struct verb_args *args);
int verb_save(const struct verb *verb, const struct verb_args *args);
int verb_bench(const struct verb *verb, const struct verb_args *args);
int verb_simulate(const struct verb *verb, const struct verb_args *args);
int verb_compare(const struct verb *verb, const struct verb_args *args);
int verb_report(const struct verb *verb, const struct verb_args *args);
int verb_completion(const struct verb *verb, const struct verb_args *args);
int verb_help(const struct verb *verb, const struct verb_args *args);
int verb_version(const struct verb *verb, const struct verb_args *args);

/** Help on one verb, as for `weir VERB --help`. */
void verb_print_help(const struct verb *verb, FILE *out);

/** What weir is, all verbs by group and the likely next commands: `weir` without arguments. */
void verb_print_overview(FILE *out);

#endif
