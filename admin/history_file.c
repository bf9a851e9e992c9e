/* SPDX-License-Identifier: MIT */
/*
 * Reading: the whole file at once; every size is computed from the header, checked against the
 * file's, before anything is believed. Writing: with pwrite, not through a mapping, in which a full
 * disk or a file cut by somebody else would be a signal that kills the server.
 */
#include "history_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/event.h>
#include <weir/log.h>

#include "utf8.h"

#define VERSION 1
/* Above what HISTORY_SERIES_MAX stages with 8 classes take: nothing longer is read. */
#define FILE_BYTES_MAX (100 << 20)
#define NAME_MAX_BYTES 256

static const char no_memory[] = "memory ran out";
static const char magic[8] = {'W', 'E', 'I', 'R', 'H', 'I', 'S', 'T'};

struct file_head {
	char magic[8];
	uint32_t version, head_bytes; /* with the names */
	uint32_t n_stages, n_classes;
	uint32_t fields, class_fields;
	uint32_t slots[HISTORY_RINGS];
	uint64_t sum; /* of the head and the names, with this as 0 */
};

struct slot_head {
	uint64_t sum; /* of the rest of the slot; 0 in a slot that was never written */
	int64_t label;
};

struct history_file {
	int fd; /* -1: could not be replaced */
	uint64_t shape;
	size_t head_bytes, slot_bytes;
	char *slot;   /* slot_bytes */
	bool failing; /* and it has been said */
	char *path, *new_path, *bad_path;
};

static uint64_t sum_of(const void *p, size_t n)
{
	return weir_hash((struct weir_slice){p, n});
}

static size_t slot_size(uint32_t n_stages, uint32_t n_classes)
{
	size_t record = SAMPLE_FIELDS + (size_t)n_classes * SAMPLE_CLASS_FIELDS;
	size_t n = sizeof(struct slot_head) + (size_t)n_stages * record * sizeof(uint16_t);

	return (n + 7) & ~(size_t)7;
}

static size_t file_size(size_t head_bytes, size_t slot_bytes)
{
	return head_bytes + slot_bytes * (HISTORY_SLOTS_1S + HISTORY_SLOTS_10S);
}

/* ---- reading ---- */

static const char *check_head(const struct file_head *h, const char *data, size_t n)
{
	struct file_head zero = *h;

	if (memcmp(h->magic, magic, sizeof(magic)) != 0)
		return "it is no history of weir";
	if (h->version != VERSION || h->fields != SAMPLE_FIELDS ||
	    h->class_fields != SAMPLE_CLASS_FIELDS || h->slots[HISTORY_1S] != HISTORY_SLOTS_1S ||
	    h->slots[HISTORY_10S] != HISTORY_SLOTS_10S)
		return "it was written by another version";
	if (h->n_stages > HISTORY_SERIES_MAX || h->n_classes > WEIR_CLASSES_MAX ||
	    h->head_bytes < sizeof(*h) || h->head_bytes > n || h->head_bytes % 8 != 0 ||
	    n != file_size(h->head_bytes, slot_size(h->n_stages, h->n_classes)))
		return "it is cut short or longer than it says";
	zero.sum = 0;
	uint64_t sum =
	    sum_of(&zero, sizeof(zero)) ^ sum_of(data + sizeof(zero), h->head_bytes - sizeof(zero));
	return sum == h->sum ? NULL : "its beginning is damaged";
}

/* The next name of those that end at `end`; NULL: there is none. */
static const char *take_name(const char **p, const char *end)
{
	const char *name = *p;
	const char *nul = memchr(name, '\0', (size_t)(end - name));

	if (!nul || nul == name || nul - name >= NAME_MAX_BYTES)
		return NULL;
	if (!utf8_whole(name)) /* no JSON could tell it */
		return NULL;
	*p = nul + 1;
	return name;
}

/* Names into `h`, in `series[n_stages]` where each went. */
static const char *take_names(
    struct history *h, const struct file_head *head, const char *data, int *series)
{
	const char *p = data + sizeof(*head), *end = data + head->head_bytes;
	const char *class[WEIR_CLASSES_MAX];

	for (uint32_t c = 0; c < head->n_classes; c++)
		if (!(class[c] = take_name(&p, end)))
			return "its names are damaged";
	if (history_set_classes(h, class, (int)head->n_classes) != 0)
		return no_memory;
	for (uint32_t i = 0; i < head->n_stages; i++) {
		const char *name = take_name(&p, end);
		if (!name)
			return "its names are damaged";
		series[i] = history_add(h, name);
		if (series[i] < 0)
			return no_memory;
	}
	return NULL;
}

/* A record of gaps alone is a stage that was not there. */
static bool is_empty(const uint16_t *record, int n)
{
	for (int i = 0; i < n; i++)
		if (record[i] != COMPACT_NONE)
			return false;
	return true;
}

static void take_slot(
    struct history *h, enum history_ring ring, const char *slot, size_t size, const int *series)
{
	struct slot_head head;
	uint16_t record[HISTORY_RECORD_MAX];
	int n = history_record(h), n_series = history_n_series(h);
	const char *p = slot + sizeof(head);

	memcpy(&head, slot, sizeof(head));
	if (head.sum != sum_of(slot + sizeof(head.sum), size - sizeof(head.sum)) ||
	    head.label < 0 || head.label > INT64_MAX / 100)
		return;
	for (int i = 0; i < n_series; i++, p += (size_t)n * sizeof(*record)) {
		memcpy(record, p, (size_t)n * sizeof(*record));
		if (!is_empty(record, n))
			history_put(h, ring, head.label, series[i], record);
	}
}

/* NULL, or why the `n` bytes at `data` are no history. */
static const char *take_all(struct history *h, const char *data, size_t n)
{
	struct file_head head;
	int series[HISTORY_SERIES_MAX] = {0};

	if (n < sizeof(head))
		return "it is cut short";
	memcpy(&head, data, sizeof(head));
	const char *why = check_head(&head, data, n);
	if (!why)
		why = take_names(h, &head, data, series);
	if (why)
		return why;
	if (history_n_series(h) != (int)head.n_stages)
		return "its names are damaged";
	size_t size = slot_size(head.n_stages, head.n_classes);
	const char *p = data + head.head_bytes;
	for (int r = 0; r < HISTORY_RINGS; r++)
		for (int i = 0; i < history_slots(r); i++, p += size)
			take_slot(h, r, p, size, series);
	return NULL;
}

static bool read_all(int fd, char *data, size_t n)
{
	size_t have = 0;

	while (have < n) {
		ssize_t got = pread(fd, data + have, n - have, (off_t)have);
		if (got == 0 || (got < 0 && errno != EINTR))
			return false;
		have += got > 0 ? (size_t)got : 0;
	}
	return true;
}

static const char *load(int fd, uint64_t size, struct history *h)
{
	if (size > FILE_BYTES_MAX)
		return "it is too long for a history";
	char *data = malloc(size);
	const char *why = no_memory;
	if (data)
		why = read_all(fd, data, size) ? take_all(h, data, size) : "it can not be read";
	free(data);
	return why;
}

/* ---- writing ---- */

/* Say it once: again only after it worked. */
static void fails(struct history_file *f, const char *what)
{
	if (!f->failing)
		weir_log(WEIR_LOG_WARN, "admin: history file %s: %s: %s", f->path, what,
		    strerror(errno));
	f->failing = true;
}

static bool write_all(int fd, const void *data, size_t n, size_t at)
{
	const char *p = data;

	while (n > 0) {
		ssize_t put = pwrite(fd, p, n, (off_t)at);
		if (put < 0 && errno != EINTR)
			return false;
		put = put > 0 ? put : 0;
		p += put;
		at += (size_t)put;
		n -= (size_t)put;
	}
	return true;
}

static size_t slot_at(const struct history_file *f, enum history_ring ring, int64_t label)
{
	size_t slot = (size_t)(label % history_slots(ring));

	return f->head_bytes + (slot + (ring == HISTORY_1S ? 0 : HISTORY_SLOTS_1S)) * f->slot_bytes;
}

static void fill_slot(
    struct history_file *f, const struct history *h, enum history_ring ring, int64_t label)
{
	struct slot_head head = {.label = label};
	uint16_t record[HISTORY_RECORD_MAX];
	size_t n = (size_t)history_record(h) * sizeof(*record);
	char *p = f->slot + sizeof(head);

	memset(f->slot, 0, f->slot_bytes);
	for (int i = 0; i < history_n_series(h); i++, p += n) {
		history_get(h, ring, label, i, record);
		memcpy(p, record, n);
	}
	memcpy(f->slot, &head, sizeof(head));
	head.sum = sum_of(f->slot + sizeof(head.sum), f->slot_bytes - sizeof(head.sum));
	memcpy(f->slot, &head, sizeof(head));
}

/* The head with its names, NULL without memory. The caller frees it. */
static char *make_head(const struct history *h, size_t *n)
{
	int n_classes = history_n_classes(h), n_series = history_n_series(h);
	struct file_head head = {.version = VERSION,
	    .n_stages = (uint32_t)n_series,
	    .n_classes = (uint32_t)n_classes,
	    .fields = SAMPLE_FIELDS,
	    .class_fields = SAMPLE_CLASS_FIELDS,
	    .slots = {HISTORY_SLOTS_1S, HISTORY_SLOTS_10S}};
	char *data = calloc(1, sizeof(head) + (size_t)(n_classes + n_series) * NAME_MAX_BYTES + 8);

	if (!data)
		return NULL;
	char *p = data + sizeof(head);
	for (int c = 0; c < n_classes; c++)
		p = stpncpy(p, history_class_name(h, c), NAME_MAX_BYTES - 1) + 1;
	for (int i = 0; i < n_series; i++)
		p = stpncpy(p, history_name(h, i), NAME_MAX_BYTES - 1) + 1;
	*n = ((size_t)(p - data) + 7) & ~(size_t)7;
	memcpy(head.magic, magic, sizeof(magic));
	head.head_bytes = (uint32_t)*n;
	head.sum = sum_of(&head, sizeof(head)) ^ sum_of(data + sizeof(head), *n - sizeof(head));
	memcpy(data, &head, sizeof(head));
	return data;
}

/* Everything that is kept, slot by slot; what was never sampled stays zeros. */
static bool write_slots(struct history_file *f, const struct history *h, int fd)
{
	for (int r = 0; r < HISTORY_RINGS; r++) {
		int64_t newest = history_newest(h, r);
		for (int i = 0; i < history_slots(r); i++) {
			if (newest == INT64_MIN || newest - i < 0)
				break;
			fill_slot(f, h, r, newest - i);
			if (!write_all(fd, f->slot, f->slot_bytes, slot_at(f, r, newest - i)))
				return false;
		}
	}
	return true;
}

static bool reserve(int fd, size_t n)
{
	errno = posix_fallocate(fd, 0, (off_t)n);
	return errno == 0;
}

static bool fill_file(struct history_file *f, const struct history *h, int fd)
{
	char *head = make_head(h, &f->head_bytes);
	bool ok = head;

	f->slot_bytes = slot_size((uint32_t)history_n_series(h), (uint32_t)history_n_classes(h));
	free(f->slot);
	f->slot = malloc(f->slot_bytes);
	ok = ok && f->slot && ftruncate(fd, 0) == 0 && write_all(fd, head, f->head_bytes, 0) &&
	     reserve(fd, file_size(f->head_bytes, f->slot_bytes)) && write_slots(f, h, fd) &&
	     rename(f->new_path, f->path) == 0;
	free(head);
	return ok;
}

/* A whole file beside the old one, then in its place. */
static void write_anew(struct history_file *f, const struct history *h)
{
	int fd = open(f->new_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);

	bool ours = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0; /* else another server is at it */

	if (!ours || !fill_file(f, h, fd)) {
		fails(f, "it can not be written");
		if (ours)
			unlink(f->new_path);
		if (fd >= 0)
			close(fd);
		return;
	}
	if (f->fd >= 0)
		close(f->fd);
	f->fd = fd;
	f->shape = history_shape(h);
	f->failing = false;
}

void history_file_save(struct history_file *f, const struct history *h, unsigned rings)
{
	if (f->shape != history_shape(h)) {
		/* After a failure again each 10 s: a full disk may have room by then. */
		if (!f->failing || rings & 1u << HISTORY_10S)
			write_anew(f, h);
		return;
	}
	for (int r = 0; r < HISTORY_RINGS; r++) {
		if (!(rings & 1u << r))
			continue;
		int64_t label = history_newest(h, r);
		fill_slot(f, h, r, label);
		if (!write_all(f->fd, f->slot, f->slot_bytes, slot_at(f, r, label))) {
			fails(f, "a sample can not be written");
			return;
		}
	}
	f->failing = false;
}

bool history_file_failing(const struct history_file *f)
{
	return f && f->failing;
}

/* ---- life ---- */

void history_file_close(struct history_file *f)
{
	if (!f)
		return;
	if (f->fd >= 0)
		close(f->fd);
	free(f->slot);
	free(f->path);
	free(f->new_path);
	free(f->bad_path);
	free(f);
}

static struct history_file *file_new(const char *path)
{
	struct history_file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->fd = -1;
	f->shape = UINT64_MAX; /* no history has it: the first sample writes all */
	f->path = strdup(path);
	if (f->path && asprintf(&f->new_path, "%s.new", path) > 0 &&
	    asprintf(&f->bad_path, "%s.bad", path) > 0)
		return f;
	history_file_close(f);
	return NULL;
}

/* Keep what is no history aside. false: it is still there, and must not be written over. */
static bool set_aside(struct history_file *f, const char *why)
{
	if (rename(f->path, f->bad_path) != 0) {
		fails(f, why);
		return false;
	}
	weir_log(WEIR_LOG_WARN,
	    "admin: history file %s was not read: %s; it is now %s and a new one begins", f->path,
	    why, f->bad_path);
	return true;
}

/* Open and lock; a server that replaced the file in between has the new one locked. 0, or -1 when
 * it was not this file that was locked: try again. */
static int open_locked(struct history_file *f, bool *locked)
{
	struct stat ours, there;

	*locked = false;
	f->fd = open(f->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640);
	if (f->fd < 0)
		return 0;
	*locked = flock(f->fd, LOCK_EX | LOCK_NB) == 0;
	if (*locked && (fstat(f->fd, &ours) != 0 || stat(f->path, &there) != 0 ||
			   ours.st_ino != there.st_ino || ours.st_dev != there.st_dev)) {
		close(f->fd);
		f->fd = -1;
		return -1;
	}
	return 0;
}

/* Is what is open a file of ours, or was it moved out of the way? */
static bool take_file(struct history_file *f, struct history *h, bool locked)
{
	struct stat st;

	if (f->fd < 0) {
		fails(f, "it can not be opened");
		return false;
	}
	if (!locked) { /* asked once: what is free by now may be a file that was replaced */
		errno = EWOULDBLOCK;
		fails(f, "another server has it");
		return false;
	}
	if (fstat(f->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		errno = EINVAL;
		fails(f, "it is no file");
		return false;
	}
	if (st.st_size == 0)
		return true; /* just made */
	const char *why = load(f->fd, (uint64_t)st.st_size, h);
	if (why == no_memory) {
		errno = ENOMEM;
		fails(f, "it was not read");
		return false;
	}
	return !why || set_aside(f, why);
}

struct history_file *history_file_open(const char *path, struct history *h)
{
	struct history_file *f = file_new(path);
	int tries = 3;
	bool locked = false;

	if (!f)
		return NULL;
	while (open_locked(f, &locked) != 0 && --tries > 0)
		;
	if (take_file(f, h, locked))
		return f; /* locked until the first sample replaces it: stages may have changed */
	history_file_close(f);
	return NULL;
}
