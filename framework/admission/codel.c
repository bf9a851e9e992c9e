/* SPDX-License-Identifier: MIT */
/*
 * Admission policy `codel`: sheds events at the head of the queue that waited too long. Follows the
 * source of folly (folly/executors/Codel.cpp); the original algorithm is Nichols and Jacobson,
 * "Controlling Queue Delay", 2012.
 *
 * The stage is overloaded if even the shortest wait in an interval exceeds the target: the queue is
 * then a standing queue and not a burst. While the stage is overloaded, an event that waited over
 * twice the target is shed when it leaves the queue. (The original CoDel instead drops at a growing
 * rate; folly's authors found their rule to work better for requests.) Nothing is refused on entry,
 * and classes are ignored.
 */
#include "admission/admission.h"
#include "admission/say.h"

#define TARGET_NS   5000000LL   /* folly: codel_target_delay */
#define INTERVAL_NS 100000000LL /* folly: codel_interval */

struct codel_state {
	int64_t least_wait_ns; /* shortest wait in the interval so far */
	int64_t ends_ns;       /* the end of the interval */
	bool overloaded;       /* whether the previous interval was overloaded */
	bool fresh;            /* no event has left the queue yet */
};

static int64_t codel_interval(const struct weir_admission_spec *p)
{
	return p->interval_ns > 0 ? p->interval_ns : INTERVAL_NS;
}

/* As in folly, a target above the interval is lowered to the interval. */
static int64_t codel_target(const struct weir_admission_spec *p)
{
	int64_t target_ns = p->target_ns > 0 ? p->target_ns : TARGET_NS;

	return target_ns < codel_interval(p) ? target_ns : codel_interval(p);
}

static void codel_init(void *state, const struct weir_admission_spec *p, int64_t now_ns)
{
	struct codel_state *s = state;

	(void)p;
	*s = (struct codel_state){.ends_ns = now_ns, .fresh = true};
}

static int codel_admit(void *state, const struct weir_admission_spec *p,
    const struct admission_view *v, int class_id, int n, bool *refused, int *reason)
{
	(void)state, (void)p, (void)v, (void)class_id, (void)refused, (void)reason;
	return n;
}

static bool codel_drop(
    void *state, const struct weir_admission_spec *p, int64_t now_ns, int64_t wait_ns)
{
	struct codel_state *s = state;

	if (now_ns > s->ends_ns || s->fresh) {
		if (!s->fresh) {
			s->overloaded = s->least_wait_ns > codel_target(p);
			s->ends_ns = now_ns + codel_interval(p);
		}
		/* The first event of an interval is never shed, so a single event is always
		 * served. */
		s->fresh = false;
		s->least_wait_ns = wait_ns;
		return false;
	}
	if (wait_ns < s->least_wait_ns)
		s->least_wait_ns = wait_ns;
	return s->overloaded && wait_ns > 2 * codel_target(p);
}

static int codel_explain(const void *state, const struct weir_admission_spec *p,
    const char *const *names, char *buf, size_t size)
{
	const struct codel_state *s = state;
	double target_ms = (double)codel_target(p) * 1e-6;

	(void)names;
	if (!s->overloaded)
		return say(buf, size, 0,
		    "not overloaded: the minimum wait of the last interval was within %s ms",
		    SAY_NUMBER(target_ms));
	return say(buf, size, 0,
	    "overloaded: the minimum wait of the last interval was over %s ms; events that "
	    "waited over %s ms are shed",
	    SAY_NUMBER(target_ms), SAY_NUMBER(2 * target_ms));
}

const struct admission_policy admission_codel = {
    .name = "codel",
    .help = "while the minimum wait of an `interval` is over `target`, shed events that waited "
	    "over twice `target`",
    .state_size = sizeof(struct codel_state),
    .queue = true,
    .fifo = true,
    .init = codel_init,
    .admit = codel_admit,
    .drop = codel_drop,
    .explain = codel_explain,
};
