/* SPDX-License-Identifier: MIT */
/*
 * Does the periodic work; see ticker.h. The wall clock determines when the next run is due: at the
 * next second or quarter of a second. The thread then waits for it on the monotonic clock. Setting
 * the clock back therefore shifts one run by at most a second.
 */
#include "ticker.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/clock.h>
#include <weir/log.h>

#include "admin/api/changes.h"
#include "tick_text.h"
#include "admin/api/view_json.h"

#define SECOND_NS  1000000000LL
#define QUARTER_NS (SECOND_NS / 4)
/* Maximum number of decisions, and of changes, reported in one run; if there are more, only the
 * newest are reported. */
#define NEWS_MAX 128
/* Time after a decision in which its outcome is filled in: 30 s, and some ticks. */
#define OUTCOME_NS (35 * SECOND_NS)

/* Return the next monotonic time at which Unix time is a multiple of `step_ns`. */
static int64_t next_beat(int64_t step_ns)
{
	return weir_clock_ns(CLOCK_MONOTONIC) + step_ns - weir_clock_ns(CLOCK_REALTIME) % step_ns;
}

/* Return the share of a core that this thread used since the last tick of rate `hz`. */
static double self_cpu(struct ticker *p, int hz, int64_t now_ns)
{
	int64_t cpu_ns = weir_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int i = hz == 4;
	int64_t span_ns = now_ns - p->self[i].at_ns;
	double share = p->self[i].at_ns && span_ns > 0
			   ? (double)(cpu_ns - p->self[i].cpu_ns) / (double)span_ns
			   : 0;

	p->self[i].cpu_ns = cpu_ns;
	p->self[i].at_ns = now_ns;
	return share;
}

/* ---- events for the watchers ---- */

static void tell_tick(struct ticker *p, int hz, const struct weir_graph_view *v,
    const struct sample *sample, int64_t now_ns)
{
	struct tick_about about = {.hz = hz,
	    .overload = p->source->overload(p->source->arg),
	    .self_cpu = self_cpu(p, hz, now_ns),
	    .watchers = sse_watchers(p->sse),
	    .bottleneck = &p->bottleneck};
	tick_text(&p->tick, &about, v, sample);
	sse_tick(p->sse, hz, p->tick.failed ? NULL : p->tick.p, p->tick.n);
	/* Keep the buffer, since the next tick is about as long. */
	p->tick.n = 0;
	p->tick.failed = false;
}

static void tell_alert(void *arg, const struct alert *alert)
{
	struct ticker *p = arg;

	weir_log(WEIR_LOG_WARN, "admin: alert %s %s: %s", alert->name,
	    alert->until_ns ? "is over" : "raised", alert->text);
	sse_alert(p->sse, alert_json(alert));
}

/* Evaluate the samples of the last second. */
static void judge(struct ticker *p, const struct weir_graph_view *v)
{
	const struct sample *sample = history_samples(p->history, HISTORY_1S);
	const struct alerts_about about = {.bottleneck = &p->bottleneck,
	    .history_fails = p->unfiled || history_file_failing(p->file)};

	bottleneck_feed(&p->bottleneck, v, sample);
	alerts_feed(&p->alerts, &about, v, sample, tell_alert, p);
}

static void tell_decisions(struct ticker *p, const struct weir_graph_view *v)
{
	struct weir_decision d[NEWS_MAX];

	if (v->decisions_total == p->decisions)
		return;
	if (v->decisions_total < p->decisions)
		p->decisions = 0; /* the journal has restarted */
	int n = p->source->decisions(p->source->arg, d, NEWS_MAX);
	for (int i = n - 1; i >= 0; i--) {
		if (d[i].id <= p->decisions)
			continue;
		sse_decision(p->sse, view_json_decision(v, &d[i]));
		p->decisions = d[i].id;
	}
}

static void tell_acts(struct ticker *p)
{
	struct weir_change a[NEWS_MAX];
	int n = p->source->changes ? p->source->changes(p->source->arg, a, NEWS_MAX) : 0;

	for (int i = n - 1; i >= 0; i--) {
		if (a[i].id <= p->changes)
			continue;
		sse_act(p->sse, change_json(&a[i]));
		p->changes = a[i].id;
	}
}

/* ---- decisions and changes in a file ---- */

static void read_past(struct ticker *p)
{
	const struct admin_source *s = p->source;

	p->past->n_decisions = s->decisions(s->arg, p->past->decision, PAST_DECISIONS);
	p->past->n_changes = s->changes ? s->changes(s->arg, p->past->change, PAST_CHANGES) : 0;
}

static void save_past(struct ticker *p, const struct weir_graph_view *v, int64_t now_ns)
{
	if (v->decisions_total != p->past_decisions || v->acts_total != p->past_changes)
		p->past_until_ns = now_ns + OUTCOME_NS;
	if (p->past_saved && now_ns >= p->past_until_ns)
		return;
	p->past_decisions = v->decisions_total;
	p->past_changes = v->acts_total;
	read_past(p);
	p->past_saved = past_file_save(p->past_file, p->past);
}

/* Give the decisions and changes of the last process to the graph. Watchers know them from the
 * lists, so they are not reported as news. */
static void open_past(struct ticker *p, const char *history_path)
{
	const struct admin_source *s = p->source;

	if (!s->remember)
		return;
	p->past = calloc(1, sizeof(*p->past));
	p->past_file = p->past ? past_file_open(history_path, p->past) : NULL;
	p->unfiled |= !p->past_file;
	if (!p->past_file || s->remember(s->arg, p->past->decision, p->past->n_decisions,
				 p->past->change, p->past->n_changes) != 0)
		return;
	p->decisions = (uint64_t)p->past->n_decisions;
	p->changes = (uint64_t)p->past->n_changes;
}

/* ---- the runs ---- */

static void beat_second(struct ticker *p, const struct weir_graph_view *v, int64_t now_ns)
{
	unsigned got = history_feed(p->history, v);

	if (p->file && got)
		history_file_save(p->file, p->history, got);
	if (p->past_file)
		save_past(p, v, now_ns);
	if (got & 1u << HISTORY_1S)
		judge(p, v);
	if (got & 1u << HISTORY_1S && sse_watchers_at(p->sse, 1) > 0)
		tell_tick(p, 1, v, history_samples(p->history, HISTORY_1S), now_ns);
	sse_second(p->sse, now_ns);
}

/* Do the quarter-second work. The first run after a watcher connects has no earlier totals to
 * compare with, so it sends no tick. */
static void beat_quarter(struct ticker *p, const struct weir_graph_view *v, int64_t now_ns)
{
	bool first = !p->fine;

	if (first)
		p->fine = sampler_new();
	if (p->fine && sampler_take(p->fine, v) == 0 && !first)
		tell_tick(p, 4, v, sampler_samples(p->fine), now_ns);
}

void ticker_run(struct ticker *p, int64_t now_ns)
{
	bool second = now_ns >= p->second_ns;
	bool watched = sse_watchers_at(p->sse, 4) > 0;
	bool quarter = watched && now_ns >= p->quarter_ns;
	struct weir_graph_view *v = NULL;

	if (!watched) {
		sampler_free(p->fine);
		p->fine = NULL;
	}
	if (!second && !quarter)
		return;
	if (p->source->view(p->source->arg, &v) == 0) {
		sse_about(p->sse, v->name, v->started_ns);
		if (second)
			beat_second(p, v, now_ns);
		if (quarter)
			beat_quarter(p, v, now_ns);
		tell_decisions(p, v);
		tell_acts(p);
		p->source->view_free(v);
	}
	if (second)
		p->second_ns = next_beat(SECOND_NS);
	if (quarter)
		p->quarter_ns = next_beat(QUARTER_NS);
}

int ticker_timeout_ms(const struct ticker *p, int64_t now_ns)
{
	int64_t next = p->second_ns;

	if (sse_watchers_at(p->sse, 4) > 0 && p->quarter_ns < next)
		next = p->quarter_ns;
	return next <= now_ns ? 0 : (int)((next - now_ns) / 1000000 + 1);
}

/* ---- create and free ---- */

int ticker_init(struct ticker *p, const struct admin_source *source, const char *history_path)
{
	*p = (struct ticker){.source = source, .history = history_new()};
	if (!p->history)
		return WEIR_ENOMEM;
	if (history_path && *history_path) {
		p->file = history_file_open(history_path, p->history);
		p->unfiled = !p->file;
		open_past(p, history_path);
	}
	return sse_open(weir_clock_ns(CLOCK_REALTIME) / 1000000, &p->sse);
}

void ticker_fini(struct ticker *p)
{
	sse_close(p->sse);
	sampler_free(p->fine);
	if (p->past_file)
		read_past(p);
	past_file_close(p->past_file, p->past);
	free(p->past);
	history_file_close(p->file, p->history);
	history_free(p->history);
	alerts_fini(&p->alerts);
	textbuf_fini(&p->tick);
	*p = (struct ticker){0};
}
