/* SPDX-License-Identifier: MIT */
/* Asks servers by c-ares; see resolve_ask.h. */
#include "net/resolve_ask.h"

#include <ares.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/time.h>

#define NS_PER_S  1000000000LL
#define NS_PER_US 1000LL
#define NS_PER_MS 1000000LL
/* How often resolv.conf is looked at. */
#define LOOK_NS NS_PER_S

struct channel {
	struct weir_timer timer; /* first member */
	struct asker *asker;
	struct channel *next; /* older ones */
	struct sock *socks;
	ares_channel ares;
	int pending; /* questions */
	int inside;  /* calls of c-ares on the stack, during which the channel may not be freed */
};

struct sock {
	struct weir_watch watch; /* first member */
	struct channel *channel;
	struct sock *next;
};

struct question {
	struct channel *channel;
	void *about;
};

struct asker {
	struct weir_loop *loop;
	const struct resolve_conf *conf;
	void (*found)(void *about, const struct ask_result *result);
	struct channel *channels; /* the newest first, which questions go to */
	struct stat file;         /* resolv.conf as read */
	int64_t look_ns;          /* when to look at it again */
	bool ending, loop_gone;
};

/* ---- sockets and time-outs ---- */

static void end_watch(struct channel *c, struct sock **at)
{
	struct sock *s = *at;

	*at = s->next;
	if (!c->asker->loop_gone)
		weir_loop_del(c->asker->loop, &s->watch);
	free(s);
}

static void free_channel(struct channel *c)
{
	c->inside++;
	ares_destroy(c->ares);
	if (!c->asker->loop_gone)
		weir_timer_cancel(c->asker->loop, &c->timer);
	while (c->socks)
		end_watch(c, &c->socks);
	free(c);
}

/* Free an old channel whose questions are answered. */
static void free_if_old(struct channel *c)
{
	struct channel **at = &c->asker->channels;

	if (c == *at || c->pending > 0 || c->inside > 0)
		return;
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	free_channel(c);
}

static void set_timer(struct channel *c)
{
	struct timeval tv;
	struct weir_loop *loop = c->asker->loop;

	if (ares_timeout(c->ares, NULL, &tv))
		weir_timer_set(loop, &c->timer,
		    weir_loop_now_ns(loop) + tv.tv_sec * NS_PER_S + tv.tv_usec * NS_PER_US);
	else
		weir_timer_cancel(loop, &c->timer);
}

/* Let c-ares read and write, and look for questions that are late. */
static void process(struct channel *c, ares_socket_t readable, ares_socket_t writable)
{
	c->inside++;
	ares_process_fd(c->ares, readable, writable);
	c->inside--;
	set_timer(c);
	free_if_old(c);
}

static void on_time(struct weir_loop *loop, struct weir_timer *t)
{
	(void)loop;
	process((struct channel *)t, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

static void on_ready(struct weir_loop *loop, struct weir_watch *w, uint32_t events)
{
	struct sock *s = (struct sock *)w;
	const bool in = events & (EPOLLIN | EPOLLERR | EPOLLHUP), out = events & EPOLLOUT;

	(void)loop;
	process(s->channel, in ? w->fd : ARES_SOCKET_BAD, out ? w->fd : ARES_SOCKET_BAD);
}

/* Called by c-ares when it begins or ceases to wait for a socket. A socket that cannot be watched for lack
 * of memory is late. */
static void on_state(void *data, ares_socket_t fd, int readable, int writable)
{
	struct channel *c = data;
	struct sock **at = &c->socks, *s;
	const uint32_t events = (readable ? EPOLLIN : 0u) | (writable ? EPOLLOUT : 0u);

	while (*at && (*at)->watch.fd != fd)
		at = &(*at)->next;
	if (*at && events != 0) {
		weir_loop_mod(c->asker->loop, &(*at)->watch, events);
		return;
	}
	if (*at)
		end_watch(c, at);
	s = events != 0 ? calloc(1, sizeof(*s)) : NULL;
	if (!s)
		return;
	*s = (struct sock){.watch = {.ready = on_ready, .fd = fd}, .channel = c};
	if (weir_loop_add(c->asker->loop, &s->watch, events) != 0) {
		free(s);
		return;
	}
	s->next = c->socks;
	c->socks = s;
}

/* ---- channels ---- */

static pthread_once_t library = PTHREAD_ONCE_INIT;

static void library_begin(void)
{
	ares_library_init(ARES_LIB_INIT_ALL);
}

void asker_library(void)
{
	pthread_once(&library, library_begin);
}

static int channel_failed(struct weir_err *err, int rc)
{
	err->code = rc == ARES_ENOMEM ? WEIR_ENOMEM : WEIR_ESYS;
	snprintf(err->text, sizeof(err->text), "the resolver of names cannot start: %s",
	    ares_strerror(rc));
	return err->code;
}

/* Make a new channel the one that questions go to. */
static int begin_channel(struct asker *a, struct weir_err *err)
{
	const struct resolve_conf *conf = a->conf;
	struct channel *c = calloc(1, sizeof(*c));
	struct ares_options options = {.timeout = (int)(conf->timeout_ns / NS_PER_MS),
	    .tries = conf->tries,
	    .sock_state_cb = on_state,
	    .sock_state_cb_data = c,
	    .resolvconf_path = strdup(conf->file)};
	int rc = ARES_ENOMEM;

	if (c && options.resolvconf_path)
		rc = ares_init_options(&c->ares, &options,
		    ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB |
			ARES_OPT_RESOLVCONF);
	free(options.resolvconf_path);
	if (rc != ARES_SUCCESS) {
		free(c);
		return channel_failed(err, rc);
	}
	if (conf->servers && ares_set_servers_ports_csv(c->ares, conf->servers) != ARES_SUCCESS) {
		ares_destroy(c->ares);
		free(c);
		err->code = WEIR_EINVAL;
		snprintf(err->text, sizeof(err->text), "'%.80s' is not a list of name servers",
		    conf->servers);
		snprintf(
		    err->hint, sizeof(err->hint), "write addresses, as in 192.0.2.1, [::1]:53");
		return WEIR_EINVAL;
	}
	c->asker = a;
	c->timer.fire = on_time;
	c->next = a->channels;
	a->channels = c;
	return 0;
}

/* ---- answers ---- */

/* Keep the smallest TTL. Those from 2^31 on count as 0 (RFC 2181, 8). */
static void take_ttl(struct ask_result *r, int ttl)
{
	const int64_t ttl_s = ttl < 0 ? 0 : ttl;

	if (ttl_s < r->ttl_s)
		r->ttl_s = ttl_s;
}

static void take_addresses(struct ask_result *r, const struct ares_addrinfo *info)
{
	r->ttl_s = INT32_MAX;
	for (const struct ares_addrinfo_cname *c = info->cnames; c; c = c->next)
		take_ttl(r, c->ttl);
	for (const struct ares_addrinfo_node *node = info->nodes; node; node = node->ai_next) {
		struct sockaddr_storage addr = {0};
		if (r->n == RESOLVE_ADDRESSES_MAX || node->ai_addrlen > sizeof(addr))
			break;
		memcpy(&addr, node->ai_addr, node->ai_addrlen);
		if (!net_address_of(&addr, &r->address[r->n]))
			continue;
		r->n++;
		take_ttl(r, node->ai_ttl);
	}
}

static enum resolve_status status_of(int rc)
{
	switch (rc) {
	case ARES_SUCCESS:
		return RESOLVE_OK;
	case ARES_ENOTFOUND:
	case ARES_ENODATA:
		return RESOLVE_NONE;
	case ARES_EBADNAME:
	case ARES_EBADFAMILY:
		return RESOLVE_BAD_NAME;
	case ARES_ENOMEM:
		return RESOLVE_NO_MEMORY;
	default:
		return RESOLVE_FAILED;
	}
}

static void on_answer(void *arg, int rc, int timeouts, struct ares_addrinfo *info)
{
	struct question *q = arg;
	struct channel *c = q->channel;
	struct asker *a = c->asker;
	struct ask_result result = {.status = status_of(rc)};
	void *about = q->about;

	(void)timeouts;
	if (rc == ARES_SUCCESS)
		take_addresses(&result, info);
	if (rc == ARES_SUCCESS && result.n == 0) {
		result.status = RESOLVE_NONE;
		rc = ARES_ENODATA;
	}
	result.why = rc == ARES_SUCCESS ? "" : ares_strerror(rc);
	ares_freeaddrinfo(info);
	free(q);
	c->pending--;
	if (!a->ending)
		a->found(about, &result);
}

void ask(struct asker *a, const char *name, void *about)
{
	static const struct ares_addrinfo_hints hints = {
	    .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct question *q = malloc(sizeof(*q));
	struct channel *c = a->channels;

	if (!q) {
		static const struct ask_result none = {
		    .status = RESOLVE_NO_MEMORY, .why = "out of memory"};
		a->found(about, &none);
		return;
	}
	*q = (struct question){c, about};
	c->pending++;
	c->inside++;
	ares_getaddrinfo(c->ares, name, NULL, &hints, on_answer, q);
	c->inside--;
	set_timer(c);
}

/* ---- resolv.conf ---- */

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

bool asker_look(struct asker *a)
{
	const int64_t now_ns = weir_loop_now_ns(a->loop);
	struct weir_err ignored;
	struct stat file;

	if (a->conf->servers || now_ns < a->look_ns)
		return false;
	a->look_ns = now_ns + LOOK_NS;
	if (stat(a->conf->file, &file) != 0 || same_file(&file, &a->file))
		return false;
	if (begin_channel(a, &ignored) != 0)
		return false;
	a->file = file;
	free_if_old(a->channels->next);
	return true;
}

/* ---- lifecycle ---- */

int asker_new(struct weir_loop *loop, const struct resolve_conf *conf,
    void (*found)(void *about, const struct ask_result *result), struct asker **out,
    struct weir_err *err)
{
	struct asker *a = calloc(1, sizeof(*a));
	int rc;

	asker_library();
	if (!a)
		return err->code = WEIR_ENOMEM;
	a->loop = loop;
	a->conf = conf;
	a->found = found;
	a->look_ns = weir_loop_now_ns(loop) + LOOK_NS;
	if (stat(conf->file, &a->file) != 0)
		memset(&a->file, 0, sizeof(a->file));
	rc = begin_channel(a, err);
	if (rc != 0) {
		free(a);
		return rc;
	}
	*out = a;
	return 0;
}

void asker_free(struct asker *a, bool loop_gone)
{
	if (!a)
		return;
	a->ending = true;
	a->loop_gone = loop_gone;
	for (struct channel *c = a->channels, *next; c; c = next) {
		next = c->next;
		free_channel(c);
	}
	free(a);
}
