/* SPDX-License-Identifier: MIT */
/* The tables of rows that stages offer; see weir/rows.h. There are few, so a list is enough. */
#include <pthread.h>
#include <stdlib.h>

#include <weir/graph.h>
#include <weir/rows.h>

struct offer {
	struct offer *next;
	struct weir_stage *stage;
	const struct weir_rows *rows;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct offer *offers; /* guarded by `lock` */

int weir_rows_offer(struct weir_stage *st, const struct weir_rows *rows)
{
	struct offer *o = malloc(sizeof(*o));

	if (!o)
		return WEIR_ENOMEM;
	pthread_mutex_lock(&lock);
	*o = (struct offer){.next = offers, .stage = st, .rows = rows};
	offers = o;
	pthread_mutex_unlock(&lock);
	return 0;
}

void weir_rows_withdraw(struct weir_stage *st)
{
	pthread_mutex_lock(&lock);
	for (struct offer **at = &offers; *at; at = &(*at)->next)
		if ((*at)->stage == st) {
			struct offer *o = *at;
			*at = o->next;
			free(o);
			break;
		}
	pthread_mutex_unlock(&lock);
}

int weir_graph_rows(const struct weir_graph *graph, const char *stage,
    void (*begin)(void *to, const struct weir_rows *rows), weir_row_visit visit, void *to)
{
	struct weir_stage *st = weir_graph_stage(graph, stage);
	const struct offer *o;

	pthread_mutex_lock(&lock);
	for (o = st ? offers : NULL; o && o->stage != st;)
		o = o->next;
	if (o && begin)
		begin(to, o->rows);
	if (o)
		o->rows->read(st, visit, to);
	pthread_mutex_unlock(&lock);
	return o ? 0 : WEIR_EINVAL;
}
