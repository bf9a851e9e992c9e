/* SPDX-License-Identifier: MIT */
/*
 * Health checks: each loop asks each origin for `health.path` every `health.every`, over a connection of
 * its own. A check is passed if a status of 2xx or 3xx arrives before the next one begins. `fails` failed
 * checks in a row leave the origin out; a check that is passed brings it back without a trial.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/client/client.h"

/* "HTTP/1.1 200": as much as is read of the answer. */
#define STATUS_BYTES 12

struct probe {
	struct weir_watch watch; /* first */
	struct weir_timer timer;
	struct client_loop *cl;
	struct origin *origin;
	struct tls_origin *tls;
	bool open, sent;
	int fails; /* in a row */
	size_t n;
	char status[STATUS_BYTES];
};

/* Tell the other loops. They follow each check, as this loop does. */
static void publish(const struct probe *p, bool out)
{
	atomic_uint *state = &p->origin->shared->checked;

	atomic_store(state, ((atomic_load(state) | 1) + 1) | out);
}

void health_follow(struct client_loop *cl)
{
	for (int i = 0; !cl->probes && i < cl->n_live; i++) {
		struct origin *o = cl->live[i];
		unsigned state = atomic_load(&o->shared->checked);
		if (WEIR_LIKELY(state == o->health_seen))
			continue;
		o->health_seen = state;
		if (state & 1) {
			o->unwell_until_ns = client_now_ns(cl) + client_conf(cl)->eject_ns;
		} else {
			o->unwell_until_ns = 0;
			if (o->out_until_ns != 0)
				pick_succeeded(cl, o);
		}
	}
}

static void judge(struct probe *p, bool passed)
{
	const struct client_conf *conf = client_conf(p->cl);

	client_count(p->cl, passed ? CLIENT_CHECKS_PASSED : CLIENT_CHECKS_FAILED, 1);
	p->fails = passed ? 0 : p->fails + (p->fails < INT32_MAX);
	if (passed || (conf->fails > 0 && p->fails >= conf->fails))
		publish(p, !passed);
	if (passed && p->origin->out_until_ns != 0)
		pick_succeeded(p->cl, p->origin);
	else if (conf->fails > 0 && p->fails >= conf->fails)
		pick_eject(p->cl, p->origin);
}

static void end(struct probe *p, bool passed)
{
	weir_loop_del(p->cl->loop, &p->watch);
	tls_origin_free(p->tls);
	close(p->watch.fd);
	p->tls = NULL;
	p->open = false;
	judge(p, passed);
}

/* Returns false if the check has failed. */
static bool send_request(struct probe *p)
{
	const struct client_conf *conf = client_conf(p->cl);
	char text[1024];
	int n =
	    snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n",
		conf->health.path, origin_authority(p->origin->spec));
	int64_t sent = p->tls ? tls_origin_write(p->tls, text, (size_t)n)
			      : send(p->watch.fd, text, (size_t)n, MSG_NOSIGNAL);

	p->sent = true;
	return sent == n; /* the socket is empty, so it takes all of it */
}

/* Returns false at the end of the connection. *none is set if nothing has arrived. */
static bool read_status(struct probe *p, bool *none)
{
	char *to = p->status + p->n;
	size_t room = STATUS_BYTES - p->n;
	int64_t n;

	if (p->tls) {
		n = tls_origin_read(p->tls, to, room);
		*none = n == 0;
	} else {
		n = recv(p->watch.fd, to, room, 0);
		*none = n == -1 && errno == EAGAIN;
	}
	p->n += n > 0 ? (size_t)n : 0;
	return n > 0 || *none;
}

static bool is_passed(const struct probe *p)
{
	return memcmp(p->status, "HTTP/1.", 7) == 0 && p->status[8] == ' ' &&
	       (p->status[9] == '2' || p->status[9] == '3');
}

static void go_on(struct probe *p)
{
	int shaken = p->tls && !p->sent ? tls_origin_shake(p->tls) : 1;
	bool none = false;

	if (shaken == 0)
		return;
	if (shaken < 0 || (!p->sent && !send_request(p))) {
		end(p, false);
		return;
	}
	while (!none && p->n < STATUS_BYTES)
		if (!read_status(p, &none)) {
			end(p, false);
			return;
		}
	if (p->n == STATUS_BYTES)
		end(p, is_passed(p));
}

static void ready(struct weir_loop *loop, struct weir_watch *w, uint32_t events)
{
	struct probe *p = (struct probe *)w;

	(void)loop;
	if (!p->sent && (events & (EPOLLERR | EPOLLHUP))) {
		end(p, false);
		return;
	}
	if (!p->sent && !(events & EPOLLOUT))
		return;
	if (p->tls)
		tls_origin_ready(p->tls, (events & EPOLLRDHUP) != 0);
	go_on(p);
}

static void begin(struct probe *p)
{
	const struct origin_spec *spec = p->origin->spec;

	p->watch = (struct weir_watch){.ready = ready, .fd = upstream_socket(&p->origin->address)};
	p->sent = false;
	p->n = 0;
	if (p->watch.fd == -1) {
		if (!upstream_lacks_descriptor())
			judge(p, false);
		return;
	}
	p->open =
	    weir_loop_add(p->cl->loop, &p->watch, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET) == 0;
	if (p->open && spec->secure)
		p->tls = tls_origin_new(
		    p->cl->client->tls, p->watch.fd, spec->host, &p->origin->session);
	if (!p->open)
		close(p->watch.fd);
	else if (spec->secure && !p->tls)
		end(p, false);
}

static void due(struct weir_loop *loop, struct weir_timer *t)
{
	struct probe *p = (struct probe *)((char *)t - offsetof(struct probe, timer));

	if (p->open) /* no answer since the last time */
		end(p, false);
	begin(p);
	weir_timer_set(loop, t, weir_loop_now_ns(loop) + client_conf(p->cl)->health.every_ns);
}

bool health_path_good(const char *path)
{
	size_t n = strlen(path);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)path[i] <= ' ' || (unsigned char)path[i] >= 0x7f)
			return false;
	return n == 0 || (path[0] == '/' && n <= CLIENT_HEALTH_PATH);
}

int health_start(struct client_loop *cl)
{
	int n = cl->n_slots;

	if (!client_conf(cl)->health.path[0])
		return 0;
	cl->probes = calloc((size_t)n, sizeof(*cl->probes));
	if (!cl->probes)
		return WEIR_ENOMEM;
	for (int i = 0; i < n; i++) {
		struct probe *p = &cl->probes[i];
		p->cl = cl;
		p->origin = &cl->origin[i];
		p->timer.fire = due;
	}
	return 0;
}

void health_begin(struct client_loop *cl, const struct origin *o)
{
	if (cl->probes)
		weir_timer_set(cl->loop, &cl->probes[o - cl->origin].timer, client_now_ns(cl));
}

void health_end(struct client_loop *cl, const struct origin *o)
{
	struct probe *p = cl->probes ? &cl->probes[o - cl->origin] : NULL;

	if (!p)
		return;
	weir_timer_cancel(cl->loop, &p->timer);
	if (p->open) {
		weir_loop_del(cl->loop, &p->watch);
		tls_origin_free(p->tls);
		close(p->watch.fd);
	}
	p->open = false;
	p->tls = NULL;
	p->fails = 0;
}

void health_stop(struct client_loop *cl)
{
	for (int i = 0; i < cl->n_slots; i++)
		health_end(cl, &cl->origin[i]);
	free(cl->probes);
	cl->probes = NULL;
}
