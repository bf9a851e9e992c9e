/* SPDX-License-Identifier: MIT */
/* What the thread of a loop, as a core, has done since the last poll (host.h). A header of its own, since
 * a loop has it as a member. */
#ifndef WEIR_SCHED_HOST_SHARE_H
#define WEIR_SCHED_HOST_SHARE_H

#include <stdbool.h>
#include <stdint.h>

struct host_share {
	int64_t ns; /* in batches */
	int events;
	bool spent; /* it must poll now */
};

#endif
