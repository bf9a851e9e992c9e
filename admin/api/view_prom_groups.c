/* SPDX-License-Identifier: MIT */
/*
 * Writes the families of core groups: those of a group, of a core of a group, and of a stage on a
 * core. Dashboards depend on the names, so rows are only added, never renamed (view_prom.c).
 */
#include "view_prom_groups.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "admin/metrics/prom.h"

enum scope {
	SCOPE_GROUP,
	SCOPE_CORE, /* each core of a group */
	SCOPE_STAGE_CORE,
};

/** A family, or a part of one: rows with the same name are one family, and differ in the label. */
struct family {
	const char *name, *kind, *help;
	enum scope scope;
	const char *label, *value; /* one more label; NULL: none */
	/** Print the value of a group (`core` is NULL), or of a core. */
	void (*print)(struct textbuf *out, const struct weir_group_view *g,
	    const struct weir_core_view *core);
};

#define PRINT_CORE(fn, print, expr)                                                                \
	static void fn(                                                                            \
	    struct textbuf *out, const struct weir_group_view *g, const struct weir_core_view *c)  \
	{                                                                                          \
		(void)g;                                                                           \
		print(out, expr);                                                                  \
	}

PRINT_CORE(by_policy, prom_count, c->visits - c->urgent - c->starved)
PRINT_CORE(by_urgent, prom_count, c->urgent)
PRINT_CORE(by_starve, prom_count, c->starved)
PRINT_CORE(cut_gate, prom_count, c->cut_gate)
PRINT_CORE(cut_urgent, prom_count, c->cut_urgent)
PRINT_CORE(cut_starved, prom_count, c->cut_starved)
PRINT_CORE(from_cell, prom_count, c->events - c->from_queue)
PRINT_CORE(from_queue, prom_count, c->from_queue)
PRINT_CORE(batches, prom_count, c->batches)
PRINT_CORE(dealt, prom_count, c->dealt)
PRINT_CORE(moved, prom_count, c->moved)
PRINT_CORE(blocked, prom_count, c->blocked)
PRINT_CORE(waiting, prom_count, c->waiting)
PRINT_CORE(oldest_wait, prom_seconds, c->oldest_wait_ns)
PRINT_CORE(longest_wait, prom_seconds, c->longest_wait_ns)
PRINT_CORE(busy, prom_seconds, (int64_t)c->busy_ns)

static void one(
    struct textbuf *out, const struct weir_group_view *g, const struct weir_core_view *c)
{
	(void)c;
	prom_label(out, "schedule", g->schedule);
	prom_label(out, "gate", g->gate);
	prom_count(out, 1);
}

static void cores(
    struct textbuf *out, const struct weir_group_view *g, const struct weir_core_view *c)
{
	(void)c;
	prom_signed(out, g->cores);
}

static void starve(
    struct textbuf *out, const struct weir_group_view *g, const struct weir_core_view *c)
{
	(void)c;
	prom_seconds(out, g->starve_ns);
}

static void balance(
    struct textbuf *out, const struct weir_group_view *g, const struct weir_core_view *c)
{
	(void)c;
	prom_count(out, g->balance);
}

#define VISITS                                                                                     \
	"weir_stage_core_visits_total", "counter",                                                 \
	    "Visits of the stage by a core of its group, by what began them", SCOPE_STAGE_CORE
#define CUTS                                                                                       \
	"weir_stage_core_cuts_total", "counter",                                                   \
	    "Visits of the stage that ended or paused while it had events, by the cause",          \
	    SCOPE_STAGE_CORE
#define EVENTS                                                                                     \
	"weir_stage_core_events_total", "counter",                                                 \
	    "Events that a core of the stage's group took, from its cell or from the queue",       \
	    SCOPE_STAGE_CORE

static const struct family family[] = {
    {"weir_core_group_info", "gauge", "The settings of a core group; the value is always 1",
	SCOPE_GROUP, NULL, NULL, one},
    {"weir_core_group_cores", "gauge", "Cores of the group", SCOPE_GROUP, NULL, NULL, cores},
    {"weir_core_group_starve_seconds", "gauge",
	"Wait after which the stage of an event is visited next; 0: never", SCOPE_GROUP, NULL, NULL,
	starve},
    {"weir_core_group_balance", "gauge", "1 if events are given to idle cores", SCOPE_GROUP, NULL,
	NULL, balance},
    {"weir_core_group_busy_seconds_total", "counter",
	"Time in which the core took, handled and sent events", SCOPE_CORE, NULL, NULL, busy},
    {"weir_core_group_blocked_total", "counter",
	"Handler calls in which the core was asleep for 5 ms or longer", SCOPE_CORE, NULL, NULL,
	blocked},
    {VISITS, "why", "policy", by_policy},
    {VISITS, "why", "urgent", by_urgent},
    {VISITS, "why", "starved", by_starve},
    {CUTS, "by", "gate", cut_gate},
    {CUTS, "by", "urgent", cut_urgent},
    {CUTS, "by", "starved", cut_starved},
    {"weir_stage_core_batches_total", "counter",
	"Calls of the stage's handler by a core of its group", SCOPE_STAGE_CORE, NULL, NULL,
	batches},
    {EVENTS, "from", "cell", from_cell},
    {EVENTS, "from", "queue", from_queue},
    {"weir_stage_core_dealt_total", "counter",
	"Events that a core sent to the queue of the stage since another core was idle",
	SCOPE_STAGE_CORE, NULL, NULL, dealt},
    {"weir_stage_core_moved_total", "counter",
	"Slots of serial keys that a core has given to idle cores, in all serial stages at once",
	SCOPE_STAGE_CORE, NULL, NULL, moved},
    {"weir_stage_core_blocked_total", "counter",
	"Calls of the stage's handler in which a core was asleep for 5 ms or longer",
	SCOPE_STAGE_CORE, NULL, NULL, blocked},
    {"weir_stage_core_busy_seconds_total", "counter",
	"Time in which the core took, handled and sent events of the stage", SCOPE_STAGE_CORE, NULL,
	NULL, busy},
    {"weir_stage_core_waiting", "gauge", "Events that wait for the stage in the cell of a core",
	SCOPE_STAGE_CORE, NULL, NULL, waiting},
    {"weir_stage_core_oldest_wait_seconds", "gauge",
	"Age of the oldest event that waits for the stage in the cell of a core", SCOPE_STAGE_CORE,
	NULL, NULL, oldest_wait},
    {"weir_stage_core_longest_wait_seconds", "gauge",
	"Longest wait of an event of the stage until the core took it, in the last 30 to 60 s",
	SCOPE_STAGE_CORE, NULL, NULL, longest_wait},
};

#define FAMILIES (sizeof(family) / sizeof(family[0]))

/* Print a sample of each of f[0..n), the rows of a family. `stage` and `core` are NULL if they do
 * not apply. */
static void print(struct textbuf *out, const struct family *f, size_t n,
    const struct weir_group_view *g, const struct weir_stage_view *stage, int k,
    const struct weir_core_view *core)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", k);
	for (size_t i = 0; i < n; i++) {
		prom_begin(out, f[i].name, "");
		if (stage)
			prom_label(out, "stage", stage->name);
		else
			prom_label(out, "group", g->name);
		if (core)
			prom_label(out, "core", number);
		if (f[i].label)
			prom_label(out, f[i].label, f[i].value);
		f[i].print(out, g, core);
	}
}

static void print_group(
    struct textbuf *out, const struct family *f, size_t n, const struct weir_group_view *g)
{
	if (f->scope == SCOPE_GROUP)
		print(out, f, n, g, NULL, 0, NULL);
	for (int k = 0; f->scope == SCOPE_CORE && k < g->n_cores; k++)
		print(out, f, n, g, NULL, k, &g->core[k]);
	for (int i = 0; f->scope == SCOPE_STAGE_CORE && i < g->n_stages; i++) {
		const struct weir_stage_view *s = g->stages[i].stage;
		for (int k = 0; k < s->n_cores; k++)
			print(out, f, n, g, s, k, &s->cores[k]);
	}
}

void view_prom_groups(const struct weir_graph_view *v, struct textbuf *out)
{
	for (size_t i = 0, n; i < FAMILIES; i += n) {
		for (n = 1; i + n < FAMILIES && strcmp(family[i + n].name, family[i].name) == 0;
		     n++)
			;
		prom_head(out, family[i].name, family[i].kind, family[i].help);
		for (int k = 0; k < v->n_groups; k++)
			print_group(out, &family[i], n, &v->groups[k]);
	}
}
