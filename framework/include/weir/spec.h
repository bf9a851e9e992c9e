/* SPDX-License-Identifier: MIT */
/*
 * The specification of a server: plain data, built by config/ from YAML or directly by an embedding
 * program.
 *
 * A knob row describes each setting. The rows of stages and groups are in
 * framework/plan/spec_knobs.c (weir_*_knobs below), those of the other sections in config/. The
 * loader, `check`, `describe`, the schema and the admin endpoint all read these rows. A spec owns
 * everything it points to; weir_spec_free frees it. An embedding program builds a spec with
 * weir_spec_new and weir_spec_add_stage, which fill in defaults.
 */
#ifndef WEIR_SPEC_H
#define WEIR_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/annotate.h>
#include <weir/error.h>
#include <weir/event.h>
#include <weir/knob.h>

WEIR_C_BEGIN

/** `threads:` of a group, or of a stage that is not in a group. A min or max of -1 (`auto`) stands
 *  for the number of cores that this process may use, adjusted so that min <= max. */
struct weir_threads_spec {
	/* number of handler threads, 1..1024; if start is -1, the pool starts with min */
	int64_t min, max, start;
	char *policy; /* resize policy: "seda", "weir", "static" */
	bool pinned;  /* bind thread i to core i modulo the number of cores */
	/* longest spin before a thread parks; -1 is adaptive (0 on one core) */
	int64_t spin_ns;
	/* report handler calls that take longer than this; 0 reports none */
	int64_t stuck_ns;
	struct weir_mark mark; /* position of `min`; .file is NULL if the key is absent */
	/* position of `policy`; .file is NULL if the key is absent */
	struct weir_mark policy_mark;
};

/* Order of the choices of `queue: { discipline: }`. */
enum weir_discipline {
	WEIR_DISCIPLINE_AUTO,
	WEIR_DISCIPLINE_PRIORITY,
	WEIR_DISCIPLINE_FIFO,
	WEIR_DISCIPLINE_SHORTEST,
};

struct weir_queue_spec {
	int64_t limit;  /* events */
	int discipline; /* enum weir_discipline */
	/* for `shortest`: the field that has the expected work of an event, in any unit; "" for the
	 * hint of the event type (weir_event_type.cost) */
	char *by;
	/* for `shortest`: an event that has waited longer is served first in its class; -1 is half the
	 * objective of the stage, 0 is never */
	int64_t starve_ns;
};

struct weir_cohort_spec {
	int64_t max;       /* events per handle call, 1..WEIR_BATCH_MAX */
	int64_t linger_ns; /* longest wait for a fuller cohort; 0 disables waiting */
	char *policy;      /* batch policy: "static", "weir", "seda" */
	/* position of `policy`; .file is NULL if the key is absent */
	struct weir_mark policy_mark;
	/* cohort key: a field of the event type, "stage" for ops->key, or "" for none */
	char *by;
};

/** Largest number of stages in a graph. 256 is a guess: ten times as many as a person can keep
 *  track of. Histories, the simulator and `weir top` have a slot for each stage. */
#define WEIR_STAGES_MAX 256

/** Largest batch of one handle call. */
#define WEIR_BATCH_MAX 256

enum weir_admission_mode { WEIR_ADMISSION_OFF, WEIR_ADMISSION_SHADOW, WEIR_ADMISSION_ENFORCE };

struct weir_admission_spec {
	char *policy; /* "auto", "none", "threshold", "rate", "codel" ... (framework/admission) */
	/* position of `policy`; .file is NULL if the key is absent */
	struct weir_mark policy_mark;
	int mode; /* enum weir_admission_mode */
	/* for `threshold`: queue length at which events of the highest class begin to be refused;
	 * lower classes are refused at smaller lengths. -1 is half the limit of the queue */
	int64_t threshold;
	double rate; /* for `rate`: events per second */
	/* for `rate`: depth of the token bucket in events; 0 selects the number of events in 10 ms
	 * at `rate`, at least 1 */
	double burst;
	/* target wait (codel, dagor) or target response time (seda_rt); -1 lets the policy
	 * choose */
	int64_t target_ns;
	/* for `codel`: window over which the minimum wait is taken; -1 lets the policy choose */
	int64_t interval_ns;
};

/** `degrade:`: when the stage reduces its quality to serve more events. */
struct weir_degrade_spec {
	/* pressure above which the level rises, 0..1; at 1, the default, it never rises */
	double above;
	double below;    /* pressure below which the level falls, less than `above` */
	int64_t step_ns; /* minimum time between two steps of the level; a step is 0.1 */
};

/** `width:` of a stage that holds events (WEIR_STAGE_HOLDS): the number of events that may be in
 *  its handlers or held at once. */
struct weir_width_spec {
	int64_t min;  /* 1 or more */
	int64_t max;  /* -1 is `auto`, the limit of the queue */
	char *policy; /* "weir" or "static", which stays at max */
	bool given;   /* the section is present, as it must be for a member of a group */
	/* position of the section; .file is NULL if the section is absent */
	struct weir_mark mark;
	/* position of `policy`; .file is NULL if the key is absent */
	struct weir_mark policy_mark;
};

enum weir_stage_mode {
	WEIR_MODE_SHARED,
	WEIR_MODE_EXCLUSIVE,
	WEIR_MODE_PARTITIONED,
	WEIR_MODE_REPLICATED, /* a state per core (WEIR_STAGE_REPLICABLE); in a core group only */
};

/** One entry of `to:`. */
struct weir_link_spec {
	char *outlet; /* "" for the default outlet (`to: NAME`) */
	char *stage;
	bool loop; /* may close a cycle: `{ stage: NAME, loop: true }` */
	struct weir_mark mark;
};

/** Order of the choices of `local:` of a stage. */
enum weir_local { WEIR_LOCAL_AUTO, WEIR_LOCAL_ALWAYS, WEIR_LOCAL_NEVER };

/** `urgent:` of a stage in a core group: the stage is visited next when this many of its events wait
 *  on a core, or when the oldest has waited this long; 0: not for that reason. */
struct weir_urgent_spec {
	int64_t events;
	int64_t wait_ns;
};

struct weir_stage_spec {
	char *name;
	char *use;
	struct weir_mark mark, use_mark;
	struct weir_node *with; /* the map as written, or NULL if absent; owned */
	struct weir_link_spec *to;
	int n_to;
	bool inlined;   /* `threads: inline` */
	char *group;    /* "" if the stage has its own pool */
	int mode;       /* enum weir_stage_mode */
	char *key;      /* field for `mode: partitioned`; "" means "stage" */
	int64_t slo_ns; /* -1 is `auto`: the smallest of the classes' objectives */
	/* positions of keys; .file is NULL if the key is absent */
	struct weir_mark slo_mark, mode_mark, local_mark, urgent_mark, serial_mark;
	struct weir_threads_spec threads;
	struct weir_queue_spec queue;
	struct weir_cohort_spec cohort;
	struct weir_admission_spec admission;
	struct weir_degrade_spec degrade;
	struct weir_width_spec width;
	/* for a stage in a core group: whether events that its own group sends to it stay on the core
	 * of the sender; enum weir_local */
	int local;
	struct weir_urgent_spec urgent;
	int64_t children; /* largest number of children that an event may have at a time */
	struct weir_mark children_mark; /* of `children`; .file is NULL if the key is absent */
	/* for a stage in a core group: its own field instead of the group's `serial`; "" is that of
	 * the group, "none" is none */
	char *serial;
};

/** `gate:` of a core group: what ends a visit of a stage, apart from the end of its events. At most
 *  one is set. */
struct weir_gate_spec {
	int64_t events;  /* so many events; 0: no such end */
	int64_t time_ns; /* a batch that ends so long after the visit began; 0: no such end */
	bool arrived;    /* the events that waited when it began */
	/* an event that took longer than this waits for the next visit, if its handler asks
	 * (weir_slice_over), and the visit does what is before it; 0: no such end */
	int64_t cutoff_ns;
};

/** Order of the choices of `order:` of a group. */
enum weir_order { WEIR_ORDER_ARRIVAL, WEIR_ORDER_NEWEST };

/** The cores of a group in the form of a map, which is read as a range and a policy: `cores` and
 *  `threads.policy` of weir_group_spec. */
struct weir_cores_spec {
	int64_t min, max; /* max -1: all that the process may use */
	char *policy;
};

/** A group of stages that share threads. With the schedule "shared" it is a pool, with any other it
 *  is a core group: a thread per core, which chooses the stage it visits next. The members below
 *  `threads` are for core groups; their threads are described by `cores`. */
struct weir_group_spec {
	char *name;
	struct weir_mark mark;
	char *schedule; /* scheduling policy: "shared", "fifo", "wavefront" ... (framework/sched) */
	/* position of `schedule`; .file is NULL if the key is absent */
	struct weir_mark schedule_mark;
	struct weir_threads_spec threads;
	/* "auto", a number of cores, a range such as "2..8" or "2..auto", which `threads.policy`
	 * resizes, or a list of CPUs such as "0-3,6" */
	char *cores;
	struct weir_gate_spec gate;
	/* a stage whose oldest event has waited longer is visited next, whatever the schedule says;
	 * -1 is 5 % of the shortest objective of the stages, 0 is never */
	int64_t starve_ns;
	int order;    /* enum weir_order: which event of a stage is served first on its core */
	bool balance; /* give events to idle cores */
	/* copies of the group, each with its share of the cores; an event stays in its copy */
	int64_t replicas;
	/* the stages in the order that `wavefront` and `srpt` follow; empty: upstream first */
	struct weir_strings visit;
	/* events with equal values of this field never overlap in the stages of the group, and keep
	 * their order; "": no such field */
	char *serial;
	/* positions of `cores`, `gate`, `starve` and `visit`; .file is NULL if the key is absent */
	struct weir_mark cores_mark, gate_mark, starve_mark, visit_mark;
};

/** One condition of a class; an event must meet all conditions of the class. A pattern is an exact
 *  value, or a prefix followed by '*'. */
struct weir_match_spec {
	char *field; /* field of the source's event type: "path", "header.x-plan" */
	char *pattern;
	struct weir_mark mark; /* position of the field; .file is NULL if it is not from a file */
};

struct weir_class_spec {
	char *name;
	struct weir_mark mark;
	struct weir_match_spec *match;
	int n_match; /* a class with 0 conditions matches every event */
	int64_t slo_ns;
	/* 0..7, 0 is the highest; -1 is `auto`: one more than the previous class */
	int64_t priority;
	/* guaranteed share of each stage, 0..0.5; -1 is `auto`: 0 for classes with the priority of
	 * the first class, 0.02 for others */
	double guarantee;
	/* positions of `slo`, `priority` and `guarantee`; .file is NULL if the key is absent */
	struct weir_mark slo_mark, priority_mark, guarantee_mark;
};

struct weir_history_spec {
	char *file; /* keeps the history across restarts; "" keeps it in memory only */
};

/** Roles of the admin endpoint's clients: a viewer may only read, an operator may also make
 *  changes. */
enum weir_admin_role { WEIR_ADMIN_VIEWER, WEIR_ADMIN_OPERATOR };

/** A client of the admin endpoint: a named bearer token or, over a Unix socket, a user of this
 *  host. */
struct weir_admin_client_spec {
	/* at most WEIR_ADMIN_NAME_MAX bytes; for a user of the host, the user name or number */
	char *name;
	int role;              /* enum weir_admin_role */
	char *file;            /* the file that contains the token; "" for a user */
	struct weir_mark mark; /* for a token, position of `file`; for a user, of the name */
};

/** Maximum length of the name of a token or user, without the NUL: the size of weir_change.actor
 *  minus 1. */
#define WEIR_ADMIN_NAME_MAX 23

/** TLS for the admin endpoint. Either both paths are set or neither is. The files are in PEM
 *  format; `cert` may also contain the intermediate certificates, after the server's. */
struct weir_admin_tls_spec {
	char *cert, *key; /* paths, "" for none */
	struct weir_mark cert_mark, key_mark;
};

/** `admin: { ready: }`: when /readyz answers 503, besides when it must. */
struct weir_ready_spec {
	bool unless_shed; /* while the alert top_class_shed is active at the level "bad" */
};

struct weir_admin_spec {
	char *listen; /* "127.0.0.1:9900"; "" for no admin endpoint */
	struct weir_history_spec history;
	struct weir_admin_client_spec *tokens, *users;
	int n_tokens, n_users;
	/* additional names allowed in the Host header, with or without a port */
	struct weir_strings hosts;
	struct weir_admin_tls_spec tls;
	struct weir_ready_spec ready;
	struct weir_mark mark, hosts_mark, tls_mark;
};

/* Order of the choices of `slow:` and `parent:`. */
enum weir_trace_slow { WEIR_TRACE_SLOW_NEVER, WEIR_TRACE_SLOW_ALWAYS };
enum weir_trace_parent { WEIR_TRACE_PARENT_IGNORE, WEIR_TRACE_PARENT_FOLLOW };

/** `trace:`, the export of traces; see docs/tracing.md. */
struct weir_trace_spec {
	char *otlp;    /* URL of a collector; "" for none */
	double sample; /* share of the traces started in this server that is exported, 0..1 */
	int slow;      /* enum weir_trace_slow */
	int parent;    /* enum weir_trace_parent */
	struct weir_mark mark;
};

/** `log:`, the server's log; see weir/log.h. */
struct weir_log_spec {
	char *file; /* a target of weir_log_file_open */
	int format; /* enum weir_log_format */
	int level;  /* enum weir_log_level */
	struct weir_mark mark;
};

/** Conditions that raise an alert; weir_alert_names has their names. */
enum weir_alert_kind {
	WEIR_ALERT_TOP_CLASS_SHED,
	WEIR_ALERT_STAGE_STUCK,
	WEIR_ALERT_BOTTLENECK_CHRONIC,
	WEIR_ALERT_HISTORY_FILE,
	WEIR_ALERT_SLO_BURN,
	WEIR_ALERT_SOURCE_REFUSES,
	WEIR_ALERTS,
};

/** Names of the alerts, such as "top_class_shed", by enum weir_alert_kind. Static. */
WEIR_API extern const char *const weir_alert_names[WEIR_ALERTS];

/** When a condition raises an alert, and when the alert ends. */
struct weir_alert_rule {
	bool enabled;
	/* for top_class_shed and source_refuses: rate of shed events, or of refused connections and
	 * requests, above which the alert is raised */
	double above_per_s;
	/* for slo_burn: share of the requests of a class that must meet its objective, 0..1 */
	double objective;
	int64_t for_ns;    /* how long the condition must hold before the alert is raised */
	int64_t linger_ns; /* how long the condition must be absent before the alert ends */
};

/** An entry of `alerts: { NAME: { stages: } }`: the rule of one stage. */
struct weir_alert_stage_spec {
	char *stage;
	int kind; /* enum weir_alert_kind */
	struct weir_alert_rule rule;
};

/** `alerts:`. If a stage has no entry in `stages`, rule[kind] applies to it. */
struct weir_alerts_spec {
	struct weir_alert_rule rule[WEIR_ALERTS];
	struct weir_alert_stage_spec *stages;
	int n_stages;
};

/** The built-in rules, without rules for individual stages. */
WEIR_API struct weir_alerts_spec weir_alerts_default(void);

/** Make a deep copy in *copy, to be freed with weir_alerts_free. Returns 0, or WEIR_ENOMEM with
 *  *copy empty. */
WEIR_API int weir_alerts_copy(const struct weir_alerts_spec *alerts, struct weir_alerts_spec *copy);
WEIR_API void weir_alerts_free(struct weir_alerts_spec *alerts);

/** The rule of alert `kind` for `stage`. It lives as long as `alerts`. */
WEIR_API const struct weir_alert_rule *weir_alert_rule(
    const struct weir_alerts_spec *alerts, enum weir_alert_kind kind, const char *stage);

/** A plug-in that the configuration names. */
struct weir_plugin_spec {
	char *path;  /* path as written in the configuration */
	uint64_t id; /* hash of the file's content, from weir_stage_plugin */
	struct weir_mark mark;
};

struct weir_spec {
	char *name;
	char *path; /* the configuration file, or NULL */
	char *user; /* user that a server started by root switches to; "" to stay root */
	struct weir_mark user_mark;
	struct weir_admin_spec admin;
	int64_t grace_ns; /* `drain: { grace: 10s }`: longest duration of a drain */
	int64_t old_ns;   /* `drain: { old: 10m }`: longest duration of a replaced graph's drain */
	/** `payloads: { memory: 1GiB }`: most bytes that payloads may reserve (weir/payload.h). */
	int64_t payload_bytes;
	/** `payloads: { family_memory: 256MiB }`: most bytes of the events and payloads of a family that
	 *  has no bound of its own (weir/op.h). */
	int64_t family_bytes;
	/** `overload: { mode }`, enum weir_admission_mode: limits the admission modes of all
	 *  stages. */
	int overload_mode;
	struct weir_trace_spec trace;
	struct weir_log_spec log;
	struct weir_alerts_spec alerts;
	struct weir_class_spec *classes;
	/* length of `classes`, which begins with the highest class; 0 stands for a single class
	 * "default" */
	int n_classes;
	struct weir_group_spec *groups;
	int n_groups;
	struct weir_stage_spec *stages;
	int n_stages;
	struct weir_plugin_spec *plugins; /* already loaded; listed for information only */
	int n_plugins;
	/** Frees `sources`, the texts into which the marks point. Called by weir_spec_free. */
	void (*free_sources)(void *sources);
	void *sources;
};

/* Knob rows of the sections, in the order of the documentation. */
WEIR_API extern const struct weir_knob weir_threads_knobs[];
WEIR_API extern const struct weir_knob weir_queue_knobs[];
WEIR_API extern const struct weir_knob weir_cohort_knobs[];
WEIR_API extern const struct weir_knob weir_admission_knobs[];
WEIR_API extern const struct weir_knob weir_degrade_knobs[];
WEIR_API extern const struct weir_knob weir_width_knobs[];
WEIR_API extern const struct weir_knob
    weir_stage_knobs[]; /* group, mode, key, slo, and the sections as MAP rows */
WEIR_API extern const struct weir_knob weir_group_knobs[];
WEIR_API extern const struct weir_knob weir_class_knobs[]; /* of a class, except `match` */
WEIR_API extern const struct weir_knob weir_gate_knobs[];
WEIR_API extern const struct weir_knob weir_urgent_knobs[];
/** Rows of `cores: { min, max }`, of struct weir_cores_spec. */
WEIR_API extern const struct weir_knob weir_cores_knobs[];

/**
 * Resolve `auto` in the priorities and guarantees of the classes, and store the results in
 * priority[n] and guarantee[n], where n is the smaller of n_classes and WEIR_CLASSES_MAX. Checks
 * nothing; weir_spec_check refuses priorities that decrease along the list, and guarantees that add
 * up to more than 0.5.
 */
WEIR_API void weir_spec_shares(const struct weir_spec *spec, int priority[WEIR_CLASSES_MAX],
    double guarantee[WEIR_CLASSES_MAX]);

/** The admission policy of a stage. `auto` is resolved to "weir" for a stage with a queue,
 *  otherwise to "none". */
WEIR_API const char *weir_spec_admission(const struct weir_stage_spec *stage, bool queued);

/** The objective of a stage in ns. `auto` is resolved to the smallest of the classes' objectives,
 *  or to 500 ms if the spec has no classes. */
WEIR_API int64_t weir_spec_slo_ns(
    const struct weir_spec *spec, const struct weir_stage_spec *stage);

/** The largest width of a stage that holds events. `auto` is resolved to the limit of its queue. */
WEIR_API int64_t weir_spec_width_max(const struct weir_stage_spec *stage);

/** Create a spec with default values and without stages. Returns NULL if out of memory. */
WEIR_API struct weir_spec *weir_spec_new(const char *name);

/** Append a stage with default values. Its address is valid until the next append. Returns NULL if
 *  out of memory. */
WEIR_API struct weir_stage_spec *weir_spec_add_stage(
    struct weir_spec *spec, const char *name, const char *use);

/** Append a group with default values. Its address is valid until the next append. Returns NULL if
 *  out of memory. */
WEIR_API struct weir_group_spec *weir_spec_add_group(struct weir_spec *spec, const char *name);

/** Append a class. Its address is valid until the next append. Returns NULL if out of memory. */
WEIR_API struct weir_class_spec *weir_spec_add_class(struct weir_spec *spec, const char *name);

/** Append a token or, if `file` is NULL, a user, with the role of a viewer. Its address is valid
 *  until the next append. Returns NULL if out of memory. */
WEIR_API struct weir_admin_client_spec *weir_spec_add_client(
    struct weir_spec *spec, const char *name, const char *file);

/** Append a rule for alert `kind` at `stage`, initialised with the rule for all stages. Its address
 *  is valid until the next append. Returns NULL if out of memory. */
WEIR_API struct weir_alert_stage_spec *weir_spec_add_alert_stage(
    struct weir_spec *spec, enum weir_alert_kind kind, const char *stage);

/** Link outlet `outlet` ("" for the default) of `stage` to the stage called `to`. Returns 0 or
 *  WEIR_ENOMEM. */
WEIR_API int weir_spec_link(
    struct weir_stage_spec *stage, const char *outlet, const char *to, bool loop);

/** Replace an owned string member: frees the old string and copies `text`. Returns 0 or
 *  WEIR_ENOMEM. */
WEIR_API int weir_spec_text(char **member, const char *text);

/** Set one knob by its path below the stage: ("threads.max", "8"), ("with.body", "x"). Only scalars
 *  can be set. Returns 0, or a WEIR_E code with the message in why[size]. For `--set` and embedding
 *  programs. */
WEIR_API int weir_stage_spec_set(
    struct weir_stage_spec *stage, const char *path, const char *value, char *why, size_t size);

/** The same for a group: ("gate.time", "10ms"). */
WEIR_API int weir_group_spec_set(
    struct weir_group_spec *group, const char *path, const char *value, char *why, size_t size);

/** Free a spec and everything it owns. NULL is allowed. */
WEIR_API void weir_spec_free(struct weir_spec *spec);

WEIR_C_END

#endif
