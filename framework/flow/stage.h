/* SPDX-License-Identifier: MIT */
/*
 * A stage as the framework has it: its type, its place in the graph, its door, its state.
 *
 * Constant after build but for the sink's queue, the configuration pointer and the live knobs.
 */
#ifndef WEIR_FLOW_STAGE_H
#define WEIR_FLOW_STAGE_H

#include <weir/spec.h>
#include <weir/stage.h>

#include "base/lock.h"
#include "flow/degrade.h"
#include "flow/sink.h"

/** A bound `with:` block: immutable, shared by threads, freed with the last reference. */
struct conf {
	atomic_int refs;
	const struct weir_knob *knobs;
	_Alignas(16) unsigned char data[];
};

/** One outlet with what it leads to. */
struct outlet {
	const char *name;
	struct weir_stage *to; /* NULL: unlinked */
	const struct weir_event_type
	    *type; /* resolved: what flows here, NULL when it is not known */
	bool optional, any, loop;
};

struct weir_stage {
	struct sink sink;
	const char *name;
	const struct weir_stage_ops *ops;
	struct weir_graph *graph;
	struct weir_stage_spec *spec; /* the graph's copy: effective values; under graph->lock */
	struct pool *pool;            /* NULL for sources and inline stages */
	const struct weir_event_type *type; /* of the events that come in; NULL when any */
	struct weir_stage *predecessor;     /* while the graph is started by weir_graph_succeed */
	struct weir_stage
	    *successor; /* set before the drain, when one follows; constant from then on */
	bool unchanged; /* predecessor and all it leads to are as here, but for live knobs */
	int id, depth;
	int n_outlets;
	struct outlet *outlets;
	char *key_arg; /* argument of the key field, "x-user" of header.x-user */
	void *state;
	bool inited;                    /* ops->init succeeded */
	unsigned walk;                  /* the last one that came by: stage_behind.c; main thread */
	const struct weir_mark *blamed; /* what init or start fails for; NULL: the stage */
	struct lock conf_lock;
	struct conf *conf WEIR_GUARDED_BY(conf_lock);
	_Atomic uint64_t conf_version; /* grows when conf is replaced */
	atomic_bool unhandled_logged, unlinked_logged;
	atomic_int steer;               /* enum weir_steer; written under graph->lock */
	struct batcher *batcher;        /* sizes the batches; NULL: the operator does */
	atomic_int cohort_bound;        /* cohort.max as set: the batcher's bound */
	int64_t stuck_ns;               /* calls longer than that are reported; 0: none */
	_Atomic uint64_t stuck;         /* that were */
	_Atomic uint64_t busy_shown_ns; /* most time in handlers that a view has told */
	int64_t stuck_shown_ns;         /* the watchdog's: when it last showed a stack */
	struct degrade degrade;         /* the control thread's, like */
	bool degrade_worst;             /* it was at its cheapest since it left full quality */
	atomic_int degraded; /* its level in tenths, 0 .. DEGRADE_TENTHS, for any thread */
};

/** The graph of a stage, for parts of the framework. */
struct weir_graph *stage_graph(const struct weir_stage *st);

/** Make a configuration from a `with:` node (NULL: defaults). `conf` gets one reference. 0, or
 *  WEIR_EINVAL / WEIR_ENOMEM with `errs` filled. */
int conf_new(const struct weir_stage_ops *ops, const struct weir_node *with, const char *stage,
    struct conf **conf, struct weir_errs *errs);
/** Drop a reference; NULL is allowed. */
void conf_put(struct conf *conf);
/** The present configuration with a reference. */
struct conf *stage_conf_get(struct weir_stage *st);
/** Publish `conf`, taking over the caller's reference. */
void stage_conf_set(struct weir_stage *st, struct conf *conf);

/** Sink callback: handle a batch in the calling thread, with all the books. */
void stage_run(struct sink *sink, struct weir_event **ev, int n);

/** Sink callback: wake threads of the stage's pool. */
/** Who serves the queue of `sink`, for its policy. Any thread. */
void stage_look(const struct sink *sink, struct admission_view *view);
void stage_wake(struct sink *sink, uint32_t before, uint32_t length, uint64_t parts);

/** Deal with ev[0..n) that the sink behind `outlet` of `st` refused: ops->refused or finish. */
void stage_refused(
    struct weir_stage *st, int outlet, struct weir_event **ev, int n, const int *reason);

#endif
