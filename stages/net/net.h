/* SPDX-License-Identifier: MIT */
/*
 * A server of connections, whatever its protocol: accepting, limits, eviction, pausing, draining
 * and handover. One struct per server, one per I/O thread, one per connection.
 *
 * A protocol (http.server) embeds them, each as the first member of a struct of its own:
 *
 *   struct net_conf    in the configuration of its stage (weir_conf)
 *   struct net_server  in the state of its stage (weir_state)
 *   struct net_io      in the data of its event loops (weir_loop_data)
 *   struct net_conn    in its connections
 *
 * and installs struct net_calls, through which this code calls the protocol: for each new
 * connection, and for one that is evicted, drained or handed over, but never for a request. The
 * protocol calls the functions of this folder directly.
 *
 * Each I/O thread owns its listening sockets (SO_REUSEPORT spreads clients over them) and its
 * connections. I/O threads share the number of open connections, in total and per address, and the
 * drain, all in struct net_server.
 *
 *   built --start: bind, listen, loops--> RUNNING --stop--> DRAINING -> CLOSED --fini--> joined
 */
#ifndef WEIR_NET_NET_H
#define WEIR_NET_NET_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <weir/weir.h>

#include "net/network.h"
#include "net/tls/tls_conf.h"

/** Maximum number of addresses on which one server may listen. */
#define NET_LISTEN_MAX 16
/** Maximum number of I/O threads of one server. Servers with a thread per connection have many. 1,024
 * is as many as there are mailboxes with outboxes (event/mailbox.h), and their descriptors, four for
 * each thread, are as many as a process may usually have. */
#define NET_IO_MAX 1024
/** The address of clients of socket files, in logs, fields and `trust`. */
#define NET_UNIX_NAME "unix"
/** Words of a bitmap with a bit for each I/O thread. */
#define NET_IO_WORDS (NET_IO_MAX / 64)

/** Shortest wait after which a connection may be evicted. Connections that have waited for less are
 * spared because browsers open connections in advance. */
#define NET_EVICT_AFTER_NS 1000000000LL
/** Maximum number of connections checked to find one to evict. At 50 ns each this costs less than
 * the accept. */
#define NET_EVICT_SCAN 64

/** The values of `with:` that servers of all protocols have. */
struct net_conf {
	struct weir_strings listen;
	struct weir_strings trust; /* networks of proxies, and "unix" */
	int64_t threads;           /* -1 means auto */
	int64_t per_thread;        /* 0 means no limit */
	int64_t max_connections, backlog;
	int64_t max_per_address; /* -1 means auto */
	double accept_rate;      /* per second and address; 0 means unlimited */
	int64_t linger_ns;
	char *socket_mode, *socket_group; /* of socket files; NULL or "" means the default */
	struct tls_conf tls;
};

/* NET_GONE is not a phase of the drain: an I/O thread reports it once it will no longer access the
 * data of other threads. */
enum net_phase { NET_RUNNING, NET_DRAINING, NET_CLOSED, NET_GONE };

struct clients;
struct net_conn;
struct net_handed;
struct net_io;
struct net_server;
struct tls_conn;
struct tls_site;

/* ---- a connection ---- */

/** Lists of connections by what they wait for; see net_io.list. */
enum net_list_id {
	LIST_IDLE,
	LIST_HALF,
	LIST_BEHIND,
	LIST_SLOW,
	LIST_AWAY,
	LIST_LINGER,
	LIST_REFUSED,
	NET_LISTS
};

/** What a connection waits for, and how the wait goes. */
struct net_wait {
	struct weir_timer timer;
	struct net_conn *next, **prev; /* links in the list `list`; prev is NULL if in no list */
	uint8_t list;                  /* enum net_list_id, valid if prev is set */
	uint8_t kind;                  /* defined by the protocol: enum wait_kind of HTTP */
	int64_t since_ns;              /* when the wait began */
	/* When the last byte was transferred; in LIST_IDLE, when the TLS handshake ended. */
	int64_t progress_ns;
	int64_t moved_bytes; /* transferred; while writing, acknowledged by the client */
	/* While writing, the unacknowledged bytes in the kernel at the last check, plus the bytes
	 * sent since. */
	int64_t queued_bytes;
};

/** The client of a connection. */
struct net_client {
	uint64_t key; /* key in the client table (clients.h); 0 if not counted */
	char id[8];   /* identifier of the connection, unique in this process */
	bool trusted; /* a proxy in `trust`, whose word about its client is believed */
	uint8_t address_n;
	char address[INET6_ADDRSTRLEN];
};

struct net_conn {
	struct weir_watch watch; /* first member; fd is -1 once closed */
	struct tls_conn *tls;    /* NULL without TLS; stays while requests are in the graph */
	bool refused;            /* refused when accepted; counted in net_server.refusing */
	bool ready;              /* the protocol is about to process it: it is not evicted */
	struct net_wait wait;
	struct net_conn *next, **prev; /* links of net_io.conns */
	struct net_client client;
};

/** A list of connections; the order depends on the list. */
struct net_list {
	struct net_conn *first, **tail;
	int n;
};

/* ---- an I/O thread ---- */

/** One listening socket of one I/O thread. */
struct listener {
	struct weir_watch watch; /* first member */
	struct net_io *io;
	uint8_t address; /* index of the address in the configuration */
	bool watched;
	/* opened by a service manager, which may keep it open; all I/O threads share the socket */
	bool passed;
	/* All I/O threads have a descriptor of the socket: with `per_thread`, or of a socket file. */
	bool common;
	/* Shared across a reload with the old or the new server (handover.h). Written during
	 * startup, read in the drain. */
	bool shared;
};

/** A new connection that is accepted but not admitted yet. */
struct newcomer {
	int fd;       /* -1 if there is none */
	int asks;     /* eviction requests sent to other I/O threads so far */
	uint64_t key; /* key in the client table (clients.h), where it is counted already */
	struct sockaddr_storage addr;
};

/** Bits: what another I/O thread must free so that this one can admit its new connection. */
enum evict_wanted { EVICT_FOR_SLOT = 1, EVICT_FOR_DESCRIPTOR = 2 };

/** Bits: what an I/O thread must do at the end of an iteration. It checks again whether its new
 * connection can be admitted, since the other thread has replied, or a connection of this thread has
 * closed; or other threads have asked it for an eviction. */
enum evict_news { EVICT_REPLIED = 1, EVICT_CLOSED = 2, EVICT_ASKED = 4 };

/** Accepting: accept.c, listen.c, stand_in.c. */
struct net_accept {
	/* a spare eventfd, closed to free a descriptor for the next client when none is left */
	int reserve_fd;
	struct weir_timer timer; /* resumes accepting */
	bool paused;
	bool last_call; /* the listeners are being closed: accept the backlog even when full */
	int n_stand_in;
	struct listener *stand_in; /* listeners of threads that are held up: stand_in.h */
	/* the threads that own the sockets in `stand_in`, one bit each; `stands` if there are any */
	uint64_t stood[NET_IO_WORDS];
	bool stands;
	/* an accepted client that waits until another I/O thread evicts a connection */
	struct newcomer newcomer;
	int n_listeners, listener_room; /* of net_io.listener */
};

/** Eviction across I/O threads: evict.c. Only this thread writes `idle_since_ns` and `wanted`; any
 * I/O thread may write the other members. */
struct net_evict {
	/* start of the longest wait for a request among this thread's connections (slot.c);
	 * INT64_MAX if none waits */
	_Atomic int64_t idle_since_ns;
	atomic_uint news; /* enum evict_news: bits */
	/* threads that request an eviction, one bit each */
	_Atomic uint64_t asked[NET_IO_WORDS];
	/* threads that have nothing to evict for our new connection, one bit each */
	_Atomic uint64_t none[NET_IO_WORDS];
	/* what this thread's new connection needs: bits of enum evict_wanted; 0 if nothing */
	atomic_uint wanted;
};

/** Connections that move between servers: handover.c. */
struct net_handover {
	/* the server that receives our connections; NULL unless we drain for a reload */
	struct net_server *to;
	/* connections that could not be taken over yet for lack of memory */
	struct net_handed *kept;
	struct weir_timer timer; /* retries handovers that failed for lack of memory */
	/* connections handed over by a predecessor of this server; pushed by any thread */
	_Atomic(struct net_handed *) handed;
};

/** The drain of this I/O thread: drain.c. */
struct net_drain {
	enum net_phase phase;
	bool done; /* draining, and no connection is left */
	struct weir_timer linger_timer;
};

/** Sharing clients among I/O threads that have at most `per_thread` connections: per_thread.c. */
struct net_share {
	/* Whether there is no room, and whether there is none but a connection between two requests
	 * could be closed. Written by this thread, read by others. */
	atomic_bool full, idle;
	atomic_bool look; /* another thread has found that something waits */
	bool opened;      /* has woken other threads, since all have started */
	bool due;         /* this thread closes a connection for one that was handed over */
	bool made_way;    /* it has done so, and has room at the end of the iteration */
};

/** Pausing by an operator: pause.c. */
struct net_pause {
	bool on;   /* srv->paused as last seen by this thread: nothing is accepted or read */
	bool seen; /* copy of `on` that the pausing thread reads; under srv->lock */
};

/** An I/O thread. Once started, all of it belongs to that thread, except the members marked
 *  otherwise. */
struct net_io {
	struct net_server *srv;
	struct weir_loop *loop;
	struct weir_stage *stage;
	int index;
	bool deaf;                   /* the protocol lets nothing be accepted: memory is short */
	const struct net_conf *conf; /* the copy that net_calls.touch updates */
	int64_t *count;              /* the protocol's metrics, indexed by net_calls.metric */
	struct net_pause pause;
	struct net_drain drain;
	struct net_handover handover;
	struct net_conn *conns; /* all open connections */
	int64_t n_conns;        /* open, or closed with requests still in the graph */
	/* Connections by what they wait for. LIST_IDLE holds those without a request, LIST_HALF
	 * those with the beginning of one, LIST_BEHIND those with the beginning of one while
	 * earlier requests are unanswered; these three lists begin with the longest wait. LIST_SLOW
	 * holds those with a transfer in progress, LIST_AWAY those whose handshake is being done by
	 * its stage, LIST_LINGER those that linger after their last response. LIST_REFUSED holds
	 * those that linger after they were refused when accepted; max_connections does not count
	 * them. */
	struct net_list list[NET_LISTS];
	struct net_accept accept;
	struct net_evict evict;
	struct net_share share;
	struct listener
	    *listener; /* allocated by listen_add; other threads read it under srv->lock */
};

/* ---- the protocol ---- */

/** Why a client is refused right after the accept. */
enum net_limit {
	NET_LIMIT_CONNECTIONS, /* max_connections, or descriptors have run out */
	NET_LIMIT_ADDRESS,     /* max_per_address */
	NET_LIMIT_RATE,        /* accept_rate */
	NET_LIMIT_MEMORY,
};

/** Metrics that are counted here. */
enum net_metric {
	NET_CONNECTIONS,     /* gauge: open connections */
	NET_ACCEPT_FAILURES, /* accepts that failed for lack of descriptors or memory */
	NET_REFUSED_HANDED,  /* connections of a predecessor that could not be taken over */
	NET_METRICS
};

/** Calls to the protocol. Unless stated otherwise, they are made in the I/O thread of `io` or of
 * the connection. */
struct net_calls {
	/* the protocol's metric for each of enum net_metric */
	uint8_t metric[NET_METRICS];
	/* Update the copy of the configuration (net_io.conf). Called first in each callback. */
	void (*touch)(struct net_io *io);

	/* Allocate the data of an I/O thread, with net_io_init; returns NULL if out of memory. Main
	 * thread, as is io_free. */
	struct net_io *(*io_new)(struct net_server *srv, int index);
	/* free it, once the thread has ended */
	void (*io_free)(struct net_io *io);

	/* Open a connection for the accepted socket `fd` of a client with `key` (clients.h).
	 * clients_enter has counted the connection; net_conn_detach stops counting it. `over` is
	 * the limit (enum net_limit) that the client has exceeded, so that it must be refused, or
	 * -1. */
	void (*open)(
	    struct net_io *io, int fd, const struct sockaddr_storage *addr, uint64_t key, int over);
	/* Count the refusal and close `fd`, for which no connection is created. With `tell`, the
	 * client is told why. */
	void (*turn_away)(struct net_io *io, int fd, enum net_limit over, bool tell);

	/* whether the transfer in progress, in LIST_SLOW, is too slow to be spared */
	bool (*is_slow)(struct net_conn *c);
	/* close `c` for another connection */
	void (*evict)(struct net_conn *c);
	/* whether `c`, in LIST_IDLE, is between two requests */
	bool (*is_between)(const struct net_conn *c);

	/* a pause begins or ends: process what has been read already */
	void (*resume)(struct net_conn *c);
	/* determine again what `c` waits for */
	void (*settle)(struct net_conn *c);

	/* the linger time of a drain is over: end `c` unless it has a request */
	void (*end_idle)(struct net_conn *c);
	/* The drain is over: nothing may enter the graph any more. End `c` unless a request of it
	 * is in the graph. */
	void (*end_late)(struct net_conn *c);

	/* Hand `c` over to the server net_io.handover.to if it can leave now. Returns true if it
	 * has left; `c` is then closed here. */
	bool (*hand_over)(struct net_conn *c);
	/* `h` is handed on to the server `to` */
	void (*handed_on)(struct net_handed *h, struct net_server *to);
	/* whether closing the connection of `h` would lose nothing */
	bool (*handed_is_idle)(const struct net_handed *h);
	/* Open the connection of `h`, and free `h`. Returns false, with nothing changed, if out of
	 * memory. */
	bool (*adopt)(struct net_io *io, struct net_handed *h);
	/* `n` more connections of a predecessor wait at `srv`, or fewer; they count as open. Any
	 * thread, also of another graph. */
	void (*handed_waits)(struct net_server *srv, int n);
	/* Close the connection of `h`, and free `h`. `late` means that this server is stopping and
	 * therefore did not take the connection over. */
	void (*handed_drop)(struct net_io *io, struct net_handed *h, bool late);
};

/* ---- a server ---- */

/** The file of a Unix socket: socket_file.h. */
struct socket_file {
	/* empty if there is none, or if a service manager owns it */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	dev_t device; /* with `inode`, of the file as created */
	ino_t inode;
	bool created; /* in this start, not shared with a predecessor */
};

struct net_server {
	/* set by the thread of an operator; I/O threads read it in each iteration */
	atomic_bool paused;
	/* constant after startup */
	struct weir_stage *stage;
	int n_io, n_addresses;
	int64_t per_thread;   /* maximum number of connections of an I/O thread; 0 means no limit */
	struct tls_site *tls; /* NULL without TLS */
	struct networks trust;
	bool trusts_unix;              /* clients of socket files are proxies in `trust` */
	uint16_t port[NET_LISTEN_MAX]; /* 0 for a socket file */
	/* by address; `path` is guarded by `lock` once the I/O threads run */
	struct socket_file file[NET_LISTEN_MAX];
	struct net_io *io[NET_IO_MAX];
	atomic_int n_loops; /* how many of io[] may be woken; grows during startup */
	struct clients *clients;
	const struct net_calls *calls;
	/* shared by I/O threads */
	/* connections that count towards max_connections, which excludes refused ones */
	WEIR_ALIGNED atomic_int connections;
	atomic_int refusing;  /* connections that are being refused, or that linger afterwards */
	atomic_int n_waiting; /* length of `waiting` */
	/* The drain: the main thread sets these, and the I/O threads follow them. */
	_Atomic enum net_phase phase;
	_Atomic int64_t linger_until_ns;
	pthread_mutex_t lock;
	pthread_cond_t reported;
	/* with `per_thread`, connections of a predecessor that wait for a thread with room */
	struct net_handed *waiting WEIR_GUARDED_BY(lock);
	/* For each phase, the number of I/O threads that have reported it. */
	int n_reports[NET_GONE + 1] WEIR_GUARDED_BY(lock);
};

/** Add `n` to a metric of this I/O thread. Only this thread may call it, since the counter is not
 * atomic. */
static inline void net_count(struct net_io *io, enum net_metric metric, int64_t n)
{
	io->count[io->srv->calls->metric[metric]] += n;
}

/** Update the copy of the configuration. Must be called first in every callback for a descriptor or
 * a timer. */
static inline void net_touch(struct net_io *io)
{
	io->srv->calls->touch(io);
}

/** Whether the address of a client belongs to a proxy in `trust`. */
static inline bool net_trusts(const struct net_server *srv, const struct sockaddr_storage *addr)
{
	struct net_address a;

	if (WEIR_UNLIKELY(addr->ss_family == AF_UNIX))
		return srv->trusts_unix;
	return WEIR_UNLIKELY(srv->trust.n > 0) && net_address_of(addr, &a) &&
	       networks_have(&srv->trust, &a);
}

/** Whether `io` is handing its connections over to another server. */
static inline bool net_is_leaving(const struct net_io *io)
{
	return io->handover.to != NULL;
}

/** Number of words of a bitmap of the I/O threads of `srv`. */
static inline int net_io_words(const struct net_server *srv)
{
	return (srv->n_io + 63) / 64;
}

/** Wake every I/O thread of the server that has started. Called by its threads. */
static inline void net_wake_all(struct net_server *srv)
{
	/* pairs with start_loops */
	int n = atomic_load_explicit(&srv->n_loops, memory_order_acquire);

	for (int i = 0; i < n; i++)
		weir_loop_wake(srv->io[i]->loop);
}

#endif
