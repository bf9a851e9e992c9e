/* SPDX-License-Identifier: MIT */
/*
 * Admission policy `seda_rt`: SEDA's response-time controllers (Welsh and Culler, "Adaptive
 * Overload Control for Busy Internet Servers", USITS 2003; constants from Sandstorm's
 * ResponseTimeControllerDirect and ResponseTimeControllerMulticlass).
 *
 * A token bucket admits a rate. The rate follows the 90th percentile of response times, which is
 * taken every 100 responses or every second and smoothed (0.7 old, 0.3 new). With one class, the
 * direct controller adds half a request per second while the percentile is below 0.9 times the
 * target, and halves the rate when it is above 1.2 times the target. With several classes, each has
 * a rate of its own and an error e = (p90 - target) / target. Up to e = -0.5 the class gains 2 *
 * (-e - 0.1) requests per second. Above e = 0 its rate is divided by 1.2 and the rate of each lower
 * class by 10; the lower classes also miss their next gain.
 *
 * As a baseline, it preserves the weaknesses of the original: it starts at a low rate, which grows
 * so slowly that a fast stage is underused for minutes. Three defects are fixed: SEDA's bucket
 * capped every rate at 1,000 per second; it lost the tokens of events that the queue refused; and
 * it used some percentiles twice.
 */
#include "admission/admission.h"
#include "admission/bucket.h"
#include "admission/say.h"

#define SAMPLES   100
#define PERIOD_NS 1000000000LL
#define KEEP      0.7 /* weight of the old percentile */
#define RATE_MIN  0.05
#define RATE_MAX  5000.0

/* Constants of the direct controller. */
#define DIRECT_RATE  10.0
#define DIRECT_DEPTH 10.0
#define DIRECT_LOW   0.9
#define DIRECT_HIGH  1.2
#define DIRECT_MORE  0.5
#define DIRECT_LESS  2.0

/* Constants of the multiclass controller. */
#define MULTI_RATE  100.0
#define MULTI_DEPTH 1.0
#define MULTI_GAIN  2.0
#define MULTI_START (-0.5) /* error below which the rate grows */
#define MULTI_LOW   (-0.1)
#define MULTI_LOWER 10.0
#define MULTI_SELF  1.2

struct seda_class {
	struct bucket bucket;
	double rate, p90_ns;
	int64_t adjusted_ns;
	uint32_t responses; /* responses since the last adjustment */
	bool preempted;     /* a higher class was late, so the next gain is skipped */
};

struct seda_state {
	struct seda_class class[WEIR_CLASSES_MAX];
	int n_classes; /* 0 until the first call reports it */
	int last;      /* class of the last admit call; returned tokens belong to it */
};

_Static_assert(sizeof(struct seda_state) <= ADMISSION_STATE_MAX, "state too large");

static double seda_depth(const struct seda_state *s)
{
	return s->n_classes > 1 ? MULTI_DEPTH : DIRECT_DEPTH;
}

static void seda_init(void *state, const struct weir_admission_spec *p, int64_t now_ns)
{
	struct seda_state *s = state;

	(void)p;
	*s = (struct seda_state){0};
	for (int c = 0; c < WEIR_CLASSES_MAX; c++)
		s->class[c].adjusted_ns = now_ns;
}

/* Choose the controller by the number of classes, which is not known in seda_init. */
static void seda_meet(struct seda_state *s, int n_classes, int64_t now_ns)
{
	if (s->n_classes > 0)
		return;
	s->n_classes = n_classes > 1 ? n_classes : 1;
	for (int c = 0; c < s->n_classes; c++) {
		s->class[c].rate = s->n_classes > 1 ? MULTI_RATE : DIRECT_RATE;
		bucket_init(&s->class[c].bucket, seda_depth(s), now_ns);
	}
}

static int seda_admit(void *state, const struct weir_admission_spec *p,
    const struct admission_view *v, int class_id, int n, bool *refused, int *reason)
{
	struct seda_state *s = state;
	struct seda_class *class = &s->class[class_id];

	(void)p, (void)refused;
	seda_meet(s, v->n_classes, v->now_ns);
	bucket_fill(&class->bucket, class->rate, seda_depth(s), v->now_ns);
	int m = bucket_take(&class->bucket, n);
	s->last = class_id;
	if (m < n)
		*reason = WEIR_ERATE;
	return m;
}

static void seda_give_back(void *state, int n)
{
	struct seda_state *s = state;

	s->class[s->last].bucket.tokens += n;
}

static void seda_set_rate(struct seda_class *class, double rate)
{
	class->rate = rate < RATE_MIN ? RATE_MIN : rate > RATE_MAX ? RATE_MAX : rate;
}

/* Update the percentile of the class if a period has ended. Returns whether one has. */
static bool seda_measure(
    struct seda_class *class, uint64_t completed, int64_t p90_ns, int64_t now_ns)
{
	uint64_t sum = class->responses + completed;

	class->responses = sum > SAMPLES ? SAMPLES : (uint32_t)sum;
	if (class->responses == 0 || p90_ns <= 0)
		return false;
	if (class->responses < SAMPLES && now_ns - class->adjusted_ns < PERIOD_NS)
		return false;
	class->p90_ns = KEEP * class->p90_ns + (1 - KEEP) * (double)p90_ns;
	class->responses = 0;
	class->adjusted_ns = now_ns;
	return true;
}

static void seda_adjust_direct(struct seda_class *class, double target_ns)
{
	if (class->p90_ns < DIRECT_LOW * target_ns)
		seda_set_rate(class, class->rate + DIRECT_MORE);
	else if (class->p90_ns > DIRECT_HIGH * target_ns)
		seda_set_rate(class, class->rate / DIRECT_LESS);
}

static void seda_adjust_multi(struct seda_state *s, int c, double target_ns)
{
	struct seda_class *class = &s->class[c];
	double error = (class->p90_ns - target_ns) / target_ns;

	if (error < MULTI_LOW && class->preempted) {
		class->preempted = false;
	} else if (error <= MULTI_START) {
		seda_set_rate(class, class->rate + MULTI_GAIN * (-error + MULTI_LOW));
	} else if (error > 0) {
		for (int lower = c + 1; lower < s->n_classes; lower++) {
			s->class[lower].preempted = true;
			seda_set_rate(&s->class[lower], s -> class[lower].rate / MULTI_LOWER);
		}
		seda_set_rate(class, class->rate / MULTI_SELF);
	}
}

static void seda_tick(
    void *state, const struct weir_admission_spec *p, const struct admission_sample *sample)
{
	struct seda_state *s = state;
	int64_t target_ns = p->target_ns > 0 ? p->target_ns : sample->slo_ns;

	if (target_ns <= 0)
		return;
	seda_meet(s, sample->n_classes, sample->now_ns);
	if (s->n_classes == 1) {
		if (seda_measure(&s->class[0], sample -> completed, sample -> response_p90_ns,
			sample -> now_ns))
			seda_adjust_direct(&s->class[0], (double)target_ns);
		return;
	}
	for (int c = 0; c < s->n_classes; c++)
		if (seda_measure(&s->class[c], sample -> class[c].completed,
			sample->class[c].response_p90_ns, sample->now_ns))
			seda_adjust_multi(s, c, (double)target_ns);
}

/* Always true: without events the percentile is 0, so no period ends and ticks change nothing. */
static bool seda_rested(const void *state)
{
	(void)state;
	return true;
}

static int seda_explain(const void *state, const struct weir_admission_spec *p,
    const char *const *names, char *buf, size_t size)
{
	const struct seda_state *s = state;
	bool named = names && names[0] && names[1];
	int len = say(buf, size, 0, "admits per second%s:", s->n_classes > 1 ? ", by class" : "");

	(void)p;
	for (int c = 0; c < s->n_classes; c++)
		len = say(buf, size, len, "%s%s%s %s (p90 %s ms)", named && c > 0 ? "," : "",
		    named ? " " : "", named ? names[c] : "",
		    number_text(NUMBER_ROOM, s->class[c].rate, 4),
		    SAY_NUMBER(s->class[c].p90_ns * 1e-6));
	return len;
}

const struct admission_policy admission_seda_rt = {
    .name = "seda_rt",
    .help = "admit a rate per class, adjusted by comparing the 90th percentile response time with "
	    "`target`",
    .state_size = sizeof(struct seda_state),
    .queue = true,
    .init = seda_init,
    .admit = seda_admit,
    .give_back = seda_give_back,
    .tick = seda_tick,
    .rested = seda_rested,
    .explain = seda_explain,
};
