/* SPDX-License-Identifier: MIT */
/* Lines about requests that never entered the graph, so no access log has them. One I/O thread. */
#ifndef WEIR_HTTP_REFUSAL_LOG_H
#define WEIR_HTTP_REFUSAL_LOG_H

#include <stdint.h>

#include <weir/stage.h>

/** Lines a second and I/O thread; so much is read, and a flood fills no disk. A guess. */
#define REFUSAL_LOG_MOST 10

struct refusal_log {
	int64_t second; /* that `said` and `unsaid` are of */
	int said;
	int64_t unsaid;
};

/** Say, at level info, that `client` was refused with `status` because of `why`; or count it, when enough was said in this
 *  second. What was only counted is told with the next line. */
void refusal_log(struct refusal_log *log, const struct weir_stage *st, int64_t now_ns,
    const char *client, int status, const char *why);

#endif
