/* SPDX-License-Identifier: MIT */
/*
 * Turns the options of `weir bench` into the plan for the generator: bench_plan() fills in the
 * address, the classes and the clients, and bench_phases() adds the phases.
 *
 * Exactly one option determines the rates: --rate, --ramp, --steps, --trace or --speed, or --closed
 * for a closed loop. --spike and --warmup then modify the phases.
 */
#include "bench.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load/phases.h"
#include "load/sentence.h"
#include "load/trace.h"

/* ---- the URL ---- */

/* Split "HOST", "HOST:PORT" or "[::1]:PORT" in a[0..n) into host and port. */
static int split_authority(
    struct load_plan *plan, const char *a, size_t n, const char *url, struct weir_err *err)
{
	const char *end = a + n, *host = a, *host_end, *port = NULL;

	if (n && *a == '[') {
		host = a + 1;
		host_end = memchr(host, ']', (size_t)(end - host));
		if (!host_end)
			return sentence(
			    err, WEIR_EINVAL, "'%s' lacks the ']' after the address", url);
		if (host_end + 1 < end && host_end[1] != ':')
			return sentence(
			    err, WEIR_EINVAL, "in '%s', ']' must be followed by ':PORT'", url);
		port = host_end + 1 < end ? host_end + 2 : NULL;
	} else {
		host_end = memchr(a, ':', n);
		port = host_end ? host_end + 1 : NULL;
		host_end = host_end ? host_end : end;
	}
	if (host_end == host || (size_t)(host_end - host) >= sizeof(plan->host))
		return sentence(err, WEIR_EINVAL, "in '%s', the host is missing or too long", url);
	memcpy(plan->host, host, (size_t)(host_end - host));
	snprintf(plan->port, sizeof(plan->port), "%s", plan->tls ? "443" : "80");
	if (!port)
		return 0;
	size_t digits = (size_t)(end - port);
	for (size_t i = 0; i < digits; i++)
		if (!isdigit((unsigned char)port[i]))
			return sentence(err, WEIR_EINVAL, "in '%s', '%.*s' is not a port", url,
			    (int)digits, port);
	if (digits == 0 || digits > 5)
		return sentence(err, WEIR_EINVAL, "in '%s', the port must be 1 to 65535", url);
	memcpy(plan->port, port, digits);
	plan->port[digits] = '\0';
	int number = atoi(plan->port);
	return number >= 1 && number <= 65535
		   ? 0
		   : sentence(err, WEIR_EINVAL, "in '%s', the port must be 1 to 65535", url);
}

/* Store the path of the socket file of "unix:/PATH". */
static int split_socket(struct load_plan *plan, const char *file, struct weir_err *err)
{
	if (file[0] != '/' || strlen(file) >= sizeof(plan->socket))
		return sentence(err, WEIR_EINVAL,
		    "'unix:%s' is not unix:/PATH, with a path of at most %zu bytes", file,
		    sizeof(plan->socket) - 1);
	snprintf(plan->socket, sizeof(plan->socket), "%s", file);
	snprintf(plan->host, sizeof(plan->host), "localhost");
	snprintf(plan->port, sizeof(plan->port), "80");
	return 0;
}

/* Store scheme, host and port in the plan. *path is set to the path within `url`, or to "" if there
 * is none. */
static int split_url(
    struct load_plan *plan, const char *url, const char **path, struct weir_err *err)
{
	const char *colon = strstr(url, "://"), *rest;

	if (strncmp(url, "unix:", 5) == 0)
		return split_socket(plan, url + 5, err);
	if (!colon)
		return sentence(err, WEIR_EINVAL,
		    "'%s' is not a URL: use http://HOST:PORT/PATH or unix:/PATH", url);
	size_t n = (size_t)(colon - url);
	plan->tls = n == 5 && memcmp(url, "https", 5) == 0;
	if (!plan->tls && !(n == 4 && memcmp(url, "http", 4) == 0))
		return sentence(
		    err, WEIR_EINVAL, "unknown scheme '%.*s': use http or https", (int)n, url);
	rest = colon + 3;
	n = strcspn(rest, "/?#");
	*path = rest + n;
	if (memchr(rest, '@', n))
		return sentence(err, WEIR_EINVAL,
		    "'%s' contains a user name: send a name and password with --header", url);
	return split_authority(plan, rest, n, url, err);
}

/* ---- shared by all runs ---- */

static void copy_options(const struct bench_options *o, struct load_plan *plan)
{
	plan->verify = !o->insecure;
	plan->arrivals = (enum load_arrivals)o->arrivals;
	plan->burst_factor = o->burst_factor;
	plan->burst_share = o->burst_share;
	plan->burst_ns = o->burst_ns;
	plan->seed = (uint64_t)o->seed;
	plan->closed = o->closed || o->clients > 0;
	plan->users = (int)o->clients;
	plan->pages = o->pages;
	plan->think = (enum load_think)o->think_law;
	plan->think_shape = o->think_shape;
	plan->connections = (int)o->connections;
	plan->threads = (int)o->threads;
	plan->cpu = (int)o->cpu;
	plan->fresh = o->fresh;
	plan->pipeline = (int)o->pipeline;
	plan->timeout_ns = o->timeout_ns;
	plan->send_deadline = o->deadline;
	plan->session_requests = (int)o->session;
	plan->think_ns = o->think_ns;
	plan->retries = (int)o->retries;
	plan->backoff_ns = o->backoff_ns;
	plan->jitter = o->jitter;
	plan->slow_read_share = o->slow_read_share;
	plan->slow_write_share = o->slow_write_share;
	plan->slow_read_bytes_per_s = (double)o->slow_read_bytes;
	plan->slow_write_bytes_per_s = (double)o->slow_write_bytes;
	plan->grace_ns = o->grace_ns;
}

static int check_options(const struct bench_options *o, struct weir_err *err)
{
	if (o->connections < o->threads)
		return sentence(err, WEIR_EINVAL,
		    "%lld threads need at least as many --connections", (long long)o->threads);
	if (o->burst_factor * o->burst_share >= 1)
		return sentence(err, WEIR_EINVAL,
		    "bursts of %g times the rate for %g %% of the time leave no load between "
		    "bursts: --burst-factor times --burst-share must be below 1",
		    o->burst_factor, o->burst_share * 100);
	if (o->fresh && o->pipeline > 1)
		return sentence(err, WEIR_EINVAL, "--fresh and --pipeline exclude each other");
	if ((o->closed || o->clients > 0) && (o->session > 1 || o->trace))
		return sentence(err, WEIR_EINVAL,
		    "%s excludes --session and --trace, which set the times of arrivals",
		    o->closed ? "--closed" : "--clients");
	if (o->closed && o->clients > 0)
		return sentence(err, WEIR_EINVAL,
		    "--closed and --clients exclude each other: the first has clients that never "
		    "pause");
	if (o->clients > 0 && o->find_capacity)
		return sentence(err, WEIR_EINVAL,
		    "--clients excludes --find-capacity, which sets the rates of an open loop");
	if (o->pages && o->clients == 0)
		return sentence(err, WEIR_EINVAL, "--pages needs --clients");
	if (o->think_law == LOAD_THINK_PARETO && o->think_shape <= 1)
		return sentence(err, WEIR_EINVAL,
		    "--think-shape of pareto must be above 1: the mean is infinite otherwise");
	if (o->warmup_ns > 0 && (o->trace || o->speed > 0))
		return sentence(err, WEIR_EINVAL,
		    "--warmup would drop the first send times of --trace or --speed");
	return 0;
}

static int fill_classes(
    const struct bench_request *req, const char *path, struct load_plan *plan, struct weir_err *err)
{
	for (int c = 0; c < req->n_classes; c++) {
		int rc = bench_class_fill(
		    req, &req->class[c], plan, path, &plan -> class[plan->n_classes++], err);
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* Return the class whose log provides the send times. If no class has a log, return the first
 * class. */
static const struct load_class *replayed(
    const struct bench_request *req, const struct load_plan *plan)
{
	for (int c = 0; c < req->n_classes; c++)
		if (req->class[c].replay)
			return &plan->class[c];
	return &plan->class[0];
}

int bench_plan(
    const struct bench_request *req, const char *url, struct load_plan *plan, struct weir_err *err)
{
	const char *path = "";
	int rc = check_options(&req->opt, err);

	memset(plan, 0, sizeof(*plan));
	if (rc != 0)
		return rc;
	rc = split_url(plan, url, &path, err);
	if (rc != 0)
		return rc;
	plan->url = strdup(url);
	if (!plan->url)
		return sentence(err, WEIR_EINVAL, "out of memory");
	copy_options(&req->opt, plan);
	rc = fill_classes(req, *path ? path : "/", plan, err);
	if (rc == 0 && req->opt.trace)
		rc = load_trace_read(plan, req->opt.trace, err);
	if (rc == 0 && req->opt.speed > 0)
		rc = load_trace_replay(plan, replayed(req, plan), req->opt.speed, err);
	if (plan->n_trace > 0)
		plan->arrivals = LOAD_TRACE;
	return rc;
}

/* ---- phases ---- */

static int one_rate(const struct bench_options *o, struct weir_err *err)
{
	int n = (o->rate_per_s > 0) + (o->ramp != NULL) + (o->steps != NULL) + (o->trace != NULL) +
		(o->speed > 0);

	if (o->closed || o->clients > 0)
		return n ? sentence(err, WEIR_EINVAL,
			       "%s sends as fast as the server responds, and excludes "
			       "--rate, --ramp, --steps, --trace and --speed",
			       o->closed ? "--closed" : "--clients")
			 : 0;
	if (n == 0)
		return sentence(err, WEIR_EINVAL,
		    "the load is missing: use --rate 1000, --ramp 1k..10k, --steps 1k,2k, --trace "
		    "FILE, --speed 1, --find-capacity, --closed, or --clients N");
	if (n > 1)
		return sentence(err, WEIR_EINVAL,
		    "use only one of --rate, --ramp, --steps, --trace and --speed");
	return 0;
}

/* Add one phase with the length of the trace. Its rate is the mean rate of the trace; only the
 * tables use it. */
static int trace_phase(struct load_plan *plan, struct weir_err *err)
{
	int64_t length_ns = plan->trace_ns[plan->n_trace - 1] + 1;
	int rc = phases_constant(
	    plan, (double)plan->n_trace / ((double)length_ns * 1e-9), length_ns, err);

	if (rc == 0)
		snprintf(plan->phase[0].name, sizeof(plan->phase[0].name), "trace");
	return rc;
}

int bench_phases(const struct bench_request *req, struct load_plan *plan, struct weir_err *err)
{
	const struct bench_options *o = &req->opt;
	int rc = one_rate(o, err);

	if (rc != 0)
		return rc;
	if (o->closed || o->clients > 0)
		rc = phases_constant(plan, 1, o->for_ns, err);
	else if (plan->arrivals == LOAD_TRACE)
		rc = trace_phase(plan, err);
	else if (o->ramp)
		rc = phases_ramp(plan, o->ramp, o->for_ns, err);
	else if (o->steps)
		rc = phases_steps(plan, o->steps, o->for_ns, err);
	else
		rc = phases_constant(plan, o->rate_per_s, o->for_ns, err);
	if (rc == 0 && o->closed)
		snprintf(plan->phase[0].name, sizeof(plan->phase[0].name), "closed loop");
	if (rc == 0 && o->clients > 0)
		snprintf(plan->phase[0].name, sizeof(plan->phase[0].name), "%lld users",
		    (long long)o->clients);
	if (rc == 0 && o->spike)
		rc = phases_spike(plan, o->spike, err);
	if (rc == 0 && o->warmup_ns > 0)
		rc = phases_warmup(plan, o->warmup_ns, err);
	return rc;
}
