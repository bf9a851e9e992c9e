/* SPDX-License-Identifier: MIT */
/*
 * Builds the configuration of the simulator from a spec and service times.
 *
 * All paths are followed from the sources along the links. Each path carries the probability that
 * an event takes it. A stage with its own pool or of a core group becomes a stage of the simulator,
 * and so does a group with a shared pool. An inline stage runs on the thread of the stage before it, so its time is added to that
 * stage. Links that close a cycle are not followed. The children of an event are a part of its path:
 * the event visits their stage once, for the time of all of them, and then goes on.
 *
 * The capacity follows from the utilisation law. If an event occupies a resource with n servers for
 * a time D in total (its visits times the service time), the resource can serve at most n / D
 * events per second.
 */
#include "simulate.h"

#include <stdlib.h>
#include <string.h>

#include <weir/knob.h>
#include <weir/stage.h>

#include "base/task.h"
#include "load/sentence.h"
#include "sched/cores.h"
#include "sim/workload.h"

/* Probability below which a path is ignored. */
#define RARE 1e-6

/* Maximum length of a path in links, more than in any realistic acyclic graph of
 * SIMULATE_STAGES_MAX stages. */
#define DEPTH_MAX 64

struct walk {
	const struct weir_spec *spec;
	const struct simulate_options *opt;
	struct simulate_plan *plan;
	struct weir_err *err;
	int cores;
	/* index of the simulator's stage that runs this stage, -1 if none has been created yet */
	int sim_of[SIMULATE_STAGES_MAX];
	double work_ns[SIM_STAGES_MAX]; /* per event sent to the server */
	double cpu_ns[SIM_STAGES_MAX];  /* the part of `work_ns` that uses a core */
	/* For each stage of the simulator, the work of its most expensive part (a stage of the
	 * spec). The distribution of that part is used for the whole stage. */
	double heaviest_ns[SIM_STAGES_MAX];
	double route_share[SIM_ROUTES_MAX];
	int source;            /* the source at which the path begins */
	struct sim_route path; /* the path so far */
};

/* ---- stages of the simulator ---- */

/* Return the group whose threads work for `st`, or NULL. A stage with a width counts as outside its
 * group, since it needs hardly any thread time. */
static const struct weir_group_spec *group_of(
    const struct weir_spec *spec, const struct weir_stage_spec *st)
{
	bool in_group = st->group && *st->group && !simulate_holds(st);

	for (int i = 0; in_group && i < spec->n_groups; i++)
		if (strcmp(spec->groups[i].name, st->group) == 0)
			return &spec->groups[i];
	return NULL;
}

static bool is_source(const struct weir_stage_spec *st)
{
	const struct weir_stage_ops *ops = weir_stage_type_find(st->use);

	return ops && ops->flags & WEIR_STAGE_SOURCE;
}

static bool is_single(const struct weir_stage_spec *st)
{
	const struct weir_stage_ops *ops = weir_stage_type_find(st->use);

	return st->mode == WEIR_MODE_EXCLUSIVE || (ops && ops->flags & WEIR_STAGE_SINGLE);
}

/* Add a stage for the threads of a source, which also run the inline stages after it. There is one
 * thread per core. */
static int add_front(struct walk *w, const struct weir_stage_spec *st)
{
	struct sim_config *c = &w->plan->config;

	if (c->n_stages == SIM_STAGES_MAX)
		return -1;
	snprintf(w->plan->label[c->n_stages], sizeof(w->plan->label[0]), "%s", st->name);
	c->stage[c->n_stages] = (struct sim_stage){.name = st->name,
	    .batch_max = 1,
	    .queue_limit = 1u << 30, /* no limit: events wait in the kernel and in connections */
	    .threads_min = w->cores,
	    .threads_max = w->cores,
	    .threads_start = w->cores,
	    .admission = &admission_none,
	    .params = sim_admission_defaults(),
	    .slo_ns = weir_spec_slo_ns(w->spec, st)};
	if (simulate_front(w->spec, st, w->cores, c, &c->stage[c->n_stages]) != 0)
		return -1;
	return c->n_stages++;
}

static bool is_core_group(const struct weir_group_spec *group)
{
	return group && next_policy_find(group->schedule);
}

static int add_pool(struct walk *w, const struct weir_stage_spec *st)
{
	struct sim_config *c = &w->plan->config;
	const struct weir_group_spec *group = group_of(w->spec, st);
	const struct weir_threads_spec *t = group ? &group->threads : &st->threads;

	if (c->n_stages == SIM_STAGES_MAX)
		return -1;
	int min, max;
	pool_bounds(t, w->cores, &min, &max);
	max = is_single(st) ? 1 : max;
	min = min < max ? min : max;
	int start = t->start < 0 ? min : (int)t->start;
	start = start < min ? min : start > max ? max : start;
	snprintf(w->plan->label[c->n_stages], sizeof(w->plan->label[0]), "%s",
	    group && !is_core_group(group) ? group->name : st->name);
	c->stage[c->n_stages] = (struct sim_stage){.name = group ? group->name : st->name,
	    .batch_max = (int)st->cohort.max,
	    .queue_limit = (uint32_t)st->queue.limit,
	    .linger_ns = simulate_lingers(w->spec, st) ? st->cohort.linger_ns : 0,
	    .threads_min = min,
	    .threads_max = max,
	    .threads_start = start,
	    .admission = admission_find(weir_spec_admission(st, true)),
	    .params = st->admission,
	    .resize = resize_find(t->policy),
	    .slo_ns = weir_spec_slo_ns(w->spec, st)};
	if (st->admission.mode > w->spec->overload_mode)
		c->stage[c->n_stages].params.mode = w->spec->overload_mode;
	if (is_core_group(group)) {
		int g = simulate_group(group, w->cores, c);
		if (g < 0)
			return -1;
		simulate_join(st, g, c, &c->stage[c->n_stages]);
	}
	simulate_queue(w->spec, st, &c->stage[c->n_stages]);
	return c->n_stages++;
}

/* Return the stage of the simulator that runs stage `i` of the spec; create it on first use.
 * Returns -1 if there are too many stages. */
static int pool_of(struct walk *w, int i)
{
	const struct weir_stage_spec *st = &w->spec->stages[i];

	for (int k = 0; k < w->spec->n_stages && w->sim_of[i] < 0; k++)
		if (k != i && w->sim_of[k] >= 0 && group_of(w->spec, st) &&
		    !is_core_group(group_of(w->spec, st)) &&
		    group_of(w->spec, st) == group_of(w->spec, &w->spec->stages[k]))
			w->sim_of[i] = w->sim_of[k];
	if (w->sim_of[i] < 0) {
		w->sim_of[i] = is_source(st) ? add_front(w, st) : add_pool(w, st);
		if (w->sim_of[i] >= 0)
			simulate_width(st, &w->plan->config.stage[w->sim_of[i]]);
	}
	return w->sim_of[i];
}

/* ---- the path of an event ---- */

static int too_large(struct walk *w)
{
	return sentence(w->err, WEIR_EINVAL,
	    "the graph has more than %d stages with threads or %d core groups, or is more than %d "
	    "links deep",
	    SIM_STAGES_MAX, SIM_GROUPS_MAX, DEPTH_MAX);
}

/* Add the time of `many` events at stage `i` of the spec to stage `at` of the simulator, whose threads
 * run it. */
static void add_work(struct walk *w, int i, int at, double many)
{
	const struct simulate_cost *cost = &w->plan->cost[i];
	double work_ns = many * (double)cost->dist.mean_ns;

	w->work_ns[at] += work_ns;
	w->cpu_ns[at] += work_ns * cost->cpu_share;
	if (work_ns > w->heaviest_ns[at]) {
		w->heaviest_ns[at] = work_ns;
		w->plan->config.stage[at].service = cost->dist;
	}
}

/* Whether the stage runs within the threads of its senders and has no queue. */
static bool is_within(const struct weir_stage_spec *st)
{
	const struct weir_stage_ops *ops = weir_stage_type_find(st->use);

	return st->inlined && !(ops && ops->flags & WEIR_STAGE_HOLDS);
}

/* Extend the path by stage `i` of the spec, which `many` children of an event on the path enter. */
static int enter(struct walk *w, int i, double share, double many)
{
	const struct weir_stage_spec *st = &w->spec->stages[i];
	const struct simulate_cost *cost = &w->plan->cost[i];
	struct sim_route *path = &w->path;
	int last = path->n ? path->stage[path->n - 1] : -1, at = last;

	if (is_source(st) || (is_within(st) && cost->dist.mean_ns == 0))
		return 0;
	if (!is_within(st) && cost->from == SIMULATE_UNKNOWN)
		return sentence(w->err, WEIR_EINVAL,
		    "the service time of stage '%s' is unknown: use --cost %s=5ms, or --admin of a "
		    "running server",
		    st->name, st->name);
	if (!is_within(st))
		at = pool_of(w, i);
	else if (last < 0)
		at = pool_of(w, w->source);
	if (at < 0 || path->n == SIM_STAGES_MAX)
		return too_large(w);
	if (at == last && w->plan->config.stage[at].width)
		return sentence(w->err, WEIR_EINVAL,
		    "stage '%s' is inline after '%s', which waits for something outside the "
		    "server; "
		    "the model has no thread for it: leave its time out with --cost %s=0s",
		    st->name, w->plan->label[at], st->name);
	if (at != last) {
		path->stage[path->n++] = at;
		w->plan->visits[at] += share;
	}
	add_work(w, i, at, share * many);
	return 0;
}

/* Add the current path, which ends here with probability `share`, as a route. */
static void add_route(struct walk *w, double share)
{
	struct sim_config *c = &w->plan->config;
	int i = 0, from = simulate_reads(w->spec, &w->spec->stages[w->source]) ? w->source : -1;

	if (share < RARE)
		return;
	if (w->path.n == 0) {
		w->plan->in_front += share;
		return;
	}
	while (i < c->n_routes &&
	       (w->plan->route_source[i] != from || c->route[i].n != w->path.n ||
		   memcmp(c->route[i].stage, w->path.stage, (size_t)w->path.n * sizeof(int)) != 0))
		i++;
	if (i == SIM_ROUTES_MAX) { /* too many routes: add the share of this one to the first one */
		w->route_share[0] += share;
		return;
	}
	if (i == c->n_routes) {
		c->route[c->n_routes] = w->path;
		w->plan->route_source[i] = from;
		snprintf(w->plan->route_name[i], sizeof(w->plan->route_name[i]), "route %d", i);
		c->route[c->n_routes++].name = w->plan->route_name[i];
	}
	w->route_share[i] += share;
}

/* Return the share of each link of `st`, not of children, that --share does not mention. */
static double even_share(struct walk *w, const struct weir_stage_spec *st)
{
	double left = 1;
	int open = 0;

	for (int i = 0; i < st->n_to; i++) {
		double share = simulate_share(w->opt, st, i);
		if (simulate_awaits(st, i))
			continue;
		if (share >= 0)
			left -= share;
		else if (!st->to[i].loop)
			open++;
	}
	return open && left > 0 ? left / open : 0;
}

/* What an event does when its children have ended: it goes on at link `from` of its stage. */
struct later {
	const struct weir_stage_spec *st;
	int from, depth;
	double many;
	const struct later *outer;
};

static int walk(
    struct walk *w, int i, double share, double many, int depth, const struct later *later);

/* The first link from `k` on by which children leave `st`, or -1. *n is their number for each event. */
static int next_children(struct walk *w, const struct weir_stage_spec *st, int k, double *n)
{
	for (; k < st->n_to; k++) {
		double given = simulate_share(w->opt, st, k);
		*n = given < 0 ? 1 : given;
		if (simulate_awaits(st, k) && !st->to[k].loop && *n > 0)
			return k;
	}
	return -1;
}

/* Follow the links of `l`. Children come first, as a part of the path of their parent. */
static int go_on(struct walk *w, double share, const struct later *l)
{
	const struct weir_stage_spec *st = l->st;
	double n, even = even_share(w, st), ends = share;
	struct later after = *l;
	int rc = 0, k = next_children(w, st, l->from, &n);

	if (k >= 0) {
		after.from = k + 1;
		int to = simulate_stage(w->spec, st->to[k].stage, strlen(st->to[k].stage));
		return to < 0 ? 0 : walk(w, to, share, l->many * n, l->depth + 1, &after);
	}
	for (k = 0; rc == 0 && k < st->n_to; k++) {
		double part = simulate_share(w->opt, st, k);
		int to = simulate_stage(w->spec, st->to[k].stage, strlen(st->to[k].stage));
		if (part < 0)
			part = st->to[k].loop ? 0 : even;
		if (to < 0 || simulate_awaits(st, k) || st->to[k].loop || share * part < RARE)
			continue;
		ends -= share * part;
		rc = walk(w, to, share * part, l->many, l->depth + 1, l->outer);
	}
	if (rc != 0 || ends < RARE)
		return rc;
	if (l->outer)
		return go_on(w, ends, l->outer);
	add_route(w, ends);
	return 0;
}

/* Follow all paths from stage `i` on. The tree of paths remains small: rare ones are ignored. */
static int walk(
    struct walk *w, int i, double share, double many, int depth, const struct later *later)
{
	const struct later l = {&w->spec->stages[i], 0, depth, many, later};
	struct sim_route before = w->path;
	int rc = depth > DEPTH_MAX ? too_large(w) : enter(w, i, share, many);

	if (rc == 0)
		rc = go_on(w, share, &l);
	w->path = before;
	return rc;
}

/* ---- load ---- */

static int take_load(struct walk *w)
{
	const char *text = w->opt->load;
	size_t n = strlen(text);
	char number[32];
	double value;

	snprintf(
	    number, sizeof(number), "%.*s", n && text[n - 1] == 'x' ? (int)n - 1 : (int)n, text);
	if (sentence_rate(number, &value, w->err) != 0)
		return WEIR_EINVAL;
	bool times = text[n - 1] == 'x';
	w->plan->offered_per_s = times ? value * w->plan->capacity_per_s : value;
	w->plan->load = w->plan->offered_per_s / w->plan->capacity_per_s;
	return 0;
}

/* Return the default duration. It covers two million events, but is at least 5 s and at most 60 s.
 * At high loads it is shorter, so that at most ten million events are simulated, but at least 1 s,
 * which is 100 ticks of the admission policies. A simulation then usually takes a few seconds of
 * real time at most. The numbers are guesses. */
static double auto_for_s(double per_s)
{
	double for_s = 2e6 / per_s, most_s = 1e7 / per_s;

	for_s = for_s < 5 ? 5 : for_s > 60 ? 60 : for_s;
	most_s = most_s < 1 ? 1 : most_s;
	return for_s < most_s ? for_s : most_s;
}

/* Set the duration and the remaining members. */
static void finish_config(struct walk *w)
{
	struct sim_config *c = &w->plan->config;
	double for_s = auto_for_s(w->plan->offered_per_s);

	c->measured_ns = w->opt->for_ns > 0 ? w->opt->for_ns : (int64_t)(for_s * 1e9);
	c->warmup_ns = c->measured_ns / 4;
	c->bin_ns = 100000000;
	c->seed = (uint64_t)w->opt->seed;
	c->cores = w->cores;
	c->laws = SIM_LAWS_SERVER;
	c->trace = stderr;
	w->plan->events = w->plan->offered_per_s * (double)(c->measured_ns + c->warmup_ns) / 1e9;
}

/* Check that --share and --class refer to existing links and classes. */
static int check_words(struct walk *w)
{
	for (int i = 0; i < w->opt->share.n; i++) {
		const char *word = w->opt->share.word[i], *dot = strchr(word, '.');
		int at = dot ? simulate_stage(w->spec, word, (size_t)(dot - word)) : -1;
		bool known = false;
		for (int k = 0; at >= 0 && k < w->spec->stages[at].n_to; k++)
			known |= simulate_share(w->opt, &w->spec->stages[at], k) >= 0;
		if (!known)
			return sentence(w->err, WEIR_EINVAL,
			    "--share %.80s is not STAGE.OUTLET=10%% with an outlet that is linked",
			    word);
	}
	for (int i = 0; i < w->opt->classes.n; i++) {
		bool known = false;
		for (int k = 0; k < w->spec->n_classes; k++) {
			size_t n = strlen(w->spec->classes[k].name);
			known |=
			    strncmp(w->opt->classes.word[i], w->spec->classes[k].name, n) == 0 &&
			    simulate_class_share(w->opt, w->spec->classes[k].name) >= 0;
		}
		if (!known)
			return sentence(w->err, WEIR_EINVAL,
			    "--class %.80s is not NAME=10%% with a class of the server",
			    w->opt->classes.word[i]);
	}
	return 0;
}

static int walk_sources(struct walk *w)
{
	int n = 0, rc = 0;

	for (int i = 0; i < w->spec->n_stages; i++)
		n += is_source(&w->spec->stages[i]);
	for (int i = 0; rc == 0 && i < w->spec->n_stages; i++) {
		w->source = i;
		if (is_source(&w->spec->stages[i]))
			rc = walk(w, i, 1.0 / n, 1, 0, NULL);
	}
	if (rc == 0 && w->plan->config.n_routes == 0)
		return sentence(w->err, WEIR_EINVAL,
		    "no stage after a source takes any time: use --cost STAGE=5ms");
	if (rc == 0 && w->plan->config.n_routes * (w->spec->n_classes + 1) > SIM_SOURCES_MAX)
		return sentence(w->err, WEIR_EINVAL,
		    "events take %d paths through the graph; with %d classes, at most %d can be "
		    "simulated",
		    w->plan->config.n_routes, w->spec->n_classes,
		    SIM_SOURCES_MAX / (w->spec->n_classes + 1));
	return rc;
}

int simulate_plan(const struct weir_spec *spec, const struct simulate_options *opt,
    struct simulate_plan *plan, struct weir_err *err)
{
	struct walk *w = calloc(1, sizeof(*w));

	if (!w)
		return sentence_nomem(err);
	*w = (struct walk){.spec = spec, .opt = opt, .plan = plan, .err = err};
	w->cores = task_cores();
	memset(w->sim_of, -1, sizeof(w->sim_of));
	int rc = check_words(w);
	if (rc == 0)
		rc = walk_sources(w);
	if (rc == 0)
		rc = simulate_groups(spec, &plan->config, err);
	if (rc == 0)
		rc = simulate_keys(spec, opt, &plan->config, err);
	if (rc == 0) {
		simulate_capacity(plan, w->work_ns, w->cpu_ns, w->cores);
		rc = take_load(w);
	}
	if (rc == 0)
		rc = simulate_load(spec, opt, w->route_share, plan, err);
	if (rc == 0)
		finish_config(w);
	free(w);
	return rc;
}
