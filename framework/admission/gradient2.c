/* SPDX-License-Identifier: MIT */
/*
 * Admission policy `gradient2`: a limit on the events at the stage, queued and running, learned
 * from response times, as in Netflix's concurrency-limits (Gradient2Limit.java, from its source).
 *
 * The gradient compares the current response time with its long-term average. While the two agree,
 * the limit grows by the allowed queue length; when the current time exceeds 1.5 times the average,
 * the limit shrinks in proportion. The algorithm's known weakness is preserved: under steady
 * overload the average drifts to the response time of the overload, which then looks normal.
 * Classes are ignored.
 *
 * Netflix takes each response as a sample. Here a sample is the mean of the responses since the
 * last sample, and is taken at the first tick with at least 10 of them, which is the smallest
 * window of Netflix's WindowedLimit.
 */
#include "admission/admission.h"
#include "admission/say.h"

/* Constants: the defaults of Netflix's implementation. */
#define LIMIT_FIRST  20
#define LIMIT_MIN    20
#define LIMIT_MAX    200
#define SMOOTHING    0.2
#define QUEUE_SIZE   4
#define TOLERANCE    1.5
#define GRADIENT_MIN 0.5
#define LONG_WINDOW  600 /* samples */
#define WARM_UP      10  /* the long-term average of the first 10 samples is a plain mean */
#define DRIFT_MAX    2   /* above this multiple of the current time, the average is cut */
#define DRIFT_CUT    0.95
#define SAMPLE_MIN   10 /* responses */

struct gradient2_state {
	double limit;
	double long_ns; /* long-term average of the response time; 0 before the first sample */
	double sum_ns;  /* sum of the response times since the last sample */
	uint64_t n;     /* number of responses since the last sample */
	int64_t peak;   /* largest number of events at the stage since the last sample */
	int samples;    /* samples taken, counted up to WARM_UP */
};

static void gradient2_init(void *state, const struct weir_admission_spec *p, int64_t now_ns)
{
	struct gradient2_state *s = state;

	(void)p, (void)now_ns;
	*s = (struct gradient2_state){.limit = LIMIT_FIRST};
}

static int gradient2_admit(void *state, const struct weir_admission_spec *p,
    const struct admission_view *v, int class_id, int n, bool *refused, int *reason)
{
	struct gradient2_state *s = state;
	int64_t here = (int64_t)v->length + v->running;
	int64_t room = (int64_t)s->limit - here;
	int m = room >= n ? n : room > 0 ? (int)room : 0;

	(void)p, (void)class_id, (void)refused;
	if (here + m > s->peak)
		s->peak = here + m;
	if (m < n)
		*reason = WEIR_ELIMIT;
	return m;
}

static void gradient2_learn(struct gradient2_state *s, double now_ns)
{
	double weight = 2.0 / (LONG_WINDOW + 1);

	if (s->samples < WARM_UP) {
		s->samples++;
		weight = 1.0 / s->samples;
	}
	s->long_ns += weight * (now_ns - s->long_ns);
	/* After a long overload, smoothing alone would lower the average too slowly. */
	if (s->long_ns > DRIFT_MAX * now_ns)
		s->long_ns *= DRIFT_CUT;
}

static void gradient2_tick(
    void *state, const struct weir_admission_spec *p, const struct admission_sample *sample)
{
	struct gradient2_state *s = state;

	(void)p;
	if (sample->completed == 0 || sample->response_mean_ns <= 0)
		return;
	s->n += sample->completed;
	s->sum_ns += (double)sample->response_mean_ns * (double)sample->completed;
	if (s->n < SAMPLE_MIN)
		return;
	double now_ns = s->sum_ns / (double)s->n;
	int64_t peak = s->peak;
	s->n = 0;
	s->sum_ns = 0;
	s->peak = 0;
	gradient2_learn(s, now_ns);
	/* The load was too low to test the limit, so the sample shows nothing about it. */
	if ((double)peak < s->limit / 2)
		return;
	double gradient = TOLERANCE * s->long_ns / now_ns;
	gradient = gradient > 1 ? 1 : gradient < GRADIENT_MIN ? GRADIENT_MIN : gradient;
	double limit = s->limit * gradient + QUEUE_SIZE;
	limit = s->limit * (1 - SMOOTHING) + limit * SMOOTHING;
	s->limit = limit > LIMIT_MAX ? LIMIT_MAX : limit < LIMIT_MIN ? LIMIT_MIN : limit;
}

/* Always true: only responses change the state. */
static bool gradient2_rested(const void *state)
{
	(void)state;
	return true;
}

static int gradient2_explain(const void *state, const struct weir_admission_spec *p,
    const char *const *names, char *buf, size_t size)
{
	const struct gradient2_state *s = state;

	(void)p;
	(void)names;
	return say(buf, size, 0,
	    "the limit is %d events at the stage, the long-term mean response time %s ms",
	    (int)s->limit, SAY_NUMBER(s->long_ns * 1e-6));
}

const struct admission_policy admission_gradient2 = {
    .name = "gradient2",
    .help = "limit the number of events at the stage according to changes of the response time",
    .state_size = sizeof(struct gradient2_state),
    .queue = true,
    .init = gradient2_init,
    .admit = gradient2_admit,
    .tick = gradient2_tick,
    .rested = gradient2_rested,
    .explain = gradient2_explain,
};
