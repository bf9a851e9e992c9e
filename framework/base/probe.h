/* SPDX-License-Identifier: MIT */
/*
 * USDT probes: places where bpftrace, perf or SystemTap may look into a running server (docs/tracing.md, contrib/bpftrace).
 *
 * Each is a nop in the code and a note in the ELF file that says where its arguments are; nobody has to be told of the probes
 * beforehand, and while nobody looks they cost the nop. Arguments are what is at hand anyway: numbers and pointers to
 * texts that live as long as the graph, never anything of a client's. Provider `weir`:
 *
 *   admit         a door has judged a run of events      stage, events, refused, stage they came from (65535: a source)
 *   shed          it refused one of them                 stage, class, reason (a code of weir/error.h)
 *   enqueue       events entered a queue                 stage, events, length of the queue now
 *   dequeue       events of one stamp leave it           stage, class, events, ns they waited
 *   handle_start  a batch is given to its handler        stage, events
 *   handle_end    the handler is done with it            stage, events, ns it took
 *   done          an event has ended                     stage (number), class, code, ns of CLOCK_MONOTONIC when it arrived
 *   decision      a controller or operator decided       stage, actor, action, threads before, threads after
 *
 * A stage is a text unless said otherwise. Functions rather than the macros of sys/sdt.h at the places themselves, so that
 * names, number and types of arguments stand here and nowhere else. Without sys/sdt.h (-DWEIR_USDT=off) they are empty.
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
