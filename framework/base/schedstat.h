/* SPDX-License-Identifier: MIT */
/*
 * CPU time and run-queue time of one thread, read by another.
 *
 * Source: /proc/self/task/TID/schedstat ("on-cpu ns, waiting ns, slices"), kept open: a read costs
 * 0.7 to 3 us. Where it is missing (a kernel without it, no descriptor left) the CPU time comes from
 * the thread's CPU clock and nothing is known of the run queue. A thread's last figures: it reads
 * its own clock as it ends, since its file then answers no more; the waits of its last moments are
 * lost.
 *
 *   zero --schedstat_begin (the thread)--> RUNNING --schedstat_end (the thread)--> ENDED
 *
 * | call                             | who                                                |
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

/** Since the thread began. */
struct schedstat_sample {
	uint64_t cpu_ns;  /* on a core */
	uint64_t runq_ns; /* ready, waiting for a core; 0 when not known */
};

struct schedstat {
	/* the thread's */
	clockid_t clock;              /* its CPU clock; before tid */
	atomic_int tid;               /* 0: no thread */
	_Atomic uint64_t ended_at_ns; /* its CPU time when it ended, 0: it has not */
	/* the reader's */
	bool opened, has_file;
	int fd; /* when has_file */
	struct schedstat_sample last;
};

/** The calling thread begins. `s` must be zero or closed. */
void schedstat_begin(struct schedstat *s);
/** The calling thread ends. */
void schedstat_end(struct schedstat *s);

/** The thread's figures by now, never less than before. Returns whether run-queue time is known. No
 *  thread yet: zeroes. */
bool schedstat_read(struct schedstat *s, struct schedstat_sample *out);

/** The thread has ended: its final figures; `s` can serve another thread. */
void schedstat_close(struct schedstat *s, struct schedstat_sample *final);

/** Let the files of threads to come be missing (true) or not: for tests of the other way. */
void schedstat_forget_files(bool forget);

#endif
