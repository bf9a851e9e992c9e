/* SPDX-License-Identifier: MIT */
/*
 * Stage configurations: immutable, reference-counted blocks that are replaced as a whole.
 *
 * RCU is not used, because a read section would have to span a handler call, which may block.
 * Instead each thread holds a reference and compares a version number once per batch. Replacing a
 * block costs the writer one lock; checking for a new version costs a reader one load per batch.
 */
#include "stage/replica.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/log.h>

static size_t conf_bytes(const struct weir_stage_ops *ops)
{
	return sizeof(struct conf) + ops->conf_size;
}

int conf_new(const struct weir_stage_ops *ops, const struct weir_node *with, const char *stage,
    struct conf **out, struct weir_errs *errs)
{
	static const struct weir_knob none[] = {{.name = NULL}};
	const struct weir_knob *knobs = ops->knobs ? ops->knobs : none;
	struct conf *c = calloc(1, conf_bytes(ops));
	char where[160];

	if (!c)
		return weir_errs_add(errs, NULL, WEIR_ENOMEM, NULL, "out of memory");
	atomic_init(&c->refs, 1);
	c->knobs = knobs;
	snprintf(where, sizeof(where), "'with' of stage '%.64s' (%.40s)", stage, ops->name);
	int rc = weir_knobs_init(knobs, c->data);
	if (rc == 0)
		rc = weir_knobs_bind(knobs, with, c->data, where, errs);
	if (rc != 0) {
		conf_put(c);
		return rc == WEIR_ENOMEM ? weir_errs_add(errs, NULL, rc, NULL, "out of memory")
					 : rc;
	}
	*out = c;
	return 0;
}

void conf_put(struct conf *c)
{
	if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	weir_knobs_fini(c->knobs, c->data);
	free(c);
}

struct conf *stage_conf_get(struct weir_stage *st)
{
	lock_take(&st->conf_lock);
	struct conf *c = st->conf;
	if (c)
		atomic_fetch_add(&c->refs, 1);
	lock_release(&st->conf_lock);
	return c;
}

void stage_conf_set(struct weir_stage *st, struct conf *c)
{
	lock_take(&st->conf_lock);
	struct conf *old = st->conf;
	st->conf = c;
	lock_release(&st->conf_lock);
	atomic_fetch_add(&st->conf_version, 1);
	conf_put(old);
}

/* Return an entry of `node`: in a map, the value of the key word[0..n); in a list, the item with
 * the number `word`, counted from 1. */
static const struct weir_node *step_into(const struct weir_node *node, const char *word, size_t n)
{
	char name[64];

	if (node->kind == WEIR_NODE_LIST) {
		long i = strtol(word, NULL, 10);
		return i >= 1 && i <= node->n ? node->item[i - 1] : NULL;
	}
	snprintf(name, sizeof(name), "%.*s", (int)n, word);
	return weir_node_get(node, name);
}

bool weir_blame(struct weir_stage *st, const char *path)
{
	const struct weir_node *node = st->spec->with, *next;

	st->blamed = NULL;
	while (node && *path) {
		size_t n = strcspn(path, ".");
		next = step_into(node, path, n);
		if (!next)
			return false;
		node = next;
		st->blamed = &node->mark;
		path += n + (path[n] == '.');
	}
	return node != NULL;
}

void weir_warn(struct weir_stage *st, const char *path, const char *fmt, ...)
{
	char text[300];
	va_list args;

	if (replica_entered() > 0) /* the first replica has said it */
		return;
	weir_blame(st, path);
	const struct weir_mark *at = st->blamed ? st->blamed : &st->spec->mark;
	st->blamed = NULL;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (at->line > 0)
		weir_log(WEIR_LOG_WARN, "%s:%d:%d: stage '%s' (%s): %s", at->file ? at->file : "",
		    at->line, at->col, st->name, st->ops->name, text);
	else
		weir_log(WEIR_LOG_WARN, "stage '%s' (%s): %s", st->name, st->ops->name, text);
}

/* Return the configuration for a thread whose local cannot be allocated. The thread holds a
 * reference to the configuration until the next call. */
static const void *lend(struct thread *t, struct weir_stage *st)
{
	conf_put(t->lent);
	t->lent = stage_conf_get(st);
	return t->lent ? t->lent->data : NULL;
}

const void *weir_conf(const struct weir_stage *st)
{
	struct thread *t = thread_current;

	/* The caller does not belong to the graph: the stage is being built, started, handed over or
	 * freed. Its configuration does not change meanwhile (close_changes in
	 * operate/reload_swap.c). */
	if (!t || t->graph != st->graph)
		return st->conf ? st->conf->data : NULL;
	struct local *l = local_find(t, st->id);
	if (WEIR_UNLIKELY(!l))
		return lend(t, st->sink.stage);
	uint64_t version = atomic_load_explicit(&st->conf_version, memory_order_acquire);
	if (WEIR_UNLIKELY(!l->conf || (l->conf_version != version && l->conf_batch != t->batch))) {
		conf_put(l->conf);
		l->conf = stage_conf_get(l->stage);
		l->conf_version = version;
	}
	l->conf_batch = t->batch;
	return l->conf ? l->conf->data : NULL;
}
