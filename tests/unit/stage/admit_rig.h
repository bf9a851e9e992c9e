/* SPDX-License-Identifier: MIT */
/*
 * A graph a -> b -> front for tests of stage/admit.h. It is built and never started: the test
 * offers events, takes them from the queues and publishes what a tick would have published, so no
 * threads and no real time are involved. The policy of the front belongs to the test: it answers
 * with `answer` and notes the view it was given.
 */
#ifndef WEIR_TESTS_STAGE_ADMIT_RIG_H
#define WEIR_TESTS_STAGE_ADMIT_RIG_H

#include "fixture/graph/probes.h"
#include "stage/admit.h"
#include "stage/shed_token.h"
#include "stage/stage.h"

#define RUN    40
#define NOW_NS 7000000000LL
#define COST   1000
#define LEAD   555

/* ---- the policy ---- */

extern int (*answer)(int n, bool *refused, int *reason);
extern struct admission_view seen; /* at the last question; its pointers are no longer valid */
extern int asked, asked_events, asked_class;

void test_init(void *state, const struct weir_admission_spec *p, int64_t now_ns);

int test_admit(void *state, const struct weir_admission_spec *p, const struct admission_view *v,
    int class_id, int n, bool *refused, int *reason);

double test_part(const void *state, int class_id);

extern const struct admission_policy policy;

int all(int n, bool *refused, int *reason);
int none(int n, bool *refused, int *reason);
int odd_places(int n, bool *refused, int *reason);

/* ---- the graph ---- */

extern struct weir_graph *g;
extern struct sink *a, *b, *front;
extern struct book *book; /* counters by stage id */
extern bool idle;

/* Set what ticks publish: `gate` asks f about class 0 (if `asks`), and events from it count as
 * judged. */
void make_gate(struct sink *gate, const struct sink *f, bool asks);

/* Build the graph; rig_end frees it. */
void rig_start(void);

/* Take all events that wait at `s`, as a handler would. */
int take(struct sink *s, struct weir_event **ev);
void rig_end(void);

extern int reasons[WEIR_BATCH_MAX];

int offer_at(struct sink *s, const struct sink *from, struct weir_event **ev, int n);

/* Offer `n` new events of the class at `s`, event i of session i + 1. Returns how many were
 * admitted. */
int offer(struct sink *s, int class_id, int n, struct weir_event **ev);
uint64_t shed(const struct sink *s, int class_id, int reason);
void set_mode(struct sink *s, enum weir_admission_mode mode);

/* Register the stage types, once per program. */
void test_prepare(void);

#endif
