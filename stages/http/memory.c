/* SPDX-License-Identifier: MIT */
/*
 * The budget of bytes and its steps; see memory.h.
 *
 * Whoever changes the sum decides the step from it, and wakes every thread when it is another one. While it is not
 * MEMORY_PLENTY each thread decides at the end of each turn, so that a live knob is obeyed, too.
 */
#include "http/memory.h"

#include "http/conn.h"
#include "http/limit.h"
#include "http/listen.h"

/* Where the steps begin, and how far below they end, in percent of the budget. */
static const int64_t from_percent[] = {0, 85, 92, 95, 98};
#define HYSTERESIS_PERCENT 5
/* Connections that may be closed per turn, and how long half a head must have waited at MEMORY_REFUSE. Guesses. */
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
	static atomic_bool logged;

	if (weir_log_first(&logged))
		weir_log(WEIR_LOG_WARN,
		    "%s: connections hold %lld of %lld bytes (memory); time-outs are shorter now, "
		    "then "
		    "requests are refused (logged once)",
		    weir_stage_name(io->stage), (long long)used, (long long)io->conf.memory_bytes);
}

/* Until the step is that of the present sum, whoever else decides. Nobody else has to be asked when it is over. */
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
	server_wake_all(srv);
}

/* The sum has what this thread's connections hold. */
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
	bool plenty = io->memory_step == MEMORY_PLENTY;

	io->count[SERVER_MEMORY] += p->held_bytes - io->gauged_bytes;
	io->gauged_bytes = p->held_bytes;
	if (plenty && io->n_conns > 0 && more < slack && more > -slack)
		return;
	if (more == 0 && plenty)
		return;
	tell(io);
}

/* Time-outs have become shorter. (When they become longer, timers that fire early are set again.) */
static void hurry(struct http_io *io)
{
	struct conn *next;

	for (struct conn *c = io->conns; c; c = next) {
		next = c->next;
		conn_settle(c);
	}
}

/* The connections that have held half a head longest give it back. The timer of the next one makes a turn when it is its time,
 * whether or not there is anything else to do. */
static void relieve_of_heads(struct http_io *io, enum conn_list_id id)
{
	int64_t now_ns = weir_loop_now_ns(io->loop);
	struct conn *c;

	for (int i = 0; (c = io->list[id].first); i++) {
		int64_t at = c->since_ns + RELIEF_AFTER_NS;
		if (i == RELIEF_RUN || at > now_ns) {
			weir_timer_set(io->loop, &c->timer, at);
			return;
		}
		limit_refuse(c, LIMIT_MEMORY);
		conn_settle(c); /* it leaves the list */
	}
}

/* Likewise idle connections with TLS, which hold 16 KiB each; without it they are not what is large. */
static void relieve_of_idle(struct http_io *io)
{
	int64_t now_ns = weir_loop_now_ns(io->loop);
	struct conn *c;

	for (int i = 0; (c = io->list[CONN_IDLE].first); i++) {
		int64_t at = c->progress_ns + RELIEF_AFTER_NS;
		if (i == RELIEF_RUN || at > now_ns) {
			weir_timer_set(io->loop, &c->timer, at);
			return;
		}
		io->count[SERVER_EVICTED]++;
		conn_close(c);
	}
}

/* Whoever does not take its answers goes first, while there is memory for the requests of others: 10,000 clients with long heads that do
 * so (bench/slow, many) bring more in a second, which each is given, than lies between the steps behind. */
static void relieve_of_answers(struct http_io *io)
{
	for (int i = 0; i < RELIEF_RUN && limit_evict_reader(io); i++)
		continue;
}

static void follow(struct http_io *io, int step)
{
	int before = io->memory_step;

	io->memory_step = step;
	if (io->index == 0)
		io->count[SERVER_MEMORY_STEP] += step - before;
	if (before < MEMORY_HURRY && step >= MEMORY_HURRY)
		hurry(io);
	if (before == MEMORY_DEAF)
		listen_room(io);
}

/* A live knob: what is held may be too much now, though it stays what it was. */
static void follow_limit(struct http_io *io)
{
	int64_t more = io->conf.memory_bytes - io->gauged_limit_bytes;

	io->pool.limit_bytes = io->conf.memory_bytes;
	tell(io);
	if (io->index != 0)
		return;
	io->count[SERVER_MEMORY_LIMIT] += more;
	io->gauged_limit_bytes += more;
}

void memory_follow(struct http_io *io)
{
	int step;

	if (WEIR_UNLIKELY(io->pool.limit_bytes != io->conf.memory_bytes))
		follow_limit(io);
	/* Partner: decide. */
	step = atomic_load_explicit(&io->srv->memory_step, memory_order_relaxed);
	if (WEIR_UNLIKELY(step != io->memory_step))
		follow(io, step);
	if (WEIR_UNLIKELY(step >= MEMORY_HURRY))
		relieve_of_answers(io);
	if (WEIR_UNLIKELY(step >= MEMORY_REFUSE)) {
		relieve_of_heads(io, CONN_HALF);
		relieve_of_heads(io, CONN_BEHIND);
	}
	if (WEIR_UNLIKELY(step >= MEMORY_REFUSE && io->srv->tls))
		relieve_of_idle(io);
}
