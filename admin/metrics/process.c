/* SPDX-License-Identifier: MIT */
/* Reads process metrics from /proc; see process.h. The fields of /proc/self/stat are numbered as in
 * proc(5), from 1. */
#include "process.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "prom.h"

enum stat_field {
	STAT_UTIME = 14,
	STAT_STIME = 15,
	STAT_THREADS = 20,
	STAT_START = 22,
	STAT_VSIZE = 23,
	STAT_RSS = 24,
	STAT_FIELDS,
};

/* Return N from the line "btime N" of /proc/stat. Reads line by line, since the file is long on
 * hosts with many cores. */
static double boot_time(void)
{
	FILE *f = fopen("/proc/stat", "re");
	char *line = NULL;
	size_t size = 0;
	double boot_s = 0;

	while (f && getline(&line, &size, f) > 0)
		if (strncmp(line, "btime ", 6) == 0)
			boot_s = strtod(line + 6, NULL);
	free(line);
	if (f)
		fclose(f);
	return boot_s;
}

void process_init(struct process *p)
{
	p->stat_fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	p->fds = opendir("/proc/self/fd");
	p->boot_s = boot_time();
}

void process_fini(struct process *p)
{
	if (p->stat_fd >= 0)
		close(p->stat_fd);
	if (p->fds)
		closedir(p->fds);
	*p = (struct process){.stat_fd = -1};
}

/* Read the numbers after the command name, which ends at the last parenthesis. The name itself may
 * contain spaces and parentheses. */
static bool read_stat(int fd, uint64_t field[STAT_FIELDS])
{
	char buf[1024];
	ssize_t n = fd < 0 ? -1 : pread(fd, buf, sizeof(buf) - 1, 0);

	if (n <= 0)
		return false;
	buf[n] = '\0';
	char *p = strrchr(buf, ')');
	if (!p || strlen(p) < 4)
		return false;
	p += 3; /* skip ") S": S is the state, field 3 */
	for (int i = 4; i < STAT_FIELDS; i++)
		field[i] = strtoull(p, &p, 10);
	return true;
}

/* Count the entries whose names are numbers, including the descriptor of the directory itself. */
static uint64_t count_fds(DIR *dir)
{
	uint64_t n = 0;
	struct stat st;

	/* since Linux 6.2, the size of the folder is their number */
	if (fstat(dirfd(dir), &st) == 0 && st.st_size > 0)
		return (uint64_t)st.st_size;
	rewinddir(dir);
	for (struct dirent *e = readdir(dir); e; e = readdir(dir))
		n += e->d_name[0] != '.';
	return n;
}

/* What the process uses; negative: not available. */
struct usage {
	double cpu_s, start_s;
	int64_t resident_bytes, virtual_bytes, threads, open_fds, max_fds;
};

static struct usage usage_of(struct process *p)
{
	struct usage u = {-1, -1, -1, -1, -1, -1, -1};
	uint64_t f[STAT_FIELDS];
	double tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
	struct rlimit limit;

	if (read_stat(p->stat_fd, f)) {
		u.cpu_s = (double)(f[STAT_UTIME] + f[STAT_STIME]) * tick_s;
		u.resident_bytes = (int64_t)f[STAT_RSS] * sysconf(_SC_PAGESIZE);
		u.virtual_bytes = (int64_t)f[STAT_VSIZE];
		u.threads = (int64_t)f[STAT_THREADS];
		if (p->boot_s > 0)
			u.start_s = p->boot_s + (double)f[STAT_START] * tick_s;
	}
	if (p->fds)
		u.open_fds = (int64_t)count_fds(p->fds);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		u.max_fds = (int64_t)limit.rlim_cur;
	return u;
}

static json_t *real_json(double x)
{
	return x < 0 ? json_null() : json_real(x);
}

static json_t *count_json(int64_t n)
{
	return n < 0 ? json_null() : json_integer(n);
}

json_t *process_json(struct process *p)
{
	struct usage u = usage_of(p);

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "cpu_seconds_total",
	    real_json(u.cpu_s), "resident_bytes", count_json(u.resident_bytes), "virtual_bytes",
	    count_json(u.virtual_bytes), "threads", count_json(u.threads), "open_fds",
	    count_json(u.open_fds), "max_fds", count_json(u.max_fds), "start_time",
	    real_json(u.start_s));
}

static void print_head(struct textbuf *out, const char *name, const char *kind, const char *help)
{
	prom_head(out, name, kind, help);
	prom_begin(out, name, "");
}

static void print_gauge(struct textbuf *out, const char *name, const char *help, int64_t n)
{
	if (n < 0)
		return;
	print_head(out, name, "gauge", help);
	prom_count(out, (uint64_t)n);
}

void process_prom(struct process *p, struct textbuf *out)
{
	struct usage u = usage_of(p);

	if (u.cpu_s >= 0) {
		print_head(out, "process_cpu_seconds_total", "counter",
		    "User and system time of the process");
		prom_real(out, u.cpu_s);
	}
	print_gauge(out, "process_resident_memory_bytes", "Resident memory of the process",
	    u.resident_bytes);
	print_gauge(
	    out, "process_virtual_memory_bytes", "Virtual memory of the process", u.virtual_bytes);
	print_gauge(out, "process_threads", "Threads of the process", u.threads);
	if (u.start_s >= 0) {
		print_head(out, "process_start_time_seconds", "gauge",
		    "Unix time at which the process started");
		textbuf_printf(out, " %.2f\n", u.start_s);
	}
	print_gauge(out, "process_open_fds", "Open file descriptors", u.open_fds);
	print_gauge(out, "process_max_fds", "File descriptors the process may open", u.max_fds);
}
