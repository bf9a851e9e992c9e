/* SPDX-License-Identifier: MIT */
/* Signals of a running server; see signals.h. */
#include "signals.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

/** What the handler hurries; NULL when nothing drains. A handler gets no argument of ours. */
static _Atomic(struct weir_graph *) signals_draining;
static atomic_bool signals_hurried;

static void signals_fill(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGUSR1);
}

void signals_block(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	signals_fill(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

int signals_wait(void)
{
	sigset_t set;
	int sig;

	signals_fill(&set);
	/* Fails only for a set that holds no valid signal. */
	int rc = sigwait(&set, &sig);
	WEIR_ASSERT(rc == 0);
	return sig;
}

static void signals_on_next(int sig)
{
	struct weir_graph *graph = atomic_load(&signals_draining);

	(void)sig;
	atomic_store(&signals_hurried, true);
	if (graph)
		weir_graph_hurry(graph);
}

void signals_hurry_on_next(struct weir_graph *graph)
{
	struct sigaction action = {.sa_handler = signals_on_next, .sa_flags = SA_RESTART};
	sigset_t set;

	atomic_store(&signals_draining, graph);
	sigemptyset(&action.sa_mask);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

bool signals_hurry(void)
{
	return atomic_load(&signals_hurried);
}

bool signals_calm(void)
{
	signals_block();
	atomic_store(&signals_draining, NULL);
	return atomic_load(&signals_hurried);
}
