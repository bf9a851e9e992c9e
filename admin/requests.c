/* SPDX-License-Identifier: MIT */
/* The slowest requests as JSON; see requests.h. */
#include "requests.h"

#include <stdlib.h>
#include <string.h>

#include "json_put.h"

/* As many as are kept of a class in two minutes. */
#define SLOWEST_DEFAULT (2 * WEIR_SLOWEST_MAX)

static double seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

static json_t *slow_json(const struct weir_slow *slow)
{
	json_t *spans = json_array();

	for (int i = 0; i < slow->n_spans; i++) {
		const struct weir_span *s = &slow->span[i];
		json_push(&spans,
		    json_pack("{s:s, s:f, s:f, s:f}", "stage", s->stage, "after", seconds(s->at_ns),
			"wait", seconds(s->wait_ns), "service", seconds(s->service_ns)));
	}
	return json_pack("{s:I, s:s, s:f, s:f, s:s, s:s, s:i, s:o}", "id", (json_int_t)slow->id,
	    "class", slow->class_name, "at", seconds(slow->wall_ns), "took", seconds(slow->took_ns),
	    "outcome", weir_error_word(slow->status), "path", slow->what, "hops", slow->n_hops,
	    "spans", spans);
}

/* The value of `key` in the query, "" when it is not there, into buf[size]; false when it is too long. */
static bool query_text(const char *query, const char *key, char *buf, size_t size)
{
	size_t k = strlen(key);

	buf[0] = '\0';
	while (*query) {
		size_t n = strcspn(query, "&");
		if (n > k && strncmp(query, key, k) == 0 && query[k] == '=') {
			if (n - k - 1 >= size)
				return false;
			memcpy(buf, query + k + 1, n - k - 1);
			buf[n - k - 1] = '\0';
			return true;
		}
		query += n + (query[n] == '&');
	}
	return true;
}

/* Number of the class that the query names, -1 for all; false with the reply made. */
static bool query_class(const struct call *c, int *class_id, struct reply *r)
{
	char name[ROUTE_NAME_MAX];

	*class_id = -1;
	if (!query_text(c->query, "class", name, sizeof(name))) {
		reply_problem(r, 400, "there is no class of so long a name");
		return false;
	}
	if (!*name)
		return true;
	struct weir_graph_view *v = take_view(c, r);
	if (!v)
		return false;
	for (int i = 0; i < v->n_classes; i++)
		if (strcmp(v->class_name[i], name) == 0)
			*class_id = i;
	c->source->view_free(v);
	if (*class_id < 0)
		reply_problem(r, 404, "there is no class '%s'", name);
	return *class_id >= 0;
}

void answer_slowest(const struct call *c, struct reply *r)
{
	int n = SLOWEST_DEFAULT, class_id;

	if (!query_n(c->query, &n)) {
		reply_problem(r, 400, "n must be a whole number from 1 to 500");
		return;
	}
	if (!query_class(c, &class_id, r))
		return;
	struct weir_slow *slow = calloc((unsigned)n, sizeof(*slow));
	int found = slow ? 0 : WEIR_ENOMEM;
	if (slow && c->source->slowest)
		found = c->source->slowest(c->source->arg, class_id, slow, n);
	json_t *list = found >= 0 ? json_array() : NULL;
	for (int i = 0; i < found; i++)
		json_push(&list, slow_json(&slow[i]));
	free(slow);
	reply_json(r, 200, json_pack("{s:o}", "requests", list));
}
