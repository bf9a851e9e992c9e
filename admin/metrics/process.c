/* SPDX-License-Identifier: MIT */
/* Reads process metrics from /proc; see process.h. The fields of /proc/self/stat are numbered as in
 * proc(5), from 1. */
#include "process.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "framework/base/json.h"
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

static void print_stat(struct process *p, struct textbuf *out)
{
	uint64_t f[STAT_FIELDS];
	double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);

	if (!read_stat(p->stat_fd, f))
		return;
	prom_head(
	    out, "process_cpu_seconds_total", "counter", "User and system time of the process");
	prom_begin(out, "process_cpu_seconds_total", "");
	prom_real(out, (double)(f[STAT_UTIME] + f[STAT_STIME]) * tick);
	prom_head(out, "process_resident_memory_bytes", "gauge", "Resident memory of the process");
	prom_begin(out, "process_resident_memory_bytes", "");
	prom_count(out, f[STAT_RSS] * (uint64_t)sysconf(_SC_PAGESIZE));
	prom_head(out, "process_virtual_memory_bytes", "gauge", "Virtual memory of the process");
	prom_begin(out, "process_virtual_memory_bytes", "");
	prom_count(out, f[STAT_VSIZE]);
	prom_head(out, "process_threads", "gauge", "Threads of the process");
	prom_begin(out, "process_threads", "");
	prom_count(out, f[STAT_THREADS]);
	if (p->boot_s <= 0)
		return;
	prom_head(
	    out, "process_start_time_seconds", "gauge", "Unix time at which the process started");
	prom_begin(out, "process_start_time_seconds", "");
	textbuf_printf(out, " %.2f\n", p->boot_s + (double)f[STAT_START] * tick);
}

/* Count the open descriptors, including that of the directory itself. Since Linux 6.2 their number
 * is the size of the directory; before that, the entries whose names are numbers are counted. */
static uint64_t count_fds(DIR *dir)
{
	struct stat st;
	uint64_t n = 0;

	if (fstat(dirfd(dir), &st) == 0 && st.st_size > 0)
		return (uint64_t)st.st_size;
	rewinddir(dir);
	for (struct dirent *e = readdir(dir); e; e = readdir(dir))
		n += e->d_name[0] != '.';
	return n;
}

void process_prom(struct process *p, struct textbuf *out)
{
	struct rlimit limit;

	print_stat(p, out);
	if (p->fds) {
		prom_head(out, "process_open_fds", "gauge", "Open file descriptors");
		prom_begin(out, "process_open_fds", "");
		prom_count(out, count_fds(p->fds));
	}
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		prom_head(out, "process_max_fds", "gauge", "File descriptors the process may open");
		prom_begin(out, "process_max_fds", "");
		prom_count(out, limit.rlim_cur);
	}
}

static json_t *count_or_null(bool known, uint64_t n)
{
	return known ? json_integer((json_int_t)n) : json_null();
}

/* Return the number of CPUs that the process may use. */
static int cores(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

json_t *process_json(struct process *p)
{
	uint64_t f[STAT_FIELDS] = {0};
	bool stat = read_stat(p->stat_fd, f);
	struct rlimit limit;
	bool limited = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;

	return json_pack("{s:i, s:o, s:o, s:o, s:o}", "cores", cores(), "threads",
	    count_or_null(stat, f[STAT_THREADS]), "resident_bytes",
	    count_or_null(stat, f[STAT_RSS] * (uint64_t)sysconf(_SC_PAGESIZE)), "open_files",
	    count_or_null(p->fds != NULL, p->fds ? count_fds(p->fds) : 0), "open_files_limit",
	    count_or_null(limited, limited ? limit.rlim_cur : 0));
}
