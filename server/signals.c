/* SPDX-License-Identifier: MIT */
/* Handles the signals of a running server; see signals.h. */
#include "signals.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <stdlib.h>
#include <unistd.h>

/** The graph whose drain the signal handler shortens; NULL while no graph drains. It is global,
 *  since nothing can be passed to a signal handler. */
static _Atomic(struct weir_graph *) signals_draining;
static atomic_int signals_hurried;
static pthread_t signals_main;
static atomic_int signals_early; /* the first signal that came during the start, or 0 */

/* How long the end of the start may take after a signal, in seconds. It is a matter of milliseconds,
 * unless the machine is busy or a stage hangs. */
#define START_WAIT_S 1

static void signals_fill(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGUSR1);
}

/* Write to stderr; async-signal-safe. An error is ignored, since nothing can be done about it. */
static void signals_say(const char *text)
{
	if (write(STDERR_FILENO, text, strlen(text)) < 0)
		return;
}

static void signals_on_end(void (*handler)(int sig))
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};

	sigemptyset(&action.sa_mask);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
}

static void signals_open(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void signals_end_start(int sig)
{
	signals_say(sig == SIGINT ? "weir: ended by SIGINT during startup\n"
				  : "weir: ended by SIGTERM during startup\n");
	signal(sig, SIG_DFL);
	raise(sig);
	/* the signal ends the process here; process 1 of a container ignores it and continues with
	 * _exit */
	signals_open();
	_exit(128 + sig);
}

static void signals_late(int sig)
{
	(void)sig;
	signals_end_start(atomic_load(&signals_early));
}

/* The first signal waits for the end of the start for a while: the server may already answer. */
static void signals_at_start(int sig)
{
	int none = 0;

	if (!atomic_compare_exchange_strong(&signals_early, &none, sig))
		signals_end_start(sig);
	alarm(START_WAIT_S);
}

/* Forward a signal to the main thread. A thread that a stage created during startup may not have
 * blocked the signal and may therefore receive it. */
static void signals_on_other(int sig)
{
	pthread_kill(signals_main, sig);
}

void signals_start(void)
{
	sigset_t set;

	signals_main = pthread_self();
	signal(SIGPIPE, SIG_IGN);
	signals_fill(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signals_on_end(signals_at_start);
	signal(SIGALRM, signals_late);
	signals_open();
}

void signals_block(void)
{
	sigset_t set;

	signals_fill(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signals_on_end(signals_on_other);
	alarm(0);
	int early = atomic_exchange(&signals_early, 0);
	if (early) /* it is pending until signals_wait */
		raise(early);
}

int signals_wait(void)
{
	sigset_t set;
	int sig;

	signals_fill(&set);
	/* sigwait fails only if the set contains an invalid signal. */
	int rc = sigwait(&set, &sig);
	WEIR_ASSERT(rc == 0);
	return sig;
}

static void signals_on_next(int sig)
{
	struct weir_graph *graph = atomic_load(&signals_draining);

	(void)sig;
	if (atomic_fetch_add(&signals_hurried, 1) > 0) {
		signals_say("weir: ended by a third signal, without waiting any longer\n");
		_exit(EXIT_FAILURE);
	}
	if (graph)
		weir_graph_hurry(graph);
}

void signals_hurry_on_next(struct weir_graph *graph)
{
	atomic_store(&signals_draining, graph);
	signals_on_end(signals_on_next);
	signals_open();
}

bool signals_hurry(void)
{
	return atomic_load(&signals_hurried) > 0;
}

void signals_forget(void)
{
	atomic_store(&signals_draining, NULL);
}
