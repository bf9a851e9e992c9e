/* SPDX-License-Identifier: MIT */
/*
 * Acts of operators on a running graph: knobs in layers, stages paused and drained, and undo.
 *
 *   configured  what the graph was built with
 *   kept        set for good           } overriding; the brief one is in force while there is one
 *   brief       set until until_ns     }
 *
 * All of it under graph->lock, which every act takes once and keeps to its end.
 */
#ifndef WEIR_FLOW_GRAPH_ACTS_H
#define WEIR_FLOW_GRAPH_ACTS_H

#include "flow/graph.h"

/** What overrides a knob. Texts are owned. */
struct layers {
	char *kept;  /* NULL: none */
	char *brief; /* NULL: none */
	int64_t until_ns;
	uint64_t brief_act; /* the act that set it */
	bool stuck;         /* its time was over, and the knob could not be turned back */
};

/** A knob that is overridden. */
struct override {
	struct override *next;
	struct weir_stage *stage;
	char *knob, *configured; /* owned */
	struct layers layers;
};

/** What an act found, to be restored by its undo. */
struct before {
	enum { BEFORE_KNOB, BEFORE_STEER, BEFORE_OVERLOAD } kind;
	struct weir_stage *stage; /* NULL for the overload mode */
	char *knob;               /* owned */
	struct layers layers;
	int state; /* enum weir_steer, or enum weir_admission_mode */
};

void graph_acts_init(struct weir_graph *g);
void graph_acts_fini(struct weir_graph *g);

/** Record `act` in the ring, `before` (taken over) for its undo. Returns its id. */
uint64_t graph_act(struct weir_graph *g, const struct weir_act *act, struct before *before)
    WEIR_REQUIRES(&g->lock);
/** The same, and in the journal: `rule` is the sentence. */
uint64_t graph_act_noted(struct weir_graph *g, const struct weir_act *act, struct before *before,
    const struct weir_stage *st, const char *rule) WEIR_REQUIRES(&g->lock);
/** The act of turning the overload mode that was `mode`. */
void graph_act_overload(struct weir_graph *g, const struct weir_act *act, int mode)
    WEIR_REQUIRES(&g->lock);

/** Make the overload mode `mode`; and note it, with what an act says of it. */
void graph_overload_turn(struct weir_graph *g, int mode);
void graph_overload_note(struct weir_graph *g, int before, int mode, struct weir_act *act);

/** Turn a knob, recording nothing. Codes of weir_graph_set. */
int graph_knob_turn(
    struct weir_stage *st, const char *knob, const char *value, char *why, size_t size);
/** Its effective value into buf[size]. 0, WEIR_ENOENT, WEIR_EINVAL. */
int graph_knob_print(struct weir_stage *st, const char *knob, char *buf, size_t size);

/** The stage called `name`; NULL with `why` naming the nearest one. */
struct weir_stage *graph_find_stage(
    const struct weir_graph *g, const char *name, char *why, size_t size);

/** Make the layers of `before` the knob's; fills from and to of `act`. */
int graph_layers_restore(struct weir_graph *g, const struct before *before, struct weir_act *act,
    char *why, size_t size) WEIR_REQUIRES(&g->lock);
/** End what has expired. The control thread, each tick: one load when nothing has. */
void graph_expire(struct weir_graph *g, int64_t now_ns);
void graph_layers_free(struct layers *l);

/** The word of a state: "run", "pause", "drain". */
const char *graph_steer_word(int how);
/** Steer `st`, recording nothing. */
void graph_steer_turn(struct weir_stage *st, int how);
/** From now on stages may be paused. */
void graph_steer_begin(struct weir_graph *g);
/** All stages run, and from now on none may be paused: a drain comes. */
void graph_steer_end(struct weir_graph *g);

/** May `st` be steered so? 0, WEIR_EINVAL or WEIR_EBUSY with the sentence in why[size]. */
int graph_may_steer(const struct weir_graph *g, const struct weir_stage *st, enum weir_steer how,
    char *why, size_t size) WEIR_REQUIRES(&g->lock);

/** The stage of `g` with the name and type of `st`, NULL when there is none. */
struct weir_stage *graph_twin(const struct weir_graph *g, const struct weir_stage *st);
/** Journal and log that `what` of `stage` did not outlast a reload. */
void graph_dropped(
    struct weir_graph *g, const char *actor, const char *stage, const char *what, const char *why);
/** Copy the acts of `old`, so that they can be undone here where the stage is still there. */
void graph_acts_carry(struct weir_graph *g, struct weir_graph *old) WEIR_REQUIRES(&g->lock);
/** Override what is overridden in `old`, to whose acts nobody adds. */
void graph_layers_carry(struct weir_graph *g, struct weir_graph *old) WEIR_REQUIRES(&g->lock);
/** 0, or WEIR_EBUSY when another graph follows `g`, with the sentence in why[size]. */
int graph_acts_open(const struct weir_graph *g, char *why, size_t size) WEIR_REQUIRES(&g->lock);
/** A copy, owned. 0 or WEIR_ENOMEM with nothing in it. */
int graph_layers_copy(struct layers *to, const struct layers *from);

/** What overrides `knob` of `st`, NULL when nothing does. */
struct override *graph_override(const struct weir_graph *g, const struct weir_stage *st,
    const char *knob) WEIR_REQUIRES(&g->lock);
/** Forget it. */
void graph_override_drop(struct weir_graph *g, struct override *o) WEIR_REQUIRES(&g->lock);
/** The effective value, malloc'ed; NULL when there is no such knob or no memory. */
char *graph_knob_text(struct weir_stage *st, const char *knob);

/** Write a sentence into why[size]; returns `code`. */
int graph_say(char *why, size_t size, int code, const char *fmt, ...) WEIR_PRINTF(4, 5);

/** `text` into buf[size], its end cut to "..." when it is longer. */
void graph_cut(char *buf, size_t size, const char *text);

#endif
