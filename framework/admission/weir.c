/* SPDX-License-Identifier: MIT */
/*
 * Admission policy `weir`: predicts the wait of an event before it enters the queue, and spends the
 * capacity of the stage on the most important events. docs/overload.md contains the formulas and
 * measurements.
 *
 * The predicted wait is the queued work divided by the threads: d = W / n. It needs no learned
 * baseline and no probing, and is as accurate as the estimated costs of events. The stage is in one
 * of two states:
 *
 *   NORMAL  A thread was idle or d was low within the last 100 ms. Events are refused only if d is
 *           long, those of lower classes at a slightly shorter d.
 *   OVER    d was never low in 100 ms, or is high, so this is a standing queue and not noise. As
 *           much of the offered load is admitted as the stage can serve, by class, and within a
 *           class by user (weir_fill.h).
 *
 * OVER ends when d is low and nothing had to be refused for 100 ms. The admitted amount follows d
 * at each decision, not at each tick, so the control loop has no dead time. Ticks only learn what
 * each class offers, so a late tick does no harm. Two rules override all others: nothing is refused
 * while a thread is idle, and everything is admitted while the cost is unknown.
 *
 * The sink owns the state and makes all calls under the queue's lock.
 */
#include <limits.h>
#include <math.h>

#include "admission/admission.h"
#include "admission/fair.h"
#include "admission/say.h"
#include "admission/users.h"
#include "admission/weir_fill.h"

/* Objective to assume if none is known; also the default objective of a class. */
#define SLO_DEFAULT_NS 500000000LL

/* Time without a low wait after which the queue is a standing queue (the CoDel interval of
 * folly). */
#define INTERVAL_NS 100000000LL

/* Waits, as fractions of the objective. A cap is the longest predicted wait with which an event may
 * enter (weir_cap). LOW and CAP are choices of the design. The others were found with the
 * simulation in tests/unit/admission (docs/overload.md, "How the numbers were found"). */
#define WAIT_LOW       0.05
#define WAIT_HIGH      0.35 /* switches to OVER immediately */
#define WAIT_CAP       0.50 /* minimum cap of the highest class */
#define WAIT_CAP_LOWER 0.40 /* cap of all other classes in OVER */
#define CAP_GRADE      0.25 /* in NORMAL, reduction of the cap for the lowest user and class */

/* The target wait in OVER. It is shorter at a higher offered load, since the queue then refills as
 * fast as it empties and no thread idles. */
#define EQUAL_BUSY 0.08 /* fraction of the objective, if the load is LOAD_BUSY times the capacity */
#define EQUAL_EVEN 0.30 /* fraction of the objective, if the load equals the capacity */
#define LOAD_BUSY  1.5
#define LEFT_SHARE 0.5 /* upper bound, a fraction of (objective - 99th percentile of services) */

/* Load, relative to the capacity, up to which a long wait is attributed to a burst. Up to this
 * load, events may wait so long that 99 % of them are just in time, those of lower classes a little
 * less. Between this load and 1 the rules of OVER take effect gradually. With WAIT_CAP alone the
 * server refused 3 % of workload W3 at load 0.7, where only 0.6 % would have been late
 * (docs/overload.md). */
#define LOAD_EASY  0.85
#define EASY_GRADE 0.1
#define EASY_TICKS 3 /* ticks after which estimates are no longer used */

/* In OVER, a long wait of the highest of several priorities is also attributed to a burst if this
 * priority's own load is up to OWN_EASY. Between OWN_EASY and LOAD_EASY the rules of OVER take
 * effect gradually. OVER must have lasted OWN_AFTER_NS, since estimates lag behind a sudden flood
 * of this priority. In virtual time, a priority that asks for half of a thread loses 0.8 % of its
 * events, and 2.6 % without this rule; without any other load 0.2 % are late (tests/policy). */
#define OWN_EASY     0.6
#define OWN_AFTER_NS (2 * INTERVAL_NS)

/*
 * How the admitted amount falls as the wait exceeds the target wait. With the excess e, a fraction
 * of the objective, these fractions of the stage's capacity are admitted:
 *
 *   near   1 - e / FALL_NEAR             for lower priorities
 *   far    FALL_FAR_AT - e / FALL_FAR    for the highest priority, if it is larger than `near`
 *
 * So the highest priority does not suffer when a sudden change of the load makes the estimates
 * temporarily wrong.
 */
#define FALL_NEAR   0.5
#define FALL_FAR    2.0
#define FALL_FAR_AT 0.85

/* An event is hopeless if its predicted time to the finish exceeds the fraction HOPE of its
 * remaining time. In OVER an event with less time left than HOPELESS times a service time is not
 * handled. */
#define HOPE     0.9
#define HOPELESS 0.5

/* An event that has waited less than LATE service times is never shed for its wait, even if the
 * objective is shorter. This matters if services take as long as the objective. 4 is twice the
 * minimum cap with one thread. */
#define LATE 4

/* Fraction of the stage's capacity that is always admitted, whatever the estimates are. */
#define FLOOR 0.05

/* What a decision knows about the stage. */
struct weir_stage_view {
	double threads, slo_ns, cost_ns;
	double wait_ns;  /* the predicted wait d; grows with each admitted event */
	double away_ns;  /* lead_ns + rest_ns: time before the queue and after the service */
	double equal_ns; /* target wait (weir_equal); 0 if not computed yet */
};

/* What all decisions on a batch of one class have in common. */
struct weir_class_view {
	int rank, n_ranks;
	bool highest;          /* the class has the highest of several priorities */
	double least_ns, ease; /* see weir_cap_least and weir_ease */
};

struct weir_state {
	struct weir_fill fill;
	int64_t low_ns;     /* when the predicted wait was last low */
	int64_t over_ns;    /* when OVER last started */
	int64_t refused_ns; /* when an event was last refused */
	int delayed_rank;   /* smallest rank refused for delay while the wait exceeds the target */
	int64_t now_ns, ticked_ns;
	struct weir_stage_view seen; /* as of the last decision */
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
	    .delayed_rank = INT_MAX,
	    .now_ns = now_ns,
	    .seen = {.threads = 1, .slo_ns = SLO_DEFAULT_NS}};
}

static struct weir_stage_view weir_look(
    double threads, int64_t slo_ns, int64_t cost_ns, int64_t work_ns)
{
	struct weir_stage_view see = {.threads = threads > 0 ? threads : 1,
	    .slo_ns = (double)(slo_ns > 0 ? slo_ns : SLO_DEFAULT_NS),
	    .cost_ns = (double)cost_ns};

	see.wait_ns = (double)work_ns / see.threads;
	return see;
}

/* Switch between NORMAL and OVER if that is due. */
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

/* The compiler inlines these, while fmax and fmin, which treat NaN in a special way, are calls. */
static inline double larger(double a, double b)
{
	return a > b ? a : b;
}

static inline double smaller(double a, double b)
{
	return a < b ? a : b;
}

/* Return the minimum cap on the wait: the larger of 2 * cost / threads, below which threads would
 * idle between events, and twice the wait that counts as low. */
static double weir_cap_least(const struct weir_stage_view *see)
{
	return larger(2 * WAIT_LOW * see->slo_ns, 2 * see->cost_ns / see->threads);
}

/* Return how far the load is below the capacity: 1 up to the fraction LOAD_EASY of the capacity,
 * falling to 0 at the full capacity. For the highest of several priorities, its own load may count
 * instead (OWN_EASY) once OVER has lasted for OWN_AFTER_NS, since the others are refused first.
 * Returns 0 while nothing has been measured, or if a stalled machine has delayed the ticks so long
 * that the estimates are too old. */
static double weir_ease(const struct weir_state *s, const struct weir_stage_view *see, bool highest)
{
	if (s->service_p99_ns <= 0 || s->now_ns - s->ticked_ns > EASY_TICKS * ADMISSION_TICK_NS)
		return 0;
	double ease = (1 - s->fill.total / see->threads) / (1 - LOAD_EASY);
	if (highest && s->over && s->now_ns - s->over_ns > OWN_AFTER_NS) {
		double own = s->fill.highest / see->threads;
		ease = larger(ease, (LOAD_EASY - own) / (LOAD_EASY - OWN_EASY));
	}
	return ease < 0 ? 0 : ease > 1 ? 1 : ease;
}

/* Return `wait_ns`, raised towards `most_ns` in proportion to `ease`. */
static double weir_eased(double ease, double wait_ns, double most_ns)
{
	return most_ns > wait_ns ? wait_ns + ease * (most_ns - wait_ns) : wait_ns;
}

/* Return the longest wait with which 99 % of events are still in time, reduced by up to EASY_GRADE
 * for lower classes and users. `place` is 0 for the highest class and user, 1 for the lowest. */
static double weir_most(const struct weir_state *s, const struct weir_stage_view *see, double place)
{
	return (see->slo_ns - s->service_p99_ns) * (1 - EASY_GRADE * place);
}

/*
 * Return the target wait. It is a fraction of the objective (EQUAL_*), but at most LEFT_SHARE of
 * the time that slow services leave of the objective.
 *
 * The target is at least the wait for sqrt(threads) events, the size of random fluctuations;
 * otherwise the queue would too often be empty by chance. If slow services leave less time than
 * this minimum, the minimum is reduced, down to the wait for one event: each further ms of wait
 * would then cost more in late events than an idle thread does.
 */
static double weir_equal(const struct weir_state *s, const struct weir_stage_view *see)
{
	double busy = (s->fill.total / see->threads - 1) / (LOAD_BUSY - 1);

	busy = busy < 0 ? 0 : busy > 1 ? 1 : busy;
	double equal_ns = see->slo_ns * (EQUAL_EVEN + (EQUAL_BUSY - EQUAL_EVEN) * busy);
	double left_ns = LEFT_SHARE * (see->slo_ns - s->service_p99_ns);
	double least_ns = see->cost_ns / sqrt(see->threads), one_ns = see->cost_ns / see->threads;
	if (equal_ns > left_ns) {
		equal_ns = larger(left_ns, WAIT_LOW * see->slo_ns);
		least_ns = smaller(least_ns, larger(left_ns, one_ns));
	}
	return weir_eased(
	    weir_ease(s, see, false), larger(equal_ns, least_ns), weir_most(s, see, 1));
}

/* Return the amount of offered load, in threads, that is admitted for a class of priority `rank`:
 * all of it if the queue is empty, the stage's capacity at the target wait, and less at a longer
 * wait. */
static double weir_room(const struct weir_stage_view *see, int rank)
{
	double beyond = (see->wait_ns - see->equal_ns) / see->slo_ns;
	double near = 1 - beyond / FALL_NEAR, far = FALL_FAR_AT - beyond / FALL_FAR;
	double part = near > far || rank > 0 ? near : far;

	if (beyond < 0)
		part = see->equal_ns / (see->wait_ns > 1 ? see->wait_ns : 1);
	return see->threads * (part > FLOOR ? part : FLOOR);
}

/* Return the fraction of the class's users that are admitted in OVER. */
static double weir_share(
    const struct weir_state *s, const struct weir_stage_view *see, int class_id, int rank)
{
	return weir_fill_part(&s->fill, class_id, weir_room(see, rank));
}

/* Return the smaller of `part` of the objective and the wait with which 99 % of events are still in
 * time, but at least the minimum cap `least_ns`. */
static double weir_cap_of(
    const struct weir_state *s, const struct weir_stage_view *see, double part, double least_ns)
{
	return larger(smaller(part * see->slo_ns, see->slo_ns - s->service_p99_ns), least_ns);
}

/*
 * Return the cap of the highest of several priorities in OVER, as a fraction of the objective.
 *
 * Lower priorities are refused at much shorter waits. So the wait reaches this cap only in a burst
 * of the highest priority, or with events that piled up while the machine stalled. Such events may
 * wait for as long as nearly all of them are still in time, with a margin of half a slow service
 * for prediction errors.
 */
static double weir_cap_highest(const struct weir_state *s, const struct weir_stage_view *see)
{
	double part = HOPE - 1.5 * s->service_p99_ns / see->slo_ns;

	return s->service_p99_ns > 0 && part > WAIT_CAP ? part : WAIT_CAP;
}

/* Return the longest predicted wait with which an event of `user` in the class may still enter. If
 * the stage can serve everything that is offered, a long wait is a burst and passes. For the
 * highest of several priorities, it is a burst if the stage can serve what this priority offers. */
static double weir_cap(const struct weir_state *s, const struct weir_stage_view *see,
    const struct weir_class_view *c, uint32_t user)
{
	double place = (c->rank + (double)user / USERS_ALL) / c->n_ranks;
	double part = WAIT_CAP * (1 - CAP_GRADE * place);
	double cap_ns, most_ns = weir_most(s, see, place);

	/* since lower classes are refused first, the highest may wait until the time that is left
	 * is just enough for a mean service */
	if (c->highest)
		most_ns = HOPE * see->slo_ns - see->cost_ns;
	if (s->over && c->highest)
		cap_ns = larger(weir_cap_highest(s, see) * see->slo_ns, c->least_ns);
	else if (s->over)
		cap_ns = weir_cap_of(s, see, c->rank > 0 ? WAIT_CAP_LOWER : WAIT_CAP, c->least_ns);
	else
		cap_ns = weir_cap_of(s, see, part, c->least_ns);
	return weir_eased(c->ease, cap_ns, most_ns);
}

/* Return the fraction of the rota's period (users.h) during which the user of event `i` is admitted
 * in OVER. */
static double weir_turn(const struct weir_state *s, const struct weir_stage_view *see,
    const struct weir_class_view *c, const struct admission_view *v, int class_id, int i)
{
	double share = weir_share(s, see, class_id, c->rank);

	if (!v->fair)
		return share;
	fair_decided(v->fair, class_id, share);
	return fair_part(v->fair, class_id, share, v->demand[i]);
}

/* Return 0 if event `i` of `user` may enter, else the reason to refuse it. */
static int weir_judge(const struct weir_state *s, const struct weir_stage_view *see,
    const struct weir_class_view *c, const struct admission_view *v, int class_id, uint32_t user,
    int i)
{
	double left_ns = v->left_ns ? (double)v->left_ns[i] : INFINITY;

	if (see->away_ns + see->wait_ns + see->cost_ns > HOPE * left_ns)
		return WEIR_EHOPELESS;
	if (see->wait_ns > weir_cap(s, see, c, user))
		return WEIR_EDELAY;
	if (c->rank > s->delayed_rank)
		return WEIR_EPRIORITY;
	if (s->over && user >= USERS_ALL * weir_turn(s, see, c, v, class_id, i))
		return WEIR_EPRIORITY;
	return 0;
}

static struct weir_class_view weir_look_at_class(
    const struct weir_state *s, const struct weir_stage_view *see, int class_id, int n_classes)
{
	struct weir_class_view c = {.least_ns = weir_cap_least(see)};

	c.rank = weir_fill_rank(&s->fill, class_id, n_classes, &c.n_ranks);
	c.highest = c.rank == 0 && c.n_ranks > 1;
	c.ease = weir_ease(s, see, c.highest);
	return c;
}

static int weir_admit(void *state, const struct weir_admission_spec *p,
    const struct admission_view *v, int class_id, int n, bool *refused, int *reason)
{
	struct weir_state *s = state;
	int m = 0;

	(void)p;
	if (v->cost_ns <= 0)
		return n;
	struct weir_stage_view see = weir_look(v->threads, v->slo_ns, v->cost_ns, v->work_ns);
	see.wait_ns = see.wait_ns > (double)v->lead_ns ? see.wait_ns - (double)v->lead_ns : 0;
	see.away_ns = (double)(v->lead_ns + v->rest_ns);
	weir_watch(s, &see, v->idle > 0, v->now_ns);
	/* Shortcut for a quiet stage: even after all n events have entered, the wait is within
	 * every class's cap. No cap is below 2 * WAIT_LOW of the objective. */
	double last_ns = see.wait_ns + n * see.cost_ns / see.threads;
	if (!s->over && !v->left_ns && s->delayed_rank == INT_MAX &&
	    (last_ns <= 2 * WAIT_LOW * see.slo_ns ||
		last_ns <= weir_cap_of(s, &see, WAIT_CAP * (1 - CAP_GRADE), weir_cap_least(&see))))
		return n;
	struct weir_class_view c = weir_look_at_class(s, &see, class_id, v->n_classes);
	see.equal_ns = s->seen.equal_ns = weir_equal(s, &see);
	if (see.wait_ns <= see.equal_ns)
		s->delayed_rank = INT_MAX;
	double each_ns = see.cost_ns / see.threads;
	int idle = v->idle > (int)v->length ? v->idle - (int)v->length : v->idle > 0;
	for (int i = 0; i < n; i++) {
		uint32_t user = users_of(v, i, &s->spread[class_id]);
		int why = weir_judge(s, &see, &c, v, class_id, user, i);
		if (why && m >= idle) {
			refused[i] = true;
			*reason = why;
			if (why == WEIR_EDELAY && c.rank < s->delayed_rank)
				s->delayed_rank = c.rank;
			continue;
		}
		see.wait_ns += each_ns;
		m++;
	}
	if (m < n && v->idle == 0) /* with an idle thread the queue is not a standing one */
		s->refused_ns = v->now_ns;
	return m;
}

static void weir_tick(
    void *state, const struct weir_admission_spec *p, const struct admission_sample *sample)
{
	struct weir_state *s = state;
	struct weir_stage_view see =
	    weir_look(sample->threads, sample->slo_ns, sample->cost_ns, sample->work_ns);

	(void)p;
	weir_fill_learn(&s->fill, sample);
	s->service_p99_ns = (double)sample->service_p99_ns;
	s->ticked_ns = sample->now_ns;
	weir_watch(s, &see, sample->idle, sample->now_ns);
}

/* Largest estimate, in threads, that is too small to affect a decision. */
#define NOTHING 1e-6

/* Skipped ticks do not update low_ns and the other times, but the next admission does, since it
 * finds an empty queue. */
static bool weir_rested(const void *state)
{
	const struct weir_state *s = state;
	double most = 0;

	/* what is wanted or refused is part of what is offered, and decays at the same rate */
	for (int c = 0; c < s->fill.n_classes; c++)
		most = larger(most, s->fill.offered[c]);
	return !s->over && most <= NOTHING;
}

static int64_t weir_least_left(const void *state)
{
	const struct weir_state *s = state;

	/* No event is hopeless while the queue is short: the known costs may be out of date, and
	 * only events that are handled can correct them. */
	bool busy = s->over && s->seen.wait_ns > WAIT_LOW * s->seen.slo_ns;

	return busy ? (int64_t)(HOPELESS * s->seen.cost_ns) : 0;
}

/* Return the wait beyond which events are shed. Such waits occur only if admission failed to bound
 * the queue (a cold start, handlers that hung, a stalled machine). Events that waited that long are
 * late in any case, while newer ones can still be in time. A queue that serves the newest events
 * first would serve the same events, but not in their order. */
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
	struct weir_stage_view see = s->seen;
	int n_ranks, rank = weir_fill_rank(&s->fill, class_id, s->fill.n_classes, &n_ranks);

	if (!s->over)
		return 1;
	if (see.equal_ns == 0)
		see.equal_ns = weir_equal(s, &see);
	return weir_share(s, &see, class_id, rank);
}

static int weir_explain(const void *state, const struct weir_admission_spec *p,
    const char *const *names, char *buf, size_t size)
{
	const struct weir_state *s = state;
	double wait_ms = s->seen.wait_ns * 1e-6;
	int len;

	(void)p;
	if (s->over)
		len = say(buf, size, 0, "OVER for %.1f s: predicted wait %s ms",
		    (double)(s->now_ns - s->over_ns) * 1e-9, SAY_NUMBER(wait_ms));
	else
		len = say(buf, size, 0, "NORMAL: predicted wait %s ms of at most %s ms",
		    SAY_NUMBER(wait_ms), SAY_NUMBER(WAIT_CAP * s->seen.slo_ns * 1e-6));
	return weir_fill_say(&s->fill, names, buf, size, len);
}

const struct admission_policy admission_weir = {
    .name = "weir",
    .help =
	"predict the wait and, under overload, admit by class and user what the stage can serve",
    .state_size = sizeof(struct weir_state),
    .queue = true,
    .fifo = true,
    .front = true,
    .fair = true,
    .init = weir_init,
    .admit = weir_admit,
    .least_left = weir_least_left,
    .most_wait = weir_most_wait,
    .part = weir_part,
    .tick = weir_tick,
    .rested = weir_rested,
    .explain = weir_explain,
};
