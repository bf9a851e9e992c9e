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

	return ioctl(c->net.watch.fd, SIOCOUTQ, &n) == 0 ? n : 0;
}

bool conn_look(struct conn *c)
{
	int64_t now = conn_untaken(c), taken = c->net.wait.queued_bytes - now;
	double due;

	c->net.wait.queued_bytes = now;
	if (taken <= 0)
		return false;
	c->net.wait.progress_ns = weir_loop_now_ns(c->io->net.loop);
	due = c->io->conf.min_send_rate * (double)(c->net.wait.progress_ns - c->net.wait.since_ns) /
	      1e9;
	c->net.wait.moved_bytes += taken;
	if ((double)c->net.wait.moved_bytes > due + LEAD_BYTES)
		c->net.wait.moved_bytes = (int64_t)due + LEAD_BYTES;
	return true;
}

bool conn_is_slow(struct conn *c)
{
	const struct http_conf *conf = &c->io->conf;
	int64_t now_ns = weir_loop_now_ns(c->io->net.loop);
	double rate = c->net.wait.kind == WAIT_BODY ? conf->min_body_rate : conf->min_send_rate;

	if (c->net.wait.kind == WAIT_WRITE && rate > 0 && !conn_look(c) &&
	    now_ns - c->net.wait.progress_ns >= NET_EVICT_AFTER_NS)
		return true;
	return (double)c->net.wait.moved_bytes <
	       rate * (double)(now_ns - c->net.wait.since_ns) / 1e9;
}
