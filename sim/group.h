/* SPDX-License-Identifier: MIT */
/*
 * Core groups in the simulator: framework/sched/next.h, unmodified, with a model of the cores and
 * their cells.
 *
 *   group.c       set-up, the turn of a core, what cells cost
 *   group_order.c the input of policies
 *   group_size.c  how many cores a group has
 *   group_deal.c  which events leave a core for an idle one, and which core wakes up
 *   group_parts.c partitioned stages
 *   group_poll.c  sources whose requests the cores read
 *   group_keys.c  serial keys: slots, inboxes, moves
 *   laws_group.c  the laws of core groups
 *
 * The model:
 *
 * - cores: each runs one batch at a time. A batch takes the services of its events and the costs of
 *   scheduling (struct sim_group_costs). Cores of a group are threads of the simulator, so they
 *   share the CPUs with all other threads.
 * - cells and queues: a stage has a list on each core, its cell, and a queue that all cores share.
 *   A batch has at most `batch_max` events and at most 1 ms of mean service. It takes from the cell
 *   and at most 1 / cores of the queue; the higher class first, then the older event.
 * - sending, as in sched/splice.c: what a core sends to a stage of its own group enters its cell,
 *   unless a policy has to decide on it, the cell is full, the stage is slow, or it is dealt.
 * - dealing, as in sched/splice.c and sched/give.c: while a core is idle, another one deals what it
 *   sends if it has two stages with events in their cells, or four events in all. Before a batch,
 *   it gives half of its fullest cell to the queue if the work behind the batch takes 5 us.
 * - bounds, as in event/queue_steer.c: each cell has limit / (2 cores), the queue the rest.
 * - when a queue has events, one idle core is woken.
 * - linger: the events of such a stage have no cells. Cores see them when a batch is due, and one of
 *   them is woken then.
 * - replicas: core k belongs to copy k modulo the copies. The queues have a part for each of them.
 *   Events from outside go to them in turn, and what a core sends or deals stays in its copy.
 * - replicated stages: what a core sends to one stays in its cell while that has room, and what
 *   yields goes back into the cell.
 * - sources in the group, as in io/loop_core.c: a request waits for the core of its connection, which
 *   reads all that wait for it if it has no event, or else after 1 ms or 256 events. A core that
 *   sleeps wakes up. To read costs nothing.
 * - serial keys, as in sched/serial.h: the queue of a serial stage has an inbox for each core, and a
 *   map gives the core of each slot. A core that ends a batch while another one idles gives it slots,
 *   which sched/serial_choose.h chooses. A core that dies gives away all its slots.
 * - partitioned stages: see group_parts.c. The events have no cells.
 * - gate `cutoff`: an event whose service takes longer than `gate_ns` yields after that time, goes
 *   to the end of the queue of its stage, and does the rest in a later batch.
 * - a range of cores: the resize policies of pools decide every 100 ms from the sums over the stages. The
 *   core with the highest number leaves after its batch: its cells go to the queues, and its slots to
 *   other cores. A core that joins needs a wake-up. Cells have the size for the most cores.
 * - a crash of a handler moves the cells of the core to the queues.
 */
#ifndef WEIR_SIM_GROUP_H
#define WEIR_SIM_GROUP_H

#include "event/slots.h"
#include "world.h"

/* What laws_group.c knows of a core, apart from what the group itself knows. */
struct core_laws {
	/* the visit that is not urgent: its place (-1: none), events so far, the most it may have,
	 * and when it began, without the time of urgent visits */
	int place;
	uint64_t events, most;
	int64_t began_ns, cut_ns; /* cut_ns: start of the urgent visit in progress, or 0 */
	/* S2: the last choice, and the stage of the last one that was not urgent (-1: none) */
	int64_t chose_ns;
	int last;
	uint64_t sees, starves; /* bit i: stage i was ready at the last choice; it is counted */
	/* by stage: its oldest event at the last choice; the last choice at which no event as old
	 * was in sight; bit k: stage k had a batch since the count began */
	int64_t oldest_ns[SIM_STAGES_MAX], unseen_ns[SIM_STAGES_MAX];
	uint64_t passed[SIM_STAGES_MAX];
};

struct group_core {
	struct next_core next;
	struct line cell[SIM_STAGES_MAX]; /* by place */
	uint64_t filled;                  /* bit i: cell i has events */
	uint32_t n;                       /* events in all cells */
	int place;                        /* of the last batch; -1: none */
	int leases;                       /* the partition of the present batch; -1: none */
	int recent[SIM_RECENT];           /* places of the last ones, the latest first; -1: none */
	bool idle, waking, absent;        /* absent: not in the group at present */
	int64_t idle_ns;                  /* since when it is idle */
	int64_t owed_ns;     /* for moves of slots, part of the cost of the next batch */
	int64_t deal_ns;     /* before this time, it does not look for slots to give */
	struct lane socket;  /* requests that wait to be read */
	int64_t polled_ns;   /* when it looked at them last */
	uint32_t since_poll; /* events that it has taken since */
	struct core_laws law;
};

struct group_laws {
	int64_t since_ns;   /* since when a core idles while another may deal; 0: none does */
	int64_t longest_ns; /* longest batch so far */
	bool woke;          /* a core was woken in this turn */
	/* S11: sums over the events that entered the loaded group */
	double predicted_ns, waited_ns;
	uint64_t n;
};

struct group {
	const struct sim_group *conf;
	int index, n_stages;
	int stage[SIM_STAGES_MAX]; /* by place */
	uint32_t first;            /* worker of core 0 */
	struct group_core *core;
	struct group_core *sender; /* whose batch has ended last, or which reads requests */
	bool reads;                /* it reads requests */
	int n_idle, n_waking;
	int cores;                     /* that the group should have: those with lower numbers */
	int present;                   /* that are not absent */
	int64_t cores_ns, cores_at_ns; /* time of present cores until cores_at_ns */
	_Alignas(16) unsigned char resize_state[RESIZE_STATE_MAX];
	uint64_t slow;   /* bit i: stage i takes too long for cells */
	uint64_t serial; /* bit i: stage i is serial */
	uint64_t
	    kept; /* bit i: stage i is serial or replicated; of it, no single events are dealt */
	uint8_t map[QUEUE_SLOTS], given_by[QUEUE_SLOTS]; /* by slot: its core, and the one before */
	struct key_use *use[SIM_FIELDS_MAX];             /* S4, by value; NULL if not checked */
	struct next_stage view[NEXT_STAGES_MAX];
	struct next_order order;
	int64_t rest_ns[SIM_STAGES_MAX]; /* by place */
	double load[SIM_STAGES_MAX];
	uint64_t offered[SIM_STAGES_MAX]; /* at the last order */
	struct group_laws law;
	/* totals since the warm-up; copied to the result at the end of the measured time */
	struct sim_group_result sum;
	struct {
		uint64_t visits, batches, batched;
		int64_t longest_ns;
	} at[SIM_STAGES_MAX]; /* by place */
};

/* group.c */
int groups_new(struct sim *s);
void groups_free(struct sim *s);
/** Give each group its stages and workers. Returns 0 and the number of workers, or WEIR_ENOMEM. */
int groups_bind(struct sim *s, uint32_t *workers);
void groups_mark(struct sim *s);   /* the warm-up is over */
void groups_finish(struct sim *s); /* the measured time is over */
/** Let the core of worker `id` take its next batch. */
void group_turn(struct sim *s, uint32_t id);
/** Put the events of the batch that yield back, and return the first of the others. */
uint32_t group_yield(struct sim *s, uint32_t id);
/** The thread of worker `id` died in its batch, which has ended. */
void group_died(struct sim *s, uint32_t id);

/* group_order.c */
/** Let the policy compute its order; `span_ns` is the time since the last call, or 0. */
void group_order(struct sim *s, struct group *g, int64_t span_ns);
/** Return the work that an event of `st` may wait for: `own_ns`, and in a group without an idle core
 *  that of the other stages. */
int64_t group_work_ns(const struct sim *s, const struct stage *st, int64_t own_ns);

/* group_size.c */
/** Let the resize policy of the group decide; `cpu` is the share of the machine in use. */
void group_resize(struct sim *s, struct group *g, double cpu);
/** The core is not to belong to the group any longer, and has no batch: clear its cells. */
void group_leave(struct sim *s, struct group *g, struct group_core *core);
/** Add the time of the present cores up to now. */
void group_count_cores(struct sim *s, struct group *g);

/* group_deal.c */
/** Return the core in whose cell `n` events go that stage `from` sends to `st`, or NULL for the
 *  queue. */
struct group_core *group_cell(struct sim *s, struct stage *st, int from, int n, uint32_t slot);
uint32_t group_room(const struct stage *st, const struct group_core *core);
void group_push(struct sim *s, struct stage *st, struct group_core *core, uint32_t slot);
uint32_t group_pop(struct sim *s, struct stage *st, struct group_core *core);
/** Before a batch: give an idle core something. Returns whether it did. */
bool group_deal(struct sim *s, struct group *g, struct group_core *core);
/** Whether the core has more than it can do soon. */
bool group_surplus(const struct sim *s, const struct group *g, const struct group_core *core);
/** Move at most `most` events of a cell to the queue of the stage. */
uint32_t group_give(
    struct sim *s, struct group *g, struct group_core *core, int place, uint32_t most);
/** Whether another core idles that may take what `core` deals. */
bool group_idles(const struct group *g, const struct group_core *core);
/** Wake an idle core if the queue of the stage has events. */
void group_poke(struct sim *s, int stage);
void group_wake(struct sim *s, struct group *g, int k);
/** Before a batch: wake an idle core for what waits in queues, unless one has just been woken. */
void group_share(struct sim *s, struct group *g, const struct group_core *core);

/* group_poll.c */
/** A client sends the request to a core of `g`. */
void group_arrive(struct sim *s, struct group *g, uint32_t slot);
/** Read the requests that wait for the core if it is time to, or `now`. Returns whether there were
 *  any. */
bool group_poll(struct sim *s, struct group *g, struct group_core *core, bool now);

/* group_parts.c */
int parts_open(struct stage *st);
void parts_push(struct sim *s, struct stage *st, uint32_t slot);
uint32_t parts_pop(struct sim *s, struct stage *st, int p);
/** The partition from which core `k` takes next; it may be empty. */
int parts_pick(const struct stage *st, int k);
/** Number of events that core `k` may take from it. */
uint32_t parts_share(const struct stage *st, int k);
/** A batch of partition `p` begins on the core; it has ended. */
void parts_lease(struct stage *st, struct group_core *core, int p);
void parts_release(struct sim *s, struct stage *st, struct group_core *core);
void parts_poke(struct sim *s, struct stage *st);

/* group_keys.c */
int keys_open(struct sim *s, struct stage *st);
/** The value of the field of a serial stage that the request has, and the core that owns its slot. */
uint32_t keys_value(const struct sim *s, const struct stage *st, const struct request *r);
int keys_owner(const struct sim *s, const struct stage *st, const struct request *r);
/** Whether an event that core `k` sends may enter its cell. */
bool keys_enters(const struct sim *s, const struct stage *st, int k, uint32_t slot);
/** Put the request into the inbox of its core. */
void keys_push(struct sim *s, struct stage *st, uint32_t slot);
/** The inbox from which core `k` takes. */
struct line *keys_inbox(const struct stage *st, int k);
uint32_t keys_pop(struct sim *s, struct stage *st, struct line *inbox);
/** Core `k` has ended a batch: give slots to an idle core, if that is worth it. */
void keys_deal(struct sim *s, struct group *g, int k);
/** The thread of core `k` died, or the core leaves: its slots go to other cores. */
void keys_died(struct sim *s, struct group *g, int k);
void keys_poke(struct sim *s, struct stage *st);
/** Work that the core must do before the request, which is on its way to the stage. */
int64_t keys_work_ns(const struct sim *s, const struct stage *st, uint32_t slot);

static inline int group_core_number(const struct group *g, const struct group_core *core)
{
	return (int)(core - g->core);
}

static inline int group_copies(const struct group *g)
{
	return g->conf->replicas > 1 ? g->conf->replicas : 1;
}

/** The part of the queue from which core `k` takes. */
static inline int group_part(const struct stage *st, int k)
{
	if (st->conf->partition)
		return parts_pick(st, k);
	return st->conf->serial ? k : k % group_copies(st->group);
}

static inline uint32_t group_queued(const struct stage *st)
{
	return st->length - st->celled;
}

/** Whether a core may take events from the queue of the stage. */
static inline bool group_queue_ready(const struct sim *s, const struct stage *st)
{
	bool busy =
	    st->conf->exclusive && st->busy > 0 && st->group->conf->mutant != SIM_TWO_AT_ONCE;

	bool lingers = linger_waits(s, st) && st->group->conf->mutant != SIM_HASTY;

	return group_queued(st) > 0 && !busy && !lingers;
}

/* laws_group.c */
/** A core has chosen a stage and taken `n` events of it, of which it saw `view`. */
void laws_group_chosen(struct sim *s, struct group *g, struct group_core *core,
    const struct next_view *view, const struct next_choice *c, uint32_t n);
/** Begin the checks of a core that has not chosen yet. */
void laws_group_new(struct group_core *core);
void laws_group_yielded(struct group_core *core, uint32_t ahead);
void laws_group_began(struct sim *s, struct group *g, struct group_core *core, int64_t batch_ns);
void laws_group_ordered(struct sim *s, struct group *g);
void laws_group_entered(struct sim *s, struct stage *st, uint32_t slot);
void laws_group_took(struct sim *s, struct stage *st, uint32_t slot);
void laws_group_check(struct sim *s, const struct stage *st);
void laws_group_step(struct sim *s);
void laws_group_end(struct sim *s, struct group *g);

#endif
