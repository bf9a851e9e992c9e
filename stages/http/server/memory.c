/* SPDX-License-Identifier: MIT */
/*
 * Tracks the memory budget and acts on its steps; see memory.h.
 *
 * A thread that changes the sum derives the step from it, and wakes all threads if the step has
 * changed. While the step is not MEMORY_PLENTY, each thread derives the step at the end of each
 * iteration, so that a change of the live knob `memory` also takes effect.
 */
#include "http/server/memory.h"

#include "http/conn/conn.h"
#include "http/conn/limit.h"
#include "net/listen.h"

/* The percentage of the budget at which each step begins, and how far below it the step ends. */
static const int64_t from_percent[] = {0, 85, 92, 95, 98};
#define HYSTERESIS_PERCENT 5
/* Maximum number of connections that one thread closes per iteration, and the time after which a
 * connection with part of a head is refused at MEMORY_REFUSE. Both are guesses. */
#define RELIEF_RUN      16
#define RELIEF_AFTER_NS 1000000000LL

int memory_step_at(int now, int64_t used, int64_t limit)
{
	int step = MEMORY_DEAF;
	double percent = 100.0 * (double)used / (double)limit;

	while (step > MEMORY_PLENTY &&
	       percent < (double)(from_percent[step] - (step <= now ? HYSTERESIS_PERCENT : 0)))
		step--;
	return step;
}

static void say(const struct http_io *io, int64_t used)
{
	static bool logged;

	if (weir_log_first(&logged))
		weir_log(WEIR_LOG_WARN,
		    "%s: connections hold %lld of the %lld bytes of 'memory'; time-outs are "
		    "shorter now, and requests are refused if more is held (logged once)",
		    weir_stage_name(io->net.stage), (long long)used,
		    (long long)io->conf.memory_bytes);
}

/* Derive and publish the step. Repeats until the sum has not changed in the meantime. The published
 * step is then correct even if other threads derive it at the same time, and none of them has to
 * check again. */
static void decide(struct http_io *io)
{
	struct http_server *srv = io->srv;
	int before = atomic_load(&srv->memory_step), step;
	int64_t used;

	do {
		used = atomic_load(&srv->memory_used);
		step = memory_step_at(before, used, io->conf.memory_bytes);
		atomic_store(&srv->memory_step, step);
	} while (atomic_load(&srv->memory_used) != used);
	if (step == before)
		return;
	if (before == MEMORY_PLENTY)
		say(io, used);
	net_wake_all(&srv->net);
}

/* Report the memory that this thread's connections hold. */
static void tell(struct http_io *io)
{
	struct pool *p = &io->pool;
	int64_t more = p->held_bytes - p->told_bytes;

	p->told_bytes = p->held_bytes;
	atomic_fetch_add(p->used, more);
	decide(io);
}

void memory_tell(struct http_io *io)
{
	const struct pool *p = &io->pool;
	int64_t more = p->held_bytes - p->told_bytes;
	int64_t slack = io->conf.memory_bytes >> MEMORY_SLACK_SHIFT;
	bool plenty = io->memory.step == MEMORY_PLENTY;

	io->count[SERVER_MEMORY] += p->held_bytes - io->memory.gauged_bytes;
	io->memory.gauged_bytes = p->held_bytes;
	if (plenty && io->net.n_conns > 0 && more < slack && more > -slack)
		return;
	if (more == 0 && plenty)
		return;
	tell(io);
}

/* Set the timers again, since time-outs have become shorter. (This is not needed when they become
 * longer: timers that fire early are set again.) */
static void hurry(struct http_io *io)
{
	struct conn *next;

	for (struct conn *c = conn_of_net(io->net.conns); c; c = next) {
		next = conn_of_net(c->net.next);
		conn_settle(c);
	}
}

/* Refuse the connections that have held part of a head longest, to free their memory. Then set the
 * timer of the next connection to the time at which it may be refused, so that there is an
 * iteration at that time even if nothing else happens. */
static void relieve_of_heads(struct http_io *io, enum net_list_id id)
{
	int64_t now_ns = weir_loop_now_ns(io->net.loop);
	struct conn *c;

	for (int i = 0; (c = conn_of_net(io->net.list[id].first)); i++) {
		int64_t at = c->net.wait.since_ns + RELIEF_AFTER_NS;
		if (i == RELIEF_RUN || at > now_ns) {
			weir_timer_set(io->net.loop, &c->net.wait.timer, at);
			return;
		}
		conn_act(c, limit_refuse(c, LIMIT_MEMORY)); /* removes `c` from the list */
	}
}

/* Close the longest-idle connections, with the same timing as relieve_of_heads. Only used with TLS:
 * an idle connection holds 16 KiB with TLS, but little memory without. */
static void relieve_of_idle(struct http_io *io)
{
	int64_t now_ns = weir_loop_now_ns(io->net.loop);
	struct conn *c;

	for (int i = 0; (c = conn_of_net(io->net.list[LIST_IDLE].first)); i++) {
		int64_t at = c->net.wait.progress_ns + RELIEF_AFTER_NS;
		if (i == RELIEF_RUN || at > now_ns) {
			weir_timer_set(io->net.loop, &c->net.wait.timer, at);
			return;
		}
		io->count[SERVER_EVICTED]++;
		conn_close(c);
	}
}

/* Reset a connection whose client reads its responses too slowly, to free the memory that the
 * responses hold. Returns false if there is no such connection. */
static bool evict_reader(struct http_io *io)
{
	struct net_list *slow = &io->net.list[LIST_SLOW];
	int64_t now_ns = weir_loop_now_ns(io->net.loop);

	for (int i = 0; i < NET_EVICT_SCAN && i < slow->n; i++) {
		struct conn *c = conn_of_net(slow->first);
		if (c->net.wait.kind == WAIT_WRITE &&
		    now_ns - c->net.wait.since_ns >= NET_EVICT_AFTER_NS && conn_is_slow(c)) {
			io->count[SERVER_EVICTED]++;
			conn_abort(c);
			return true;
		}
		net_list_rotate(&io->net, &c->net);
	}
	return false;
}

/* Reset clients that do not read their responses. This begins at the first step, while there is
 * still memory for the requests of others. A later step would be too late: in the one second that
 * each is allowed, 10,000 such clients with long heads (bench/slow, many) take more memory than is
 * left between two steps. */
static void relieve_of_answers(struct http_io *io)
{
	for (int i = 0; i < RELIEF_RUN && evict_reader(io); i++)
		continue;
}

static void follow(struct http_io *io, int step)
{
	int before = io->memory.step;

	io->memory.step = step;
	io->net.deaf = step >= MEMORY_DEAF;
	if (io->net.index == 0)
		io->count[SERVER_MEMORY_STEP] += step - before;
	if (before < MEMORY_HURRY && step >= MEMORY_HURRY)
		hurry(io);
	if (before == MEMORY_DEAF)
		listen_recheck(&io->net);
}

/* Apply a change of the live knob `memory`: publish the limit, and derive the step again, since the
 * same memory may be too much now. */
static void follow_limit(struct http_io *io)
{
	int64_t more = io->conf.memory_bytes - io->memory.gauged_limit_bytes;

	io->pool.limit_bytes = io->conf.memory_bytes;
	atomic_store_explicit(&io->srv->memory_limit, io->conf.memory_bytes, memory_order_relaxed);
	tell(io);
	if (io->net.index != 0)
		return;
	io->count[SERVER_MEMORY_LIMIT] += more;
	io->memory.gauged_limit_bytes += more;
}

void memory_follow(struct http_io *io)
{
	int step;

	if (WEIR_UNLIKELY(io->pool.limit_bytes != io->conf.memory_bytes))
		follow_limit(io);
	/* pairs with decide */
	step = atomic_load_explicit(&io->srv->memory_step, memory_order_relaxed);
	if (WEIR_UNLIKELY(step != io->memory.step))
		follow(io, step);
	if (WEIR_UNLIKELY(step >= MEMORY_HURRY))
		relieve_of_answers(io);
	if (WEIR_UNLIKELY(step >= MEMORY_REFUSE)) {
		relieve_of_heads(io, LIST_HALF);
		relieve_of_heads(io, LIST_BEHIND);
	}
	if (WEIR_UNLIKELY(step >= MEMORY_REFUSE && io->srv->net.tls))
		relieve_of_idle(io);
}
