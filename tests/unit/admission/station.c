/* SPDX-License-Identifier: MIT */
#include "unit/admission/station.h"

#include <math.h>
#include <stdlib.h>

#define STATION_RECENT 128 /* responses from which percentiles are taken */

struct station_job {
	int64_t in_ns, service_ns, cost_ns;
	int class_id;
};

struct station_ring {
	struct station_job job[STATION_LIMIT];
	uint32_t head, n;
};

/* The changing state of a run. */
struct station_run {
	const struct station *st;
	struct station_result *result;
	_Alignas(16) unsigned char state[ADMISSION_STATE_MAX];
	struct station_ring ring[WEIR_CLASSES_MAX]; /* only the first unless by_class */
	struct station_job at[STATION_THREADS];
	int64_t done_ns[STATION_THREADS]; /* INT64_MAX: idle */
	int64_t started_ns[STATION_THREADS];
	int64_t now_ns, work_ns;
	uint32_t length;
	int busy;
	bool was_idle;
	double cost_ns, class_cost_ns[WEIR_CLASSES_MAX];
	struct admission_sample sample;
	int64_t sample_start_ns;
	double wait_sum_ns, response_sum_ns;
	int64_t recent[WEIR_CLASSES_MAX + 1][STATION_RECENT]; /* the last element: all classes */
	uint64_t n_recent[WEIR_CLASSES_MAX + 1];
	int64_t *response; /* of completed events */
	size_t n_response, size_response;
	double good_work_ns;
	uint64_t rng;
};

static double station_random(struct station_run *r)
{
	r->rng ^= r->rng << 13;
	r->rng ^= r->rng >> 7;
	r->rng ^= r->rng << 17;
	return ((double)(r->rng >> 11) + 0.5) / 9007199254740992.0;
}

static int64_t station_service(struct station_run *r)
{
	double mean = (double)r->st->mean_ns;
	double u = station_random(r);

	switch (r->st->dist) {
	case STATION_EXP:
		return (int64_t)(-log(u) * mean) + 1;
	case STATION_BIMODAL: /* 90 % take half the mean, 10 % take 5.5 times the mean */
		return (int64_t)((u < 0.9 ? 0.5 : 5.5) * mean);
	case STATION_LOGNORMAL: /* sigma 1 */
		return (int64_t)(mean * exp(sqrt(-2 * log(u)) *
						cos(6.283185307179586 * station_random(r)) -
					    0.5)) +
		       1;
	default:
		return (int64_t)mean;
	}
}

static int station_compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int64_t station_p90(const struct station_run *r, int c)
{
	int64_t sorted[STATION_RECENT];
	size_t n = r->n_recent[c] < STATION_RECENT ? (size_t)r->n_recent[c] : STATION_RECENT;

	if (n == 0)
		return 0;
	memcpy(sorted, r->recent[c], n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), station_compare);
	return sorted[n * 9 / 10];
}

static bool station_counts(const struct station_run *r, const struct station_job *job)
{
	return job->in_ns >= r->st->from_ns;
}

static struct station_ring *station_next_ring(struct station_run *r)
{
	for (int c = 0; c < WEIR_CLASSES_MAX; c++)
		if (r->ring[c].n > 0)
			return &r->ring[c];
	return NULL;
}

/* Let idle servers take waiting events. */
static void station_serve(struct station_run *r)
{
	const struct station *st = r->st;

	while (r->busy < st->threads && r->length > 0) {
		struct station_ring *ring = station_next_ring(r);
		struct station_job job = ring->job[ring->head++ % STATION_LIMIT];
		int64_t wait_ns = r->now_ns - job.in_ns;
		struct station_class *class = &r->result->class[job.class_id];
		ring->n--;
		r->length--;
		r->work_ns -= job.cost_ns;
		bool shed =
		    st->policy->drop && st->policy->drop(r->state, &st->spec, r->now_ns, wait_ns);
		if (shed || wait_ns > st->slo_ns) {
			if (station_counts(r, &job)) {
				class->offered++;
				class->shed++;
			}
			continue;
		}
		int i = 0;
		while (r->done_ns[i] != INT64_MAX)
			i++;
		r->at[i] = job;
		r->started_ns[i] = r->now_ns;
		r->done_ns[i] = r->now_ns + job.service_ns;
		r->busy++;
	}
	r->was_idle |= r->busy < st->threads;
}

static void station_arrive(struct station_run *r)
{
	const struct station *st = r->st;
	double u = station_random(r);
	int c = 0;
	bool refused = false;
	int reason = 0;

	while (c < st->n_classes - 1 && u >= st->mix[c])
		u -= st->mix[c++];
	uint16_t user = (uint16_t)(station_random(r) * 65536);
	struct station_job job = {
	    .in_ns = r->now_ns, .service_ns = station_service(r), .class_id = c};
	struct station_class dummy,
	    *class = station_counts(r, &job) ? &r->result->class[c] : &dummy;
	struct admission_view view = {.now_ns = r->now_ns,
	    .length = r->length,
	    .limit = STATION_LIMIT,
	    .running = (uint32_t)r->busy,
	    .n_classes = st->n_classes,
	    .threads = st->threads,
	    .idle = r->busy < st->threads,
	    .work_ns = r->work_ns,
	    .cost_ns = (int64_t)r->cost_ns,
	    .slo_ns = st->slo_ns,
	    .user = st->no_users ? NULL : &user};
	r->sample.class[c].offered++;
	if (st->policy->admit(r->state, &st->spec, &view, c, 1, &refused, &reason) == 0) {
		class->offered++;
		class->refused++;
		r->sample.class[c].refused++;
		return;
	}
	if (r->length == STATION_LIMIT) {
		class->offered++;
		class->full++;
		if (st->policy->give_back)
			st->policy->give_back(r->state, 1);
		return;
	}
	job.cost_ns = (int64_t)(r->class_cost_ns[c] > 0 ? r->class_cost_ns[c] : r->cost_ns);
	struct station_ring *ring = &r->ring[st->by_class ? c : 0];
	ring->job[(ring->head + ring->n++) % STATION_LIMIT] = job;
	r->length++;
	r->work_ns += job.cost_ns;
	if (r->work_ns / st->threads > r->result->wait_max_ns && station_counts(r, &job))
		r->result->wait_max_ns = r->work_ns / st->threads;
	station_serve(r);
}

static void station_learn(double *cost_ns, int64_t service_ns)
{
	*cost_ns += *cost_ns > 0 ? 0.02 * ((double)service_ns - *cost_ns) : (double)service_ns;
}

static void station_finish(struct station_run *r, int i)
{
	struct station_job *job = &r->at[i];
	int64_t response_ns = r->now_ns - job->in_ns;
	struct station_class *class = &r->result->class[job->class_id];

	r->done_ns[i] = INT64_MAX;
	r->busy--;
	station_learn(&r->cost_ns, job->service_ns);
	station_learn(&r->class_cost_ns[job->class_id], job->service_ns);
	r->sample.completed++;
	r->sample.class[job->class_id].completed++;
	r->wait_sum_ns += (double)(r->started_ns[i] - job->in_ns);
	r->response_sum_ns += (double)response_ns;
	r->recent[WEIR_CLASSES_MAX][r->n_recent[WEIR_CLASSES_MAX]++ % STATION_RECENT] = response_ns;
	r->recent[job->class_id][r->n_recent[job->class_id]++ % STATION_RECENT] = response_ns;
	if (station_counts(r, job)) {
		if (r->n_response == r->size_response) {
			r->size_response = r->size_response ? 2 * r->size_response : 4096;
			r->response = realloc(r->response, r->size_response * sizeof(int64_t));
			if (!r->response)
				abort();
		}
		r->response[r->n_response++] = response_ns;
		class->offered++;
		if (response_ns <= r->st->slo_ns) {
			class->good++;
			r->good_work_ns += (double)job->service_ns;
		} else {
			class->late++;
		}
	}
	station_serve(r);
}

static void station_tick(struct station_run *r)
{
	struct admission_sample *s = &r->sample;
	const struct station *st = r->st;

	if (r->now_ns >= st->pause_from_ns && r->now_ns < st->pause_to_ns)
		return;
	s->now_ns = r->now_ns;
	s->span_ns = r->now_ns - r->sample_start_ns;
	s->n_classes = st->n_classes;
	classes_default(s);
	s->threads = st->threads;
	s->idle = r->was_idle;
	s->length = r->length;
	s->limit = STATION_LIMIT;
	s->work_ns = r->work_ns;
	s->cost_ns = (int64_t)r->cost_ns;
	s->slo_ns = st->slo_ns;
	if (s->completed > 0) {
		s->wait_mean_ns = (int64_t)(r->wait_sum_ns / (double)s->completed);
		s->response_mean_ns = (int64_t)(r->response_sum_ns / (double)s->completed);
	}
	s->response_p90_ns = station_p90(r, WEIR_CLASSES_MAX);
	for (int c = 0; c < st->n_classes; c++) {
		s->class[c].cost_ns = (int64_t)r->class_cost_ns[c];
		s->class[c].response_p90_ns = station_p90(r, c);
	}
	if (st->policy->tick)
		st->policy->tick(r->state, &st->spec, s);
	memset(s, 0, sizeof(*s));
	r->wait_sum_ns = r->response_sum_ns = 0;
	r->sample_start_ns = r->now_ns;
	r->was_idle = r->busy < st->threads;
}

static double station_rate(const struct station_run *r)
{
	const struct station *st = r->st;
	bool spike = r->now_ns >= st->spike_from_ns && r->now_ns < st->spike_to_ns;

	return (spike ? st->spike_load : st->load) * st->threads / (double)st->mean_ns;
}

static void station_events(struct station_run *r)
{
	int64_t arrival_ns = 0, tick_ns = ADMISSION_TICK_NS;

	while (r->now_ns < r->st->to_ns) {
		int64_t next_ns = arrival_ns < tick_ns ? arrival_ns : tick_ns;
		int done = -1;
		for (int i = 0; i < r->st->threads; i++)
			if (r->done_ns[i] < next_ns) {
				next_ns = r->done_ns[i];
				done = i;
			}
		r->now_ns = next_ns;
		if (done >= 0) {
			station_finish(r, done);
		} else if (next_ns == tick_ns) {
			station_tick(r);
			tick_ns += ADMISSION_TICK_NS;
		} else {
			station_arrive(r);
			arrival_ns += (int64_t)(-log(station_random(r)) / station_rate(r)) + 1;
		}
	}
}

static void station_sum(struct station_run *r)
{
	struct station_result *result = r->result;
	uint64_t offered = 0, lost = 0;

	for (int c = 0; c < r->st->n_classes; c++) {
		const struct station_class *class = &result->class[c];
		offered += class->offered;
		lost += class->refused + class->full + class->shed;
	}
	result->refused = offered ? (double)lost / (double)offered : 0;
	result->goodput =
	    r->good_work_ns / (double)(r->st->to_ns - r->st->from_ns) / r->st->threads;
	if (r->n_response > 0) {
		qsort(r->response, r->n_response, sizeof(int64_t), station_compare);
		result->p50_ns = r->response[r->n_response / 2];
		result->p99_ns = r->response[r->n_response * 99 / 100];
	}
}

struct station_result station_run(const struct station *st)
{
	struct station_result result;
	struct station_run *r = calloc(1, sizeof(*r));

	if (!r)
		abort();
	memset(&result, 0, sizeof(result));
	r->st = st;
	r->result = &result;
	r->rng = st->seed * 0x9e3779b97f4a7c15ULL + 1;
	for (int i = 0; i < STATION_THREADS; i++)
		r->done_ns[i] = INT64_MAX;
	for (int i = 0; i < 16; i++)
		station_random(r);
	r->was_idle = true;
	st->policy->init(r->state, &st->spec, 0);
	station_events(r);
	station_sum(r);
	free(r->response);
	free(r);
	return result;
}

void station_default(struct station *st)
{
	static const double mix[] = {0.1, 0.2, 0.3, 0.4};

	if (st->n_classes == 0) {
		st->n_classes = 4;
		memcpy(st->mix, mix, sizeof(mix));
	}
	if (st->threads == 0) {
		st->threads = 4;
		st->mean_ns = 5 * MS;
		st->slo_ns = 100 * MS;
	}
	if (st->dist == 0)
		st->dist = STATION_EXP;
	if (st->to_ns == 0) {
		st->from_ns = 5000 * MS;
		st->to_ns = 25000 * MS;
	}
	if (st->seed == 0)
		st->seed = 1;
}

double station_success(const struct station_result *r, int c)
{
	return r->class[c].offered ? (double)r->class[c].good / (double)r->class[c].offered : 1;
}
