/* SPDX-License-Identifier: MIT */
/*
 * Sharing out a stage (overload.md 3.3, for one stage): first every class gets the smaller of what it
 * offers and its guarantee, then the classes are filled in order of priority, each to the brim before
 * the next one gets a drop. The class that the room ends in gets a part.
 */
#include "admission/weir_fill.h"

/* Time constant of what is offered (overload.md 3.7). */
#define OFFERED_NS 100000000.0

/* Share of the stage that each class but the highest is guaranteed (overload.md 3.7): with the most
 * classes there are 14 % in sum, and the lowest is never starved. */
#define GUARANTEE 0.02

void weir_fill_learn(struct weir_fill *f, const struct admission_sample *sample)
{
	double threads = sample->threads > 1 ? sample->threads : 1;
	double span_ns = sample->span_ns > 0 ? (double)sample->span_ns : ADMISSION_TICK_NS;
	double weight = span_ns / (OFFERED_NS + span_ns);
	double sum = 0;

	f->n_classes = sample->n_classes < WEIR_CLASSES_MAX ? sample->n_classes : WEIR_CLASSES_MAX;
	f->total = 0;
	for (int c = 0; c < f->n_classes; c++) {
		int64_t cost_ns = sample->class[c].cost_ns;
		double per_event = (double)(cost_ns > 0 ? cost_ns : sample->cost_ns) / span_ns;
		double offered = (double)sample->class[c].offered * per_event;
		double refused = (double)sample->class[c].refused * per_event;
		f->offered[c] += weight * (offered - f->offered[c]);
		f->refused[c] += weight * (refused - f->refused[c]);
		double share = c == 0 ? 0 : GUARANTEE * threads;
		f->guaranteed[c] = f->offered[c] < share ? f->offered[c] : share;
		f->total += f->offered[c];
		sum += f->guaranteed[c];
	}
	for (int c = 0; c < f->n_classes; c++) {
		f->before[c] = sum;
		sum += f->offered[c] - f->guaranteed[c];
	}
}

double weir_fill_part(const struct weir_fill *f, int class_id, double room)
{
	double offered = f->offered[class_id], guaranteed = f->guaranteed[class_id];
	double more = room - f->before[class_id];

	if (offered <= 0 || more >= offered - guaranteed)
		return 1;
	return (guaranteed + (more > 0 ? more : 0)) / offered;
}
