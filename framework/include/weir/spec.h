/* SPDX-License-Identifier: MIT */
/*
 * What a server is: plain data, made from YAML by config/ or by hand by a program that embeds weir.
 *
 * Every member is described by a knob row in framework/flow/spec.c (weir_*_knobs below), so the
 * loader, `check`, `describe`, the schema and the admin endpoint read one table. Ownership: a spec
 * owns all it points to; weir_spec_free frees it. Build a spec by hand with weir_spec_new and
 * weir_spec_add_stage, which fill in defaults.
 */
#ifndef WEIR_SPEC_H
#define WEIR_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/annotate.h>
#include <weir/error.h>
#include <weir/event.h>
#include <weir/knob.h>

/** `threads:` of a stage without group, and of a group. -1 is `auto`: cores this process may use.
 */
struct weir_threads_spec {
	int64_t min, max, start; /* handler threads, 1..1024; start -1: min */
	char *policy;            /* resize policy: "seda", "weir", "static" */
	bool pinned;             /* thread i to core i modulo cores */
	int64_t spin_ns;       /* longest spin before parking; -1: adapt, 0 where one core is all */
	int64_t stuck_ns;      /* handler calls longer than this are reported; 0: none */
	struct weir_mark mark; /* where `min` is written; no file: nowhere */
};

/* Order of the choices of `queue: { discipline: }`. */
enum weir_discipline { WEIR_DISCIPLINE_AUTO, WEIR_DISCIPLINE_PRIORITY, WEIR_DISCIPLINE_FIFO };

struct weir_queue_spec {
	int64_t limit;  /* events */
	int discipline; /* enum weir_discipline */
};

struct weir_cohort_spec {
	int64_t max;       /* events per handle call, 1..WEIR_BATCH_MAX */
	int64_t linger_ns; /* wait at most this long for a fuller cohort; 0: never */
	char *policy;      /* batch policy: "static", "weir", "seda" */
	char *by;          /* field of the event type, "stage" for ops->key, "" for any mix */
};

/** Largest batch of one handle call. */
#define WEIR_BATCH_MAX 256

enum weir_admission_mode { WEIR_ADMISSION_OFF, WEIR_ADMISSION_SHADOW, WEIR_ADMISSION_ENFORCE };

struct weir_admission_spec {
	char *policy; /* "auto", "none", "threshold", "rate", "codel" ... (framework/admission) */
	int mode;     /* enum weir_admission_mode */
	int64_t threshold;   /* threshold: events in the queue, less for lower classes; -1: half the
			      limit */
	double rate;         /* rate: events per second */
	double burst;        /* rate: depth of the bucket in events; 0: 10 ms of rate, at least 1 */
	int64_t target_ns;   /* codel, dagor: wait; seda_rt: response time; -1: the policy's own */
	int64_t interval_ns; /* codel: over which the least wait counts; -1: the policy's own */
};

/** `degrade:` of a stage: when it serves worse so as to serve more. */
struct weir_degrade_spec {
	double above;    /* pressure over which the level rises, 0..1; 1, the default: never */
	double below;    /* pressure under which it falls, less than `above` */
	int64_t step_ns; /* between two tenths of the level */
};

enum weir_stage_mode { WEIR_MODE_SHARED, WEIR_MODE_EXCLUSIVE, WEIR_MODE_PARTITIONED };

/** One entry of `to:`. */
struct weir_link_spec {
	char *outlet; /* "" for the default outlet (`to: NAME`) */
	char *stage;
	bool loop; /* `{ stage: NAME, loop: true }`: may close a cycle */
	struct weir_mark mark;
};

struct weir_stage_spec {
	char *name;
	char *use;
	struct weir_mark mark, use_mark;
	struct weir_node *with; /* the map as written, NULL when absent; owned */
	struct weir_link_spec *to;
	int n_to;
	bool inlined;              /* `threads: inline` */
	char *group;               /* "" for a pool of its own */
	int mode;                  /* enum weir_stage_mode */
	char *key;                 /* field for `mode: partitioned`; "" then means "stage" */
	int64_t slo_ns;            /* -1, auto: the smallest of the classes' */
	struct weir_mark slo_mark; /* where `slo` is written; no file: nowhere, a default */
	struct weir_threads_spec threads;
	struct weir_queue_spec queue;
	struct weir_cohort_spec cohort;
	struct weir_admission_spec admission;
	struct weir_degrade_spec degrade;
};

struct weir_group_spec {
	char *name;
	struct weir_mark mark;
	char *schedule; /* scheduling policy: "shared" */
	struct weir_threads_spec threads;
};

/** One condition of a class: every given member must match. Patterns: exact, or a prefix + '*'. */
struct weir_match_spec {
	char *field; /* field of the source's event type: "path", "header.x-plan" */
	char *pattern;
};

struct weir_class_spec {
	char *name;
	struct weir_mark mark;
	struct weir_match_spec *match;
	int n_match; /* 0: matches everything */
	int64_t slo_ns;
	int64_t priority; /* 0..7, 0 is the highest; -1, auto: one behind the class before it */
	double
	    guarantee; /* share of the service, 0..0.5; -1, auto: 0.02, 0 at the highest priority */
	/* where they are written; no file: nowhere, a default */
	struct weir_mark slo_mark, priority_mark, guarantee_mark;
};

struct weir_history_spec {
	char *file; /* where the history survives a restart; "" for in memory alone */
};

/** What a client of the admin endpoint may do: look, or look and act. */
enum weir_admin_role { WEIR_ADMIN_VIEWER, WEIR_ADMIN_OPERATOR };

/** A bearer token, known by its name; or, over a socket file, a user of this machine. */
struct weir_admin_client_spec {
	char *name;            /* at most 23 bytes; of a user: his name or his number */
	int role;              /* enum weir_admin_role */
	char *file;            /* of a token: the file that holds it; of a user: "" */
	struct weir_mark mark; /* of the name, of a token of `file` */
};

/** Longest name of a token or a user: what struct weir_act has room for, less the NUL. */
#define WEIR_ADMIN_NAME_MAX 23

/** Both or none. PEM; `cert` may go on with the certificates between it and the authority's. */
struct weir_admin_tls_spec {
	char *cert, *key; /* paths, "" for none */
};

struct weir_admin_spec {
	char *listen; /* "127.0.0.1:9900"; "" for no admin endpoint */
	struct weir_history_spec history;
	struct weir_admin_client_spec *tokens, *users;
	int n_tokens, n_users;
	struct weir_strings hosts; /* more names that Host may have, with or without a port */
	struct weir_admin_tls_spec tls;
	struct weir_mark mark, hosts_mark, tls_mark;
};

/* Order of the choices of `slow:` and `parent:`. */
enum weir_trace_slow { WEIR_TRACE_SLOW_NEVER, WEIR_TRACE_SLOW_ALWAYS };
enum weir_trace_parent { WEIR_TRACE_PARENT_IGNORE, WEIR_TRACE_PARENT_FOLLOW };

/** `trace:`, the export of traces; docs/tracing.md. */
struct weir_trace_spec {
	char *otlp;    /* URL of a collector; "" for none */
	double sample; /* 0..1, of the traces that begin here */
	int slow;      /* enum weir_trace_slow */
	int parent;    /* enum weir_trace_parent */
	struct weir_mark mark;
};

/** `log:`, the server's log; weir/log.h. */
struct weir_log_spec {
	char *file; /* as weir_log_file_open takes it */
	int format; /* enum weir_log_format */
	int level;  /* enum weir_log_level */
	struct weir_mark mark;
};

/** The conditions that raise an alert; weir_alert_names has their names. */
enum weir_alert_kind {
	WEIR_ALERT_TOP_CLASS_SHED,
	WEIR_ALERT_STAGE_STUCK,
	WEIR_ALERT_BOTTLENECK_CHRONIC,
	WEIR_ALERT_HISTORY_FILE,
	WEIR_ALERTS,
};

/** "top_class_shed", ... by enum weir_alert_kind. Static. */
WEIR_API extern const char *const weir_alert_names[WEIR_ALERTS];

/** When a condition raises an alert, and when the alert is over. */
struct weir_alert_rule {
	bool enabled;
	double above_per_s; /* top_class_shed: at more events a second than these */
	int64_t for_ns;     /* it has to hold so long first */
	int64_t linger_ns;  /* and must be gone so long before it is over */
};

/** What `alerts: { NAME: { stages: } }` says of one stage. */
struct weir_alert_stage_spec {
	char *stage;
	int kind; /* enum weir_alert_kind */
	struct weir_alert_rule rule;
};

/** `alerts:`; of a stage that `stages` has not, rule[kind] counts. */
struct weir_alerts_spec {
	struct weir_alert_rule rule[WEIR_ALERTS];
	struct weir_alert_stage_spec *stages;
	int n_stages;
};

/** What is built in, without stages. */
WEIR_API struct weir_alerts_spec weir_alerts_default(void);

/** A deep copy into *copy, which weir_alerts_free ends. 0 or WEIR_ENOMEM with *copy empty. */
WEIR_API int weir_alerts_copy(const struct weir_alerts_spec *alerts, struct weir_alerts_spec *copy);
WEIR_API void weir_alerts_free(struct weir_alerts_spec *alerts);

/** The rule of `kind` for `stage`, which lives as long as `alerts`. */
WEIR_API const struct weir_alert_rule *weir_alert_rule(
    const struct weir_alerts_spec *alerts, enum weir_alert_kind kind, const char *stage);

struct weir_spec {
	char *name;
	char *path; /* the file it came from, or NULL */
	struct weir_admin_spec admin;
	int64_t grace_ns; /* `drain: { grace: 10s }`: how long a drain may take */
	/** `overload: { mode }`, enum weir_admission_mode: what the modes of all stages are at most. */
	int overload_mode;
	struct weir_trace_spec trace;
	struct weir_log_spec log;
	struct weir_alerts_spec alerts;
	struct weir_class_spec *classes;
	int n_classes; /* 0: one class called "default"; else first match wins, highest first */
	struct weir_group_spec *groups;
	int n_groups;
	struct weir_stage_spec *stages;
	int n_stages;
	char **plugins; /* `plugin:` paths already loaded, for the record */
	int n_plugins;
	/** Texts that marks point into; freed with the spec. */
	void (*free_sources)(void *sources);
	void *sources;
};

/* Rows of the sections, in the order in which they are documented. */
WEIR_API extern const struct weir_knob weir_threads_knobs[];
WEIR_API extern const struct weir_knob weir_queue_knobs[];
WEIR_API extern const struct weir_knob weir_cohort_knobs[];
WEIR_API extern const struct weir_knob weir_admission_knobs[];
WEIR_API extern const struct weir_knob weir_degrade_knobs[];
WEIR_API extern const struct weir_knob
    weir_stage_knobs[]; /* group mode key slo + sections as MAP */
WEIR_API extern const struct weir_knob weir_group_knobs[];

/**
 * Priorities and guarantees of the classes of `spec` with `auto` resolved, into priority[n] and
 * guarantee[n], n the smaller of n_classes and WEIR_CLASSES_MAX. Nothing is checked: weir_spec_check
 * refuses priorities that fall along the list and guarantees of more than half in all.
 */
WEIR_API void weir_spec_shares(const struct weir_spec *spec, int priority[WEIR_CLASSES_MAX],
    double guarantee[WEIR_CLASSES_MAX]);

/** The admission policy of a stage, `auto` resolved: "weir" for one with a queue, else "none". */
WEIR_API const char *weir_spec_admission(const struct weir_stage_spec *stage, bool queued);

/** The objective of a stage in ns, `auto` resolved: the smallest of the classes', 500 ms without classes. */
WEIR_API int64_t weir_spec_slo_ns(
    const struct weir_spec *spec, const struct weir_stage_spec *stage);

/** An empty spec with defaults, NULL when out of memory. */
WEIR_API struct weir_spec *weir_spec_new(const char *name);

/** Append a stage with defaults; its address is valid until the next append. NULL: no memory. */
WEIR_API struct weir_stage_spec *weir_spec_add_stage(
    struct weir_spec *spec, const char *name, const char *use);

/** Append a group with defaults, as above. */
WEIR_API struct weir_group_spec *weir_spec_add_group(struct weir_spec *spec, const char *name);

/** Append a class, as above. */
WEIR_API struct weir_class_spec *weir_spec_add_class(struct weir_spec *spec, const char *name);

/** Append a token, or with a `file` of NULL a user, who looks; its address is valid until the next. */
WEIR_API struct weir_admin_client_spec *weir_spec_add_client(
    struct weir_spec *spec, const char *name, const char *file);

/** What is said of `stage` under an alert, begun with what holds for all stages; its address is valid until the next. NULL: no
 *  memory. */
WEIR_API struct weir_alert_stage_spec *weir_spec_add_alert_stage(
    struct weir_spec *spec, enum weir_alert_kind kind, const char *stage);

/** Link outlet `outlet` ("" for the default) of `stage` to the stage called `to`. 0 or
 *  WEIR_ENOMEM. */
WEIR_API int weir_spec_link(
    struct weir_stage_spec *stage, const char *outlet, const char *to, bool loop);

/** Replace an owned string member: frees the old, copies the new. 0 or WEIR_ENOMEM. */
WEIR_API int weir_spec_text(char **member, const char *text);

/** Set one knob by its path below the stage: ("threads.max", "8"), ("with.body", "x"). Scalars
 *  only. 0, or a WEIR_E code with the sentence in `why[size]`. For `--set` and hand-made specs. */
WEIR_API int weir_stage_spec_set(
    struct weir_stage_spec *stage, const char *path, const char *value, char *why, size_t size);

/** Free a spec and all it owns; NULL is allowed. */
WEIR_API void weir_spec_free(struct weir_spec *spec);

#endif
