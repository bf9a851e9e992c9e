/* SPDX-License-Identifier: MIT */
/* Logs refused requests; see refusal_log.h. */
#include "http/request/refusal_log.h"

#include <weir/log.h>

#define NS_PER_S 1000000000LL

void refusal_log(struct refusal_log *log, const struct weir_stage *st, int64_t now_ns,
    const char *client, int status, const char *why)
{
	int64_t second = now_ns / NS_PER_S;

	if (second != log->second) {
		if (log->unsaid > 0)
			weir_log(WEIR_LOG_INFO, "%s: %lld more requests were refused",
			    weir_stage_name(st), (long long)log->unsaid);
		*log = (struct refusal_log){.second = second};
	}
	if (log->said == REFUSAL_LOG_MOST) {
		log->unsaid++;
		return;
	}
	log->said++;
	weir_log(
	    WEIR_LOG_INFO, "%s: %s: refused with %d: %s", weir_stage_name(st), client, status, why);
}
