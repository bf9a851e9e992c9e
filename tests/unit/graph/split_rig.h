/* SPDX-License-Identifier: MIT */
/* Shared by test_op.c, test_op_first.c and test_op_books.c, whose jobs have parts: the types of both, the
 * stages, and offering jobs. Each defines struct job and struct part, with the members `ev` and `op`, and
 * JOBS, before it includes this. */
#ifndef WEIR_TESTS_UNIT_GRAPH_SPLIT_RIG_H
#define WEIR_TESTS_UNIT_GRAPH_SPLIT_RIG_H

#include "fixture/graph/probes.h"

#include <weir/op.h>

#include "base/clock.h"
#include "graph/graph.h"

#ifndef JOBS /* the header compiles alone */
#define JOBS 1
struct job {
	struct weir_event ev;
	struct weir_op op;
};
#endif

/* Members of a struct weir_event_type. */
#define RIG_TYPE(of, its_name, its_finish)                                                         \
	.name = its_name, .size = sizeof(of), .finish = its_finish, .op = offsetof(of, op)

static struct job jobs[JOBS];
static const struct weir_event_type job_type, part_type;

static const struct weir_outlet part_outlets[] = {
    {"part", &part_type, false, "parts of the job"}, {.name = NULL}};

/* Members of a struct weir_stage_ops that splits jobs, and of one that gets parts. */
#define RIG_SPLITS(its_handle)                                                                     \
	.abi = WEIR_STAGE_ABI, .name = "t.split", .summary = "splits jobs into parts",             \
	.accepts = &job_type, .outlets = part_outlets, .children = 1, .handle = its_handle
#define RIG_PARTS(its_handle)                                                                      \
	.abi = WEIR_STAGE_ABI, .name = "t.part", .summary = "ends parts", .accepts = &part_type,   \
	.handle = its_handle

/* The first stage is `part`, the second one `split`. */
static inline struct weir_spec *rig_two_stages(void)
{
	struct weir_spec *spec = weir_spec_new("op");

	fixture_open_stage(spec, "part", "t.part", NULL);
	weir_spec_text(&fixture_stage(spec, "split", "t.split", "part")->admission.policy, "none");
	return spec;
}

/* Offer `n` jobs, each until it is accepted. */
static inline void rig_offer_jobs(struct weir_graph *g, int n)
{
	struct weir_stage *to = weir_graph_stage(g, "split");

	weir_thread_attach(g, "test");
	for (int i = 0; i < n; i++) {
		struct weir_event *ev = &jobs[i].ev;
		weir_event_init(ev, &job_type, clock_now_ns());
		ev->key = (uint64_t)i;
		while (weir_offer(to, &ev, 1, NULL) == 0)
			sched_yield();
	}
	weir_thread_detach();
}

#endif
