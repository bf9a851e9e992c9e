/* SPDX-License-Identifier: MIT */
/*
 * Process metrics from /proc/self, under the names that every Prometheus client library uses.
 *
 * The files are opened once, so that a scrape works even if the process has no free descriptors.
 * Admin thread only.
 */
#ifndef WEIR_ADMIN_PROCESS_H
#define WEIR_ADMIN_PROCESS_H

#include <dirent.h>

#include "admin/text/textbuf.h"

struct process {
	int stat_fd;   /* /proc/self/stat, -1 if not available */
	DIR *fds;      /* /proc/self/fd, NULL if not available */
	double boot_s; /* Unix time when the host booted; 0 if unknown */
};

/** Open the files. Metrics from a missing file are left out of the scrape. */
void process_init(struct process *process);

/** Append the process_* families. */
void process_prom(struct process *process, struct textbuf *out);

void process_fini(struct process *process);

#endif
