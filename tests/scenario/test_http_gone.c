/* SPDX-License-Identifier: MIT */
/* Requests whose client goes away (weir_http_family): what was begun for them ends, in queues, in waits
 * with tickets and in continuations; other requests, also of the same connection, are not touched. */
#include <weir/op.h>

#include "fixture/http/tls.h"

#include "fixture/graph/probes.h" /* its N is a name of OpenSSL's, too */

#define PARTS 4

struct part {
	struct weir_event ev;
	struct weir_op op;
	int number;
};

/* parts and requests that a handler got, and those of them whose family was over */
static atomic_int split, asked, joined, parts_ended, cancelled, born_over;
static atomic_bool waits; /* parts wait with a ticket, for ever */
static atomic_bool bare;  /* no family has memory for a request */

static void part_finish(struct weir_event *ev, int status)
{
	(void)ev;
	atomic_fetch_add(&cancelled, status == WEIR_ECANCELLED);
	atomic_fetch_add(&parts_ended, 1);
}

static const struct weir_event_type part_type = {.name = "t.part",
    .size = sizeof(struct part),
    .finish = part_finish,
    .op = offsetof(struct part, op)};

static void parts_joined(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	atomic_fetch_add(&joined, n);
	for (int i = 0; i < n; i++)
		weir_event_finish(&ev[i], weir_http_respond_copy(weir_http_request(ev[i]), 200,
					      "text/plain", (struct weir_slice){"joined\n", 7}));
}

/* /wait/NAME waits at its gate before it asks for the family; /other does not ask at all. */
static void split_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct weir_http_request *req = weir_http_request(ev[i]);
		if (target_starts(req, "/wait/"))
			gate_pass(req->path.p + 6, req->path.n - 6);
		if (!target_starts(req, "/other")) {
			struct weir_family *f = weir_http_family(req);
			CU_ASSERT_EQUAL(f == NULL, atomic_load(&bare));
			CU_ASSERT_PTR_EQUAL(f, weir_http_family(req));
			CU_ASSERT_PTR_EQUAL(f, weir_family_of(ev[i]));
			atomic_fetch_add(&born_over, weir_family_over(f));
		}
		for (int k = 0; k < PARTS; k++) {
			struct weir_event *c = weir_event_new(st, &part_type);
			CU_ASSERT_PTR_NOT_NULL_FATAL(c);
			((struct part *)c)->number = k;
			weir_child(st, ev[i], 0, &c);
		}
		weir_await(st, &ev[i], parts_joined);
		atomic_fetch_add(&split, 1);
	}
}

static void part_done(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++)
		weir_event_finish(&ev[i], WEIR_OK);
}

static void part_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		if (atomic_load(&waits))
			weir_wait(st, &ev[i], part_done, WEIR_NO_DEADLINE);
		else
			weir_event_finish(&ev[i], WEIR_OK);
	}
	atomic_fetch_add(&asked, n);
}

static const struct weir_outlet split_outlets[] = {
    {"part", &part_type, false, "parts of the request"}, {.name = NULL}};
static const struct weir_stage_ops split_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.split",
    .summary = "splits requests into parts",
    .accepts = &weir_http_request_type,
    .outlets = split_outlets,
    .children = 1,
    .handle = split_handle};
static const struct weir_stage_ops part_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "t.part",
    .summary = "ends parts, or lets them wait",
    .accepts = &part_type,
    .handle = part_handle};

static void begin(struct server *s, bool parts_wait)
{
	split = asked = joined = parts_ended = cancelled = born_over = 0;
	atomic_store(&waits, parts_wait);
	struct weir_stage_spec *part = fixture_stage(s->spec, "part", "t.part", NULL);
	fixture_set(part, "width.policy", "static");
	weir_spec_text(&part->admission.policy, "none");
	s->web = &s->spec->stages[0]; /* moved by fixture_stage */
	s->app = &s->spec->stages[1];
	weir_spec_link(s->app, "part", "part", false);
	server_start(s);
}

/* Close the connection so that the server notices it at once, and closes it, too: by a reset. `others`: connections that stay. */
static void reset(struct server *s, int fd, int others)
{
	struct linger none = {.l_onoff = 1};

	AWAIT_METRIC(s, "http_connections", ==, others + 1);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	close(fd);
	AWAIT_METRIC(s, "http_connections", ==, others);
}

static uint64_t in_flight(const struct server *s, const char *stage)
{
	return stage_view(s->graph, stage).in_flight;
}

static void end(struct server *s)
{
	struct weir_stage_view v = stage_view(s->graph, "app");

	CU_ASSERT_EQUAL(v.spawned, v.joined + v.orphaned + v.cancelled);
	CU_ASSERT_EQUAL(v.spawned, (uint64_t)atomic_load(&parts_ended));
	server_stop(s);
}

/* The parts wait for ever, and their parent for them, until the client goes. */
static void test_waits(void)
{
	struct server s = server_new("t.split");

	begin(&s, true);
	int fd = client_open(s.port), other = client_open(s.port);
	CU_ASSERT(client_say(fd, GET("/a")));
	CU_ASSERT(client_say(other, GET("/b")));
	FIXTURE_AWAIT(atomic_load(&asked) == 2 * PARTS);
	CU_ASSERT_EQUAL(in_flight(&s, "part"), 2 * PARTS);
	close(fd);
	FIXTURE_AWAIT(in_flight(&s, "app") == 1);
	CU_ASSERT_EQUAL(in_flight(&s, "part"), PARTS);
	FIXTURE_AWAIT(atomic_load(&cancelled) == PARTS);
	CU_ASSERT_EQUAL(atomic_load(&joined), 0);
	close(other);
	FIXTURE_AWAIT(in_flight(&s, "app") == 0);
	FIXTURE_AWAIT(atomic_load(&cancelled) == 2 * PARTS);
	end(&s);
}

/* The parts are in the queue of a paused stage. When it goes on, its handler gets only those of the
 * client that is still there. */
static void test_queued(void)
{
	struct server s = server_new("t.split");
	struct answer a = {0};

	begin(&s, false);
	server_steer(&s, "part", WEIR_STEER_PAUSE);
	int fd = client_open(s.port), other = client_open(s.port);
	CU_ASSERT(client_say(fd, GET("/a")));
	CU_ASSERT(client_say(other, GET("/b")));
	FIXTURE_AWAIT(server_offered_to(&s, "part") == 2 * PARTS);
	reset(&s, fd, 1);
	server_steer(&s, "part", WEIR_STEER_RUN);
	CU_ASSERT(answer_read(other, &a) && answer_is(&a, 200, "joined\n"));
	FIXTURE_AWAIT(in_flight(&s, "app") == 0);
	CU_ASSERT_EQUAL(atomic_load(&asked), PARTS);
	CU_ASSERT_EQUAL(atomic_load(&joined), 1);
	FIXTURE_AWAIT(atomic_load(&cancelled) == PARTS);
	close(other);
	answer_free(&a);
	end(&s);
}

/* The client is gone before the stage asks for the family, which has ended from the beginning. */
static void test_born_over(void)
{
	struct server s = server_new("t.split");

	begin(&s, false);
	int fd = client_open(s.port);
	CU_ASSERT(client_say(fd, GET("/wait/go")));
	gate_await(1);
	reset(&s, fd, 0);
	gate_open("go");
	FIXTURE_AWAIT(in_flight(&s, "app") == 0 && atomic_load(&split) == 1);
	CU_ASSERT_EQUAL(atomic_load(&born_over), 1);
	CU_ASSERT_EQUAL(atomic_load(&asked), 0);
	CU_ASSERT_EQUAL(atomic_load(&joined), 0);
	end(&s);
}

/* A client that has only shut its side down gets an answer, but no work. One whose request has no
 * family gets both. */
static void test_half_closed(void)
{
	struct server s = server_new("t.split");
	struct answer a = {0};

	begin(&s, true);
	int fd = client_open(s.port);
	CU_ASSERT(client_say(fd, GET("/a")));
	FIXTURE_AWAIT(atomic_load(&asked) == PARTS);
	shutdown(fd, SHUT_WR);
	CU_ASSERT(answer_read(fd, &a) && a.status == 500);
	close(fd);
	atomic_store(&waits, false);
	fd = client_open(s.port);
	CU_ASSERT(client_say(fd, GET("/other")));
	shutdown(fd, SHUT_WR);
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "joined\n"));
	close(fd);
	answer_free(&a);
	end(&s);
}

/* Each request of a connection has a family of its own, which ends with the connection only. */
static void test_kept(void)
{
	struct server s = server_new("t.split");
	struct answer a = {0};

	begin(&s, false);
	int fd = client_open(s.port);
	for (int i = 0; i < 50; i++) {
		CU_ASSERT(client_say(fd, i % 3 ? GET("/a") GET("/other") : GET("/a")));
		for (int k = 0; k < (i % 3 ? 2 : 1); k++)
			CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "joined\n"));
	}
	CU_ASSERT_EQUAL(atomic_load(&cancelled), 0);
	CU_ASSERT_EQUAL(atomic_load(&born_over), 0);
	/* several requests in the graph */
	atomic_store(&waits, true);
	atomic_store(&asked, 0);
	CU_ASSERT(client_say(fd, GET("/a") GET("/b") GET("/c")));
	FIXTURE_AWAIT(atomic_load(&asked) == 3 * PARTS);
	close(fd);
	FIXTURE_AWAIT(in_flight(&s, "app") == 0);
	FIXTURE_AWAIT(atomic_load(&cancelled) == 3 * PARTS);
	answer_free(&a);
	end(&s);
}

static void test_tls(void)
{
	struct server s = tls_server_new("t.split", "one");
	struct tls_wish wish = {0};

	begin(&s, true);
	struct tls_client c = tls_client_open(s.port, &wish);
	CU_ASSERT(tls_say(&c, GET("/a")));
	FIXTURE_AWAIT(atomic_load(&asked) == PARTS);
	tls_client_close(&c);
	FIXTURE_AWAIT(in_flight(&s, "app") == 0);
	FIXTURE_AWAIT(atomic_load(&cancelled) == PARTS);
	end(&s);
}

static void test_inline(void)
{
	struct server s = server_new("t.split");

	fixture_set(s.app, "threads", "inline");
	begin(&s, true);
	int fd = client_open(s.port);
	CU_ASSERT(client_say(fd, GET("/a")));
	FIXTURE_AWAIT(atomic_load(&asked) == PARTS);
	close(fd);
	FIXTURE_AWAIT(in_flight(&s, "app") == 0);
	FIXTURE_AWAIT(atomic_load(&cancelled) == PARTS);
	end(&s);
}

/* A family has memory for its request and for two of its parts, or not even for the request. The memory
 * of a family is of one request: the next one has as much. */
static void test_memory(void)
{
	struct answer a = {0};

	for (int parts = -1; parts <= 2; parts += 3) {
		struct server s = server_new("t.split");
		s.spec->family_bytes =
		    (int64_t)weir_http_request_type.size + parts * (int64_t)sizeof(struct part);
		atomic_store(&bare, parts < 0);
		begin(&s, false);
		int fd = client_open(s.port);
		for (int i = 1; i <= 5; i++) {
			CU_ASSERT(client_say(fd, GET("/a")));
			CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "joined\n"));
			FIXTURE_AWAIT(in_flight(&s, "app") == 0);
			CU_ASSERT_EQUAL(atomic_load(&asked), i * (parts < 0 ? PARTS : parts));
			CU_ASSERT_EQUAL(stage_view(s.graph, "app").children_refused,
			    (uint64_t)(parts < 0 ? 0 : i * (PARTS - parts)));
		}
		close(fd);
		end(&s);
	}
	atomic_store(&bare, false);
	answer_free(&a);
}

static void test_register(void)
{
	tls_begin();
	fixture_register(&split_ops);
	fixture_register(&part_ops);
}

static void test_clean(void)
{
	tls_end();
}

CUNIT_MAIN("gone", {"register", test_register}, {"waits", test_waits}, {"queued", test_queued},
    {"born over", test_born_over}, {"half closed", test_half_closed}, {"kept", test_kept},
    {"tls", test_tls}, {"inline", test_inline}, {"memory", test_memory}, {"clean", test_clean})
