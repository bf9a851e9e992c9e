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

/* Time for which the highest class may be shed at stages that let in lower classes at the same time.
 * Until then, admission may still be finding out which classes to refuse. A guess. */
#define SOFT_NS (30 * NS_PER_S)

struct alerts_stage {
	char name[WEIR_NAME_MAX + 1];
	uint64_t stuck;
	int64_t longest_ns;
	/* of a source: what its limits have turned away, by metric */
	int64_t away[WEIR_METRICS_MAX];
};

/* The arguments of one check. */
struct look {
	struct alerts *a;
	int64_t now_ns;
	alerts_tell_fn *tell;
	void *arg;
};

/* ---- raising and clearing ---- */

static struct alert *find(
    struct alerts *a, const char *name, const char *stage, const char *of_class)
{
	for (int i = 0; i < a->n_active; i++)
		if (strcmp(a->active[i].name, name) == 0 &&
		    strcmp(a->active[i].stage, stage) == 0 &&
		    strcmp(a->active[i].of_class, of_class) == 0)
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

/* A condition that holds now. The names are those of the view; `of_class` may be "". */
struct condition {
	enum weir_alert_kind kind;
	bool bad; /* the level: bad or warn */
	const char *stage, *of_class;
	int64_t since_ns; /* when it began to hold */
	char text[320], past[320];
};

static void holds(const struct look *l, const struct condition *c)
{
	struct alerts *a = l->a;
	const char *name = weir_alert_names[c->kind];
	struct weir_alert_rule rule = rule_of(a, c->kind, c->stage);
	struct alert *alert = find(a, name, c->stage, c->of_class);

	if (!rule.enabled || (!alert && a->n_active == ALERTS_ACTIVE_MAX))
		return;
	if (!alert) {
		alert = &a->active[a->n_active++];
		*alert = (struct alert){.kind = (int)c->kind,
		    .name = name,
		    .since_ns = c->since_ns < l->now_ns ? c->since_ns : l->now_ns};
		snprintf(alert->stage, sizeof(alert->stage), "%s", c->stage);
		snprintf(alert->of_class, sizeof(alert->of_class), "%s", c->of_class);
	}
	alert->level = c->bad ? "bad" : "warn";
	alert->last_ns = l->now_ns;
	memcpy(alert->text, c->text, sizeof(alert->text));
	memcpy(alert->past, c->past, sizeof(alert->past));
	raise_due(l, alert, rule.for_ns);
}

/* A condition of the kind at the stage, "" for the whole server, without its texts. */
static struct condition condition(
    const struct look *l, enum weir_alert_kind kind, const char *stage)
{
	return (struct condition){.kind = kind,
	    .bad = kind != WEIR_ALERT_BOTTLENECK_CHRONIC && kind != WEIR_ALERT_HISTORY_FILE &&
		   kind != WEIR_ALERT_SOURCE_REFUSES,
	    .stage = stage,
	    .of_class = "",
	    .since_ns = l->now_ns};
}

static void clear(const struct look *l, struct alert *alert)
{
	struct alerts *a = l->a;

	alert->until_ns = l->now_ns;
	memcpy(alert->text, alert->past, sizeof(alert->text));
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

/* Whether a class below the highest one is let in at the stage. */
static bool lets_in_lower(const struct weir_graph_view *v, const struct sample *s)
{
	for (int c = 1; c < v->n_classes; c++)
		if (s->class_v[c][SAMPLE_CLASS_IN] > s->class_v[c][SAMPLE_CLASS_SHED])
			return true;
	return false;
}

/* Events of the highest class that are shed per second, and the stage that sheds most of them. */
struct shed_rate {
	double all, most;
	const char *where;
};

/* Sum up the sheds, apart for the stages that let in lower classes. */
static void sum_shed(const struct look *l, const struct weir_graph_view *v,
    const struct sample *sample, struct shed_rate by[2])
{
	by[0] = by[1] = (struct shed_rate){.where = ""};
	for (int i = 0; sample && v->n_classes > 0 && i < v->n_stages; i++) {
		const struct sample *s = &sample[i];
		if (!s->known ||
		    !weir_alert_rule(&l->a->rules, WEIR_ALERT_TOP_CLASS_SHED, v->stages[i].name)
			 ->enabled)
			continue;
		struct shed_rate *r = &by[lets_in_lower(v, s)];
		double shed = s->class_v[0][SAMPLE_CLASS_SHED] - s->ordered[0];
		r->all += shed;
		if (shed > r->most) {
			r->most = shed;
			r->where = v->stages[i].name;
		}
	}
}

static void look_at_shed(
    const struct look *l, const struct weir_graph_view *v, const struct sample *sample)
{
	const enum weir_alert_kind kind = WEIR_ALERT_TOP_CLASS_SHED;
	double above = l->a->rules.rule[kind].above_per_s;
	struct condition c = condition(l, kind, "");
	struct shed_rate by[2];

	sum_shed(l, v, sample, by);
	bool hard = by[0].all > above, soft = by[0].all + by[1].all > above;
	if (hard || !soft)
		l->a->soft_since_ns = 0;
	else if (l->a->soft_since_ns == 0)
		l->a->soft_since_ns = l->now_ns;
	if (hard || (soft && l->now_ns - l->a->soft_since_ns >= SOFT_NS)) {
		const char *what = v->n_classes > 1 ? "the highest class" : "the only class";
		const char *where = by[0].most >= by[1].most || hard ? by[0].where : by[1].where;
		double rate = hard ? by[0].all : by[0].all + by[1].all;
		const char *also = hard ? "" : ", while lower classes are let in there";
		const char *also_past = hard ? "" : ", while lower classes were let in there";
		c.bad = hard;
		snprintf(c.text, sizeof(c.text),
		    "%s/s of %s '%.60s' are shed, most of them at %.60s%s",
		    number_text(NUMBER_ROOM, rate, 4), what, v->class_name[0], where, also);
		snprintf(c.past, sizeof(c.past),
		    "%s/s of %s '%.60s' were shed, most of them at %.60s%s",
		    number_text(NUMBER_ROOM, rate, 4), what, v->class_name[0], where, also_past);
		holds(l, &c);
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
		memcpy(stages[i].away, v->stages[i].metric, sizeof(stages[i].away));
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

	for (int i = 0; i < v->n_stages; i++) {
		const struct weir_stage_view *s = &v->stages[i];
		struct alerts_stage *was = &l->a->stages[i];
		bool grows = s->longest_running_ns > 0 && s->longest_running_ns >= was->longest_ns;
		bool known = find(l->a, weir_alert_names[kind], was->name, "");
		if (!s->blocks_alone && (s->stuck > was->stuck || (known && grows))) {
			struct condition c = condition(l, kind, was->name);
			const char *took =
			    number_text(NUMBER_ROOM, (double)s->longest_running_ns / 1e9, 3);
			snprintf(c.text, sizeof(c.text),
			    "a handler of %.60s is stuck: it has been running for %s s", s->name,
			    took);
			snprintf(c.past, sizeof(c.past),
			    "a handler of %.60s was stuck: it ran for more than %s s", s->name,
			    took);
			holds(l, &c);
		}
		was->stuck = s->stuck;
		was->longest_ns = s->longest_running_ns;
	}
	expire(l, kind);
}

static void look_at_bottleneck(const struct look *l, const struct bottleneck *b)
{
	if (b && b->limits) {
		struct condition c = condition(l, WEIR_ALERT_BOTTLENECK_CHRONIC, b->stage);
		c.since_ns = b->since_ns;
		bottleneck_sentence(b, c.text, sizeof(c.text));
		snprintf(c.past, sizeof(c.past), "%.60s limited the server", b->stage);
		holds(l, &c);
	}
	expire(l, WEIR_ALERT_BOTTLENECK_CHRONIC);
}

static void look_at_burn(const struct look *l, const struct weir_graph_view *v)
{
	const enum weir_alert_kind kind = WEIR_ALERT_SLO_BURN;
	double objective = l->a->rules.rule[kind].objective;
	char slo[NUMBER_MAX], in_long[NUMBER_MAX], in_short[NUMBER_MAX], rate[NUMBER_MAX];

	burn_feed(&l->a->burn, v);
	for (int k = 0; k < v->n_classes; k++) {
		struct burn_state s = burn_judge(&l->a->burn, k, objective);
		struct condition c = condition(l, kind, "");
		if (!s.due)
			continue;
		c.of_class = v->class_name[k];
		number_text(slo, (double)v->class_slo_ns[k] / 1e9, 3);
		number_text(in_long, 100 * s.long_share, 3);
		number_text(in_short, 100 * s.short_share, 3);
		number_text(rate, s.rate, 3);
		snprintf(c.text, sizeof(c.text),
		    "requests of class '%.60s' miss their objective of %.12s s: %.8s %% in the "
		    "last %d "
		    "h, "
		    "%.8s %% in the last %d min; the error budget is used up %.8s times too fast",
		    c.of_class, slo, in_long, (int)(s.long_ns / (3600 * NS_PER_S)), in_short,
		    (int)(s.short_ns / (60 * NS_PER_S)), rate);
		snprintf(c.past, sizeof(c.past),
		    "requests of class '%.60s' missed their objective of %.12s s: %.8s %% in %d h; "
		    "the "
		    "error budget was used up %.8s times too fast",
		    c.of_class, slo, in_long, (int)(s.long_ns / (3600 * NS_PER_S)), rate);
		holds(l, &c);
	}
	expire(l, kind);
}

/* What a source has turned away per second since the last check, which was a second ago. *most is the
 * metric of the limit that has refused most. */
static double turned_away(
    const struct weir_stage_view *s, struct alerts_stage *was, const struct weir_metric **most)
{
	int64_t all = 0, largest = 0;

	for (int m = 0; m < s->n_metrics; m++) {
		int64_t n = s->metric[m] - was->away[m];
		was->away[m] = s->metric[m];
		if (s->metrics[m].kind != WEIR_METRIC_TURNED_AWAY || n <= 0)
			continue;
		all += n;
		if (n > largest) {
			largest = n;
			*most = &s->metrics[m];
		}
	}
	return (double)all;
}

static void look_at_sources(const struct look *l, const struct weir_graph_view *v)
{
	const enum weir_alert_kind kind = WEIR_ALERT_SOURCE_REFUSES;

	for (int i = 0; i < v->n_stages; i++) {
		const struct weir_stage_view *s = &v->stages[i];
		struct alerts_stage *was = &l->a->stages[i];
		const struct weir_metric *most = NULL;
		double rate = turned_away(s, was, &most);
		if (!most || rate <= l->a->rules.rule[kind].above_per_s)
			continue;
		struct condition c = condition(l, kind, was->name);
		snprintf(c.text, sizeof(c.text),
		    "%.60s turns away %s/s because of its limits, most of them counted by "
		    "weir_%.40s: %.100s",
		    s->name, number_text(NUMBER_ROOM, rate, 4), most->name, most->help);
		snprintf(c.past, sizeof(c.past),
		    "%.60s turned away %s/s because of its limits, most of them counted by "
		    "weir_%.40s: %.100s",
		    s->name, number_text(NUMBER_ROOM, rate, 4), most->name, most->help);
		holds(l, &c);
	}
	expire(l, kind);
}

static void look_at_history(const struct look *l, bool fails)
{
	struct condition c = condition(l, WEIR_ALERT_HISTORY_FILE, "");

	snprintf(c.text, sizeof(c.text),
	    "the history cannot be written to its file and is kept in memory only; the log shows "
	    "why");
	snprintf(c.past, sizeof(c.past),
	    "the history could not be written to its file and was kept in memory only");
	if (fails)
		holds(l, &c);
	expire(l, WEIR_ALERT_HISTORY_FILE);
}

void alerts_feed(struct alerts *a, const struct alerts_about *about,
    const struct weir_graph_view *v, const struct sample *sample, alerts_tell_fn *tell, void *arg)
{
	const struct look l = {.a = a, .now_ns = v->wall_ns, .tell = tell, .arg = arg};

	struct weir_alerts_spec built_in = weir_alerts_default();

	if (!a->ruled)
		alerts_rule(a, &built_in);
	look_at_shed(&l, v, sample);
	if (follow(a, v)) {
		look_at_stuck(&l, v);
		look_at_sources(&l, v);
	}
	look_at_bottleneck(&l, about->bottleneck);
	look_at_burn(&l, v);
	look_at_history(&l, about->history_fails);
}

const struct alert *alerts_top_shed(const struct alerts *a)
{
	for (int i = 0; a && i < a->n_active; i++)
		if (a->active[i].kind == WEIR_ALERT_TOP_CLASS_SHED && a->active[i].id != 0 &&
		    strcmp(a->active[i].level, "bad") == 0)
			return &a->active[i];
	return NULL;
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
	burn_fini(&a->burn);
	*a = (struct alerts){0};
}

/* ---- as JSON ---- */

json_t *alert_json(const struct alert *a)
{
	return json_pack("{s:I, s:s, s:s, s:s?, s:s?, s:f, s:o, s:s}", "id", (json_int_t)a->id,
	    "name", a->name, "level", a->level, "stage", *a->stage ? a->stage : NULL, "class",
	    *a->of_class ? a->of_class : NULL, "since", (double)a->since_ns / 1e9, "until",
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
		bool counts = k == WEIR_ALERT_TOP_CLASS_SHED || k == WEIR_ALERT_SOURCE_REFUSES;
		json_t *above = counts ? json_real(r->above_per_s) : json_null();
		json_t *objective =
		    k == WEIR_ALERT_SLO_BURN ? json_real(r->objective) : json_null();
		json_push(
		    &list, json_pack("{s:s, s:b, s:o, s:o, s:f, s:f, s:o}", "name",
			       weir_alert_names[k], "enabled", r->enabled, "above", above,
			       "objective", objective, "for", (double)r->for_ns / 1e9, "linger",
			       (double)r->linger_ns / 1e9, "stages", stages_json(rules, k)));
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
