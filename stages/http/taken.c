/* SPDX-License-Identifier: MIT */
/*
 * What a client has taken of its answers: what it has acknowledged. That the kernel takes bytes says little, for its buffer holds
 * megabytes and asks for more only when a third of it is free, half a minute with a client of 30 KB/s. So before one is ended
 * for not taking its answer its socket is asked.
 */
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "http/conn.h"

/* A client's kernel takes megabytes before the client reads any, and then acknowledges a 16th of its buffer (128 KiB) at a time. So
 * whoever is ahead of min_send_rate is so by twice that at most: no more is saved up to trickle on. */
#define LEAD_BYTES 16384

int64_t conn_untaken(const struct conn *c)
{
	int n;

	return ioctl(c->watch.fd, SIOCOUTQ, &n) == 0 ? n : 0;
}

bool conn_look(struct conn *c)
{
	int64_t now = conn_untaken(c), taken = c->queued_bytes - now;
	double due;

	c->queued_bytes = now;
	if (taken <= 0)
		return false;
	c->progress_ns = weir_loop_now_ns(c->io->loop);
	due = c->io->conf.min_send_rate * (double)(c->progress_ns - c->since_ns) / 1e9;
	c->moved_bytes += taken;
	if ((double)c->moved_bytes > due + LEAD_BYTES)
		c->moved_bytes = (int64_t)due + LEAD_BYTES;
	return true;
}
