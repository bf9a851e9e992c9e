/* SPDX-License-Identifier: MIT */
/*
 * Measures how much of its responses a client has received, by what it has acknowledged. The number
 * of bytes that the kernel has accepted shows little: its buffer holds megabytes, and it reports
 * writability only when a third of the buffer is free, which takes half a minute with a client of
 * 30 KB/s. Therefore, before a connection is closed because its client does not read its response,
 * the socket is queried.
 */
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "http/conn/conn.h"

/* Limit of a client's lead over min_send_rate; at most twice this can accumulate. A client's kernel
 * accepts megabytes before the client reads any, and then acknowledges a 16th of its buffer (128
 * KiB) at a time. Without the limit a client could accumulate such a lead, and then read almost
 * nothing. */
#define LEAD_BYTES 16384

int64_t conn_untaken(const struct conn *c)
{
	int n;

	return ioctl(c->watch.fd, SIOCOUTQ, &n) == 0 ? n : 0;
}

bool conn_look(struct conn *c)
{
	int64_t now = conn_untaken(c), taken = c->wait.queued_bytes - now;
	double due;

	c->wait.queued_bytes = now;
	if (taken <= 0)
		return false;
	c->wait.progress_ns = weir_loop_now_ns(c->io->loop);
	due = c->io->conf.min_send_rate * (double)(c->wait.progress_ns - c->wait.since_ns) / 1e9;
	c->wait.moved_bytes += taken;
	if ((double)c->wait.moved_bytes > due + LEAD_BYTES)
		c->wait.moved_bytes = (int64_t)due + LEAD_BYTES;
	return true;
}
