/* SPDX-License-Identifier: MIT */
/* Computes metrics from the totals of a run. */
#include "world.h"

#include <stdlib.h>

#include "base/clock.h"

struct sim_bin *result_bin(struct sim *s)
{
	int64_t i = s->now_ns / s->conf->bin_ns;

	return i < s->r->n_bins ? &s->r->bin[i] : NULL;
}

double sim_goodput_per_s(
    const struct sim_config *c, const struct sim_result *r, int64_t from_ns, int64_t to_ns)
{
	int64_t first = from_ns / c->bin_ns, end = to_ns / c->bin_ns;
	uint64_t n = 0;

	if (end > r->n_bins)
		end = r->n_bins;
	for (int64_t i = first; i < end; i++)
		n += r->bin[i].in_time;
	return end > first ? (double)n * 1e9 / (double)((end - first) * c->bin_ns) : 0;
}

int64_t sim_response_ns(const struct sim_config *c, const struct sim_result *r, double q)
{
	struct hdr all = {0};

	for (int k = 0; k < c->n_classes; k++)
		hdr_merge(&all, &r->class[k].response);
	return hdr_quantile_ns(&all, q);
}

double sim_jain(const struct sim_result *r, uint32_t first, uint32_t n)
{
	double sum = 0, squares = 0;

	for (uint32_t u = first; u < first + n && u < SIM_USERS_MAX; u++) {
		sum += r->user_in_time[u];
		squares += (double)r->user_in_time[u] * r->user_in_time[u];
	}
	return squares > 0 ? sum * sum / (n * squares) : 1;
}

uint64_t sim_shed(const struct sim_class_result *k)
{
	uint64_t n = 0;

	for (int i = 0; i < WEIR_SHED_REASONS; i++)
		n += k->shed[i];
	return n;
}

/* By the utilisation law, n units of a resource can process at most n / S events per second if an
 * event occupies one for S seconds. */
double sim_ceiling_per_s(const struct sim_config *c, int i, int threads)
{
	const struct sim_stage *st = &c->stage[i];
	double fixed_ns = (double)st->batch_fixed_ns / st->batch_max;
	double service_ns = (double)st->service.mean_ns + fixed_ns;
	double by_threads = threads / service_ns;
	double by_cores = st->cpu_share > 0 ? c->cores / (service_ns * st->cpu_share) : by_threads;

	return (double)NS_PER_S * (by_cores < by_threads ? by_cores : by_threads);
}

void sim_write_csv(const struct sim_config *c, const struct sim_result *r, FILE *out)
{
	fputs("time_s,offered_per_s,goodput_per_s,late_per_s,shed_per_s", out);
	for (int i = 0; i < c->n_stages; i++)
		fprintf(out, ",%s_threads,%s_queued", c->stage[i].name, c->stage[i].name);
	fputc('\n', out);
	double per_s = 1e9 / (double)c->bin_ns;
	for (int b = 0; b < r->n_bins; b++) {
		const struct sim_bin *bin = &r->bin[b];
		fprintf(out, "%.3f,%.0f,%.0f,%.0f,%.0f", (double)(b * c->bin_ns) * 1e-9,
		    bin->offered * per_s, bin->in_time * per_s, bin->late * per_s,
		    bin->refused * per_s);
		for (int i = 0; i < c->n_stages; i++)
			fprintf(out, ",%d,%d", bin->threads[i], bin->queued[i]);
		fputc('\n', out);
	}
}

void sim_result_free(struct sim_result *r)
{
	if (!r)
		return;
	free(r->bin);
	free(r);
}
