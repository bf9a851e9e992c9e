/* SPDX-License-Identifier: MIT */
/* Admission policies as pure functions on a virtual clock. */
#include "admission/admission.h"

#include <stdlib.h>
#include <string.h>

#include "admission/say.h"
#include "cunit_main.h"

_Alignas(16) static unsigned char state[ADMISSION_STATE_MAX];

static int ask(const struct admission_policy *p, const struct weir_admission_spec *spec,
    int64_t now_ns, uint32_t length, uint32_t limit, int n, int *reason)
{
	struct admission_view v = {.now_ns = now_ns, .length = length, .limit = limit};
	bool refused[256] = {false};

	return p->admit(state, spec, &v, 0, n, refused, reason);
}

static void test_find(void)
{
	for (int i = 0; admission_at(i); i++) {
		CU_ASSERT_PTR_EQUAL(admission_find(admission_at(i)->name), admission_at(i));
		CU_ASSERT(admission_at(i)->state_size <= ADMISSION_STATE_MAX);
		if (admission_at(i)->drop || admission_at(i)->tick)
			CU_ASSERT_TRUE(admission_at(i)->queue);
	}
	CU_ASSERT_PTR_NULL(admission_find("nonesuch"));
	CU_ASSERT_PTR_NULL(admission_at(-1));
}

static void test_none(void)
{
	struct weir_admission_spec spec = {0};
	int reason = 0;

	CU_ASSERT_EQUAL(ask(&admission_none, &spec, 1, 4000, 4096, 64, &reason), 64);
	CU_ASSERT_EQUAL(reason, 0);
}

static void test_threshold(void)
{
	struct weir_admission_spec spec = {.threshold = 100};
	int reason = 0;

	CU_ASSERT_EQUAL(ask(&admission_threshold, &spec, 1, 36, 4096, 64, &reason), 64);
	CU_ASSERT_EQUAL(reason, 0);
	CU_ASSERT_EQUAL(ask(&admission_threshold, &spec, 1, 90, 4096, 64, &reason), 10);
	CU_ASSERT_EQUAL(reason, WEIR_ETHRESHOLD);
	CU_ASSERT_EQUAL(ask(&admission_threshold, &spec, 1, 150, 4096, 1, &reason), 0);
	spec.threshold = -1; /* half the limit */
	CU_ASSERT_EQUAL(ask(&admission_threshold, &spec, 1, 30, 64, 5, &reason), 2);
}

static int ask_class(int64_t threshold, uint32_t length, int class_id, int n_classes, int n)
{
	struct weir_admission_spec spec = {.threshold = threshold};
	struct admission_view v = {.length = length, .limit = 4096, .n_classes = n_classes};
	bool refused[1000] = {false};
	int reason = 0;

	int m = admission_threshold.admit(state, &spec, &v, class_id, n, refused, &reason);
	CU_ASSERT_EQUAL(reason, m < n ? WEIR_ETHRESHOLD : 0);
	return m;
}

/* Class k of K enters an empty queue up to threshold * (1 - k / 2K); K = 1 is the plain policy. */
static void test_threshold_of_classes(void)
{
	CU_ASSERT_EQUAL(ask_class(100, 0, 0, 1, 200), 100);
	CU_ASSERT_EQUAL(ask_class(100, 0, 0, 2, 200), 100);
	CU_ASSERT_EQUAL(ask_class(100, 0, 1, 2, 200), 75);
	CU_ASSERT_EQUAL(ask_class(100, 0, 3, 4, 200), 63); /* 62.5: in favour of the class */
	CU_ASSERT_EQUAL(ask_class(100, 74, 1, 2, 4), 1);
	CU_ASSERT_EQUAL(ask_class(100, 75, 1, 2, 4), 0);
	CU_ASSERT_EQUAL(ask_class(100, 75, 0, 2, 4), 4);
	CU_ASSERT_EQUAL(ask_class(100, 99, 0, 2, 4), 1);
}

/* However small the threshold, an idle stage serves the lowest class, and no class may fill more of
 * the queue than a higher one. */
static void test_threshold_is_fair_at_rest(void)
{
	for (int64_t threshold = 1; threshold < 40; threshold++)
		for (int k = 0, above = 1000; k < WEIR_CLASSES_MAX; k++) {
			int m = ask_class(threshold, 0, k, WEIR_CLASSES_MAX, 1000);
			CU_ASSERT(m >= 1 && m <= above && m <= threshold);
			CU_ASSERT(2 * m >= threshold);
			above = m;
		}
}

/* Far too much is offered in steps of `step_ns` over 10 s: the policy admits rate * t + burst. */
static void exact(double rate, int64_t step_ns, int n)
{
	struct weir_admission_spec spec = {.rate = rate, .burst = 5};
	const int64_t end_ns = 10000000000LL;
	double admitted = 0;
	int reason = 0;

	admission_rate.init(state, &spec, 0);
	for (int64_t t = 0; t <= end_ns; t += step_ns)
		admitted += ask(&admission_rate, &spec, t, 0, 4096, n, &reason);
	CU_ASSERT(admitted <= rate * 10 + 5 + 0.001);
	CU_ASSERT(admitted >= rate * 10 + 5 - 1.001);
	CU_ASSERT_EQUAL(reason, WEIR_ERATE);
}

static void test_rate_is_exact(void)
{
	exact(0.5, 1000000, 1);
	exact(7, 1000000, 3);
	exact(999.9, 137000, 2);
	exact(1000, 1000000, 6);
	exact(12345, 100000, 4); /* SEDA's bucket stopped at 1,000 */
	exact(1e6, 2000, 4);
}

static void test_rate_gives_back(void)
{
	struct weir_admission_spec spec = {.rate = 10, .burst = 20};
	int reason = 0;

	admission_rate.init(state, &spec, 0);
	CU_ASSERT_EQUAL(ask(&admission_rate, &spec, 0, 0, 64, 15, &reason), 15);
	admission_rate.give_back(state, 15);
	CU_ASSERT_EQUAL(ask(&admission_rate, &spec, 0, 0, 64, 20, &reason), 20);
	CU_ASSERT_EQUAL(ask(&admission_rate, &spec, 0, 0, 64, 1, &reason), 0);
}

static void test_rate_clock_going_back(void)
{
	struct weir_admission_spec spec = {.rate = 1000, .burst = 1};
	int reason = 0;

	admission_rate.init(state, &spec, 1000000000);
	CU_ASSERT_EQUAL(ask(&admission_rate, &spec, 1000000000, 0, 64, 1, &reason), 1);
	CU_ASSERT_EQUAL(ask(&admission_rate, &spec, 1001000000, 0, 64, 1, &reason), 1);
	/* Another thread's batch started earlier: that time must not produce tokens twice. */
	CU_ASSERT_EQUAL(ask(&admission_rate, &spec, 1000500000, 0, 64, 1, &reason), 0);
	CU_ASSERT_EQUAL(ask(&admission_rate, &spec, 1001500000, 0, 64, 1, &reason), 0);
}

static uint64_t rng = 88172645463325252ULL;

static uint64_t next_random(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng;
}

/* A number of any magnitude: small ones and 0 are as likely as large ones; at most 2^50. */
static int64_t any_size(void)
{
	return (int64_t)((next_random() >> 14) >> (next_random() % 51));
}

static void any_tick(const struct admission_policy *p, const struct weir_admission_spec *spec,
    int64_t now_ns, int n_classes)
{
	struct admission_sample sample = {.now_ns = now_ns,
	    .span_ns = any_size(),
	    .n_classes = n_classes,
	    .threads = (int)(any_size() & 1023),
	    .idle = next_random() % 4 == 0,
	    .length = (uint32_t)any_size(),
	    .work_ns = any_size(),
	    .cost_ns = any_size(),
	    .slo_ns = any_size(),
	    .completed = (uint64_t)any_size(),
	    .wait_mean_ns = any_size(),
	    .response_mean_ns = any_size(),
	    .response_p90_ns = any_size()};

	for (int c = 0; c < n_classes; c++) {
		sample.class[c].offered = (uint64_t)any_size();
		sample.class[c].refused = (uint64_t)any_size();
		sample.class[c].completed = (uint64_t)any_size();
		sample.class[c].cost_ns = any_size();
		sample.class[c].response_p90_ns = any_size();
	}
	if (p->tick)
		p->tick(state, spec, &sample);
}

/* One run with a random view: the answer must be valid whatever the numbers. */
static void any_admit(const struct admission_policy *p, const struct weir_admission_spec *spec,
    int64_t now_ns, int n_classes)
{
	uint16_t user[64];
	bool refused[64] = {false};
	int reason = 0, marked = 0, n = 1 + (int)(next_random() % 64);
	struct admission_view v = {.now_ns = now_ns,
	    .length = (uint32_t)any_size(),
	    .limit = 4096,
	    .running = (uint32_t)any_size(),
	    .n_classes = n_classes,
	    .threads = (int)(any_size() & 1023),
	    .idle = next_random() % 4 == 0,
	    .work_ns = any_size(),
	    .cost_ns = any_size(),
	    .slo_ns = any_size(),
	    .user = next_random() % 2 ? user : NULL};

	for (int i = 0; i < 64; i++)
		user[i] = (uint16_t)next_random();
	int m = p->admit(
	    state, spec, &v, (int)(next_random() % (uint64_t)n_classes), n, refused, &reason);
	for (int i = 0; i < n; i++)
		marked += refused[i];
	CU_ASSERT(m >= 0 && m <= n);
	CU_ASSERT(marked == 0 || marked == n - m);
	CU_ASSERT(m == n ? reason == 0 : weir_outcome_of(reason) == WEIR_OUTCOME_SHED);
	if (p->give_back && m > 1)
		p->give_back(state, m / 2);
	if (p->drop)
		p->drop(state, spec, now_ns, any_size());
}

/* Every policy gives valid answers to meaningless numbers (under ASan and UBSan in CI), and
 * explains itself in one line that fits the buffer. */
static void test_any_numbers(void)
{
	struct weir_admission_spec spec = {
	    .rate = 100, .threshold = 100, .target_ns = -1, .interval_ns = -1};

	for (int i = 0; admission_at(i); i++) {
		const struct admission_policy *p = admission_at(i);
		int n_classes = 1 + i % WEIR_CLASSES_MAX;
		int64_t now_ns = 0;
		CU_ASSERT(p->help[0] != 0);
		p->init(state, &spec, now_ns);
		for (int step = 0; step < 20000; step++) {
			char line[512] = "", tiny[8];
			now_ns += any_size() >> 16;
			any_admit(p, &spec, now_ns, n_classes);
			if (step % 5 == 0)
				any_tick(p, &spec, now_ns, n_classes);
			if (!p->explain || step % 100)
				continue;
			int len = p->explain(state, &spec, NULL, line, sizeof(line));
			CU_ASSERT_EQUAL((size_t)len, strlen(line));
			CU_ASSERT(!strstr(line, "nan") && !strstr(line, "inf"));
			CU_ASSERT(p->explain(state, &spec, NULL, tiny, sizeof(tiny)) < 8);
			CU_ASSERT(strlen(tiny) < 8);
		}
	}
}

/* Text that does not fit is cut, and nothing is written behind the buffer. */
static void test_say(void)
{
	char text[16];

	memset(text, '#', sizeof(text));
	CU_ASSERT_EQUAL(say(text, 8, 0, "%s", "abc"), 3);
	CU_ASSERT_EQUAL(say(text, 8, 3, "%d", 12), 5);
	CU_ASSERT_STRING_EQUAL(text, "abc12");
	CU_ASSERT_EQUAL(say(text, 8, 5, "%s", "defg"), 7);
	CU_ASSERT_STRING_EQUAL(text, "abc12de");
	CU_ASSERT_EQUAL(say(text, 8, 7, "h"), 7);
	CU_ASSERT_EQUAL(say(text, 8, 8, "h"), 8);
	CU_ASSERT_EQUAL(say(text, 0, 0, "h"), 0);
	CU_ASSERT_STRING_EQUAL(text, "abc12de");
	CU_ASSERT_EQUAL(memcmp(text + 8, "########", 8), 0);
}

CUNIT_MAIN("admission", {"find by name", test_find}, {"any numbers", test_any_numbers},
    {"say", test_say}, {"none", test_none}, {"threshold", test_threshold},
    {"threshold by class", test_threshold_of_classes},
    {"threshold lets every class in at rest", test_threshold_is_fair_at_rest},
    {"rate is exact at any rate", test_rate_is_exact},
    {"rate gives tokens back", test_rate_gives_back},
    {"rate on times out of order", test_rate_clock_going_back})
