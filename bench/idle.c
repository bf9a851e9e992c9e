/* SPDX-License-Identifier: MIT */
/*
 * Measures the CPU time and memory that the framework itself uses, with a graph of many stages,
 * first idle and then under a light load.
 *
 *   idle [-s STAGES] [-k CLASSES] [-p POOLS] [-t THREADS] [-w SECONDS] [-b BUSY] [-r RATE]
 *
 * The graph consists of chains of CHAIN stages with the default policies. Each stage has its own
 * pool; with -p there are only POOLS pools, and chain i uses pool i modulo POOLS. Each pool starts
 * with THREADS handler threads. In the loaded part, RATE events per second are sent through the
 * last BUSY stages of the first chain, in one burst every 10 ms. The admin endpoint runs as in a
 * server, but without clients.
 *
 * The CPU time is read from the schedstat file of each thread. "rest" is the CPU time of all
 * threads other than the control and the admin thread, including handlers and the sender. RSS is
 * the growth of the process from just before the graph is built until the end of the first idle
 * part.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/graph.h>
#include <weir/stage.h>

#include "admin/admin.h"
#include "bench.h"

#define CHAIN     10
#define BURST_NS  10000000LL
#define BURST_MAX 256
/* Wait before each measurement, so that the effects of startup or of the load fade. */
#define SETTLE_S 5

static int n_stages = 30, n_classes = 8, n_threads = 1, n_pools, span_s = 10, n_busy = 3,
	   rate = 1000;

static void finish(struct weir_event *ev, int status)
{
	(void)status;
	free(ev);
}

static const struct weir_event_type type = {.name = "bench.idle", .finish = finish};

/* ---- the graph ---- */

static void add_pools(struct weir_spec *spec)
{
	char name[16];

	for (int i = 0; i < n_pools; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		struct weir_group_spec *group = weir_spec_add_group(spec, name);
		if (!group)
			exit(1);
		group->threads.min = n_threads;
	}
}

static void set(struct weir_stage_spec *s, const char *knob, const char *value)
{
	char why[256];

	if (weir_stage_spec_set(s, knob, value, why, sizeof(why)) == 0)
		return;
	fprintf(stderr, "%s\n", why);
	exit(1);
}

static void add_stage(struct weir_spec *spec, int i)
{
	char name[16], next[16], number[16];

	snprintf(name, sizeof(name), "s%d", i);
	snprintf(next, sizeof(next), "s%d", i + 1);
	bool last = i % CHAIN == CHAIN - 1 || i == n_stages - 1;
	struct weir_stage_spec *s = weir_spec_add_stage(spec, name, last ? "drop" : "burn");
	if (!s)
		exit(1);
	snprintf(number, sizeof(number), "%d", n_threads);
	if (n_pools == 0) {
		set(s, "threads.min", number);
	} else {
		snprintf(number, sizeof(number), "p%d", i / CHAIN % n_pools);
		set(s, "group", number);
	}
	if (last)
		return;
	set(s, "with.time", "1us");
	if (weir_spec_link(s, "out", next, false) != 0)
		exit(1);
}

static struct weir_graph *start(void)
{
	struct weir_spec *spec = weir_spec_new("idle");
	struct weir_graph *g = NULL;
	struct weir_errs errs = {0};
	char name[16];

	for (int c = 0; c < n_classes; c++) {
		snprintf(name, sizeof(name), "c%d", c);
		weir_spec_add_class(spec, name);
	}
	add_pools(spec);
	for (int i = 0; i < n_stages; i++)
		add_stage(spec, i);
	if (weir_graph_build(spec, &g, &errs) == 0 && weir_graph_start(g, &errs) == 0)
		return g;
	for (int i = 0; i < errs.n; i++)
		fprintf(stderr, "%s\n", errs.err[i].text);
	exit(1);
}

/* ---- CPU and memory ---- */

struct cpu {
	double control, admin, all; /* ns */
};

static double read_ns(const char *tid)
{
	char path[300];
	double ns = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", tid);
	FILE *f = fopen(path, "r");
	if (f && fscanf(f, "%lf", &ns) != 1)
		ns = 0;
	if (f)
		fclose(f);
	return ns;
}

static void read_comm(const char *tid, char name[16])
{
	char path[300];

	name[0] = '\0';
	snprintf(path, sizeof(path), "/proc/self/task/%s/comm", tid);
	FILE *f = fopen(path, "r");
	if (f && fscanf(f, "%15s", name) != 1)
		name[0] = '\0';
	if (f)
		fclose(f);
}

static struct cpu read_cpu(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct cpu cpu = {0};

	for (struct dirent *d; dir && (d = readdir(dir));) {
		char name[16];
		if (d->d_name[0] == '.')
			continue;
		double ns = read_ns(d->d_name);
		read_comm(d->d_name, name);
		cpu.all += ns;
		cpu.control += strcmp(name, "control") == 0 ? ns : 0;
		cpu.admin += strcmp(name, "admin") == 0 ? ns : 0;
	}
	if (dir)
		closedir(dir);
	return cpu;
}

static double rss_kb(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	double size = 0, resident = 0;

	if (f && fscanf(f, "%lf %lf", &size, &resident) != 2)
		resident = 0;
	if (f)
		fclose(f);
	return resident * (double)sysconf(_SC_PAGESIZE) / 1024;
}

/* ---- load ---- */

/* Offer bursts until `end_ns`. */
static void load(struct weir_stage *to, int64_t end_ns)
{
	struct weir_event *ev[BURST_MAX];
	int n = (int)(rate * BURST_NS / 1000000000LL), class_id = 0;

	n = n < 1 ? 1 : n > BURST_MAX ? BURST_MAX : n;
	for (int64_t at_ns = bench_now_ns(); at_ns < end_ns; at_ns += BURST_NS) {
		struct timespec ts = {at_ns / 1000000000LL, at_ns % 1000000000LL};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
		for (int i = 0; i < n; i++) {
			ev[i] = calloc(1, sizeof(*ev[i]));
			if (!ev[i])
				exit(1);
			weir_event_init(ev[i], &type, bench_now_ns());
			ev[i]->class_id = (uint8_t)(class_id++ % n_classes);
		}
		int taken = weir_offer(to, ev, n, NULL);
		for (int i = 0; i < n - taken; i++)
			free(ev[i]);
	}
}

static void pass(struct weir_stage *to, int seconds)
{
	int64_t end_ns = bench_now_ns() + seconds * 1000000000LL;

	if (to) {
		load(to, end_ns);
		return;
	}
	struct timespec ts = {end_ns / 1000000000LL, end_ns % 1000000000LL};
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

static void measure(const char *what, struct weir_stage *to)
{
	pass(to, SETTLE_S);
	struct cpu then = read_cpu();
	int64_t then_ns = bench_now_ns();
	pass(to, span_s);
	double span_ns = (double)(bench_now_ns() - then_ns) / 100;
	struct cpu now = read_cpu();
	double control = now.control - then.control, admin = now.admin - then.admin;

	printf("%-10s control %7.3f %%  admin %7.3f %%  rest %7.3f %%  of a core\n", what,
	    control / span_ns, admin / span_ns, (now.all - then.all - control - admin) / span_ns);
	fflush(stdout);
}

static void options(int argc, char **argv)
{
	for (int c; (c = getopt(argc, argv, "s:k:p:t:w:b:r:")) != -1;) {
		int *at = c == 's'   ? &n_stages
			  : c == 'k' ? &n_classes
			  : c == 'p' ? &n_pools
			  : c == 't' ? &n_threads
			  : c == 'w' ? &span_s
			  : c == 'b' ? &n_busy
			  : c == 'r' ? &rate
				     : NULL;
		if (!at || (*at = atoi(optarg)) < (at == &n_busy || at == &n_pools ? 0 : 1)) {
			fprintf(stderr, "see the head of bench/idle.c\n");
			exit(2);
		}
	}
	n_classes = n_classes < WEIR_CLASSES_MAX ? n_classes : WEIR_CLASSES_MAX;
	n_busy = n_busy < CHAIN ? n_busy : CHAIN;
}

int main(int argc, char **argv)
{
	struct weir_drain_report report;
	struct weir_err err = {0};
	struct admin *admin = NULL;
	char to[16];

	options(argc, argv);
	bench_header("idle");
	double before_kb = rss_kb();
	struct weir_graph *g = start();
	if (admin_start(g, NULL, "127.0.0.1:0", &admin, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	printf("%d stages, %d classes, %d pools of %d threads\n", n_stages, n_classes,
	    n_pools > 0 ? n_pools : n_stages, n_threads);
	measure("at rest", NULL);
	double rest_kb = rss_kb();
	snprintf(to, sizeof(to), "s%d", (n_stages < CHAIN ? n_stages : CHAIN) - n_busy);
	if (n_busy > 0 && weir_thread_attach(g, "bench") == 0) {
		char what[32];
		snprintf(what, sizeof(what), "%d busy", n_busy);
		measure(what, weir_graph_stage(g, to));
		weir_thread_detach();
		measure("afterwards", NULL);
	}
	printf("RSS %.0f KB, a stage %.1f KB\n", rest_kb - before_kb,
	    (rest_kb - before_kb) / n_stages);
	weir_graph_drain(g, 1000000000, &report);
	admin_stop(admin);
	weir_graph_free(g);
	return report.law_error != 0;
}
