/* SPDX-License-Identifier: MIT */
/*
 * Lets one thread read the CPU time and run-queue time of another.
 *
 * The source is /proc/self/task/TID/schedstat ("on-cpu ns, waiting ns, slices"). The file stays
 * open; a read costs 0.7 to 3 us. If the file cannot be opened (the kernel does not have it, or no
 * descriptor is left), the CPU time comes from the thread's CPU clock, and run-queue time is
 * unknown. The file cannot be read after the thread has exited, so a thread stores the value of its
 * own CPU clock just before it exits. Run-queue time after the last read of the file is lost.
 *
 *   zero --schedstat_begin (the thread)--> RUNNING --schedstat_end (the thread)--> ENDED
 *   ENDED --schedstat_begin (another thread, which takes its place)--> RUNNING
 *
 * | call                             | threads                                            |
 * |----------------------------------|----------------------------------------------------|
 * | schedstat_begin, schedstat_end   | the thread                                         |
 * | schedstat_read, schedstat_close  | one reader at a time; close after the thread ended |
 */
#ifndef WEIR_BASE_SCHEDSTAT_H
#define WEIR_BASE_SCHEDSTAT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/** Totals since the thread started, and of the threads whose place it took. */
struct schedstat_sample {
	uint64_t cpu_ns;  /* time on a core */
	uint64_t runq_ns; /* time ready to run but waiting for a core; 0 if unknown */
};

struct schedstat {
	/* written by the thread */
	_Atomic clockid_t clock;      /* CPU clock of the thread; set before tid */
	atomic_int tid;               /* 0 if there is no thread */
	_Atomic uint64_t ended_at_ns; /* CPU time of the thread when it ended, 0 while it runs */
	/* used by the reader */
	bool opened, has_file;
	int fd;       /* valid if has_file */
	int read_tid; /* thread that `last` is of; 0: of none */
	struct schedstat_sample last;
	struct schedstat_sample before; /* sum over the threads before that one */
};

/** Start accounting for the calling thread. `s` must be zero or closed, or its thread must have ended:
 *  the times of the calling thread are then added, and what the other one has used since the last
 *  reading is lost. */
void schedstat_begin(struct schedstat *s);
/** Store the final CPU time of the calling thread, which is about to exit. */
void schedstat_end(struct schedstat *s);

/** Read the current totals of the thread. They never decrease, and are 0 before the thread has
 *  started. Returns whether run-queue time is known. */
bool schedstat_read(struct schedstat *s, struct schedstat_sample *out);

/** Read the final totals of the thread, which has ended. `s` can then be used for another
 *  thread. */
void schedstat_close(struct schedstat *s, struct schedstat_sample *final);

/** Read the totals of the thread with kernel id `tid`, from a file that is opened and closed: about
 *  5 us. Returns false if the kernel does not keep them or the thread has ended. Any thread. */
bool schedstat_of(int tid, struct schedstat_sample *out);

/** If `forget` is set, treat files that are not open yet as missing. For tests of the fallback. */
void schedstat_forget_files(bool forget);

#endif
