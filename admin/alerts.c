/* SPDX-License-Identifier: MIT */
/* Raising and clearing; see alerts.h. */
#include "alerts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_put.h"

#define NS_PER_S 1000000000LL

struct alerts_stage {
	char name[64];
	uint64_t stuck;
	int64_t longest_ns;
};

/* One look: what it goes by. */
struct look {
	struct alerts *a;
	int64_t now_ns;
	alerts_tell_fn *tell;
	void *arg;
};

/* ---- raising and clearing ---- */

static struct alert *find(struct alerts *a, const char *name, const char *stage)
{
	for (int i = 0; i < a->n_active; i++)
		if (strcmp(a->active[i].name, name) == 0 && strcmp(a->active[i].stage, stage) == 0)
			return &a->active[i];
	return NULL;
}

/* It holds now, and `text` says why. */
static void holds(
    const struct look *l, const char *name, const char *level, const char *stage, const char *text)
{
	struct alerts *a = l->a;
	struct alert *alert = find(a, name, stage);
	bool new = !alert;

	if (new && a->n_active == ALERTS_ACTIVE_MAX)
		return;
	if (new) {
		alert = &a->active[a->n_active++];
		*alert = (struct alert){
		    .id = ++a->n, .name = name, .level = level, .since_ns = l->now_ns};
		snprintf(alert->stage, sizeof(alert->stage), "%s", stage);
	}
	alert->last_ns = l->now_ns;
	snprintf(alert->text, sizeof(alert->text), "%s", text);
	if (new)
		l->tell(l->arg, alert);
}

/* Clear alerts called `name` that did not hold for `linger_s`; a clock that was set back ends them. */
static void expire(const struct look *l, const char *name, int linger_s)
{
	struct alerts *a = l->a;

	for (int i = a->n_active - 1; i >= 0; i--) {
		struct alert *alert = &a->active[i];
		int64_t quiet_ns = l->now_ns - alert->last_ns;
		if (strcmp(alert->name, name) != 0 || quiet_ns == 0 ||
		    (quiet_ns > 0 && quiet_ns < linger_s * NS_PER_S))
			continue;
		alert->until_ns = l->now_ns;
		l->tell(l->arg, alert);
		a->past[a->n_past++ % ALERTS_PAST] = *alert;
		a->n_active--;
		memmove(alert, alert + 1, (size_t)(a->n_active - i) * sizeof(*alert));
	}
}

/* ---- the conditions ---- */

static void look_at_shed(
    const struct look *l, const struct weir_graph_view *v, const struct sample *sample)
{
	static const char name[] = "top_class_shed";
	double all = 0, most = 0;
	const char *where = "";
	char text[320];

	for (int i = 0; sample && v->n_classes > 0 && i < v->n_stages; i++) {
		double shed = sample[i].known ? sample[i].class_v[0][SAMPLE_CLASS_SHED] : 0;
		all += shed;
		if (shed > most) {
			most = shed;
			where = v->stages[i].name;
		}
	}
	if (all > 0) {
		snprintf(text, sizeof(text),
		    "%.4g/s of %s '%.60s' are shed, most at %.60s: nothing is left to refuse "
		    "before it",
		    all, v->n_classes > 1 ? "the highest class" : "the only class",
		    v->class_name[0], where);
		holds(l, name, "bad", "", text);
	}
	expire(l, name, ALERTS_SHED_LINGER_S);
}

/* What is kept of the stages follows the view. false: no memory. */
static bool follow(struct alerts *a, const struct weir_graph_view *v)
{
	bool same = a->n_stages == v->n_stages;

	for (int i = 0; same && i < v->n_stages; i++)
		same = strncmp(a->stages[i].name, v->stages[i].name,
			   sizeof(a->stages[i].name) - 1) == 0;
	if (same)
		return true;
	struct alerts_stage *stages = calloc((size_t)v->n_stages + 1, sizeof(*stages));
	if (!stages)
		return false;
	for (int i = 0; i < v->n_stages; i++) {
		snprintf(stages[i].name, sizeof(stages[i].name), "%s", v->stages[i].name);
		stages[i].stuck = v->stages[i].stuck;
	}
	free(a->stages);
	a->stages = stages;
	a->n_stages = v->n_stages;
	return true;
}

/* The watchdog counts a call once, when it has taken too long; it is stuck for as long as the longest
 * call under way only grows. */
static void look_at_stuck(const struct look *l, const struct weir_graph_view *v)
{
	static const char name[] = "stage_stuck";
	char text[320];

	if (!follow(l->a, v))
		return;
	for (int i = 0; i < v->n_stages; i++) {
		const struct weir_stage_view *s = &v->stages[i];
		struct alerts_stage *was = &l->a->stages[i];
		bool grows = s->longest_running_ns > 0 && s->longest_running_ns >= was->longest_ns;
		bool known = find(l->a, name, was->name);
		if (s->stuck > was->stuck || (known && grows)) {
			snprintf(text, sizeof(text),
			    "a handler of %.60s is stuck: it has been running for %.3g s", s->name,
			    (double)s->longest_running_ns / 1e9);
			holds(l, name, "bad", was->name, text);
		}
		was->stuck = s->stuck;
		was->longest_ns = s->longest_running_ns;
	}
	expire(l, name, 0);
}

static void look_at_bottleneck(const struct look *l, const struct bottleneck *b)
{
	static const char name[] = "bottleneck_chronic";
	char text[320];

	if (b && bottleneck_chronic(b)) {
		bottleneck_sentence(b, text, sizeof(text));
		holds(l, name, "warn", b->stage, text);
	}
	expire(l, name, 0);
}

void alerts_feed(struct alerts *a, const struct alerts_about *about,
    const struct weir_graph_view *v, const struct sample *sample, alerts_tell_fn *tell, void *arg)
{
	const struct look l = {.a = a, .now_ns = v->wall_ns, .tell = tell, .arg = arg};

	look_at_shed(&l, v, sample);
	look_at_stuck(&l, v);
	look_at_bottleneck(&l, about->bottleneck);
	if (about->history_fails)
		holds(&l, "history_file", "warn", "",
		    "the history can not be written to its file and is in memory alone; the log "
		    "says why");
	expire(&l, "history_file", 0);
}

void alerts_fini(struct alerts *a)
{
	free(a->stages);
	*a = (struct alerts){0};
}

/* ---- as JSON ---- */

json_t *alert_json(const struct alert *a)
{
	return json_pack("{s:I, s:s, s:s, s:s?, s:f, s:o, s:s}", "id", (json_int_t)a->id, "name",
	    a->name, "level", a->level, "stage", *a->stage ? a->stage : NULL, "since",
	    (double)a->since_ns / 1e9, "until",
	    a->until_ns ? json_real((double)a->until_ns / 1e9) : json_null(), "text", a->text);
}

json_t *alerts_json(const struct alerts *a)
{
	json_t *active = json_array(), *past = json_array();
	unsigned n = !a ? 0 : a->n_past < ALERTS_PAST ? a->n_past : ALERTS_PAST;

	for (int i = a ? a->n_active - 1 : -1; i >= 0; i--)
		json_push(&active, alert_json(&a->active[i]));
	for (unsigned i = 1; i <= n; i++)
		json_push(&past, alert_json(&a->past[(a->n_past - i) % ALERTS_PAST]));
	return json_pack("{s:o, s:o}", "active", active, "past", past);
}
