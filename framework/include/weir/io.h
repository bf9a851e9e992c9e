/* SPDX-License-Identifier: MIT */
/*
 * Event loops for sources: epoll, a mailbox with one wake-up per batch of events, lazy timers.
 *
 * A source starts one loop per I/O thread. All callbacks run in that thread, which is a thread of
 * the graph, so they may initialise, emit and finish events. Emitted events are collected in
 * outboxes and sent together, so an iteration that serves many ready connections makes only a few
 * transfers to each next stage. An iteration ("turn") consists of
 *
 *         wait -> ready callbacks -> mail -> timers -> turn_end -> send outboxes -> turn_end ...
 *
 * Sending the outboxes may finish events of this loop, because it runs inline stages. In that case
 * turn_end runs again, so that all finished responses can be written together. If many ready
 * callbacks are due, turn_end is also called, and the outboxes are sent, between groups of them.
 *
 * | call                    | own thread | other threads                           |
 * |-------------------------|------------|-----------------------------------------|
 * | weir_loop_send          | yes        | yes: threads of the graph, or attached  |
 * | weir_loop_stop, _wake   | yes        | yes                                     |
 * | weir_loop_held, _here   | yes        | yes                                     |
 * | weir_loop_is_mine       | yes        | yes                                     |
 * | weir_loop_start, _join  | no         | the main thread                         |
 * | the other loop calls    | yes        | no                                      |
 */
#ifndef WEIR_IO_H
#define WEIR_IO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <weir/annotate.h>
#include <weir/error.h>
#include <weir/event.h>
#include <weir/stage.h>

WEIR_C_BEGIN

struct weir_loop;
struct weir_watch;
struct weir_timer;

/** A descriptor watched by a loop, embedded in its owner's struct. The owner sets `ready` and
 *  `fd`. */
struct weir_watch {
	void (*ready)(struct weir_loop *loop, struct weir_watch *w, uint32_t epoll_events);
	int fd;
};

/** A timer, embedded in its owner's struct. Zero it before the first use. It fires 0 to 8 ms late,
 *  never early. */
struct weir_timer {
	void (*fire)(struct weir_loop *loop, struct weir_timer *t);
	struct weir_timer *next, **prev; /* links in the loop's wheel */
	int64_t at_ns;                   /* when it fires; set by weir_timer_set */
};

/** The callbacks of a loop. `mail` and `turn_end` are required, `start` and `stop` may be NULL. */
struct weir_loop_ops {
	/** The first and the last callback in the loop's thread. If `start` fails, weir_loop_start
	 *  returns its error code. */
	int (*start)(struct weir_loop *loop);
	void (*stop)(struct weir_loop *loop);
	/** Receives the events that threads sent with weir_loop_send, linked by `next`, and owns
	 *  them. Events from one sender are in order. */
	void (*mail)(struct weir_loop *loop, struct weir_event *list);
	/** Called before the outboxes are sent, at least once in every iteration, and again if
	 *  sending them finished events of this loop. Responses should be written here. */
	void (*turn_end)(struct weir_loop *loop);
};

/**
 * Create a loop for stage `st` and its thread "NAME/ioI" (I = `index`), which is not pinned (but
 * see weir_loop_cores). weir_loop_data returns `data`. Waits until `ops->start` has run in the
 * thread. Returns 0, WEIR_EINVAL (a required callback is missing; logged), WEIR_ENOMEM, WEIR_ESYS
 * (the thread, epoll or eventfd could not be created), or the code of `start`. Main thread.
 */
WEIR_API int weir_loop_start(struct weir_stage *st, int index, const struct weir_loop_ops *ops,
    void *data, struct weir_loop **loop);

/**
 * The number of cores of the core group that source `st` (WEIR_STAGE_HOSTS) is in; 0 if it is in
 * none. A loop with an index below it is a core, too: its thread is pinned, is called "GROUP/I",
 * and runs the stages of the group between the callbacks of the loop, also in batches that other
 * threads have sent. In the handlers of these stages, weir_loop_here() is the loop of the core. The
 * source starts at most one loop per core. Any thread.
 */
WEIR_API int weir_loop_cores(const struct weir_stage *st);

/** Make the loop end after its current iteration. Any thread. */
WEIR_API void weir_loop_stop(struct weir_loop *loop);

/** Make the loop run an iteration soon, so that turn_end sees what another thread has changed. Any
 *  thread, async-signal-safe; costs a write(2). */
WEIR_API void weir_loop_wake(struct weir_loop *loop);

/** Wait for the thread to end and free the loop. Main thread, after weir_loop_stop. */
WEIR_API void weir_loop_join(struct weir_loop *loop);

WEIR_API void *weir_loop_data(const struct weir_loop *loop);
WEIR_API struct weir_stage *weir_loop_stage(const struct weir_loop *loop);

/** Time of the current iteration, ns, CLOCK_MONOTONIC. The clock is read once per iteration. */
WEIR_API int64_t weir_loop_now_ns(const struct weir_loop *loop);

/** Set the number of this loop's events that are in other threads. While the number is not 0, the
 *  loop spins briefly before it sleeps, unless the process has only one core or recent spins have
 *  found no work. Typically called in turn_end. */
WEIR_API void weir_loop_expect(struct weir_loop *loop, int64_t answers);

/** Watch `w->fd` for epoll `events` (EPOLLIN, EPOLLOUT, EPOLLET, EPOLLEXCLUSIVE ...). Returns 0, or
 *  WEIR_ESYS with errno set. Level-triggered unless EPOLLET is given. */
WEIR_API int weir_loop_add(struct weir_loop *loop, struct weir_watch *w, uint32_t events);
WEIR_API int weir_loop_mod(struct weir_loop *loop, struct weir_watch *w, uint32_t events);
/** Stop watching. A callback of `w` that is still pending in this iteration does not run. */
WEIR_API void weir_loop_del(struct weir_loop *loop, struct weir_watch *w);

/** Set or move a timer to `at_ns`. Moving a timer to a later time costs one store, because the loop
 *  re-files the timer only when its old time is reached (lazy wheel). So a connection may move its
 *  timer on every request. */
WEIR_API void weir_timer_set(struct weir_loop *loop, struct weir_timer *t, int64_t at_ns);
/** Cancel a timer. Does nothing if the timer is not set. */
WEIR_API void weir_timer_cancel(struct weir_loop *loop, struct weir_timer *t);

/**
 * Transfer `ev` (finished, or new to the loop) to the loop's thread, which then owns it. If the
 * caller is the loop's own thread, `ev` is added to the mail of this iteration. If the caller is
 * another thread of the graph, `ev` stays in the caller's outbox until the caller's batch ends, so
 * all events that the batch sends to the loop cost one lock and at most one wake-up.
 */
WEIR_API void weir_loop_send(struct weir_loop *loop, struct weir_event *ev);

/**
 * Whether the loop is held up: its thread has been in one handler call of an inline stage for
 * longer than `threads: { stuck }` of that stage. Meanwhile the source's other loops may take over
 * its work; each of them runs an iteration when this value changes. Any thread, until the loop is
 * freed.
 */
WEIR_API bool weir_loop_held(const struct weir_loop *loop);
/** The number of loops of source `st` that are held up. A relaxed read, any thread. */
WEIR_API int weir_loops_held(const struct weir_stage *st);

/**
 * The loop of the calling thread, or NULL if the thread has none. In the handler of an inline
 * stage, the result is the loop of the thread that has sent the events. The stage may watch sockets
 * and set timers in this loop; their callbacks run in the same thread. The result may differ from
 * call to call: it is NULL if the sender is a handler thread, and sometimes if the stage has a
 * width (docs/writing-a-stage.md). In the handler of a stage with WEIR_STAGE_LOOP, the result is
 * the loop of that stage. In the handler of a stage in a core group, it is the loop of the core, if
 * a source is in the group. In the handlers of other stages with a pool, it is NULL.
 */
WEIR_API struct weir_loop *weir_loop_here(void);

/** Whether the calling thread is this loop's thread. */
WEIR_API bool weir_loop_is_mine(const struct weir_loop *loop);

/* ---- sockets passed at the start (socket activation) ---- */

/**
 * Take over the sockets that a service manager passed to this process, descriptors 3 and up, as in
 * sd_listen_fds(3): LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES. Removes the variables from the
 * environment and makes the descriptors close-on-exec, so that no child process mistakes them for
 * its own. Returns the number of sockets, 0..64. Main thread, once, before other threads start.
 */
WEIR_API int weir_passed_take(void);

/**
 * Take a passed TCP socket that listens at exactly `addr`: the same family, address, port and
 * scope. The socket is non-blocking, and the caller must close it. Returns -1 if no such socket is
 * left. The process that passed the socket may still have it open, so do not change socket options
 * on which the next user of the socket relies. Main thread.
 */
WEIR_API int weir_passed_socket(const struct sockaddr *addr);

/** Add a socket to the list of passed sockets, which then owns it. For a socket that this process
 *  bound itself, before it dropped its privileges. The socket must be listening and close-on-exec.
 *  `name` is used in messages. Returns 0, or WEIR_ENOMEM if the list already has 64 sockets. Main
 *  thread. */
WEIR_API int weir_passed_add(int fd, const char *name);

/** Log a warning for each passed socket that was not taken, and return the number of such sockets.
 *  They stay open. Main thread. */
WEIR_API int weir_passed_report(void);

WEIR_C_END

#endif
