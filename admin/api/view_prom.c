/* SPDX-License-Identifier: MIT */
/*
 * Formats a snapshot as Prometheus text, by printing the rows of a table of families. Dashboards
 * depend on the names, so rows are only added, never renamed.
 *
 * Most rows specify the offset of a member of the view; rows that need additional labels have a
 * function. The `_count` of a histogram is computed as the sum of the buckets that were read. It
 * therefore always equals the +Inf bucket, even if the counters change while they are read.
 */
#include "view_prom.h"

#include <stdio.h>
#include <string.h>

#include "health.h"
#include "view_prom_groups.h"
#include "view_prom_types.h"
#include "admin/metrics/prom.h"

/* Which objects have samples of a family. */
enum scope {
	SCOPE_GRAPH,
	SCOPE_STAGE,
	/* stages with a queue and threads: neither sources nor inline stages without a width */
	SCOPE_QUEUE,
	SCOPE_CLASS, /* each class at each stage */
	SCOPE_QUEUE_CLASS,
	SCOPE_WIDE,    /* stages with a width */
	SCOPE_CLIENTS, /* sources with a limit of clients per thread */
	SCOPE_ANSWERS, /* each class at each source */
};

/* The type of the member of a view that a family reads. */
enum member { MEMBER_COUNT, MEMBER_INT, MEMBER_INT64, MEMBER_NS, MEMBER_REAL, MEMBER_HIST };

/* The object that a sample belongs to. Members that do not apply to the scope are NULL. */
struct about {
	const struct weir_graph_view *view;
	const struct weir_stage_view *stage;
	const struct weir_class_view *class_view;
	const char *class_name;
	const struct weir_answer_view *answers;
	const char *outcome; /* for about_labels */
};

struct family {
	const char *name, *kind, *help;
	enum scope scope;
	enum member member;
	size_t offset; /* in the view, stage view or class view, by scope */
	/** Print all samples of the family for `a`. If NULL, the member at the offset is
	 *  printed. */
	void (*print)(struct textbuf *out, const struct family *f, const struct about *a);
};

static void about_labels(struct textbuf *out, const void *arg)
{
	const struct about *a = arg;

	if (a->stage)
		prom_label(out, "stage", a->stage->name);
	if (a->class_name)
		prom_label(out, "class", a->class_name);
	if (a->outcome)
		prom_label(out, "outcome", a->outcome);
}

static void begin(struct textbuf *out, const struct family *f, const struct about *a)
{
	prom_begin(out, f->name, "");
	about_labels(out, a);
}

static const void *member_of(const struct family *f, const struct about *a)
{
	const void *base = a->class_view ? (const void *)a->class_view
			   : a->stage    ? (const void *)a->stage
					 : (const void *)a->view;

	return (const char *)base + f->offset;
}

static void print_member(struct textbuf *out, const struct family *f, const struct about *a)
{
	const void *p = member_of(f, a);

	if (f->member == MEMBER_HIST) {
		prom_hist(out, f->name, p, about_labels, a);
		return;
	}
	begin(out, f, a);
	if (f->member == MEMBER_COUNT)
		prom_count(out, *(const uint64_t *)p);
	else if (f->member == MEMBER_INT)
		prom_signed(out, *(const int *)p);
	else if (f->member == MEMBER_INT64)
		prom_signed(out, *(const int64_t *)p);
	else if (f->member == MEMBER_NS)
		prom_seconds(out, *(const int64_t *)p);
	else
		prom_real(out, *(const double *)p);
}

/* ---- families with additional labels ---- */

static void print_out(struct textbuf *out, const struct family *f, const struct about *a)
{
	for (int i = 0; i < a->stage->n_links; i++) {
		const char *outlet = a->stage->links[i].outlet;
		begin(out, f, a);
		prom_label(out, "outlet", outlet ? outlet : "");
		prom_count(out, a->stage->links[i].events_total);
	}
}

static void print_answers(struct textbuf *out, const struct family *f, const struct about *a)
{
	static const char *const word[WEIR_OUTCOMES] = {"ok", "shed", "failed"};
	struct about by = *a;

	for (int o = 0; o < WEIR_OUTCOMES; o++) {
		by.outcome = word[o];
		prom_hist(out, f->name, &a->answers->by[o], about_labels, &by);
	}
}

static void print_shed(struct textbuf *out, const struct family *f, const struct about *a)
{
	for (int i = 0; i < WEIR_SHED_REASONS; i++) {
		begin(out, f, a);
		prom_label(out, "reason", weir_error_word(weir_shed_code(i)));
		prom_count(out, a->class_view->shed[i]);
	}
}

static void print_payloads(struct textbuf *out, const struct family *f, const struct about *a)
{
	static const char *const word[WEIR_PAYLOAD_REFUSALS] = {
	    [WEIR_PAYLOAD_MEMORY] = "memory",
	    [WEIR_PAYLOAD_BUDGET] = "budget",
	    [WEIR_PAYLOAD_SLOTS] = "slots",
	    [WEIR_PAYLOAD_FAMILY] = "family",
	};

	for (int i = 0; i < WEIR_PAYLOAD_REFUSALS; i++) {
		begin(out, f, a);
		prom_label(out, "reason", word[i]);
		prom_count(out, a->stage->payload_refused[i]);
	}
}

static void print_children_ended(struct textbuf *out, const struct family *f, const struct about *a)
{
	const struct {
		const char *how;
		uint64_t n;
	} ended[] = {
	    {"joined", a->stage->joined},
	    {"orphaned", a->stage->orphaned},
	    {"cancelled", a->stage->cancelled},
	};

	for (size_t i = 0; i < sizeof(ended) / sizeof(ended[0]); i++) {
		begin(out, f, a);
		prom_label(out, "how", ended[i].how);
		prom_count(out, ended[i].n);
	}
}

static void print_threads(struct textbuf *out, const struct family *f, const struct about *a)
{
	static const char *const word[WEIR_THREAD_STATES] = {
	    [WEIR_THREAD_BUSY] = "busy",
	    [WEIR_THREAD_SPINNING] = "spinning",
	    [WEIR_THREAD_IDLE] = "idle",
	};

	for (int i = 0; i < WEIR_THREAD_STATES; i++) {
		begin(out, f, a);
		prom_label(out, "state", word[i]);
		prom_signed(out, a->stage->threads[i]);
	}
}

static void print_times(struct textbuf *out, const struct family *f, const struct about *a)
{
	for (int i = 0; i < WEIR_TIMES; i++) {
		if (i == WEIR_TIME_RUNNABLE && !a->stage->times_known)
			continue;
		begin(out, f, a);
		prom_label(out, "state", weir_thread_time_words[i]);
		prom_seconds(out, (int64_t)a->stage->time_ns[i]);
	}
}

static void print_thread_limits(struct textbuf *out, const struct family *f, const struct about *a)
{
	const struct {
		const char *word;
		int value;
	} bound[] = {
	    {"min", a->stage->threads_min},
	    {"max", a->stage->threads_max},
	    {"target", a->stage->threads_target},
	};

	for (size_t i = 0; i < sizeof(bound) / sizeof(bound[0]); i++) {
		begin(out, f, a);
		prom_label(out, "bound", bound[i].word);
		prom_signed(out, bound[i].value);
	}
}

static void print_cohort(struct textbuf *out, const struct family *f, const struct about *a)
{
	uint64_t below = 0;
	char le[16];

	for (int b = 0; b < WEIR_COHORT_BUCKETS; b++) {
		below += a->stage->cohorts[b];
		snprintf(le, sizeof(le), "%d", 1 << b);
		prom_begin(out, f->name, "_bucket");
		about_labels(out, a);
		prom_label(out, "le", le);
		prom_count(out, below);
	}
	prom_begin(out, f->name, "_bucket");
	about_labels(out, a);
	prom_label(out, "le", "+Inf");
	prom_count(out, below);
	prom_begin(out, f->name, "_sum");
	about_labels(out, a);
	prom_count(out, a->stage->batch_events);
	prom_begin(out, f->name, "_count");
	about_labels(out, a);
	prom_count(out, below);
}

static void print_state(struct textbuf *out, const struct family *f, const struct about *a)
{
	static const char *const word[] = {"running", "paused", "draining", "drained"};
	const char *state = a->stage->state ? a->stage->state : word[0];

	for (size_t i = 0; i < sizeof(word) / sizeof(word[0]); i++) {
		begin(out, f, a);
		prom_label(out, "state", word[i]);
		prom_count(out, strcmp(state, word[i]) == 0);
	}
}

static void print_ready(struct textbuf *out, const struct family *f, const struct about *a)
{
	begin(out, f, a);
	prom_count(out, a->view->ready && !a->view->draining && !health_troubled(a->view));
}

static void print_build(struct textbuf *out, const struct family *f, const struct about *a)
{
	begin(out, f, a);
	prom_label(out, "version", WEIR_VERSION);
	prom_label(out, "commit", WEIR_COMMIT);
	prom_count(out, 1);
}

static void print_uptime(struct textbuf *out, const struct family *f, const struct about *a)
{
	begin(out, f, a);
	prom_seconds(out, a->view->started_ns ? a->view->now_ns - a->view->started_ns : 0);
}

/* ---- the table ---- */

#define OF_STAGE(member) offsetof(struct weir_stage_view, member), NULL
#define OF_CLASS(member) offsetof(struct weir_class_view, member), NULL
#define BY(print)        0, print

static const struct family family[] = {
    {"weir_build_info", "gauge", "The running version; the value is always 1", SCOPE_GRAPH, 0,
	BY(print_build)},
    {"weir_ready", "gauge", "1 while /readyz reports that the server accepts work", SCOPE_GRAPH, 0,
	BY(print_ready)},
    {"weir_uptime_seconds", "gauge", "Time since the graph was started", SCOPE_GRAPH, 0,
	BY(print_uptime)},
    {"weir_controller_decisions_total", "counter",
	"Decisions of controllers and operators written to the journal", SCOPE_GRAPH, MEMBER_COUNT,
	offsetof(struct weir_graph_view, decided_total), NULL},
    {"weir_trace_collected_total", "counter", "Requests picked for the trace export", SCOPE_GRAPH,
	MEMBER_COUNT, offsetof(struct weir_graph_view, collect.collected), NULL},
    {"weir_trace_dropped_total", "counter",
	"Requests picked for the trace export but dropped, since the queue of the export was full",
	SCOPE_GRAPH, MEMBER_COUNT, offsetof(struct weir_graph_view, collect.dropped), NULL},
    {"weir_trace_sent_total", "counter", "Requests that the collector accepted", SCOPE_GRAPH,
	MEMBER_COUNT, offsetof(struct weir_graph_view, collect.sent), NULL},
    {"weir_trace_failed_total", "counter", "Requests that could not be sent to the collector",
	SCOPE_GRAPH, MEMBER_COUNT, offsetof(struct weir_graph_view, collect.failed), NULL},
    {"weir_payload_reserved_bytes", "gauge", "Memory that payloads of events have reserved",
	SCOPE_GRAPH, MEMBER_COUNT, offsetof(struct weir_graph_view, payload_bytes), NULL},
    {"weir_payload_limit_bytes", "gauge", "Memory that payloads of events may reserve", SCOPE_GRAPH,
	MEMBER_COUNT, offsetof(struct weir_graph_view, payload_bytes_limit), NULL},
    {"weir_request_seconds", "histogram",
	"Time from the arrival of a request at a source until the last byte of the answer was "
	"handed "
	"to the kernel; of what was answered ok, refused (shed) or failed",
	SCOPE_ANSWERS, MEMBER_HIST, BY(print_answers)},
    {"weir_stage_state", "gauge", "1 for the state that the stage is in, 0 for the other states",
	SCOPE_STAGE, 0, BY(print_state)},
    {"weir_stage_queue_length", "gauge", "Events waiting in the queue of the stage", SCOPE_QUEUE,
	MEMBER_COUNT, OF_STAGE(queue_length)},
    {"weir_stage_queue_limit", "gauge", "Events that may be queued or held at the stage",
	SCOPE_QUEUE, MEMBER_COUNT, OF_STAGE(queue_limit)},
    {"weir_stage_in_flight", "gauge", "Events queued, running, held or awaiting at the stage",
	SCOPE_STAGE, MEMBER_COUNT, OF_STAGE(in_flight)},
    {"weir_stage_held", "gauge",
	"Events that the stage holds outside its handler; with those in its queue and those that "
	"await, at most the limit of the queue",
	SCOPE_STAGE, MEMBER_COUNT, OF_STAGE(held)},
    {"weir_stage_awaiting", "gauge", "Events of the stage that wait for their children",
	SCOPE_STAGE, MEMBER_COUNT, OF_STAGE(awaiting)},
    {"weir_stage_spawned_total", "counter",
	"Events that the stage has made, such as children; they do not count as offered to it",
	SCOPE_CLASS, MEMBER_COUNT, OF_CLASS(spawned)},
    {"weir_stage_departed_total", "counter",
	"Events that the stage has made and that another stage has admitted, or that ended before "
	"that",
	SCOPE_CLASS, MEMBER_COUNT, OF_CLASS(departed)},
    {"weir_stage_children_ended_total", "counter",
	"Events that the stage has made and that have ended anywhere: joined by the event that "
	"awaited them, orphaned (none did), or cancelled",
	SCOPE_STAGE, 0, BY(print_children_ended)},
    {"weir_stage_children_refused_total", "counter",
	"Children that were refused to their parent, which had too many, was too deep, or was in a "
	"family without memory left",
	SCOPE_STAGE, MEMBER_COUNT, OF_STAGE(children_refused)},
    {"weir_stage_events_in_total", "counter", "Events offered to the stage", SCOPE_CLASS,
	MEMBER_COUNT, OF_CLASS(offered)},
    {"weir_stage_events_out_total", "counter", "Events sent through an outlet of the stage",
	SCOPE_STAGE, 0, BY(print_out)},
    {"weir_stage_completed_total", "counter", "Events emitted onwards or finished successfully",
	SCOPE_CLASS, MEMBER_COUNT, OF_CLASS(completed)},
    {"weir_stage_failed_total", "counter", "Events that ended as failed in the stage", SCOPE_CLASS,
	MEMBER_COUNT, OF_CLASS(failed)},
    {"weir_stage_shed_total", "counter",
	"Events shed by the stage, such as those refused or expired; each is counted once in the "
	"whole graph",
	SCOPE_CLASS, 0, BY(print_shed)},
    {"weir_stage_shadow_shed_total", "counter",
	"Events that would have been refused if admission were enforced", SCOPE_CLASS, MEMBER_COUNT,
	OF_CLASS(shadow_shed)},
    {"weir_stage_refused_ahead_total", "counter",
	"Events that an earlier stage refused on behalf of this one, and counts as shed",
	SCOPE_QUEUE_CLASS, MEMBER_COUNT, OF_CLASS(refused_ahead)},
    {"weir_stage_queue_wait_seconds", "histogram", "Time events waited in the queue",
	SCOPE_QUEUE_CLASS, MEMBER_HIST, OF_CLASS(wait)},
    {"weir_stage_service_seconds", "histogram", "Time events spent in the handler", SCOPE_CLASS,
	MEMBER_HIST, OF_CLASS(service)},
    {"weir_stage_oldest_wait_seconds", "gauge", "Age of the oldest event in the queue", SCOPE_QUEUE,
	MEMBER_NS, OF_STAGE(oldest_wait_ns)},
    {"weir_stage_longest_running_seconds", "gauge", "Age of the longest handler call in progress",
	SCOPE_STAGE, MEMBER_NS, OF_STAGE(longest_running_ns)},
    {"weir_stage_threads", "gauge",
	"Handler threads of the stage's pool, by state; the stages of a group share a pool",
	SCOPE_QUEUE, 0, BY(print_threads)},
    {"weir_stage_threads_limit", "gauge",
	"Minimum, maximum and target number of threads in the pool of the stage", SCOPE_QUEUE, 0,
	BY(print_thread_limits)},
    {"weir_stage_thread_failures_total", "counter", "Threads that could not be created",
	SCOPE_QUEUE, MEMBER_COUNT, OF_STAGE(thread_failures)},
    {"weir_stage_thread_deaths_total", "counter", "Threads that died", SCOPE_STAGE, MEMBER_COUNT,
	OF_STAGE(thread_deaths)},
    {"weir_stage_stuck_total", "counter",
	"Handler calls that ran longer than threads.stuck of the stage", SCOPE_STAGE, MEMBER_COUNT,
	OF_STAGE(stuck)},
    {"weir_stage_thread_seconds_total", "counter",
	"How the threads of the stage spent their time: running, runnable without a core, asleep "
	"in "
	"the handler (io, lock, memory, sleep, blocked), in inline stages downstream, or idle",
	SCOPE_STAGE, 0, BY(print_times)},
    {"weir_stage_busy_seconds_total", "counter", "Time spent in handlers, summed over threads",
	SCOPE_STAGE, MEMBER_NS, OF_STAGE(busy_ns)},
    {"weir_stage_cohort_size", "histogram", "Events per call of the handler", SCOPE_STAGE, 0,
	BY(print_cohort)},
    {"weir_stage_wakeups_total", "counter", "Sleeping threads woken for the stage", SCOPE_QUEUE,
	MEMBER_COUNT, OF_STAGE(wakeups)},
    {"weir_stage_unhandled_total", "counter",
	"Events that the handler left unhandled, which is a bug in the handler", SCOPE_STAGE,
	MEMBER_COUNT, OF_STAGE(unhandled)},
    {"weir_stage_payloads_refused_total", "counter",
	"Payloads, and memory for them, that the stage was refused, by reason", SCOPE_STAGE, 0,
	BY(print_payloads)},
    {"weir_stage_pressure_ratio", "gauge", "How loaded the stage is, from 0 (idle) to 1 (full)",
	SCOPE_STAGE, MEMBER_REAL, OF_STAGE(pressure)},
    {"weir_stage_degradation", "gauge",
	"Degradation of the stage, from 0 (full quality) to 1 (the cheapest)", SCOPE_STAGE,
	MEMBER_REAL, OF_STAGE(degradation)},
    {"weir_stage_width", "gauge", "Events that the stage may have in work at once", SCOPE_WIDE,
	MEMBER_INT, OF_STAGE(width)},
    {"weir_stage_in_work", "gauge", "Events in the handler of the stage, or held by it", SCOPE_WIDE,
	MEMBER_INT, OF_STAGE(in_work)},
    {"weir_stage_refused_behind_total", "counter",
	"Events refused by the other side, for which the stage waits (a database, a disk, another "
	"server)",
	SCOPE_WIDE, MEMBER_COUNT, OF_STAGE(refusals)},
    {"weir_stage_io_threads", "gauge",
	"I/O threads of the source, each of which has at most per_thread clients", SCOPE_CLIENTS,
	MEMBER_INT, OF_STAGE(clients.loops)},
    {"weir_stage_io_threads_full", "gauge",
	"I/O threads of the source that have per_thread clients", SCOPE_CLIENTS, MEMBER_INT,
	OF_STAGE(clients.full)},
    {"weir_stage_clients_waiting", "gauge",
	"Clients that wait until an I/O thread of the source has room", SCOPE_CLIENTS, MEMBER_INT64,
	OF_STAGE(clients.waiting)},
    {"weir_stage_law_residual", "gauge",
	"Events offered or spawned minus ended minus in flight, at most weir_stage_law_slack above "
	"or below 0",
	SCOPE_STAGE, MEMBER_INT64, OF_STAGE(law_residual)},
    {"weir_stage_law_slack", "gauge",
	"Events that may have moved while weir_stage_law_residual was counted", SCOPE_STAGE,
	MEMBER_INT64, OF_STAGE(law_slack)},
};

static void print_one(struct textbuf *out, const struct family *f, const struct about *a)
{
	if (f->print)
		f->print(out, f, a);
	else
		print_member(out, f, a);
}

static bool has_queue(const struct weir_stage_view *s)
{
	return strcmp(s->placement, "source") != 0 &&
	       (strcmp(s->placement, "inline") != 0 || s->width > 0);
}

static void print_stage(
    struct textbuf *out, const struct family *f, const struct weir_graph_view *v, int i)
{
	struct about a = {.view = v, .stage = &v->stages[i]};

	if ((f->scope == SCOPE_QUEUE || f->scope == SCOPE_QUEUE_CLASS) && !has_queue(a.stage))
		return;
	if ((f->scope == SCOPE_WIDE && a.stage->width == 0) ||
	    (f->scope == SCOPE_CLIENTS && a.stage->clients.per_loop == 0) ||
	    (f->scope == SCOPE_ANSWERS && !a.stage->answers))
		return;
	if (f->scope != SCOPE_CLASS && f->scope != SCOPE_QUEUE_CLASS && f->scope != SCOPE_ANSWERS) {
		print_one(out, f, &a);
		return;
	}
	for (int c = 0; c < v->n_classes; c++) {
		a.class_view = &a.stage->class_view[c];
		a.class_name = v->class_name[c];
		a.answers = a.stage->answers ? &a.stage->answers[c] : NULL;
		print_one(out, f, &a);
	}
}

static void print_family(
    struct textbuf *out, const struct family *f, const struct weir_graph_view *v)
{
	prom_head(out, f->name, f->kind, f->help);
	if (f->scope == SCOPE_GRAPH) {
		print_one(out, f, &(struct about){.view = v});
		return;
	}
	for (int i = 0; i < v->n_stages; i++)
		print_stage(out, f, v, i);
}

/* Return whether the family `name` is one of this file. */
static bool is_taken(const char *name)
{
	for (size_t i = 0; i < sizeof(family) / sizeof(family[0]); i++)
		if (strcmp(family[i].name + strlen("weir_"), name) == 0)
			return true;
	return false;
}

void view_prom(const struct weir_graph_view *v, struct textbuf *out)
{
	for (size_t i = 0; i < sizeof(family) / sizeof(family[0]); i++)
		print_family(out, &family[i], v);
	view_prom_groups(v, out);
	view_prom_types(v, is_taken, out);
}
