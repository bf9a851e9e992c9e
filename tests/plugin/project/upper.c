/* SPDX-License-Identifier: MIT */
/* upper: answer with the path of the request in capitals. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <weir/http.h>
#include <weir/weir.h>

struct upper_conf {
	char *ending;
};

static void upper_one(const struct upper_conf *conf, struct weir_event **ev)
{
	struct weir_http_request *req = weir_http_request(*ev);
	size_t n = req->path.n, m = strlen(conf->ending);
	char *text = malloc(n + m + 1);

	if (!text) {
		weir_event_finish(ev, WEIR_ENOMEM);
		return;
	}
	for (size_t i = 0; i < n; i++)
		text[i] = (char)toupper((unsigned char)req->path.p[i]);
	memcpy(text + n, conf->ending, m);
	text[n + m] = '\n';
	struct weir_slice body = {text, n + m + 1};
	weir_event_finish(ev, weir_http_respond(req, 200, "text/plain", body, free, text));
}

static void upper_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		upper_one(weir_conf(st), &ev[i]);
}

static const struct weir_knob upper_knobs[] = {
    {.name = "ending",
	.type = WEIR_KNOB_STRING,
	.offset = offsetof(struct upper_conf, ending),
	.def = "!",
	.help = "what follows the path"},
    {0},
};

const struct weir_stage_ops weir_stage_upper = {
    .abi = WEIR_STAGE_ABI,
    .name = "upper",
    .summary = "Answers with the path in capitals",
    .accepts = &weir_http_request_type,
    .knobs = upper_knobs,
    .conf_size = sizeof(struct upper_conf),
    .handle = upper_handle,
};
