/* SPDX-License-Identifier: MIT */
/* Assigns events to traces, and reads and writes the W3C trace context; see weir/trace.h. */
#include <weir/trace.h>

#include <endian.h>
#include <string.h>

#include <weir/random.h>

#include "trace/trail.h"
#include "trace/trail_tap.h"

/* ---- text ---- */

/* Read `n` lower-case hex digits at `p`. Returns false if another character is among them. */
static bool read_hex(const char *p, int n, uint64_t *out)
{
	uint64_t v = 0;

	for (int i = 0; i < n; i++) {
		if (p[i] >= '0' && p[i] <= '9')
			v = v << 4 | (uint64_t)(p[i] - '0');
		else if (p[i] >= 'a' && p[i] <= 'f')
			v = v << 4 | (uint64_t)(p[i] - 'a' + 10);
		else
			return false;
	}
	*out = v;
	return true;
}

/* The eight lowest digits of `v`, the highest first: its nibbles are spread to bytes, and each is made a
 * character. Costs 20 instructions; all of a traceparent took 410 digit by digit. */
static void put_hex8(char *at, uint64_t v)
{
	v &= UINT32_MAX;
	v = (v | v << 16) & 0x0000ffff0000ffff;
	v = (v | v << 8) & 0x00ff00ff00ff00ff;
	v = (v | v << 4) & 0x0f0f0f0f0f0f0f0f;
	uint64_t letters = ((v + 0x0606060606060606) >> 4) & 0x0101010101010101;
	v += 0x3030303030303030 + letters * ('a' - '0' - 10);
	v = htobe64(v);
	memcpy(at, &v, sizeof(v));
}

static char *put_hex(char *at, int n, uint64_t v)
{
	if (n == 16) {
		put_hex8(at, v >> 32);
		put_hex8(at + 8, v);
		return at + n;
	}
	for (int i = n; i-- > 0; v >>= 4)
		at[i] = "0123456789abcdef"[v & 15];
	return at + n;
}

bool weir_traceparent_read(struct weir_slice s, struct weir_trace *trace)
{
	const char *p = s.p;
	struct weir_trace t = {0};
	uint64_t version, flags;

	if (s.n < 55 || !read_hex(p, 2, &version) || version == 0xff)
		return false;
	if (s.n > 55 && (version == 0 || p[55] != '-'))
		return false;
	if (p[2] != '-' || p[35] != '-' || p[52] != '-' || !read_hex(p + 3, 16, &t.id[0]) ||
	    !read_hex(p + 19, 16, &t.id[1]) || !read_hex(p + 36, 16, &t.parent) ||
	    !read_hex(p + 53, 2, &flags))
		return false;
	if ((t.id[0] | t.id[1]) == 0 || t.parent == 0)
		return false;
	t.sampled = flags & 1;
	*trace = t;
	return true;
}

void weir_traceparent_print(const struct weir_trace *t, char buf[WEIR_TRACEPARENT_BYTES])
{
	char *at = buf;

	*at++ = '0';
	*at++ = '0';
	*at++ = '-';
	at = put_hex(at, 16, t->id[0]);
	at = put_hex(at, 16, t->id[1]);
	*at++ = '-';
	at = put_hex(at, 16, t->span);
	*at++ = '-';
	at = put_hex(at, 2, t->sampled);
	*at = '\0';
}

void weir_trace_id_print(const struct weir_trace *t, char buf[WEIR_TRACE_ID_BYTES])
{
	char *at = buf;

	if (t->id[0] | t->id[1])
		at = put_hex(put_hex(at, 16, t->id[0]), 16, t->id[1]);
	*at = '\0';
}

/* ---- events ---- */

void trace_make(struct weir_trail *t, uint64_t sample_below)
{
	if (!t->traced) {
		uint64_t low = random_u64();
		t->trace =
		    (struct weir_trace){.id = {random_id(), low}, .sampled = low < sample_below};
		t->traced = true;
	}
	if (t->trace.span == 0)
		t->trace.span = random_id();
}

uint64_t trace_hop_span(const struct weir_trace *trace, int hop)
{
	uint64_t span = weir_random_at(trace->span, (uint64_t)hop);

	return span ? span : 1;
}

void weir_event_trace_set(struct weir_event *ev, const struct weir_trace *trace)
{
	if (!ev->type->trail)
		return;
	struct weir_trail *t = trail_of(ev);
	t->trace = *trace;
	t->trace.span = 0;
	t->traced = true;
}

bool weir_event_traced(const struct weir_event *ev, struct weir_trace *trace)
{
	if (!ev->type->trail)
		return false;
	const struct weir_trail *t =
	    (const struct weir_trail *)((const char *)ev + ev->type->trail);
	if (t->traced && trace)
		*trace = t->trace;
	return t->traced;
}

void trace_event(struct weir_event *ev, struct slowest *slowest, struct weir_trace *trace)
{
	struct weir_trail *t = trail_of(ev);

	trace_make(t, slowest ? collect_below(slowest_taps(slowest)) : 0);
	*trace = t->trace;
	if (t->n_hops > 0 && t->n_hops <= WEIR_TRAIL_HOPS)
		trace->span = trace_hop_span(&t->trace, t->n_hops - 1);
}
