/* SPDX-License-Identifier: MIT */
/* Logs refused requests that never entered the graph and are therefore in no access log. Each
 * struct refusal_log belongs to one I/O thread. */
#ifndef WEIR_HTTP_REFUSAL_LOG_H
#define WEIR_HTTP_REFUSAL_LOG_H

#include <stdint.h>

#include <weir/stage.h>

/** Maximum number of lines per second and I/O thread, so that a flood does not fill the disk. 10 is
 * a guess: about as many as a person reads. */
#define REFUSAL_LOG_MOST 10

struct refusal_log {
	int64_t second; /* the current second (CLOCK_MONOTONIC) */
	int said;       /* refusals logged in this second */
	int64_t unsaid; /* further refusals in this second, which are only counted */
};

/** Log, at level info, that `client` was refused with `status` because of `why`. If
 * REFUSAL_LOG_MOST lines were logged in this second, the refusal is only counted. The count is
 * logged before the first line of a later second. */
void refusal_log(struct refusal_log *log, const struct weir_stage *st, int64_t now_ns,
    const char *client, int status, const char *why);

#endif
