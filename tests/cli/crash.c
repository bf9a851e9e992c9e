/* SPDX-License-Identifier: MIT */
/* A stage type with bugs, for tests of crash reports: the path of a request selects how it dies. */
#include <stdlib.h>

#include <weir/http.h>
#include <weir/weir.h>

static void *volatile nowhere; /* volatile: the compiler must not know that it is NULL */
static volatile int depth_max = 1 << 30;

/** Uses its frame after the call, so that the compiler keeps the recursion. */
static int overflow(int depth)
{
	volatile char room[4096];

	room[0] = (char)depth;
	int below = depth < depth_max ? overflow(depth + 1) : 0;
	return room[0] + below;
}

static void crash_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		struct weir_slice path = weir_http_request(ev[i])->path;
		if (weir_slice_is(path, "/null"))
			*(volatile char *)nowhere = 1;
		else if (weir_slice_is(path, "/abort"))
			abort();
		else if (weir_slice_is(path, "/stack"))
			weir_event_finish(&ev[i], overflow(0));
	}
}

const struct weir_stage_ops weir_stage_crash = {
    .abi = WEIR_STAGE_ABI,
    .name = "crash",
    .summary = "Crashes on purpose",
    .accepts = &weir_http_request_type,
    .handle = crash_handle,
};
