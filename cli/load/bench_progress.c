/* SPDX-License-Identifier: MIT */
/*
 * Progress of `weir bench` on stderr. On a terminal it is one line that is rewritten every second;
 * elsewhere, it is about ten lines per run.
 */
#include "bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "load/phases.h"

#define BAR_WIDTH 20

/* Number of progress lines per run, if lines are not rewritten. 10 is a guess: enough to see
 * progress, and still readable with 64 rounds. */
#define LINES_PER_RUN 10

/* Width of a terminal that does not tell its own, and of a line elsewhere. */
#define COLUMNS      80
#define COLUMNS_FILE 160

void bench_print_duration(char *buf, size_t size, int64_t ns)
{
	static const struct {
		int64_t from_ns;
		double unit_ns;
		const char *name;
	} units[] = {{1000000000, 1e9, "s"}, {1000000, 1e6, "ms"}, {0, 1e3, "us"}};
	int i = 0;

	while (ns < units[i].from_ns)
		i++;
	double v = (double)ns / units[i].unit_ns;
	snprintf(buf, size, "%.*f %s", v < 10 ? 2 : v < 100 ? 1 : 0, v, units[i].name);
}

void bench_progress_begin(
    struct bench_progress *p, const struct load_plan *plan, bool quiet, bool lines)
{
	p->plan = plan;
	p->terminal = isatty(STDERR_FILENO);
	p->shown = !quiet && (lines || p->terminal);
	p->total_ns = phases_total_ns(plan);
	p->every_ns = p->terminal ? 0 : p->total_ns / LINES_PER_RUN;
	p->next_ns = 0;
}

static void add_bar(char *buf, size_t size, double done)
{
	int full = (int)(done * BAR_WIDTH + 0.5);
	char bar[BAR_WIDTH + 1];

	memset(bar, '.', BAR_WIDTH);
	memset(bar, '#', (size_t)(full < BAR_WIDTH ? full : BAR_WIDTH));
	bar[BAR_WIDTH] = '\0';
	snprintf(buf, size, "[%s] ", bar);
}

/* Write the time that is left: "0:42", "1:02:03". */
static void left_text(char *buf, size_t size, int64_t ns)
{
	int64_t s = ns > 0 ? (ns + 500000000) / 1000000000 : 0;

	if (s >= 3600)
		snprintf(buf, size, "%" PRId64 ":%02d:%02d", s / 3600, (int)(s / 60 % 60),
		    (int)(s % 60));
	else
		snprintf(buf, size, "%d:%02d", (int)(s / 60), (int)(s % 60));
}

/* Cut a line of ASCII to `width` columns. */
static void cut(char *buf, int width)
{
	if (width > 0 && strlen(buf) > (size_t)width)
		buf[width] = '\0';
}

void bench_progress_line(const struct bench_progress *p, const struct load_second *row, bool bar,
    int width, char *buf, size_t size)
{
	const uint64_t *n = row->all.outcome;
	int64_t at_ns = row->at_ns + 1000000000;
	int64_t now_ns = at_ns < p->total_ns ? at_ns : p->total_ns;
	int64_t all_ns = p->before_ns + p->total_ns + (p->after_ns > 0 ? p->after_ns : 0);
	char p99[24] = "-", left[24];
	size_t used = 0;

	buf[0] = '\0';
	if (bar)
		add_bar(buf, size, (double)(p->before_ns + now_ns) / (double)all_ns);
	used = strlen(buf);
	left_text(left, sizeof(left), all_ns - p->before_ns - now_ns);
	if (row->all.p99_ns > 0)
		bench_print_duration(p99, sizeof(p99), row->all.p99_ns);
	/* the least important figures come last: they are cut off first */
	snprintf(buf + used, size - used,
	    "%s%s%s, %s left  due %" PRIu64 "/s  ok %" PRIu64 "/s  p99 %s  shed %" PRIu64
	    "  error %" PRIu64 "  late %" PRIu64,
	    p->part ? p->part : "", p->part && *p->part ? " " : "", p->plan->phase[row->phase].name,
	    left, row->all.offered, n[LOAD_OK] + n[LOAD_DEGRADED], p99, n[LOAD_SHED], n[LOAD_ERROR],
	    n[LOAD_TIMEOUT]);
	cut(buf, width);
}

/* Return the number of columns that a line may have; in the last one, some terminals wrap. */
static int columns(const struct bench_progress *p)
{
	struct winsize window;

	if (!p->terminal)
		return COLUMNS_FILE;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col < 2)
		return COLUMNS - 1;
	return window.ws_col - 1;
}

void bench_progress_second(void *progress, const struct load_second *row)
{
	struct bench_progress *p = progress;
	char line[256];

	if (!p->shown || row->at_ns < p->next_ns)
		return;
	p->next_ns = row->at_ns + p->every_ns;
	bench_progress_line(p, row, p->terminal, columns(p), line, sizeof(line));
	fprintf(stderr, p->terminal ? "\r\033[K%s" : "%s\n", line);
	fflush(stderr);
}

void bench_progress_end(struct bench_progress *p)
{
	if (p->shown && p->terminal)
		fputs("\r\033[K", stderr);
}
