/* SPDX-License-Identifier: MIT */
/*
 * doctor: show the limits of this host that would affect a server, and how many threads are useful.
 *
 * Each row of a table checks one setting. It reports the value, whether that would be a problem,
 * and how to change it. Nothing is changed. --threads runs the benchmark of load/sleepers.h.
 */
#include "cli/verb.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <jansson.h>

#include "net/memory_auto.h"
#include "load/sleepers.h"

/* Number of connections that a server should be able to hold by default. 20000 is a guess at what
 * operators expect today. */
#define FILES_WANTED 20000
/* Wanted length of the listen queue. 1024 is a guess, enough for a burst of a thousand clients. */
#define BACKLOG_WANTED 1024
/* First and last number of threads in the benchmark; each run doubles the number. 16384 threads are
 * below the default limit of Linux. */
#define THREADS_FIRST 64
#define THREADS_LAST  16384
#define THREADS_RUNS  9

struct finding {
	char value[96];
	char advice[192]; /* empty if there is no problem */
};

/* Read the first line of a file without the newline. Returns false if it cannot be read. */
static bool read_line(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "re");
	bool got = f && fgets(buf, (int)size, f) != NULL;

	if (f)
		fclose(f);
	if (got)
		buf[strcspn(buf, "\n")] = '\0';
	return got;
}

static void check_cores(struct finding *f)
{
	cpu_set_t set;
	int allowed = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;

	snprintf(f->value, sizeof(f->value), "%d of %d online", allowed, get_nprocs());
	if (allowed == 1)
		snprintf(f->advice, sizeof(f->advice),
		    "with one core, threads do not spin, and each hop between stages costs a "
		    "context switch");
}

static void check_cpu_quota(struct finding *f)
{
	char line[64] = "";
	double quota, period;

	if (!read_line("/sys/fs/cgroup/cpu.max", line, sizeof(line)) ||
	    strncmp(line, "max", 3) == 0) {
		snprintf(f->value, sizeof(f->value), "none");
		return;
	}
	if (sscanf(line, "%lf %lf", &quota, &period) == 2 && period > 0) {
		snprintf(f->value, sizeof(f->value), "%.2f cores", quota / period);
		snprintf(f->advice, sizeof(f->advice),
		    "in each period of %.0f ms, the control group stops the process once it has "
		    "used this share of CPU time",
		    period / 1000);
	}
}

/* Show the memory that a server may use. It is limited by the same control groups as
 * `memory: auto`. */
static void check_memory(struct finding *f)
{
	int64_t group = memory_auto_group("/sys/fs/cgroup", "/proc/self/cgroup");
	struct sysinfo si;

	if (sysinfo(&si) != 0)
		return;
	double machine = (double)si.totalram * si.mem_unit;
	if ((double)group < machine)
		snprintf(f->value, sizeof(f->value), "%.1f GiB (control group)",
		    (double)group / (1 << 30));
	else
		snprintf(f->value, sizeof(f->value), "%.1f GiB", machine / (1 << 30));
}

static void check_files(struct finding *f)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) != 0)
		return;
	snprintf(f->value, sizeof(f->value), "%llu, at most %llu", (unsigned long long)r.rlim_cur,
	    (unsigned long long)r.rlim_max);
	if (r.rlim_max < FILES_WANTED)
		snprintf(f->advice, sizeof(f->advice),
		    "this limits the number of connections: raise it with 'ulimit -Hn' or "
		    "LimitNOFILE=");
}

static void check_backlog(struct finding *f)
{
	char line[64];

	if (!read_line("/proc/sys/net/core/somaxconn", line, sizeof(line)))
		return;
	snprintf(f->value, sizeof(f->value), "%.60s", line);
	if (atol(line) < BACKLOG_WANTED)
		snprintf(f->advice, sizeof(f->advice),
		    "bursts of new connections may be dropped: run 'sysctl net.core.somaxconn=%d'",
		    BACKLOG_WANTED * 4);
}

static void check_ports(struct finding *f)
{
	char line[64];
	int low, high;

	if (!read_line("/proc/sys/net/ipv4/ip_local_port_range", line, sizeof(line)) ||
	    sscanf(line, "%d %d", &low, &high) != 2)
		return;
	snprintf(f->value, sizeof(f->value), "%d", high - low + 1);
	if (high - low < FILES_WANTED)
		snprintf(f->advice, sizeof(f->advice),
		    "'weir bench --fresh' may run out of ports: run sysctl "
		    "net.ipv4.ip_local_port_range='1024 65535'");
}

/* Whether the kernel lets programs read the clock `name` without a system call. */
static bool is_cheap(const char *name)
{
	static const char *const cheap[] = {
	    "tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"};

	for (size_t i = 0; i < sizeof(cheap) / sizeof(cheap[0]); i++)
		if (strcmp(name, cheap[i]) == 0)
			return true;
	return false;
}

static void check_clock(struct finding *f)
{
	static const char file[] =
	    "/sys/devices/system/clocksource/clocksource0/current_clocksource";
	char line[64];

	if (!read_line(file, line, sizeof(line)))
		return;
	snprintf(f->value, sizeof(f->value), "%.60s", line);
	if (!is_cheap(line))
		snprintf(f->advice, sizeof(f->advice),
		    "reading this clock takes a system call, about a microsecond per batch");
}

static void check_schedstat(struct finding *f)
{
	bool there = access("/proc/self/schedstat", R_OK) == 0;

	snprintf(f->value, sizeof(f->value), "%s", there ? "yes" : "no");
	if (!there)
		snprintf(f->advice, sizeof(f->advice),
		    "without these times, controllers cannot distinguish a thread that waits for a "
		    "core from one that blocks");
}

static void check_threads(struct finding *f)
{
	struct rlimit r;
	char line[64] = "?";

	read_line("/proc/sys/kernel/threads-max", line, sizeof(line));
	if (getrlimit(RLIMIT_NPROC, &r) == 0 && r.rlim_cur != RLIM_INFINITY)
		snprintf(f->value, sizeof(f->value), "%llu (per user), %.40s (in the system)",
		    (unsigned long long)r.rlim_cur, line);
	else
		snprintf(f->value, sizeof(f->value), "%.40s (in the system)", line);
}

/* Show the user. There is no advice, since a server may run as another user than doctor. */
static void check_user(struct finding *f)
{
	if (geteuid() == 0)
		snprintf(f->value, sizeof(f->value),
		    "this user is root; with 'user: NAME' a server becomes another user");
	else
		snprintf(f->value, sizeof(f->value), "%u", (unsigned)geteuid());
}

static const struct check {
	const char *name, *what;
	void (*fn)(struct finding *f);
} checks[] = {
    {"user", "user a server would run as", check_user},
    {"cores", "cores this process may use", check_cores},
    {"cpu_quota", "CPU quota", check_cpu_quota},
    {"memory", "memory", check_memory},
    {"open_files", "open files", check_files},
    {"somaxconn", "longest listen queue", check_backlog},
    {"local_ports", "ports for outgoing connections", check_ports},
    {"threads", "threads allowed", check_threads},
    {"clock", "clock source", check_clock},
    {"schedstat", "run-queue times of threads", check_schedstat},
};
#define N_CHECKS ((int)(sizeof(checks) / sizeof(checks[0])))

static void print_findings(const struct finding *f, bool bold)
{
	for (int i = 0; i < N_CHECKS; i++) {
		printf("%-32s %s%s%s\n", checks[i].what, f[i].advice[0] && bold ? "\033[1m" : "",
		    f[i].value[0] ? f[i].value : "unknown",
		    f[i].advice[0] && bold ? "\033[0m" : "");
		if (f[i].advice[0])
			printf("%-32s   %s\n", "", f[i].advice);
	}
}

static void print_findings_json(const struct finding *f)
{
	json_t *all = json_object();

	for (int i = 0; i < N_CHECKS; i++)
		json_object_set_new(all, checks[i].name,
		    json_pack("{s:s, s:s*}", "value", f[i].value, "advice",
			f[i].advice[0] ? f[i].advice : NULL));
	json_dumpf(all, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(all);
}

/* Repeat the measurement of figure 3 in Welsh's paper of 2000 on this host (load/sleepers.h). */
static int print_crowds(void)
{
	struct sleepers run[THREADS_RUNS];
	struct weir_err err = {0};
	int n = 0;

	printf("\n%10s %14s %14s %10s\n", "THREADS", "TASKS/s", "IDEAL", "CPU CORES");
	for (int t = THREADS_FIRST; t <= THREADS_LAST && n < THREADS_RUNS; t *= 2) {
		if (sleepers_run(t, 1000000000, &run[n], &err) != 0) {
			printf("%10d %s\n", t, err.text);
			break;
		}
		printf("%10d %14.0f %14.0f %10.2f\n", t, run[n].tasks_per_s, run[n].ideal_per_s,
		    run[n].cpu_share);
		fflush(stdout);
		n++;
	}
	if (n == 0)
		return VERB_FINDING;
	printf("T' = %d: beyond this number, more threads that block for 50 ms each bring no more "
	       "throughput (Welsh 2000, figure 3)\n",
	    sleepers_limit(run, n));
	return VERB_OK;
}

int verb_doctor(const struct verb *verb, const struct verb_args *args)
{
	struct finding f[N_CHECKS];
	bool bad = false;

	(void)verb;
	memset(f, 0, sizeof(f));
	for (int i = 0; i < N_CHECKS; i++) {
		checks[i].fn(&f[i]);
		bad |= f[i].advice[0] != '\0';
	}
	if (args->json)
		print_findings_json(f);
	else
		print_findings(f, verb_styled(stdout));
	if (args->threads && print_crowds() != VERB_OK)
		return VERB_FINDING;
	return bad ? VERB_FINDING : VERB_OK;
}
