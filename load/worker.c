/* SPDX-License-Identifier: MIT */
/*
 * Runs the event loop of a worker; see worker.h.
 *
 * An iteration sends the requests that are due, handles events of connections, and handles expired
 * time-outs. The thread sleeps in epoll_pwait2 until shortly before the next send. Then it polls
 * without sleeping, since a wake-up takes longer than a request may be late.
 */
#include "load/worker.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <weir/error.h>

#define EVENTS 64

/* Number of events handled before the clock and the due requests are checked again. */
#define EVENTS_PER_LOOK 8

/* In the last SPIN_NS before the next send, the worker polls instead of sleeping. Measured on a
 * virtual machine with two cores at 1000/s and 20,000/s: with 25 us, the median lag (13 and 9 us)
 * is the same as with 60 us, at 2/3 of the CPU time. With 8 us, the lag is longer by the time of a
 * wake-up, 10 us. */
#define SPIN_NS 25000

/* Longest sleep, which bounds the time until a worker notices that it must stop. */
#define NAP_NS 20000000

/* A thread with real-time priority leaves its core to other threads for REST_NS, once for each
 * REST_NS * REST_EVERY of work. Without that, Linux stops a thread that uses its core entirely for
 * 50 ms in each second (sched_rt_runtime_us, or the fair server from Linux 6.12 on), which is a lag
 * of 40 ms at the 99th percentile. A share of 1/13 is somewhat more than the twentieth that Linux
 * would take. A rest is shorter than the strictest limit of the lag (LOAD_LAG_LIMIT_NS). */
#define REST_NS    700000
#define REST_EVERY 12
/* Longest work that earlier sleep pays for. It is short, since Linux looks at single seconds. */
#define REST_AHEAD_NS 20000000

/* A time-out is handled at most this much late, or 1/512 of its length if that is more. 1 ms is a
 * guess: time-outs are of the order of seconds. */
#define TICK_MIN_NS 1000000

/* The generator has no loop of the framework: `loop` is NULL. */
static void on_deadline(struct weir_loop *loop, struct weir_timer *t)
{
	struct flight *f = (void *)((char *)t - offsetof(struct flight, deadline));

	(void)loop;
	conn_timed_out(f->conn->worker, f);
}

static void on_pace(struct weir_loop *loop, struct weir_timer *t)
{
	struct conn *c = (void *)((char *)t - offsetof(struct conn, pace));

	(void)loop;
	conn_work(c->worker, c);
}

int worker_init(struct worker *w, struct run_shared *run, int rank)
{
	const struct load_plan *plan = run->plan;
	int n = plan->connections / plan->threads + (rank < plan->connections % plan->threads);
	int rc;

	*w = (struct worker){.run = run, .plan = plan, .rank = rank, .epoll_fd = -1, .n_conns = n};
	w->depth = plan->fresh || plan->pipeline < 1 ? 1 : plan->pipeline;
	w->idle_users = plan->users > 0 ? 0 : n * w->depth;
	rc = tally_init(&w->tally, plan, &run->exchange);
	if (rc == 0 && !plan->closed)
		rc = load_schedule_new(plan, &w->schedule);
	w->conn = calloc((size_t)n, sizeof(*w->conn));
	w->flights = calloc((size_t)n * (size_t)w->depth, sizeof(*w->flights));
	w->buffer = malloc(WORKER_BUFFER_BYTES);
	if (rc != 0 || !w->conn || !w->flights || !w->buffer)
		return WEIR_ENOMEM;
	for (int c = 0; c < plan->n_classes; c++)
		w->in_order[c] = (uint32_t)(rank % plan->class[c].n_requests);
	for (int i = n - 1; i >= 0; i--) {
		struct conn *c = &w->conn[i];
		c->worker = w;
		c->pace.fire = on_pace;
		c->flight = &w->flights[(size_t)i * (size_t)w->depth];
		for (int k = 0; k < w->depth; k++) {
			c->flight[k].conn = c;
			c->flight[k].deadline.fire = on_deadline;
		}
		c->next = w->list[CONN_FREE];
		if (c->next)
			c->next->prev = c;
		w->list[CONN_FREE] = c;
	}
	if (w->schedule)
		worker_next_arrival(w);
	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return w->epoll_fd == -1 ? WEIR_ESYS : 0;
}

void worker_fini(struct worker *w)
{
	if (w->epoll_fd >= 0)
		close(w->epoll_fd);
	if (w->schedule)
		load_schedule_free(w->schedule);
	if (w->tally.plan)
		tally_fini(&w->tally);
	ticket_heap_fini(&w->later);
	ticket_queue_fini(&w->waiting);
	free(w->conn);
	free(w->flights);
	free(w->buffer);
	*w = (struct worker){.epoll_fd = -1};
}

static bool wait_gate(struct run_shared *run)
{
	int go;

	pthread_mutex_lock(&run->gate_lock);
	while (run->go == 0)
		pthread_cond_wait(&run->gate, &run->gate_lock);
	go = run->go;
	pthread_mutex_unlock(&run->gate_lock);
	return go > 0;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Return how long to sleep in epoll; 0 if there is work to do or the next send is near. */
static int64_t sleep_ns(const struct worker *w)
{
	int64_t second_ns = w->run->start_ns + (w->tally.now->number + 1) * 1000000000;
	int64_t send_ns = worker_next_send_ns(w), at_ns;

	if (w->kicked)
		return 0;
	at_ns = earlier(w->now_ns + NAP_NS, second_ns);
	at_ns = earlier(at_ns, timer_wheel_next_ns(&w->deadlines));
	at_ns = earlier(at_ns, timer_wheel_next_ns(&w->paces));
	at_ns = earlier(at_ns, worker_next_waiting_ns(w));
	if (send_ns != INT64_MAX)
		at_ns = earlier(at_ns, send_ns - SPIN_NS);
	return at_ns > w->now_ns ? at_ns - w->now_ns : 0;
}

void worker_work_kicked(struct worker *w)
{
	struct conn *c = w->kicked;

	w->kicked = NULL;
	while (c) {
		struct conn *next = c->next_kicked;
		c->kicked = false;
		conn_work(w, c);
		c = next;
	}
}

/* Count the time from `before_ns` until now as rest. */
static void count_rest(struct worker *w, int64_t before_ns)
{
	int64_t from_ns = w->rested_ns > before_ns ? w->rested_ns : before_ns;

	w->rested_ns = earlier(
	    from_ns + (w->now_ns - before_ns) * (REST_EVERY + 1), w->now_ns + REST_AHEAD_NS);
}

/* Let other threads run if a thread with real-time priority has worked for too long. */
static void rest(struct worker *w)
{
	const struct timespec pause = {0, REST_NS};
	int64_t before_ns = w->now_ns;

	if (!w->realtime || w->now_ns < w->rested_ns)
		return;
	nanosleep(&pause, NULL);
	w->now_ns = weir_clock_ns(CLOCK_MONOTONIC);
	count_rest(w, before_ns);
}

static void look_at_connections(struct worker *w, int64_t timeout_ns)
{
	struct epoll_event events[EVENTS];
	const struct timespec timeout = {timeout_ns / 1000000000, timeout_ns % 1000000000};
	int64_t before_ns = timeout_ns > 0 ? weir_clock_ns(CLOCK_MONOTONIC) : 0;
	int n = epoll_pwait2(w->epoll_fd, events, EVENTS, &timeout, NULL);

	w->now_ns = weir_clock_ns(CLOCK_MONOTONIC);
	if (timeout_ns > 0)
		count_rest(w, before_ns);
	for (int i = 0; i < n; i++) {
		struct conn *c = &w->conn[(uint32_t)events[i].data.u64];
		if (c->life == (uint32_t)(events[i].data.u64 >> 32))
			conn_event(w, c, events[i].events);
		if (i % EVENTS_PER_LOOK == EVENTS_PER_LOOK - 1) {
			w->now_ns = weir_clock_ns(CLOCK_MONOTONIC);
			worker_serve_waiting(w);
			worker_send_due(w);
		}
	}
}

static void look_at_timers(struct worker *w)
{
	timer_wheel_run(&w->deadlines, w->now_ns, NULL);
	timer_wheel_run(&w->paces, w->now_ns, NULL);
	worker_expire_waiting(w);
	worker_serve_waiting(w);
}

/* Whether the run has ended for this worker. */
static bool is_over(struct worker *w)
{
	struct run_shared *run = w->run;

	if (w->tally.no_memory)
		atomic_store(&run->abort, true);
	if (atomic_load_explicit(&run->abort, memory_order_relaxed) ||
	    (run->stop && atomic_load_explicit(run->stop, memory_order_relaxed)))
		return true;
	if (w->now_ns < run->end_ns)
		return false;
	/* requests that fall due later than the end are not scheduled (go_on_session) */
	return w->now_ns >= run->end_ns + w->plan->grace_ns ||
	       (!w->has_arrival && w->later.n == 0 && w->tally.offered == w->tally.finished);
}

static void loop(struct worker *w)
{
	w->now_ns = weir_clock_ns(CLOCK_MONOTONIC);
	while (!is_over(w)) {
		bool more = worker_send_due(w);
		worker_work_kicked(w);
		look_at_connections(w, more ? 0 : sleep_ns(w));
		look_at_timers(w);
		rest(w);
		if (w->now_ns > w->run->start_ns)
			tally_advance(
			    &w->tally, (w->now_ns - w->run->start_ns) / 1000000000, w->n_open);
	}
	int n_open = w->n_open;
	w->stopped_ns = w->now_ns;
	worker_abandon(w);
	tally_close(&w->tally, n_open);
}

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct rusage usage;

	if (!wait_gate(w->run))
		return NULL;
	prctl(PR_SET_TIMERSLACK, 1UL);
	int64_t tick_ns = w->plan->timeout_ns / TIMER_SLOTS,
		now_ns = weir_clock_ns(CLOCK_MONOTONIC);
	timer_wheel_init(&w->deadlines, tick_ns > TICK_MIN_NS ? tick_ns : TICK_MIN_NS, now_ns);
	timer_wheel_init(&w->paces, TICK_MIN_NS, now_ns);
	worker_start_users(w);
	loop(w);
	if (getrusage(RUSAGE_THREAD, &usage) == 0) {
		w->cpu_user_s = seconds(usage.ru_utime);
		w->cpu_system_s = seconds(usage.ru_stime);
	}
	return NULL;
}
