/* SPDX-License-Identifier: MIT */
/*
 * USDT probes: points at which bpftrace, perf or SystemTap can observe a running server
 * (docs/tracing.md, contrib/bpftrace).
 *
 * Each probe is a nop in the code and a note in the ELF file with the location of its arguments. A
 * probe that is not in use costs only the nop. The arguments are values that the code has computed
 * anyway: numbers, and pointers to strings that live as long as the graph. They never contain
 * client data. tests/cli/probes.py reads this table; the provider is `weir`:
 *
 *   admit         admission of a batch   stage, events, refused, sender (65535: a source)
 *   shed          one event was refused  stage, class, reason (a code of weir/error.h)
 *   enqueue       events were enqueued   stage, events, length of the queue now
 *   dequeue       events were dequeued   stage, class, events (enqueued together), ns they waited
 *   handle_start  a batch has begun      stage, events
 *   handle_end    a batch has ended      stage, events, ns it took
 *   done          an event has ended     stage (number), class, code, arrival in CLOCK_MONOTONIC ns
 *   decision      a decision was made    stage, actor, action, threads before, threads after
 *
 * A stage is identified by its name, a string, unless the table says "number". "sender" is the
 * number of the stage that sent the events. The functions below keep the names and arguments of all
 * probes in one file. Without sys/sdt.h (-DWEIR_USDT=off) they do nothing.
 */
#ifndef WEIR_BASE_PROBE_H
#define WEIR_BASE_PROBE_H

#include <stdint.h>

#ifdef WEIR_USDT
#include <sys/sdt.h>
#else
#define DTRACE_PROBE2(provider, name, a, b)       ((void)(a), (void)(b))
#define DTRACE_PROBE3(provider, name, a, b, c)    ((void)(a), (void)(b), (void)(c))
#define DTRACE_PROBE4(provider, name, a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))
#define DTRACE_PROBE5(provider, name, a, b, c, d, e)                                               \
	((void)(a), (void)(b), (void)(c), (void)(d), (void)(e))
#endif

static inline void probe_admit(const char *stage, int n, int refused, int from)
{
	DTRACE_PROBE4(weir, admit, stage, n, refused, from);
}

static inline void probe_shed(const char *stage, int class_id, int reason)
{
	DTRACE_PROBE3(weir, shed, stage, class_id, reason);
}

static inline void probe_enqueue(const char *stage, int n, uint32_t length)
{
	DTRACE_PROBE3(weir, enqueue, stage, n, length);
}

static inline void probe_dequeue(const char *stage, int class_id, int n, int64_t wait_ns)
{
	DTRACE_PROBE4(weir, dequeue, stage, class_id, n, wait_ns);
}

static inline void probe_handle_start(const char *stage, int n)
{
	DTRACE_PROBE2(weir, handle_start, stage, n);
}

static inline void probe_handle_end(const char *stage, int n, int64_t took_ns)
{
	DTRACE_PROBE3(weir, handle_end, stage, n, took_ns);
}

static inline void probe_done(int stage_id, int class_id, int code, int64_t arrival_ns)
{
	DTRACE_PROBE4(weir, done, stage_id, class_id, code, arrival_ns);
}

static inline void probe_decision(
    const char *stage, const char *actor, const char *action, int from, int to)
{
	DTRACE_PROBE5(weir, decision, stage, actor, action, from, to);
}

#endif
