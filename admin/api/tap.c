/* SPDX-License-Identifier: MIT */
/* Returns the requests that pass through a stage as JSON; see requests.h. */
#include <stdlib.h>
#include <string.h>

#include <weir/knob.h>

#include "framework/base/json.h"
#include "requests.h"

/* Default number of rows: a tap stores at most this number between two reads. */
#define TAP_DEFAULT 256

/* The maximum of one hour is a guess; to find slower requests, no tap is needed. */
static const struct weir_knob slow_row = {
    .name = "slow", .type = WEIR_KNOB_DURATION, .min = 0, .max = 3600e9};

/* Parse parameter "after=" of the query, 1 to 18 digits. *after is 0 if it is missing. */
static bool query_after(const char *query, uint64_t *after)
{
	char text[20];
	const char *p = strncmp(query, "after=", 6) == 0 ? query : strstr(query, "&after=");

	*after = 0;
	if (!p)
		return true;
	if (!query_text(query, "after", text, sizeof(text)) || !*text || strlen(text) > 18 ||
	    text[strspn(text, "0123456789")])
		return false;
	*after = strtoull(text, NULL, 10);
	return true;
}

static bool query_outcome(const char *query, int *outcome)
{
	static const struct {
		const char *name;
		int outcome;
	} outcomes[] = {{"", -1}, {"ok", WEIR_OUTCOME_DONE}, {"shed", WEIR_OUTCOME_SHED},
	    {"failed", WEIR_OUTCOME_FAILED}};
	char text[8];

	if (!query_text(query, "outcome", text, sizeof(text)))
		return false;
	for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++)
		if (strcmp(text, outcomes[i].name) == 0) {
			*outcome = outcomes[i].outcome;
			return true;
		}
	return false;
}

/* Parse the query. Returns false with the reply filled. */
static bool query_tap(
    const struct call *c, struct weir_tap *tap, uint64_t *after, int *n, struct reply *r)
{
	char text[24], why[160];

	*tap = (struct weir_tap){.stage = c->name[0], .class_id = -1, .outcome = -1};
	if (!query_n(c->query, n)) {
		reply_problem(r, 400, "n must be a whole number from 1 to 500");
		return false;
	}
	if (!query_after(c->query, after)) {
		reply_problem(
		    r, 400, "after must be a whole number, the 'after' of an earlier response");
		return false;
	}
	if (!query_outcome(c->query, &tap->outcome)) {
		reply_problem(r, 400, "outcome must be ok, shed or failed");
		return false;
	}
	if (!query_text(c->query, "slow", text, sizeof(text))) {
		reply_problem(r, 400, "slow must be a duration, such as 100ms");
		return false;
	}
	if (*text && weir_knob_parse(&slow_row, text, &tap->slow_ns, why, sizeof(why)) != 0) {
		reply_problem(r, 400, "slow: %s", why);
		return false;
	}
	return query_class(c, &tap->class_id, r);
}

static void reply_tap(
    const struct weir_slow *slow, int n, const struct weir_tap_state *state, struct reply *r)
{
	json_t *list = json_array();

	for (int i = 0; i < n; i++)
		json_push(&list, slow_json(&slow[i]));
	reply_json(r, 200,
	    json_pack("{s:I, s:I, s:o}", "after", (json_int_t)state->next, "dropped",
		(json_int_t)state->dropped, "requests", list));
}

void answer_tap(const struct call *c, struct reply *r)
{
	struct weir_tap_state state = {0};
	struct weir_tap tap;
	uint64_t after;
	int n = TAP_DEFAULT;

	if (!query_tap(c, &tap, &after, &n, r))
		return;
	struct weir_slow *slow = calloc((unsigned)n, sizeof(*slow));
	int found = slow ? WEIR_ENOENT : WEIR_ENOMEM;
	if (slow && c->source->tap)
		found = c->source->tap(c->source->arg, &tap, after, slow, n, &state);
	if (found >= 0) {
		reply_tap(slow, found, &state, r);
	} else if (found == WEIR_EBUSY) {
		reply_problem(r, 503,
		    "the maximum number of taps is open: try again later; a tap that is not read "
		    "ends within seconds");
	} else if (found == WEIR_ENOENT) {
		struct weir_graph_view *v = take_view(c, r);
		if (v && find_stage(v, c->name[0], r))
			reply_problem(r, 503, "this server does not support taps");
		if (v)
			c->source->view_free(v);
	} else {
		reply_problem(r, 503, "out of memory");
	}
	free(slow);
}
