/* SPDX-License-Identifier: MIT */
/*
 * Resize policy `weir`: sets the number of threads that the offered work needs by Little's law. The
 * number is limited to the threads that keep all cores busy, and growth that measurably does not
 * help is undone.
 *
 * Each window of 250 ms measures three durations per handled event, which are then smoothed: S_cpu
 * on a core, S_rq waiting for a core, and S_blk blocked (the remaining time in handlers).
 *
 *   need  = offered per second * (S_cpu + S_blk) / 0.8     without run-queue time, which
 *                                                          more threads would only increase
 *   cap   = cores * (1 + S_blk / S_cpu) * 1.25 + 1         enough threads to keep all cores busy
 *   want  = ceil(min(need, cap))
 *
 * With n current threads, the rules are:
 *
 *   up       If want > 1.1 n and the threads are busy, grow by half the difference. A CPU-bound
 *            stage that waits for cores does not grow.
 *   cold     A new pool has its minimum of threads, and its need is not known. From its first
 *            events until a window requires no more threads, for at most 2 s, windows may be as
 *            short as 100 ms and two events, and the pool grows by the whole difference in one
 *            step. So a server that has just started refuses nothing that it can serve.
 *   trial    Growth of a stage that blocks is retained only if throughput rises by a quarter of the
 *            relative growth, the response becomes shorter, or the queue was seen empty. Otherwise
 *            it is undone and growth stops for 10 s, then 20, up to 160, since the resource that
 *            the stage waits for (a lock, a database) is exhausted.
 *   down     If the need stayed below 0.75 n for 15 s, shrink by a tenth of the surplus per window,
 *            provided that n - 1 threads would still cover 1.1 times the maximum need.
 *   stalled  If events wait, every thread is in a handler, and no handler has finished for 50 ms or
 *            five service times, whichever is longer, add a thread every 50 ms. This overrides the
 *            other rules, since the handlers may be waiting for something in the queue.
 *
 * `offered` includes refused events, so that growth is not masked by shedding.
 *
 * Details:
 *
 *   - The offered rate is smoothed like the times (at ten events a second, a window counts
 *     2.5 +- 1.6). A window is extended, to at most a second, until five events have finished.
 *   - A trial is judged after a second or two service times, whichever is longer. It compares the
 *     response time, not the wait alone: if clients wait for responses before they send more,
 *     additional threads shorten the queue by as much as they lengthen the service.
 *   - Growth requires busy threads, since the need is the product of two noisy means and so noisier
 *     than either of them.
 *   - The margin in `down` prevents oscillation of pools with two or three threads, where 0.75 n is
 *     less than one thread below n.
 *   - The CPU time of spinning threads cannot be distinguished from that of handlers. It counts as
 *     handler time, up to the total time in handlers.
 */
#include "control/resize.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include <weir/annotate.h>

#include "base/clock.h"
#include "base/number_text.h"

/* Constants found by simulation, unless noted otherwise. */
#define WINDOW_NS    (250 * NS_PER_MS)
#define COLD_NS      (100 * NS_PER_MS) /* window of a cold pool: one tick of the control thread */
#define COLD_LAST_NS (2 * NS_PER_S)    /* from the first events; a guess: eight windows */
#define COLD_ITEMS   2
#define SMOOTH       0.3
#define UTILISATION  0.8
#define CAP_MARGIN   1.25
#define UP_RATIO     1.1
#define DOWN_RATIO   0.75
#define DOWN_STEP    0.1
#define HOLD_SECONDS 15
#define CPU_BOUND    0.2 /* blocked time below this fraction of the CPU time */
#define RUNQ_VETO    0.5
#define CPU_VETO     0.95 /* used if run-queue time is unknown; value of the .NET thread pool */
#define TRIAL_NS     NS_PER_S
#define TRIAL_SHARE  0.25
#define HOLD_MIN_NS  (10 * NS_PER_S)
#define HOLD_MAX_NS  (160 * NS_PER_S)
#define STALL_NS     (50 * NS_PER_MS)
#define STALL_TIMES  5

/* The following three are guesses. A mean over fewer than WINDOW_ITEMS events is unreliable. A
 * response time counts as shorter only if it has fallen by at least a tenth, about the size of the
 * noise. */
#define WINDOW_ITEMS   5
#define WINDOW_LAST_NS NS_PER_S
#define SHORTER        0.9

/* Number of peaks stored: one for each of the last HOLD_SECONDS whole seconds, and one for the
 * current second. */
#define PEAKS (HOLD_SECONDS + 1)

struct totals {
	uint64_t offered, items, busy_ns, cpu_ns, runq_ns;
};

/* State of the trial that follows growth of a stage that blocks. */
struct trial {
	bool on, based;
	bool emptied;      /* the queue was seen empty since growth */
	int n;             /* number of threads before growth */
	double done_per_s; /* throughput to compare with: the lower of two windows (base_trial) */
	double response_s; /* response time to compare with: the higher of these windows */
	int64_t since_ns, based_ns;
	uint64_t based_items;
	int64_t hold_ns, hold_until_ns; /* no growth until hold_until_ns */
};

struct weir_state {
	bool started, known; /* `known` is set after the first window with events */
	bool cold;
	int64_t warming_ns; /* time of the pool's first events; 0 before them */
	int64_t window_ns, began_ns;
	struct totals then;                                /* totals at the start of the window */
	double offered_per_s, cpu_ns, runq_ns, blocked_ns; /* smoothed */
	double done_per_s, service_ns, busy;               /* of the last window only */
	float peak[PEAKS];                                 /* maximum need in each second */
	int64_t peak_second;
	struct trial trial;
	uint64_t items, running; /* from the view at the previous call */
	int64_t moved_ns, unstalled_ns;
};

_Static_assert(sizeof(struct weir_state) <= RESIZE_STATE_MAX, "fits the contract");

/* Print to `buf`, truncated if the numbers are absurdly long. */
static void say(char *buf, size_t size, const char *fmt, ...) WEIR_PRINTF(3, 4);
static void say(char *buf, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf, size, fmt, ap);
	va_end(ap);
}

static struct totals totals_of(const struct resize_view *v)
{
	return (struct totals){.offered = v->offered_total,
	    .items = v->items,
	    .busy_ns = v->busy_ns_total,
	    .cpu_ns = v->cpu_ns_total,
	    .runq_ns = v->runq_ns_total};
}

/* Return the increase of a total from `then` to `now`. Totals are not read atomically, so a total
 * may seem to have decreased; its increase is then 0. */
static double grown(uint64_t now, uint64_t then)
{
	int64_t d = (int64_t)(now - then);

	return d > 0 ? (double)d : 0;
}

static void smooth(double *mean, double value, bool first)
{
	*mean = first ? value : *mean + SMOOTH * (value - *mean);
}

static bool is_cpu_bound(const struct weir_state *s)
{
	return s->blocked_ns < CPU_BOUND * s->cpu_ns;
}

/* ---- windows ---- */

static bool window_ends(const struct weir_state *s, const struct resize_view *v, int64_t now_ns)
{
	int64_t length_ns = now_ns - s->window_ns;
	double items = grown(v->items, s->then.items);

	if (length_ns < (s->cold ? COLD_NS : WINDOW_NS))
		return false;
	if (items >= (s->cold ? COLD_ITEMS : WINDOW_ITEMS))
		return true;
	/* busy_ns includes a call in progress, but its events are not counted yet, so a window
	 * without finished events does not end while a handler runs. */
	return length_ns >= WINDOW_LAST_NS && (items > 0 || v->busy == 0);
}

static void measure_times(struct weir_state *s, const struct totals *now, double items)
{
	double busy = grown(now->busy_ns, s->then.busy_ns) / items;
	double cpu = fmin(grown(now->cpu_ns, s->then.cpu_ns) / items, busy);
	double runq = fmin(grown(now->runq_ns, s->then.runq_ns) / items, busy - cpu);

	smooth(&s->cpu_ns, cpu, !s->known);
	smooth(&s->runq_ns, runq, !s->known);
	smooth(&s->blocked_ns, busy - cpu - runq, !s->known);
	s->service_ns = busy;
	s->known = true;
}

static void measure(struct weir_state *s, const struct resize_view *v, int64_t now_ns)
{
	struct totals now = totals_of(v);
	double seconds = (double)(now_ns - s->window_ns) / NS_PER_S;
	double items = grown(now.items, s->then.items);

	smooth(&s->offered_per_s, grown(now.offered, s->then.offered) / seconds, !s->known);
	s->done_per_s = items / seconds;
	s->busy = (grown(now.busy_ns, s->then.busy_ns) - grown(now.runq_ns, s->then.runq_ns)) /
		  NS_PER_S / seconds;
	if (items > 0)
		measure_times(s, &now, items);
	s->then = now;
	s->window_ns = now_ns;
}

/* ---- threads needed ---- */

struct wish {
	double need, cap; /* need is the smaller of `asked` and cap */
	double asked;     /* threads that the offered work needs */
	int want;
};

static struct wish wish_of(const struct weir_state *s, const struct resize_view *v)
{
	struct wish w = {.cap = v->useful};

	w.asked = s->offered_per_s * (s->cpu_ns + s->blocked_ns) / NS_PER_S / UTILISATION;
	if (s->cpu_ns > 0)
		w.cap = fmin(w.cap, v->cores * (1 + s->blocked_ns / s->cpu_ns) * CAP_MARGIN + 1);
	w.need = fmin(w.asked, w.cap);
	w.want = (int)fmax(1, ceil(w.need));
	return w;
}

/* Print the formula of the need with its values: "912/s x (0.1 ms CPU + 8.2 ms blocked) / 0.8". */
static const char *sum_text(const struct weir_state *s, char *buf, size_t size)
{
	say(buf, size, "%s/s x (%s ms CPU + %s ms blocked) / 0.8",
	    number_text(NUMBER_ROOM, s->offered_per_s, 4),
	    number_text(NUMBER_ROOM, s->cpu_ns / NS_PER_MS, 3),
	    number_text(NUMBER_ROOM, s->blocked_ns / NS_PER_MS, 3));
	return buf;
}

/* Record `need` for the current second and for all seconds that passed during the window. */
static void remember(struct weir_state *s, double need, int64_t now_ns)
{
	int64_t second = now_ns / NS_PER_S;

	if (second - s->peak_second > PEAKS)
		s->peak_second = second - PEAKS;
	while (s->peak_second < second)
		s->peak[++s->peak_second % PEAKS] = (float)need;
	float *peak = &s->peak[second % PEAKS];
	*peak = fmaxf(*peak, (float)need);
}

static double greatest_need(const struct weir_state *s)
{
	float most = 0;

	for (int i = 0; i < PEAKS; i++)
		most = fmaxf(most, s->peak[i]);
	return most;
}

/* ---- trials ---- */

static double response_s(const struct weir_state *s, const struct resize_view *v)
{
	double wait_s = s->done_per_s > 0 ? v->queue_length / s->done_per_s : 0;

	return wait_s + s->service_ns / NS_PER_S;
}

static void start_trial(struct weir_state *s, const struct resize_view *v, int64_t now_ns)
{
	struct trial *t = &s->trial;

	if (t->on || is_cpu_bound(s))
		return;
	t->on = true;
	t->based = t->emptied = false;
	t->n = v->target;
	t->done_per_s = s->done_per_s;
	t->response_s = response_s(s, v);
	t->since_ns = now_ns;
}

/* Base the trial on the worse of two windows: the one before growth, and this one, the first after
 * growth. If the stage slowed down during the window before growth, that window mixes old and new
 * times. */
static void base_trial(struct weir_state *s, const struct resize_view *v, int64_t now_ns)
{
	struct trial *t = &s->trial;

	t->based = true;
	t->emptied = v->queue_length == 0;
	t->done_per_s = fmin(t->done_per_s, s->done_per_s);
	t->response_s = fmax(t->response_s, response_s(s, v));
	t->based_ns = now_ns;
	t->based_items = v->items;
}

static bool trial_is_due(const struct weir_state *s, int64_t now_ns)
{
	int64_t after_ns = (int64_t)(2 * s->service_ns);

	return now_ns > s->trial.based_ns &&
	       now_ns - s->trial.since_ns >= (after_ns > TRIAL_NS ? after_ns : TRIAL_NS);
}

static double gain_of(const struct weir_state *s, const struct resize_view *v, int64_t now_ns)
{
	const struct trial *t = &s->trial;
	double seconds = (double)(now_ns - t->based_ns) / NS_PER_S;
	double done_per_s = grown(v->items, t->based_items) / seconds;

	return t->done_per_s > 0 ? done_per_s / t->done_per_s - 1 : done_per_s > 0;
}

/* Judge the trial if that is due. Returns true and fills in `d` if the growth must be undone. */
static bool judge_trial(
    struct weir_state *s, const struct resize_view *v, int64_t now_ns, struct resize_decision *d)
{
	struct trial *t = &s->trial;

	if (t->on && !t->based) {
		base_trial(s, v, now_ns);
		return false;
	}
	if (!t->on || !trial_is_due(s, now_ns))
		return false;
	double gain = gain_of(s, v, now_ns), asked = TRIAL_SHARE * (v->target - t->n) / t->n;
	t->on = false;
	if (v->target <= t->n)
		return false;
	if (gain >= asked || t->emptied || response_s(s, v) < SHORTER * t->response_s) {
		t->hold_ns = 0;
		return false;
	}
	t->hold_ns = t->hold_ns == 0                ? HOLD_MIN_NS
		     : t->hold_ns * 2 < HOLD_MAX_NS ? t->hold_ns * 2
						    : HOLD_MAX_NS;
	t->hold_until_ns = now_ns + t->hold_ns;
	d->target = t->n;
	say(d->rule, sizeof(d->rule),
	    "%d instead of %d threads changed throughput by %+.0f%%: reverted, no growth for %lld "
	    "s",
	    v->target, t->n, gain * 100, (long long)(t->hold_ns / NS_PER_S));
	return true;
}

/* ---- up, down, stalled ---- */

/* Whether additional threads would only wait for cores. */
static bool cores_are_short(const struct weir_state *s, const struct resize_view *v)
{
	if (!v->runq_known)
		return v->cpu_ratio >= CPU_VETO;
	return s->runq_ns > RUNQ_VETO * s->cpu_ns && is_cpu_bound(s);
}

static bool grow(struct weir_state *s, const struct resize_view *v, const struct wish *w,
    int64_t now_ns, struct resize_decision *d)
{
	int n = v->target;
	char sum[64];

	if (w->want <= UP_RATIO * n || v->live < n || now_ns < s->trial.hold_until_ns ||
	    (s->busy < UTILISATION * n && v->queue_length == 0) || cores_are_short(s, v))
		return false;
	bool room = n < v->max && v->budget_left > 0;
	d->target = room && !s->cold ? n + (w->want - n + 1) / 2 : w->want;
	if (w->cap < w->asked)
		say(d->rule, sizeof(d->rule), "need %.1f threads, %d can help: %s", w->asked,
		    w->want, sum_text(s, sum, sizeof(sum)));
	else
		say(d->rule, sizeof(d->rule), "need %.1f threads: %s", w->need,
		    sum_text(s, sum, sizeof(sum)));
	if (room)
		start_trial(s, v, now_ns);
	return true;
}

static bool shrink(
    struct weir_state *s, const struct resize_view *v, int64_t now_ns, struct resize_decision *d)
{
	int n = v->target;
	double most = greatest_need(s);
	char sum[64];

	if (n <= v->min || now_ns - s->began_ns < HOLD_SECONDS * NS_PER_S ||
	    most >= DOWN_RATIO * n || most * UP_RATIO > n - 1)
		return false;
	int step = (int)(DOWN_STEP * (n - most));
	d->target = n - (step > 1 ? step : 1);
	if (d->target < v->min)
		d->target = v->min;
	say(d->rule, sizeof(d->rule), "needed at most %.1f threads for %d s, now %s", most,
	    HOLD_SECONDS, sum_text(s, sum, sizeof(sum)));
	return true;
}

static bool has_moved(struct weir_state *s, const struct resize_view *v)
{
	bool moved = v->items != s->items || v->running != s->running || v->queue_length == 0;

	s->items = v->items;
	s->running = v->running;
	/* A thread outside handlers lingers or is about to take a batch. An additional thread would
	 * do the same, so this is not a stall. */
	return moved || v->busy < v->live;
}

static bool unstall(
    struct weir_state *s, const struct resize_view *v, int64_t now_ns, struct resize_decision *d)
{
	double patience_ns = STALL_TIMES * (s->cpu_ns + s->runq_ns + s->blocked_ns);

	if (has_moved(s, v)) {
		s->moved_ns = now_ns;
		return false;
	}
	int64_t still_ns = now_ns - s->moved_ns;
	if (still_ns < STALL_NS || (double)still_ns < patience_ns ||
	    now_ns - s->unstalled_ns < STALL_NS || v->live < v->target || v->target >= v->useful)
		return false;
	s->unstalled_ns = now_ns;
	d->target = v->target + 1;
	say(d->rule, sizeof(d->rule),
	    "stalled: %u events wait, all %d threads have been in handlers for %lld ms",
	    v->queue_length, v->live, (long long)(still_ns / NS_PER_MS));
	return true;
}

/* Whether the pool is cold and nothing has been offered to it yet. If so, restarts the window, so
 * that the first window starts with the first event. */
static bool still_unused(struct weir_state *s, const struct resize_view *v, int64_t now_ns)
{
	if (!s->cold || s->warming_ns != 0)
		return false;
	if (v->offered_total == s->then.offered) {
		s->window_ns = now_ns;
		s->then = totals_of(v);
		return true;
	}
	s->warming_ns = now_ns;
	return false;
}

/* At the end of a window, end the cold phase if the window requires no more threads (`wants` is
 * false) and the queue is empty, or if COLD_LAST_NS has passed. */
static void warm_up(struct weir_state *s, const struct resize_view *v, bool wants, int64_t now_ns)
{
	if (!s->cold || !s->known)
		return;
	bool settled = !wants && v->queue_length == 0 && now_ns - s->warming_ns >= COLD_NS;
	s->cold = !settled && now_ns - s->warming_ns < COLD_LAST_NS;
}

static bool weir_decide(
    void *state, const struct resize_view *v, int64_t now_ns, struct resize_decision *d)
{
	struct weir_state *s = state;

	if (!s->started) {
		*s = (struct weir_state){.started = true,
		    .cold = true,
		    .window_ns = now_ns,
		    .began_ns = now_ns,
		    .then = totals_of(v),
		    .peak_second = now_ns / NS_PER_S,
		    .items = v->items,
		    .running = v->running,
		    .moved_ns = now_ns,
		    .unstalled_ns = now_ns};
		return false;
	}
	s->trial.emptied |= v->queue_length == 0;
	if (unstall(s, v, now_ns, d))
		return true;
	if (still_unused(s, v, now_ns) || !window_ends(s, v, now_ns))
		return false;
	measure(s, v, now_ns);
	struct wish w = wish_of(s, v);
	remember(s, w.need, now_ns);
	bool decided =
	    judge_trial(s, v, now_ns, d) || grow(s, v, &w, now_ns, d) || shrink(s, v, now_ns, d);
	warm_up(s, v, w.want > v->target, now_ns);
	return decided;
}

const struct resize_policy resize_weir = {
    .name = "weir",
    .help =
	"as many threads as the offered work needs, up to the number beyond which more do not help",
    .decide = weir_decide,
};
