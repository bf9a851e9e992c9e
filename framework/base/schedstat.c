/* SPDX-License-Identifier: MIT */
/*
 * Reads schedstat files; see schedstat.h.
 *
 * The reader opens the file of a thread at its first read. If the thread has ended before that and
 * the kernel has reused its id for a new thread, the times of the new thread are counted instead.
 * The kernel reuses an id only after tens of thousands of other threads, so preventing this is not
 * worth a lock.
 */
#include "base/schedstat.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

static atomic_bool no_files;

void schedstat_forget_files(bool forget)
{
	atomic_store(&no_files, forget);
}

void schedstat_begin(struct schedstat *s)
{
	clockid_t clock;

	if (pthread_getcpuclockid(pthread_self(), &clock) != 0)
		clock = CLOCK_THREAD_CPUTIME_ID;
	atomic_store(&s->clock, clock);
	atomic_store(&s->ended_at_ns, 0);
	/* Pairs with the acquire in schedstat_read: a reader that sees the tid also sees the
	 * clock. */
	atomic_store_explicit(&s->tid, (int)gettid(), memory_order_release);
}

void schedstat_end(struct schedstat *s)
{
	atomic_store(&s->ended_at_ns, (uint64_t)weir_clock_ns(CLOCK_THREAD_CPUTIME_ID));
}

/* If a file still shows 0 after this much CPU time, the kernel does not keep these statistics. 20
 * ms is a guess: a number appears with the first context switch, or at the latest with the next
 * tick (10 ms). */
#define BLIND_NS (20 * NS_PER_MS)

static void open_file(struct schedstat *s, int tid)
{
	char path[48];

	s->opened = true;
	if (atomic_load(&no_files))
		return;
	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", tid);
	s->fd = open(path, O_RDONLY | O_CLOEXEC);
	s->has_file = s->fd != -1;
}

static void close_file(struct schedstat *s)
{
	if (s->has_file)
		close(s->fd);
	s->has_file = false;
}

/* Read the first two of the three numbers in the file. Returns false if the kernel has not recorded
 * any time. */
static bool read_file(const struct schedstat *s, struct schedstat_sample *out)
{
	char text[64];
	unsigned long long cpu_ns, runq_ns;
	ssize_t n = pread(s->fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return false;
	text[n] = '\0';
	if (sscanf(text, "%llu %llu", &cpu_ns, &runq_ns) != 2 || cpu_ns == 0)
		return false;
	*out = (struct schedstat_sample){.cpu_ns = cpu_ns, .runq_ns = runq_ns};
	return true;
}

static void read_clock(const struct schedstat *s, struct schedstat_sample *out)
{
	uint64_t ended_at_ns = atomic_load(&s->ended_at_ns);
	struct timespec ts;

	if (ended_at_ns != 0)
		out->cpu_ns = ended_at_ns;
	else if (clock_gettime(atomic_load(&s->clock), &ts) == 0)
		out->cpu_ns = (uint64_t)(ts.tv_sec * NS_PER_S + ts.tv_nsec);
}

/* Another thread has taken the place of the one that was read last. */
static void turn_to(struct schedstat *s, int tid)
{
	close_file(s);
	s->opened = false;
	s->before.cpu_ns += s->last.cpu_ns;
	s->before.runq_ns += s->last.runq_ns;
	s->last = (struct schedstat_sample){0};
	s->read_tid = tid;
}

static void total(const struct schedstat *s, struct schedstat_sample *out)
{
	out->cpu_ns = s->before.cpu_ns + s->last.cpu_ns;
	out->runq_ns = s->before.runq_ns + s->last.runq_ns;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

bool schedstat_read(struct schedstat *s, struct schedstat_sample *out)
{
	int tid = atomic_load_explicit(&s->tid, memory_order_acquire);
	struct schedstat_sample now = {0};

	total(s, out);
	if (tid == 0)
		return true;
	if (s->read_tid != tid)
		turn_to(s, tid);
	if (!s->opened)
		open_file(s, tid);
	bool filed = s->has_file && read_file(s, &now);
	if (!filed)
		read_clock(s, &now);
	if (!filed && s->last.cpu_ns == 0 && now.cpu_ns > BLIND_NS)
		close_file(s); /* the kernel does not keep these statistics */
	s->last.cpu_ns = later(s->last.cpu_ns, now.cpu_ns);
	s->last.runq_ns = later(s->last.runq_ns, now.runq_ns);
	total(s, out);
	return s->has_file;
}

bool schedstat_of(int tid, struct schedstat_sample *out)
{
	struct schedstat s = {0};

	open_file(&s, tid);
	bool known = s.has_file && read_file(&s, out);
	close_file(&s);
	return known;
}

void schedstat_close(struct schedstat *s, struct schedstat_sample *final)
{
	schedstat_read(s, final);
	close_file(s);
	s->opened = false;
	s->last = s->before = (struct schedstat_sample){0};
	s->read_tid = 0;
	atomic_store(&s->tid, 0);
}
