/* SPDX-License-Identifier: MIT */
#include "unit/file/http_call.h"

static void call_done(struct weir_http_tap *tap, struct weir_http_request *req, int status)
{
	struct call *c = (struct call *)tap;

	(void)req;
	c->outcome = status;
	atomic_store(&c->done, true);
}

struct call *call_new(const char *path)
{
	struct call *c = calloc(1, sizeof(*c));

	request_init(&c->t, path);
	c->tap.fn = call_done;
	return c;
}

void call_send(struct call *c, struct weir_stage *to)
{
	struct weir_event *ev = &c->t.req->ev;
	int reason = 0;

	weir_event_init(ev, &weir_http_request_type, 1);
	weir_http_add_tap(c->t.req, &c->tap);
	if (weir_offer(to, &ev, 1, &reason) == 0) {
		c->outcome = reason;
		atomic_store(&c->done, true);
	}
}

void call_await(struct call *c)
{
	FIXTURE_AWAIT(atomic_load(&c->done));
}

void call_free(struct call *c)
{
	request_fini(&c->t);
	free(c);
}

int call_status(const struct call *c)
{
	return c->t.req->res.status;
}

bool call_body_is(const struct call *c, const char *text)
{
	return weir_slice_is(c->t.req->res.body, text);
}

bool call_has_field(const struct call *c, const char *line)
{
	char *fields = request_fields(&c->t);
	bool has = strstr(fields, line) != NULL;

	free(fields);
	return has;
}

int64_t metric_of(struct weir_graph *g, const char *name, int row)
{
	struct weir_graph_view *v = NULL;
	int64_t value = -1;

	if (weir_graph_view(g, &v) != 0)
		abort();
	for (int i = 0; i < v->n_stages; i++)
		if (strcmp(v->stages[i].name, name) == 0)
			value = v->stages[i].metric[row];
	weir_graph_view_free(v);
	return value;
}
