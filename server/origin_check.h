/* SPDX-License-Identifier: MIT */
/* Origins of http.client that lead back to this server, according to its YAML. */
#ifndef WEIR_SERVER_ORIGIN_CHECK_H
#define WEIR_SERVER_ORIGIN_CHECK_H

#include <weir/error.h>
#include <weir/spec.h>

/**
 * Report every origin at which a stage of this file listens that leads back to the stage with the origin,
 * perhaps by way of other such origins: each request would come back until its deadline. Also report stages
 * with more loops than requests under way. Names other than localhost and that of this machine are not
 * resolved; a request that comes back over them gets 508. Main thread.
 */
void origin_check(const struct weir_spec *spec, struct weir_errs *errs);

#endif
