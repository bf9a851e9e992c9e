/* SPDX-License-Identifier: MIT */
/*
 * Declarations shared by the parts of the simulator; see sim.h for the model.
 *
 *   sim.c       set-up, the loop, the end        clients.c  sending, reactions to responses
 *   admit.c     admission and queues             workers.c  threads, batches, cores
 *   meter.c     ticks: samples, costs, resizing  laws.c     invariants; log of the last steps
 *   waiting.c   queues: by class, by work, in parts
 *   routes.c    work in transit between stages   result.c   totals and metrics
 *   linger.c    batches that wait for more events
 *   servers.c   what waits behind a stage
 *   group*.c    core groups, see group.h
 *   laws_*.c    invariants over time, see laws.h
 *
 * Requests and threads are array slots identified by their index, so references stay valid when an
 * array grows. At any time a request is either with its client, in one queue or cell, or in one
 * batch. A core of a core group is a thread whose stage changes.
 */
#ifndef WEIR_SIM_WORLD_H
#define WEIR_SIM_WORLD_H

#include "sim.h"

#include <weir/metric.h>

#include "admission/route.h"
#include "heap.h"
#include "laws.h"

#define NONE UINT32_MAX

/* Marks requests that belong to no user. */
#define NO_USER UINT32_MAX

/* CPU time is counted in 1024ths of a ns, so that whole numbers are precise enough for the share of
 * a handler. */
#define CPU_UNIT 1024

/* Maximum number of links between stages. */
#define SIM_LINKS_MAX (SIM_ROUTES_MAX * SIM_STAGES_MAX)

/* The kind of an entry in the main heap, in the top bits of `what`; the low bits are an index. */
enum step_kind {
	STEP_ARRIVE,  /* index: source */
	STEP_SEND,    /* index: request to send; a retry, or the next one of a closed loop */
	STEP_TIMEOUT, /* index: request; its client gives up */
	STEP_BLOCKED, /* index: thread whose blocking operation has finished */
	STEP_TICK,
	STEP_FAULT, /* index: fault */
	STEP_MARK,  /* the warm-up is over */
	STEP_WOKEN, /* index: thread, a core of a group that was idle */
	STEP_DUE,   /* index: stage in which a batch lingers */
};
#define STEP_SHIFT 28
#define STEP_MASK  ((1u << STEP_SHIFT) - 1)

struct request {
	int64_t sent_ns;
	int64_t deadline_ns;         /* as known to the server, or WEIR_NO_DEADLINE */
	int64_t patience_ns;         /* end of the client's wait, or WEIR_NO_DEADLINE */
	int64_t queued_ns;           /* when it entered the current queue */
	int64_t waited_ns, spent_ns; /* time so far in queues and in handlers */
	int64_t alone_ns;       /* time that its services so far take on an otherwise idle core */
	uint64_t serial;        /* selects its random draws */
	uint32_t next;          /* next request in a queue, a batch or the free list */
	uint32_t user, timeout; /* timeout: order of its time-out in the heap */
	uint16_t place;         /* position of its user in the rotation of users */
	uint8_t class_id, route, at, attempt, source;
	bool in_server, abandoned, counted;
	int64_t left_ns;      /* work left of an event that yielded (gate `cutoff`), or 0 */
	int64_t predicted_ns; /* wait predicted for the group that it entered; 0 if not checked */
	uint32_t asked_for;   /* bit mask of the later stages for which it was admitted */
	uint32_t worker;      /* that handled it last, or NONE */
	uint64_t turn;        /* S4: number of its last turn (laws_serial.c) */
	bool put_back; /* it has yielded at this stage; S4: it may have been overtaken there */
};

struct worker {
	uint32_t head;                /* first request of its batch */
	int n;                        /* events in it; 0 if the thread is idle or absent */
	uint32_t next;                /* next thread in the idle or absent list */
	uint32_t order;               /* order of the heap entry that it waits for */
	int64_t started_ns, block_ns; /* start of the batch; time for which it will block */
	int64_t cpu_started;          /* cpu_time at the start of the batch */
	uint16_t stage;
	bool computes;
	struct group *group; /* of a core; else NULL */
};

struct lane {
	uint32_t head, tail, n;
};

/* Events of a stage that wait for one core: its cell, or a part of the queue. Those of a serial stage
 * are all in the first lane. */
struct line {
	struct lane lane[WEIR_CLASSES_MAX];
	uint32_t n;
	uint64_t served; /* of a partition: number of its last batch */
};

/* Totals of one class at a stage since the start, like the server's per-class counters. */
struct books {
	uint64_t offered, admitted, refused, shed, completed, failed;
	uint64_t handled; /* events given to handlers; again each time that they have yielded */
	uint64_t ran;     /* events whose first batch has ended, as the server counts `handled` */
	uint32_t back;    /* of these, events that have yielded and are still at the stage */
	/* asked: events on which this stage's policy has decided, here or upstream; wanted: those
	 * of them that no other stage refused */
	uint64_t asked, wanted;
	/* events that the policy refused or shed, or would have refused or shed in enforce mode */
	uint64_t policy_refused;
	uint64_t service_ns, wait_ns;
	uint32_t running;
	struct weir_hist wait, service;
};

/* Values at the last sample; see framework/graph/meter.h. */
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
	/* number of events in these means, at most 1 / COST_WEIGHT */
	double known[WEIR_CLASSES_MAX], all_known;
	/* of a stage with a width: when an event last ended, and how many were in work then */
	int64_t ended_ns;
	int in_work;
	bool idle; /* a thread was idle at some time since the last tick */
};

struct stage {
	const struct sim_stage *conf;
	uint64_t key;                       /* key of its random draws */
	struct lane lane[WEIR_CLASSES_MAX]; /* the queue; if it has parts, only the numbers `n` */
	/* of a serial stage: inboxes by core (group_keys.c); in a group with replicas: by copy; else
	 * NULL */
	struct line *part;
	struct bins *bins[WEIR_CLASSES_MAX]; /* with `shortest` */
	int next_copy;                       /* for the next event from outside */
	uint64_t parts;                      /* bit k: part k has events */
	uint64_t leased, served;  /* bit k: a batch of partition k runs; number of batches */
	uint32_t length, running; /* length: of queue and cells */
	struct group *group;      /* its core group, or NULL */
	uint32_t in_cells[WEIR_CLASSES_MAX], celled; /* events in its cells, by class and in all */
	uint32_t own, cell_max; /* bounds of the queue and of a cell (event/queue_steer.c) */
	uint32_t again;         /* waiting events that yielded */
	bool due;               /* a STEP_DUE of the stage is in the heap */
	struct books books[WEIR_CLASSES_MAX];
	int64_t cost_ns[WEIR_CLASSES_MAX], mean_cost_ns; /* as published at the last tick */
	struct meter meter;
	_Alignas(16) unsigned char state[ADMISSION_STATE_MAX];
	struct fair *fair; /* demand by user; NULL if the policy does not use it */
	uint64_t asked;
	int64_t pipeline_ns;   /* work on its way here from earlier stages */
	int64_t wait_ns;       /* predicted at the last tick */
	int64_t look_wait_ns;  /* queue wait at the last update of the routes */
	int64_t least_left_ns; /* events whose deadline is nearer are shed */
	int64_t most_wait_ns;  /* events that waited longer are shed; 0 if not known yet */
	uint64_t turned_ahead; /* events refused upstream on its behalf */
	/* threads */
	int live, target, busy, direction;
	uint32_t first;        /* first of its threads_max consecutive workers */
	uint32_t idle, absent; /* lists of workers */
	/* total duration of finished batches; sum of the start times of batches in progress */
	int64_t busy_ns, started_sum_ns;
	/* The same two sums for the computing part of batches: in CPU time received (CPU_UNITs),
	 * and in wall-clock time. `computing` is the number of threads that compute now. */
	int computing;
	int64_t cpu_time, cpu_started_sum, computing_ns, computing_sum_ns;
	int64_t threads_ns, threads_at_ns;
	double slow; /* factor on service times, set by faults */
	_Alignas(16) unsigned char resize_state[RESIZE_STATE_MAX];
	_Alignas(16) unsigned char width_state[WIDTH_STATE_MAX];
	/* heap of the times at which the conf->servers are free; NULL if conf->servers is 0 */
	int64_t *free_ns;
	int64_t served_ns, served_mark_ns; /* work given to them; its part done in the warm-up */
	/* values at the end of the warm-up */
	int64_t busy_mark_ns;
	uint64_t completed_mark;
	struct stage_laws law;
	struct part_laws *part_law; /* likewise, of a partitioned stage */
	struct key_laws
	    *key_law; /* of a serial stage, by value of its field; NULL if not checked */
};

struct source {
	const struct sim_source *conf;
	uint64_t key;
	uint64_t sent; /* number of the next request, and index of its random draws */
	int phase;
	bool in_burst;
	int64_t turn_ns; /* end of the current burst state */
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
	struct heap cpu; /* threads by the cpu_time at which their computing is done */
	/* CPU_UNITs that a handler would have received if it had computed since the start of the
	 * run (workers.c) */
	int64_t cpu_time;
	int64_t cpu_at_ns; /* time of the last update of cpu_time */
	int computing;
	int64_t cpu_used_ns, cpu_used_then_ns, control_at_ns;
	/* requests */
	struct request *req;
	uint32_t n_req, free_req, in_server;
	uint32_t in_sockets;       /* of those in the server: not read yet */
	struct weir_event **chunk; /* events that stand for requests in bins (waiting.c) */
	struct worker *worker;
	struct stage stage[SIM_STAGES_MAX];
	struct group *group; /* conf->n_groups */
	struct source source[SIM_SOURCES_MAX];
	/* routes; `route` is NULL if there is no admission upstream */
	struct route *route;
	struct route_stage shape[SIM_STAGES_MAX];
	struct route_link link[SIM_LINKS_MAX];
	int order[SIM_STAGES_MAX], n_links;
	int64_t routes_at_ns; /* time of the last update of the routes */
	uint64_t tried[SIM_LINKS_MAX * WEIR_CLASSES_MAX];
	int lost_ticks; /* number of SIM_LOST_TICKS faults in progress */
	uint64_t users_key, retry_key, retries, serial_key;
	uint64_t turns; /* S4 */
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
/** Deliver the result of a request to its client. `status` is a WEIR_E code. `midway` means that a
 * stage after the first refused it. */
void client_end(struct sim *s, uint32_t slot, int status, bool midway);

/* waiting.c */
/** Append the request to a part of the queue, or to the whole queue. */
void waiting_push(struct sim *s, struct stage *st, int part, uint32_t slot);
/** Take the next event of it; there is one. */
uint32_t waiting_pop(struct sim *s, struct stage *st, int part);
int64_t waiting_oldest_ns(const struct sim *s, const struct stage *st, int part);
const struct lane *waiting_lanes(const struct stage *st, int part); /* not with `shortest` */
int64_t lanes_oldest_ns(const struct sim *s, const struct lane *lane);
/** Whether the bins of the class have as many events as are counted. */
bool waiting_sound(const struct sim *s, const struct stage *st, int c);
void waiting_close(struct stage *st);

static inline bool stage_shortest(const struct stage *st)
{
	return st->conf->discipline == WEIR_DISCIPLINE_SHORTEST;
}

/* admit.c */
void admit_offer(struct sim *s, int stage, const uint32_t *slot, int n);
/** Append the request to a lane of its stage, without counting it. */
void lane_push(struct sim *s, struct lane *lane, uint32_t slot);
int64_t queue_work_ns(const struct sim *s, const struct stage *st);

/* workers.c */
/** Return the class to serve next among the lanes of all classes, or -1 if all are empty. */
int lanes_next(const struct sim *s, const struct stage *st, const struct lane *lane);
uint32_t lane_pop(const struct sim *s, struct lane *lane);
/** Shed the request if it is too late to serve it. Returns whether it was shed. */
bool worker_shed(struct sim *s, struct stage *st, uint32_t slot);
/** Add the request to the batch of `w`. Returns the work of the request. */
int64_t worker_enter(struct sim *s, int stage, struct worker *w, uint32_t slot);
/** Begin the batch of worker `id`: its events take `work_ns`, scheduling `overhead_ns`. */
void worker_begin(struct sim *s, int stage, uint32_t id, int64_t work_ns, int64_t overhead_ns);
/** Number of events of a batch that take at most a millisecond. */
int batch_most(const struct stage *st);
void workers_init(struct sim *s, int stage, uint32_t first);
void workers_start(struct sim *s, int stage); /* let idle threads take waiting events */
void workers_resize(struct sim *s, int stage, int target);
void workers_mend(struct sim *s, int stage); /* adjust live threads to the target */
void workers_crash(struct sim *s, int stage);
void workers_mark(struct sim *s, int stage); /* add the threads' time up to now */
void worker_blocked(struct sim *s, uint32_t worker, uint32_t order);
void worker_computed(struct sim *s);
void cpu_advance(struct sim *s, int64_t to_ns);
int64_t cpu_next_ns(struct sim *s);

/* linger.c */
/** Whether the events in the queue wait for a fuller batch (sim_stage.linger_ns). */
bool linger_waits(const struct sim *s, const struct stage *st);
/** The queue has changed: make sure that a batch begins in time. */
void linger_watch(struct sim *s, struct stage *st);
void linger_due(struct sim *s, int stage);

/* servers.c */
/** Let the server that becomes free first work for `work_ns`. Returns how long the event takes,
 *  including its wait for the server. */
int64_t servers_serve(struct sim *s, struct stage *st, int64_t work_ns);
/** How long the servers of the stage have worked so far, all together. */
int64_t servers_busy_ns(const struct sim *s, const struct stage *st);

/* routes.c */
int routes_init(struct sim *s);
void routes_tick(struct sim *s);
/** Count an offer of a request of the class from stage `from` (-1 for a client) to stage `to`. */
void routes_tried(struct sim *s, int from, int to, int class_id);
/** Whether the admission of an upstream stage decides on behalf of `to`, for events of the class
 * that come from `from`. */
bool routes_judged(const struct sim *s, int from, int to, int class_id);
/** Store in stage[SIM_STAGES_MAX] the later stages on whose behalf the admission of `entry`
 * decides. Returns their number. */
int routes_ahead(const struct sim *s, int entry, int from, int class_id, int *stage);
/** Return the mean time from the admission of `entry` to that of `stage`. routes_rest_ns returns
 * the mean time from the end of `stage` to the end of the request. */
int64_t routes_lead_ns(const struct sim *s, int entry, int stage, int class_id);
/** Return the work on its way to `stage` that arrives before an event that is now at the admission
 * of `entry`. */
int64_t routes_coming_ns(const struct sim *s, int entry, int stage, int class_id);
int64_t routes_rest_ns(const struct sim *s, int stage, int class_id);

/* meter.c */
void meter_tick(struct sim *s);
/** Add what a resize policy must know of the stage to the sums in `v`. */
void meter_add_view(const struct sim *s, const struct stage *st, struct resize_view *v);

/* laws.c */
void laws_note(struct sim *s, const char *what, int stage, int class_id, int n, int m);
void laws_check(struct sim *s, int stage); /* after a step that touched the stage */
void laws_step(struct sim *s);             /* after a step */
void laws_tick(struct sim *s);             /* after a tick, even a lost one */
void laws_taken(struct sim *s, int stage); /* before a batch takes events of its queue */
/** Whether the events in the queue need no thread yet. */
bool laws_may_linger(const struct sim *s, const struct stage *st);
void laws_break(struct sim *s, enum sim_law law, int stage, const char *fmt, ...) WEIR_PRINTF(4, 5);

static inline bool laws_asked(const struct sim *s, enum sim_law law)
{
	return s->conf->laws & (unsigned)law;
}

/** Record a check of the law in which the value was `used` times the limit. */
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

/* laws_admit.c */
void laws_sent(struct sim *s);
void laws_arrived(struct sim *s, int stage, const struct request *r); /* not from clients */
void laws_refused(struct sim *s, int entry, int by, const struct request *r, int reason);
void laws_left_queue(struct sim *s, int stage, const struct request *r);
void laws_slowed(struct sim *s, int stage); /* when its service times change */

/* laws_serial.c */
int laws_serial_init(struct sim *s);
void laws_serial_free(struct sim *s);
/** A client (`from` is NULL), or a handler of stage `from`, sends the request. */
void laws_serial_sent(struct sim *s, const struct stage *from, uint32_t slot);
/** Worker `id` has taken the request into its batch, or has done with it. */
void laws_serial_began(struct sim *s, struct stage *st, uint32_t id, uint32_t slot);
void laws_serial_ended(struct sim *s, struct stage *st, uint32_t slot);

/* laws_load.c */
void laws_load_tick(struct sim *s, int stage);

/* laws_pool.c */
void laws_pool_tick(struct sim *s, int stage);
void laws_resized(struct sim *s, int stage, int to, const char *rule);

/* laws_state.c */
void laws_state_init(struct sim *s);
void laws_state_tick(struct sim *s, int stage);
void laws_routes(struct sim *s);             /* right after routes were updated */
void laws_sampled(struct sim *s, int stage); /* before the tick overwrites the previous sample */
void laws_asked_again(struct sim *s, int stage, int class_id, const struct admission_view *view,
    const unsigned char *before, int admitted, int reason);

/* result.c */
struct sim_bin *result_bin(struct sim *s);

#endif
