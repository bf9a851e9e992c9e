/* SPDX-License-Identifier: MIT */
/*
 * Measures the cost of the work that the admin thread does once a second, on 30 stages with 4
 * classes each: adding a snapshot to the history (history_feed: differences and quantiles of both
 * rings), writing it to the file, building the JSON of a tick, and building a response with 6 hours
 * of all stages. Prints us per call, medians of 200 calls. The snapshot itself (weir_graph_view) is
 * not included.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "admin/history/history_file.h"
#include "admin/history/history_json.h"
#include "admin/stream/tick_text.h"

#define STAGES  30
#define CLASSES 4
#define CALLS   200

static struct weir_stage_view stage[STAGES];
static struct weir_link_view links[STAGES];
static char name[STAGES][16];
static struct weir_graph_view view = {.name = "bench",
    .started_ns = 1,
    .ready = true,
    .n_classes = CLASSES,
    .class_name = {"a", "b", "c", "d"},
    .n_stages = STAGES,
    .stages = stage};

static void make(void)
{
	for (int i = 0; i < STAGES; i++) {
		snprintf(name[i], sizeof(name[i]), "stage%d", i);
		links[i] = (struct weir_link_view){.to = i + 1 < STAGES ? name[i + 1] : NULL};
		stage[i] = (struct weir_stage_view){.name = name[i],
		    .placement = i ? "pool" : "source",
		    .threads_now = 4,
		    .n_links = 1,
		    .links = &links[i]};
	}
}

/* Advance the view by ten seconds, so that both rings get a sample, and add events of all durations
 * to every stage. */
static void pass(int call)
{
	view.now_ns = 10000000000LL * (call + 1);
	view.wall_ns = 1700000000000000000LL + view.now_ns;
	for (int i = 0; i < STAGES; i++)
		for (int c = 0; c < CLASSES; c++) {
			struct weir_class_view *v = &stage[i].class_view[c];
			v->offered += 1000;
			v->completed += 900;
			v->shed[c] += 100;
			for (int b = 10; b < 130; b++) {
				v->wait.count[b] += 8;
				v->service.count[b] += 8;
			}
		}
}

static void print(const char *what, double *us)
{
	struct bench_stat s = bench_summary(us, CALLS);

	printf("%-28s %8.1f us  (%.1f to %.1f)\n", what, s.median, s.low, s.high);
}

static double since_us(int64_t then_ns)
{
	return (double)(bench_now_ns() - then_ns) / 1e3;
}

int main(void)
{
	static double feed[CALLS], save[CALLS], tick[CALLS], answer[CALLS];
	char path[] = "/tmp/weir-bench-XXXXXX";
	struct tick_about about = {.hz = 1};
	struct textbuf text = {0};
	struct history *h = history_new();
	size_t bytes = 0;
	int fd = mkstemp(path);
	struct history_file *f = history_file_open(path, h);

	bench_header("micro_history");
	if (fd < 0 || !f)
		return 1;
	make();
	for (int i = 0; i < CALLS; i++) {
		pass(i);
		int64_t t = bench_now_ns();
		unsigned got = history_feed(h, &view);
		feed[i] = since_us(t);
		t = bench_now_ns();
		history_file_save(f, h, got);
		save[i] = since_us(t);
		history_file_wait(f);
		t = bench_now_ns();
		tick_text(&text, &about, &view, history_samples(h, HISTORY_1S));
		tick[i] = since_us(t);
		text.n = 0;
		struct reply reply = {0};
		t = bench_now_ns();
		history_json(h, "step=10s", (double)view.wall_ns / 1e9, &reply);
		answer[i] = since_us(t);
		bytes = reply.n;
		reply_fini(&reply);
	}
	print("feed, both rings", feed);
	print("file, both slots handed over", save);
	print("JSON of a tick", tick);
	print("answer: 6 h of all stages", answer);
	printf("memory %zu bytes, answer %zu bytes\n", history_bytes(h), bytes);
	history_file_close(f, h);
	textbuf_fini(&text);
	history_free(h);
	unlink(path);
	close(fd);
	return 0;
}
