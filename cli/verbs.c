/* SPDX-License-Identifier: MIT */
/* The table of verbs, in the order in which help prints them; see verb.h. */
#include "verb.h"

#include <string.h>

#include <weir/knob.h>

const struct verb *verb_find(const char *name)
{
	for (const struct verb *v = verb_table; v->name; v++)
		if (strcmp(v->name, name) == 0)
			return v;
	return NULL;
}

const char *verb_nearest(const char *word)
{
	const char *names[64];
	int n = 0;

	for (const struct verb *v = verb_table; v->name && n < 64; v++)
		names[n++] = v->name;
	return weir_nearest(word, names, n);
}

const struct verb verb_table[] = {
    {"new", "writing", "NAME",
	"Create a folder with a server and a stage of its own: YAML with comments, C, "
	"CMakeLists.txt",
	"weir new shop", 0, 1, 1, verb_new},
    {"list", "writing", "[FILE] [-o json]",
	"List the stage types a server may use; with FILE, also those of its plug-ins", "weir list",
	VERB_JSON, 0, 1, verb_list},
    {"describe", "writing", "TYPE [FILE] [-o json]",
	"Show the settings of a stage type, or of 'stage', 'group', 'class', 'overload', 'trace', "
	"'log', 'alerts', 'admin', 'token', 'user', 'drain', 'payloads'; with FILE, the type may "
	"come from "
	"its plug-ins",
	"weir describe file.read", VERB_JSON, 1, 2, verb_describe},
    {"schema", "writing", "",
	"Print the JSON Schema of the YAML, for editors that complete and check while typing",
	"weir schema > weir.schema.json", 0, 0, 0, verb_schema},
    {"stage", "writing", "build SOURCE... [-o NAME.so]",
	"Compile a stage type of your own against the installed headers, check that it can be "
	"loaded, and rename it to NAME.so; CC, CFLAGS, LDFLAGS and LDLIBS apply",
	"weir stage build upper.c", VERB_OUTPUT, 1, 64, verb_stage},
    {"check", "checking", "FILE [--set STAGE.KNOB=VALUE]... [-o json]",
	"Report every mistake in the YAML of a server, without starting the server",
	"weir check config/servers/static.yaml", VERB_JSON | VERB_SET, 1, 1, verb_check},
    {"explain", "checking", "FILE [PATH] [--set STAGE.KNOB=VALUE]... [-o json]",
	"Print the effective value of every key, or of those below PATH, and where it comes from",
	"weir explain config/servers/static.yaml stages.disk.threads", VERB_SET | VERB_JSON, 1, 2,
	verb_explain},
    {"graph", "checking", "FILE [-f text|dot|mermaid]", "Draw the stages and links of a server",
	"weir graph config/servers/static.yaml -f dot | dot -Tsvg > graph.svg", VERB_FORMAT, 1, 1,
	verb_graph},
    {"diff", "checking", "FILE [OTHER] [--admin URL] [-o json]",
	"Show what FILE would change in a running server, and how each change takes effect; with "
	"OTHER, what changes from FILE to OTHER",
	"weir diff shop.new.yaml --admin http://127.0.0.1:9900", VERB_JSON | VERB_ADMIN, 1, 2,
	verb_diff},
    {"run", "running", "FILE [--set STAGE.KNOB=VALUE]... [--check]",
	"Run a server until SIGTERM or Ctrl-C, then finish the work it has accepted",
	"weir run config/servers/static.yaml --set disk.threads.max=8", VERB_SET | VERB_CHECK, 1, 1,
	verb_run},
    {"reload", "running", "[--dry-run] [--admin URL] [-o json]",
	"Make a running server reload its configuration; with --dry-run, only show what would "
	"change",
	"weir reload --dry-run", VERB_JSON | VERB_ADMIN | VERB_DRY_RUN, 0, 0, verb_reload},
    {"stop", "running", "[--now] [--admin URL] [-o json]",
	"Stop a running server and wait until it has ended: it finishes the work it has accepted, "
	"or "
	"with --now gives it up",
	"weir stop --admin http://127.0.0.1:9900", VERB_ADMIN | VERB_JSON | VERB_NOW, 0, 0,
	verb_stop},
    {"doctor", "running", "[--threads] [-o json]",
	"Show what would limit a server on this machine; with --threads, also how many threads "
	"are useful",
	"weir doctor --threads", VERB_JSON | VERB_THREADS, 0, 0, verb_doctor},
    {"ps", "watching", "[--admin URL] [-o json]", "Show a running server, one line per stage",
	"weir ps --admin http://127.0.0.1:9900", VERB_JSON | VERB_ADMIN, 0, 0, verb_ps},
    {"why", "watching", "[STAGE | --shed ID] [--admin URL] [-o json]",
	"Explain what limits a running server, why a stage refuses or was resized, or why one "
	"request was refused",
	"weir why work --admin http://127.0.0.1:9900", VERB_ADMIN | VERB_SHED | VERB_JSON, 0, 1,
	verb_why},
    {"overload", "watching", "[off|shadow|enforce] [--admin URL] [-o json]",
	"Show or set the overload kill switch of a running server: the strongest mode that the "
	"admission of its stages may use",
	"weir overload shadow --admin http://127.0.0.1:9900", VERB_ADMIN | VERB_JSON, 0, 1,
	verb_overload},
    {"show", "watching", "STAGE | GROUP [--admin URL] [-o json]",
	"Show one stage of a running server: its state, its counters by class, its live knobs and "
	"their overrides, and each origin of http.client; or the live knobs of a group, and the "
	"cores of a core group",
	"weir show work --admin http://127.0.0.1:9900", VERB_ADMIN | VERB_JSON, 1, 1, verb_show},
    {"queue", "watching", "STAGE [-n N] [--admin URL] [-o json]",
	"List the oldest events waiting at a stage: age, class, time left, type; never their "
	"content",
	"weir queue work -n 5 --admin http://127.0.0.1:9900", VERB_ADMIN | VERB_JSON | VERB_COUNT,
	1, 1, verb_queue},
    {"top", "watching", "[-n FRAMES] [--admin URL] [-o json]",
	"Watch the stages of a running server, updated once a second; keys pause, drain or resume "
	"a stage",
	"weir top --admin http://127.0.0.1:9900", VERB_ADMIN | VERB_COUNT | VERB_JSON, 0, 0,
	verb_top},
    {"profile", "watching", "[--for TIME] [--admin URL] [-o json]",
	"Show what each core and thread did at each stage in the next ten seconds or another time, "
	"how long events waited for it, and what it sent to which stage",
	"weir profile --for 10s --admin http://127.0.0.1:9900", VERB_ADMIN | VERB_JSON | VERB_FOR,
	0, 0, verb_profile},
    {"trace", "watching", "[-n N] [--admin URL] [-o json]",
	"Show where the slowest requests of the last two minutes spent their time, stage by stage",
	"weir trace -n 5 --admin http://127.0.0.1:9900", VERB_ADMIN | VERB_JSON | VERB_COUNT, 0, 0,
	verb_trace},
    {"tap", "watching",
	"STAGE [--slow TIME] [--class NAME] [--outcome ok|shed|failed] [--for TIME] [-n N] "
	"[--admin URL] [-o json]",
	"Show requests that passed through a stage as they end, each with its wait and service "
	"times",
	"weir tap work --slow 100ms --for 10s",
	VERB_ADMIN | VERB_JSON | VERB_COUNT | VERB_FOR | VERB_WHICH, 1, 1, verb_tap},
    {"log", "watching", "[-n N | --all] [--admin URL] [-o json]",
	"Show the decisions of controllers and the changes by operators, newest last",
	"weir log -n 50 --admin http://127.0.0.1:9900",
	VERB_ADMIN | VERB_JSON | VERB_COUNT | VERB_ALL, 0, 0, verb_log},
    {"snapshot", "watching", "FILE.html [--admin URL]",
	"Write the present state of a running server and its last 15 minutes as one HTML page",
	"weir snapshot now.html --admin http://127.0.0.1:9900", VERB_ADMIN, 1, 1, verb_snapshot},
    {"set", "acting",
	"STAGE.KNOB=VALUE | GROUP.KNOB=VALUE | classes.CLASS.slo=TIME [--for TIME] [--admin URL] "
	"[-o json]",
	"Set a knob of a running server, permanently or for a limited time",
	"weir set work.threads.max=8 --for 10m", VERB_ADMIN | VERB_JSON | VERB_FOR, 1, 1, verb_set},
    {"unset", "acting", "STAGE.KNOB | GROUP.KNOB | classes.CLASS.slo [--admin URL] [-o json]",
	"Reset a knob of a running server to its configured value", "weir unset work.threads.max",
	VERB_ADMIN | VERB_JSON, 1, 1, verb_unset},
    {"undo", "acting", "[--admin URL] [-o json]",
	"Undo the newest change to a running server; run it again to undo the one before",
	"weir undo", VERB_ADMIN | VERB_JSON, 0, 0, verb_undo},
    {"purge", "acting", "URL | URL* | tag:NAME | '*' [--admin URL] [-o json]",
	"Remove stored answers from the caches of a running server",
	"weir purge 'http://example.org/news/*'", VERB_ADMIN | VERB_JSON, 1, 1, verb_purge},
    {"pause", "acting", "STAGE [--admin URL] [-o json]",
	"Stop the handlers of a stage from taking work; new events wait in its queue",
	"weir pause work", VERB_ADMIN | VERB_JSON, 1, 1, verb_steer},
    {"resume", "acting", "STAGE [--admin URL] [-o json]", "End a pause or a drain",
	"weir resume work", VERB_ADMIN | VERB_JSON, 1, 1, verb_steer},
    {"drain", "acting", "STAGE [--admin URL] [-o json]",
	"Make a stage refuse new events and finish those it has, until resumed", "weir drain work",
	VERB_ADMIN | VERB_JSON, 1, 1, verb_steer},
    {"save", "acting", "FILE [--admin URL] [--dry-run]",
	"Write the knobs set on a running server into its YAML, keeping everything else as it is",
	"weir save shop.yaml --dry-run", VERB_ADMIN | VERB_DRY_RUN, 1, 1, verb_save},
    {"bench", "measuring", "URL --rate N [OPTION]...",
	"Load a server with requests at fixed times (open loop) and measure how it responds",
	"weir bench http://127.0.0.1:8080/ --rate 2k --for 10s -o run.json", VERB_RAW, 0, 0,
	verb_bench},
    {"simulate", "measuring", "FILE [OPTION]...",
	"Predict the capacity of a server and its behaviour under a load, without running it",
	"weir simulate config/servers/overload.yaml --load 2x --cores 64", VERB_RAW, 0, 0,
	verb_simulate},
    {"compare", "measuring", "RUN RUN... [--force] [-o json]",
	"Show whether load runs were better or worse than the first one named, phase by phase",
	"weir compare before.json after.json", VERB_JSON | VERB_FORCE, 2, 16, verb_compare},
    {"report", "measuring", "RUN... -o FILE [--force]",
	"Write load runs as one HTML page with charts, tables and a verdict",
	"weir report before.json after.json -o report.html", VERB_OUTPUT | VERB_FORCE, 1, 16,
	verb_report},
    {"man", "more", "FOLDER",
	"Write the manual pages into a folder: weir(1), weir.yaml(5) and one per stage type",
	"weir man /tmp && man -l /tmp/weir.1", 0, 1, 1, verb_man},
    {"completion", "more", "bash|zsh|fish",
	"Print a script that lets a shell complete weir command lines",
	"source <(weir completion bash)", 0, 1, 1, verb_completion},
    {"help", "more", "[VERB]", "Show help on weir or on one verb", "weir help run", 0, 0, 1,
	verb_help},
    {"version", "more", "[-o json]", "Print the version and the commit it was built from",
	"weir version", VERB_JSON, 0, 0, verb_version},
    {NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL},
};
