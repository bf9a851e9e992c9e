/* SPDX-License-Identifier: MIT */
/*
 * torture_hosts [clients=2] [seconds=2] [seed=1]
 *
 * A source in a core group: clients send requests over sockets while other threads push single
 * probes to a stage of the same group and wait until each has ended, so that cores block in epoll
 * all the time and are woken in every way. Handlers end their threads, operators pause the stage and
 * the source, look at its queue and change the number of cores, and graphs are replaced and drained
 * with and without time. Afterwards:
 * - each accepted probe has ended exactly once, and no wait for one has lasted WAIT_NS, so no
 *   wake-up was lost;
 * - each client has got an answer to each request, or the end of its connection;
 * - the law holds exactly.
 *
 * With `clients` 0, only the pushes: then each one is a wake-up of a blocked core.
 */
#include "fixture/http/server.h"

#include "base/clock.h"
#include "base/task.h"
#include "graph/graph.h"
#include "sched/pool.h"

#define MAX_CLIENTS 8
#define PUSHERS     2
#define CONNECTIONS 4
#define WAIT_NS     (60 * NS_PER_S)

static struct weir_graph *graph; /* of the pushers and the meddler, in a round */
static atomic_int port;
static atomic_bool round_over, over;
static atomic_ullong answers, ends, pushes, deaths, faults;

static void fault(const char *what, uint64_t a, uint64_t b)
{
	if (atomic_fetch_add(&faults, 1) < 10)
		fprintf(
		    stderr, "%s: %llu, %llu\n", what, (unsigned long long)a, (unsigned long long)b);
}

/* ---- stages ---- */

static atomic_ullong calls;

/* Sleep for 20 ms, so that a spare thread stands in for the core. */
static void doze(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

static void any_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		uint64_t r =
		    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) * 2654435761u;
		if (r % 7919 == 0) {
			atomic_fetch_add(&deaths, 1);
			pthread_exit(NULL);
		}
		if (r % 1999 == 0)
			doze();
		if (r % 97 == 0)
			weir_event_finish(&ev[i], WEIR_EFAILED);
		else
			weir_emit(st, 0, &ev[i]);
	}
}

static void last_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		if (ev[i]->type == &weir_http_request_type)
			weir_http_respond_copy(weir_http_request(ev[i]), 200, "text/plain",
			    (struct weir_slice){"ok\n", 3});
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

static const struct weir_outlet any_outlets[] = {
    {"out", WEIR_ANY_EVENT, false, ""}, {.name = NULL}};

static const struct weir_stage_ops any_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.any",
    .summary = "passes on, fails, dies",
    .accepts = WEIR_ANY_EVENT,
    .outlets = any_outlets,
    .handle = any_handle};

static const struct weir_stage_ops last_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.last",
    .summary = "answers and ends",
    .accepts = WEIR_ANY_EVENT,
    .handle = last_handle};

/* ---- clients ---- */

/* Send some requests over `fd`, and read the answers. Returns false if the connection has ended. */
static bool talk(int fd, unsigned *rnd)
{
	static const char request[] = GET("/x");
	struct answer a = {0};
	int n = 1 + rand_r(rnd) % 3, got = 0;
	bool open = true;

	for (int i = 0; i < n && open; i++)
		open = client_say(fd, request);
	for (; got < n && open; got++) {
		open = answer_read(fd, &a);
		if (open && a.status != 200 && a.status != 500 && a.status != 503)
			fault("an answer with another status", (uint64_t)a.status, 0);
		atomic_fetch_add(open ? &answers : &ends, 1);
		open = open && !a.close;
	}
	answer_free(&a);
	return open;
}

static void *client(void *arg)
{
	unsigned rnd = (unsigned)(intptr_t)arg;
	int fd[CONNECTIONS] = {-1, -1, -1, -1};

	while (!atomic_load(&over)) {
		int i = rand_r(&rnd) % CONNECTIONS;
		if (fd[i] == -1)
			fd[i] = client_connect(atomic_load(&port));
		if (fd[i] != -1 && (!talk(fd[i], &rnd) || rand_r(&rnd) % 16 == 0)) {
			close(fd[i]);
			fd[i] = -1;
		}
	}
	for (int i = 0; i < CONNECTIONS; i++)
		if (fd[i] != -1)
			close(fd[i]);
	return NULL;
}

/* ---- pushers ---- */

static void await(const struct probe *p)
{
	int64_t until_ns = 0;

	for (unsigned i = 1; atomic_load(&p->finishes) == 0; i++) {
		if (i % 64 == 0)
			sched_yield();
		if (i % 4096 != 0)
			continue;
		until_ns = until_ns ? until_ns : clock_now_ns() + WAIT_NS;
		if (clock_now_ns() > until_ns) {
			fault("a wake-up was lost", p->seq, (uint64_t)p->producer);
			abort();
		}
	}
}

static void *push(void *arg)
{
	unsigned rnd = (unsigned)(intptr_t)arg;
	struct weir_stage *to = weir_graph_stage(graph, "app");
	static _Thread_local struct probe probe;
	struct weir_event *ev;

	if (weir_thread_attach(graph, "pusher") != 0)
		abort();
	while (!atomic_load(&round_over)) {
		weir_event_init(&probe.ev, &probe_type, clock_now_ns());
		probe.seq++;
		atomic_store(&probe.finishes, 0);
		ev = &probe.ev;
		if (weir_offer(to, &ev, 1, NULL) == 1) {
			await(&probe);
			atomic_fetch_add(&pushes, 1);
		} else {
			weir_event_finish(&ev, WEIR_EQUEUE);
		}
		if (atomic_load(&probe.finishes) != 1)
			fault("ended more than once", probe.seq,
			    (uint64_t)atomic_load(&probe.finishes));
		for (int i = rand_r(&rnd) % 400; i > 0; i--)
			task_pause();
	}
	weir_thread_detach();
	return NULL;
}

/* ---- operators ---- */

static void look(void)
{
	struct weir_queued q[8];
	struct weir_graph_view *v;

	weir_graph_queue(graph, "last", q, 8);
	if (weir_graph_view(graph, &v) != 0)
		return;
	for (int i = 0; i < v->n_stages; i++)
		if (llabs(v->stages[i].law_residual) > v->stages[i].law_slack)
			fault("the law does not hold while running",
			    (uint64_t)llabs(v->stages[i].law_residual),
			    (uint64_t)v->stages[i].law_slack);
	weir_graph_view_free(v);
}

static void *meddle(void *arg)
{
	unsigned rnd = (unsigned)(intptr_t)arg;
	struct pool *pool = weir_graph_stage(graph, "app")->pool;
	const char *name = NULL;
	char why[256];

	while (!atomic_load(&round_over)) {
		switch (rand_r(&rnd) % 4) {
		case 0:
			name = rand_r(&rnd) % 2 ? "web" : "last";
			weir_graph_steer(graph, name, WEIR_STEER_PAUSE, why, sizeof(why));
			sched_yield();
			weir_graph_steer(graph, name, WEIR_STEER_RUN, why, sizeof(why));
			break;
		case 1:
			pool_set_target(pool, 1 + rand_r(&rnd) % 2);
			break;
		default:
			look();
		}
		struct timespec ts = {.tv_nsec = (long)(rand_r(&rnd) % 2000) * 1000};
		nanosleep(&ts, NULL);
	}
	return NULL;
}

/* ---- rounds ---- */

static struct server made(unsigned *rnd)
{
	static const char *const schedules[] = {"fifo", "wavefront", "srpt", "dbr", "mg1", "color"};
	static const char *const locals[] = {"auto", "always", "never"};
	struct server s = server_new("t.any");
	struct weir_stage_spec *last = weir_spec_add_stage(s.spec, "last", "t.last");

	s.web = &s.spec->stages[0]; /* weir_spec_add_stage may have moved them */
	s.app = &s.spec->stages[1];
	weir_spec_link(s.app, "", "last", false);
	fixture_set(s.web, "with.linger", "0ms");
	fixture_set(last, "admission.policy", rand_r(rnd) % 2 ? "none" : "weir");
	fixture_set(s.app, "admission.policy", rand_r(rnd) % 2 ? "none" : "weir");
	fixture_set(s.app, "local", locals[rand_r(rnd) % 3]);
	fixture_set(last, "local", locals[rand_r(rnd) % 3]);
	server_group(&s, schedules[rand_r(rnd) % 6], 1 + rand_r(rnd) % 2);
	weir_spec_text(&last->group, "core");
	return s;
}

static void traffic(double seconds, unsigned *rnd)
{
	pthread_t p[PUSHERS], m;

	atomic_store(&round_over, false);
	for (int i = 0; i < PUSHERS; i++)
		pthread_create(&p[i], NULL, push, (void *)(intptr_t)rand_r(rnd));
	pthread_create(&m, NULL, meddle, (void *)(intptr_t)rand_r(rnd));
	int64_t end_ns = clock_now_ns() + (int64_t)(seconds * NS_PER_S);
	while (clock_now_ns() < end_ns && atomic_load(&faults) == 0)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	atomic_store(&round_over, true);
	pthread_join(m, NULL);
	for (int i = 0; i < PUSHERS; i++)
		pthread_join(p[i], NULL);
}

static void drain(struct weir_graph *old, int64_t grace_ns)
{
	struct weir_drain_report r;

	weir_graph_drain(old, grace_ns, &r);
	if (r.law_error != 0 || r.left != 0)
		fault("the law is broken after the drain", (uint64_t)llabs(r.law_error), r.closed);
	weir_graph_free(old);
}

/* Rounds of traffic; each graph takes over from the one before it, and the old one drains. */
static int rounds_of(double seconds, unsigned *rnd)
{
	int64_t end_ns = clock_now_ns() + (int64_t)(seconds * NS_PER_S);
	struct weir_errs errs = {0};
	struct server s;
	int rounds = 0;

	while (clock_now_ns() < end_ns && atomic_load(&faults) == 0) {
		struct weir_graph *old = graph;
		s = made(rnd);
		if (!old) {
			s.graph = fixture_start(s.spec);
			atomic_store(&port, weir_http_port(weir_graph_stage(s.graph, "web"), 0));
		} else {
			s.graph = fixture_build(s.spec);
			if (weir_graph_succeed(s.graph, old, &errs) != 0)
				fault("a graph could not take over", (uint64_t)rounds, 0);
		}
		graph = s.graph;
		if (old)
			drain(old, rand_r(rnd) % 2 ? 0 : NS_PER_S);
		traffic(0.05 + 0.01 * (rand_r(rnd) % 20), rnd);
		rounds++;
	}
	return rounds;
}

int main(int argc, char **argv)
{
	int clients = argc > 1 ? atoi(argv[1]) : 2;
	double seconds = argc > 2 ? atof(argv[2]) : 2;
	unsigned rnd = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
	pthread_t c[MAX_CLIENTS];

	if (clients < 0 || clients > MAX_CLIENTS) {
		fprintf(stderr, "0 to %d clients\n", MAX_CLIENTS);
		return 2;
	}
	fixture_register(&any_ops);
	fixture_register(&last_ops);
	weir_log_set_fd(-1);
	for (int i = 0; i < clients; i++)
		pthread_create(&c[i], NULL, client, (void *)(intptr_t)rand_r(&rnd));
	int rounds = rounds_of(seconds, &rnd);
	drain(graph, 0);
	atomic_store(&over, true);
	for (int i = 0; i < clients; i++)
		pthread_join(c[i], NULL);
	printf("rounds %d answers %llu ends %llu pushes %llu deaths %llu faults %llu\n", rounds,
	    (unsigned long long)atomic_load(&answers), (unsigned long long)atomic_load(&ends),
	    (unsigned long long)atomic_load(&pushes), (unsigned long long)atomic_load(&deaths),
	    (unsigned long long)atomic_load(&faults));
	return atomic_load(&faults) ? 1 : 0;
}
