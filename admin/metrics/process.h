/* SPDX-License-Identifier: MIT */
/*
 * Process metrics from /proc/self: for Prometheus under the names that every client library uses, and
 * as JSON for the dashboard.
 *
 * The files are opened once, so that a scrape works even if the process has no free descriptors.
 * Admin thread only.
 */
#ifndef WEIR_ADMIN_PROCESS_H
#define WEIR_ADMIN_PROCESS_H

#include <dirent.h>
#include <jansson.h>

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

/** Return {"cores", "threads", "resident_bytes", "open_files", "open_files_limit"}: numbers, or null
 *  for one that is not known or not limited. The first is the number of CPUs that the process may
 *  use. The caller owns the result, which is NULL if memory ran out. */
json_t *process_json(struct process *process);

void process_fini(struct process *process);

#endif
