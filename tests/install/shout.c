/* SPDX-License-Identifier: MIT */
/* A stage type outside weir's tree: answers with the path in capitals. */
#include <ctype.h>
#include <stdlib.h>

#include <weir/http.h>
#include <weir/weir.h>

static void shout_one(struct weir_event **ev)
{
	struct weir_http_request *req = weir_http_request(*ev);
	size_t n = req->path.n;
	char *text = malloc(n + 1);

	if (!text) {
		weir_event_finish(ev, WEIR_ENOMEM);
		return;
	}
	for (size_t i = 0; i < n; i++)
		text[i] = (char)toupper((unsigned char)req->path.p[i]);
	text[n] = '\n';
	int rc =
	    weir_http_respond(req, 200, "text/plain", (struct weir_slice){text, n + 1}, free, text);
	weir_event_finish(ev, rc);
}

static void shout_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++)
		shout_one(&ev[i]);
}

const struct weir_stage_ops weir_stage_shout = {
    .abi = WEIR_STAGE_ABI,
    .name = "shout",
    .summary = "Answers with the path in capitals",
    .accepts = &weir_http_request_type,
    .handle = shout_handle,
};
