/* SPDX-License-Identifier: MIT */
/*
 * Internals of event loops (weir/io.h): loop.c has the iterations, loop_thread.c the thread.
 *
 * Ownership: only the loop's thread uses struct weir_loop, with these exceptions: any thread may
 * use the mailbox, `link` and `stop`; `started` passes start_rc to the thread that started the
 * loop; the loop's last thread posts `over`.
 */
#ifndef WEIR_IO_LOOP_H
#define WEIR_IO_LOOP_H

#include <semaphore.h>
#include <stdatomic.h>
#include <sys/epoll.h>

#include <weir/io.h>

#include "base/task.h"
#include "event/mailbox.h"
#include "stage/stage.h"
#include "io/timer.h"

/** Maximum number of ready descriptors taken per iteration: enough to amortize the fixed cost of an
 *  iteration, few enough that the array stays in L1. */
#define LOOP_EVENTS 256

struct handler;

struct weir_loop {
	struct mailbox mailbox; /* must be first: loop_wake casts it to the loop */
	struct weir_stage *stage;
	const struct weir_loop_ops *ops;
	void *data;
	int epoll_fd;
	struct weir_watch wake;
	int64_t now_ns;
	int64_t happened_ns;                  /* what is ready now happened then or later */
	int64_t drained_ns;                   /* what was ready then has been taken */
	struct weir_event *mail, **mail_tail; /* mail from this thread to itself */
	int n_ready, next_ready;
	int n_called; /* callbacks of the last iteration */
	struct epoll_event ready[LOOP_EVENTS];
	struct timer_wheel timers;
	int64_t expected; /* events of this loop that are in other threads */
	bool awaits;      /* `expected` was above 0 at some time in this iteration */
	bool hands_over;  /* `awaits` at the end of the last iteration with ready descriptors */
	int64_t spin_ns;  /* duration of the spin before the next sleep */
	unsigned spins_skipped;
	atomic_bool stop;
	struct task task[2]; /* the thread, and its predecessor if that exited in a handler */
	int current;         /* index of the current thread's task */
	char name[32];
	int index; /* number of the loop in its stage */
	struct thread_link link;
	/* struct of a thread that exited in a handler, for the thread that replaces it */
	struct thread *passed_on;
	/* true during loop_send_on and batches of a core, the only calls that run handlers */
	bool sends;
	bool stopped; /* ops->stop has run */
	sem_t started, over;
	int start_rc;
	const struct weir_stage *refused_by; /* the stage whose thread_init failed, if any */
	/* The core that the thread may be, too (loop_core.c); NULL if it is none. What it has done since
	 * the last poll, and whether it must poll now. */
	struct handler *host;
	bool serves; /* the thread is a core at present */
	int64_t batch_ns;
	int events;
	bool spent;
};

/** The loop of the calling thread, or NULL. */
extern _Thread_local struct weir_loop *loop_current;

/** Create a loop without a thread. Returns 0, WEIR_ENOMEM or WEIR_ESYS. */
int loop_new(
    struct weir_stage *st, const struct weir_loop_ops *ops, void *data, struct weir_loop **loop);
void loop_free(struct weir_loop *loop);

/** Wait until there is work. Only the loop's thread may call this function, loop_turn and
 *  loop_send_on. */
void loop_wait(struct weir_loop *loop);
/** Run an iteration, or the rest of an iteration in which the previous thread exited. */
void loop_turn(struct weir_loop *loop);
/** The parts of these that loop_core.c uses. */
/** Run the next group of callbacks. Returns whether there are more. */
bool loop_run_some(struct weir_loop *loop);
/** Deliver mail from other threads and from this one. Returns whether there was any. */
bool loop_mail(struct weir_loop *loop);
/** Timeout of epoll_wait until the next timer, -1 if there is none. */
int loop_timeout_ms(const struct weir_loop *loop);
/** Poll for at most spin_ns unless recent spins have found nothing or no event of the loop is in
 *  another thread, and adapt spin_ns. Returns whether there is work. */
bool loop_try_spin(struct weir_loop *loop);

/** Send the events in the outboxes. Only this call runs handlers in the loop's thread. If a handler
 *  ends the thread, a new thread replaces it; an exit anywhere else ends the process (loop_died).
 *  Returns whether there were any events. */
bool loop_send_on(struct weir_loop *loop);

/* ---- loops that are cores (loop_core.c) ---- */

/** Make the loop, whose thread has not been created, core `index` of the group of its stage. Returns 0 or the code of
 *  host_claim. */
int loop_core_claim(struct weir_loop *loop, int index);
/** Wait and run an iteration as a core. Returns false if the thread is no core at present: it must
 *  call loop_wait and loop_turn. */
bool loop_core_step(struct weir_loop *loop);
/** Run an iteration as a core, or the rest of one in which the previous thread exited. */
void loop_core_turn(struct weir_loop *loop);

#endif
