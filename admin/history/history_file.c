/* SPDX-License-Identifier: MIT */
/*
 * Saves the history to a file; see history_file.h. This module copies new data out of the history,
 * and the thread of the writer (history_writer.h) writes the data. Steps that were not written
 * while the writer was busy are still in the history, so the next job writes them. history_load.c
 * reads the file.
 *
 * States: while the writer is idle, `there` describes the file. post() starts a job and stores in
 * `coming` the layout and contents that the file will have after the job. settle() copies `coming`
 * to `there` once the job has succeeded. All functions are called by one thread, that of the owner.
 */
#include "history_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/clock.h>
#include <weir/log.h>

#include "history_format.h"
#include "history_writer.h"
#include "kept_file.h"

/* Saves are attempted once a second. When LAG_MAX consecutive ones have found the writer busy, the
 * delay is logged and an alert is raised. 10 is a guess. */
#define LAG_MAX 10
/* Time that a stopping server waits for the last write. 1 s is a guess: a working disk takes far
 * less. */
#define CLOSE_WAIT_NS 1000000000LL

/** The layout and contents of a file. */
struct layout {
	uint64_t shape; /* history_shape */
	size_t head_bytes, slot_bytes;
	int64_t saved[HISTORY_RINGS]; /* newest label in the file */
};

struct history_file {
	struct kept_file kept; /* its descriptor is used during loading; then the writer owns it */
	struct history_writer *writer;
	/* `there` describes the current file, `coming` the file after the job in progress */
	struct layout there, coming;
	bool posted; /* a job is in progress */
	bool failed; /* the last job failed */
	int lag;     /* consecutive saves that found the writer busy */
};

/* ---- writing ---- */

static size_t slot_at(const struct layout *l, enum history_ring ring, int64_t label)
{
	size_t slot = (size_t)(label % history_slots(ring));

	return l->head_bytes + (slot + (ring == HISTORY_1S ? 0 : HISTORY_SLOTS_1S)) * l->slot_bytes;
}

/* Write the slot of `label` to `to`, which must be zeroed. */
static void fill_slot(const struct layout *l, const struct history *h, enum history_ring ring,
    int64_t label, char *to)
{
	struct history_slot_head head = {.label = label};
	uint16_t record[HISTORY_RECORD_MAX];
	size_t n = (size_t)history_record(h) * sizeof(*record);
	char *p = to + sizeof(head);

	for (int i = 0; i < history_n_series(h); i++, p += n) {
		history_get(h, ring, label, i, record);
		memcpy(p, record, n);
	}
	memcpy(to, &head, sizeof(head));
	head.sum = history_sum(to + sizeof(head.sum), l->slot_bytes - sizeof(head.sum));
	memcpy(to, &head, sizeof(head));
}

/* Build the file header with its names. Returns NULL if out of memory. The caller frees it. */
static char *make_head(const struct history *h, size_t *n)
{
	int n_classes = history_n_classes(h), n_series = history_n_series(h);
	struct history_head head = {.version = HISTORY_VERSION,
	    .n_stages = (uint32_t)n_series,
	    .n_classes = (uint32_t)n_classes,
	    .fields = SAMPLE_FIELDS,
	    .class_fields = SAMPLE_CLASS_FIELDS,
	    .slots = {HISTORY_SLOTS_1S, HISTORY_SLOTS_10S}};
	char *data =
	    calloc(1, sizeof(head) + (size_t)(n_classes + n_series) * HISTORY_NAME_MAX + 8);

	if (!data)
		return NULL;
	char *p = data + sizeof(head);
	for (int c = 0; c < n_classes; c++)
		p = stpncpy(p, history_class_name(h, c), HISTORY_NAME_MAX - 1) + 1;
	for (int i = 0; i < n_series; i++)
		p = stpncpy(p, history_name(h, i), HISTORY_NAME_MAX - 1) + 1;
	*n = ((size_t)(p - data) + 7) & ~(size_t)7;
	memcpy(head.magic, HISTORY_MAGIC, sizeof(head.magic));
	head.head_bytes = (uint32_t)*n;
	head.sum =
	    history_sum(&head, sizeof(head)) ^ history_sum(data + sizeof(head), *n - sizeof(head));
	memcpy(data, &head, sizeof(head));
	return data;
}

/* Write all slots of `ring` to `file`; slots that were never sampled stay zero. */
static void fill_ring(
    const struct layout *l, const struct history *h, enum history_ring ring, char *file)
{
	int64_t newest = history_newest(h, ring);

	for (int i = 0; i < history_slots(ring) && newest != INT64_MIN && newest >= i; i++)
		fill_slot(l, h, ring, newest - i, file + slot_at(l, ring, newest - i));
}

/* Build the whole file and fill in `l`. Returns false if out of memory. */
static bool make_whole(const struct history *h, struct layout *l, struct history_job *job)
{
	char *head = make_head(h, &l->head_bytes);

	l->slot_bytes =
	    history_slot_size((uint32_t)history_n_series(h), (uint32_t)history_n_classes(h));
	l->shape = history_shape(h);
	job->whole = true;
	job->n = head ? history_file_size(l->head_bytes, l->slot_bytes) : 0;
	job->data = head ? calloc(1, job->n) : NULL;
	if (job->data) {
		memcpy(job->data, head, l->head_bytes);
		for (int r = 0; r < HISTORY_RINGS; r++)
			fill_ring(l, h, r, job->data);
	}
	free(head);
	return job->data;
}

/* Return the first label of `ring` that is missing in the file, or newest + 1 if none is
 * missing. */
static int64_t first_unsaved(
    const struct layout *l, const struct history *h, enum history_ring ring)
{
	int64_t newest = history_newest(h, ring), saved = l->saved[ring];

	if (newest < 0 || newest == saved) /* no sample at all, or nothing new */
		return newest < 0 ? 0 : newest + 1;
	if (newest < saved) /* the clock was set back: the later labels will be written again */
		return newest;
	if (saved < newest - history_slots(ring))
		saved = newest - history_slots(ring);
	return saved < 0 ? 0 : saved + 1;
}

static int64_t n_unsaved(const struct layout *l, const struct history *h, enum history_ring ring)
{
	int64_t newest = history_newest(h, ring);

	return newest < 0 ? 0 : newest + 1 - first_unsaved(l, h, ring);
}

/* Append the slots of `ring` that are missing in the file to `job`. */
static void add_slots(const struct layout *l, const struct history *h, enum history_ring ring,
    struct history_job *job)
{
	int64_t label = first_unsaved(l, h, ring), left = n_unsaved(l, h, ring);

	for (size_t end = 0; left > 0; label++, left--) {
		size_t at = slot_at(l, ring, label);
		if (at != end) /* the first slot, or the ring has wrapped around */
			job->run[job->n_runs++] = (struct history_run){.at = at};
		fill_slot(l, h, ring, label, job->data + job->n);
		job->run[job->n_runs - 1].n += l->slot_bytes;
		job->n += l->slot_bytes;
		end = at + l->slot_bytes;
	}
}

static bool make_slots(const struct layout *l, const struct history *h, struct history_job *job)
{
	int64_t n = 0;

	for (int r = 0; r < HISTORY_RINGS; r++)
		n += n_unsaved(l, h, r);
	job->data = n > 0 ? calloc((size_t)n, l->slot_bytes) : NULL;
	for (int r = 0; job->data && r < HISTORY_RINGS; r++)
		add_slots(l, h, r, job);
	return job->data;
}

static bool has_news(const struct history_file *f, const struct history *h)
{
	return n_unsaved(&f->there, h, HISTORY_1S) > 0 || n_unsaved(&f->there, h, HISTORY_10S) > 0;
}

/* Start a job that writes the steps missing from the file. */
static void post(struct history_file *f, const struct history *h)
{
	struct history_job job = {0};
	bool whole = f->there.shape != history_shape(h);

	f->coming = f->there;
	if (!(whole ? make_whole(h, &f->coming, &job) : make_slots(&f->coming, h, &job)))
		return; /* out of memory: the next save includes these steps */
	for (int r = 0; r < HISTORY_RINGS; r++)
		f->coming.saved[r] = history_newest(h, r);
	f->posted = true;
	history_writer_post(f->writer, &job);
}

/* Return whether the writer is idle. If so, take the result of its last job. */
static bool settle(struct history_file *f)
{
	bool ok;

	if (!history_writer_idle(f->writer, &ok))
		return false;
	if (f->posted && ok)
		f->there = f->coming;
	f->posted = false;
	f->failed = !ok;
	f->lag = 0;
	return true;
}

void history_file_save(struct history_file *f, const struct history *h, unsigned rings)
{
	if (!settle(f)) {
		if (++f->lag == LAG_MAX)
			history_writer_late(f->writer);
		return;
	}
	/* When stages have changed, a whole new file is written. If the last write failed, this is
	 * tried only every 10 s: by then a full disk may have space again. */
	bool tries = f->there.shape == history_shape(h) || !f->failed || rings & 1u << HISTORY_10S;
	if (tries && has_news(f, h))
		post(f, h);
}

void history_file_wait(struct history_file *f)
{
	history_writer_wait(f->writer, INT64_MAX);
}

bool history_file_failing(const struct history_file *f)
{
	return f && history_writer_failing(f->writer);
}

/* ---- open and close ---- */

/* Write the missing part of `h`. Returns whether all of it is in the file by `until_ns`. */
static bool flush(struct history_file *f, const struct history *h, int64_t until_ns)
{
	history_writer_wait(f->writer, until_ns);
	if (!settle(f))
		return false;
	if (!h || !has_news(f, h))
		return !f->failed;
	post(f, h);
	history_writer_wait(f->writer, until_ns);
	return settle(f) && !f->failed && !has_news(f, h);
}

void history_file_close(struct history_file *f, const struct history *h)
{
	int64_t until_ns = weir_clock_ns(CLOCK_MONOTONIC) + CLOSE_WAIT_NS;

	if (!f)
		return;
	if (f->writer) {
		bool whole = flush(f, h, until_ns);
		if (!history_writer_end(f->writer, until_ns) || !whole)
			weir_log(WEIR_LOG_WARN,
			    "admin: the newest part of the history was not saved in %s",
			    f->kept.path);
	}
	kept_file_fini(&f->kept);
	free(f);
}

static bool start_writer(struct history_file *f, const struct history *h)
{
	for (int r = 0; r < HISTORY_RINGS; r++)
		f->there.saved[r] = history_newest(h, r);
	f->writer = history_writer_new(f->kept.path, f->kept.fd);
	if (!f->writer) {
		kept_file_fails(&f->kept, "there is no thread or memory to write it");
		return false;
	}
	f->kept.fd = -1;
	return true;
}

static const char *load(int fd, uint64_t size, void *history)
{
	return history_load(fd, size, history);
}

struct history_file *history_file_open(const char *path, struct history *h)
{
	struct history_file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	/* never equal to a real shape, so the first save writes the whole file */
	f->there.shape = UINT64_MAX;
	if (kept_file_open(&f->kept, path, load, h) && start_writer(f, h))
		/* The first save replaces the whole file, since stages may have changed. Until then
		 * the file stays locked. */
		return f;
	history_file_close(f, NULL);
	return NULL;
}
