/* SPDX-License-Identifier: MIT */
/*
 * Replicas: the states of a stage with `mode: replicated`, one for each core of its group.
 *
 * A group makes the replicas of all cores that it may ever have when the graph is built, so a core
 * that joins later finds its own, and one that leaves keeps it until the graph is freed. Replica k
 * belongs to the thread of core k, which calls thread_init, handle, refused, expired, stop and
 * thread_fini with it. init and fini are called by the main thread, when the group has no threads.
 *
 * weir_state returns the replica whose number the calling thread has set with replica_enter.
 *
 * | call                              | threads                                          |
 * |-----------------------------------|--------------------------------------------------|
 * | replicas_new, replicas_free       | main thread                                      |
 * | stage_init, stage_fini            | main thread                                      |
 * | stage_refresh, stage_renewed      | one thread at a time, while cores run            |
 * | replica_enter, replica_entered    | any thread, for itself                           |
 */
#ifndef WEIR_STAGE_REPLICA_H
#define WEIR_STAGE_REPLICA_H

#include "stage/stage.h"

/** The number that stands for no replica. */
#define NO_REPLICA (-1)

/** Make the states of `n` replicas of `st`, which has no state yet. Returns 0 or WEIR_ENOMEM. */
int replicas_new(struct weir_stage *st, int n);
void replicas_free(struct weir_stage *st);

/** Number of replicas; 0 if the stage has one state. */
int replicas_of(const struct weir_stage *st);

/** From now on, the calling thread works with replica `k` of stages that have any, or with none
 *  (NO_REPLICA). Returns what was set before. */
int replica_enter(int k);

/** The number that replica_enter has set. */
int replica_entered(void);

/** Call ops->init for the stage or, if it has replicas, for each of them. If one fails, those before
 *  it are undone. Returns the code of ops->init. */
int stage_init(struct weir_stage *st, struct weir_err *err);
/** Call ops->fini accordingly. Does nothing if stage_init has failed or was not called. */
void stage_fini(struct weir_stage *st);

/** Call ops->refresh for the stage or for each replica, with the same replica of `wanted`. */
void stage_refresh(struct weir_stage *st, struct weir_stage *wanted);
/** Call ops->renewed for the stage, or for each replica until one has changed. */
bool stage_renewed(struct weir_stage *st, struct weir_stage *wanted, char *text, size_t size);

#endif
