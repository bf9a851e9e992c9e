/* SPDX-License-Identifier: MIT */
/*
 * Texts read by the load generator: words of phases, lines of logs and traces, whole files of both.
 * A refusal has a message in visible ASCII and changes nothing. An accepted text is within bounds,
 * and its schedule ascends and ends.
 *
 * Input: one byte for the kind of text; the rest is the text (words up to their first NUL).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "load/mix.h"
#include "load/phases.h"
#include "load/schedule.h"
#include "load/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define S            1000000000LL
#define ARRIVALS_MAX 1000
#define YEAR_NS      (8760 * 3600 * S)

static void expect(bool cond, const char *what, const char *text)
{
	if (cond)
		return;
	fprintf(stderr, "fuzz_loadtext: %s: '%s'\n", what, text);
	abort();
}

static void check_sentence(int rc, const struct weir_err *err, const char *text)
{
	if (rc >= 0)
		return;
	expect(err->code == rc, "another code", text);
	expect(err->text[0] != '\0', "refused without a word", text);
	for (const char *p = err->text; *p; p++)
		expect(*p >= 0x20 && *p < 0x7f, "a control byte in the sentence", text);
}

/* The schedule of the current phases: ascending, within the run. */
static void check_schedule(struct load_plan *plan, const char *text)
{
	static struct load_request request = {.cumulative = 1};
	struct load_schedule *s;
	struct load_arrival a;
	int64_t before_ns = 0, total_ns = phases_total_ns(plan);

	plan->n_classes = 1;
	plan->class[0] = (struct load_class){.weight = 1, .n_requests = 1, .request = &request};
	if (load_schedule_new(plan, &s) != 0)
		return;
	for (int i = 0; i < ARRIVALS_MAX && load_schedule_next(s, &a); i++) {
		expect(a.at_ns >= before_ns && a.at_ns < total_ns, "out of order", text);
		before_ns = a.at_ns;
	}
	load_schedule_free(s);
	plan->n_classes = 0; /* `request` is not allocated */
}

static void check_phases(int rc, int before, struct load_plan *plan, const char *text)
{
	expect(plan->n_phases >= 1 && plan->n_phases <= LOAD_PHASES_MAX, "phases", text);
	expect(rc == 0 || plan->n_phases == before, "refused, and changed", text);
	for (int i = 0; i < plan->n_phases; i++) {
		const struct load_phase *p = &plan->phase[i];
		expect(p->for_ns > 0 && p->from_per_s > 0 && p->to_per_s > 0, "a phase", text);
	}
	if (rc == 0)
		check_schedule(plan, text);
}

static void fuzz_phases(int kind, const char *text)
{
	static struct load_plan plan;
	struct weir_err err = {0};
	int rc;

	memset(&plan, 0, sizeof(plan));
	phases_constant(&plan, 100, 30 * S, &err);
	phases_warmup(&plan, S, &err);
	if (kind == 0)
		rc = phases_ramp(&plan, text, 10 * S, &err);
	else if (kind == 1)
		rc = phases_steps(&plan, text, S, &err);
	else
		rc = phases_spike(&plan, text, &err);
	check_sentence(rc, &err, text);
	check_phases(rc, 2, &plan, text);
	expect(kind != 2 || phases_total_ns(&plan) == 31 * S, "another length", text);
}

static void fuzz_multiples(const char *text)
{
	struct weir_err err = {0};
	double m[16];

	int n = phases_multiples(text, m, 16, &err);
	check_sentence(n, &err, text);
	expect(n != 0 && n <= 16, "a number of multiples", text);
	for (int i = 0; i < n; i++)
		expect(m[i] > 0 && (i == 0 || m[i] > m[i - 1]), "multiples", text);
}

static void fuzz_time(const char *text)
{
	struct weir_err err = {0};
	int64_t at_ns = -7;

	int rc = load_trace_time(text, &at_ns, &err);
	check_sentence(rc, &err, text);
	expect(rc == 0 ? at_ns >= 0 && at_ns <= YEAR_NS : at_ns == -7, "a time", text);
}

static void fuzz_log_line(const char *text)
{
	static struct mix_log_line line;
	struct weir_err err = {0};

	int rc = mix_log_parse(text, &line, &err);
	check_sentence(rc, &err, text);
	if (rc != 0 || !line.path)
		return;
	expect(line.path[0] == '/' || line.path[0] == '*', "a path", text);
	expect(line.status >= 0 && line.status <= 999, "a status", text);
}

/* A request is a single one: no line ends except its own, and one empty line, at its end. */
static void check_request(const struct load_request *r, const char *text)
{
	const char *end = memmem(r->bytes, r->n_bytes, "\r\n\r\n", 4);

	expect(end && end + 4 == r->bytes + r->n_head && r->n_head == r->n_bytes, "a head", text);
	for (size_t i = 0; i + 1 < r->n_head; i++)
		expect(r->bytes[i] != '\n' || r->bytes[i - 1] == '\r', "a bare LF", text);
}

static void fuzz_file(bool log, const uint8_t *data, size_t size)
{
	static struct load_plan plan;
	const struct mix_head head = {.method = "GET", .host = "h"};
	struct load_class *cls = &plan.class[0];
	struct weir_err err = {0};
	char path[64];
	int rc, fd = memfd_create("loadtext", MFD_CLOEXEC);

	if (fd == -1 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	plan.n_classes = 1;
	rc = log ? mix_add_log(cls, &head, path, &err) : load_trace_read(&plan, path, &err);
	check_sentence(rc, &err, path);
	for (int i = 0; log && i < cls->n_requests; i++)
		check_request(&cls->request[i], path);
	if (rc == 0 && log)
		rc = load_trace_replay(&plan, cls, 1, &err);
	expect(rc != 0 || plan.n_trace > 0, "no times", path);
	for (size_t i = 1; i < plan.n_trace; i++)
		expect(plan.trace_ns[i] >= plan.trace_ns[i - 1], "times that descend", path);
	load_plan_fini(&plan);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	int kind = data[0] % 8;
	char *text = strndup((const char *)data + 1, size - 1);
	if (!text)
		return 0;
	if (kind < 3)
		fuzz_phases(kind, text);
	else if (kind == 3)
		fuzz_multiples(text);
	else if (kind == 4)
		fuzz_time(text);
	else if (kind == 5)
		fuzz_log_line(text);
	else
		fuzz_file(kind == 6, data + 1, size - 1);
	free(text);
	return 0;
}
