/* SPDX-License-Identifier: MIT */
/*
 * The file of decisions and changes (admin/history/past_file.h).
 *
 * Input: pairs of an offset and a byte (offset in three bytes, little endian) that change a valid file of
 * a few slots; with the first byte odd, the checksums are then made right again, so that the checks
 * behind them are reached. For any file, what is loaded is bounded, in the order of ids, and has valid
 * texts; the file is refused only for its head.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "admin/history/past_format.h"
#include "admin/text/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(int cond, const char *what)
{
	if (cond)
		return;
	fprintf(stderr, "fuzz_past: %s\n", what);
	abort();
}

static struct past_decision *decisions_of(char *file)
{
	return (struct past_decision *)(void *)(file + sizeof(struct past_head));
}

static struct past_change *changes_of(char *file)
{
	return (struct past_change *)(void *)(decisions_of(file) + PAST_DECISIONS);
}

static void make_sums(char *file)
{
	struct past_decision *d = decisions_of(file);
	struct past_change *c = changes_of(file);

	for (int i = 0; i < PAST_DECISIONS; i++)
		if (d[i].sum)
			d[i].sum = past_sum(&d[i].id, sizeof(*d) - sizeof(d->sum));
	for (int i = 0; i < PAST_CHANGES; i++)
		if (c[i].sum)
			c[i].sum = past_sum(&c[i].id, sizeof(*c) - sizeof(c->sum));
}

static void make_file(char *file)
{
	struct past_head head;

	past_head(&head);
	memcpy(file, &head, sizeof(head));
	for (uint64_t id = PAST_DECISIONS; id < PAST_DECISIONS + 8; id++)
		decisions_of(file)[id % PAST_DECISIONS] = (struct past_decision){.sum = 1,
		    .id = id,
		    .wall_ns = 1,
		    .stage = "work",
		    .actor = "weir",
		    .action = "grow",
		    .rule = "because"};
	for (uint64_t id = 1; id < 8; id++)
		changes_of(file)[id] = (struct past_change){.sum = 1,
		    .id = id,
		    .wall_ns = 1,
		    .actor = "operator",
		    .what = "set",
		    .target = "work.threads.max",
		    .to = "4"};
	make_sums(file);
}

static void check_text(const char *text, size_t size)
{
	expect(memchr(text, '\0', size) != NULL, "a text does not end");
	expect(utf8_whole(text), "a text is not UTF-8");
}

static void check(const struct past *past)
{
	expect(past->n_decisions >= 0 && past->n_decisions <= PAST_DECISIONS, "too many decisions");
	expect(past->n_changes >= 0 && past->n_changes <= PAST_CHANGES, "too many changes");
	for (int i = 0; i < past->n_decisions; i++) {
		const struct weir_decision *d = &past->decision[i];
		expect(i == 0 || d->id > d[-1].id, "decisions are not in order");
		check_text(d->stage, sizeof(d->stage));
		check_text(d->rule, sizeof(d->rule));
		check_text(d->outcome_30s, sizeof(d->outcome_30s));
	}
	for (int i = 0; i < past->n_changes; i++) {
		const struct weir_change *c = &past->change[i];
		expect(i == 0 || c->id > c[-1].id, "changes are not in order");
		check_text(c->target, sizeof(c->target));
		check_text(c->to, sizeof(c->to));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct past past;
	size_t bytes = PAST_BYTES;
	int fd = memfd_create("past", MFD_CLOEXEC);

	expect(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0, "no memory");
	char *file = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	expect(file != MAP_FAILED, "no memory");
	make_file(file);
	bool head = false, right = size > 0 && data[0] & 1;
	for (size_t i = 1; i + 3 < size; i += 4) {
		size_t at =
		    (data[i] | (size_t)data[i + 1] << 8 | (size_t)data[i + 2] << 16) % bytes;
		head |= at < sizeof(struct past_head) && file[at] != (char)data[i + 3];
		file[at] = (char)data[i + 3];
	}
	if (right)
		make_sums(file);
	past.n_decisions = past.n_changes = 0;
	const char *why = past_load(fd, bytes, &past);
	expect(head || !why, "a good head was refused");
	check(&past);
	expect(past_load(fd, bytes - 1, &past) != NULL, "a short file was taken");
	munmap(file, bytes);
	close(fd);
	return 0;
}
