/* SPDX-License-Identifier: MIT */
/* Shows the slowest requests as JSON; see requests.h. */
#include "requests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/trace.h>

#include "framework/base/json.h"
#include "paging.h"

/* Maximum number of rows in a list. */
#define ROWS_MAX 500

/* Default number of rows: all that are stored of one class, WEIR_SLOWEST_MAX in each of two
 * minutes. */
#define SLOWEST_DEFAULT (2 * WEIR_SLOWEST_MAX)

static double seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

static json_t *span_json(const struct weir_span *s)
{
	return json_pack("{s:s, s:f, s:f, s:f, s:f}", "stage", s->stage, "after", seconds(s->at_ns),
	    "wait", seconds(s->wait_ns), "service", seconds(s->service_ns), "awaiting",
	    seconds(s->await_ns));
}

json_t *slow_json(const struct weir_slow *slow)
{
	char trace[WEIR_TRACE_ID_BYTES];
	json_t *spans = json_array(), *children = json_array();

	weir_trace_id_print(&slow->trace, trace);
	for (int i = 0; i < slow->n_spans; i++)
		json_push(&spans, span_json(&slow->span[i]));
	for (int i = 0; i < slow->n_child_spans; i++) {
		json_t *span = span_json(&slow->child_span[i]);
		json_put(&span, "child", json_integer(slow->child_span[i].child + 1));
		json_push(&children, span);
	}
	return json_pack("{s:I, s:s, s:f, s:f, s:s, s:s, s:s, s:s, s:i, s:o, s:i, s:o}", "id",
	    (json_int_t)slow->id, "class", slow->class_name, "at", seconds(slow->wall_ns), "took",
	    seconds(slow->took_ns), "outcome", weir_error_word(slow->status), "path", slow->what,
	    "trace", trace, "end", slow->end ? slow->end : "", "hops", slow->n_hops, "spans", spans,
	    "children", slow->n_children, "child_spans", children);
}

bool query_n(const char *query, int *n)
{
	const char *p = strncmp(query, "n=", 2) == 0 ? query : strstr(query, "&n=");

	if (!p)
		return true;
	p = strchr(p, '=') + 1;
	size_t digits = strspn(p, "0123456789");
	if (digits == 0 || digits > 4 || (p[digits] != '\0' && p[digits] != '&'))
		return false;
	*n = atoi(p);
	return *n >= 1 && *n <= ROWS_MAX;
}

bool query_text(const char *query, const char *key, char *buf, size_t size)
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

bool query_class(const struct call *c, int *class_id, struct reply *r)
{
	char name[ROUTE_NAME_MAX];

	*class_id = -1;
	if (!query_text(c->query, "class", name, sizeof(name))) {
		reply_problem(r, 400, "no class has a name this long");
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

static uint64_t slow_id(const void *rows, int i)
{
	return ((const struct weir_slow *)rows)[i].id;
}

/* Build one page of rows [0, n). On failure returns NULL and fills the reply, except if memory ran
 * out: then the reply is left empty. */
static json_t *page_json(
    const struct call *c, struct paging *page, const struct weir_slow *slow, int n, struct reply *r)
{
	char class[ROUTE_NAME_MAX], extra[ROUTE_NAME_MAX + 16] = "";
	json_t *list = json_array();

	if (!paging_cut(page, slow, n, slow_id, false, r)) {
		json_decref(list);
		return NULL;
	}
	for (int i = page->first; i < page->first + page->n; i++)
		json_push(&list, slow_json(&slow[i]));
	if (query_text(c->query, "class", class, sizeof(class)) && *class)
		snprintf(extra, sizeof(extra), "class=%s&", class);
	return json_pack("{s:o, s:o}", "requests", list, "next",
	    paging_next(page, slow, n, slow_id, "/api/v1/requests/slowest", extra));
}

void answer_slowest(const struct call *c, struct reply *r)
{
	struct paging page;
	int class_id;

	if (!paging_take(c->query, SLOWEST_DEFAULT, &page, r) || !query_class(c, &class_id, r))
		return;
	struct weir_slow *slow = calloc(PAGING_MAX, sizeof(*slow));
	int n = slow ? 0 : WEIR_ENOMEM;
	if (slow && c->source->slowest)
		n = c->source->slowest(c->source->arg, class_id, slow, PAGING_MAX);
	json_t *json = n >= 0 ? page_json(c, &page, slow, n, r) : NULL;
	free(slow);
	if (json || r->status == 0)
		reply_json(r, 200, json);
}
