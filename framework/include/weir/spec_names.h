/* SPDX-License-Identifier: MIT */
/*
 * The part of weir_spec_check that needs only the names in a spec: stage types, outlets and the
 * stages that they lead to. A loader calls it after mistakes in keys and values, so that these are
 * reported together with the mistakes in links.
 */
#ifndef WEIR_SPEC_NAMES_H
#define WEIR_SPEC_NAMES_H

#include <weir/spec.h>

WEIR_C_BEGIN

/** Add to `errs` the unknown stage types, unknown outlets, links to stages that do not exist or are
 *  sources, and outlets that are linked twice. Missing links are not reported, since a mistake may
 *  be the reason. All stages must be in the spec. Returns 0, WEIR_EINVAL if errors were added, or
 *  WEIR_ENOMEM. Any thread. */
WEIR_API int weir_spec_check_names(const struct weir_spec *spec, struct weir_errs *errs);

WEIR_C_END

#endif
