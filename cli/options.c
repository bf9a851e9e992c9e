/* SPDX-License-Identifier: MIT */
/* The options of verbs for people: printed by --help and on the manual page. args.c parses them. */
#include "verb.h"

const struct verb_option_row verb_option_rows[] = {
    {VERB_JSON, "-o json, --json", "print JSON"},
    {VERB_OUTPUT, "-o FILE", "the file to write"},
    {VERB_FORMAT, "-f FORMAT", "text, dot (Graphviz) or mermaid"},
    {VERB_SET, "--set STAGE.KNOB=VALUE",
	"use another value than the file; may be given several times"},
    {VERB_CHECK, "--check", "only check the file, as 'weir check' does"},
    {VERB_FOR, "--for TIME", "for how long: 200ms, 10s, 15m"},
    {VERB_COUNT, "-n N", "how many at most"},
    {VERB_ALL, "--all", "everything that is kept, instead of the newest"},
    {VERB_WHICH, "--slow TIME", "only requests that took at least this long"},
    {VERB_WHICH, "--class NAME", "only requests of this class"},
    {VERB_WHICH, "--outcome OUTCOME", "only requests that ended as ok, shed or failed"},
    {VERB_SHED, "--shed ID", "explain the refusal of the request whose X-Weir-Shed has this id"},
    {VERB_NOW, "--now", "do not wait for accepted work"},
    {VERB_DRY_RUN, "--dry-run", "only show what would change"},
    {VERB_FORCE, "--force", "compare runs even if their conditions differ"},
    {VERB_THREADS, "--threads", "also measure how many threads are useful, for some seconds"},
    {VERB_ADMIN, "--admin URL",
	"admin endpoint of the server; default $WEIR_ADMIN, else http://127.0.0.1:9900"},
    {VERB_ADMIN, "--token-file FILE",
	"file with the token of the endpoint; default $WEIR_TOKEN_FILE"},
    {VERB_ADMIN, "--ca FILE", "PEM file with the authority that signed the endpoint's certificate"},
    {VERB_ADMIN, "--timeout TIME", "longest time for all answers; default 30s"},
    {0, "-h, --help", "show this help"},
    {0, NULL, NULL},
};

bool verb_takes(const struct verb *verb, const struct verb_option_row *row)
{
	return row->bit == 0 || verb->options & row->bit;
}
