/* SPDX-License-Identifier: MIT */
/* Default class settings for the samples in tests. */
#ifndef WEIR_TESTS_ADMISSION_CLASSES_H
#define WEIR_TESTS_ADMISSION_CLASSES_H

#include "admission/admission.h"

/** Each class has its own priority, all but the first are guaranteed 2 % (the defaults of
 * `classes:`), and no other stage refuses anything. Call it after `offered` is filled in. */
static inline void classes_default(struct admission_sample *sample)
{
	for (int c = 0; c < sample->n_classes; c++) {
		sample->class[c].wanted = sample->class[c].offered;
		sample->class[c].priority = c;
		sample->class[c].guarantee = c == 0 ? 0 : 0.02;
	}
}

#endif
