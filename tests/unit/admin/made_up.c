/* SPDX-License-Identifier: MIT */
#include "unit/admin/made_up.h"

static const struct weir_event_type made_up_type = {.name = "http.request"};

static const struct weir_metric made_up_cache_metrics[] = {
    {"cache_hits_total", WEIR_METRIC_COUNTER, "events", "Requests answered from memory"},
    {"cache_bytes", WEIR_METRIC_GAUGE, "bytes", "Bytes of files in memory"},
};
static const struct weir_metric made_up_disk_metrics[] = {
    {"read_bytes_total", WEIR_METRIC_COUNTER, "bytes", "Bytes read; says \"a\\b\"\nin two lines"},
    {"cache_hits_total", WEIR_METRIC_COUNTER, "events", "Another type has the same name"},
    {"cache_bytes", WEIR_METRIC_COUNTER, "bytes", "The same name with another kind"},
    {"stage_busy_seconds_total", WEIR_METRIC_COUNTER, "seconds", "A name that is ours"},
    {"no good", WEIR_METRIC_COUNTER, "", "No metric name"},
};

void made_up_times(struct weir_hist *h, int64_t ns, uint64_t n)
{
	h->count[weir_hist_bucket(ns)] += n;
	h->sum_ns += (uint64_t)ns * n;
}

static struct weir_stage_view *made_up_stage(
    struct made_up *m, int i, const char *name, const char *use, const char *placement, int depth)
{
	struct weir_stage_view *s = &m->stage[i];

	*s = (struct weir_stage_view){
	    .name = name,
	    .use = use,
	    .summary = "Made up",
	    .group = strcmp(placement, "pool") == 0 ? name : "",
	    .placement = placement,
	    .mode = "shared",
	    .admission = "none",
	    .admission_mode = "off",
	    .depth = depth,
	};
	return s;
}

static void made_up_links(
    struct made_up *m, int stage, int first, int n, const char *const outlet_to[][2])
{
	m->stage[stage].links = &m->link[first];
	m->stage[stage].n_links = n;
	for (int i = 0; i < n; i++)
		m->link[first + i] = (struct weir_link_view){
		    .outlet = outlet_to[i][0],
		    .to = outlet_to[i][1],
		    .type = &made_up_type,
		    .events_total = 1000 + (uint64_t)i,
		};
}

/* What its threads did, and the calls of its handler. */
static void made_up_calls(struct weir_stage_view *s)
{
	for (int i = 0; i < WEIR_TIMES; i++)
		s->time_ns[i] = 500000000ULL * (uint64_t)(i + 1);
	s->times_known = true;
	s->stuck_call = (struct weir_stuck_view){.id = 23,
	    .wall_ns = 1760000000000000000,
	    .for_ns = 1500000000,
	    .runs = true,
	    .thread = "disk/0",
	    .type = "http.request",
	    .stack = "read_file (weir+0x4a1f)\n?? (libc.so.6+0x891f5)\n"};
	s->batches = 100;
	s->batch_events = 250;
	s->cohorts[0] = 40; /* 40 of 1, 20 of 2, 10 of 3, and 30 of 5 to 8 events */
	s->cohorts[1] = 20;
	s->cohorts[2] = 10;
	s->cohorts[3] = 30;
}

static void made_up_disk(struct weir_stage_view *s)
{
	struct weir_class_view *bulk = &s->class_view[1];

	s->admission = "threshold";
	s->admission_mode = "enforce";
	s->queue_length = 187;
	s->queue_limit = 4096;
	s->in_flight = 191;
	s->held = 3;
	s->awaiting = 2;
	s->spawned = 40;
	s->joined = 20;
	s->orphaned = 5;
	s->children_refused = 4;
	s->cancelled = 4;
	s->children_max = 16;
	s->threads[WEIR_THREAD_BUSY] = 4;
	s->threads[WEIR_THREAD_IDLE] = 1;
	s->threads_now = s->threads_target = 5;
	s->threads_min = 2;
	s->threads_max = 32;
	s->busy_ns = 1500000001;
	made_up_calls(s);
	s->oldest_wait_ns = 31200000;
	s->longest_running_ns = 5100000;
	s->slo_ns = 2000000000;
	s->pressure = 0.25;
	s->degradation = 0.3;
	s->law_slack = 3;
	bulk->offered = 900;
	bulk->admitted = 880;
	bulk->completed = 689;
	bulk->shed[weir_shed_index(WEIR_ETHRESHOLD)] = 20;
	bulk->spawned = 40;
	bulk->departed = 38;
	bulk->queued = 187;
	made_up_times(&bulk->wait, 50000, 3);          /* a bucket bound: counted in le="0.00005" */
	made_up_times(&bulk->wait, 51000, 4);          /* just above it */
	made_up_times(&bulk->wait, 31000000, 600);     /* 31 ms */
	made_up_times(&bulk->wait, 25000000000LL, 2);  /* above the last bound */
	made_up_times(&bulk->wait, 200000000000LL, 1); /* above all buckets */
	made_up_times(&bulk->service, 5100000, 689);
	s->metrics = made_up_disk_metrics;
	s->n_metrics = 5;
	s->metric[0] = 123456789;
	s->metric[1] = 7;
}

void made_up_init(struct made_up *m)
{
	static const char *const web[][2] = {{"request", "cache"}, {"done", "log"}};
	static const char *const cache[][2] = {{"miss", "disk"}};
	static const char *const disk[][2] = {{"retry", "cache"}, {"error", NULL}};

	memset(m, 0, sizeof(*m));
	made_up_stage(m, MADE_WEB, "web", "http.server", "source", 0);
	made_up_stage(m, MADE_CACHE, "cache", "file.cache", "inline", 1);
	made_up_disk(made_up_stage(m, MADE_DISK, "disk", "file.read", "pool", 2));
	made_up_stage(m, MADE_LOG, "log", "access_log", "group", 1)->group = "slow";
	made_up_stage(m, MADE_ODD, "<img src=x onerror=alert(1)>\"\\\n", "echo", "pool", 0);
	made_up_links(m, MADE_WEB, 0, 2, web);
	made_up_links(m, MADE_CACHE, 2, 1, cache);
	made_up_links(m, MADE_DISK, 3, 2, disk);
	m->link[3].loop = true;
	m->stage[MADE_CACHE].metrics = made_up_cache_metrics;
	m->stage[MADE_CACHE].n_metrics = 2;
	m->stage[MADE_CACHE].metric[0] = 41;
	m->stage[MADE_CACHE].metric[1] = -5;
	m->decision[0] = (struct weir_decision){.id = 2,
	    .stage = "disk",
	    .actor = "seda",
	    .action = "grow",
	    .rule = "queue 187 over threshold 64",
	    .inputs = "queue=187 busy=4",
	    .outcome_5s = "helped",
	    .from = 4,
	    .to = 5,
	    .at_ns = 9000000000};
	m->decision[1] = (struct weir_decision){.id = 1, .stage = "disk", .actor = "operator"};
	m->view = (struct weir_graph_view){
	    .name = "made up",
	    .now_ns = 10500000000,
	    .started_ns = 500000000,
	    .wall_ns = 1700000000000000000,
	    .ready = true,
	    .n_classes = 2,
	    .class_name = {"interactive", "bulk"},
	    .n_stages = MADE_UP_STAGES,
	    .stages = m->stage,
	    .decisions_total = 2,
	    .decided_total = 2,
	};
	snprintf(m->threads_max, sizeof(m->threads_max), "32");
}

/* ---- as a source ---- */

int made_up_view(void *arg, struct weir_graph_view **view)
{
	struct made_up *m = arg;

	if (m->no_memory)
		return WEIR_ENOMEM;
	m->n_views++;
	*view = &m->view;
	return 0;
}

/* `disk` on two threads, of which the second has refused and dropped events; what it sends to `cache`
 * by its first outlet, and nothing to its second one. */
static int made_up_profile(void *arg, struct weir_profile **out)
{
	struct made_up *m = arg;
	struct weir_profile *p = m->no_memory ? NULL : calloc(1, sizeof(*p));

	if (!p)
		return WEIR_ENOMEM;
	*p = (struct weir_profile){.name = "made up",
	    .now_ns = 9000000000,
	    .since_ns = 1000000000,
	    .wall_ns = 1700000008000000000,
	    .since_wall_ns = 1700000000000000000,
	    .n_stages = 1,
	    .stage = calloc(1, sizeof(*p->stage))};
	struct weir_profile_stage *s = p->stage;
	*s = (struct weir_profile_stage){.name = "disk",
	    .placement = "pool",
	    .group = "disk",
	    .waiting = 187,
	    .running = 4,
	    .awaiting = 3,
	    .n_rows = 2,
	    .n_outlets = 2,
	    .row = calloc(2, sizeof(*s->row)),
	    .outlet = calloc(2, sizeof(*s->outlet)),
	    .arcs = calloc(4, sizeof(*s->arcs))};
	s->outlet[0] = (struct weir_profile_outlet){.name = "out", .to = "cache"};
	s->outlet[1] = (struct weir_profile_outlet){.name = "none"};
	s->arcs[0] = (struct weir_profile_arc){.sent = 38, .offered = 40};
	s->row[0] = (struct weir_profile_row){.on = WEIR_PROFILE_THREAD,
	    .owner = "disk",
	    .started = 40,
	    .restarted = 2,
	    .put_back = 2,
	    .completed = 38,
	    .failed = 2,
	    .spawned = 10,
	    .departed = 9,
	    .busy_ns = 500000000,
	    .batches = 21,
	    .again_ns = 3000000,
	    .arc = &s->arcs[0]};
	made_up_times(&s->row[0].wait, 2000000, 42);
	s->row[1] = (struct weir_profile_row){.on = WEIR_PROFILE_OTHERS,
	    .owner = "",
	    .number = -1,
	    .offered = 233,
	    .refused = 5,
	    .dropped = 1,
	    .shed = 6,
	    .arc = &s->arcs[2]};
	*out = p;
	return 0;
}

static void made_up_view_free(struct weir_graph_view *view)
{
	/* The view is the first member. */
	((struct made_up *)(void *)view)->n_views--;
}

static int made_up_decisions(void *arg, struct weir_decision *out, int n)
{
	struct made_up *m = arg;
	int have = (int)m->view.decisions_total;

	for (int i = 0; i < n && i < have; i++)
		out[i] = m->decision[i];
	return n < have ? n : have;
}

static int made_up_set(
    void *arg, const char *stage, const char *knob, const char *value, char *why, size_t size)
{
	struct made_up *m = arg;
	int v = atoi(value);

	if (strcmp(stage, "disk") != 0 || strcmp(knob, "threads.max") != 0) {
		snprintf(why, size, "stage '%s' has no knob '%s'", stage, knob);
		return WEIR_ENOENT;
	}
	if (v < 1 || v > 64) {
		snprintf(why, size, "'%s' is not between 1 and 64", value);
		return WEIR_EINVAL;
	}
	snprintf(m->threads_max, sizeof(m->threads_max), "%d", v);
	return 0;
}

static int made_up_get(void *arg, const char *stage, const char *knob, char *buf, size_t size)
{
	struct made_up *m = arg;

	if (strcmp(stage, "disk") != 0 || strcmp(knob, "threads.max") != 0)
		return WEIR_ENOENT;
	snprintf(buf, size, "%s", m->threads_max);
	return 0;
}

static int made_up_set_overload(void *arg, enum weir_admission_mode mode)
{
	struct made_up *m = arg;

	m->overload = mode;
	return 0;
}

static enum weir_admission_mode made_up_overload(void *arg)
{
	const struct made_up *m = arg;

	return m->overload;
}

struct admin_source made_up_source(struct made_up *m)
{
	return (struct admin_source){
	    .arg = m,
	    .profile = made_up_profile,
	    .view = made_up_view,
	    .view_free = made_up_view_free,
	    .decisions = made_up_decisions,
	    .set = made_up_set,
	    .get = made_up_get,
	    .set_overload = made_up_set_overload,
	    .overload = made_up_overload,
	};
}
