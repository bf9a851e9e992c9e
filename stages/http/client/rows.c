/* SPDX-License-Identifier: MIT */
/*
 * What is counted for each address of an origin, by all loops together, and the table that the admin endpoint
 * shows of it (weir/rows.h).
 *
 * The time to the first byte is counted in steps of a third of an octave from 1 us to 18 minutes; a
 * quantile is the upper end of its step, so at most 26 % too long.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weir/rows.h>

#include "http/client/client_calls.h"

static void add(atomic_int_fast64_t *count, int64_t n)
{
	atomic_fetch_add_explicit(count, n, memory_order_relaxed);
}

static double get(const atomic_int_fast64_t *count)
{
	return (double)atomic_load_explicit(count, memory_order_relaxed);
}

void rows_asked(struct origin *o)
{
	if (!o->asked)
		add(&o->shared->asked, 1);
	o->asked = true;
	add(&o->shared->requests, 1);
	add(&o->shared->busy, 1);
}

void rows_forget(struct origin *o)
{
	if (o->asked)
		add(&o->shared->asked, -1);
	o->asked = false;
}

void rows_over(struct origin *o)
{
	add(&o->shared->busy, -1);
}

void rows_first_byte(struct origin *o, int64_t ns)
{
	int step = ns > 1000 ? (int)(log2((double)ns / 1000) * CLIENT_STEPS_OCTAVE) + 1 : 0;

	step = step < CLIENT_STEPS ? step : CLIENT_STEPS - 1;
	atomic_fetch_add_explicit(&o->shared->first_byte[step], 1, memory_order_relaxed);
}

void rows_failed(struct origin *o, const char *why)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	add(&o->shared->failures, 1);
	atomic_store_explicit(&o->shared->last_why, why, memory_order_relaxed);
	atomic_store_explicit(&o->shared->last_s, now.tv_sec, memory_order_relaxed);
}

void rows_retried(struct origin *o)
{
	add(&o->shared->retries, 1);
}

void rows_out(struct origin *o, bool out)
{
	add(&o->shared->out, out ? 1 : -1);
	if (out)
		add(&o->shared->ejections, 1);
}

void rows_trial(struct origin *o, int n)
{
	add(&o->shared->trials, n);
}

void rows_open(struct origin *o, int n)
{
	add(&o->shared->open, n);
}

/* ---- the table ---- */

static const struct weir_row_column columns[] = {
    {"origin", WEIR_ROW_LABEL, "", "the origin as configured"},
    {"address", WEIR_ROW_LABEL, "", "its address; a name may have several"},
    {"state", WEIR_ROW_TEXT, "",
	"in, out (left out by all loops), part (by some), trial (a request tries it)"},
    {"in", WEIR_ROW_GAUGE, "", "1 unless the address is left out by all loops"},
    {"busy", WEIR_ROW_GAUGE, "requests", "requests under way at the address"},
    {"share", WEIR_ROW_GAUGE, "", "part of the requests of the stage that are under way, 0 to 1"},
    {"open_connections", WEIR_ROW_GAUGE, "connections", "connections to the address, also unused"},
    {"requests_total", WEIR_ROW_COUNTER, "requests", "requests sent to the address"},
    {"ttfb_p50_seconds", WEIR_ROW_GAUGE, "seconds",
	"median time from a request to the head of its answer, since the start"},
    {"ttfb_p99_seconds", WEIR_ROW_GAUGE, "seconds",
	"99th percentile of the time from a request to the head of its answer, since the start"},
    {"failures_total", WEIR_ROW_COUNTER, "requests", "requests that failed at the address"},
    {"retried_total", WEIR_ROW_COUNTER, "requests",
	"requests that went on to another address after they failed at this one"},
    {"ejected_total", WEIR_ROW_COUNTER, "times", "times that a loop has left the address out"},
    {"last_failure", WEIR_ROW_TEXT, "", "reason of the last failure, as in X-Weir-Failed"},
    {"last_failure_time", WEIR_ROW_GAUGE, "seconds", "when that was, since 1970; 0: never"},
    {0},
};

static double quantile(const struct endpoint *e, double q)
{
	uint64_t all = 0, seen = 0;

	for (int i = 0; i < CLIENT_STEPS; i++)
		all += atomic_load_explicit(&e->first_byte[i], memory_order_relaxed);
	for (int i = 0; i < CLIENT_STEPS; i++) {
		seen += atomic_load_explicit(&e->first_byte[i], memory_order_relaxed);
		if (all > 0 && (double)seen >= q * (double)all)
			return 1e-6 * exp2((double)i / CLIENT_STEPS_OCTAVE);
	}
	return 0;
}

static void address_text(const struct address *a, char *text, size_t size)
{
	struct net_address net;
	char host[INET6_ADDRSTRLEN];
	const struct sockaddr_storage *s = &a->addr;

	if (!net_address_of(s, &net)) {
		snprintf(text, size, "%s", address_file(a) ? address_file(a) : "");
		return;
	}
	net_address_text(&net, host);
	in_port_t port = s->ss_family == AF_INET
			     ? ((const struct sockaddr_in *)(const void *)s)->sin_port
			     : ((const struct sockaddr_in6 *)(const void *)s)->sin6_port;
	snprintf(text, size, strchr(host, ':') ? "[%s]:%d" : "%s:%d", host, ntohs(port));
}

/* Loops that have sent no request cannot have left it out. */
static const char *state_of(const struct endpoint *e)
{
	double out = get(&e->out);

	if (atomic_load(&e->checked) & 1)
		return "out";
	if (out <= 0)
		return "in";
	return get(&e->trials) > 0 ? "trial" : out >= get(&e->asked) ? "out" : "part";
}

static void read_one(const struct endpoint *e, double busy, weir_row_visit visit, void *to)
{
	char text[128];
	const char *why = atomic_load_explicit(&e->last_why, memory_order_relaxed),
		   *state = state_of(e);
	struct weir_row_value value[WEIR_ROW_COLUMNS_MAX] = {{.text = e->spec->text},
	    {.text = text}, {.text = state}, {.number = strcmp(state, "out") != 0},
	    {.number = get(&e->busy)}, {.number = busy > 0 ? get(&e->busy) / busy : 0},
	    {.number = get(&e->open)}, {.number = get(&e->requests)}, {.number = quantile(e, 0.5)},
	    {.number = quantile(e, 0.99)}, {.number = get(&e->failures)},
	    {.number = get(&e->retries)}, {.number = get(&e->ejections)}, {.text = why ? why : ""},
	    {.number = get(&e->last_s)}};

	address_text(&e->address, text, sizeof(text));
	visit(to, value);
}

static void read_all(struct weir_stage *st, weir_row_visit visit, void *to)
{
	struct client *c = weir_state(st);
	double busy = 0;

	pthread_mutex_lock(&c->lock);
	for (int i = 0; i < c->n_slots; i++)
		busy += c->endpoint[i].users > 0 ? get(&c->endpoint[i].busy) : 0;
	for (int i = 0; i < c->n_slots; i++)
		if (c->endpoint[i].users > 0 && atomic_load(&c->endpoint[i].live) > 0)
			read_one(&c->endpoint[i], busy, visit, to);
	pthread_mutex_unlock(&c->lock);
}

const struct weir_rows client_rows = {.what = "origin", .column = columns, .read = read_all};
