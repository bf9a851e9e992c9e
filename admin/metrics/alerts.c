/* SPDX-License-Identifier: MIT */
/*
 * Raises and clears alerts; see alerts.h.
 *
 * The states of an alert:
 * - Pending: added to `active` with id 0 when its condition first holds. Dropped as soon as the
 *   condition no longer holds.
 * - Raised: the condition has held for the `for` of its rule. The alert gets an id and is reported.
 * - Cleared: the condition has not held for the `linger` of its rule. The alert is reported again
 *   and moves to the ring `past`.
 *
 * Used by one thread; times are taken from the view.
 */
#include "alerts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/text/number_format.h"
#include "framework/base/json.h"

#define NS_PER_S 1000000000LL

struct alerts_stage {
	char name[WEIR_NAME_MAX + 1];
	uint64_t stuck;
	int64_t longest_ns;
};

/* The arguments of one check. */
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

/* Return the rule that applies to `stage`. The rule of top_class_shed is always returned as
 * enabled: stages whose rule is disabled have already been left out of its sum. */
static struct weir_alert_rule rule_of(
    const struct alerts *a, enum weir_alert_kind kind, const char *stage)
{
	struct weir_alert_rule rule = *weir_alert_rule(&a->rules, kind, stage);

	rule.enabled |= kind == WEIR_ALERT_TOP_CLASS_SHED;
	return rule;
}

/* Raise an alert whose condition has held for `for_ns`, and report it once. */
static void raise_due(const struct look *l, struct alert *alert, int64_t for_ns)
{
	if (alert->id != 0 || l->now_ns - alert->since_ns < for_ns)
		return;
	alert->id = ++l->a->n;
	l->tell(l->arg, alert);
}

/* Record that the condition holds now and began to hold at `since_ns`; `text` is the message. */
static void holds(const struct look *l, enum weir_alert_kind kind, const char *stage,
    int64_t since_ns, const char *text)
{
	static const char *const level[WEIR_ALERTS] = {"bad", "bad", "warn", "warn"};
	struct alerts *a = l->a;
	const char *name = weir_alert_names[kind];
	struct weir_alert_rule rule = rule_of(a, kind, stage);
	struct alert *alert = find(a, name, stage);

	if (!rule.enabled || (!alert && a->n_active == ALERTS_ACTIVE_MAX))
		return;
	if (!alert) {
		alert = &a->active[a->n_active++];
		*alert = (struct alert){.kind = (int)kind,
		    .name = name,
		    .level = level[kind],
		    .since_ns = since_ns < l->now_ns ? since_ns : l->now_ns};
		snprintf(alert->stage, sizeof(alert->stage), "%s", stage);
	}
	alert->last_ns = l->now_ns;
	snprintf(alert->text, sizeof(alert->text), "%s", text);
	raise_due(l, alert, rule.for_ns);
}

static void clear(const struct look *l, struct alert *alert)
{
	struct alerts *a = l->a;

	alert->until_ns = l->now_ns;
	if (alert->id != 0) {
		l->tell(l->arg, alert);
		a->past[a->n_past++ % ALERTS_PAST] = *alert;
	}
	a->n_active--;
	memmove(alert, alert + 1, (size_t)(&a->active[a->n_active] - alert) * sizeof(*alert));
}

/* Clear alerts of `kind` whose condition has not held for their linger time. An alert that has not
 * been raised is dropped as soon as its condition no longer holds. Setting the clock back also
 * clears alerts. */
static void expire(const struct look *l, enum weir_alert_kind kind)
{
	for (int i = l->a->n_active - 1; i >= 0; i--) {
		struct alert *alert = &l->a->active[i];
		struct weir_alert_rule rule = rule_of(l->a, kind, alert->stage);
		int64_t quiet_ns = l->now_ns - alert->last_ns;
		bool lingers = alert->id != 0 && quiet_ns > 0 && quiet_ns < rule.linger_ns;
		if (alert->kind == (int)kind && (!rule.enabled || (quiet_ns != 0 && !lingers)))
			clear(l, alert);
	}
}

/* ---- the conditions ---- */

static void look_at_shed(
    const struct look *l, const struct weir_graph_view *v, const struct sample *sample)
{
	const struct weir_alerts_spec *rules = &l->a->rules;
	const enum weir_alert_kind kind = WEIR_ALERT_TOP_CLASS_SHED;
	double all = 0, most = 0;
	const char *where = "";
	char text[320];

	for (int i = 0; sample && v->n_classes > 0 && i < v->n_stages; i++) {
		bool counts = weir_alert_rule(rules, kind, v->stages[i].name)->enabled;
		double shed = sample[i].known && counts
				  ? sample[i].class_v[0][SAMPLE_CLASS_SHED] - sample[i].ordered[0]
				  : 0;
		all += shed;
		if (shed > most) {
			most = shed;
			where = v->stages[i].name;
		}
	}
	if (all > rules->rule[kind].above_per_s) {
		snprintf(text, sizeof(text), "%s/s of %s '%.60s' are shed, most of them at %.60s",
		    number_text(NUMBER_ROOM, all, 4),
		    v->n_classes > 1 ? "the highest class" : "the only class", v->class_name[0],
		    where);
		holds(l, kind, "", l->now_ns, text);
	}
	expire(l, kind);
}

/* Update the per-stage data to match the stages of the view. Returns false if out of memory. */
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

/* The watchdog counts a stuck call only once, when it exceeds its time limit. From then on, the
 * stage is considered stuck as long as the time of its longest-running call keeps increasing. A
 * call that may block, in the thread of its client alone, is not stuck. */
static void look_at_stuck(const struct look *l, const struct weir_graph_view *v)
{
	const enum weir_alert_kind kind = WEIR_ALERT_STAGE_STUCK;
	char text[320];

	if (!follow(l->a, v))
		return;
	for (int i = 0; i < v->n_stages; i++) {
		const struct weir_stage_view *s = &v->stages[i];
		struct alerts_stage *was = &l->a->stages[i];
		bool grows = s->longest_running_ns > 0 && s->longest_running_ns >= was->longest_ns;
		bool known = find(l->a, weir_alert_names[kind], was->name);
		if (!s->blocks_alone && (s->stuck > was->stuck || (known && grows))) {
			snprintf(text, sizeof(text),
			    "a handler of %.60s is stuck: it has been running for %s s", s->name,
			    number_text(NUMBER_ROOM, (double)s->longest_running_ns / 1e9, 3));
			holds(l, kind, was->name, l->now_ns, text);
		}
		was->stuck = s->stuck;
		was->longest_ns = s->longest_running_ns;
	}
	expire(l, kind);
}

static void look_at_bottleneck(const struct look *l, const struct bottleneck *b)
{
	char text[320];

	if (b && b->limits) {
		bottleneck_sentence(b, text, sizeof(text));
		holds(l, WEIR_ALERT_BOTTLENECK_CHRONIC, b->stage, b->since_ns, text);
	}
	expire(l, WEIR_ALERT_BOTTLENECK_CHRONIC);
}

void alerts_feed(struct alerts *a, const struct alerts_about *about,
    const struct weir_graph_view *v, const struct sample *sample, alerts_tell_fn *tell, void *arg)
{
	const struct look l = {.a = a, .now_ns = v->wall_ns, .tell = tell, .arg = arg};

	struct weir_alerts_spec built_in = weir_alerts_default();

	if (!a->ruled)
		alerts_rule(a, &built_in);
	look_at_shed(&l, v, sample);
	look_at_stuck(&l, v);
	look_at_bottleneck(&l, about->bottleneck);
	if (about->history_fails)
		holds(&l, WEIR_ALERT_HISTORY_FILE, "", l.now_ns,
		    "the history cannot be written to its file and is kept in memory only; the log "
		    "shows why");
	expire(&l, WEIR_ALERT_HISTORY_FILE);
}

void alerts_rule(struct alerts *a, struct weir_alerts_spec *rules)
{
	weir_alerts_free(&a->rules);
	a->rules = *rules;
	a->ruled = true;
	*rules = (struct weir_alerts_spec){.n_stages = 0};
}

void alerts_fini(struct alerts *a)
{
	weir_alerts_free(&a->rules);
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

/* Return the per-stage overrides of one kind of alert. */
static json_t *stages_json(const struct weir_alerts_spec *rules, int kind)
{
	json_t *list = json_array();

	for (int i = 0; i < rules->n_stages; i++) {
		const struct weir_alert_stage_spec *s = &rules->stages[i];
		if (s->kind == kind)
			json_push(
			    &list, json_pack("{s:s, s:b, s:f, s:f}", "stage", s->stage, "enabled",
				       s->rule.enabled, "for", (double)s->rule.for_ns / 1e9,
				       "linger", (double)s->rule.linger_ns / 1e9));
	}
	return list;
}

static json_t *rules_json(const struct weir_alerts_spec *rules)
{
	json_t *list = json_array();

	for (int k = 0; k < WEIR_ALERTS; k++) {
		const struct weir_alert_rule *r = &rules->rule[k];
		json_t *above =
		    k == WEIR_ALERT_TOP_CLASS_SHED ? json_real(r->above_per_s) : json_null();
		json_push(&list,
		    json_pack("{s:s, s:b, s:o, s:f, s:f, s:o}", "name", weir_alert_names[k],
			"enabled", r->enabled, "above", above, "for", (double)r->for_ns / 1e9,
			"linger", (double)r->linger_ns / 1e9, "stages", stages_json(rules, k)));
	}
	return list;
}

json_t *alerts_json(const struct alerts *a)
{
	const struct weir_alerts_spec none = weir_alerts_default();
	json_t *active = json_array(), *past = json_array();
	unsigned n = !a ? 0 : a->n_past < ALERTS_PAST ? a->n_past : ALERTS_PAST;

	for (int i = a ? a->n_active - 1 : -1; i >= 0; i--)
		if (a->active[i].id != 0)
			json_push(&active, alert_json(&a->active[i]));
	for (unsigned i = 1; i <= n; i++)
		json_push(&past, alert_json(&a->past[(a->n_past - i) % ALERTS_PAST]));
	return json_pack("{s:o, s:o, s:o}", "active", active, "past", past, "rules",
	    rules_json(a && a->ruled ? &a->rules : &none));
}
