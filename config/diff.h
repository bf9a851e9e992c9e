/* SPDX-License-Identifier: MIT */
/*
 * What a new configuration changes, and how: for `weir diff`, and for a reload before it acts.
 *
 * Compared are the texts of config_values: what is in effect, so a default that is now written out is no difference.
 * One thread; nothing is opened.
 */
#ifndef WEIR_CONFIG_DIFF_H
#define WEIR_CONFIG_DIFF_H

#include <stdbool.h>

/** What it takes to make a difference true. */
enum config_effect {
	CONFIG_LIVE,    /* a value that changes where it runs */
	CONFIG_REBUILD, /* the stage, class or group is made anew in a new graph */
	CONFIG_ADD,     /* a stage that was not there */
	CONFIG_REMOVE,  /* a stage that is there no more */
	CONFIG_RESTART, /* only the next start of the server can do it: where the admin endpoint listens */
	CONFIG_EFFECTS,
};

struct config_difference {
	const char *path; /* "stages.work.threads.max"; of ADD and REMOVE "stages.work" */
	const char *from,
	    *to; /* as config_values writes them, of ADD and REMOVE the type; NULL: is not there */
	enum config_effect effect;
	int stage_n; /* bytes of the stage's name, which stands behind "stages."; 0: no stage's */
};

struct config_diff {
	struct config_difference *item; /* by path */
	int n;
	int n_changed, n_rebuilt, n_added, n_removed; /* stages: changed live alone; made anew */
	int n_restart;                                /* values that wait for a restart */
	bool admin_waits; /* the endpoint is to listen elsewhere, or with or without TLS */
	bool live;        /* nothing but LIVE and RESTART: no new graph is needed */
	char *texts[2];   /* what the items point into */
};

/** Compare what `before` and `after` mean. 0 or WEIR_ENOMEM with *diff empty. Ends with config_diff_free. */
int config_diff(const char *before, const char *after, struct config_diff *diff);

/** The text to compare with next time: that of `after`, but for what waits for a restart. malloc'ed, NULL without memory. */
char *config_diff_carry(const struct config_diff *diff, const char *before, const char *after);

/** Does a change of `path` wait for a restart? Where the endpoint listens and keeps its history, always; when it is to listen
 *  elsewhere or to begin or end to speak TLS, all of `admin:`. */
bool config_diff_waits(const struct config_diff *diff, const char *path);

void config_diff_free(struct config_diff *diff);

/** One sentence of it: "2 stages change, 1 restarts, 0 connections drop" into buf[size]. */
void config_diff_say(const struct config_diff *diff, char *buf, unsigned long size);

/** "live", "rebuild", "add", "remove", "restart". */
const char *config_effect_word(enum config_effect effect);

#endif
