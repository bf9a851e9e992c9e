/* SPDX-License-Identifier: MIT */
/*
 * Determines what a new configuration changes, and how the changes take effect, for `weir diff` and
 * for reloads.
 *
 * Compares the texts from config_values. They contain effective values, so writing a default value
 * into the file makes no difference. Used by one thread; opens no files.
 */
#ifndef WEIR_CONFIG_DIFF_H
#define WEIR_CONFIG_DIFF_H

#include <stdbool.h>

/** What is required to apply a difference. */
enum config_effect {
	CONFIG_LIVE,    /* the value changes in the running graph or server */
	CONFIG_REBUILD, /* the stage, class or group is rebuilt in a new graph */
	CONFIG_ADD,     /* a stage is added */
	CONFIG_REMOVE,  /* a stage is removed */
	CONFIG_RESTART, /* needs a restart, for example the address of the admin endpoint */
	CONFIG_EFFECTS,
};

struct config_difference {
	const char *path; /* "stages.work.threads.max"; for ADD and REMOVE "stages.work" */
	/* values; for ADD and REMOVE the type of the stage; NULL if absent */
	const char *from, *to;
	enum config_effect effect;
	/* length of the stage's name after "stages."; 0 if the path is not below a stage */
	int stage_n;
};

struct config_diff {
	struct config_difference *item; /* sorted by path */
	int n;
	/* numbers of stages; a stage with only LIVE differences counts as changed */
	int n_changed, n_rebuilt, n_added, n_removed;
	int n_plugins;    /* plug-ins added, removed or replaced by another file */
	int n_restart;    /* values that take effect only after a restart */
	bool admin_waits; /* the admin endpoint changes its address or its use of TLS */
	bool live;        /* all effects are LIVE or RESTART, so no new graph is needed */
	char *texts[2];   /* the texts that items point into */
};

/** Compare the texts `before` and `after` from config_values. Returns 0, or WEIR_ENOMEM with *diff
 *  empty. The caller frees *diff with config_diff_free. */
int config_diff(const char *before, const char *after, struct config_diff *diff);

/** Return the text for the next comparison: `after`, but with the lines of `before` for values
 *  whose change waits for a restart. The caller frees it. Returns NULL if out of memory. */
char *config_diff_carry(const struct config_diff *diff, const char *before, const char *after);

/** Return whether a change of `path` takes effect only after a restart. This is always the case for
 * `user` and for the address and history of the admin endpoint. If the endpoint changes its address
 * or its use of TLS, it is the case for all paths in `admin:`. */
bool config_diff_waits(const struct config_diff *diff, const char *path);

void config_diff_free(struct config_diff *diff);

/** Summarise the differences in buf[size]: "2 stages change, 1 stage is rebuilt, 0 connections
 * dropped". */
void config_diff_say(const struct config_diff *diff, char *buf, unsigned long size);

/** Return the word for an effect: "live", "rebuild", "add", "remove" or "restart". */
const char *config_effect_word(enum config_effect effect);

#endif
