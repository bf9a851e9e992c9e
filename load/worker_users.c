/* SPDX-License-Identifier: MIT */
/* Users with more than one request; see worker.h. Runs in the worker's thread only. */
#include "load/rng.h"
#include "load/worker.h"

static int64_t think_ns(const struct worker *w, struct ticket *t)
{
	const struct load_plan *plan = w->plan;
	double u = ticket_uniform(t), v = 0;

	if (plan->think == LOAD_THINK_LOGNORMAL)
		v = ticket_uniform(t);
	return load_think_ns(plan->think, plan->think_ns, plan->think_shape, u, v);
}

/* Schedule the next request of the same user after a pause, unless the run will be over by then. If
 * the heap is full or out of memory, the user leaves. */
static void schedule(struct worker *w, struct ticket *t, int64_t pause_ns)
{
	t->due_ns = w->now_ns + pause_ns;
	t->attempt_ns = t->due_ns;
	t->attempt = 0;
	t->resent = false;
	t->phase = (uint8_t)worker_phase_at(w, t->phase, t->due_ns);
	t->request = worker_pick_request(w, t);
	if (t->due_ns < w->run->end_ns)
		(void)ticket_heap_push(&w->later, t);
}

void worker_next_of_session(struct worker *w, struct ticket *t)
{
	t->session_left--;
	schedule(w, t, think_ns(w, t));
}

static uint32_t page_files(const struct worker *w, struct ticket *t)
{
	return w->plan->pages ? load_page_files(ticket_uniform(t)) : 1;
}

void worker_next_page(struct worker *w, struct ticket *t, bool good)
{
	if (good && t->session_left > 0) {
		t->session_left--;
		schedule(w, t, 0);
		return;
	}
	t->session_left = page_files(w, t) - 1;
	schedule(w, t, think_ns(w, t));
}

/* Return the class of user i of n. Each class has its share of the users, as exactly as whole
 * numbers allow. */
static uint8_t class_of_user(const struct load_plan *plan, int i, int n)
{
	double total = 0, at;
	int c = 0;

	for (int k = 0; k < plan->n_classes; k++)
		total += plan->class[k].weight;
	at = total * (i + 0.5) / n;
	while (c < plan->n_classes - 1 && at > plan->class[c].weight)
		at -= plan->class[c++].weight;
	return (uint8_t)c;
}

void worker_start_users(struct worker *w)
{
	const struct load_plan *plan = w->plan;

	for (int i = w->rank; i < plan->users; i += plan->threads) {
		struct ticket t = {
		    .random = (uint32_t)weir_random_at(rng_key(plan->seed, 0), (uint64_t)i),
		    .class_id = class_of_user(plan, i, plan->users)};
		t.session_left = page_files(w, &t) - 1;
		/* a user was thinking when the run began */
		t.due_ns =
		    w->run->start_ns + (int64_t)((double)plan->think_ns * ticket_uniform(&t));
		t.attempt_ns = t.due_ns;
		t.phase = (uint8_t)worker_phase_at(w, 0, t.due_ns);
		t.request = worker_pick_request(w, &t);
		if (t.due_ns < w->run->end_ns && !ticket_heap_push(&w->later, &t))
			w->tally.no_memory = true;
	}
}
