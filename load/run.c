/* SPDX-License-Identifier: MIT */
/*
 * Executes a run; see run.h. Everything that can fail (resolving the address, allocating
 * descriptors and memory, creating threads) is done before the first request. The threads wait at a
 * gate and start at the same time.
 *
 * Until its thread is joined, a worker is used only by that thread. The seconds that it hands over
 * (struct tally_exchange) and the gate are protected by locks in struct run_shared; `abort` and
 * `stop` are atomic.
 */
#include "load/run.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <weir/clock.h>

#include "load/judge.h"
#include "load/resolve.h"
#include "load/seconds.h"
#include "load/sentence.h"
#include "load/worker.h"

/* Time from opening the gate to the start of the run. 2 ms is a guess: enough for all threads to
 * wake up. */
#define HEAD_START_NS 2000000

/* Number of descriptors in addition to those of connections and epoll: files, and descriptors of
 * the caller. 64 is a guess. */
#define OTHER_DESCRIPTORS 64

struct run {
	struct run_shared shared;
	struct worker *worker;
	int n_workers, n_threads; /* created so far */
	bool realtime;            /* all threads so far have real-time priority */
	struct weir_err *err;
};

static int check(const struct load_plan *plan, struct weir_err *err)
{
	if (plan->n_phases < 1 || plan->n_classes < 1)
		return sentence(err, WEIR_EINVAL, "there is nothing to send");
	for (int i = 0; i < plan->n_classes; i++)
		if (plan->class[i].n_requests < 1)
			return sentence(
			    err, WEIR_EINVAL, "class '%s' has no request", plan->class[i].name);
	if (plan->threads < 1 || plan->connections < plan->threads)
		return sentence(err, WEIR_EINVAL,
		    "%d threads need at least one connection each, but there are only %d",
		    plan->threads, plan->connections);
	if (plan->timeout_ns <= 0)
		return sentence(err, WEIR_EINVAL, "requests need a time-out above 0");
	return 0;
}

static int allow_descriptors(const struct load_plan *plan, struct weir_err *err)
{
	struct rlimit limit;
	rlim_t need = (rlim_t)plan->connections + (rlim_t)plan->threads + OTHER_DESCRIPTORS;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return sentence(
		    err, WEIR_ESYS, "the limit on open files cannot be read: %s", strerror(errno));
	if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < need)
		return sentence(err, WEIR_ESYS,
		    "%d connections need %llu open files, but a process may have %llu (ulimit -Hn)",
		    plan->connections, (unsigned long long)need,
		    (unsigned long long)limit.rlim_max);
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		return sentence(err, WEIR_ESYS, "the limit on open files cannot be raised: %s",
		    strerror(errno));
	return 0;
}

static int make_workers(struct run *run, const struct load_plan *plan)
{
	run->worker = calloc((size_t)plan->threads, sizeof(*run->worker));
	if (!run->worker)
		return sentence_nomem(run->err);
	while (run->n_workers < plan->threads) {
		int rank = run->n_workers++;
		int rc = worker_init(&run->worker[rank], &run->shared, rank);
		if (rc == WEIR_ESYS)
			return sentence(run->err, rc, "epoll cannot be used: %s", strerror(errno));
		if (rc != 0)
			return sentence_nomem(run->err);
	}
	return 0;
}

/* Give a thread precedence over all threads without real-time priority. Returns whether this
 * process may do so. */
static bool raise_priority(pthread_t thread)
{
	struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_RR)};

	return pthread_setschedparam(thread, SCHED_RR, &lowest) == 0;
}

static int make_thread(struct run *run, struct worker *w)
{
	int cpu = run->shared.plan->cpu;
	pthread_attr_t attr;
	cpu_set_t set;
	char name[16];

	if (pthread_attr_init(&attr) != 0)
		return sentence_nomem(run->err);
	CPU_ZERO(&set);
	if (cpu >= 0) {
		CPU_SET((size_t)(cpu + w->rank), &set);
		pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	}
	int rc = pthread_create(&w->thread, &attr, worker_main, w);
	pthread_attr_destroy(&attr);
	if (rc == EINVAL && cpu >= 0)
		return sentence(run->err, WEIR_ESYS,
		    "the generator cannot run on core %d: this core does not exist, or this "
		    "process may not use it",
		    cpu + w->rank);
	if (rc != 0)
		return sentence(
		    run->err, WEIR_ESYS, "a thread cannot be created: %s", strerror(rc));
	snprintf(name, sizeof(name), "load/%d", w->rank);
	pthread_setname_np(w->thread, name);
	run->n_threads++;
	w->realtime = run->shared.plan->realtime && raise_priority(w->thread);
	run->realtime = run->realtime && w->realtime;
	return 0;
}

/* Create the threads with all signals blocked, so that the caller's thread handles them. The mask
 * also prevents writes by OpenSSL from raising SIGPIPE. */
static int make_threads(struct run *run)
{
	sigset_t all, before;
	int rc = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (int i = 0; rc == 0 && i < run->n_workers; i++)
		rc = make_thread(run, &run->worker[i]);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

static void set_times(struct run_shared *shared, struct load_result *result)
{
	const struct load_plan *plan = shared->plan;
	int64_t at_ns;

	result->started_unix_ns = weir_clock_ns(CLOCK_REALTIME) + HEAD_START_NS;
	at_ns = weir_clock_ns(CLOCK_MONOTONIC) + HEAD_START_NS;
	shared->start_ns = at_ns;
	for (int i = 0; i < plan->n_phases; i++) {
		at_ns += plan->phase[i].for_ns;
		shared->phase_end_ns[i] = at_ns;
	}
	shared->end_ns = at_ns;
}

static void open_gate(struct run *run, int go)
{
	pthread_mutex_lock(&run->shared.gate_lock);
	run->shared.go = go;
	pthread_cond_broadcast(&run->shared.gate);
	pthread_mutex_unlock(&run->shared.gate_lock);
}

static void join(struct run *run)
{
	while (run->n_threads > 0)
		pthread_join(run->worker[--run->n_threads].thread, NULL);
}

/* ---- the result ---- */

static void merge_users(struct load_class_result *into, struct load_class_result *from, int n_users)
{
	if (!into->user) { /* move the array, which the worker no longer needs */
		into->user = from->user;
		from->user = NULL;
	}
	for (int i = 0; from->user && i < n_users; i++) {
		into->user[i].offered += from->user[i].offered;
		into->user[i].good += from->user[i].good;
	}
}

static void merge_class(struct load_class_result *into, struct load_class_result *from, int n_users)
{
	merge_users(into, from, n_users);
	into->offered += from->offered;
	into->attempts += from->attempts;
	into->retries += from->retries;
	into->bytes_in += from->bytes_in;
	into->bytes_out += from->bytes_out;
	for (int e = 0; e < LOAD_N_ERRORS; e++)
		into->error[e] += from->error[e];
	for (int o = 0; o < LOAD_N_OUTCOMES; o++) {
		into->outcome[o] += from->outcome[o];
		if (!from->latency[o])
			continue;
		if (!into->latency[o]) { /* move the histogram, which the worker no longer needs */
			into->latency[o] = from->latency[o];
			from->latency[o] = NULL;
		} else {
			hdr_merge(into->latency[o], from->latency[o]);
		}
	}
}

static void merge_worker(struct load_result *result, struct worker *w)
{
	for (int i = 0; i < result->n_phases; i++) {
		hdr_merge(&result->phase[i].lag, &w->tally.phase[i].lag);
		for (int c = 0; c < w->plan->n_classes; c++) {
			struct load_class_result *from = &w->tally.phase[i].class[c];
			merge_class(&result->phase[i].class[c], from, w -> plan -> class[c].users);
		}
	}
	result->connects += w->tally.connects;
	result->cpu_user_s += w->cpu_user_s;
	result->cpu_system_s += w->cpu_system_s;
}

static void set_phase_times(const struct run *run, struct load_result *result, int64_t over_ns)
{
	int64_t at_ns = run->shared.start_ns;

	for (int i = 0; i < result->n_phases; i++) {
		struct load_phase_result *phase = &result->phase[i];
		int64_t end_ns = run->shared.phase_end_ns[i];
		phase->complete = over_ns >= end_ns;
		phase->took_ns = (phase->complete ? end_ns : over_ns) - at_ns;
		if (phase->took_ns < 0)
			phase->took_ns = 0;
		at_ns = end_ns;
	}
}

/* Mark the phases whose generator was late: their latencies are those of the generator rather than
 * the server's. In a closed loop without users, no request can be late. */
static void mark_late(const struct load_plan *plan, struct load_result *result)
{
	for (int i = 0; i < plan->n_phases && (!plan->closed || plan->users > 0); i++)
		result->phase[i].late =
		    load_lag_late(&result->phase[i].lag, load_phase_lag_limit_ns(plan, i));
}

static void fill(struct run *run, const struct load_hooks *hooks, struct load_result *result)
{
	int64_t over_ns = run->shared.start_ns;

	for (int i = 0; i < run->n_workers; i++) {
		merge_worker(result, &run->worker[i]);
		if (over_ns < run->worker[i].stopped_ns)
			over_ns = run->worker[i].stopped_ns;
	}
	result->took_ns = over_ns - run->shared.start_ns;
	result->realtime = run->realtime;
	result->stopped = hooks && hooks->stop && atomic_load(hooks->stop);
	set_phase_times(run, result, over_ns);
	mark_late(run->shared.plan, result);
	load_judge(run->shared.plan, result);
}

/* ---- the whole run ---- */

static void shared_init(
    struct run_shared *shared, const struct load_plan *plan, const struct load_hooks *hooks)
{
	shared->plan = plan;
	shared->stop = hooks ? hooks->stop : NULL;
	atomic_init(&shared->abort, false);
	pthread_mutex_init(&shared->gate_lock, NULL);
	pthread_cond_init(&shared->gate, NULL);
	pthread_mutex_init(&shared->exchange.lock, NULL);
	pthread_cond_init(&shared->exchange.news, NULL);
	shared->exchange.n_running = plan->threads;
}

static void run_fini(struct run *run)
{
	while (run->n_workers > 0)
		worker_fini(&run->worker[--run->n_workers]);
	free(run->worker);
	tls_free(run->shared.tls);
	pthread_cond_destroy(&run->shared.exchange.news);
	pthread_mutex_destroy(&run->shared.exchange.lock);
	pthread_cond_destroy(&run->shared.gate);
	pthread_mutex_destroy(&run->shared.gate_lock);
}

static int prepare(struct run *run, struct load_result *result)
{
	const struct load_plan *plan = run->shared.plan;
	int rc = allow_descriptors(plan, run->err);

	if (rc == 0)
		rc = resolve(plan, &run->shared.address, &run->shared.n_address, run->err);
	if (rc == 0 && plan->tls)
		rc = tls_new(plan, &run->shared.tls, run->err);
	if (rc != 0)
		return rc;
	result->phase = calloc((size_t)plan->n_phases, sizeof(*result->phase));
	if (!result->phase)
		return sentence_nomem(run->err);
	result->n_phases = plan->n_phases;
	rc = make_workers(run, plan);
	return rc == 0 ? make_threads(run) : rc;
}

int load_run(const struct load_plan *plan, const struct load_hooks *hooks,
    struct load_result *result, struct weir_err *err)
{
	struct run run = {.err = err, .realtime = true};
	int rc = check(plan, err);

	if (rc != 0)
		return rc;
	shared_init(&run.shared, plan, hooks);
	rc = prepare(&run, result);
	if (rc != 0) {
		open_gate(&run, -1);
		join(&run);
		run_fini(&run);
		return rc;
	}
	set_times(&run.shared, result);
	open_gate(&run, 1);
	rc = seconds_collect(&run.shared, run.worker, run.n_workers, hooks, result);
	join(&run);
	fill(&run, hooks, result);
	if (rc != 0 || atomic_load(&run.shared.abort))
		rc = sentence_nomem(err);
	run_fini(&run);
	return rc;
}
