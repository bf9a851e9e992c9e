/* SPDX-License-Identifier: MIT */
/*
 * The stream watchers. Each has a slot with a socket and a position in the frame rings
 * (sse_ring.h). EPOLLOUT is requested only while a socket is full. A watcher that reads fast enough
 * therefore costs one send per frame and never wakes the thread.
 *
 * A watcher is idle (frame NULL), sending (frame set) or blocked (full). sse_second closes
 * connections that are blocked for too long or whose pass has become invalid, and sends a heartbeat
 * on idle ones. Admin thread only.
 */
#include "sse.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "admin/auth/auth.h"
#include "sse_request.h"
#include "admin/text/textbuf.h"

#define TURN_EVENTS 64
/* Size of a watcher's socket buffer, which the kernel doubles. 64 KiB is a guess: it holds a few
 * ticks of 30 stages, and 600 watchers that never read take 75 MB in total. */
#define SEND_BUFFER_BYTES 65536
/* Number of input bytes after which a connection is closed. A well-behaved watcher sends nothing
 * after its request. */
#define JUNK_BYTES_MAX 65536
#define SECOND_NS      1000000000LL

struct watcher {
	int fd;                   /* -1 if the slot is free */
	enum sse_ring_ring ticks; /* SSE_RING_EVENT if it requested no ticks */
	bool full;                /* the socket is full: EPOLLOUT is requested */
	struct frame *frame;      /* the frame being sent, with a reference; NULL if none */
	size_t sent;              /* bytes of `frame` already sent */
	/* next id to send; ticks with ids up to `old` are not skipped (see sse_ring.h) */
	uint64_t next, old;
	int64_t begun_ns; /* when sending of `frame` began */
	int64_t quiet_ns; /* time of the last send */
	size_t junk;
	struct auth_pass pass; /* only if there is a struct auth */
};

struct sse {
	int epoll_fd;
	int limit, n_watchers, n_ticks[SSE_RING_RINGS];
	bool news; /* a frame was added since the last sse_run */
	struct sse_ring sse_ring;
	struct frame *beat;
	struct auth *auth; /* NULL if there is none */
	int64_t start_ms, started_ns, graph;
	char *name;
	struct watcher watcher[SSE_WATCHERS_MAX];
};

/* ---- one watcher ---- */

static void watcher_close(struct sse *l, struct watcher *w)
{
	close(w->fd);
	frame_unref(w->frame);
	l->n_watchers--;
	l->n_ticks[w->ticks]--;
	*w = (struct watcher){.fd = -1};
}

static void watch(struct sse *l, int op, struct watcher *w)
{
	struct epoll_event ev = {
	    .events = EPOLLIN | EPOLLRDHUP | (w->full ? EPOLLOUT : 0), .data.ptr = w};

	if (epoll_ctl(l->epoll_fd, op, w->fd, &ev) != 0)
		watcher_close(l, w);
}

static bool take_next(struct sse *l, struct watcher *w, int64_t now_ns)
{
	struct frame *frame = sse_ring_next(&l->sse_ring, w->ticks, w->next, w->old);

	if (!frame)
		return false;
	w->frame = frame_ref(frame);
	w->sent = 0;
	w->begun_ns = now_ns;
	w->next = frame->id + 1;
	return true;
}

/* Send until the watcher has received everything or its socket is full. The loop terminates: the
 * rings are finite, and nothing is added to them meanwhile. */
static void pump(struct sse *l, struct watcher *w, int64_t now_ns)
{
	bool was_full = w->full;

	/* the watcher has missed events and receives a `gap` when it reconnects */
	if (w->next <= l->sse_ring.forgotten) {
		watcher_close(l, w);
		return;
	}
	w->full = false;
	while (w->frame || take_next(l, w, now_ns)) {
		ssize_t n = send(w->fd, w->frame->text + w->sent, w->frame->n - w->sent,
		    MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		w->full = n < 0 && errno == EAGAIN;
		if (w->full)
			break;
		if (n < 0) {
			watcher_close(l, w);
			return;
		}
		w->sent += (size_t)n;
		if (w->sent < w->frame->n)
			continue;
		frame_unref(w->frame);
		w->frame = NULL;
		w->quiet_ns = now_ns;
	}
	if (w->full != was_full)
		watch(l, EPOLL_CTL_MOD, w);
}

/* Discard input. Close the connection if the watcher has closed its side or sends too much. */
static void listen_to(struct sse *l, struct watcher *w)
{
	char junk[4096];
	ssize_t n = recv(w->fd, junk, sizeof(junk), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	w->junk += n > 0 ? (size_t)n : 0;
	if (n <= 0 || w->junk > JUNK_BYTES_MAX)
		watcher_close(l, w);
}

/* ---- new watchers ---- */

/* Return whether the token or user has reached its maximum of slots, or all viewers together have
 * reached theirs. Without tokens and users there is no such maximum. */
static bool is_greedy(const struct sse *l, const struct auth_pass *pass)
{
	bool viewer = pass && pass->role == WEIR_ADMIN_VIEWER;
	int own = 0, viewers = 0;

	if (!pass || pass->edition == 0)
		return false;
	for (int i = 0; i < l->limit; i++) {
		const struct watcher *w = &l->watcher[i];
		own += w->fd >= 0 && w->pass.edition == pass->edition;
		viewers += w->fd >= 0 && w->pass.role == WEIR_ADMIN_VIEWER;
	}
	return own >= l->limit / 2 || (viewer && viewers >= l->limit * 3 / 4);
}

bool sse_refuses(const struct sse *l, const char *p, size_t n, const struct auth_pass *pass,
    struct head_problem *problem)
{
	struct sse_request ask;

	if (!sse_request_read(p, n, &ask, problem))
		return true;
	if (is_greedy(l, pass)) {
		*problem = (struct head_problem){.status = 503,
		    .why = "you have too many streams of /events open: one token or user may use "
			   "half of the slots, all viewers together three quarters"};
		return true;
	}
	if (l->n_watchers < l->limit)
		return false;
	*problem = (struct head_problem){.status = 503,
	    .why = "the maximum number of open streams of /events is reached: 600, or a quarter of "
		   "the process's descriptors if that is less"};
	return true;
}

static double uptime(const struct sse *l, int64_t now_ns)
{
	return l->started_ns && now_ns > l->started_ns ? (double)(now_ns - l->started_ns) / 1e9 : 0;
}

static char *hello_json(const struct sse *l, const struct auth_pass *pass, bool gap, int64_t now_ns)
{
	json_t *hello = json_pack("{s:f, s:f, s:s, s:s, s:I, s:b, s:s}", "start",
	    (double)l->start_ms / 1e3, "uptime_seconds", uptime(l, now_ns), "name",
	    l->name ? l->name : "", "version", WEIR_VERSION, "graph", (json_int_t)l->graph, "gap",
	    gap, "role", auth_role_word(pass));
	char *text = hello ? json_dumps(hello, JSON_COMPACT | ADMIN_JSON_REALS) : NULL;

	json_decref(hello);
	return text;
}

/* Build the response head and `hello`. The id of `hello` is that of the last event that the watcher
 * has received. If the connection breaks right after `hello`, the watcher therefore requests the
 * same events again. */
static struct frame *greeting(
    const struct sse *l, const struct auth_pass *pass, uint64_t has, bool gap, int64_t now_ns)
{
	struct textbuf t = {0};
	char *hello = hello_json(l, pass, gap, now_ns);
	struct frame *frame = NULL;
	size_t n;

	textbuf_printf(&t, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n");
	for (const struct reply_field *f = reply_fields; f->name; f++)
		textbuf_printf(&t, "%s: %s\r\n", f->name, f->value);
	textbuf_printf(&t, "\r\nretry: 1000\n\nid: %llu\nevent: hello\ndata: %s\n\n",
	    (unsigned long long)has, hello ? hello : "");
	char *text = textbuf_take(&t, &n);
	if (hello && text)
		frame = frame_new(text, n);
	free(text);
	free(hello);
	return frame;
}

static struct watcher *free_slot(struct sse *l)
{
	for (int i = 0; i < l->limit && l->n_watchers < l->limit; i++)
		if (l->watcher[i].fd < 0)
			return &l->watcher[i];
	return NULL;
}

/* Set socket options. Without TCP_NODELAY, a tick would wait for the acknowledgement of the
 * previous one, since ticks are small. */
static void tune(int fd)
{
	int bytes = SEND_BUFFER_BYTES, on = 1;

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	/* fails on a Unix socket, where it is not needed */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

void sse_guard(struct sse *l, struct auth *auth)
{
	l->auth = auth;
}

void sse_add(
    struct sse *l, int fd, const char *p, size_t n, const struct auth_pass *pass, int64_t now_ns)
{
	struct watcher *w = free_slot(l);
	struct head_problem problem;
	struct sse_request ask;

	if (!w || !sse_request_read(p, n, &ask, &problem)) {
		close(fd);
		return;
	}
	uint64_t newest = l->sse_ring.newest;
	uint64_t has = ask.has_last && ask.last < newest ? ask.last : newest;
	struct frame *frame = greeting(l, pass, has, has < l->sse_ring.forgotten, now_ns);
	if (!frame) {
		close(fd);
		return;
	}
	tune(fd);
	*w = (struct watcher){.fd = fd,
	    .ticks = ask.hz == 4   ? SSE_RING_TICK_4
		     : ask.hz == 1 ? SSE_RING_TICK_1
				   : SSE_RING_EVENT,
	    .frame = frame,
	    /* If the watcher has missed events that are no longer stored, `gap` in the greeting
	     * reports it. */
	    .next = has < l->sse_ring.forgotten ? l->sse_ring.forgotten + 1 : has + 1,
	    .old = newest,
	    .begun_ns = now_ns,
	    .quiet_ns = now_ns};
	if (pass)
		w->pass = *pass;
	l->n_watchers++;
	l->n_ticks[w->ticks]++;
	watch(l, EPOLL_CTL_ADD, w);
	if (w->fd >= 0)
		pump(l, w, now_ns);
}

/* ---- the loop ---- */

int sse_fd(const struct sse *l)
{
	return l->epoll_fd;
}

void sse_run(struct sse *l, int64_t now_ns)
{
	struct epoll_event ev[TURN_EVENTS];
	int n = epoll_wait(l->epoll_fd, ev, TURN_EVENTS, 0);

	for (int i = 0; i < n; i++) {
		struct watcher *w = ev[i].data.ptr;
		if (ev[i].events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
			listen_to(l, w);
		if (w->fd >= 0 && ev[i].events & EPOLLOUT)
			pump(l, w, now_ns);
	}
	if (!l->news)
		return;
	l->news = false;
	for (int i = 0; i < l->limit; i++)
		if (l->watcher[i].fd >= 0 && !l->watcher[i].full)
			pump(l, &l->watcher[i], now_ns);
}

void sse_second(struct sse *l, int64_t now_ns)
{
	for (int i = 0; i < l->limit; i++) {
		struct watcher *w = &l->watcher[i];
		if (w->fd < 0)
			continue;
		if (l->auth && !auth_still(l->auth, &w->pass, now_ns)) {
			watcher_close(l, w);
		} else if (w->frame && now_ns - w->begun_ns > SSE_PATIENCE_S * SECOND_NS) {
			watcher_close(l, w);
		} else if (!w->frame && now_ns - w->quiet_ns >= SSE_BEAT_S * SECOND_NS) {
			w->frame = frame_ref(l->beat);
			w->sent = 0;
			w->begun_ns = now_ns;
			pump(l, w, now_ns);
		}
	}
}

int sse_watchers(const struct sse *l)
{
	return l->n_watchers;
}

int sse_watchers_at(const struct sse *l, int hz)
{
	return l->n_ticks[hz == 4 ? SSE_RING_TICK_4 : hz == 1 ? SSE_RING_TICK_1 : SSE_RING_EVENT];
}

/* ---- events ---- */

void sse_about(struct sse *l, const char *name, int64_t started_ns)
{
	l->started_ns = started_ns;
	if (l->name && strcmp(l->name, name) == 0)
		return;
	free(l->name);
	l->name = strdup(name);
}

static void tell(struct sse *l, enum sse_ring_ring ring, const char *event, json_t *data)
{
	if (!l)
		json_decref(data);
	else if (sse_ring_add(&l->sse_ring, ring, event, data))
		l->news = true;
}

void sse_tick(struct sse *l, int hz, const char *tick, size_t n)
{
	if (sse_ring_add_text(
		&l->sse_ring, hz == 4 ? SSE_RING_TICK_4 : SSE_RING_TICK_1, "tick", tick, n))
		l->news = true;
}

void sse_decision(struct sse *l, json_t *decision)
{
	tell(l, SSE_RING_EVENT, "decision", decision);
}

void sse_act(struct sse *l, json_t *act)
{
	tell(l, SSE_RING_EVENT, "act", act);
}

void sse_alert(struct sse *l, json_t *alert)
{
	tell(l, SSE_RING_EVENT, "alert", alert);
}

void sse_reload(struct sse *l, json_t *failed)
{
	tell(l, SSE_RING_EVENT, "reload", failed);
}

void sse_config(struct sse *l, double at, int64_t graph)
{
	if (l)
		l->graph = graph;
	tell(l, SSE_RING_EVENT, "config",
	    json_pack("{s:f, s:I}", "at", at, "graph", (json_int_t)graph));
}

/* ---- create and free ---- */

/* Return the maximum number of watchers. It depends on the limit of descriptors, since the server
 * needs them for its own clients. */
static int limit_of_watchers(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 4 >= SSE_WATCHERS_MAX)
		return SSE_WATCHERS_MAX;
	return (int)(limit.rlim_cur / 4);
}

int sse_open(int64_t start_ms, struct sse **out)
{
	struct sse *l = calloc(1, sizeof(*l));
	int rc = WEIR_ENOMEM;

	if (!l)
		return rc;
	for (int i = 0; i < SSE_WATCHERS_MAX; i++)
		l->watcher[i].fd = -1;
	l->limit = limit_of_watchers();
	l->start_ms = start_ms;
	sse_ring_init(&l->sse_ring, (uint64_t)start_ms);
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	l->beat = frame_new(": beat\n\n", 8);
	if (l->epoll_fd >= 0 && l->beat) {
		*out = l;
		return 0;
	}
	rc = l->epoll_fd < 0 ? WEIR_ESYS : WEIR_ENOMEM;
	sse_close(l);
	return rc;
}

void sse_close(struct sse *l)
{
	if (!l)
		return;
	for (int i = 0; i < SSE_WATCHERS_MAX; i++)
		if (l->watcher[i].fd >= 0)
			watcher_close(l, &l->watcher[i]);
	if (l->epoll_fd >= 0)
		close(l->epoll_fd);
	sse_ring_fini(&l->sse_ring);
	frame_unref(l->beat);
	free(l->name);
	free(l);
}
