/* SPDX-License-Identifier: MIT */
#include "unit/stage/admit_rig.h"

/* ---- the policy ---- */

int (*answer)(int n, bool *refused, int *reason);
struct admission_view seen; /* at the last question; its pointers are no longer valid */
int asked, asked_events, asked_class;

void test_init(void *state, const struct weir_admission_spec *p, int64_t now_ns)
{
	(void)state, (void)p, (void)now_ns;
}

int test_admit(void *state, const struct weir_admission_spec *p, const struct admission_view *v,
    int class_id, int n, bool *refused, int *reason)
{
	(void)state, (void)p;
	seen = *v;
	asked++;
	asked_events += n;
	asked_class = class_id;
	return answer(n, refused, reason);
}

static void test_tick(
    void *state, const struct weir_admission_spec *p, const struct admission_sample *s)
{
	(void)state, (void)p, (void)s;
}

double test_part(const void *state, int class_id)
{
	(void)state, (void)class_id;
	return 0.5;
}

const struct admission_policy policy = {.name = "test",
    .help = "the test's",
    .front = true,
    .init = test_init,
    .admit = test_admit,
    .tick = test_tick,
    .part = test_part};

int all(int n, bool *refused, int *reason)
{
	(void)refused, (void)reason;
	return n;
}

int none(int n, bool *refused, int *reason)
{
	(void)n, (void)refused;
	*reason = WEIR_EDELAY;
	return 0;
}

int odd_places(int n, bool *refused, int *reason)
{
	int m = n;

	for (int i = 1; i < n; i += 2, m--)
		refused[i] = true;
	*reason = WEIR_EPRIORITY;
	return m;
}

/* ---- the graph ---- */

struct weir_graph *g;
struct sink *a, *b, *front;
struct book *book; /* counters by stage id */
bool idle;

static void test_wake(struct sink *s, uint32_t before, uint32_t length, uint64_t parts)
{
	(void)s, (void)before, (void)length, (void)parts;
}

static void test_look(const struct sink *s, int rank, struct admission_view *v)
{
	(void)s, (void)rank;
	v->threads = 2;
	v->idle = idle;
}

static int test_ranks(const struct sink *s)
{
	(void)s;
	return 2;
}

static struct sink *sink_of(const char *name)
{
	struct sink *s = &weir_graph_stage(g, name)->sink;

	s->wake = test_wake;
	s->look = test_look;
	s->ranks = test_ranks;
	return s;
}

void make_gate(struct sink *gate, const struct sink *f, bool asks)
{
	atomic_fetch_or(&gate->ahead->judged[0], 1u << f->front);
	if (asks)
		atomic_fetch_or(&gate->ahead->fronts[0], 1u << f->front);
	atomic_store(&gate->ahead->before[0][f->front], AHEAD_ALL);
	atomic_store(&gate->ahead->lead_ns[0][f->front], LEAD);
}

void rig_start(void)
{
	struct weir_spec *spec = weir_spec_new("ahead");
	static const char *const names[] = {"a", "b", "front"};

	weir_spec_add_class(spec, "one");
	weir_spec_add_class(spec, "two");
	for (int i = 0; i < 3; i++) {
		struct weir_stage_spec *s = fixture_stage(
		    spec, names[i], i < 2 ? "t.pass" : "t.end", i < 2 ? names[i + 1] : NULL);
		fixture_set(s, "admission.policy", i < 2 ? "none" : "weir");
	}
	prepare(N);
	g = fixture_build(spec);
	a = sink_of("a");
	b = sink_of("b");
	front = sink_of("front");
	front->policy = &policy;
	CU_ASSERT_PTR_NOT_NULL_FATAL(a->ahead);
	CU_ASSERT_FATAL(front->front >= 0 && a->front < 0 && b->front < 0);
	for (int c = 0; c < 2; c++)
		atomic_store(&front->cost_ns[c], COST * (c + 1));
	atomic_store(&front->mean_cost_ns, COST);
	make_gate(a, front, true);
	make_gate(b, front, true);
	book = calloc(3, sizeof(*book));
	answer = all;
	asked = asked_events = 0;
	idle = false;
}

int take(struct sink *s, struct weir_event **ev)
{
	struct queue_take t = {.n_ranks = 1, .max = WEIR_BATCH_MAX, .sharers = 1, .now_ns = NOW_NS};
	int n = queue_pop(&s->queue, &t, ev);

	for (int i = 0; i < n; i++)
		ev[i]->state = WEIR_EVENT_RUNNING;
	return n;
}

void rig_end(void)
{
	struct weir_event *ev[WEIR_BATCH_MAX];

	while (take(a, ev) || take(b, ev) || take(front, ev))
		;
	weir_graph_free(g);
	free(book);
}

int reasons[WEIR_BATCH_MAX];

int offer_at(struct sink *s, const struct sink *from, struct weir_event **ev, int n)
{
	return sink_offer(s, ev, n, from ? from->id : WEIR_NO_STAGE, NOW_NS, &book[s->id], reasons);
}

int offer(struct sink *s, int class_id, int n, struct weir_event **ev)
{
	for (int i = 0; i < n; i++) {
		memset(&probes[i].ev, 0, sizeof(probes[i].ev));
		weir_event_init(&probes[i].ev, &probe_type, 1);
		probes[i].ev.class_id = (uint8_t)class_id;
		probes[i].ev.session = (uint32_t)i + 1;
		ev[i] = &probes[i].ev;
	}
	return offer_at(s, NULL, ev, n);
}

uint64_t shed(const struct sink *s, int class_id, int reason)
{
	return book_read(&book[s->id].class_book[class_id].shed[weir_shed_index(reason)]);
}

void set_mode(struct sink *s, enum weir_admission_mode mode)
{
	struct weir_admission_spec spec = {.mode = mode, .target_ns = -1, .interval_ns = -1};

	sink_set_admission(s, &spec, NOW_NS);
}

void test_prepare(void)
{
	fixture_register(&end_ops);
	fixture_register(&pass_ops);
}
