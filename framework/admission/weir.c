/* SPDX-License-Identifier: MIT */
/*
 * Admission policy `weir`: compute the wait before an event is in the queue, and serve what matters
 * most with what the stage can do. docs/overload.md has the formulas and what was measured.
 *
 * The predicted wait is the queued work over the threads: d = W / n. It needs no learned baseline and
 * no probing, and it is exact up to the cost of events. The stage is in one of two states:
 *
 *   NORMAL  a thread was idle or d was low within the last 100 ms: noise is let be. Only a long wait
 *           refuses, lower classes a little sooner.
 *   OVER    d was low at no time in 100 ms, or is high: the queue stands. Of what is offered, as much
 *           is admitted as the stage can do, by class and within a class by user (weir_fill.h).
 *
 * OVER ends when d is low and nothing had to be refused for 100 ms. How much the stage can do follows
 * d at each decision, not at each tick, so the loop has no dead time and a late tick does no harm:
 * ticks only teach what each class offers. Above all: nothing is refused while a thread is idle, and
 * with an unknown cost everything may enter.
 *
 * The state belongs to the sink; all calls come under the queue's lock.
 */
#include <math.h>

#include "admission/admission.h"
#include "admission/say.h"
#include "admission/users.h"
#include "admission/weir_fill.h"

/* The objective when none is known: that of a class without one. */
#define SLO_DEFAULT_NS 500000000LL

/* A queue that stood for so long stands (folly's CoDel interval, overload.md 3.7). */
#define INTERVAL_NS 100000000LL

/* Waits as parts of the objective. LOW and CAP are overload.md 3.7; the others were chosen in the
 * simulation of tests/unit/admission (docs/overload.md, "How the numbers were found"). */
#define WAIT_LOW       0.05
#define WAIT_HIGH      0.35 /* OVER at once */
#define WAIT_CAP       0.50 /* of the highest class, at least */
#define WAIT_CAP_LOWER 0.40 /* of all others while OVER */
#define CAP_GRADE      0.25 /* NORMAL: part of the cap that the lowest user of the lowest class lacks */

/* The wait that OVER steers for: the more is offered the shorter, since the queue then refills as
 * fast as it empties and no thread idles. */
#define EQUAL_BUSY 0.08 /* of the objective at LOAD_BUSY times what the stage can do */
#define EQUAL_EVEN 0.30 /* at just what it can do */
#define LOAD_BUSY  1.5
#define LEFT_SHARE 0.5 /* of what the slowest hundredth of services leaves of the objective */

/* How fast what is admitted falls when the wait is longer: by the whole stage over half an objective,
 * at first; from 15 % on slowly, so that what is too long a wait by error of the estimates (when load
 * jumps) is not taken out on the high classes. */
#define FALL_NEAR   0.5
#define FALL_FAR    2.0
#define FALL_FAR_AT 0.85

/* Who will need more than that of the time it has left has no hope (overload.md 3.4). In OVER an event
 * that has less left than this part of a service time is not begun (3.2). */
#define HOPE     0.9
#define HOPELESS 0.5

/* Where services take as long as the objective: a wait of so many is late, twice the cap. */
#define LATE 4

/* Part of the stage that is admitted whatever the numbers say (overload.md 3.3). */
#define FLOOR 0.05

/* The stage as a decision sees it. */
struct weir_stage_view {
	double threads, slo_ns, cost_ns;
	double wait_ns; /* d; grows with what is admitted */
	double away_ns; /* from this door to the queue, and from the service to the end */
};

struct weir_state {
	struct weir_fill fill;
	int64_t low_ns;     /* when d was low last */
	int64_t over_ns;    /* OVER: since when */
	int64_t refused_ns; /* last refusal */
	int64_t now_ns;
	struct weir_stage_view seen; /* last */
	double service_p99_ns;
	bool over;
	uint16_t spread[WEIR_CLASSES_MAX];
};

_Static_assert(sizeof(struct weir_state) <= ADMISSION_STATE_MAX, "state too large");

static void weir_init(void *state, const struct weir_admission_spec *p, int64_t now_ns)
{
	struct weir_state *s = state;

	(void)p;
	*s = (struct weir_state){.low_ns = now_ns,
	    .refused_ns = now_ns,
	    .now_ns = now_ns,
	    .seen = {.threads = 1, .slo_ns = SLO_DEFAULT_NS}};
}

static struct weir_stage_view weir_look(
    int threads, int64_t slo_ns, int64_t cost_ns, int64_t work_ns, uint32_t length)
{
	struct weir_stage_view see = {.threads = threads > 1 ? threads : 1,
	    .slo_ns = (double)(slo_ns > 0 ? slo_ns : SLO_DEFAULT_NS),
	    .cost_ns = (double)cost_ns};
	double work = work_ns > 0 ? (double)work_ns : (double)cost_ns * length;

	see.wait_ns = work / see.threads;
	return see;
}

/* Follow the state of the stage. */
static void weir_watch(
    struct weir_state *s, const struct weir_stage_view *see, bool idle, int64_t now_ns)
{
	s->now_ns = now_ns;
	s->seen = *see;
	if (idle || see->wait_ns <= WAIT_LOW * see->slo_ns) {
		s->low_ns = now_ns;
		if (now_ns - s->refused_ns > INTERVAL_NS)
			s->over = false;
	} else if (!s->over &&
		   (now_ns - s->low_ns > INTERVAL_NS || see->wait_ns > WAIT_HIGH * see->slo_ns)) {
		s->over = true;
		s->over_ns = now_ns;
	}
}

/* The wait to steer for. Where slow services take most of the objective, half of what they leave; but
 * at least that of as many events as the number of threads swings by (its square root), or the queue
 * would be empty by chance too often. */
static double weir_equal(const struct weir_state *s, const struct weir_stage_view *see)
{
	double busy = (s->fill.total / see->threads - 1) / (LOAD_BUSY - 1);

	busy = busy < 0 ? 0 : busy > 1 ? 1 : busy;
	double equal_ns = see->slo_ns * (EQUAL_EVEN + (EQUAL_BUSY - EQUAL_EVEN) * busy);
	double left_ns = LEFT_SHARE * (see->slo_ns - s->service_p99_ns);
	double least_ns = see->cost_ns / sqrt(see->threads);
	if (equal_ns > left_ns)
		equal_ns = left_ns > WAIT_LOW * see->slo_ns ? left_ns : WAIT_LOW * see->slo_ns;
	return equal_ns > least_ns ? equal_ns : least_ns;
}

/* How much of what is offered may enter, in threads, for a class of priority `rank`: all when the queue
 * is empty, what the stage can do at the wait to steer for, less beyond. */
static double weir_room(const struct weir_state *s, const struct weir_stage_view *see, int rank)
{
	double equal_ns = weir_equal(s, see);
	double beyond = (see->wait_ns - equal_ns) / see->slo_ns;
	double near = 1 - beyond / FALL_NEAR, far = FALL_FAR_AT - beyond / FALL_FAR;
	double part = near > far || rank > 0 ? near : far;

	if (beyond < 0)
		part = equal_ns / (see->wait_ns > 1 ? see->wait_ns : 1);
	return see->threads * (part > FLOOR ? part : FLOOR);
}

/* The part of a class's users that may enter in OVER. */
static double weir_share(
    const struct weir_state *s, const struct weir_stage_view *see, int class_id, int n_classes)
{
	int n_ranks, rank = weir_fill_rank(&s->fill, class_id, n_classes, &n_ranks);

	return weir_fill_part(&s->fill, class_id, weir_room(s, see, rank));
}

/* The highest of several classes while OVER: lower ones give way long before that wait, so what meets this
 * cap are its own bursts, or those after the machine stood still. They may wait as long as nearly all will still be in
 * time: a margin of half a slow service for the error of the prediction. */
static double weir_cap_highest(const struct weir_state *s, const struct weir_stage_view *see)
{
	double part = HOPE - 1.5 * s->service_p99_ns / see->slo_ns;

	return s->service_p99_ns > 0 && part > WAIT_CAP ? part : WAIT_CAP;
}

/* The longest wait with which `user` of the class may still enter. */
static double weir_cap(const struct weir_state *s, const struct weir_stage_view *see, int class_id,
    int n_classes, uint32_t user)
{
	int n_ranks, rank = weir_fill_rank(&s->fill, class_id, n_classes, &n_ranks);
	double place = (rank + (double)user / USERS_ALL) / n_ranks;
	double part = WAIT_CAP * (1 - CAP_GRADE * place);

	if (s->over && rank > 0)
		part = WAIT_CAP_LOWER;
	else if (s->over)
		part = n_ranks > 1 ? weir_cap_highest(s, see) : WAIT_CAP;
	/* Services as long as the objective must not close the door. */
	return part * see->slo_ns > 2 * see->cost_ns ? part * see->slo_ns : 2 * see->cost_ns;
}

/* 0, or why an event with `left_ns` to its deadline may not enter. */
static int weir_judge(const struct weir_state *s, const struct weir_stage_view *see, int class_id,
    int n_classes, uint32_t user, int64_t left_ns)
{
	if (see->away_ns + see->wait_ns + see->cost_ns > HOPE * (double)left_ns)
		return WEIR_EHOPELESS;
	if (see->wait_ns > weir_cap(s, see, class_id, n_classes, user))
		return WEIR_EDELAY;
	if (s->over && user >= USERS_ALL * weir_share(s, see, class_id, n_classes))
		return WEIR_EPRIORITY;
	return 0;
}

static int weir_admit(void *state, const struct weir_admission_spec *p,
    const struct admission_view *v, int class_id, int n, bool *refused, int *reason)
{
	struct weir_state *s = state;
	int m = 0;

	(void)p;
	if (v->cost_ns <= 0)
		return n;
	struct weir_stage_view see =
	    weir_look(v->threads, v->slo_ns, v->cost_ns, v->work_ns, v->length);
	see.wait_ns = see.wait_ns > (double)v->lead_ns ? see.wait_ns - (double)v->lead_ns : 0;
	see.away_ns = (double)(v->lead_ns + v->rest_ns);
	weir_watch(s, &see, v->idle > 0, v->now_ns);
	/* At rest, and still when all of them are in: within everybody's cap. */
	if (!s->over && !v->left_ns &&
	    see.wait_ns + n * see.cost_ns / see.threads <= WAIT_CAP * (1 - CAP_GRADE) * see.slo_ns)
		return n;
	int idle = v->idle > (int)v->length ? v->idle - (int)v->length : v->idle > 0;
	for (int i = 0; i < n; i++) {
		uint32_t user = users_of(v, i, &s->spread[class_id]);
		int64_t left_ns = v->left_ns ? v->left_ns[i] : INT64_MAX;
		int why = weir_judge(s, &see, class_id, v->n_classes, user, left_ns);
		if (why && m >= idle) {
			refused[i] = true;
			*reason = why;
			continue;
		}
		see.wait_ns += see.cost_ns / see.threads;
		m++;
	}
	if (m < n && v->idle == 0) /* else it says nothing of a standing queue */
		s->refused_ns = v->now_ns;
	return m;
}

static void weir_tick(
    void *state, const struct weir_admission_spec *p, const struct admission_sample *sample)
{
	struct weir_state *s = state;
	struct weir_stage_view see = weir_look(
	    sample->threads, sample->slo_ns, sample->cost_ns, sample->work_ns, sample->length);

	(void)p;
	weir_fill_learn(&s->fill, sample);
	s->service_p99_ns = (double)sample->service_p99_ns;
	weir_watch(s, &see, sample->idle, sample->now_ns);
}

static int64_t weir_least_left(const void *state)
{
	const struct weir_state *s = state;

	/* Not when the queue is short: what is known of costs may be old, and only those that are
	 * begun can teach it better. */
	bool busy = s->over && s->seen.wait_ns > WAIT_LOW * s->seen.slo_ns;

	return busy ? (int64_t)(HOPELESS * s->seen.cost_ns) : 0;
}

/* The bound of the queue has failed (a cold start, handlers that hung, a machine that stood still):
 * what waits already for longer than the objective, or than the door lets anybody wait, is late
 * whatever happens; who comes now need not be. overload.md 3.4 goes over to newest first there; shedding
 * gets to the same fresh events and keeps their order. */
static int64_t weir_most_wait(const void *state)
{
	const struct weir_state *s = state;
	double most_ns = LATE * s->seen.cost_ns;

	if (!s->over)
		return INT64_MAX;
	return (int64_t)(most_ns > s->seen.slo_ns ? most_ns : s->seen.slo_ns);
}

static double weir_part(const void *state, int class_id)
{
	const struct weir_state *s = state;

	return s->over ? weir_share(s, &s->seen, class_id, s->fill.n_classes) : 1;
}

/* ", refuses 80 % of class 2, all of class 3", by what was refused lately. */
static int weir_say_refused(const struct weir_fill *f, char *buf, size_t size, int len)
{
	const char *between = ", refuses";

	for (int c = 0; c < f->n_classes; c++) {
		double part = f->offered[c] > 0 ? f->refused[c] / f->offered[c] : 0;
		if (part < 0.005)
			continue;
		if (part > 0.995)
			len = say(buf, size, len, "%s all of class %d", between, c);
		else
			len = say(buf, size, len, "%s %.0f %% of class %d", between, 100 * part, c);
		between = ",";
	}
	return between[1] ? say(buf, size, len, ", admits all") : len;
}

static int weir_explain(
    const void *state, const struct weir_admission_spec *p, char *buf, size_t size)
{
	const struct weir_state *s = state;
	double wait_ms = s->seen.wait_ns * 1e-6;
	int len;

	(void)p;
	if (s->over)
		len = say(buf, size, 0, "OVER for %.1f s: predicted wait %.3g ms",
		    (double)(s->now_ns - s->over_ns) * 1e-9, wait_ms);
	else
		len = say(buf, size, 0, "NORMAL, predicted wait %.3g ms of %.3g ms", wait_ms,
		    WAIT_CAP * s->seen.slo_ns * 1e-6);
	return weir_say_refused(&s->fill, buf, size, len);
}

const struct admission_policy admission_weir = {
    .name = "weir",
    .help = "predict the wait, and under overload admit by class and user what the stage can do",
    .state_size = sizeof(struct weir_state),
    .fifo = true,
    .front = true,
    .init = weir_init,
    .admit = weir_admit,
    .least_left = weir_least_left,
    .most_wait = weir_most_wait,
    .part = weir_part,
    .tick = weir_tick,
    .explain = weir_explain,
};
