/* SPDX-License-Identifier: MIT */
/* Reads send times from files, or takes them from logs; see trace.h. */
#include "load/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load/lines.h"
#include "load/sentence.h"

/* Maximum number of send times. 10^8 is a guess: 0.8 GB, or half a day at 2000 per s. */
#define TIMES_MAX 100000000

/* Size of the buffer for a time; longer texts are not times. */
#define TIME_BYTES 64

/* digits of a second after the decimal point, for ns; further ones are dropped */
#define SECOND_DIGITS 9

int load_trace_time(const char *text, int64_t *at_ns, struct weir_err *err)
{
	size_t n = strcspn(text, " \t"), plain = strspn(text, "0123456789.");
	const char *point = strchr(text, '.');
	char word[TIME_BYTES];

	if (text[n + strspn(text + n, " \t")] != '\0' || n >= TIME_BYTES - 1)
		return sentence(
		    err, WEIR_EINVAL, "'%.60s' is not a time like 0.0125 or 12ms", text);
	if (plain == n && point && n > (size_t)(point - text) + 1 + SECOND_DIGITS)
		n = (size_t)(point - text) + 1 + SECOND_DIGITS;
	snprintf(word, sizeof(word), "%.*s%s", (int)n, text, plain > 0 && plain >= n ? "s" : "");
	return sentence_duration(word, at_ns, err);
}

struct times {
	int64_t *ns;
	size_t n, room;
};

static int times_add(struct times *t, int64_t ns)
{
	if (t->n == t->room) {
		size_t room = t->room ? t->room * 2 : 1024;
		int64_t *more = realloc(t->ns, room * sizeof(*more));
		if (!more)
			return WEIR_ENOMEM;
		t->ns = more;
		t->room = room;
	}
	t->ns[t->n++] = ns;
	return 0;
}

static int add_line(struct times *t, const struct lines *l, struct weir_err *err)
{
	int64_t ns = 0;
	struct weir_err why = {0};

	if (load_trace_time(l->text, &ns, &why) != 0)
		return lines_refuse(l, why.text, err);
	if (t->n > 0 && ns < t->ns[t->n - 1])
		return lines_refuse(l, "the time is earlier than that of the previous line", err);
	if (t->n == TIMES_MAX)
		return lines_refuse(l, "the file has more than 100 million times", err);
	return times_add(t, ns) == 0 ? 0 : sentence_nomem(err);
}

static void replace(struct load_plan *plan, const struct times *t)
{
	free(plan->trace_ns);
	plan->trace_ns = t->ns;
	plan->n_trace = t->n;
}

int load_trace_read(struct load_plan *plan, const char *file, struct weir_err *err)
{
	struct times t = {0};
	struct lines l;
	int more;

	int rc = lines_open(&l, file, err);
	if (rc != 0)
		return rc;
	while (rc == 0 && (more = lines_next(&l, err)) != 0)
		rc = more < 0 ? more : add_line(&t, &l, err);
	lines_close(&l);
	if (rc == 0 && t.n == 0)
		rc = sentence(err, WEIR_EINVAL, "%.180s has no send time", file);
	if (rc == 0)
		replace(plan, &t);
	else
		free(t.ns);
	return rc;
}

int load_trace_replay(
    struct load_plan *plan, const struct load_class *cls, double speed, struct weir_err *err)
{
	struct times t = {0};

	for (int i = 0; i < cls->n_requests; i++) {
		double ns = (double)cls->request[i].at_ns / speed;
		bool backwards = t.n > 0 && ns < (double)t.ns[t.n - 1];
		if (!(ns >= 0 && ns < 0x1p62) || backwards) {
			free(t.ns);
			return sentence(err, WEIR_EINVAL,
			    "request %d of class '%.31s' has no time, a time of more than 146 "
			    "years, or one before that of the previous request",
			    i + 1, cls->name);
		}
		if (times_add(&t, (int64_t)ns) != 0) {
			free(t.ns);
			return sentence_nomem(err);
		}
	}
	replace(plan, &t);
	return 0;
}
