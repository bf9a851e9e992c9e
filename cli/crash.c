/* SPDX-License-Identifier: MIT */
/*
 * The crash handler; see crash.h. Everything it calls is async-signal-safe: write, raise,
 * sigaction, prctl and weir_thread_running. It runs on the alternate stack of the crashing thread
 * where that has one, so that a stack overflow gets its words too.
 */
#include "crash.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <weir/graph.h>

static const struct {
	int number;
	const char *name;
} crash_signals[] = {
    {SIGSEGV, "SIGSEGV"},
    {SIGBUS, "SIGBUS"},
    {SIGABRT, "SIGABRT"},
    {SIGFPE, "SIGFPE"},
    {SIGILL, "SIGILL"},
};

#define CRASH_SIGNALS (sizeof(crash_signals) / sizeof(crash_signals[0]))

/** What was there before: the default action, or a sanitizer's handler. */
static struct sigaction crash_previous[CRASH_SIGNALS];

/** Bytes for the handler, whose frames are small; MINSIGSTKSZ of AVX-512 machines is about 11 KiB.
 */
static char crash_stack[64 * 1024];

/** A line put together without stdio. What does not fit is cut. */
struct crash_line {
	char text[512];
	size_t n;
};

static void crash_append(struct crash_line *line, const char *text)
{
	size_t n = strlen(text);
	size_t room = sizeof(line->text) - line->n;

	n = n < room ? n : room;
	memcpy(line->text + line->n, text, n);
	line->n += n;
}

static void crash_report(const char *signal_name)
{
	struct crash_line line = {.n = 0};
	const char *stage, *event_type;
	char thread[17] = "";

	prctl(PR_GET_NAME, thread, 0, 0, 0);
	crash_append(&line, "weir: crashed with ");
	crash_append(&line, signal_name);
	crash_append(&line, " in thread '");
	crash_append(&line, thread);
	if (weir_thread_running(&stage, &event_type)) {
		crash_append(&line, "' while it ran stage '");
		crash_append(&line, stage);
		crash_append(&line, "' on events of type '");
		crash_append(&line, event_type ? event_type : "?");
		crash_append(&line, "'\n");
	} else {
		crash_append(&line, "' outside any stage\n");
	}
	/* Nothing is left to do when stderr is gone. */
	if (write(STDERR_FILENO, line.text, line.n) < 0)
		return;
}

static void crash_on_signal(int sig, siginfo_t *info, void *context)
{
	(void)context;
	for (size_t i = 0; i < CRASH_SIGNALS; i++) {
		if (crash_signals[i].number != sig)
			continue;
		crash_report(crash_signals[i].name);
		sigaction(sig, &crash_previous[i], NULL);
	}
	/* A fault repeats when the handler returns, with its registers as they were; a signal that
	 * was sent (si_code <= 0: abort, kill) does not, so it is sent again. */
	if (info->si_code <= 0)
		raise(sig);
}

void crash_install(void)
{
	stack_t stack = {.ss_sp = crash_stack, .ss_size = sizeof(crash_stack)}, old;
	struct sigaction action = {
	    .sa_sigaction = crash_on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	/* Threads have theirs from task_start. A sanitizer that has set one keeps it. */
	if (sigaltstack(NULL, &old) == 0 && (old.ss_flags & SS_DISABLE))
		sigaltstack(&stack, NULL);
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < CRASH_SIGNALS; i++)
		sigaction(crash_signals[i].number, &action, &crash_previous[i]);
}
