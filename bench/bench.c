/* SPDX-License-Identifier: MIT */
/* Functions shared by the benchmarks; see bench.h. */
#include "bench.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#ifndef WEIR_COMMIT
#define WEIR_COMMIT "unknown"
#endif
#ifndef WEIR_CFLAGS
#define WEIR_CFLAGS "unknown"
#endif

#define PROBE_NS 10000000

int64_t bench_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

int64_t bench_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static void print_cpu(void)
{
	FILE *f = fopen("/proc/cpuinfo", "r");
	char line[256];

	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "model name", 10) == 0) {
			printf("cpu     %s", strchr(line, ':') + 2);
			break;
		}
	}
	if (f)
		fclose(f);
}

void bench_header(const char *name)
{
	struct utsname u;

#ifndef __OPTIMIZE__
	fprintf(stderr, "%s: built without optimisation; use the release preset\n", name);
	exit(2);
#endif
	uname(&u);
	printf("bench   %s\ncommit  %s\nflags   %s\n", name, WEIR_COMMIT, WEIR_CFLAGS);
	print_cpu();
	printf("cores   %ld online, kernel %s\n", sysconf(_SC_NPROCESSORS_ONLN), u.release);
	printf("probe   %.0f ns a cache-line round trip between cores 0 and 1 (far is over %d)\n\n",
	    bench_distance_ns(0, 1), BENCH_FAR_NS);
}

void bench_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

struct ping {
	_Alignas(64) atomic_uint word;
	atomic_bool stop;
	int cpu;
};

static void *pong(void *arg)
{
	struct ping *p = arg;

	bench_pin(p->cpu);
	while (!atomic_load_explicit(&p->stop, memory_order_relaxed)) {
		unsigned w = atomic_load_explicit(&p->word, memory_order_acquire);
		if (w & 1)
			atomic_store_explicit(&p->word, w + 1, memory_order_release);
	}
	return NULL;
}

double bench_distance_ns(int a, int b)
{
	struct ping p = {.cpu = b};
	cpu_set_t old;
	pthread_t thread;
	unsigned w = 0, rounds = 0;

	sched_getaffinity(0, sizeof(old), &old);
	if (CPU_COUNT(&old) < 2 || pthread_create(&thread, NULL, pong, &p) != 0)
		return 0;
	bench_pin(a);
	int64_t start = 0, now = bench_now_ns(), begin = now;
	while (now - begin < 2 * PROBE_NS) {
		for (int i = 0; i < 64; i++, rounds++) {
			atomic_store_explicit(&p.word, w + 1, memory_order_release);
			while ((w = atomic_load_explicit(&p.word, memory_order_acquire)) & 1)
				;
		}
		now = bench_now_ns();
		if (start == 0 && now - begin > PROBE_NS) { /* the first half warms up */
			start = now;
			rounds = 0;
		}
	}
	atomic_store(&p.stop, true);
	pthread_join(thread, NULL);
	sched_setaffinity(0, sizeof(old), &old);
	return rounds ? (double)(now - start) / rounds : 0;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct bench_stat bench_summary(double *v, int n)
{
	struct bench_stat s = {.n = n};

	if (n == 0)
		return s;
	qsort(v, (size_t)n, sizeof(*v), compare);
	s.median = n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
	s.low = v[0];
	s.high = v[n - 1];
	return s;
}

struct bench_stat bench_measure(double (*run)(void *arg), void *arg)
{
	double near[BENCH_ROUNDS], far[BENCH_ROUNDS * BENCH_TRIES];
	int n = 0, n_far = 0;

	for (int tries = 0; n < BENCH_ROUNDS && tries < BENCH_ROUNDS + BENCH_TRIES; tries++) {
		double before = bench_distance_ns(0, 1);
		double value = run(arg);
		double after = bench_distance_ns(0, 1);
		if (before < BENCH_FAR_NS && after < BENCH_FAR_NS)
			near[n++] = value;
		else
			far[n_far++] = value;
	}
	struct bench_stat s = n > 0 ? bench_summary(near, n) : bench_summary(far, n_far);
	s.far = n == 0;
	return s;
}
