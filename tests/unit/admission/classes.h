/* SPDX-License-Identifier: MIT */
/* What samples of tests say of classes when nothing special is meant. */
#ifndef WEIR_TESTS_ADMISSION_CLASSES_H
#define WEIR_TESTS_ADMISSION_CLASSES_H

#include "admission/admission.h"

/** Each class has a priority of its own, all but the first are guaranteed 2 % (the defaults of `classes:`), and no
 *  other stage refuses anything. Call when `offered` is filled. */
static inline void classes_default(struct admission_sample *sample)
{
	for (int c = 0; c < sample->n_classes; c++) {
		sample->class[c].wanted = sample->class[c].offered;
		sample->class[c].priority = c;
		sample->class[c].guarantee = c == 0 ? 0 : 0.02;
	}
}

#endif
