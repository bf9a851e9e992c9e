/* SPDX-License-Identifier: MIT */
/* Prints the output of `weir simulate`; see simulate.h. */
#include "simulate.h"

#include <string.h>

#include <jansson.h>

#include "bench.h"

/* The figures of one stage, for the table and for JSON. */
struct figures {
	double each_ns, busy_share, threads, done_per_s;
	int64_t wait_p50_ns, wait_p99_ns;
};

static struct figures figures_of(
    const struct simulate_plan *plan, const struct sim_result *r, int i)
{
	const struct sim_stage_result *s = &r->stage[i];
	double measured_ns = (double)plan->config.measured_ns;
	double threads_ns = plan->config.stage[i].exclusive ? measured_ns : (double)s->threads_ns;

	return (struct figures){.each_ns = (double)plan->config.stage[i].service.mean_ns,
	    .busy_share = threads_ns > 0 ? (double)s->busy_ns / threads_ns : 0,
	    .threads = threads_ns / measured_ns,
	    .done_per_s = (double)s->completed * 1e9 / measured_ns,
	    .wait_p50_ns = hdr_quantile_ns(&s->wait, 0.5),
	    .wait_p99_ns = hdr_quantile_ns(&s->wait, 0.99)};
}

/* The most threads that the stage may have at once. */
static int threads_max(const struct sim_stage *st)
{
	return st->exclusive ? 1 : st->threads_max;
}

static double per_s(const struct simulate_plan *plan, uint64_t n)
{
	return (double)n * 1e9 / (double)plan->config.measured_ns;
}

static void print_head(const struct weir_spec *spec, const struct simulate_plan *plan, FILE *out)
{
	const struct sim_config *c = &plan->config;

	fprintf(out, "%s on %d core%s, virtual time, seed %llu\n", spec->name, c->cores,
	    c->cores == 1 ? "" : "s", (unsigned long long)c->seed);
	char bottleneck[80];

	simulate_bottleneck(plan, bottleneck, sizeof(bottleneck));
	int b = plan->bottleneck;
	fprintf(out, "capacity %.0f/s: the bottleneck is %s", plan->capacity_per_s, bottleneck);
	if (b >= 0 && plan->keyed[b])
		fprintf(out, ", whose %s has fewer values than there are cores",
		    c->stage[b].serial ? "serial key" : "key");
	fputc('\n', out);
	fprintf(out, "load     %.0f/s, %.3gx the capacity\n\n", plan->offered_per_s, plan->load);
}

/* Print a line such as "db: 7.9 of 8 under way, 20 ms each, 300/s; widening stopped helping at 6":
 * the mean number of events in progress over the run, the width at the end, and what the width
 * policy has found out. */
static void print_width(
    const struct simulate_plan *plan, const struct sim_result *r, int i, FILE *out)
{
	const struct sim_stage_result *s = &r->stage[i];

	fprintf(out, "%s: %.1f of %d under way%s%s\n", plan->label[i],
	    (double)s->busy_ns / (double)plan->config.measured_ns, s->threads_end,
	    s->width_why[0] ? ", " : "", s->width_why);
}

/* The figures of a core group. */
struct group_figures {
	double cores; /* mean number */
	double busy, overhead, dealt, queued, per_visit, urgent, starved;
	double moved; /* slots of serial keys a second; negative without serial stages */
	int64_t longest_ns;
};

static struct group_figures group_of(
    const struct simulate_plan *plan, const struct sim_result *r, int g)
{
	const struct sim_config *c = &plan->config;
	const struct sim_group_result *k = &r->group[g];
	struct group_figures f = {0};
	double busy_ns = 0, events = (double)(k->from_cell + k->from_queue), batches = 0,
	       visits = 0;
	bool serial = false;

	for (int i = 0; i < c->group[g].cores; i++)
		busy_ns += (double)k->busy_ns[i];
	for (int i = 0; i < c->n_stages; i++) {
		if (c->stage[i].group != g + 1)
			continue;
		visits += (double)r->stage[i].visits;
		serial |= c->stage[i].serial > 0;
		if (r->stage[i].longest_ns > f.longest_ns)
			f.longest_ns = r->stage[i].longest_ns;
	}
	for (int i = NEXT_URGENT; i <= NEXT_POLICY; i++)
		batches += (double)k->by_why[i];
	f.cores = (double)k->cores_ns / (double)c->measured_ns;
	f.busy = k->cores_ns > 0 ? busy_ns / (double)k->cores_ns : 0;
	f.overhead = busy_ns > 0 ? (double)k->overhead_ns / busy_ns : 0;
	f.dealt = events > 0 ? (double)k->dealt / events : 0;
	f.queued = events > 0 ? (double)k->from_queue / events : 0;
	f.per_visit = events / (visits > 0 ? visits : 1); /* the only visit may not have ended */
	f.urgent = batches > 0 ? (double)k->by_why[NEXT_URGENT] / batches : 0;
	f.starved = batches > 0 ? (double)k->by_why[NEXT_STARVED] / batches : 0;
	f.moved = serial ? per_s(plan, k->moved) : -1;
	return f;
}

static void print_group(
    const struct simulate_plan *plan, const struct sim_result *r, int g, FILE *out)
{
	const struct sim_group *conf = &plan->config.group[g];
	struct group_figures f = group_of(plan, r, g);
	char longest[32], range[64] = "";

	bench_print_duration(longest, sizeof(longest), f.longest_ns);
	if (conf->cores_min > 0)
		snprintf(range, sizeof(range), " (%.1f in the mean, %d at the end, at least %d)",
		    f.cores, r->group[g].cores_end, conf->cores_min);
	fprintf(out,
	    "group %s: %s, %d core%s%s %.0f%% busy, %.1f%% of it for scheduling; %.1f events a "
	    "visit;\n  %.0f%% of events from queues, %.1f%% dealt; batches: %.1f%% urgent, %.1f%% "
	    "starved; longest wait %s\n",
	    conf->name, conf->policy->name, conf->cores, conf->cores == 1 ? "" : "s", range,
	    f.busy * 100, f.overhead * 100, f.per_visit, f.queued * 100, f.dealt * 100,
	    f.urgent * 100, f.starved * 100, longest);
	if (f.moved >= 0)
		fprintf(out, "  %.0f slots of serial keys a second given to idle cores\n", f.moved);
}

static void print_stages(const struct simulate_plan *plan, const struct sim_result *r, FILE *out)
{
	const struct sim_config *c = &plan->config;

	fprintf(out, "%-14s %6s %9s %9s %8s %8s %6s %9s %9s\n", "STAGE", "VISITS", "TIME S",
	    "THREADS", "CEILING", "DONE/S", "BUSY", "WAIT P50", "WAIT P99");
	for (int i = 0; i < c->n_stages; i++) {
		struct figures f = figures_of(plan, r, i);
		char time[32], threads[32], p50[32], p99[32];
		bench_print_duration(time, sizeof(time), (int64_t)f.each_ns);
		bench_print_duration(p50, sizeof(p50), f.wait_p50_ns);
		bench_print_duration(p99, sizeof(p99), f.wait_p99_ns);
		snprintf(threads, sizeof(threads), "%.0f/%d", f.threads, threads_max(&c->stage[i]));
		fprintf(out, "%-14.14s %6.2f %9s %9s %8.0f %8.0f %5.0f%% %9s %9s\n", plan->label[i],
		    plan->visits[i], time, threads, plan->ceiling_per_s[i], f.done_per_s,
		    f.busy_share * 100, p50, p99);
	}
	for (int i = 0; i < c->n_stages; i++)
		if (c->stage[i].width)
			print_width(plan, r, i, out);
	for (int g = 0; g < c->n_groups; g++)
		print_group(plan, r, g, out);
	if (plan->in_front > 0)
		fprintf(out,
		    "%.3g%% of the events end in the threads of the source, before these stages\n",
		    plan->in_front * 100);
	double seconds = (double)(c->warmup_ns + c->measured_ns) * 1e-9;
	if (plan->cores_ceiling_per_s > 0)
		fprintf(out, "%-14s %6s %9s %9d %8.0f %8s %5.0f%%\n", "(cores)", "", "", c->cores,
		    plan->cores_ceiling_per_s, "",
		    (double)r->cpu_ns * 1e-9 / (seconds * c->cores) * 100);
}

static void print_class(
    const struct simulate_plan *plan, const char *name, const struct sim_class_result *k, FILE *out)
{
	char p50[32], p99[32];
	uint64_t shed = sim_shed(k);

	bench_print_duration(p50, sizeof(p50), hdr_quantile_ns(&k->response, 0.5));
	bench_print_duration(p99, sizeof(p99), hdr_quantile_ns(&k->response, 0.99));
	fprintf(out, "%-14.14s %9.0f %9.0f %6.1f%% %6.1f%% %9s %9s  ", name,
	    per_s(plan, k->offered), per_s(plan, k->in_time),
	    k->offered ? 100.0 * (double)shed / (double)k->offered : 0,
	    k->offered ? 100.0 * (double)k->late / (double)k->offered : 0, p50, p99);
	for (int i = 0, first = 1; i < WEIR_SHED_REASONS; i++) {
		if (k->shed[i] == 0)
			continue;
		fprintf(out, "%s%s %.0f%%", first ? "" : ", ", weir_error_word(weir_shed_code(i)),
		    100.0 * (double)k->shed[i] / (double)shed);
		first = 0;
	}
	fputc('\n', out);
}

static void print_left(const struct simulate_left *left, void *out)
{
	fprintf(out, "Left out: %s of %s %s: %s.\n", left->key, left->group ? "group" : "stage",
	    left->group ? left->group : left->stage, left->why);
}

/* Print ": work is 80% busy = 400/s x 2 ms / 1 threads" for the bottleneck `b`. S is the mean that was
 * simulated, with scheduling, so that the product is the share of time in which the n were busy. */
static void print_utilisation(
    const struct simulate_plan *plan, const struct sim_result *r, int b, FILE *out)
{
	const struct sim_stage *st = &plan->config.stage[b];
	const struct sim_stage_result *k = &r->stage[b];
	struct figures f = figures_of(plan, r, b);
	double n = st->servers > 0 ? st->servers : f.threads;
	double busy_ns = (double)(st->servers > 0 ? k->served_ns : k->busy_ns);
	double each_ns = k->completed > 0 ? busy_ns / (double)k->completed : 0;

	fprintf(out, ": %s is %.0f%% busy = %.0f/s x %.3g ms / %.0f %s", plan->label[b],
	    100 * f.done_per_s * each_ns * 1e-9 / n, f.done_per_s, each_ns * 1e-6, n,
	    st->width ? "at once" : "threads");
}

/* Print the laws that the figures are derived from, with the figures filled in. */
static void print_laws(const struct simulate_plan *plan, const struct sim_result *r, FILE *out)
{
	const struct sim_config *c = &plan->config;
	int b = plan->bottleneck;

	fputs("\nceiling = n / (V S), of events sent to the server: n threads, V visits, S seconds "
	      "per visit.\n",
	    out);
	if (b >= 0 && c->stage[b].width)
		fprintf(out, "n of %s is %s.\n", plan->label[b],
		    c->stage[b].servers > 0 ? "the number of events that the other side, for which "
					      "the stage waits, works on at once"
					    : "the largest width of the stage");
	fputs("utilisation law U = X S / n", out);
	if (b >= 0)
		print_utilisation(plan, r, b, out);
	struct hdr all = {0};
	for (int k = 0; k < c->n_classes; k++)
		hdr_merge(&all, &r->class[k].response);
	double x = per_s(plan, all.total), response_s = hdr_mean_ns(&all) * 1e-9;
	fprintf(out, ".\nLittle's law N = X R: %.3g requests inside = %.0f/s x %.3g ms.\n",
	    x * response_s, x, response_s * 1e3);
	fprintf(out, "Left out: the cost of I/O threads, refusals and thread switches%s.\n",
	    c->n_groups ? "; that of scheduling in core groups is included" : "");
}

static const char *class_name(const struct weir_spec *spec, int i)
{
	return spec->n_classes ? spec->classes[i].name : "default";
}

void simulate_print(const struct weir_spec *spec, const struct simulate_plan *plan,
    const struct sim_result *r, FILE *out)
{
	print_head(spec, plan, out);
	print_stages(plan, r, out);
	fprintf(out, "\n%-14s %9s %9s %7s %7s %9s %9s  %s\n", "CLASS", "OFFERED/S", "IN TIME/S",
	    "SHED", "LATE", "P50", "P99", "SHED BECAUSE");
	for (int k = 0; k < plan->config.n_classes; k++)
		print_class(plan, class_name(spec, k), &r->class[k], out);
	print_laws(plan, r, out);
	simulate_left_out(spec, print_left, out);
}

/* ---- JSON ---- */

static json_t *width_json(const struct simulate_plan *plan, const struct sim_result *r, int i)
{
	const struct sim_stage *st = &plan->config.stage[i];
	const struct sim_stage_result *s = &r->stage[i];

	if (!st->width)
		return json_null();
	return json_pack("{s:i, s:i, s:i, s:f, s:i, s:s}", "now", s->threads_end, "min",
	    st->threads_min, "max", st->threads_max, "in_work",
	    (double)s->busy_ns / (double)plan->config.measured_ns, "servers", st->servers, "why",
	    s->width_why);
}

static json_t *stage_json(const struct simulate_plan *plan, const struct sim_result *r, int i)
{
	struct figures f = figures_of(plan, r, i);
	const struct sim_stage *st = &plan->config.stage[i];

	return json_pack(
	    "{s:s, s:s?, s:f, s:f, s:f, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:i, s:s, s:o}", "name",
	    plan->label[i], "group", st->group ? plan->config.group[st->group - 1].name : NULL,
	    "visits", plan->visits[i], "service_seconds", f.each_ns * 1e-9, "threads", f.threads,
	    "threads_max", threads_max(st), "ceiling_per_second", plan->ceiling_per_s[i],
	    "done_per_second", f.done_per_s, "busy", f.busy_share, "wait_p50_seconds",
	    (double)f.wait_p50_ns * 1e-9, "wait_p99_seconds", (double)f.wait_p99_ns * 1e-9,
	    "cpu_share", st->cpu_share, "thread_reversals", r->stage[i].reversals, "admission",
	    st->admission->name, "width", width_json(plan, r, i));
}

static json_t *group_json(const struct simulate_plan *plan, const struct sim_result *r, int g)
{
	const struct sim_group *conf = &plan->config.group[g];
	struct group_figures f = group_of(plan, r, g);

	return json_pack(
	    "{s:s, s:s, s:i, s:i, s:f, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "name",
	    conf->name, "schedule", conf->policy->name, "cores", conf->cores, "cores_min",
	    sim_fewest_cores(conf), "cores_mean", f.cores, "cores_end", r->group[g].cores_end,
	    "busy", f.busy, "scheduling", f.overhead, "events_per_visit", f.per_visit, "from_queue",
	    f.queued, "dealt", f.dealt, "urgent", f.urgent, "starved", f.starved,
	    "longest_wait_seconds", (double)f.longest_ns * 1e-9, "slots_moved_per_second",
	    f.moved > 0 ? f.moved : 0);
}

static json_t *class_json(
    const struct simulate_plan *plan, const char *name, const struct sim_class_result *k)
{
	json_t *shed = json_object();

	for (int i = 0; i < WEIR_SHED_REASONS; i++)
		if (k->shed[i])
			json_object_set_new(shed, weir_error_word(weir_shed_code(i)),
			    json_real(per_s(plan, k->shed[i])));
	return json_pack("{s:s, s:f, s:f, s:f, s:o, s:f, s:f}", "name", name, "offered_per_second",
	    per_s(plan, k->offered), "in_time_per_second", per_s(plan, k->in_time),
	    "late_per_second", per_s(plan, k->late), "shed_per_second", shed,
	    "response_p50_seconds", (double)hdr_quantile_ns(&k->response, 0.5) * 1e-9,
	    "response_p99_seconds", (double)hdr_quantile_ns(&k->response, 0.99) * 1e-9);
}

static void left_json(const struct simulate_left *left, void *list)
{
	json_array_append_new(list, json_pack("{s:s?, s:s?, s:s, s:s}", "group", left->group,
					"stage", left->stage, "key", left->key, "why", left->why));
}

int simulate_print_json(const struct weir_spec *spec, const struct simulate_plan *plan,
    const struct sim_result *r, FILE *out)
{
	const struct sim_config *c = &plan->config;
	json_t *stages = json_array(), *classes = json_array(), *groups = json_array(),
	       *left = json_array();
	char bottleneck[80];

	simulate_bottleneck(plan, bottleneck, sizeof(bottleneck));
	bool group = strncmp(bottleneck, "group ", 6) == 0;
	simulate_left_out(spec, left_json, left);
	for (int g = 0; g < c->n_groups; g++)
		json_array_append_new(groups, group_json(plan, r, g));

	for (int i = 0; i < c->n_stages; i++)
		json_array_append_new(stages, stage_json(plan, r, i));
	for (int k = 0; k < c->n_classes; k++)
		json_array_append_new(classes, class_json(plan, class_name(spec, k), &r->class[k]));
	json_t *doc = json_pack("{s:s, s:i, s:I, s:f, s:f, s:f, s:f, s:f, s:s, s:f, s:o, s:o, s:o, "
				"s:o}",
	    "server", spec->name, "cores", c->cores, "seed", (json_int_t)c->seed,
	    "capacity_per_second", plan->capacity_per_s, "offered_per_second", plan->offered_per_s,
	    "load", plan->load, "cores_ceiling_per_second", plan->cores_ceiling_per_s,
	    "ended_in_front", plan->in_front, "bottleneck",
	    plan->bottleneck < 0 ? "cores"
	    : group              ? bottleneck
				 : plan->label[plan->bottleneck],
	    "measured_seconds", (double)c->measured_ns * 1e-9, "stages", stages, "groups", groups,
	    "classes", classes, "left_out", left);
	int rc = doc && json_dumpf(doc, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) == 0
		     ? 0
		     : WEIR_ENOMEM;
	json_decref(doc);
	fputc('\n', out);
	return rc;
}
