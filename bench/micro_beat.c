/* SPDX-License-Identifier: MIT */
/*
 * Measures the cost of one complete run of the admin thread's ticker (admin/stream/ticker.c), on a
 * real, idle graph of 30 stages with 4 classes and 2 threads each: taking the snapshot
 * (weir_graph_view), feeding the history, and formatting the text of a tick. Prints us per call,
 * medians of 200 calls. micro_history measures the parts of such a run on synthetic data.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/graph.h>

#include "bench.h"
#include "config.h"
#include "admin/history/history.h"
#include "admin/stream/tick_text.h"

#define STAGES 30
#define CALLS  200

static void print(const char *what, double *us)
{
	struct bench_stat s = bench_summary(us, CALLS);

	printf("%-28s %8.1f us  (%.1f to %.1f)\n", what, s.median, s.low, s.high);
}

static double since_us(int64_t then_ns)
{
	return (double)(bench_now_ns() - then_ns) / 1e3;
}

/* Write the configuration of the source s0 and the chain s1 -> s2 -> ... -> s29, which receives no
 * load. */
static size_t make_yaml(char *p, size_t size)
{
	int n = snprintf(p, size,
	    "weir: 1\nname: bench\nclasses:\n  a: { match: { path: /a } }\n"
	    "  b: { match: { path: /b } }\n  c: { match: { path: /c } }\n  d: {}\nstages:\n"
	    "  s0: { use: http.server, with: { listen: 127.0.0.1:0 }, to: { request: s1 } }\n");

	for (int i = 1; i < STAGES; i++)
		n += snprintf(p + n, size - (size_t)n,
		    i < STAGES - 1
			? "  s%d: { use: delay, with: { time: 1us }, threads: { min: 2, max: 2 "
			  "}, to: s%d }\n"
			: "  s%d: { use: respond, with: { body: x }, threads: { min: 2, max: 2 } "
			  "}\n",
		    i, i + 1);
	return (size_t)n;
}

static struct weir_graph *start(void)
{
	static char yaml[16384];
	struct weir_spec *spec = NULL;
	struct weir_graph *g = NULL;
	struct weir_errs errs = {0};
	char path[] = "/tmp/weir-bench-XXXXXX.yaml";
	int fd = mkstemps(path, 5);
	FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;

	if (!f)
		return NULL;
	fwrite(yaml, 1, make_yaml(yaml, sizeof(yaml)), f);
	fclose(f);
	int rc = config_load(path, NULL, 0, &spec, &errs);
	remove(path);
	if (rc == 0 && weir_graph_build(spec, &g, &errs) == 0 && weir_graph_start(g, &errs) == 0)
		return g;
	for (int i = 0; i < errs.n; i++)
		fprintf(stderr, "%s\n", errs.err[i].text);
	return NULL;
}

int main(void)
{
	static double look[CALLS], feed[CALLS], tick[CALLS], beat[CALLS];
	struct tick_about about = {.hz = 1};
	struct textbuf text = {0};
	struct history *h = history_new();
	struct weir_graph *g = start();
	struct weir_drain_report report;

	bench_header("micro_beat");
	if (!g || !h)
		return 1;
	for (int i = 0; i < CALLS; i++) {
		struct weir_graph_view *v;
		int64_t begun = bench_now_ns(), t = begun;
		if (weir_graph_view(g, &v) != 0)
			return 1;
		look[i] = since_us(t);
		/* advance the time by a second */
		v->wall_ns = 1700000000000000000LL + i * 1000000000LL;
		v->now_ns += i * 1000000000LL;
		t = bench_now_ns();
		history_feed(h, v);
		feed[i] = since_us(t);
		t = bench_now_ns();
		tick_text(&text, &about, v, history_samples(h, HISTORY_1S));
		tick[i] = since_us(t);
		text.n = 0;
		weir_graph_view_free(v);
		beat[i] = since_us(begun);
	}
	print("snapshot", look);
	print("feed", feed);
	print("text of a tick", tick);
	print("the beat", beat);
	weir_graph_drain(g, 1000000000, &report);
	weir_graph_free(g);
	history_free(h);
	textbuf_fini(&text);
	return 0;
}
