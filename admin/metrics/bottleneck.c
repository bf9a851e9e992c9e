/* SPDX-License-Identifier: MIT */
/* Finds the stage nearest to its ceiling; see bottleneck.h. */
#include "bottleneck.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "admin/text/number_format.h"

#define NS_PER_S 1000000000LL

/* Return the share (0..1) of its width that a stage uses; 0 for a stage without a width. */
static double width_share(const struct weir_stage_view *s)
{
	return s->width == 0 ? 0 : s->in_work < s->width ? (double)s->in_work / s->width : 1;
}

static bool has_pool(const struct weir_stage_view *s)
{
	return strcmp(s->placement, "pool") == 0 || strcmp(s->placement, "group") == 0;
}

/* Return the share (0..1) of thread time that the pool of stage `i` spends in handlers, for all
 * stages of the pool together. 0 if the stage has no pool. */
static double pool_share(const struct weir_graph_view *v, const struct sample *sample, int i)
{
	const char *pool = v->stages[i].group;
	double used = 0;

	if (!has_pool(&v->stages[i]))
		return 0;
	if (strcmp(v->stages[i].placement, "group") != 0)
		return sample[i].v[SAMPLE_BUSY];
	for (int k = 0; k < v->n_stages; k++)
		if (sample[k].known && strcmp(v->stages[k].group, pool) == 0)
			used += sample[k].v[SAMPLE_BUSY];
	return used < 1 ? used : 1;
}

/* Return the share (0..1) of its I/O threads that are full; 0 for a source that has no limit of
 * clients, and for other stages. */
static double clients_share(const struct weir_clients *c)
{
	return c->loops == 0 ? 0 : (double)c->full / c->loops;
}

/* Full threads limit the server only if clients wait for them. The limit gives way to that of a
 * pool, since the threads are also full while their events wait for a pool. */
static double clients_rank(const struct weir_clients *c, double share)
{
	const double most =
	    c->waiting > 0 ? BOTTLENECK_SHARE : BOTTLENECK_RELEASE - BOTTLENECK_LEAD;

	return fmin(share, most);
}

/* Whether more threads would do more, if all are used. */
static bool is_wanted(const struct weir_stage_view *s)
{
	return s->clients.per_loop == 0 || s->clients.waiting > 0;
}

static bool can_limit(const struct weir_stage_view *s)
{
	return has_pool(s) || s->width > 0 || s->clients.per_loop > 0;
}

/* Return the stage whose pool or width is busiest, or the source with the largest share of full
 * threads. If several stages share this pool, return the
 * one that uses most of it. A stage that already limits the server stays selected unless another
 * one is busier by BOTTLENECK_LEAD. Returns -1 if no stage has a pool, a width or such threads. */
static int busiest(const struct bottleneck *b, const struct weir_graph_view *v,
    const struct sample *sample, double *used)
{
	double most = -1, own = 0;
	int best = -1;

	for (int i = 0; i < v->n_stages; i++) {
		const struct weir_clients *clients = &v->stages[i].clients;
		if (!sample[i].known || !can_limit(&v->stages[i]))
			continue;
		bool holds = b->limits && is_wanted(&v->stages[i]) &&
			     strcmp(b->stage, v->stages[i].name) == 0;
		double share = clients->per_loop > 0
				   ? clients_share(clients)
				   : fmax(pool_share(v, sample, i), width_share(&v->stages[i]));
		double rank = (clients->per_loop > 0 ? clients_rank(clients, share) : share) +
			      (holds && share >= BOTTLENECK_RELEASE ? BOTTLENECK_LEAD : 0);
		double part = sample[i].v[SAMPLE_BUSY];
		if (rank < most || (rank <= most && part <= own))
			continue;
		best = i;
		most = rank;
		own = part;
		*used = share;
	}
	return best;
}

/* Return the core group that stage `s` is in, or NULL. */
static const struct weir_group_view *core_group_of(
    const struct weir_graph_view *v, const struct weir_stage_view *s)
{
	for (int i = 0; strcmp(s->placement, "group") == 0 && i < v->n_groups; i++)
		if (strcmp(v->groups[i].name, s->group) == 0)
			return &v->groups[i];
	return NULL;
}

/* Find the core that has slept for longest. */
static void look_asleep(struct bottleneck *b, const struct weir_graph_view *v)
{
	b->asleep.slept_ns = 0;
	for (int i = 0; i < v->n_groups; i++)
		for (int k = 0; k < v->groups[i].n_cores; k++) {
			const struct weir_core_view *core = &v->groups[i].core[k];
			if (!core->blocked_in || core->blocked_ns <= b->asleep.slept_ns)
				continue;
			b->asleep.slept_ns = core->blocked_ns;
			b->asleep.core = k;
			b->asleep.spare = core->spare_blocked_in != NULL;
			snprintf(b->asleep.group, sizeof(b->asleep.group), "%s", v->groups[i].name);
			snprintf(b->asleep.stage, sizeof(b->asleep.stage), "%s", core->blocked_in);
		}
}

static void take_clients(struct bottleneck *b, const struct weir_clients *c)
{
	b->clients = *c;
	b->threads = b->max = c->loops;
	b->width = (int)fmin((double)c->per_loop * c->loops, INT_MAX);
}

void bottleneck_feed(
    struct bottleneck *b, const struct weir_graph_view *v, const struct sample *sample)
{
	const struct bottleneck was = *b;
	double used = 0;
	int i = busiest(b, v, sample, &used);

	*b = (struct bottleneck){.now_ns = v->wall_ns};
	look_asleep(b, v);
	if (i < 0)
		return;
	const struct weir_stage_view *s = &v->stages[i];
	const struct weir_group_view *group = core_group_of(v, s);
	const double *now = sample[i].v;
	bool holds = was.limits && strcmp(was.stage, s->name) == 0;
	b->known = true;
	b->limits = used >= (holds ? BOTTLENECK_RELEASE : BOTTLENECK_SHARE) && is_wanted(s);
	b->since_ns = !b->limits                           ? 0
		      : holds && was.since_ns < v->wall_ns ? was.since_ns
							   : v->wall_ns;
	snprintf(b->stage, sizeof(b->stage), "%s", s->name);
	snprintf(b->pool, sizeof(b->pool), "%s", s->group);
	snprintf(b->schedule, sizeof(b->schedule), "%s", group ? group->schedule : "");
	b->threads = s->threads_now;
	b->cores = group ? group->cores : 0;
	b->max = s->threads_max;
	b->used = used;
	b->width = s->width > 0 && used <= width_share(s) ? s->width : 0;
	if (s->clients.per_loop > 0)
		take_clients(b, &s->clients);
	b->served_per_s = now[SAMPLE_DONE] + now[SAMPLE_FAILED];
	if (b->served_per_s > 0 && used > 0) {
		b->ceiling_per_s = b->served_per_s / used;
		b->service_s =
		    (b->width > 0 ? used * b->width : now[SAMPLE_BUSY] * s->threads_now) /
		    b->served_per_s;
	}
}

/* Return how long the stage has been the limit, in whole seconds; 0 if it is not the limit. */
static int64_t lasts_s(const struct bottleneck *b)
{
	return b->limits ? (b->now_ns - b->since_ns) / NS_PER_S : 0;
}

bool bottleneck_chronic(const struct bottleneck *b)
{
	return b->limits && lasts_s(b) >= BOTTLENECK_CHRONIC_S;
}

/* Write what the share refers to, and its size if the stage limits the server: "its 2 threads are",
 * "the 2 cores of its group 'core' (wavefront) are", "its width of 8 is"; with spare threads, "the 3
 * threads of its group 'core' (wavefront), which has 2 cores, are". */
static void subject(const struct bottleneck *b, char *buf, size_t size)
{
	bool one = b->limits && b->threads == 1;
	char n[24] = "";

	if (b->limits)
		snprintf(n, sizeof(n), "%s%d", b->width > 0 ? " of " : " ",
		    b->width > 0 ? b->width : b->threads);
	if (b->width > 0)
		snprintf(buf, size, "its width%s is", n);
	else if (b->schedule[0] && b->threads > b->cores)
		snprintf(buf, size,
		    "the %d threads of its group '%s' (%s), which has %d core%s, are", b->threads,
		    b->pool, b->schedule, b->cores, b->cores == 1 ? "" : "s");
	else if (b->schedule[0])
		snprintf(buf, size, "the%s core%s of its group '%s' (%s) %s", n, one ? "" : "s",
		    b->pool, b->schedule, one ? "is" : "are");
	else
		snprintf(buf, size, "its%s thread%s", n, one ? " is" : "s are");
}

/* Nothing limits the server, but a core is blocked. */
static void asleep_sentence(const struct bottleneck *b, char *buf, size_t size)
{
	double slept_s = (double)b->asleep.slept_ns / 1e9;

	snprintf(buf, size,
	    "Core %d of group '%s' is blocked: it has slept for %s in a handler of stage '%s'%s.",
	    b->asleep.core, b->asleep.group, seconds_text(NUMBER_ROOM, slept_s), b->asleep.stage,
	    b->asleep.spare ? ", and its spare thread sleeps, too" : "");
}

/* Write "all of its 4 I/O threads have a client", "3 of its 4 I/O threads have 8 clients each". */
static void full_threads(const struct weir_clients *c, char *buf, size_t size)
{
	char clients[48];

	if (c->per_loop == 1)
		snprintf(clients, sizeof(clients), "%s client", c->full > 0 ? "a" : "no");
	else
		snprintf(clients, sizeof(clients), "%lld clients%s", (long long)c->per_loop,
		    c->full > 1 ? " each" : "");
	if (c->loops == 1)
		snprintf(buf, size, "its I/O thread has %s%s",
		    c->full == 0 && c->per_loop > 1 ? "fewer than " : "", clients);
	else if (c->full == c->loops)
		snprintf(buf, size, "all of its %d I/O threads have %s", c->loops, clients);
	else
		snprintf(buf, size, "%d of its %d I/O threads %s %s", c->full, c->loops,
		    c->full == 1 ? "has" : "have",
		    c->full == 0 && c->per_loop == 1 ? "a client" : clients);
}

/* The sentence about a source with a limit of clients per thread. */
static void clients_sentence(const struct bottleneck *b, char *buf, size_t size)
{
	const struct weir_clients *c = &b->clients;
	char full[96], time[48] = "", idle[96] = "";

	full_threads(c, full, sizeof(full));
	if (!b->limits) {
		snprintf(buf, size, "Nothing limits the server: %s is the busiest stage, %s.",
		    b->stage, full);
		return;
	}
	if (lasts_s(b) > 0)
		snprintf(time, sizeof(time), ", for %lld s", (long long)lasts_s(b));
	if (c->idle > 0)
		snprintf(idle, sizeof(idle),
		    ", or lower 'idle_timeout', since %d of these clients %s idle", c->idle,
		    c->idle == 1 ? "is" : "are");
	snprintf(buf, size,
	    "%s limits the server: %s, and %lld more wait%s%s; raise its 'threads'%s.", b->stage,
	    full, (long long)c->waiting, c->waiting == 1 ? "s" : "", time, idle);
}

void bottleneck_sentence(const struct bottleneck *b, char *buf, size_t size)
{
	char rates[64] = "", time[48] = "", what[4 * WEIR_NAME_MAX];

	if (!b->known) {
		snprintf(buf, size, "No stage with a pool or a width has been measured.");
		return;
	}
	if (!b->limits && b->asleep.slept_ns > 0) {
		asleep_sentence(b, buf, size);
		return;
	}
	if (b->clients.per_loop > 0) {
		clients_sentence(b, buf, size);
		return;
	}
	subject(b, what, sizeof(what));
	if (!b->limits) {
		snprintf(buf, size,
		    "Nothing limits the server: %s is the busiest stage, %s %.0f %% used.",
		    b->stage, what, 100 * b->used);
		return;
	}
	if (b->ceiling_per_s > 0)
		snprintf(rates, sizeof(rates), ", %s/s of %s/s",
		    number_text(NUMBER_ROOM, b->served_per_s, 4),
		    number_text(NUMBER_ROOM, b->ceiling_per_s, 4));
	if (lasts_s(b) > 0)
		snprintf(time, sizeof(time), ", for %lld s", (long long)lasts_s(b));
	const char *more = b->width > 0 || b->threads >= b->max ? ""
			   : b->schedule[0]                     ? "; the group may get more cores"
								: "; the pool may still grow";
	snprintf(buf, size, "%s limits the server: %s %.0f %% used%s%s%s.", b->stage, what,
	    100 * b->used, rates, time, more);
}

/* Write the formula of the ceiling, with its numbers, to buf[size] for display. */
static void formula(const struct bottleneck *b, char *buf, size_t size)
{
	const char *served = number_text(NUMBER_ROOM, b->served_per_s, 4);
	const char *ceiling = number_text(NUMBER_ROOM, b->ceiling_per_s, 4);
	const char *ms = number_text(NUMBER_ROOM, b->service_s * 1e3, 3);

	*buf = '\0';
	if (b->ceiling_per_s <= 0)
		return;
	if (b->width > 0) {
		snprintf(buf, size, "%d at once / %s ms = %s/s at most", b->width, ms, ceiling);
		return;
	}
	bool alone = fabs(b->threads / b->service_s - b->ceiling_per_s) <= 0.01 * b->ceiling_per_s;
	if (alone)
		snprintf(buf, size,
		    "%d thread%s / %s ms = %s/s at most; %s/s x %s ms keep %.3g of them busy",
		    b->threads, b->threads == 1 ? "" : "s", ms, ceiling, served, ms,
		    b->used * b->threads);
	else
		snprintf(buf, size,
		    "%s/s / %.0f %% of the %d threads of '%s', shared with other stages, = %s/s at "
		    "most",
		    served, 100 * b->used, b->threads, b->pool, ceiling);
}

static json_t *or_null(double v)
{
	return v > 0 ? json_real(number_round(v)) : json_null();
}

json_t *bottleneck_json(const struct bottleneck *b)
{
	char text[400], sum[256];

	if (!b || !b->known)
		return json_null();
	bottleneck_sentence(b, text, sizeof(text));
	formula(b, sum, sizeof(sum));
	return json_pack("{s:s, s:s?, s:b, s:b, s:o, s:f, s:i, s:i, s:f, s:o, s:o, s:s, s:s, s:s}",
	    "stage", b->stage, "group", b->schedule[0] ? b->pool : NULL, "limits", b->limits,
	    "chronic", bottleneck_chronic(b), "since",
	    b->limits ? json_real(rint((double)b->since_ns / 1e6) / 1e3) : json_null(), "used",
	    number_round(b->used), "threads", b->threads, "max", b->max, "served",
	    number_round(b->served_per_s), "ceiling", or_null(b->ceiling_per_s), "service",
	    or_null(b->service_s), "formula", sum, "law",
	    *sum ? "utilisation law, X = U n / S" : "", "text", text);
}

json_t *bottleneck_json_now(const struct bottleneck *b, const struct weir_graph_view *v)
{
	if (!b)
		return json_null();
	struct bottleneck now = *b;
	look_asleep(&now, v);
	return bottleneck_json(&now);
}
