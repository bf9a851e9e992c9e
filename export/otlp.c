/* SPDX-License-Identifier: MIT */
/*
 * Runs the export thread; see otlp.h.
 *
 * The thread wakes up every LOOK_NS and moves requests from the graph's queue into the batch
 * (take). A batch that is full or old enough is sent (send_batch). A batch that the collector may
 * accept later stays in place until again_ns, and meanwhile nothing else is sent. When the server
 * stops, all that remains is sent once, and POSTs are aborted at give_up_ns.
 */
#include "otlp.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/clock.h>
#include <weir/log.h>

#include "otlp_json.h"
#include "otlp_send.h"

/* A batch is sent when it has BATCH_SPANS spans, or BATCH_NS after its first request was taken from
 * the queue. 512 is the value of OpenTelemetry's batch processor, which waits 5 s. 1 s is a guess:
 * a delay that a person watching the traces accepts. */
#define BATCH_SPANS 512
#define BATCH_NS    1000000000LL
/* A batch that the collector may accept later is sent again after 1, 2, 4 and 8 s, which is enough
 * for a collector to restart. If the last attempt fails, too, the batch is lost. Meanwhile new
 * requests wait in the graph's queue; when the queue is full, they are counted as dropped. */
#define TRIES      5
#define FIRST_WAIT 1000000000LL
/* Maximum number of requests in one POST. Each has at most 11 spans. */
#define BATCH_MAX 256
/* Interval at which the graph's queue is checked. The queue has space for the requests that arrive
 * in this time at 20 000/s. */
#define LOOK_NS 100000000LL
/* Total time for the last POSTs when the server stops. 1 s is a guess. */
#define LAST_NS 1000000000LL

struct otlp {
	struct weir_graph *graph;
	struct sender *sender;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t told;
	bool stop WEIR_GUARDED_BY(lock);
	_Atomic int64_t give_up_ns; /* when a POST must be aborted; 0 if never */
	/* used only by the export thread */
	struct weir_slow slow[BATCH_MAX];
	int n, n_spans;
	int64_t since_ns; /* when the first request of the batch was taken */
	int tries;        /* attempts to send the batch so far */
	int64_t again_ns; /* time of the next attempt; 0 if none is due */
	bool failing;     /* the last POST failed, and this was logged */
};

static enum sender_result post(struct otlp *o, char *why, size_t size)
{
	json_t *json = otlp_json(weir_graph_spec(o->graph)->name, o->slow, o->n);
	char *body = json ? json_dumps(json, JSON_COMPACT) : NULL;
	enum sender_result result = SENDER_LATER;

	if (body)
		result = sender_post(o->sender, body, why, size);
	else
		snprintf(why, size, "out of memory");
	free(body);
	json_decref(json);
	return result;
}

/* Log the first failure after a success and the first success after a failure. Batches between them
 * are not logged. */
static void report(struct otlp *o, bool sent, const char *why)
{
	if (!sent && !o->failing)
		weir_log(WEIR_LOG_WARN,
		    "traces cannot be sent to %s: %s; a batch is tried up to five times, then "
		    "counted as failed",
		    weir_graph_spec(o->graph)->trace.otlp, why);
	if (sent && o->failing)
		weir_log(WEIR_LOG_INFO, "the collector accepts traces again");
	o->failing = !sent;
}

/* Send the batch. If the collector may accept it later, schedule the next attempt. After TRIES
 * attempts, or if `last` is set, drop the batch and count it as failed. */
static void send_batch(struct otlp *o, bool last)
{
	char why[256] = "";
	enum sender_result result = post(o, why, sizeof(why));
	bool sent = result == SENDER_SENT;

	report(o, sent, why);
	o->tries++;
	if (result == SENDER_LATER && o->tries < TRIES && !last) {
		o->again_ns = weir_clock_ns(CLOCK_MONOTONIC) + (FIRST_WAIT << (o->tries - 1));
		return;
	}
	weir_graph_collect_sent(o->graph, sent ? (uint64_t)o->n : 0, sent ? 0 : (uint64_t)o->n);
	o->n = o->n_spans = o->tries = 0;
	o->again_ns = 0;
}

/* Return whether the batch is full or old enough, and is not waiting for a retry. */
static bool is_due(const struct otlp *o)
{
	bool ripe = o->n_spans >= BATCH_SPANS || o->n == BATCH_MAX ||
		    (o->n > 0 && weir_clock_ns(CLOCK_MONOTONIC) - o->since_ns >= BATCH_NS);

	return ripe && (o->again_ns == 0 || weir_clock_ns(CLOCK_MONOTONIC) >= o->again_ns);
}

/* Move waiting requests into the batch. Returns true if the batch is then full; more requests may
 * be waiting in that case. */
static bool take(struct otlp *o)
{
	int n =
	    o->n < BATCH_MAX ? weir_graph_collected(o->graph, o->slow + o->n, BATCH_MAX - o->n) : 0;

	if (n > 0 && o->n == 0)
		o->since_ns = weir_clock_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < n; i++)
		o->n_spans += otlp_spans(&o->slow[o->n + i]);
	o->n += n;
	return o->n == BATCH_MAX;
}

static bool told_to_stop(struct otlp *o)
{
	struct timespec until;
	bool stop;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += LOOK_NS;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	pthread_mutex_lock(&o->lock);
	if (!o->stop)
		pthread_cond_timedwait(&o->told, &o->lock, &until);
	stop = o->stop;
	pthread_mutex_unlock(&o->lock);
	return stop;
}

static void *otlp_run(void *arg)
{
	struct otlp *o = arg;

	while (!told_to_stop(o)) {
		bool more = true;
		while (more && atomic_load(&o->give_up_ns) == 0) {
			more = take(o) && is_due(o);
			if (is_due(o))
				send_batch(o, false);
		}
	}
	while (take(o) || o->n > 0)
		send_batch(o, true);
	return NULL;
}

static int start_thread(struct otlp *o)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&o->thread, NULL, otlp_run, o);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0)
		return WEIR_ESYS;
	pthread_setname_np(o->thread, "otlp");
	return 0;
}

static void otlp_free(struct otlp *o)
{
	sender_free(o->sender);
	pthread_cond_destroy(&o->told);
	pthread_mutex_destroy(&o->lock);
	free(o);
}

static struct otlp *otlp_new(struct weir_graph *graph)
{
	struct otlp *o = calloc(1, sizeof(*o));
	pthread_condattr_t attr;

	if (!o)
		return NULL;
	o->graph = graph;
	pthread_mutex_init(&o->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&o->told, &attr);
	pthread_condattr_destroy(&attr);
	return o;
}

void otlp_check(const struct weir_trace_spec *spec, struct weir_errs *errs)
{
	struct weir_err err = {0};

	if (spec->otlp && *spec->otlp && sender_check(spec->otlp, &err) != 0)
		weir_errs_add(
		    errs, &spec->mark, err.code, err.hint[0] ? err.hint : NULL, "%s", err.text);
}

int otlp_start(struct weir_graph *graph, struct otlp **out, struct weir_err *err)
{
	const struct weir_trace_spec *spec = &weir_graph_spec(graph)->trace;
	const struct weir_collect want = {.sample = spec->sample,
	    .slow = spec->slow == WEIR_TRACE_SLOW_ALWAYS,
	    .follow = spec->parent == WEIR_TRACE_PARENT_FOLLOW};

	*out = NULL;
	if (!spec->otlp || !*spec->otlp)
		return 0;
	struct otlp *o = otlp_new(graph);
	int rc = o ? sender_new(spec->otlp, &o->give_up_ns, &o->sender, err) : WEIR_ENOMEM;
	if (rc == 0)
		rc = weir_graph_collect(graph, &want);
	if (rc == 0 && (rc = start_thread(o)) != 0)
		weir_graph_collect_end(graph);
	if (rc == 0) {
		*out = o;
		return 0;
	}
	if (!err->text[0])
		snprintf(err->text, sizeof(err->text), "the trace export cannot start: %s",
		    weir_error_text(rc));
	if (o)
		otlp_free(o);
	return err->code = rc;
}

void otlp_stop(struct otlp *o)
{
	if (!o)
		return;
	weir_graph_collect_end(o->graph);
	atomic_store(&o->give_up_ns, weir_clock_ns(CLOCK_MONOTONIC) + LAST_NS);
	sender_wake(o->sender);
	pthread_mutex_lock(&o->lock);
	o->stop = true;
	pthread_cond_signal(&o->told);
	pthread_mutex_unlock(&o->lock);
	pthread_join(o->thread, NULL);
	otlp_free(o);
}
