/* SPDX-License-Identifier: MIT */
/*
 * Writes rows of the overload report; see overload_json.h.
 *
 * json_pack with "o" consumes the reference even on failure, and fails if the value is NULL, so a
 * single check at the end detects a lack of memory.
 */
#include "overload_json.h"

#include <math.h>
#include <string.h>
#include <sys/utsname.h>

#include <jansson.h>

#include "base/clock.h"
#include "base/json.h"

/* Number of bins of 20 ms that are joined into one point of a chart. */
#define BINS_A_POINT 5

/* Number of users of equal demand in W11. They have the numbers from 0; the next user is greedy. */
#define EQUAL_USERS 100

#define HOW (JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6))

static double seconds(int64_t ns)
{
	return (double)ns * 1e-9;
}

/* Write `row` as a line and take over the reference. */
static int line(FILE *out, json_t *row)
{
	if (!row)
		return WEIR_ENOMEM;
	json_dumpf(row, out, HOW);
	fputc('\n', out);
	json_decref(row);
	return 0;
}

int overload_json_about(FILE *out, int argc, char *const *argv)
{
	char command[512] = "";
	struct utsname name;
	size_t n = 0;

	for (int i = 0; i < argc && n < sizeof(command); i++) {
		const char *base = i == 0 ? strrchr(argv[0], '/') : NULL;
		n += (size_t)snprintf(command + n, sizeof(command) - n, "%s%s", i ? " " : "",
		    base ? base + 1 : argv[i]);
	}
	bool known = uname(&name) == 0;
	return line(out, json_pack("{s:s, s:s, s:s, s:s}", "row", "about", "where", "sim",
			     "command", command, "machine", known ? name.machine : ""));
}

static json_t *classes(const struct sim_config *c, const struct sim_result *r)
{
	json_t *list = json_array();
	char name[16];

	for (int k = 0; k < c->n_classes; k++) {
		const struct sim_class_result *got = &r->class[k];
		if (got->offered == 0)
			continue;
		snprintf(name, sizeof(name), "c%d", k);
		json_push(&list, json_pack("{s:s, s:I, s:I}", "name", name, "offered",
				     (json_int_t)got->offered, "good", (json_int_t)got->in_time));
	}
	return list;
}

/* Build the time series of requests offered and of requests served in time, as fractions of the
 * capacity, starting at the end of the warm-up. */
static json_t *series(const struct sim_config *c, const struct sim_result *r)
{
	json_t *offered = json_array(), *good = json_array();
	double bin_s = seconds(c->bin_ns) * BINS_A_POINT, full = sim_capacity_per_s(c) * bin_s;
	int first = (int)(c->warmup_ns / c->bin_ns);
	int end = (int)((c->warmup_ns + c->measured_ns) / c->bin_ns);

	for (int i = first; i + BINS_A_POINT <= end && i + BINS_A_POINT <= r->n_bins;
	     i += BINS_A_POINT) {
		double asked = 0, served = 0;
		for (int k = i; k < i + BINS_A_POINT; k++) {
			asked += r->bin[k].offered;
			served += r->bin[k].in_time;
		}
		json_push(&offered, json_real(asked / full));
		json_push(&good, json_real(served / full));
	}
	return json_pack("{s:f, s:o, s:o}", "bin_s", bin_s, "offered", offered, "good", good);
}

/* List the changes of the number of threads of stage 0. */
static json_t *threads(const struct sim_config *c, const struct sim_result *r)
{
	json_t *list = json_array();
	int last = -1;

	for (int i = (int)(c->warmup_ns / c->bin_ns); i < r->n_bins; i++) {
		double at_s = seconds((int64_t)(i + 1) * c->bin_ns - c->warmup_ns);
		if (r->bin[i].threads[0] == last && i + 1 < r->n_bins)
			continue;
		last = r->bin[i].threads[0];
		json_push(&list, json_pack("[f,i]", at_s, last));
	}
	return list;
}

/* Return the route that the narrow stage of W6 or the slow stage of W8 should not affect, or -1 for
 * other workloads. */
static int untroubled_route(const char *workload)
{
	if (strcmp(workload, "W6") == 0)
		return 1;
	return strcmp(workload, "W8") == 0 ? 0 : -1;
}

static void put_special(json_t **row, const struct overload_run *run, const struct sim_config *c,
    const struct sim_result *r)
{
	const struct sim_workload *w = run->workload;
	int route = untroubled_route(w->name);
	int64_t from_ns, to_ns;

	if (route >= 0 && r->route_offered[route] > 0)
		json_put(row, "unaffected",
		    json_real((double)r->route_in_time[route] / (double)r->route_offered[route]));
	if (strcmp(w->name, "W11") == 0)
		json_put(row, "jain", json_real(sim_jain(r, 0, EQUAL_USERS)));
	if (w->pools)
		json_put(row, "threads", threads(c, r));
	if (w->from_ns == 0)
		return;
	sim_workload_span(w, c, &from_ns, &to_ns);
	json_put(row, "trouble",
	    json_pack("[f,f]", seconds(from_ns - c->warmup_ns), seconds(to_ns - c->warmup_ns)));
	json_put(row, "series", series(c, r));
}

int overload_json_run(FILE *out, const struct overload_run *run, const struct sim_config *c,
    const struct sim_result *r)
{
	double slo_s = seconds(c->stage[0].slo_ns);
	json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:i, s:f, s:f, s:f}", "row", "run",
	    "where", "sim", "workload", run->workload->name, "what", run->workload->help, "policy",
	    run->policy, "load", run->load, "round", run->round, "slo_s", slo_s, "capacity_per_s",
	    sim_capacity_per_s(c), "for_s", seconds(c->measured_ns));
	json_t *figures = json_pack("{s:f, s:f, s:f, s:f, s:o}", "goodput", run->goodput, "p99",
	    run->p99_ms * 1e-3 / slo_s, "refused", run->refused, "wasted", run->wasted, "classes",
	    classes(c, r));

	if (json_object_update(row, figures) != 0) {
		json_decref(row);
		row = NULL;
	}
	json_decref(figures);
	if (row)
		put_special(&row, run, c, r);
	return line(out, row);
}
