/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the simulator share; see sim.h for the model.
 *
 *   sim.c       set-up, the loop, the end        clients.c  who sends when, and what they make of it
 *   door.c      admission and queues             workers.c  threads, batches, cores
 *   meter.c     ticks: samples, costs, resizing  laws.c     what must hold; the last steps
 *   routes.c    what is on its way where    result.c   totals and figures
 *   laws_*.c    what must hold over time, see laws.h
 *
 * Requests and threads are slots of arrays, named by number, so that growing an array moves no
 * name. A request is in one place: with its client, in one queue, or in one batch.
 */
#ifndef WEIR_SIM_WORLD_H
#define WEIR_SIM_WORLD_H

#include "sim.h"

#include <weir/metric.h>

#include "admission/route.h"
#include "heap.h"
#include "laws.h"

#define NONE UINT32_MAX

/* Cores' time is counted in 1024ths of a ns, so that shares of it are whole numbers. */
#define CPU_UNIT 1024

/* Links that routes may make. */
#define SIM_LINKS_MAX (SIM_ROUTES_MAX * SIM_STAGES_MAX)

/* What an entry of the main heap is, in the top bits of `what`; below is a number. */
enum step_kind {
	STEP_ARRIVE,  /* source */
	STEP_SEND,    /* request: a retry, or a closed loop's next */
	STEP_TIMEOUT, /* request: its client stops listening */
	STEP_BLOCKED, /* thread: what it blocked on is there */
	STEP_TICK,
	STEP_FAULT, /* fault */
	STEP_MARK,  /* the warm-up is over */
};
#define STEP_SHIFT 28
#define STEP_MASK  ((1u << STEP_SHIFT) - 1)

struct request {
	int64_t sent_ns;
	int64_t deadline_ns;         /* that the server knows of; WEIR_NO_DEADLINE */
	int64_t patience_ns;         /* until then the client listens; WEIR_NO_DEADLINE */
	int64_t queued_ns;           /* entered the present queue */
	int64_t waited_ns, spent_ns; /* so far: in queues, in handlers */
	uint64_t serial;             /* which draws are its own */
	uint32_t next;               /* in a queue, a batch or the free list */
	uint32_t user, timeout;      /* order of its timeout in the heap */
	uint16_t place;              /* of its user among all: admission_view.user */
	uint8_t class_id, route, at, attempt, source;
	bool in_server, abandoned, counted;
	uint16_t asked_for; /* stages that a door asked for on its behalf, one bit each */
};

struct worker {
	uint32_t head;                /* batch */
	int n;                        /* events in it; 0: idle or absent */
	uint32_t next;                /* idle or absent list */
	uint32_t order;               /* of the entry that it waits for, in either heap */
	int64_t started_ns, block_ns; /* the batch began; it will block so long */
	int64_t cpu_started;          /* cores' time then */
	uint16_t stage;
	bool computes;
};

struct lane {
	uint32_t head, tail, n;
};

/* Totals of one class at a stage since the start, as the books of the server. */
struct books {
	uint64_t offered, admitted, refused, shed, completed, failed;
	uint64_t handled;       /* handlers were given so many */
	uint64_t asked, wanted; /* of the policy, at any door; not refused by another's */
	uint64_t
	    policy_refused; /* of refused and shed: by the policy, or in shadow mode would be */
	uint64_t service_ns, wait_ns;
	uint32_t running;
	struct weir_hist wait, service;
};

/* What they were at the last look; see framework/flow/meter.h. */
struct looked {
	uint64_t asked, wanted, refused, completed, service_ns, wait_ns;
};

struct meter {
	int64_t at_ns, looked_at_ns, hist_at_ns;
	struct looked then[WEIR_CLASSES_MAX];
	struct weir_hist wait_then[WEIR_CLASSES_MAX], service_then;
	int64_t service_p99_ns;
	int64_t wait_p90_ns, response_p90_ns[WEIR_CLASSES_MAX], all_response_p90_ns;
	double cost_ns[WEIR_CLASSES_MAX], mean_cost_ns;
	bool idle; /* a thread had nothing to do at some time since the last tick */
};

struct stage {
	const struct sim_stage *conf;
	uint64_t key; /* of its draws */
	struct lane lane[WEIR_CLASSES_MAX];
	uint32_t length, running;
	struct books books[WEIR_CLASSES_MAX];
	int64_t cost_ns[WEIR_CLASSES_MAX], mean_cost_ns; /* as published at the last tick */
	struct meter meter;
	_Alignas(16) unsigned char state[ADMISSION_STATE_MAX];
	uint64_t asked;
	int64_t pipeline_ns;   /* work on its way here from earlier stages */
	int64_t look_wait_ns;  /* of the queue, at the last tick */
	int64_t least_left_ns; /* who has less time left is not worth a handler */
	int64_t most_wait_ns;  /* nor is who waited longer; 0: no bound yet */
	uint64_t turned_ahead; /* refused on its behalf at doors upstream */
	/* threads */
	int live, target, busy, direction;
	uint32_t first;        /* of its workers, threads_max in a row */
	uint32_t idle, absent; /* lists of workers */
	int64_t busy_ns,
	    started_sum_ns; /* of batches that ended; sum of starts of those under way */
	/* The same of computing: cores' time got, in CPU_UNITs, and time on the wall. */
	int computing;
	int64_t cpu_time, cpu_started_sum, computing_ns, computing_sum_ns;
	int64_t threads_ns, threads_at_ns;
	double slow; /* factor of faults */
	_Alignas(16) unsigned char resize_state[RESIZE_STATE_MAX];
	/* at the end of the warm-up */
	int64_t busy_mark_ns;
	uint64_t completed_mark;
	struct stage_laws law;
};

struct source {
	const struct sim_source *conf;
	uint64_t key;
	uint64_t sent; /* draws taken */
	int phase;
	bool in_burst;
	int64_t turn_ns; /* the burst state lasts until then */
	uint64_t turns;
};

/* One line of the trace. */
struct step_note {
	int64_t at_ns;
	const char *what;
	int stage, class_id, n, m, busy, live;
	uint32_t length;
	int64_t work_ns;
};
#define NOTES 256

struct sim {
	const struct sim_config *conf;
	struct sim_result *r;
	int64_t now_ns, end_ns;
	struct heap heap;
	int rc;
	bool stop;
	/* cores */
	struct heap cpu;   /* by the cores' time at which the computing is done */
	int64_t cpu_time;  /* what a handler that computed all the time has got */
	int64_t cpu_at_ns; /* it is of then */
	int computing;
	int64_t cpu_used_ns, cpu_used_then_ns, control_at_ns;
	/* requests */
	struct request *req;
	uint32_t n_req, free_req, in_server;
	struct worker *worker;
	struct stage stage[SIM_STAGES_MAX];
	struct source source[SIM_SOURCES_MAX];
	/* routes; NULL when there is nobody to ask ahead for */
	struct route *route;
	struct route_stage shape[SIM_STAGES_MAX];
	struct route_link link[SIM_LINKS_MAX];
	int order[SIM_STAGES_MAX], n_links;
	int64_t routes_at_ns; /* when they were looked at last */
	uint64_t tried[SIM_LINKS_MAX * WEIR_CLASSES_MAX];
	int lost_ticks; /* faults under way */
	uint64_t users_key, retry_key, retries;
	struct setting set;
	int64_t last_ns; /* time of the last step */
	struct step_note note[NOTES];
	uint64_t n_notes;
};

static inline void sim_at(struct sim *s, int64_t at_ns, enum step_kind kind, uint32_t what)
{
	heap_push(&s->heap, at_ns, (uint32_t)kind << STEP_SHIFT | what, &s->rc);
}

/* clients.c */
void clients_start(struct sim *s);
void client_arrive(struct sim *s, uint32_t source);
void client_send(struct sim *s, uint32_t slot);
void client_timeout(struct sim *s, uint32_t slot, uint32_t order);
/** The request leaves the server with `status`, a WEIR_E code. `midway`: refused at a later door. */
void client_end(struct sim *s, uint32_t slot, int status, bool midway);

/* door.c */
void door_offer(struct sim *s, int stage, const uint32_t *slot, int n);
int64_t queue_work_ns(const struct sim *s, const struct stage *st);

/* workers.c */
void workers_init(struct sim *s, int stage, uint32_t first);
void workers_start(struct sim *s, int stage); /* let idle threads take what waits */
void workers_resize(struct sim *s, int stage, int target);
void workers_mend(struct sim *s, int stage); /* as many as wanted again, after deaths */
void workers_crash(struct sim *s, int stage);
void workers_mark(struct sim *s, int stage); /* count threads' time up to now */
void worker_blocked(struct sim *s, uint32_t worker, uint32_t order);
void worker_computed(struct sim *s);
void cpu_advance(struct sim *s, int64_t to_ns);
int64_t cpu_next_ns(struct sim *s);

/* routes.c */
int routes_init(struct sim *s);
void routes_tick(struct sim *s);
/** A request of the class is offered by stage `from` (-1: a client) to stage `to`. */
void routes_tried(struct sim *s, int from, int to, int class_id);
/** Has a door upstream decided for `to` already? */
bool routes_judged(const struct sim *s, int from, int to, int class_id);
/** The stages that the door of `gate` asks for, into stage[SIM_STAGES_MAX]. Returns how many. */
int routes_ahead(const struct sim *s, int gate, int from, int class_id, int *stage);
/** Mean time from the door of `gate` to that of `stage`; from there to the end, without the stage. */
int64_t routes_lead_ns(const struct sim *s, int gate, int stage, int class_id);
/** Work on its way to `stage` that is there before what enters the door of `gate` now. */
int64_t routes_coming_ns(const struct sim *s, int gate, int stage, int class_id);
int64_t routes_rest_ns(const struct sim *s, int stage, int class_id);

/* meter.c */
void meter_tick(struct sim *s);

/* laws.c */
void laws_note(struct sim *s, const char *what, int stage, int class_id, int n, int m);
void laws_check(struct sim *s, int stage); /* a step touched the stage */
void laws_step(struct sim *s);             /* a step is over */
void laws_tick(struct sim *s);             /* a tick is, taken or lost */
void laws_break(struct sim *s, enum sim_law law, int stage, const char *fmt, ...) WEIR_PRINTF(4, 5);

static inline bool laws_asked(const struct sim *s, enum sim_law law)
{
	return s->conf->laws & (unsigned)law;
}

/** The law was looked at, and `used` of its limit was. */
static inline void laws_saw(struct sim *s, enum sim_law law, double used)
{
	struct sim_law_result *r = &s->r->law[__builtin_ctz((unsigned)law)];

	r->checked++;
	if (used > r->worst)
		r->worst = used;
}

/* laws_setting.c */
void setting_init(struct sim *s);
void setting_tick(struct sim *s);

/* laws_door.c */
void laws_sent(struct sim *s);
void laws_arrived(struct sim *s, int stage, const struct request *r); /* not from a client */
void laws_refused(struct sim *s, int gate, int by, const struct request *r, int reason);
void laws_left_queue(struct sim *s, int stage, const struct request *r);
void laws_slowed(struct sim *s, int stage); /* its services change */

/* laws_load.c */
void laws_load_tick(struct sim *s, int stage);

/* laws_pool.c */
void laws_pool_tick(struct sim *s, int stage);
void laws_resized(struct sim *s, int stage, int to, const char *rule);

/* laws_state.c */
void laws_state_init(struct sim *s);
void laws_state_tick(struct sim *s, int stage);
void laws_routes(struct sim *s); /* the ways were looked at, and nothing happened since */
void laws_sampled(struct sim *s, int stage); /* before the tick takes the books over */
void laws_asked_again(struct sim *s, int stage, int class_id, const struct admission_view *view,
    const unsigned char *before, int admitted, int reason);

/* result.c */
struct sim_bin *result_bin(struct sim *s);

#endif
