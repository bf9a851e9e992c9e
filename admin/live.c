/* SPDX-License-Identifier: MIT */
/*
 * The watchers: slots with a socket and a place in the frames. EPOLLOUT is asked for only while a
 * socket is full, so that a watcher who keeps up costs one send a frame and no wake-up.
 */
#include "live.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gate.h"
#include "live_ask.h"
#include "textbuf.h"

#define TURN_EVENTS 64
/* What the kernel may hold for one watcher (it doubles it): a few ticks of 30 stages. 600 who never
 * read take 75 MB in all. A guess. */
#define SEND_BUFFER_BYTES 65536
/* What a watcher may send: he has nothing to say. */
#define JUNK_BYTES_MAX 65536
#define SECOND_NS      1000000000LL

struct watcher {
	int fd;                 /* -1: free */
	enum frames_ring ticks; /* FRAMES_EVENT: none */
	bool full;              /* the socket is: EPOLLOUT is asked for */
	struct frame *frame;    /* being sent, held; NULL: none */
	size_t sent;            /* of it */
	uint64_t next, old;     /* ids: what comes next; ticks up to `old` are not skipped */
	int64_t begun_ns;       /* when `frame` was begun */
	int64_t quiet_ns;       /* since when nothing is sent */
	size_t junk;
	struct gate_pass pass; /* where there is a gate */
};

struct live {
	int epoll_fd;
	int limit, n_watchers, n_ticks[FRAMES_RINGS];
	bool news; /* a frame was added since the last run */
	struct frames frames;
	struct frame *beat;
	struct gate *gate; /* NULL: there is none */
	int64_t start_ms, started_ns, graph;
	char *name;
	struct watcher watcher[LIVE_WATCHERS_MAX];
};

/* ---- one watcher ---- */

static void watcher_close(struct live *l, struct watcher *w)
{
	close(w->fd);
	frame_unref(w->frame);
	l->n_watchers--;
	l->n_ticks[w->ticks]--;
	*w = (struct watcher){.fd = -1};
}

static void watch(struct live *l, int op, struct watcher *w)
{
	struct epoll_event ev = {
	    .events = EPOLLIN | EPOLLRDHUP | (w->full ? EPOLLOUT : 0), .data.ptr = w};

	if (epoll_ctl(l->epoll_fd, op, w->fd, &ev) != 0)
		watcher_close(l, w);
}

static bool take_next(struct live *l, struct watcher *w, int64_t now_ns)
{
	struct frame *frame = frames_next(&l->frames, w->ticks, w->next, w->old);

	if (!frame)
		return false;
	w->frame = frame_ref(frame);
	w->sent = 0;
	w->begun_ns = now_ns;
	w->next = frame->id + 1;
	return true;
}

/* Send until he has all or his socket is full. Rings are finite and nothing is added meanwhile. */
static void pump(struct live *l, struct watcher *w, int64_t now_ns)
{
	bool was_full = w->full;

	if (w->next <= l->frames.forgotten) { /* he comes again, and is told that there is a gap */
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

/* His side may end or send junk. */
static void listen_to(struct live *l, struct watcher *w)
{
	char junk[4096];
	ssize_t n = recv(w->fd, junk, sizeof(junk), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	w->junk += n > 0 ? (size_t)n : 0;
	if (n <= 0 || w->junk > JUNK_BYTES_MAX)
		watcher_close(l, w);
}

/* ---- coming ---- */

/* Has who asks taken his share, or viewers theirs? Where nobody is asked who he is, there are no shares. */
static bool is_greedy(const struct live *l, const struct gate_pass *pass)
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

bool live_refuses(const struct live *l, const char *p, size_t n, const struct gate_pass *pass,
    struct head_problem *problem)
{
	struct live_ask ask;

	if (!live_ask_read(p, n, &ask, problem))
		return true;
	if (is_greedy(l, pass)) {
		*problem = (struct head_problem){.status = 503,
		    .why = "your token watches the events as often as one may: half of the places, "
			   "and viewers three quarters together"};
		return true;
	}
	if (l->n_watchers < l->limit)
		return false;
	*problem = (struct head_problem){.status = 503,
	    .why = "as many watch the events as can: 600, or a quarter of "
		   "the process's descriptors"};
	return true;
}

static double uptime(const struct live *l, int64_t now_ns)
{
	return l->started_ns && now_ns > l->started_ns ? (double)(now_ns - l->started_ns) / 1e9 : 0;
}

static char *hello_json(
    const struct live *l, const struct gate_pass *pass, bool gap, int64_t now_ns)
{
	json_t *hello = json_pack("{s:f, s:f, s:s, s:s, s:I, s:b, s:s}", "start",
	    (double)l->start_ms / 1e3, "uptime_seconds", uptime(l, now_ns), "name",
	    l->name ? l->name : "", "version", WEIR_VERSION, "graph", (json_int_t)l->graph, "gap",
	    gap, "role", gate_role_word(pass));
	char *text = hello ? json_dumps(hello, JSON_COMPACT | ADMIN_JSON_REALS) : NULL;

	json_decref(hello);
	return text;
}

/* Head of the answer and `hello`. The id of `hello` is what he has, so that who is cut off behind
 * it asks for the same again. */
static struct frame *greeting(
    const struct live *l, const struct gate_pass *pass, uint64_t has, bool gap, int64_t now_ns)
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

static struct watcher *free_slot(struct live *l)
{
	for (int i = 0; i < l->limit && l->n_watchers < l->limit; i++)
		if (l->watcher[i].fd < 0)
			return &l->watcher[i];
	return NULL;
}

/* Ticks are small and rare: none waits for the answer to the one before. */
static void tune(int fd)
{
	int bytes = SEND_BUFFER_BYTES, on = 1;

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* no socket file has it */
}

void live_guard(struct live *l, struct gate *gate)
{
	l->gate = gate;
}

void live_add(
    struct live *l, int fd, const char *p, size_t n, const struct gate_pass *pass, int64_t now_ns)
{
	struct watcher *w = free_slot(l);
	struct head_problem problem;
	struct live_ask ask;

	if (!w || !live_ask_read(p, n, &ask, &problem)) {
		close(fd);
		return;
	}
	uint64_t newest = l->frames.newest;
	uint64_t has = ask.has_last && ask.last < newest ? ask.last : newest;
	struct frame *frame = greeting(l, pass, has, has < l->frames.forgotten, now_ns);
	if (!frame) {
		close(fd);
		return;
	}
	tune(fd);
	*w = (struct watcher){.fd = fd,
	    .ticks = ask.hz == 4   ? FRAMES_TICK_4
		     : ask.hz == 1 ? FRAMES_TICK_1
				   : FRAMES_EVENT,
	    .frame = frame,
	    /* What was let go is in the greeting as a gap. */
	    .next = has < l->frames.forgotten ? l->frames.forgotten + 1 : has + 1,
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

int live_fd(const struct live *l)
{
	return l->epoll_fd;
}

void live_run(struct live *l, int64_t now_ns)
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

void live_second(struct live *l, int64_t now_ns)
{
	for (int i = 0; i < l->limit; i++) {
		struct watcher *w = &l->watcher[i];
		if (w->fd < 0)
			continue;
		if (l->gate && !gate_still(l->gate, &w->pass, now_ns)) {
			watcher_close(l, w);
		} else if (w->frame && now_ns - w->begun_ns > LIVE_PATIENCE_S * SECOND_NS) {
			watcher_close(l, w);
		} else if (!w->frame && now_ns - w->quiet_ns >= LIVE_BEAT_S * SECOND_NS) {
			w->frame = frame_ref(l->beat);
			w->sent = 0;
			w->begun_ns = now_ns;
			pump(l, w, now_ns);
		}
	}
}

int live_watchers(const struct live *l)
{
	return l->n_watchers;
}

int live_watchers_at(const struct live *l, int hz)
{
	return l->n_ticks[hz == 4 ? FRAMES_TICK_4 : hz == 1 ? FRAMES_TICK_1 : FRAMES_EVENT];
}

/* ---- what there is to tell ---- */

void live_about(struct live *l, const char *name, int64_t started_ns)
{
	l->started_ns = started_ns;
	if (l->name && strcmp(l->name, name) == 0)
		return;
	free(l->name);
	l->name = strdup(name);
}

static void tell(struct live *l, enum frames_ring ring, const char *event, json_t *data)
{
	if (!l)
		json_decref(data);
	else if (frames_add(&l->frames, ring, event, data))
		l->news = true;
}

void live_tick(struct live *l, int hz, const char *tick, size_t n)
{
	if (frames_add_text(&l->frames, hz == 4 ? FRAMES_TICK_4 : FRAMES_TICK_1, "tick", tick, n))
		l->news = true;
}

void live_decision(struct live *l, json_t *decision)
{
	tell(l, FRAMES_EVENT, "decision", decision);
}

void live_act(struct live *l, json_t *act)
{
	tell(l, FRAMES_EVENT, "act", act);
}

void live_alert(struct live *l, json_t *alert)
{
	tell(l, FRAMES_EVENT, "alert", alert);
}

void live_reload(struct live *l, json_t *failed)
{
	tell(l, FRAMES_EVENT, "reload", failed);
}

void live_config(struct live *l, double at, int64_t graph)
{
	if (l)
		l->graph = graph;
	tell(l, FRAMES_EVENT, "config",
	    json_pack("{s:f, s:I}", "at", at, "graph", (json_int_t)graph));
}

/* ---- life ---- */

/* Descriptors are the server's, which needs them for its own clients. */
static int limit_of_watchers(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 4 >= LIVE_WATCHERS_MAX)
		return LIVE_WATCHERS_MAX;
	return (int)(limit.rlim_cur / 4);
}

int live_open(int64_t start_ms, struct live **out)
{
	struct live *l = calloc(1, sizeof(*l));
	int rc = WEIR_ENOMEM;

	if (!l)
		return rc;
	for (int i = 0; i < LIVE_WATCHERS_MAX; i++)
		l->watcher[i].fd = -1;
	l->limit = limit_of_watchers();
	l->start_ms = start_ms;
	frames_init(&l->frames, (uint64_t)start_ms);
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	l->beat = frame_new(": beat\n\n", 8);
	if (l->epoll_fd >= 0 && l->beat) {
		*out = l;
		return 0;
	}
	rc = l->epoll_fd < 0 ? WEIR_ESYS : WEIR_ENOMEM;
	live_close(l);
	return rc;
}

void live_close(struct live *l)
{
	if (!l)
		return;
	for (int i = 0; i < LIVE_WATCHERS_MAX; i++)
		if (l->watcher[i].fd >= 0)
			watcher_close(l, &l->watcher[i]);
	if (l->epoll_fd >= 0)
		close(l->epoll_fd);
	frames_fini(&l->frames);
	frame_unref(l->beat);
	free(l->name);
	free(l);
}
