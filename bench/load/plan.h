/* SPDX-License-Identifier: MIT */
/*
 * What a load run does, as plain data: made from the command line of `weir bench`, read by the
 * schedule, the engine, the run file and the reports.
 *
 * Open loop: requests have intended send times, fixed before the run by rates, arrival process and
 * seed; whatever the server does, latency counts from there (no coordinated omission). Rates are a
 * chain of phases, each linear from `from_per_s` to `to_per_s`: a constant rate is one phase, steps
 * are several, a spike is three. Closed loop (`closed`): every connection sends its next request
 * when it has its answer; labelled as such wherever a figure of it is shown.
 */
#ifndef WEIR_LOAD_PLAN_H
#define WEIR_LOAD_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** As many as a server of weir may have (weir/event.h). */
#define LOAD_CLASSES_MAX 8

/** Most phases of a run: a sweep of 14 rates in 16 rounds and then some. Guess. */
#define LOAD_PHASES_MAX 256

/* Order of the choices of --arrivals. */
enum load_arrivals {
	LOAD_POISSON, /* independent users: exponential gaps */
	LOAD_UNIFORM, /* equal gaps */
	LOAD_BURSTS, /* Markov-modulated Poisson of two states, calm and burst, of the same mean rate */
	LOAD_TRACE, /* send times from a file */
};

struct load_phase {
	char name[32];               /* "1000/s", "ramp", "spike 10x" */
	double from_per_s, to_per_s; /* both > 0, or both 0: nobody sends (a pause) */
	int64_t for_ns;              /* > 0 */
	double multiple;             /* of the capacity found before; 0 when there is none */
	int round;   /* 1, 2 ... of interleaved rounds; 0 when there are no rounds */
	bool warmup; /* sent, but its requests are in no result */
};

/** One request, complete: its bytes are written as they are. Owned by its class. */
struct load_request {
	char *bytes; /* head and body */
	size_t n_head, n_bytes;
	bool no_body;      /* the answer to HEAD has none */
	int64_t at_ns;     /* replayed with times: since the start of the log; else -1 */
	double cumulative; /* share of this request and those before it, the last has 1 */
};

struct load_class {
	char name[32];
	double weight; /* of its arrivals among all classes, > 0 */
	int n_requests;
	struct load_request *request; /* picked by share, or one after the other when in_order */
	bool in_order;                /* replay */
	int users; /* > 0: request i is user i's, and users are counted apart; then n_requests */
};

struct load_plan {
	/* where to */
	char *url;               /* as given */
	char host[256], port[8]; /* connect there; host without brackets */
	bool tls;
	bool verify; /* the server's certificate (default when tls; --insecure) */

	/* when */
	enum load_arrivals arrivals;
	double burst_factor; /* LOAD_BURSTS: rate of a burst over the mean rate, > 1 */
	double burst_share;  /* of time spent in bursts, 0..1; factor * share < 1 */
	int64_t burst_ns;    /* mean length of a burst; below 10 us the schedule is slow */
	int64_t *trace_ns;   /* LOAD_TRACE: ascending send times since the start */
	size_t n_trace;
	int n_phases;
	struct load_phase phase[LOAD_PHASES_MAX];
	uint64_t seed;

	/* what */
	int n_classes; /* at least 1 */
	struct load_class class[LOAD_CLASSES_MAX];

	/* how */
	bool closed;     /* closed loop; phases say how long, their rates do not count */
	int connections; /* at most open at once, all threads together, >= threads */
	int threads;     /* of the generator */
	int cpu;         /* pin thread i to core cpu + i; -1: not */
	bool fresh;      /* a connection of its own for every request */
	int pipeline;    /* requests under way on a connection, 1 = no pipelining */
	int64_t
	    timeout_ns; /* of one request from its intended time; then TIMEOUT and the connection is closed */
	bool send_deadline; /* send "x-deadline-ms: <what is left of timeout>" */
	int session_requests; /* each arrival is a user who sends so many, one after the answer of the other; 1 */
	int64_t think_ns;   /* mean of the exponential pause of that user */
	int retries;        /* of a shed, failed or timed-out request; 0 */
	int64_t backoff_ns; /* before retry i: backoff * 2^(i-1) ... */
	double jitter;      /* ... times a random factor in 1 - jitter .. 1 + jitter, 0..1 */
	double slow_read_share, slow_write_share; /* of connections that are slow, 0..1 */
	double slow_read_bytes_per_s, slow_write_bytes_per_s;
	int64_t grace_ns; /* after the last phase, for answers under way; then GONE */
};

/** Free what the plan owns and zero it. */
void load_plan_fini(struct load_plan *plan);

#endif
