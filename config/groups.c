/* SPDX-License-Identifier: MIT */
/* Describes core groups in words; see groups.h. */
#include "groups.h"

#include <stdlib.h>
#include <string.h>

#include <weir/knob.h>
#include <weir/stage.h>

/* Share of the shortest objective that `starve: auto` stands for (docs/concepts.md). */
#define STARVE_SHARE 0.05

bool group_is_core(const struct weir_group_spec *group)
{
	return group->schedule && strcmp(group->schedule, "shared") != 0;
}

static const char *duration(char buf[32], int64_t ns)
{
	const struct weir_knob row = {.type = WEIR_KNOB_DURATION};

	weir_knob_print(&row, &ns, buf, 32);
	return buf;
}

static bool is_member(const struct weir_stage_spec *s, const struct weir_group_spec *group)
{
	return !s->inlined && s->group && strcmp(s->group, group->name) == 0;
}

/* Return the name of the source whose I/O threads are the cores of the group, or NULL. */
static const char *source_of(const struct weir_spec *spec, const struct weir_group_spec *group)
{
	for (int i = 0; i < spec->n_stages; i++) {
		const struct weir_stage_ops *ops = weir_stage_type_find(spec->stages[i].use);
		if (is_member(&spec->stages[i], group) && ops && ops->flags & WEIR_STAGE_SOURCE)
			return spec->stages[i].name;
	}
	return NULL;
}

/* Write "2 cores", "2 to 8 cores", "2 to all cores", "CPUs 0-3,6", "all cores" or "the I/O threads of
 * web" to buf[size]. */
static void cores_text(
    const struct weir_spec *spec, const struct weir_group_spec *group, char *buf, size_t size)
{
	const char *cores = group->cores ? group->cores : "auto", *to = strstr(cores, "..");
	const char *source = source_of(spec, group);

	if (source)
		snprintf(buf, size, "the I/O threads of %.80s", source);
	else if (strcmp(cores, "auto") == 0)
		snprintf(buf, size, "all cores");
	else if (strspn(cores, "0123456789") == strlen(cores))
		snprintf(buf, size, "%.40s core%s", cores, strcmp(cores, "1") == 0 ? "" : "s");
	else if (to)
		snprintf(buf, size, "%.*s to %.20s cores", (int)(to - cores), cores,
		    strcmp(to, "..auto") == 0 ? "all" : to + 2);
	else
		snprintf(buf, size, "CPUs %.40s", cores);
}

/* The number of cores of each copy of the group; 0 if the file does not say it. */
static long copy_cores(const struct weir_spec *spec, const struct weir_group_spec *group)
{
	const char *cores = group->cores ? group->cores : "auto";
	bool number = *cores && strspn(cores, "0123456789") == strlen(cores);

	return number && !source_of(spec, group)
		   ? strtol(cores, NULL, 10) / (group->replicas > 1 ? (long)group->replicas : 1)
		   : 0;
}

/* Write "2 copies of 4 cores each" or "2 copies with equal shares of the cores" to buf[size]. */
static void copies_text(
    const struct weir_spec *spec, const struct weir_group_spec *group, char *buf, size_t size)
{
	long n = copy_cores(spec, group);

	if (n > 0)
		snprintf(buf, size, "%lld copies of %ld core%s each", (long long)group->replicas, n,
		    n == 1 ? "" : "s");
	else
		snprintf(buf, size, "%lld copies with equal shares of the cores",
		    (long long)group->replicas);
}

void group_brief(
    const struct weir_spec *spec, const struct weir_group_spec *group, char *buf, size_t size)
{
	char cores[128], copies[80] = "", gate[64], time[32];
	const struct weir_gate_spec *g = &group->gate;

	cores_text(spec, group, cores, sizeof(cores));
	if (g->arrived)
		snprintf(gate, sizeof(gate), "arrived: true");
	else if (g->events > 0)
		snprintf(gate, sizeof(gate), "events: %lld", (long long)g->events);
	else if (g->time_ns > 0)
		snprintf(gate, sizeof(gate), "time: %s", duration(time, g->time_ns));
	else if (g->cutoff_ns > 0)
		snprintf(gate, sizeof(gate), "cutoff: %s", duration(time, g->cutoff_ns));
	else
		snprintf(gate, sizeof(gate), "all");
	if (group->replicas > 1)
		copies_text(spec, group, copies, sizeof(copies));
	snprintf(buf, size, "%.40s, %s%s%s, gate %s", group->schedule, cores, *copies ? ", " : "",
	    copies, gate);
}

/* Return what the schedule does, "" for an unknown one. */
static const char *schedule_help(const char *name)
{
	const struct weir_knob *row = weir_knob_find(weir_group_knobs, "schedule");
	struct weir_option option;

	for (int i = 0; row && row->option && row->option(i, &option); i++)
		if (strcmp(option.name, name) == 0)
			return option.help;
	return "";
}

static void gate_words(const struct weir_gate_spec *g, FILE *out)
{
	bool gated = g->arrived || g->events > 0 || g->time_ns > 0;
	char time[32];

	if (g->cutoff_ns > 0)
		fprintf(out,
		    "# An event that takes over %s waits for the next visit, if its handler asks "
		    "for the time.\n",
		    duration(time, g->cutoff_ns));

	fputs("# A visit of a stage ends ", out);
	if (g->arrived)
		fputs("when the events that waited at its begin are done", out);
	else if (g->events > 0)
		fprintf(out, "after %lld event%s", (long long)g->events, g->events == 1 ? "" : "s");
	else if (g->time_ns > 0)
		fprintf(out, "with the first batch that is done %s or more after it began",
		    duration(time, g->time_ns));
	fprintf(out, "%s the stage has no more events on the core.\n",
	    gated ? ", or earlier, if" : "when");
}

static void starve_words(
    const struct weir_spec *spec, const struct weir_group_spec *group, FILE *out)
{
	int64_t slo_ns = INT64_MAX, ns = group->starve_ns;
	char time[32], slo[32];

	for (int i = 0; i < spec->n_stages; i++) {
		int64_t own_ns = weir_spec_slo_ns(spec, &spec->stages[i]);
		if (is_member(&spec->stages[i], group) && own_ns < slo_ns)
			slo_ns = own_ns;
	}
	if (ns == 0) {
		fputs("# A stage may wait without limit while others are visited (starve: 0).\n",
		    out);
		return;
	}
	if (ns < 0 && slo_ns == INT64_MAX)
		return; /* no stage is in the group */
	fputs("# A stage whose oldest event has waited for over ", out);
	if (ns > 0)
		fprintf(out, "%s is next.\n", duration(time, ns));
	else
		fprintf(out, "%s is next: 5%% of the shortest objective, %s.\n",
		    duration(time, (int64_t)((double)slo_ns * STARVE_SHARE)),
		    duration(slo, slo_ns));
}

static void urgent_words(
    const struct weir_spec *spec, const struct weir_group_spec *group, FILE *out)
{
	char time[32];

	for (int i = 0; i < spec->n_stages; i++) {
		const struct weir_stage_spec *s = &spec->stages[i];
		const struct weir_urgent_spec *u = &s->urgent;
		if (!is_member(s, group) || (u->events == 0 && u->wait_ns == 0))
			continue;
		fprintf(out, "# '%s' interrupts other stages when ", s->name);
		if (u->events > 0)
			fprintf(out, "%lld of its events wait on the core", (long long)u->events);
		if (u->wait_ns > 0)
			fprintf(out, "%sone has waited for %s", u->events > 0 ? " or " : "",
			    duration(time, u->wait_ns));
		fputs(".\n", out);
	}
}

static bool is_serial(const struct weir_stage_spec *s, const struct weir_group_spec *group)
{
	const char *own = s->serial && s->serial[0] ? s->serial : group->serial;

	return own && own[0] && strcmp(own, "none") != 0;
}

/* Whether each copy of the group, or the only one, has one core. */
static bool has_one_core(const struct weir_spec *spec, const struct weir_group_spec *group)
{
	return copy_cores(spec, group) == 1;
}

/* Say what a core without work gets from the others. */
static void balance_words(
    const struct weir_spec *spec, const struct weir_group_spec *group, FILE *out)
{
	int n = 0, serial = 0, replicated = 0;

	for (int i = 0; i < spec->n_stages; i++) {
		const struct weir_stage_spec *s = &spec->stages[i];
		const struct weir_stage_ops *ops = weir_stage_type_find(s->use);
		if (!is_member(s, group) || (ops && ops->flags & WEIR_STAGE_SOURCE))
			continue;
		n++;
		serial += is_serial(s, group);
		replicated += !is_serial(s, group) && s->mode == WEIR_MODE_REPLICATED;
	}
	if (has_one_core(spec, group))
		fputs(group->replicas > 1
			  ? "# A copy has one core, which gets no events of others.\n"
			  : "# The core gets no events of others: it is the only "
			    "one.\n",
		    out);
	else if (!group->balance)
		fputs("# Idle cores get no events of others (balance: false).\n", out);
	else if (n > 0 && replicated == n)
		fputs("# Idle cores get no events of others: those of replicated stages stay on "
		      "their core.\n",
		    out);
	else
		fprintf(out, "# Idle cores get events of others%s%s%s.\n",
		    group->replicas > 1 ? " of their copy" : "",
		    serial ? "; of serial stages, only all events of some keys" : "",
		    replicated ? "; of replicated stages, none" : "");
}

void group_words(const struct weir_spec *spec, const struct weir_group_spec *group, FILE *out)
{
	char cores[128], copies[80];

	cores_text(spec, group, cores, sizeof(cores));
	fprintf(out, "# Core group '%s' runs on %s.\n", group->name,
	    strcmp(cores, "all cores") == 0 ? "all cores that the process may use" : cores);
	if (group->replicas > 1) {
		copies_text(spec, group, copies, sizeof(copies));
		fprintf(out, "# It is %s; an event stays in its copy.\n", copies);
	}
	fprintf(out, "# A core chooses the stage that it visits next by %s: %s.\n", group->schedule,
	    schedule_help(group->schedule));
	gate_words(&group->gate, out);
	starve_words(spec, group, out);
	urgent_words(spec, group, out);
	fprintf(out, "# Of the events of a stage on a core, the %s is served first.\n",
	    group->order == WEIR_ORDER_NEWEST ? "newest" : "oldest");
	if (group->serial && group->serial[0] && strcmp(group->serial, "none") != 0)
		fprintf(out, "# Events with the same '%s' do not overlap, and keep their order.\n",
		    group->serial);
	balance_words(spec, group, out);
}

char *group_note(const struct weir_spec *spec, const struct weir_group_spec *group)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (out)
		group_words(spec, group, out);
	if (!out || fclose(out) != 0) {
		free(text);
		return NULL;
	}
	char *to = text;
	for (const char *p = text; *p; p++) {
		bool first = p == text || p[-1] == '\n';
		if (first && p[0] == '#' && p[1] == ' ')
			p++;
		else if (*p != '\n' || p[1])
			*to++ = *p == '\n' ? ' ' : *p;
	}
	*to = '\0';
	return text;
}
