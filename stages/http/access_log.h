/* SPDX-License-Identifier: MIT */
/*
 * The line writer behind access_log: lines from many threads, to one file, by one thread.
 *
 * A line is appended to a buffer under a mutex; the writer thread takes the whole buffer, gives an
 * empty one back, and writes outside the lock. So a slow disk never holds up a request, there is
 * one system call per buffer, and memory is bounded: two buffers. When both are full lines are
 * dropped and counted by the caller.
 *
 * | call             | who                                         |
 * |------------------|---------------------------------------------|
 * | log_writer_add   | any thread; a mutex for the time of a copy  |
 * | the others       | main                                        |
 */
#ifndef WEIR_HTTP_ACCESS_LOG_H
#define WEIR_HTTP_ACCESS_LOG_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/annotate.h>
#include <weir/event.h>

struct log_writer {
	pthread_t thread;
	bool running;
	int fd;
	int64_t flush_ns;
	size_t size; /* of each buffer */
	pthread_mutex_t lock;
	pthread_cond_t work;
	char *filling WEIR_GUARDED_BY(lock); /* size bytes */
	size_t filled WEIR_GUARDED_BY(lock);
	bool stop WEIR_GUARDED_BY(lock);
	char *writing; /* the writer's, size bytes */
	bool failed;   /* the writer's: a failure has been logged */
};

/** Buffers of `size` bytes over `fd`, which stays the caller's. 0 or WEIR_ENOMEM. */
int log_writer_init(struct log_writer *w, int fd, size_t size, int64_t flush_ns);
/** Start the thread. 0 or WEIR_ESYS. */
int log_writer_start(struct log_writer *w);
/** Write what is there, end the thread if it runs, free the buffers. */
void log_writer_fini(struct log_writer *w);
/** Append a line. False when there is no room: the line is lost. */
bool log_writer_add(struct log_writer *w, const char *line, size_t n);

/** Append `s` to out[size] at `n`, quoted, with '"', '\' and bytes that are not printable ASCII
 *  escaped; at most `most` bytes of it, "..." behind a longer one. Returns the new n. Needs room
 *  for 4 * most + 5. */
size_t log_quote(char *out, size_t n, struct weir_slice s, size_t most);

#endif
