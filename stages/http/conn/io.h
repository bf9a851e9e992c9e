/* SPDX-License-Identifier: MIT */
/*
 * Internals of http.server: one struct per server, one per I/O thread.
 *
 * Each I/O thread owns its listening sockets (SO_REUSEPORT spreads clients over them), its
 * connections and its pool. I/O threads share nothing that belongs to a request. They share the
 * number of open connections, in total and per address, the body and memory budgets, and the drain,
 * all in struct http_server.
 *
 *   built --start: bind, listen, loops--> RUNNING --stop--> DRAINING -> CLOSED --fini--> joined
 */
#ifndef WEIR_HTTP_IO_H
#define WEIR_HTTP_IO_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <weir/http_guard.h>
#include <weir/weir.h>

#include "http/request/metrics.h"
#include "http/request/pool.h"
#include "http/request/refusal_log.h"
#include "net/tls/tls_conf.h"

/** Maximum number of addresses on which one server may listen. */
#define SERVER_LISTEN_MAX 16
/** Largest body that may be held in memory as a whole. */
#define SERVER_WHOLE_BODY_MAX (1LL << 30)
/** Maximum number of I/O threads of one server. */
#define SERVER_IO_MAX 32

/** The values of `with:`; their knobs are in http_knobs.c. */
struct http_conf {
	struct weir_strings listen;
	int64_t threads; /* -1 means auto */
	int64_t max_connections, backlog;
	int64_t max_per_address; /* -1 means auto */
	double accept_rate;      /* per second and address; 0 means unlimited */
	int64_t memory_bytes;    /* -1 means auto; io_touch replaces it */
	int64_t max_body_bytes, body_memory_bytes;
	int64_t stream_bytes, stream_buffer_bytes;
	int64_t header_timeout_ns, body_timeout_ns, write_timeout_ns, idle_timeout_ns, linger_ns;
	int64_t retry_after_ns;
	double min_body_rate, min_send_rate; /* bytes per s */
	int64_t keep_alive_requests, pipeline;
	char *server_name;
	char *user;
	struct weir_strings methods;
	int deadline; /* enum server_deadline */
	struct tls_conf tls;
};

/* Order of the choices of `deadline:`. */
enum server_deadline { SERVER_DEADLINE_NONE, SERVER_DEADLINE_HEADER, SERVER_DEADLINE_SLO };

/* SERVER_GONE is not a phase of the drain: an I/O thread reports it once it will no longer access
 * the data of other threads. */
enum server_phase { SERVER_RUNNING, SERVER_DRAINING, SERVER_CLOSED, SERVER_GONE };

struct http_server;
struct http_io;
struct clients;
struct conn;
struct handed_conn;
struct tls_site;

/** One listening socket of one I/O thread. */
struct listener {
	struct weir_watch watch; /* first member */
	struct http_io *io;
	uint8_t address; /* its index in the configuration */
	bool watched;
	/* opened by a service manager, which may keep it open; all I/O threads share the socket */
	bool passed;
	/* Shared across a reload with the old or the new server (handover.h). Written during
	 * startup, read in the drain. */
	bool shared;
};

/** A new connection that is accepted but not admitted yet. */
struct newcomer {
	int fd;       /* -1 if there is none */
	int asks;     /* eviction requests sent to other I/O threads for it */
	uint64_t key; /* its key in the client table (clients.h), which counts it */
	struct sockaddr_storage addr;
};

/** Bits: what another I/O thread must free so that this one can admit its new connection. */
enum evict_wanted { EVICT_FOR_SLOT = 1, EVICT_FOR_DESCRIPTOR = 2 };

/** Bits: why an I/O thread checks again whether its new connection can be admitted. Either the
 * other thread has replied, or a connection of this thread has closed. */
enum evict_news { EVICT_REPLIED = 1, EVICT_CLOSED = 2 };

/** Maximum number of sockets on which one I/O thread may listen: all sockets of a predecessor with
 * SERVER_IO_MAX threads. */
#define SERVER_SOCKETS_MAX (SERVER_LISTEN_MAX * SERVER_IO_MAX)

/** Maximum length of the cached "Server: ...\r\nDate: ...\r\n". */
#define SERVER_STAMP_MAX 160
/** Size of the buffer where the heads of one writev are composed. */
#define SERVER_OUT_BYTES 65536
/** Maximum number of responses in one writev. */
#define SERVER_PIECES 64

/** Maximum number of connections that are read together: as many as one run of the event loop
 * handles when events are handed to other threads (LOOP_RUN_HANDED). */
#define SERVER_ARRIVED 32

/** One response in a writev. */
struct piece {
	struct http_req *r;
	const char *head;
	size_t head_n;
	size_t bytes; /* of head and body; of the head alone if the body is a file */
	bool close;   /* the connection is closed after this response */
};

/** Lists of connections by what they wait for; see http_io.list. */
enum conn_list_id {
	CONN_IDLE,
	CONN_HALF,
	CONN_BEHIND,
	CONN_SLOW,
	CONN_AWAY,
	CONN_LINGER,
	CONN_REFUSED,
	CONN_LISTS
};

/** A list of connections; the order depends on the list. */
struct conn_list {
	struct conn *first, **tail;
	int n;
};

/** Accepting: accept.c, listen.c, stand_in.c. */
struct io_accept {
	/* a spare eventfd, closed to free a descriptor for the next client when none is left */
	int reserve_fd;
	struct weir_timer timer; /* resumes accepting */
	bool paused;
	bool last_call; /* the listeners are being closed: accept the backlog even when full */
	int n_stand_in;
	struct listener *stand_in; /* listeners of threads that are held up: stand_in.h */
	/* the threads that own the sockets in `stand_in`, one bit each */
	uint32_t stood;
	/* an accepted client that waits until another I/O thread evicts a connection */
	struct newcomer newcomer;
	int n_listeners;
};

/** Eviction across I/O threads: evict.c. Only this thread writes `idle_since_ns`; any I/O thread
 * may write the other members. */
struct io_evict {
	/* start of the longest wait among this thread's connections; INT64_MAX if none waits */
	_Atomic int64_t idle_since_ns;
	_Atomic uint32_t asked; /* threads that request an eviction, one bit each */
	/* threads that have nothing to evict for our new connection, one bit each */
	_Atomic uint32_t none;
	atomic_uint news; /* enum evict_news: bits */
	/* what this thread's new connection needs: bits of enum evict_wanted; 0 if nothing */
	atomic_uint wanted;
};

/** Connections that move between servers: handover.c. */
/** Files of responses that this thread has handed over (server/handed_file.h). */
struct handed_files {
	struct handed_file *first;
	int n;
};

struct io_handover {
	/* the server that receives our connections; NULL unless we drain for a reload */
	struct http_server *to;
	struct handed_files files; /* sent by the new server */
	/* connections that could not be taken over yet for lack of memory */
	struct handed_conn *kept;
	struct weir_timer timer; /* retries handovers that failed for lack of memory */
	/* connections handed over by a predecessor of this server; pushed by any thread */
	_Atomic(struct handed_conn *) handed;
};

/** Measures against memory use (memory.h), in the order in which they are taken. */
enum memory_step { MEMORY_PLENTY, MEMORY_HURRY, MEMORY_CLOSE, MEMORY_REFUSE, MEMORY_DEAF };

/** This thread's view of the server's memory limit: memory.c. */
struct io_memory {
	int step;             /* enum memory_step, as last seen */
	int n_swallowed;      /* connections with `swallowed` */
	int64_t gauged_bytes; /* the part of pool.held_bytes that http_memory_bytes includes */
	/* the part of the limit that http_memory_limit_bytes includes */
	int64_t gauged_limit_bytes;
};

/** The drain of this I/O thread: drain.c. */
struct io_drain {
	enum server_phase phase;
	bool done; /* draining, and no connection is left */
	struct weir_timer linger_timer;
};

/** Pausing by an operator: pause.c. */
struct io_pause {
	bool on;   /* srv->paused as last seen by this thread: nothing is accepted or read */
	bool seen; /* copy of `on` that the pausing thread reads; under srv->lock */
};

/** The cached "Server" and "Date" fields: compose.c. */
struct io_stamp {
	int64_t until_ns; /* valid before this time */
	size_t n;
	char text[SERVER_STAMP_MAX];
};

/** Memory that is used within one call. */
struct io_scratch {
	struct weir_http_header headers[WEIR_HTTP_HEADERS_MAX]; /* used by the parser */
	struct piece piece[SERVER_PIECES];                      /* used by a write */
	struct iovec iov[2 * SERVER_PIECES];
	char out[SERVER_OUT_BYTES];
};

/** An I/O thread. Once started, all of it belongs to that thread, except the members marked
 *  otherwise. */
struct http_io {
	struct http_server *srv;
	struct weir_loop *loop;
	struct weir_stage *stage;
	int index;
	/* copy of the stage's configuration, made at conf_ns; the stage owns its strings */
	struct http_conf conf;
	int64_t conf_ns;
	struct io_accept accept;
	struct io_pause pause;
	struct pool pool;
	struct conn *conns; /* all open ones */
	/* Connections by what they wait for. CONN_IDLE holds those without a request, CONN_HALF
	 * those with part of a head, CONN_BEHIND those with part of a head after a request; these
	 * three lists begin with the longest wait. CONN_SLOW holds those with a body or a response
	 * in progress, CONN_AWAY those whose handshake is being done by its stage, CONN_LINGER
	 * those that linger after their last response. CONN_REFUSED holds those that linger after
	 * they were refused when accepted; max_connections does not count them. */
	struct conn_list list[CONN_LISTS];
	struct conn *ready, **ready_tail; /* to be written to or reaped in turn_end */
	int n_arrived;
	/* to be read at the end of this run of the event loop */
	struct conn *arrived[SERVER_ARRIVED];
	int64_t n_conns;  /* open, or closed with requests still in the graph */
	int64_t in_graph; /* requests emitted and not returned yet */
	int64_t in_parts; /* those of in_graph whose transfer is known here */
	uint64_t next_id; /* the next id for a request or connection */
	struct io_memory memory;
	struct refusal_log refusals;
	struct io_drain drain;
	struct io_handover handover;
	struct io_stamp stamp;
	int64_t count[SERVER_N_METRICS]; /* metric changes since the last iteration */
	struct io_scratch scratch;
	struct io_evict evict;
	/* last member, since most of it is never touched */
	struct listener listener[SERVER_SOCKETS_MAX];
};

/** Calls from a connection to its server. The code of a connection does not depend on that of the
 * server, which installs these (http_server.c). I/O thread only. */
struct io_calls {
	/* a connection of `io` was closed, so a slot may be free */
	void (*closed)(struct http_io *io);
	/* hand `c` over if it can leave now; returns whether it has left. Only while io_is_leaving. */
	bool (*hand_over)(struct conn *c);
};

struct http_server {
	/* set by the thread of an operator; I/O threads read it in each iteration */
	atomic_bool paused;
	/* constant after startup */
	struct weir_stage *stage;
	int n_io, n_addresses;
	int retry_after_s;
	int64_t memory_auto_bytes; /* the value of `memory: auto` */
	char server_field[96];     /* "Server: weir\r\n" or "" */
	struct tls_site *tls;      /* NULL for plain HTTP */
	uint16_t port[SERVER_LISTEN_MAX];
	struct http_io *io[SERVER_IO_MAX];
	atomic_int n_loops; /* how many of io[] may be woken; grows during startup */
	struct clients *clients;
	const struct io_calls *calls;
	/* shared by I/O threads */
	/* connections that count towards max_connections, which excludes refused ones */
	WEIR_ALIGNED atomic_int connections;
	atomic_int refusing; /* connections that are being refused, or that linger afterwards */
	_Atomic int64_t body_budget;
	struct part_meter part_meter; /* any thread of the graph changes it */
	_Atomic int64_t memory_used;  /* the bytes that I/O threads have reported (memory.h) */
	_Atomic int64_t memory_limit; /* the value of `memory` */
	/* Bytes of responses copied for handover to this server (handed.h). Any thread of its
	 * predecessors changes it. */
	_Atomic int64_t copied_bytes;
	_Atomic int memory_step; /* enum memory_step */
	/* The drain: the main thread sets these, and the I/O threads follow them. */
	_Atomic enum server_phase phase;
	_Atomic int64_t linger_until_ns;
	pthread_mutex_t lock;
	pthread_cond_t reported;
	/* For each phase, the number of I/O threads that have reported it. */
	int n_reports[SERVER_GONE + 1] WEIR_GUARDED_BY(lock);
};

/** Update the copy of the configuration, so that changes to live knobs take effect between
 * iterations. Must be called first in every callback for a descriptor. A copy is made because every
 * request reads several knobs. */
static inline void io_touch(struct http_io *io)
{
	int64_t now_ns = weir_loop_now_ns(io->loop);

	if (io->conf_ns == now_ns)
		return;
	io->conf = *(const struct http_conf *)weir_conf(io->stage);
	io->conf_ns = now_ns;
	io->pool.methods = &io->conf.methods;
	io->pool.part_over = (uint64_t)io->conf.stream_bytes;
	if (io->conf.memory_bytes == -1)
		io->conf.memory_bytes = io->srv->memory_auto_bytes;
	if (io->conf.max_body_bytes > SERVER_WHOLE_BODY_MAX && io->conf.stream_bytes == 0)
		io->conf.max_body_bytes = SERVER_WHOLE_BODY_MAX;
}

/** Return `timeout_ns`, shortened if the current step demands it. */
static inline int64_t memory_timeout_ns(const struct http_io *io, int64_t timeout_ns)
{
	return io->memory.step >= MEMORY_HURRY ? timeout_ns / 4 : timeout_ns;
}

/** Whether `io` is handing its connections over to another server. */
static inline bool io_is_leaving(const struct http_io *io)
{
	return io->handover.to != NULL;
}

/** Wake every I/O thread of the server that has started. Called by its threads. */
static inline void server_wake_all(struct http_server *srv)
{
	/* Partner: start_loops. */
	int n = atomic_load_explicit(&srv->n_loops, memory_order_acquire);

	for (int i = 0; i < n; i++)
		weir_loop_wake(srv->io[i]->loop);
}

#endif
