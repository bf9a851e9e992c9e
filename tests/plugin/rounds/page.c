/* SPDX-License-Identifier: MIT */
/*
 * A stage type that responds with a page of 1 MB, which begins with its version. It uses everything
 * that points into a plug-in: constant memory that is sent later, a payload of the graph's threads, a
 * counter, a knob, memory of its own, and a thread-local variable.
 */
#include <stdlib.h>
#include <string.h>

#include <weir/http.h>
#include <weir/weir.h>

#define PAGE_BYTES (1 << 20)

/* rounds.py replaces the digits in the file. */
static const char page[PAGE_BYTES] = "version 00000000\n";

static _Thread_local unsigned long handled;

enum { PAGE_SENT };

static const struct weir_metric page_metrics[] = {
    {.name = "page_sent_total",
	.kind = WEIR_METRIC_COUNTER,
	.unit = "events",
	.help = "Pages sent"},
    {0},
};

struct page {
	char *memory;
};

struct page_conf {
	int64_t bytes;
};

static const struct weir_knob page_knobs[] = {
    {.name = "bytes",
	.type = WEIR_KNOB_INT,
	.offset = offsetof(struct page_conf, bytes),
	.def = "17",
	.min = 17,
	.max = PAGE_BYTES,
	.help = "size of the page"},
    {0},
};

static int page_init(struct weir_stage *st, struct weir_err *err)
{
	struct page *self = weir_state(st);

	(void)err;
	self->memory = strdup(page);
	return self->memory ? 0 : WEIR_ENOMEM;
}

static void page_fini(struct weir_stage *st)
{
	free(((struct page *)weir_state(st))->memory);
}

static void page_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	const struct page_conf *conf = weir_conf(st);

	handled += (unsigned long)n;
	for (int i = 0; i < n; i++) {
		struct weir_http_request *req = weir_http_request(ev[i]);
		bool all = memmem(req->path.p, req->path.n, "all", 3);
		struct weir_slice body = {page, all ? PAGE_BYTES : (size_t)conf->bytes};
		weir_count(st, PAGE_SENT, 1);
		weir_event_finish(
		    &ev[i], weir_http_respond(req, 200, "text/plain", body, NULL, NULL));
	}
}

const struct weir_stage_ops weir_stage_page = {
    .abi = WEIR_STAGE_ABI,
    .name = "page",
    .summary = "Says which version of it this is",
    .accepts = &weir_http_request_type,
    .metrics = page_metrics,
    .knobs = page_knobs,
    .conf_size = sizeof(struct page_conf),
    .state_size = sizeof(struct page),
    .init = page_init,
    .handle = page_handle,
    .fini = page_fini,
};
