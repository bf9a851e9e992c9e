/* SPDX-License-Identifier: MIT */
/*
 * Divides a stage among classes (docs/overload.md). First every class gets the smaller of its offer
 * and its guarantee. Then the priorities are filled in order, each completely before the next one
 * gets anything. At the priority where the capacity runs out, all classes get the same fraction of
 * what they offer beyond their guarantees.
 *
 * Other stages on the route of a class may refuse some of its offers. Like this stage, they refuse
 * the users with the largest numbers. So the work that this stage has to do is `wanted`, but the
 * share that it serves is expressed as a fraction of all users, that is, of `offered`.
 */
#include "admission/weir_fill.h"

#include "admission/say.h"

/* Time constant, in ns, of the estimate of the offered load (docs/overload.md). */
#define OFFERED_NS 100000000.0

/* Minimum number of events over which the offered load is averaged. Fewer events are mostly noise
 * (the standard error of 40 is 16 %), and the state OVER of weir.c would refuse events needlessly.
 * With services of 50 ms on 4 threads at load 0.7, this minimum lowered such refusals from 0.06 %
 * to 0.006 % of events (bench/overload_sim, W12). */
#define OFFERED_EVENTS 40.0

/* Shortest time constant, two ticks. For a class that offers many events, the time constant is the
 * time in which it offers OFFERED_EVENTS of them. For example, at ten times the capacity of a stage
 * with one thread and 4 ms services this is 20 ms instead of 160. Without this rule, a third of the
 * servable load was refused for 0.4 s at the end of such a spike (bench/overload, W7). */
#define OFFERED_LEAST_NS (2.0 * ADMISSION_TICK_NS)

/* Set `before` and `more`. The part of a class's work beyond its guarantee is served after the
 * guarantees of all classes and after all work of higher priorities. */
static void share_out(struct weir_fill *f)
{
	double sum = 0;

	for (int c = 0; c < f->n_classes; c++)
		sum += f->guaranteed[c];
	for (int c = 0, end; c < f->n_classes; c = end) {
		double more = 0;
		for (end = c; end < f->n_classes && f->rank[end] == f->rank[c]; end++)
			more += f->wanted[end] - f->guaranteed[end];
		for (int i = c; i < end; i++) {
			f->before[i] = sum;
			f->more[i] = more;
		}
		sum += more;
	}
}

static void learn_ranks(struct weir_fill *f, const struct admission_sample *sample)
{
	f->n_ranks = 1;
	for (int c = 0; c < f->n_classes; c++) {
		if (c > 0 && sample->class[c].priority != sample->class[c - 1].priority)
			f->n_ranks++;
		f->rank[c] = f->n_ranks - 1;
	}
}

/* Return the weight of this tick in the estimate for a class that has offered `rate` events per ns
 * so far. */
static double weight_of(double span_ns, double slow_ns, double rate)
{
	double events_ns = rate > 0 ? OFFERED_EVENTS / rate : slow_ns;

	events_ns = events_ns > OFFERED_LEAST_NS ? events_ns : OFFERED_LEAST_NS;
	return span_ns / (span_ns + (events_ns < slow_ns ? events_ns : slow_ns));
}

void weir_fill_learn(struct weir_fill *f, const struct admission_sample *sample)
{
	double threads = sample->threads > 0 ? sample->threads : 1;
	double span_ns = sample->span_ns > 0 ? (double)sample->span_ns : ADMISSION_TICK_NS;
	double events_ns = OFFERED_EVENTS * (double)sample->cost_ns / threads;
	double slow_ns = events_ns > OFFERED_NS ? events_ns : OFFERED_NS;

	f->n_classes = sample->n_classes < WEIR_CLASSES_MAX ? sample->n_classes : WEIR_CLASSES_MAX;
	learn_ranks(f, sample);
	f->total = f->highest = 0;
	for (int c = 0; c < f->n_classes; c++) {
		int64_t cost_ns = sample->class[c].cost_ns;
		double cost = (double)(cost_ns > 0 ? cost_ns : sample->cost_ns);
		double per_event = cost / span_ns;
		double weight = weight_of(span_ns, slow_ns, cost > 0 ? f->offered[c] / cost : 0);
		double share = sample->class[c].guarantee * threads;
		f->offered[c] +=
		    weight * ((double)sample->class[c].offered * per_event - f->offered[c]);
		f->wanted[c] +=
		    weight * ((double)sample->class[c].wanted * per_event - f->wanted[c]);
		f->refused[c] +=
		    weight * ((double)sample->class[c].refused * per_event - f->refused[c]);
		f->guaranteed[c] = f->wanted[c] < share ? f->wanted[c] : share;
		f->total += f->wanted[c];
		f->highest += f->rank[c] == 0 ? f->wanted[c] : 0;
	}
	share_out(f);
}

int weir_fill_rank(const struct weir_fill *f, int class_id, int n_classes, int *n_ranks)
{
	bool learnt = class_id < f->n_classes;

	*n_ranks = learnt ? f->n_ranks : n_classes > 1 ? n_classes : 1;
	return learnt ? f->rank[class_id] : class_id;
}

double weir_fill_part(const struct weir_fill *f, int class_id, double room)
{
	double offered = f->offered[class_id], guaranteed = f->guaranteed[class_id];
	double more = room - f->before[class_id], all = f->more[class_id];

	if (offered <= 0 || more >= all)
		return 1;
	/* the fraction that is served of what each class of this priority wants beyond its
	 * guarantee */
	double part = more > 0 ? more / all : 0;
	return (guaranteed + part * (f->wanted[class_id] - guaranteed)) / offered;
}

int weir_fill_say(
    const struct weir_fill *f, const char *const *names, char *buf, size_t size, int len)
{
	const char *between = ", refuses";

	for (int c = 0; c < f->n_classes; c++) {
		double part = f->offered[c] > 0 ? f->refused[c] / f->offered[c] : 0;
		if (part < 0.005)
			continue;
		if (part > 0.995)
			len = say(buf, size, len, "%s all", between);
		else
			len = say(buf, size, len, "%s %.0f %%", between, 100 * part);
		len = say_class(buf, size, len, names, c);
		between = ",";
	}
	return between[1] ? say(buf, size, len, ", admits all") : len;
}
