/* SPDX-License-Identifier: MIT */
/*
 * Admission policy `dagor`: WeChat's overload control (Zhou et al., "Overload Control for Scaling
 * WeChat Microservices", SoCC 2018), for one stage.
 *
 * Every event has a compound priority, a number made of its class and, within the class, its user.
 * Small numbers are served first: the stage admits the events whose number is below the admission
 * level. At the end of a window (2,000 requests or 1 s), the next level is chosen from a histogram
 * of the events offered in the window. If the mean wait in the queue exceeded the target (20 ms),
 * it is the level that would have admitted 5 % fewer events than were admitted, otherwise 1 % more.
 *
 * Differences from the paper: users are counted in 16 groups per class, not 128, and the level is
 * interpolated between two groups, which is finer and keeps the state small; events that the
 * bounded queue refused after admission do not count as admitted; a window begins with its first
 * request and ends at a tick.
 */
#include "admission/admission.h"
#include "admission/say.h"
#include "admission/users.h"

#define TARGET_NS       20000000LL
#define WINDOW_REQUESTS 2000
#define WINDOW_NS       1000000000LL
#define DOWN            0.05
#define UP              0.01
#define GROUPS          16
enum { GROUP_USERS = USERS_ALL / GROUPS };
/* Largest count, since counts have 16 bits. It is reached only if ticks are missing, so that a
 * window does not end. */
#define COUNT_MAX 60000u

struct dagor_state {
	int64_t since_ns; /* start of the window */
	double wait_ns;   /* total wait of the events that left the queue in the window */
	uint64_t waited;
	uint32_t offered, admitted; /* counts in this window */
	uint32_t level;             /* admits events with class * USERS_ALL + user below it */
	bool overloaded;            /* whether the previous window was overloaded */
	uint16_t spread[WEIR_CLASSES_MAX];
	uint16_t count[WEIR_CLASSES_MAX][GROUPS];
};

_Static_assert(sizeof(struct dagor_state) <= ADMISSION_STATE_MAX, "state too large");

#define LEVEL_ALL (WEIR_CLASSES_MAX * USERS_ALL)

static void dagor_init(void *state, const struct weir_admission_spec *p, int64_t now_ns)
{
	struct dagor_state *s = state;

	(void)p;
	*s = (struct dagor_state){.since_ns = now_ns, .level = LEVEL_ALL};
}

static bool dagor_rested(const void *state)
{
	const struct dagor_state *s = state;

	return s->offered == 0 && s->waited == 0;
}

static int dagor_admit(void *state, const struct weir_admission_spec *p,
    const struct admission_view *v, int class_id, int n, bool *refused, int *reason)
{
	struct dagor_state *s = state;
	int m = 0;

	(void)p;
	if (dagor_rested(s)) /* the window begins with its first request */
		s->since_ns = v->now_ns;
	for (int i = 0; i < n; i++) {
		uint32_t user = users_of(v, i, &s->spread[class_id]);
		bool enters = (uint32_t)class_id * USERS_ALL + user < s->level;
		if (s->offered < COUNT_MAX) {
			s->offered++;
			s->count[class_id][user / GROUP_USERS]++;
			s->admitted += enters;
		}
		refused[i] = !enters;
		m += enters;
	}
	if (m < n)
		*reason = WEIR_EPRIORITY;
	return m;
}

static void dagor_give_back(void *state, int n)
{
	struct dagor_state *s = state;

	s->admitted -= (uint32_t)n < s->admitted ? (uint32_t)n : s->admitted;
}

/* Return the level that would have admitted `wanted` of the events offered in the window. */
static uint32_t dagor_level_for(const struct dagor_state *s, double wanted)
{
	double sum = 0;

	if (wanted >= s->offered)
		return LEVEL_ALL;
	for (uint32_t g = 0; g < WEIR_CLASSES_MAX * GROUPS; g++) {
		uint32_t class_id = g / GROUPS, group = g % GROUPS;
		double here = s->count[class_id][group];
		if (sum + here > wanted)
			return g * GROUP_USERS + (uint32_t)((wanted - sum) / here * GROUP_USERS);
		sum += here;
	}
	return LEVEL_ALL;
}

static void dagor_tick(
    void *state, const struct weir_admission_spec *p, const struct admission_sample *sample)
{
	struct dagor_state *s = state;
	int64_t target_ns = p->target_ns > 0 ? p->target_ns : TARGET_NS;

	if (sample->completed > 0 && sample->wait_mean_ns > 0) {
		s->wait_ns += (double)sample->wait_mean_ns * (double)sample->completed;
		s->waited += sample->completed;
	}
	if (dagor_rested(s))
		return;
	if (s->offered < WINDOW_REQUESTS && sample->now_ns - s->since_ns < WINDOW_NS)
		return;
	/* Nothing can be learned from a window without offered events, so the level is left
	 * unchanged. */
	if (s->offered > 0) {
		s->overloaded = s->waited > 0 && s->wait_ns / (double)s->waited > (double)target_ns;
		/* Admit at least one more event. Otherwise a level that admits nothing would never
		 * rise. */
		double more = s->admitted * UP > 1 ? s->admitted * UP : 1;
		s->level = dagor_level_for(
		    s, s->overloaded ? s->admitted * (1 - DOWN) : s->admitted + more);
	}
	*s = (struct dagor_state){
	    .since_ns = sample->now_ns, .level = s->level, .overloaded = s->overloaded};
}

static int dagor_explain(const void *state, const struct weir_admission_spec *p,
    const char *const *names, char *buf, size_t size)
{
	const struct dagor_state *s = state;
	int64_t target_ns = p->target_ns > 0 ? p->target_ns : TARGET_NS;

	bool one = names && names[0] && !names[1];
	int len = say(buf, size, 0, "the mean wait is %s %s ms; admits ",
	    s->overloaded ? "over" : "within", SAY_NUMBER((double)target_ns * 1e-6));
	if (s->level >= LEVEL_ALL)
		return say(buf, size, len, one ? "all" : "all classes");
	if (!one)
		len = say(buf, size, len, "all of the higher classes, ");
	len = say(buf, size, len, "%s %%", SAY_NUMBER(100.0 * (s->level % USERS_ALL) / USERS_ALL));
	len = say_class(buf, size, len, names, (int)(s->level / USERS_ALL));
	return one ? len : say(buf, size, len, " and none of the lower classes");
}

const struct admission_policy admission_dagor = {
    .name = "dagor",
    .help = "admit classes and users down to a level, which is adjusted by comparing the mean wait "
	    "with `target`",
    .state_size = sizeof(struct dagor_state),
    .queue = true,
    .fifo = true,
    .init = dagor_init,
    .admit = dagor_admit,
    .give_back = dagor_give_back,
    .tick = dagor_tick,
    .rested = dagor_rested,
    .explain = dagor_explain,
};
