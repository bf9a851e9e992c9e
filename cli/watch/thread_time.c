/* SPDX-License-Identifier: MIT */
/* Prints what threads spend their time on; see thread_time.h. */
#include "thread_time.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/act.h"
#include "cli/client/plain.h"

/* Largest number of states. The server may have states that this program does not know. */
#define STATES_MAX 32

/* Share from which on a state is shown. */
#define SHARE_MIN 0.005

struct state {
	const char *name;
	double seconds;
};

static int by_time(const void *a, const void *b)
{
	double x = ((const struct state *)a)->seconds, y = ((const struct state *)b)->seconds;

	return (x < y) - (x > y);
}

void thread_time_print(const json_t *stage)
{
	struct state state[STATES_MAX];
	int n = 0, shown = 0;
	double all = 0;
	const char *name;
	json_t *map = json_deep_copy(json_object_get(stage, "thread_seconds_total")), *value;

	json_object_foreach(map, name, value)
	{
		if (n == STATES_MAX || !(json_number_value(value) > 0))
			continue;
		state[n++] = (struct state){name, json_number_value(value)};
		all += json_number_value(value);
	}
	qsort(state, (size_t)n, sizeof(state[0]), by_time);
	for (int i = 0; i < n; i++) {
		if (state[i].seconds < SHARE_MIN * all)
			continue;
		plain_print(stdout, "%s%s %.0f %%", shown++ ? ", " : "time       ", state[i].name,
		    100 * state[i].seconds / all);
	}
	if (shown > 0)
		plain_print(stdout, " of the threads' time\n");
	json_decref(map);
}

bool thread_is_stuck(const json_t *stage)
{
	return json_is_true(json_object_get(json_object_get(stage, "stuck_call"), "running"));
}

void thread_stuck_print(const json_t *stage, const char *label, bool whole)
{
	const json_t *call = json_object_get(stage, "stuck_call");
	const json_t *stack = json_object_get(call, "stack");
	bool running = thread_is_stuck(stage);
	char at[32], took[32];

	if (!json_is_object(call))
		return;
	plain_print(stdout,
	    "%sa handler %s in thread %s for %s (found at %s), on events of type %s%s\n", label,
	    running ? "has run" : "had run", act_text(call, "thread"),
	    act_duration(took, json_number_value(json_object_get(call, "seconds"))),
	    act_time(at, json_number_value(json_object_get(call, "time"))), act_text(call, "type"),
	    running ? "" : ", when it was found; it has returned");
	for (size_t i = 0; whole && i < json_array_size(stack); i++)
		plain_print(stdout, "%*s#%zu %s\n", (int)strlen(label), "", i,
		    json_string_value(json_array_get(stack, i)));
	if (whole && json_array_size(stack) == 0)
		plain_print(stdout, "%*sits call stack is not known\n", (int)strlen(label), "");
}
