/* SPDX-License-Identifier: MIT */
/*
 * The measurements of a load run. Plain data, filled in by load_run, read by the run file and the
 * capacity search.
 *
 * Every request that was due ends with exactly one outcome. After a run, offered = ok + degraded +
 * shed + error + timeout + gone holds for each class and phase. A request that is retried ends
 * once, with the outcome of its last attempt, and its latency is measured from the first attempt.
 */
#ifndef WEIR_LOAD_RESULT_H
#define WEIR_LOAD_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "load/hdr.h"
#include "load/plan.h"

/* identifier, name in files and tables, meaning */
#define LOAD_OUTCOMES(X)                                                                           \
	X(OK, "ok", "a complete response with a status below 400")                                 \
	X(DEGRADED, "degraded", "a status below 400 with X-Weir-Degraded, or X-Quality below 1")   \
	X(SHED, "shed", "refused: status 503 or 429")                                              \
	X(ERROR, "error", "a status of 400 or above that is not shed, or no complete response")    \
	X(TIMEOUT, "timeout", "no complete response within the client's time-out")                 \
	X(GONE, "gone", "the run ended before the response")

enum load_outcome {
#define LOAD_OUTCOME_ENUM(id, name, meaning) LOAD_##id,
	LOAD_OUTCOMES(LOAD_OUTCOME_ENUM)
#undef LOAD_OUTCOME_ENUM
	    LOAD_N_OUTCOMES
};

/* Reasons why attempts failed, counted per attempt. The columns are those of LOAD_OUTCOMES. */
#define LOAD_ERRORS(X)                                                                             \
	X(REFUSED, "refused", "connection refused: no process listens on the port")                \
	X(CONNECT, "connect", "the connection could not be established for another reason")        \
	X(TLS, "tls", "the handshake failed or the certificate was not accepted")                  \
	X(RESET, "reset", "the connection was reset")                                              \
	X(CLOSED, "closed", "the connection was closed before the response was complete")          \
	X(MALFORMED, "malformed", "the response is not valid HTTP/1")                              \
	X(STATUS, "status", "a status of 400 or above other than 503 and 429")                     \
	X(WRONG, "wrong", "the response is not what --expect says")                                \
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

/** Counts of one user of a class. */
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
	/* latencies by outcome, from the intended time; NULL if no request had that outcome */
	struct hdr *latency[LOAD_N_OUTCOMES];
	/* [class.users]; NULL if users are not counted or no request was sent */
	struct load_user *user;
};

struct load_phase_result {
	int64_t took_ns; /* its planned length, or less if the run was stopped */
	bool complete;
	bool late;      /* the lag was above the limit, so the phase does not count */
	struct hdr lag; /* delay of the generator after a request's intended time */
	struct load_class_result class[LOAD_CLASSES_MAX];
};

/** One second of the run. An outcome is counted in the second in which the request finished. */
struct load_second {
	int64_t at_ns; /* start of the second, counted from the start of the run */
	int phase;
	int64_t in_flight, connections; /* at the end of the second */
	int64_t lag_max_ns;
	struct {
		uint64_t offered, outcome[LOAD_N_OUTCOMES], retries;
		int64_t p50_ns, p99_ns; /* of ok and degraded; 0 if there were none */
	} class[LOAD_CLASSES_MAX], all;
};

struct load_result {
	int64_t started_unix_ns;
	int64_t took_ns;
	bool stopped;                    /* stopped by the user before its planned end */
	char voided[160];                /* why no phase counts; empty if one counts */
	double cpu_user_s, cpu_system_s; /* of the generator's threads */
	uint64_t connects;               /* connections established */
	bool realtime;                   /* all threads had it; joined: in at least one run */
	int n_phases;
	struct load_phase_result *phase; /* phase[n_phases] as in the plan */
	size_t n_seconds;
	struct load_second *second;
};

/** Free everything that the result owns, and zero the result. */
void load_result_fini(struct load_result *result);

/** Sum up all classes of one phase in `into`, which must be zero before the call. Free it with
 * load_class_result_fini. Returns 0 or WEIR_ENOMEM. */
int load_phase_total(const struct load_plan *plan, const struct load_phase_result *phase,
    struct load_class_result *into);
void load_class_result_fini(struct load_class_result *c);

#endif
