/* SPDX-License-Identifier: MIT */
/*
 * Builds the lines of a crash report; see crash_line.h.
 *
 * The object of a frame (the executable or a library) is looked up in /proc/self/maps. The dynamic
 * loader is not asked, since its lock may be held. Since glibc 2.35, backtrace() acquires no lock
 * once libgcc has been loaded.
 */
#include "crash_line.h"

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define FRAMES_MAX 48
#define NAME_BYTES 48

struct frame {
	uintptr_t pc;
	uintptr_t offset;      /* within the object */
	char name[NAME_BYTES]; /* of the object, "" if unknown */
};

/* ---- lines ---- */

void crash_append(struct crash_line *line, const char *text)
{
	size_t n = strlen(text);
	size_t room = sizeof(line->text) - 1 - line->n; /* reserve space for the newline */

	n = n < room ? n : room;
	memcpy(line->text + line->n, text, n);
	line->n += n;
}

void crash_append_foreign(struct crash_line *line, const char *text)
{
	size_t from = line->n;

	crash_append(line, text);
	for (size_t i = from; i < line->n; i++)
		if (line->text[i] < ' ' || line->text[i] > '~')
			line->text[i] = '?';
}

void crash_write(struct crash_line *line)
{
	line->text[line->n++] = '\n';
	ssize_t n = write(STDERR_FILENO, line->text, line->n);

	(void)n; /* a failure is ignored: stderr may be closed, and nothing else can be done */
	line->n = 0;
}

static void append_number(struct crash_line *line, uintptr_t number, unsigned base)
{
	char text[24];
	size_t at = sizeof(text);

	text[--at] = '\0';
	do {
		text[--at] = "0123456789abcdef"[number % base];
		number /= base;
	} while (number > 0);
	crash_append(line, text + at);
}

/* ---- objects ---- */

/* Parse a hexadecimal number and advance *p past it. */
static uintptr_t take_hex(const char **p)
{
	uintptr_t number = 0;

	for (;; (*p)++) {
		char c = **p;
		if (c >= '0' && c <= '9')
			number = number * 16 + (uintptr_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			number = number * 16 + (uintptr_t)(c - 'a' + 10);
		else
			return number;
	}
}

/* Copy the short name of an object: "weir" for "/usr/bin/weir", "upper.so" for "/memfd:upper.so
 * (deleted)". */
static void object_name(const char *path, char name[NAME_BYTES])
{
	static const char memory[] = "memfd:";
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

	if (strncmp(base, memory, sizeof(memory) - 1) == 0)
		base += sizeof(memory) - 1;
	size_t n = strcspn(base, " ");
	n = n < NAME_BYTES - 1 ? n : NAME_BYTES - 1;
	memcpy(name, base, n);
	name[n] = '\0';
}

/* Parse a line of /proc/self/maps such as "55d0c0a00000-55d0c0b00000 r-xp 00002000 08:01 1234
 * /usr/bin/weir", and fill in the frames that are in this mapping. An object has several mappings,
 * one after the other; *base is the start of the first one of the current object. */
static void read_mapping(const char *line, uintptr_t *base, struct frame *frame, int n)
{
	const char *p = line;
	uintptr_t from = take_hex(&p);
	uintptr_t to = *p == '-' ? (p++, take_hex(&p)) : 0;
	const char *path = strchr(line, '/');

	p += strcspn(p + (*p == ' '), " ") + (*p == ' '); /* skip the permissions */
	p += *p == ' ';
	uintptr_t offset = take_hex(&p);
	if (path && offset == 0)
		*base = from;
	for (int i = 0; path && i < n; i++)
		if (frame[i].pc >= from && frame[i].pc < to) {
			frame[i].offset = frame[i].pc - *base;
			object_name(path, frame[i].name);
		}
}

/* Fill in the objects of frame[0..n). */
static void find_objects(struct frame *frame, int n)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	char part[1024], line[512];
	size_t used = 0;
	uintptr_t base = 0;
	ssize_t got;

	while (fd != -1 && (got = read(fd, part, sizeof(part))) > 0)
		for (ssize_t i = 0; i < got; i++) {
			if (part[i] != '\n') {
				line[used] = part[i];
				/* the end of a line that is too long is dropped */
				used += used < sizeof(line) - 1;
				continue;
			}
			line[used] = '\0';
			read_mapping(line, &base, frame, n);
			used = 0;
		}
	if (fd != -1)
		close(fd);
}

/* ---- the stack ---- */

void crash_stack_prepare(void)
{
	void *one[1];

	backtrace(one, 1);
}

static void write_frame(const struct frame *f, int i)
{
	struct crash_line line = {.n = 0};

	crash_append(&line, "weir:   #");
	append_number(&line, (uintptr_t)i, 10);
	crash_append(&line, " ");
	crash_append_foreign(&line, f->name);
	crash_append(&line, f->name[0] ? "(+0x" : "0x");
	append_number(&line, f->name[0] ? f->offset : f->pc, 16);
	crash_append(&line, f->name[0] ? ")" : "");
	crash_write(&line);
}

/* Walk the stack and store the frames from the one at `pc` on. The frames before it belong to the
 * handler. Returns the number of frames stored. */
static int walk(uintptr_t pc, struct frame frame[FRAMES_MAX])
{
	void *at[FRAMES_MAX];
	int all = backtrace(at, FRAMES_MAX), first = 0, n = 0;

	while (first < all && (uintptr_t)at[first] != pc)
		first++;
	/* the walk did not reach `pc`, for example because the code jumped to an invalid address */
	if (first == all) {
		frame[n++] = (struct frame){.pc = pc};
		first = 0;
	}
	while (first < all && n < FRAMES_MAX)
		frame[n++] = (struct frame){.pc = (uintptr_t)at[first++]};
	return n;
}

void crash_stack_write(uintptr_t pc)
{
	struct frame frame[FRAMES_MAX];
	int saved = errno, n = walk(pc, frame);

	find_objects(frame, n);
	for (int i = 0; i < n; i++)
		write_frame(&frame[i], i);
	errno = saved;
}
