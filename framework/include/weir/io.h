/* SPDX-License-Identifier: MIT */
/*
 * Event loops for sources: epoll, a mailbox with one wake-up per run, lazy timers.
 *
 * A source starts one loop per I/O thread. The loop calls back in its own thread only; the thread
 * is a thread of the graph, so callbacks may init, emit and finish events. What callbacks of one
 * turn emit leaves in runs at the end of the turn: a turn over 40 ready connections makes one
 * hand-off per next stage. A turn is
 *
 *         wait -> ready callbacks -> mail -> timers -> turn_end -> outboxes leave -> turn_end ...
 *
 * where turn_end runs again whenever leaving outboxes finished events of this loop (inline stages),
 * so responses of a whole turn can be written together.
 *
 * | call                    | own thread | other threads                          |
 * |-------------------------|------------|----------------------------------------|
 * | weir_loop_send          | yes        | yes: graph or attached threads, at once |
 * | weir_loop_stop, _wake   | yes        | yes                                     |
 * | everything else         | yes        | no                                      |
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

struct weir_loop;
struct weir_watch;
struct weir_timer;

/** One descriptor in a loop; embedded in what it belongs to. `ready` and `fd` are the owner's. */
struct weir_watch {
	void (*ready)(struct weir_loop *loop, struct weir_watch *w, uint32_t epoll_events);
	int fd;
};

/** A timer, embedded. Zero it before first use. Coarse: fires 0 to 8 ms late, never early. */
struct weir_timer {
	void (*fire)(struct weir_loop *loop, struct weir_timer *t);
	struct weir_timer *next, **prev; /* the loop's */
	int64_t at_ns;                   /* the loop's */
};

struct weir_loop_ops {
	/** First and last thing in the loop's thread. `start` may fail: weir_loop_start returns it.
	 */
	int (*start)(struct weir_loop *loop);
	void (*stop)(struct weir_loop *loop);
	/** Events that other threads handed back with weir_loop_send, linked by `next`, in order
	 * per sender. The callback owns them. */
	void (*mail)(struct weir_loop *loop, struct weir_event *list);
	/** End of a turn, before outboxes leave and again after they caused finishes: write here.
	 */
	void (*turn_end)(struct weir_loop *loop);
};

/**
 * Create a loop for source `st` and its thread "NAME/ioI" (I = `index`), pinned to nothing. `data`
 * is for weir_loop_data. Returns when `ops->start` has run in the thread. 0 or WEIR_ENOMEM,
 * WEIR_ESYS (thread, epoll or eventfd refused), or what start returned. Main thread.
 */
WEIR_API int weir_loop_start(struct weir_stage *st, int index, const struct weir_loop_ops *ops,
    void *data, struct weir_loop **loop);

/** Ask the loop to end after its present turn. Any thread. */
WEIR_API void weir_loop_stop(struct weir_loop *loop);

/** Make the loop run a turn soon, so that turn_end sees what another thread has set. Any thread,
 *  async-signal-safe; costs a write(2). */
WEIR_API void weir_loop_wake(struct weir_loop *loop);

/** Wait for the thread to end and free the loop. Main thread, after weir_loop_stop. */
WEIR_API void weir_loop_join(struct weir_loop *loop);

WEIR_API void *weir_loop_data(const struct weir_loop *loop);
WEIR_API struct weir_stage *weir_loop_stage(const struct weir_loop *loop);

/** Time of this turn, ns, CLOCK_MONOTONIC, read once per turn. */
WEIR_API int64_t weir_loop_now_ns(const struct weir_loop *loop);

/** Say how many events of this loop are in other threads now: while it is not 0 the loop spins for
 * a moment before it sleeps, where there is a core to spare. Typically called in turn_end. */
WEIR_API void weir_loop_expect(struct weir_loop *loop, int64_t answers);

/** Watch `w->fd` for epoll `events` (EPOLLIN, EPOLLOUT, EPOLLET, EPOLLEXCLUSIVE ...). 0 or
 *  WEIR_ESYS, errno kept. Level-triggered unless asked. */
WEIR_API int weir_loop_add(struct weir_loop *loop, struct weir_watch *w, uint32_t events);
WEIR_API int weir_loop_mod(struct weir_loop *loop, struct weir_watch *w, uint32_t events);
/** Stop watching; a callback for `w` that was ready in this turn no longer runs. */
WEIR_API void weir_loop_del(struct weir_loop *loop, struct weir_watch *w);

/** Set or move a timer to `at_ns`. Moving later costs one store; the loop re-files it when it
 *  comes up (lazy wheel), so a connection may move its timer on every request. */
WEIR_API void weir_timer_set(struct weir_loop *loop, struct weir_timer *t, int64_t at_ns);
/** Cancel; legal on a timer that is not set. */
WEIR_API void weir_timer_cancel(struct weir_loop *loop, struct weir_timer *t);

/**
 * Hand `ev` (finished, or new to the loop) to the loop's thread and lose it. From the loop's own
 * thread it joins the mail of this turn. From another thread of the graph it collects in that
 * thread's outbox until its batch ends: one lock and at most one wake-up per run.
 */
WEIR_API void weir_loop_send(struct weir_loop *loop, struct weir_event *ev);

/** Is the calling thread this loop's thread? */
WEIR_API bool weir_loop_is_mine(const struct weir_loop *loop);

/* ---- sockets that were passed at the start (socket activation) ---- */

/**
 * Take over the sockets that a service manager has passed to this process, descriptors 3 and up, as sd_listen_fds(3)
 * has it: LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES. The variables are removed from the environment and the descriptors
 * closed on exec, so that no child takes them for its own. Returns how many there are, at most 64; 0 without any.
 * Main thread, once, before other threads.
 */
WEIR_API int weir_passed_take(void);

/**
 * A passed socket that listens at exactly `addr`: TCP, and family, address, port and scope are equal. From now on it
 * is the caller's to close; it does not block. -1 when there is none (more). Whoever passed it may hold it, too, so
 * leave nothing on it that the next owner would not expect. Main thread.
 */
WEIR_API int weir_passed_socket(const struct sockaddr *addr);

/** Warn in the log of each passed socket that nobody has taken; they stay open. Returns how many. Main thread. */
WEIR_API int weir_passed_report(void);

#endif
