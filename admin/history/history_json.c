/* SPDX-License-Identifier: MIT */
/*
 * Formats a range of the history rings as JSON text. The dashboard requests half a million numbers
 * at a time, all formatted by the admin thread. Columns are therefore formatted by number_format.h,
 * which is ten times as fast as jansson; names are formatted by jansson.
 */
#include "history_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "admin/text/number_format.h"
#include "admin/text/textbuf.h"

#define STAGE_MAX 128
/* Limit of times in a query, in seconds: Unix time in the year 5138, or that many seconds before
 * now. */
#define TIME_MAX 1e11

struct asked {
	enum history_ring ring;
	double from, to; /* Unix seconds */
	char stage[STAGE_MAX];
};

/* ---- the query ---- */

struct param {
	const char *p; /* NULL if not given */
	size_t n;
};
enum { PARAM_FROM, PARAM_TO, PARAM_STEP, PARAM_STAGE, PARAMS };
static const char *const param_name[PARAMS] = {"from", "to", "step", "stage"};

/* Parse "name=value" in p[n]. Returns false for an unknown or repeated parameter. */
static bool take_param(struct param param[PARAMS], const char *p, size_t n)
{
	for (int i = 0; i < PARAMS; i++) {
		size_t name = strlen(param_name[i]);
		if (n <= name || strncmp(p, param_name[i], name) != 0 || p[name] != '=')
			continue;
		if (param[i].p)
			return false;
		param[i] = (struct param){p + name + 1, n - name - 1};
		return true;
	}
	return false;
}

static bool take_query(struct param param[PARAMS], const char *query, struct reply *r)
{
	while (*query) {
		size_t n = strcspn(query, "&");
		if (n > 0 && !take_param(param, query, n)) {
			reply_problem(r, 400,
			    "'%.*s' is not a parameter here or is given twice: from=, to=, step= "
			    "and stage= are accepted once each",
			    n < 60 ? (int)n : 60, query);
			return false;
		}
		query += n + (query[n] == '&');
	}
	return true;
}

static bool is_word(struct param p, const char *word)
{
	return p.n == strlen(word) && memcmp(p.p, word, p.n) == 0;
}

static bool take_step(struct param p, enum history_ring *ring, struct reply *r)
{
	*ring = p.p && is_word(p, "10s") ? HISTORY_10S : HISTORY_1S;
	if (!p.p || is_word(p, "1s") || is_word(p, "10s"))
		return true;
	reply_problem(r, 400, "step must be 1s (15 minutes are kept) or 10s (6 hours are kept)");
	return false;
}

static bool take_time(
    const char *name, struct param p, double now_s, int kept_s, double *at, struct reply *r)
{
	char text[32], *end = text;

	if (!p.p)
		return true;
	if (p.n < sizeof(text) && strspn(p.p, "-.0123456789") >= p.n) {
		memcpy(text, p.p, p.n);
		text[p.n] = '\0';
		double v = strtod(text, &end);
		*at = v < 0 ? now_s + v : v;
		if (end > text && *end == '\0' && fabs(v) <= TIME_MAX)
			return true;
	}
	reply_problem(r, 400,
	    "'%s' must be a Unix time in seconds, or a negative number of seconds relative to now, "
	    "-%d to -1",
	    name, kept_s);
	return false;
}

static bool take_asked(const char *query, double now_s, struct asked *a, struct reply *r)
{
	struct param param[PARAMS] = {0};

	if (!take_query(param, query, r) || !take_step(param[PARAM_STEP], &a->ring, r))
		return false;
	int kept_s = history_step_s(a->ring) * history_slots(a->ring);
	a->from = now_s - kept_s;
	a->to = now_s;
	if (!take_time("from", param[PARAM_FROM], now_s, kept_s, &a->from, r) ||
	    !take_time("to", param[PARAM_TO], now_s, kept_s, &a->to, r))
		return false;
	if (a->from > a->to) {
		reply_problem(
		    r, 400, "'from' is later than 'to'; the history covers the last %d s", kept_s);
		return false;
	}
	size_t n = param[PARAM_STAGE].n;
	if (n >= sizeof(a->stage)) {
		reply_problem(r, 404, "no stage has a name this long");
		return false;
	}
	if (n)
		memcpy(a->stage, param[PARAM_STAGE].p, n);
	a->stage[n] = '\0';
	return true;
}

/* ---- the response ---- */

/* The part of the requested range that exists: `n` labels, `first`, `first` + 1, ... */
struct stretch {
	enum history_ring ring;
	int64_t first;
	int n;
};

static struct stretch stretch_of(const struct history *h, const struct asked *a)
{
	int step_s = history_step_s(a->ring), n = history_slots(a->ring);
	int64_t newest = history_newest(h, a->ring);
	int64_t last = (int64_t)floor(a->to / step_s);
	struct stretch s = {.ring = a->ring, .first = (int64_t)ceil(a->from / step_s)};

	if (newest == INT64_MIN)
		return s;
	if (s.first < newest - n + 1)
		s.first = newest - n + 1;
	if (last > newest)
		last = newest;
	s.n = last >= s.first ? (int)(last - s.first + 1) : 0;
	return s;
}

static void put_text(struct textbuf *t, const char *text)
{
	textbuf_append(t, text, strlen(text));
}

/* Append a name as a JSON string. */
static void put_name(struct textbuf *t, const char *name)
{
	json_t *string = json_string(name);
	char *text = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;

	json_decref(string);
	if (text) {
		put_text(t, text);
	} else {
		textbuf_fini(t);
		t->failed = true;
	}
	free(text);
}

static void put_column(const struct history *h, struct textbuf *t, struct stretch s, int series,
    int field, const char *name)
{
	uint16_t code[HISTORY_SLOTS_10S];
	char number[NUMBER_MAX + 1];

	textbuf_printf(t, "\"%s\":[", name);
	history_column(h, s.ring, series, field, s.first, s.n, code);
	for (int i = 0; i < s.n; i++) {
		size_t n = 0;
		if (i > 0)
			number[n++] = ',';
		n += number_print(number + n, compact_unpack(code[i]));
		textbuf_append(t, number, n);
	}
	put_text(t, "]");
}

static void put_classes(const struct history *h, struct textbuf *t, struct stretch s, int series)
{
	put_text(t, ",\"classes\":[");
	for (int c = 0; c < history_n_classes(h); c++) {
		put_text(t, c ? ",{" : "{");
		for (int f = 0; f < SAMPLE_CLASS_FIELDS; f++) {
			put_text(t, f ? "," : "");
			put_column(h, t, s, series, SAMPLE_FIELDS + c * SAMPLE_CLASS_FIELDS + f,
			    sample_class_field_name[f]);
		}
		put_text(t, "}");
	}
	put_text(t, "]");
}

static void put_series(
    const struct history *h, struct textbuf *t, struct stretch s, int series, bool whole)
{
	bool first = true;

	put_name(t, history_name(h, series));
	put_text(t, ":{");
	for (int f = 0; f < SAMPLE_FIELDS; f++) {
		if (!whole && !sample_field_brief[f])
			continue;
		put_text(t, first ? "" : ",");
		put_column(h, t, s, series, f, sample_field_name[f]);
		first = false;
	}
	if (whole)
		put_classes(h, t, s, series);
	put_text(t, "}");
}

static void put_head(const struct history *h, struct textbuf *t, struct stretch s)
{
	int step_s = history_step_s(s.ring);
	long long first_s = (long long)s.first * step_s;

	textbuf_printf(t, "{\"step\":%d,\"from\":%lld,\"to\":%lld,\"at\":[", step_s, first_s,
	    s.n ? first_s + (long long)(s.n - 1) * step_s : first_s);
	for (int i = 0; i < s.n; i++)
		textbuf_printf(t, "%s%lld", i ? "," : "", first_s + (long long)i * step_s);
	put_text(t, "],\"classes\":[");
	for (int c = 0; c < history_n_classes(h); c++) {
		put_text(t, c ? "," : "");
		put_name(t, history_class_name(h, c));
	}
	put_text(t, "],\"stages\":{");
}

void history_json(const struct history *h, const char *query, double now_s, struct reply *r)
{
	struct asked asked = {0};
	struct textbuf t = {0};
	size_t n;

	if (!take_asked(query, now_s, &asked, r))
		return;
	int only = asked.stage[0] ? history_find(h, asked.stage) : -1;
	if (asked.stage[0] && only < 0) {
		reply_problem(r, 404, "there is no history of stage '%s'", asked.stage);
		return;
	}
	struct stretch s = stretch_of(h, &asked);
	put_head(h, &t, s);
	for (int i = 0, put = 0; i < history_n_series(h); i++) {
		if (only >= 0 && i != only)
			continue;
		put_text(&t, put++ ? "," : "");
		put_series(h, &t, s, i, only >= 0);
	}
	put_text(&t, "}}\n");
	char *body = textbuf_take(&t, &n);
	reply_text(r, 200, "application/json", body, n);
}
