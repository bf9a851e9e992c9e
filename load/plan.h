/* SPDX-License-Identifier: MIT */
/*
 * Describes a load run as plain data. `weir bench` converts its command line into a plan. The
 * schedule, the engine, the run file and the reports read the plan.
 *
 * In an open loop, every request has an intended send time, which is determined before the run by
 * the rates, the arrival process and the seed. Latency is measured from this time, whatever the
 * server does, so there is no coordinated omission. Rates are a sequence of phases, each linear
 * from `from_per_s` to `to_per_s`: a constant rate is one phase, steps are several, a spike is
 * three. In a closed loop (`closed`), a connection sends its next request when it has received the
 * response to the previous one. With `users`, the clients of the closed loop are users that think
 * between pages. Results of closed loops are labelled as such.
 */
#ifndef WEIR_LOAD_PLAN_H
#define WEIR_LOAD_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "load/expect.h"
#include "load/think.h"

/** Maximum number of classes, the same as in a weir server (weir/event.h). */
#define LOAD_CLASSES_MAX 8

/** Maximum number of phases of a run. 256 is a guess: a sweep of 14 rates in 16 rounds needs
 * 224. */
#define LOAD_PHASES_MAX 256

/* Arrival processes, in the order of the choices of --arrivals. */
enum load_arrivals {
	LOAD_POISSON, /* independent users: exponential gaps */
	LOAD_UNIFORM, /* equal gaps */
	/* Markov-modulated Poisson process with two states, calm and burst, and the given mean
	 * rate */
	LOAD_BURSTS,
	LOAD_TRACE, /* send times from a file or a replayed log */
};

struct load_phase {
	char name[32];               /* "1000/s", "10..90/s", "spike 10x" */
	double from_per_s, to_per_s; /* both > 0, or both 0 in a pause */
	int64_t for_ns;              /* > 0 */
	double multiple;             /* rate over the capacity; 0 if not applicable */
	int round;                   /* number of the interleaved round, from 1; 0 without rounds */
	bool warmup;                 /* sent, but excluded from results */
	bool trial;                  /* part of a search for the capacity */
};

/** One complete request. Its bytes are sent unchanged. Owned by its class. */
struct load_request {
	char *bytes; /* head and body */
	size_t n_head, n_bytes;
	bool no_body;      /* the method is HEAD, so the response has no body */
	int64_t at_ns;     /* time since the start of a replayed log; otherwise -1 */
	double cumulative; /* summed share of this request and those before it; 1 for the last */
};

struct load_class {
	char name[32];
	double weight; /* its share of all arrivals is weight / sum of weights, > 0 */
	int n_requests;
	struct load_request *request; /* picked by share, or in sequence if in_order */
	bool in_order;                /* set for replayed logs */
	/* 0, or n_requests: then request i belongs to user i, and results are counted per user */
	int users;
	struct load_expect expect; /* all zero: nothing is expected */
};

struct load_plan {
	/* ---- target ---- */
	char *url;               /* as given */
	char host[256], port[8]; /* where to connect; host without brackets */
	char socket[108];        /* the socket file to connect to instead; "" if none */
	bool tls;
	bool verify; /* check the server's certificate; cleared by --insecure */

	/* ---- timing ---- */
	enum load_arrivals arrivals;
	double burst_factor; /* LOAD_BURSTS: rate of a burst over the mean rate, > 1 */
	double burst_share;  /* share of time in bursts, 0..1; burst_factor * burst_share < 1 */
	/* mean length of a burst; below 10 us, generating the schedule is slow */
	int64_t burst_ns;
	int64_t *trace_ns; /* LOAD_TRACE: ascending send times since the start */
	size_t n_trace;
	int n_phases;
	struct load_phase phase[LOAD_PHASES_MAX];
	uint64_t seed;

	/* ---- requests ---- */
	int n_classes; /* at least 1 */
	struct load_class class[LOAD_CLASSES_MAX];

	/* ---- engine ---- */
	bool closed;     /* closed loop: phases have a duration, but their rates are ignored */
	int connections; /* maximum number open at the same time, over all threads; >= threads */
	int threads;     /* threads of the generator */
	int cpu;         /* pin thread i to core cpu + i; -1 for no pinning */
	/* a phase does not count if the 99th percentile of the lag is above this; 0: 1 ms */
	int64_t lag_limit_ns;
	/* the share of requests that loads below the capacity must serve; 0: the default of reports,
	 * less after a search whose objective was relaxed */
	double held_ratio;
	bool realtime; /* run the threads with real-time priority, where that is allowed */
	bool fresh;    /* a new connection for every request */
	int pipeline;  /* maximum requests in flight on a connection; 1 means no pipelining */
	/* time limit for one attempt, counted from the attempt's intended time. An attempt that
	 * exceeds the limit ends as TIMEOUT, and its connection is closed. */
	int64_t timeout_ns;
	bool send_deadline; /* send "x-deadline-ms: <remaining time of timeout>" */
	/* Each arrival starts a session of this many requests. Each request is sent after the
	 * response to the previous one. 1 means no sessions. */
	int session_requests;
	/* user equivalents (load/think.h), in a closed loop; 0: none. Class c has its share of
	 * them. Each requests the files of a page one after the other, thinks, and goes on. */
	int users;
	bool pages;       /* a page has embedded files, as in SURGE; else it is one file */
	int64_t think_ns; /* mean pause of a user between the requests of a session, or pages */
	enum load_think think;
	double think_shape; /* see load_think_ns */
	int retries;        /* maximum retries of a shed, failed or timed-out request */
	/* the pause before retry i is backoff_ns * 2^(i-1), times a random factor between
	 * 1 - jitter and 1 + jitter; jitter is 0..1 */
	int64_t backoff_ns;
	double jitter;
	double slow_read_share, slow_write_share; /* share of connections that are slow, 0..1 */
	double slow_read_bytes_per_s, slow_write_bytes_per_s;
	/* how long to wait for responses after the last phase; requests whose response has not
	 * arrived by then end as GONE */
	int64_t grace_ns;
};

/** Free everything that the plan owns, and zero the plan. */
void load_plan_fini(struct load_plan *plan);

#endif
