/* SPDX-License-Identifier: MIT */
/*
 * What a load run measured. Plain data, filled by load_run, read by the run file and the capacity
 * search.
 *
 * Every request that was due ends in exactly one outcome: offered = ok + degraded + shed + error +
 * timeout + gone, per class and phase, after a run. A request that is retried ends once, with the
 * outcome of its last attempt, and its latency counts from the first.
 */
#ifndef WEIR_LOAD_RESULT_H
#define WEIR_LOAD_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "load/hdr.h"
#include "load/plan.h"

/* name in files and tables, meaning */
#define LOAD_OUTCOMES(X)                                                                           \
	X(OK, "ok", "a whole answer of status below 400")                                          \
	X(DEGRADED, "degraded", "the same with the header X-Weir-Degraded")                        \
	X(SHED, "shed", "refused: status 503 or 429")                                              \
	X(ERROR, "error", "another status from 400, or no whole answer")                           \
	X(TIMEOUT, "timeout", "no whole answer within the client's time-out")                      \
	X(GONE, "gone", "the run ended before the answer")

enum load_outcome {
#define LOAD_OUTCOME_ENUM(id, name, meaning) LOAD_##id,
	LOAD_OUTCOMES(LOAD_OUTCOME_ENUM)
#undef LOAD_OUTCOME_ENUM
	    LOAD_N_OUTCOMES
};

/* Why attempts failed; counted per attempt. */
#define LOAD_ERRORS(X)                                                                             \
	X(REFUSED, "refused", "nobody listens: connection refused")                                \
	X(CONNECT, "connect", "the connection could not be made for another reason")               \
	X(TLS, "tls", "the handshake failed or the certificate was not accepted")                  \
	X(RESET, "reset", "the connection was reset")                                              \
	X(CLOSED, "closed", "the connection ended within an answer, or before it")                 \
	X(MALFORMED, "malformed", "what came is no HTTP/1 answer")                                 \
	X(STATUS, "status", "an answer of status 400 or more that is no refusal")                  \
	X(UNSENT, "unsent", "too many requests waited for a connection")

enum load_error {
#define LOAD_ERROR_ENUM(id, name, meaning) LOAD_E##id,
	LOAD_ERRORS(LOAD_ERROR_ENUM)
#undef LOAD_ERROR_ENUM
	    LOAD_N_ERRORS
};

/** Names of outcomes and errors as in the tables above. */
extern const char *const load_outcome_name[LOAD_N_OUTCOMES];
extern const char *const load_error_name[LOAD_N_ERRORS];

/** What became of the requests of one user of a class. */
struct load_user {
	uint64_t offered, good; /* good: ok or degraded */
};

struct load_class_result {
	uint64_t offered;
	uint64_t outcome[LOAD_N_OUTCOMES];
	uint64_t error[LOAD_N_ERRORS];
	uint64_t attempts; /* requests written to a connection */
	uint64_t retries;
	uint64_t bytes_in, bytes_out;
	struct hdr
	    *latency[LOAD_N_OUTCOMES]; /* from the intended time; NULL: none of that outcome */
	struct load_user
	    *user; /* [class.users]; NULL: they are not counted, or have sent nothing */
};

struct load_phase_result {
	int64_t took_ns; /* as planned, shorter when stopped */
	bool complete;
	struct hdr lag; /* generator's own: from the intended time until it acted on it */
	struct load_class_result class[LOAD_CLASSES_MAX];
};

/** One second of the run, by the time of completion. */
struct load_second {
	int64_t at_ns; /* its start, since the start of the run */
	int phase;
	int64_t in_flight, connections; /* at its end */
	int64_t lag_max_ns;
	struct {
		uint64_t offered, outcome[LOAD_N_OUTCOMES], retries;
		int64_t p50_ns, p99_ns; /* of ok and degraded; 0 when none */
	} class[LOAD_CLASSES_MAX], all;
};

struct load_result {
	int64_t started_unix_ns;
	int64_t took_ns;
	bool stopped;                    /* by hand, before its end */
	char voided[160];                /* why the run must not count; empty: it counts */
	double cpu_user_s, cpu_system_s; /* of the generator's threads */
	uint64_t connects;               /* connections made */
	int n_phases;
	struct load_phase_result *phase; /* phase[n_phases] as in the plan */
	size_t n_seconds;
	struct load_second *second;
};

/** Free what the result owns and zero it. */
void load_result_fini(struct load_result *result);

/** Sum of all classes of one phase into `into`, which must be zero and be freed with
 *  load_class_result_fini. 0 or WEIR_ENOMEM. */
int load_phase_total(const struct load_plan *plan, const struct load_phase_result *phase,
    struct load_class_result *into);
void load_class_result_fini(struct load_class_result *c);

#endif
