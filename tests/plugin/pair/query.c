/* SPDX-License-Identifier: MIT */
/* query and reply: the first stage parses the query of a request, the second one answers it. */
#include <stdio.h>

#include <weir/http.h>
#include <weir/weir.h>

struct query {
	uint64_t words;
};

static bool words_of(const void *payload, const char *arg, uint64_t *number)
{
	(void)arg;
	*number = ((const struct query *)payload)->words;
	return true;
}

static const struct weir_payload_field query_fields[] = {
    {"words", NULL, words_of, "number of words in the query"}, {.name = NULL}};
static const struct weir_payload_type query_type = {.name = "query",
    .size = sizeof(struct query),
    .fields = query_fields,
    .summary = "the parsed query"};

enum { PARSED, NONE };

static void query_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct weir_slice text = weir_http_request(ev[i])->query;
		if (text.n == 0) {
			weir_emit(st, NONE, &ev[i]);
			continue;
		}
		struct query *query = weir_payload_new(st, ev[i], &query_type);
		if (!query) {
			weir_event_finish(&ev[i], WEIR_EPRESSURE);
			continue;
		}
		query->words = 1;
		for (size_t k = 0; k < text.n; k++)
			query->words += text.p[k] == '+';
		weir_emit(st, PARSED, &ev[i]);
	}
}

static const struct weir_outlet query_outlets[] = {
    [PARSED] = {"parsed", &weir_http_request_type, false, "requests with a query"},
    [NONE] = {"none", &weir_http_request_type, false, "requests without one"},
    {.name = NULL}};
static const struct weir_payload_at query_gives[] = {{&query_type, "parsed"}, {.type = NULL}};

const struct weir_stage_ops weir_stage_query = {.abi = WEIR_STAGE_ABI,
    .name = "query",
    .summary = "Parses the query of the request",
    .accepts = &weir_http_request_type,
    .outlets = query_outlets,
    .handle = query_handle,
    .gives = query_gives};

static void reply_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		const struct query *query =
		    weir_payload(ev[i], &query_type); /* never NULL: needs */
		char text[32];
		int length = snprintf(text, sizeof(text), "%d words\n", (int)query->words);
		struct weir_slice body = {text, (size_t)length};
		weir_event_finish(&ev[i],
		    weir_http_respond_copy(weir_http_request(ev[i]), 200, "text/plain", body));
	}
}

static const struct weir_payload_type *const reply_needs[] = {&query_type, NULL};

const struct weir_stage_ops weir_stage_reply = {.abi = WEIR_STAGE_ABI,
    .name = "reply",
    .summary = "Answers with the number of words",
    .accepts = &weir_http_request_type,
    .handle = reply_handle,
    .needs = reply_needs};
