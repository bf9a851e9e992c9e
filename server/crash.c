/* SPDX-License-Identifier: MIT */
/*
 * The crash handler; see crash.h. Everything that it calls is async-signal-safe: write, read,
 * raise, sigaction, prctl, the functions of weir/graph.h that are documented as such, and those of
 * crash_line.h.
 *
 * If the crashing thread has an alternate stack, the handler runs on it, so a stack overflow is
 * reported, too. The first line of the report needs no memory that may be corrupted. The handler
 * then writes the lines for which it must read such memory. A second fault ends the process
 * immediately, since all signals are blocked in the handler.
 */
#include "crash.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <unistd.h>

#include <weir/graph.h>

#include "crash_line.h"

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

/** The previous actions: the default ones, or handlers of a sanitizer. */
static struct sigaction crash_previous[CRASH_SIGNALS];

/** The alternate stack of the main thread. 64 KiB is enough, since the frames of the handler are
 *  small. On machines with AVX-512, the kernel itself needs about 11 KiB. */
static char crash_stack[64 * 1024];

static void crash_say_where(const char *signal_name)
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
		crash_append(&line, "'");
	} else {
		crash_append(&line, "' outside any stage");
	}
	crash_write(&line);
}

static void crash_say_event(void)
{
	struct crash_line line = {.n = 0};
	char what[256];

	if (!weir_thread_event(what, sizeof(what)))
		return;
	crash_append(&line, "weir: it was handling '");
	crash_append_foreign(&line, what);
	crash_append(&line, "'");
	crash_write(&line);
}

static uintptr_t crash_pc(const void *context)
{
	const ucontext_t *user = context;

#if defined(__x86_64__)
	return (uintptr_t)user->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return (uintptr_t)user->uc_mcontext.pc;
#else
	(void)user;
	return 0;
#endif
}

static void crash_on_signal(int sig, siginfo_t *info, void *context)
{
	for (size_t i = 0; i < CRASH_SIGNALS; i++) {
		if (crash_signals[i].number != sig)
			continue;
		crash_say_where(crash_signals[i].name);
		crash_stack_write(crash_pc(context));
		crash_say_event();
		sigaction(sig, &crash_previous[i], NULL);
	}
	/* When the handler returns, the faulting instruction is executed again and raises the same
	 * signal. A signal that was sent (si_code <= 0: abort, kill) would not occur again, so
	 * raise it here. */
	if (info->si_code <= 0)
		raise(sig);
}

void crash_install(void)
{
	stack_t stack = {.ss_sp = crash_stack, .ss_size = sizeof(crash_stack)}, old;
	struct sigaction action = {
	    .sa_sigaction = crash_on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	/* task_start sets the alternate stack of other threads. A stack that a sanitizer has set is
	 * not replaced. */
	if (sigaltstack(NULL, &old) == 0 && (old.ss_flags & SS_DISABLE))
		sigaltstack(&stack, NULL);
	crash_stack_prepare();
	sigfillset(&action.sa_mask); /* so that a fault in the handler ends the process */
	for (size_t i = 0; i < CRASH_SIGNALS; i++)
		sigaction(crash_signals[i].number, &action, &crash_previous[i]);
}
