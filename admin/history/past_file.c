/* SPDX-License-Identifier: MIT */
/*
 * Saves decisions and changes to a file; see past_file.h. `there` has the checksums of the slots in the
 * file while the writer is idle, `coming` those after the job in progress.
 */
#include "past_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/clock.h>
#include <weir/log.h>

#include "history_writer.h"
#include "kept_file.h"
#include "past_format.h"

#define SLOTS (PAST_DECISIONS + PAST_CHANGES)
/* Time that a stopping server waits for the last write, as for the history. */
#define CLOSE_WAIT_NS 1000000000LL

struct past_file {
	struct kept_file kept; /* its descriptor is used during loading; then the writer owns it */
	struct history_writer *writer;
	bool whole;                           /* the next job writes the whole file */
	bool posted;                          /* a job is in progress */
	uint64_t there[SLOTS], coming[SLOTS]; /* checksums; 0: never written */
};

/* One slot, and where it belongs. */
struct slot {
	int index; /* in `there` */
	size_t at, n;
	union {
		struct past_decision decision;
		struct past_change change;
	} data;
};

#define COPY(to, from) snprintf(to, sizeof(to), "%.*s", (int)sizeof(to) - 1, from)

static void slot_of_decision(struct slot *slot, const struct weir_decision *d)
{
	struct past_decision *s = &slot->data.decision;

	memset(slot, 0, sizeof(*slot));
	s->id = d->id;
	s->wall_ns = d->wall_ns;
	s->from = d->from;
	s->to = d->to;
	COPY(s->stage, d->stage);
	COPY(s->actor, d->actor);
	COPY(s->action, d->action);
	COPY(s->rule, d->rule);
	COPY(s->limit, d->limit);
	COPY(s->inputs, d->inputs);
	COPY(s->outcome_5s, d->outcome_5s);
	COPY(s->outcome_30s, d->outcome_30s);
	s->sum = past_sum(&s->id, sizeof(*s) - sizeof(s->sum));
	slot->index = (int)(d->id % PAST_DECISIONS);
	slot->n = sizeof(*s);
	slot->at = sizeof(struct past_head) + (size_t)slot->index * sizeof(*s);
}

static void slot_of_change(struct slot *slot, const struct weir_change *c)
{
	struct past_change *s = &slot->data.change;

	memset(slot, 0, sizeof(*slot));
	s->id = c->id;
	s->wall_ns = c->wall_ns;
	s->expires_wall_ns = c->expires_wall_ns;
	s->undone = c->undone;
	COPY(s->actor, c->actor);
	COPY(s->what, c->what);
	COPY(s->target, c->target);
	COPY(s->from, c->from);
	COPY(s->to, c->to);
	s->sum = past_sum(&s->id, sizeof(*s) - sizeof(s->sum));
	int index = (int)(c->id % PAST_CHANGES);
	slot->index = PAST_DECISIONS + index;
	slot->n = sizeof(*s);
	slot->at = sizeof(struct past_head) + PAST_DECISIONS * sizeof(struct past_decision) +
		   (size_t)index * sizeof(*s);
}

/* Make slot `i` of those of `past`, oldest first. */
static void make_slot(struct slot *slot, const struct past *past, int i)
{
	if (i < past->n_decisions)
		slot_of_decision(slot, &past->decision[past->n_decisions - 1 - i]);
	else
		slot_of_change(slot, &past->change[past->n_changes - 1 - (i - past->n_decisions)]);
}

static uint64_t sum_of(const struct slot *slot)
{
	uint64_t sum;

	memcpy(&sum, &slot->data, sizeof(sum)); /* the first member of each */
	return sum;
}

/* ---- jobs ---- */

/* Add a slot to the job. Returns false if the job has no run left for it. */
static bool add_slot(struct history_job *job, const struct slot *slot)
{
	struct history_run *last = job->n_runs > 0 ? &job->run[job->n_runs - 1] : NULL;

	if (!last || last->at + last->n != slot->at) {
		if (job->n_runs == HISTORY_RUNS_MAX)
			return false;
		last = &job->run[job->n_runs++];
		*last = (struct history_run){.at = slot->at};
	}
	memcpy(job->data + job->n, &slot->data, slot->n);
	last->n += slot->n;
	job->n += slot->n;
	return true;
}

/* Make a job of the whole file. */
static void fill_whole(struct past_file *f, const struct past *past, struct history_job *job)
{
	struct past_head head;
	struct slot slot;

	job->whole = true;
	job->n = PAST_BYTES;
	past_head(&head);
	memcpy(job->data, &head, sizeof(head));
	memset(f->coming, 0, sizeof(f->coming));
	for (int i = 0; i < past->n_decisions + past->n_changes; i++) {
		make_slot(&slot, past, i);
		memcpy(job->data + slot.at, &slot.data, slot.n);
		f->coming[slot.index] = sum_of(&slot);
	}
}

/* Make a job of the slots that differ from those in the file, as many as fit. */
static void fill_changed(struct past_file *f, const struct past *past, struct history_job *job)
{
	struct slot slot;

	memcpy(f->coming, f->there, sizeof(f->coming));
	for (int i = 0; i < past->n_decisions + past->n_changes; i++) {
		make_slot(&slot, past, i);
		if (sum_of(&slot) == f->there[slot.index])
			continue;
		if (!add_slot(job, &slot))
			return;
		f->coming[slot.index] = sum_of(&slot);
	}
}

/* Take the result of the last job. Returns false while it is in progress. */
static bool settle(struct past_file *f)
{
	bool ok;

	if (!history_writer_idle(f->writer, &ok))
		return false;
	if (f->posted && ok)
		memcpy(f->there, f->coming, sizeof(f->there));
	f->whole |= f->posted && !ok; /* the file may have been removed, or the disk was full */
	f->posted = false;
	return true;
}

bool past_file_save(struct past_file *f, const struct past *past)
{
	struct history_job job = {0};

	if (!settle(f))
		return false;
	job.data = calloc(1, PAST_BYTES);
	if (!job.data)
		return false;
	if (f->whole)
		fill_whole(f, past, &job);
	else
		fill_changed(f, past, &job);
	if (job.n == 0) {
		free(job.data);
		return true;
	}
	f->whole = false;
	f->posted = true;
	history_writer_post(f->writer, &job);
	return false; /* it is not in the file before the job has ended */
}

void past_file_wait(struct past_file *f)
{
	history_writer_wait(f->writer, INT64_MAX);
}

/* ---- open and close ---- */

static const char *load(int fd, uint64_t size, void *past)
{
	return past_load(fd, size, past);
}

struct past_file *past_file_open(const char *history_path, struct past *past)
{
	struct past_file *f = calloc(1, sizeof(*f));
	char *path = NULL;

	if (!f || asprintf(&path, "%s.log", history_path) < 0) {
		free(f);
		return NULL;
	}
	f->whole = true; /* ids begin anew */
	bool good = kept_file_open(&f->kept, path, load, past);
	free(path);
	f->writer = good ? history_writer_new(f->kept.path, f->kept.fd) : NULL;
	if (f->writer) {
		f->kept.fd = -1;
		return f;
	}
	if (good)
		kept_file_fails(&f->kept, "there is no thread or memory to write it");
	past_file_close(f, NULL);
	return NULL;
}

void past_file_close(struct past_file *f, const struct past *past)
{
	int64_t until_ns = weir_clock_ns(CLOCK_MONOTONIC) + CLOSE_WAIT_NS;
	bool done = !past;

	if (!f)
		return;
	while (f->writer && !done && history_writer_wait(f->writer, until_ns) &&
	       weir_clock_ns(CLOCK_MONOTONIC) < until_ns)
		done = past_file_save(f, past);
	if (f->writer && (!history_writer_end(f->writer, until_ns) || !done))
		weir_log(WEIR_LOG_WARN, "admin: the newest decisions were not saved in %s",
		    f->kept.path);
	kept_file_fini(&f->kept);
	free(f);
}
