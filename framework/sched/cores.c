/* SPDX-License-Identifier: MIT */
/* Creates core groups, and publishes what changes while they run; see cores.h. */
#include "sched/cores.h"
#include "sched/serial.h"

#include <stdlib.h>
#include <string.h>

static char fixed_policy[] = "static";

static struct weir_threads_spec core_threads(const struct cores_spec *spec)
{
	struct weir_threads_spec t = *spec->threads;

	t.min = spec->n;
	t.max = spec->most > 0 ? spec->most : spec->n;
	t.start = -1;
	t.policy = t.policy ? t.policy : fixed_policy;
	t.pinned = true;
	return t;
}

static int copy_cpus(struct core_group *group, const struct cores_spec *spec)
{
	size_t n = (size_t)spec->max;

	if (!spec->cpu)
		return 0;
	group->cpu = calloc(n, sizeof(*group->cpu));
	if (!group->cpu)
		return WEIR_ENOMEM;
	memcpy(group->cpu, spec->cpu, n * sizeof(*group->cpu));
	return 0;
}

int cores_new(struct weir_graph *graph, const struct cores_spec *spec, struct pool **out)
{
	struct core_group *group = aligned_alloc(WEIR_CACHE_LINE, sizeof(*group));

	if (!group)
		return WEIR_ENOMEM;
	memset(group, 0, sizeof(*group));
	lock_init(&group->asking);
	lock_init(&group->lock);
	group->plan.policy = spec->policy;
	group->threads = core_threads(spec);
	group->max = spec->max;
	group->first = spec->first;
	group->newest = spec->newest;
	group->plan.balance = !spec->unbalanced;
	int copies = spec->copies > 1 ? spec->copies : 1;
	int rc = copy_cpus(group, spec);
	if (rc == 0)
		rc = pool_new(graph, spec->name, &group->threads, NULL, &group->pool);
	if (rc != 0) {
		cores_free(group);
		return rc;
	}
	group->pool->main = core_main;
	group->pool->due = core_due;
	group->pool->cores = group;
	group->pool->copies = copies;
	*out = group->pool;
	return 0;
}

static void open_sink(struct core_group *group, int i, bool celled)
{
	struct sink *s = group->pool->sinks[i];

	s->place = (uint8_t)i;
	if (group->pool->copies > 1)
		s->queue.copy_cores = atomic_load(&group->pool->max) / group->pool->copies;
	s->queue.dated = s->queue.n_parts == 1;
	if (s->expire)
		group->expiring |= 1ULL << i;
	bool kept = sink_local(s) == LOCAL_KEPT;
	s->requeue = kept ? core_requeue : NULL;
	if (kept)
		group->kept |= 1ULL << i;
	if (!celled && !kept)
		return;
	s->cells = &group->cells[i];
	s->cells_apart = group->n_stages;
	s->n_cells = group->max;
	if (!celled) /* requeued events only, which need no slot */
		return;
	s->splice = core_splice;
	s->put = core_put;
}

int cores_open(struct pool *pool, uint64_t celled)
{
	struct core_group *group = pool->cores;
	size_t n = (size_t)pool->n_sinks, max = (size_t)group->max;
	size_t cells = (max + 1) * (n + 1);

	WEIR_ASSERT(n <= NEXT_STAGES_MAX);
	group->n_stages = (int)n;
	/* the spare of a core belongs to the same copy */
	group->first_spare = (group->max + pool->copies - 1) / pool->copies * pool->copies;
	group->watched = calloc(max, sizeof(*group->watched));
	if (!group->watched)
		return WEIR_ENOMEM;
	group->core = aligned_alloc(WEIR_CACHE_LINE, max * sizeof(*group->core));
	group->cells = aligned_alloc(WEIR_CACHE_LINE, cells * sizeof(*group->cells));
	if (!group->core || !group->cells)
		return WEIR_ENOMEM;
	memset(group->core, 0, max * sizeof(*group->core));
	for (size_t k = 0; k < (max + 1) * n; k++)
		cell_init(&group->cells[k]);
	for (size_t k = 0; k < max; k++) {
		group->core[k].group = group;
		group->core[k].number = (int)k;
		group->core[k].cell = &group->cells[k * n];
	}
	for (size_t i = 0; i < n; i++) {
		open_sink(group, (int)i, celled >> i & 1);
		if (pool->sinks[i]->serial && serial_open(group, (int)i) != 0)
			return WEIR_ENOMEM;
	}
	cores_divide(group);
	return 0;
}

void cores_free(struct core_group *group)
{
	if (!group)
		return;
	for (int k = 0; group->core && group->cells && k < group->max * group->n_stages; k++)
		WEIR_ASSERT(cell_length(&group->cells[k]) == 0);
	serial_free(group->serial);
	free(group->core);
	free(group->cells);
	for (int k = 0; group->watched && k < group->max; k++)
		free(atomic_load(&group->watched[k].spare));
	free(group->watched);
	free(group->cpu);
	lock_fini(&group->lock);
	lock_fini(&group->asking);
	free(group);
}

void cores_get(struct core_group *group, struct cores_plan *plan)
{
	lock_take(&group->lock);
	*plan = group->plan;
	lock_release(&group->lock);
}

void cores_set(struct core_group *group, const struct cores_plan *plan)
{
	lock_take(&group->lock);
	group->plan = *plan;
	/* release: pairs with core_refresh, which takes the lock then */
	atomic_fetch_add_explicit(&group->version, 1, memory_order_release);
	lock_release(&group->lock);
}

/* Number of events in the cells of a stage beyond their shares, if `n` cells have `each` slots. */
static uint32_t surplus(const struct sink *s, int n, uint32_t each)
{
	uint32_t sum = 0;

	for (int k = 0; k < s->n_cells; k++) {
		uint32_t share = k < n ? each : 0;
		uint32_t in = cell_length(&s->cells[k * s->cells_apart]);
		sum += in > share ? in - share : 0;
	}
	return sum;
}

/* Divide the limits as for `most` cores. */
static void divide(struct core_group *group, int most)
{
	group->undivided = false;
	for (int i = 0; i < group->n_stages; i++) {
		struct sink *s = group->pool->sinks[i];
		int n = !s->splice || sink_local(s) == LOCAL_NEVER ? 0 : most;
		uint32_t each = queue_cell_share(atomic_load(&s->queue.limit), n);
		uint32_t over = surplus(s, n, each);
		/* A core that has read a larger share before may still add a batch, so look again. */
		group->undivided |= over > 0 || each < atomic_load(&s->queue.cell_max);
		queue_set_cells(&s->queue, n, over);
	}
}

void cores_divide(struct core_group *group)
{
	divide(group, atomic_load(&group->pool->max));
}

void cores_bound(struct core_group *group, int min, int max)
{
	/* Cells get smaller before there are more of them, and larger after others have begun to
	 * leave. */
	if (max > atomic_load(&group->pool->max))
		divide(group, max);
	pool_set_bounds(group->pool, min, max);
	cores_divide(group);
}

void cores_halt(struct core_group *group, const struct sink *sink, bool paused)
{
	uint64_t bit = 1ULL << sink->place;

	/* seq_cst: before pool_wake_all, and before a core that parks reads it */
	if (paused)
		atomic_fetch_or(&group->halted, bit);
	else
		atomic_fetch_and(&group->halted, ~bit);
}
