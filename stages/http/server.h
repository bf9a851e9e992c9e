/* SPDX-License-Identifier: MIT */
/*
 * The inside of http.server: one struct per server, one per I/O thread.
 *
 * Each I/O thread owns its listening sockets (SO_REUSEPORT spreads clients over them), its
 * connections and its pool; nothing of a request is shared between I/O threads. Shared are the
 * number of open connections, in all and by address, the budgets of bodies and of memory, and the drain, all in
 * struct http_server.
 *
 *   built --start: bind, listen, loops--> RUNNING --stop--> DRAINING -> CLOSED --fini--> joined
 */
#ifndef WEIR_HTTP_SERVER_H
#define WEIR_HTTP_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <weir/http_guard.h>
#include <weir/weir.h>

#include "http/pool.h"
#include "http/refusal_log.h"
#include "http/tls_conf.h"

/** Addresses one server may listen on. */
#define SERVER_LISTEN_MAX 16
/** Longest body that is kept in memory as a whole. */
#define SERVER_WHOLE_BODY_MAX (1LL << 30)
/** I/O threads one server may have; a graph has 64 mailboxes in all. */
#define SERVER_IO_MAX 32

/** What `with:` says; the rows are in http_knobs.c. */
struct http_conf {
	struct weir_strings listen;
	int64_t threads; /* -1: auto */
	int64_t max_connections, backlog;
	int64_t max_per_address; /* -1: auto */
	double accept_rate;      /* per s and address, 0: any */
	int64_t memory_bytes;    /* -1: auto, in the knob alone */
	int64_t max_body_bytes, body_memory_bytes;
	int64_t stream_bytes, stream_buffer_bytes;
	int64_t header_timeout_ns, body_timeout_ns, write_timeout_ns, idle_timeout_ns, linger_ns;
	int64_t retry_after_ns;
	double min_body_rate, min_send_rate; /* bytes per s */
	int64_t keep_alive_requests, pipeline;
	char *server_name;
	char *user;
	int deadline; /* enum server_deadline */
	struct tls_conf tls;
};

/** Rows for it: http_knobs.c. */
extern const struct weir_knob server_knobs[];

/* Order of the choices of `deadline:`. */
enum server_deadline { SERVER_DEADLINE_NONE, SERVER_DEADLINE_HEADER, SERVER_DEADLINE_SLO };

/* Rows of the metrics table: name, kind, unit, help. */
#define SERVER_METRICS(X)                                                                          \
	X(CONNECTIONS, "http_connections", GAUGE, "connections",                                   \
	    "client connections that are open")                                                    \
	X(ACCEPTED, "http_accepted_total", COUNTER, "connections", "client connections accepted")  \
	X(REFUSED, "http_refused_total", TURNED_AWAY, "connections",                               \
	    "connections answered 503 over max_connections or for want of descriptors")            \
	X(REFUSED_ADDRESS, "http_refused_address_total", TURNED_AWAY, "connections",               \
	    "connections refused over max_per_address")                                            \
	X(REFUSED_RATE, "http_refused_rate_total", TURNED_AWAY, "connections",                     \
	    "connections refused over accept_rate")                                                \
	X(REFUSED_MEMORY, "http_refused_memory_total", TURNED_AWAY, "requests",                    \
	    "requests answered 503 since the memory for connections or bodies is used up")         \
	X(REFUSED_LATE, "http_refused_late_total", COUNTER, "requests",                            \
	    "requests answered 503 that had only begun to come when the time of a drain was over") \
	X(REFUSED_HANDED, "http_refused_handed_total", COUNTER, "connections",                     \
	    "connections of the server before a reload closed since they could not be taken in")   \
	X(EVICTED, "http_evicted_total", COUNTER, "connections",                                   \
	    "connections that wait or are slow closed to make room for new ones")                  \
	X(ACCEPT_FAILURES, "http_accept_failures_total", COUNTER, "failures",                      \
	    "accepts that failed for want of descriptors or memory")                               \
	X(ANSWERS_2XX, "http_responses_2xx_total", COUNTER, "responses", "responses of class 2xx") \
	X(ANSWERS_3XX, "http_responses_3xx_total", COUNTER, "responses", "responses of class 3xx") \
	X(ANSWERS_4XX, "http_responses_4xx_total", COUNTER, "responses", "responses of class 4xx") \
	X(ANSWERS_5XX, "http_responses_5xx_total", COUNTER, "responses", "responses of class 5xx") \
	X(BAD_REQUESTS, "http_bad_requests_total", COUNTER, "requests",                            \
	    "requests refused by the parser before they entered the graph")                        \
	X(BYTES_IN, "http_received_bytes_total", COUNTER, "bytes",                                 \
	    "bytes read from clients, without what TLS adds")                                      \
	X(BYTES_OUT, "http_sent_bytes_total", COUNTER, "bytes",                                    \
	    "bytes written to clients, without what TLS adds")                                     \
	X(TIMEOUTS_IDLE, "http_timeouts_idle_total", COUNTER, "connections",                       \
	    "connections closed since they were idle")                                             \
	X(TIMEOUTS_HEADER, "http_timeouts_header_total", COUNTER, "connections",                   \
	    "connections closed since a head took longer than header_timeout")                     \
	X(TIMEOUTS_BODY, "http_timeouts_body_total", COUNTER, "connections",                       \
	    "connections closed since a body paused for body_timeout")                             \
	X(TIMEOUTS_WRITE, "http_timeouts_write_total", COUNTER, "connections",                     \
	    "connections closed since no byte of an answer was taken for write_timeout")           \
	X(SLOW_BODIES, "http_slow_bodies_total", COUNTER, "connections",                           \
	    "connections closed since a body came more slowly than min_body_rate")                 \
	X(SLOW_READERS, "http_slow_readers_total", COUNTER, "connections",                         \
	    "connections closed since answers were taken more slowly than min_send_rate")          \
	X(LARGE_HEADS, "http_large_heads_total", COUNTER, "requests",                              \
	    "requests answered 414 or 431 since their target or head was too long")                \
	X(LARGE_BODIES, "http_large_bodies_total", COUNTER, "requests",                            \
	    "requests answered 413 since their body was longer than max_body")                     \
	X(LAST_REQUESTS, "http_keep_alive_ends_total", COUNTER, "connections",                     \
	    "connections ended behind their last one of keep_alive_requests")                      \
	X(PIPELINE_FULL, "http_pipeline_full_total", COUNTER, "times",                             \
	    "times that a connection was read no further since its pipeline was full")             \
	X(MEMORY, "http_memory_bytes", GAUGE, "bytes",                                             \
	    "memory that connections hold: input, requests, bodies, answers held back")            \
	X(MEMORY_STEP, "http_memory_step", GAUGE, "step",                                          \
	    "what is done about memory: 0 nothing, 1 shorter time-outs, 2 no keep-alive, 3 "       \
	    "requests refused, 4 nothing accepted")                                                \
	X(MEMORY_LIMIT, "http_memory_limit_bytes", GAUGE, "bytes",                                 \
	    "the most that they may hold ('memory')")                                              \
	X(HINTS_IGNORED, "http_hints_ignored_total", COUNTER, "requests",                          \
	    "requests whose x-deadline-ms, grpc-timeout, x-retry-attempt or traceparent could "    \
	    "not be read")                                                                         \
	X(UNDELIVERED, "http_undelivered_total", COUNTER, "responses",                             \
	    "answers whose client had gone")                                                       \
	X(PART_BODIES, "http_streamed_bodies_total", COUNTER, "requests",                          \
	    "requests that entered the graph before their body was complete")                      \
	X(PART_ANSWERS, "http_streamed_responses_total", COUNTER, "responses",                     \
	    "responses that stages began to send in parts")                                        \
	X(PART_TORN, "http_torn_bodies_total", COUNTER, "requests",                                \
	    "streamed request bodies that ended before they were complete")                        \
	X(PART_BYTES, "http_stream_buffer_bytes", GAUGE, "bytes",                                  \
	    "memory that bodies under way in parts have now, of body_memory")                      \
	X(PART_PEAK, "http_stream_buffer_peak_bytes", GAUGE, "bytes",                              \
	    "the most memory that bodies under way in parts had at one time")                      \
	X(TLS_CONNECTIONS, "http_tls_connections", GAUGE, "connections",                           \
	    "open connections whose TLS handshake is done")                                        \
	X(TLS_FULL, "http_tls_handshakes_full_total", COUNTER, "handshakes",                       \
	    "TLS handshakes done with a key exchange and a signature")                             \
	X(TLS_RESUMED, "http_tls_handshakes_resumed_total", COUNTER, "handshakes",                 \
	    "TLS handshakes done by a ticket")                                                     \
	/* in the order of enum tls_verdict */                                                     \
	X(TLS_FAILED_CLOSED, "http_tls_failed_closed_total", COUNTER, "handshakes",                \
	    "TLS handshakes whose client went away")                                               \
	X(TLS_FAILED_VERSION, "http_tls_failed_version_total", COUNTER, "handshakes",              \
	    "TLS handshakes with no version, cipher or protocol in common")                        \
	X(TLS_FAILED_ALERT, "http_tls_failed_alert_total", COUNTER, "handshakes",                  \
	    "TLS handshakes that the client ended, as when it does not trust the certificate")     \
	X(TLS_FAILED_PROTOCOL, "http_tls_failed_protocol_total", COUNTER, "handshakes",            \
	    "connections on which something else than a TLS handshake came, or a bad one")         \
	X(TLS_FAILED_PLAIN, "http_tls_failed_plain_total", COUNTER, "connections",                 \
	    "connections of clients that spoke HTTP where TLS is spoken")                          \
	X(TLS_FAILED_TIMEOUT, "http_tls_failed_timeout_total", COUNTER, "handshakes",              \
	    "TLS handshakes that were not done within header_timeout")                             \
	X(TLS_FAILED_SHED, "http_tls_failed_shed_total", COUNTER, "handshakes",                    \
	    "TLS handshakes that their stage refused")                                             \
	X(TLS_FAILED_INTERNAL, "http_tls_failed_internal_total", COUNTER, "handshakes",            \
	    "TLS handshakes that failed here, as for want of memory")

enum server_metric {
#define SERVER_METRIC_ENUM(id, name, kind, unit, help) SERVER_##id,
	SERVER_METRICS(SERVER_METRIC_ENUM)
#undef SERVER_METRIC_ENUM
	    SERVER_N_METRICS,
};

/* GONE is no phase of the drain: an I/O thread reports it when it has touched another one for the last time. */
enum server_phase { SERVER_RUNNING, SERVER_DRAINING, SERVER_CLOSED, SERVER_GONE };

struct http_server;
struct http_io;
struct crowd;
struct conn;
struct parcel;
struct tls_site;

/** One listening socket of one I/O thread. */
struct listener {
	struct weir_watch watch; /* first */
	struct http_io *io;
	uint8_t address; /* its number in the configuration */
	bool watched;
	bool passed; /* by a service manager, which may keep it; shared by I/O threads */
	bool
	    shared; /* with an heir or a predecessor (heir.h): written while one starts, read in the drain */
};

/** A client that is accepted and not let in yet. */
struct newcomer {
	int fd;       /* -1: nobody */
	int asks;     /* for room, of other I/O threads */
	uint64_t key; /* crowd.h; it has entered */
	struct sockaddr_storage addr;
};

/** What an I/O thread waits for that another one may make: bits. */
enum room_wanted { ROOM_PLACE = 1, ROOM_DESCRIPTOR = 2 };

/** Why it looks again: who was asked has answered, or a connection of its own has gone. */
enum room_news { ROOM_ANSWERED = 1, ROOM_GONE = 2 };

/** Sockets that one I/O thread may listen with: all of a server with as many threads as can be, which it follows. */
#define SERVER_SOCKETS_MAX (SERVER_LISTEN_MAX * SERVER_IO_MAX)

/** Longest cached "Server: ...\r\nDate: ...\r\n". */
#define SERVER_STAMP_MAX 160
/** Where heads of one writev are composed. */
#define SERVER_OUT_BYTES 65536
/** Answers in one writev. */
#define SERVER_PIECES 64

/** Connections that are read together: as many as one run of the loop has where events are handed over (LOOP_RUN_HANDED). */
#define SERVER_ARRIVED 32

/** One answer in a writev. */
struct piece {
	struct http_req *r;
	const char *head;
	size_t head_n;
	size_t bytes; /* head and body; of a file only the head */
	bool close;   /* the connection ends behind it */
};

/** The lists of connections, by what they wait for. */
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

/** Connections in some order. */
struct conn_list {
	struct conn *first, **tail;
	int n;
};

/** An I/O thread. All of it is that thread's, once started. */
struct http_io {
	struct http_server *srv;
	struct weir_loop *loop;
	struct weir_stage *stage;
	int index;
	struct http_conf conf; /* of this turn; its texts are not ours */
	int64_t conf_ns;       /* the turn */
	int n_listeners;
	int reserve_fd; /* an eventfd, given up to see who is next when descriptors are out */
	struct weir_timer accept_timer; /* tries again */
	bool accept_paused;
	struct newcomer newcomer; /* who waits for room that another I/O thread is asked for */
	bool last_call; /* the listeners are being closed: who waits there is taken, room or none */
	bool paused; /* as srv->paused when this thread last looked: nothing is accepted or read */
	bool pause_seen; /* the same, for who pauses; under srv->lock */
	struct pool pool;
	struct conn *conns; /* all that are open */
	/* those without a request, with half a head, with half a head behind a request: longest waiting first; those with a body or an
	 * answer under way; those whose handshake is with its stage; those that have had their last answer, and those of them that were
	 * refused when they came, which have no place */
	struct conn_list list[CONN_LISTS];
	struct conn *ready, **ready_tail; /* those with something to write or to reap */
	int n_arrived;
	struct conn *arrived[SERVER_ARRIVED]; /* those to read from at the end of this run */
	int64_t n_conns;                      /* open, or closed with requests still in the graph */
	int64_t in_graph;                     /* requests emitted and not home again */
	int64_t in_parts;                     /* of those, that have a transfer we know of */
	int n_swallowed;                      /* connections with `swallowed` */
	uint64_t next_id;                     /* of requests and connections */
	int memory_step;                      /* enum memory_step, as last seen */
	int64_t gauged_bytes;                 /* of pool.held_bytes, in the metric */
	int64_t gauged_limit_bytes;           /* of the limit, likewise */
	struct refusal_log refusals;
	enum server_phase phase;
	bool drained;             /* draining, and no connection is left */
	struct http_server *heir; /* draining for a reload: connections go there */
	struct parcel *kept; /* connections that there was no memory to take in yet, see heir.c */
	struct weir_timer heir_timer; /* tries again to hand over, or to take in */
	struct weir_timer linger_timer;
	int64_t stamp_until_ns; /* the stamp is good before this */
	size_t stamp_n;
	char stamp[SERVER_STAMP_MAX];
	int64_t count[SERVER_N_METRICS];                        /* since the last turn */
	struct weir_http_header headers[WEIR_HTTP_HEADERS_MAX]; /* scratch of the parser */
	struct piece piece[SERVER_PIECES];
	struct iovec iov[2 * SERVER_PIECES];
	char out[SERVER_OUT_BYTES];
	/* connections from a server that this one follows; any thread */
	_Atomic(struct parcel *) handed;
	/* making room for each other, room.h; idle_since_ns is written by this thread alone, the others by any */
	_Atomic int64_t
	    idle_since_ns; /* since when the one waits who has waited longest; INT64_MAX: nobody */
	_Atomic uint32_t room_asked; /* a bit for each thread that asks for room */
	_Atomic uint32_t
	    room_none;         /* a bit for each thread that had none for this one's newcomer */
	atomic_uint room_news; /* enum room_news: bits */
	atomic_uint
	    room_wanted; /* enum room_wanted, by this thread for its newcomer; 0: it has none */
	struct listener listener[SERVER_SOCKETS_MAX]; /* last: most of it is never touched */
};

struct http_server {
	atomic_bool
	    paused; /* by an operator; written by whoever acts, read at the end of each turn */
	/* constant after start */
	struct weir_stage *stage;
	int n_io, n_addresses;
	int retry_after_s;
	int64_t memory_auto_bytes; /* what `memory: auto` is */
	char server_field[96];     /* "Server: weir\r\n" or "" */
	struct tls_site *tls;      /* NULL: clients speak plain HTTP */
	uint16_t port[SERVER_LISTEN_MAX];
	struct http_io *io[SERVER_IO_MAX];
	atomic_int
	    n_loops; /* of them, that may be woken: from the first on; grows while they start */
	struct crowd *crowd;
	/* shared by I/O threads */
	WEIR_ALIGNED atomic_int connections; /* that have a place: without those that are refused */
	atomic_int refusing;                 /* that are told so, or have been and linger */
	_Atomic int64_t body_budget;
	_Atomic int64_t part_bytes, part_peak; /* rings of transfers; any thread of the graph */
	_Atomic int64_t memory_used;           /* bytes that I/O threads have told (memory.h) */
	_Atomic int memory_step;               /* enum memory_step */
	/* the drain: set by main, answered by I/O threads */
	_Atomic enum server_phase phase;
	_Atomic int64_t linger_until_ns;
	pthread_mutex_t lock;
	pthread_cond_t reported;
	/* threads that are done, by phase */
	int n_reports[SERVER_GONE + 1] WEIR_GUARDED_BY(lock);
};

/** First thing in every callback for a descriptor: live knobs take effect from turn to turn. A
 * copy, since several are read per request. */
static inline void io_touch(struct http_io *io)
{
	int64_t now_ns = weir_loop_now_ns(io->loop);

	if (io->conf_ns == now_ns)
		return;
	io->conf = *(const struct http_conf *)weir_conf(io->stage);
	io->conf_ns = now_ns;
	io->pool.part_over = (uint64_t)io->conf.stream_bytes;
	if (io->conf.memory_bytes == -1)
		io->conf.memory_bytes = io->srv->memory_auto_bytes;
	if (io->conf.max_body_bytes > SERVER_WHOLE_BODY_MAX && io->conf.stream_bytes == 0)
		io->conf.max_body_bytes = SERVER_WHOLE_BODY_MAX;
}

/** Follow main through the phases of a drain, and report when nobody is left. Once per turn, in front of and behind the
 *  look at those who are ready: connections that a phase closes are gone when it is reported. */
void io_follow_drain(struct http_io *io);
void io_report_drained(struct http_io *io);

/** Wake every I/O thread of the server that has started. Its threads. */
static inline void server_wake_all(struct http_server *srv)
{
	/* Partner: start_loops. */
	int n = atomic_load_explicit(&srv->n_loops, memory_order_acquire);

	for (int i = 0; i < n; i++)
		weir_loop_wake(srv->io[i]->loop);
}

#endif
