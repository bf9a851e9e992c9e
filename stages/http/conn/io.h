/* SPDX-License-Identifier: MIT */
/*
 * Internals of http.server: one struct per server, one per I/O thread. Each begins with the struct
 * of net/net.h that servers of all protocols have.
 *
 * Each I/O thread owns its connections and its pool. I/O threads share nothing that belongs to a
 * request. They share the body and memory budgets, in struct http_server.
 */
#ifndef WEIR_HTTP_IO_H
#define WEIR_HTTP_IO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include <weir/http_guard.h>
#include <weir/weir.h>

#include "http/conn/pages.h"
#include "http/message/forwarded.h"
#include "http/request/metrics.h"
#include "http/request/pool.h"
#include "http/request/refusal_log.h"
#include "net/net.h"

/** Largest body that may be held in memory as a whole. */
#define SERVER_WHOLE_BODY_MAX (1LL << 30)

/** The values of `with:`; their knobs are in http_knobs.c. */
struct http_conf {
	struct net_conf net;  /* first member */
	int64_t memory_bytes; /* -1 means auto, which io_touch replaces with a size */
	int64_t max_body_bytes, body_memory_bytes;
	int64_t stream_bytes, stream_buffer_bytes;
	int64_t header_timeout_ns, body_timeout_ns, write_timeout_ns, idle_timeout_ns;
	int64_t retry_after_ns;
	double min_body_rate, min_send_rate; /* bytes per s */
	int64_t keep_alive_requests, pipeline;
	char *server_name;
	char *user;
	struct weir_strings methods;
	struct pages_conf pages;
	int deadline;    /* enum server_deadline */
	int client_from; /* enum forwarded_from */
};

/* Order of the choices of `deadline:`. */
enum server_deadline { SERVER_DEADLINE_NONE, SERVER_DEADLINE_HEADER, SERVER_DEADLINE_SLO };

struct http_server;
struct http_io;
struct conn;

/** Maximum length of the cached "Server: ...\r\nDate: ...\r\n". */
#define SERVER_STAMP_MAX 160
/** Size of the buffer where the heads of one writev are composed. */
#define SERVER_OUT_BYTES 65536
/** Maximum number of responses in one writev. */
#define SERVER_PIECES 64

/** Maximum number of connections that are read together: as many descriptors as the event loop
 * handles in a row when events are handed to other threads (LOOP_RUN_HANDED). */
#define SERVER_ARRIVED 32

/** One response in a writev. */
struct piece {
	struct http_req *r;
	const char *head;
	size_t head_n;
	size_t bytes; /* of head and body; of the head alone if the body is a file */
	bool close;   /* the connection is closed after this response */
};

/** Files of responses that this thread has handed over (server/handed_file.h). */
struct handed_files {
	struct handed_file *first;
	int n;
};

/** Measures against memory use (memory.h), in the order in which they are taken. */
enum memory_step { MEMORY_PLENTY, MEMORY_HURRY, MEMORY_CLOSE, MEMORY_REFUSE, MEMORY_DEAF };

/** This thread's view of the server's memory limit: memory.c. */
struct io_memory {
	int step;             /* enum memory_step, as this thread last saw it */
	int n_swallowed;      /* connections with `swallowed` */
	int64_t gauged_bytes; /* the part of pool.held_bytes that http_memory_bytes includes */
	/* the part of the limit that http_memory_limit_bytes includes */
	int64_t gauged_limit_bytes;
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
	struct net_io net; /* first member */
	struct http_server *srv;
	/* copy of the stage's configuration, made at conf_ns; the stage owns its strings */
	struct http_conf conf;
	int64_t conf_ns;
	struct pool pool;
	struct conn *ready, **ready_tail; /* to be written to or reaped in turn_end */
	int n_arrived;
	/* to be read at the end of this run of the event loop */
	struct conn *arrived[SERVER_ARRIVED];
	int64_t in_graph; /* requests emitted and not returned yet */
	/* of these, the requests with a streamed body or response, and those that a stage holds in
	 * this thread; the loop does not spin to wait for them (weir_loop_expect) */
	int64_t not_awaited;
	uint64_t next_id; /* the next id for a request or connection */
	struct io_memory memory;
	struct refusal_log refusals;
	struct pages *pages;              /* the error pages that this thread has used last */
	unsigned pages_version;           /* of pages_site */
	struct handed_files handed_files; /* files that the next server sends from */
	struct io_stamp stamp;
	int64_t count[SERVER_N_METRICS]; /* metric changes since the last iteration */
	int64_t sent_ns; /* time of the last send, once it has been read; 0: not read yet */
	struct io_scratch scratch;
};

struct http_server {
	struct net_server net; /* first member */
	/* constant after startup */
	int retry_after_s;
	int64_t memory_auto_bytes; /* the value of `memory: auto` */
	char server_field[96];     /* "Server: weir\r\n" or "" */
	struct pages_site pages;
	/* shared by I/O threads */
	WEIR_ALIGNED _Atomic int64_t body_budget;
	struct part_meter part_meter; /* any thread of the graph changes it */
	_Atomic int64_t memory_used;  /* the bytes that I/O threads have reported (memory.h) */
	_Atomic int64_t memory_limit; /* the value of `memory` */
	/* Bytes of responses copied for handover to this server (handed.h). Any thread of its
	 * predecessors changes it. */
	_Atomic int64_t copied_bytes;
	_Atomic int memory_step; /* enum memory_step */
};

/** Update the copy of the configuration, so that changes to live knobs take effect between
 * iterations. Must be called first in every callback for a descriptor. A copy is made because every
 * request reads several knobs. */
static inline void io_touch(struct http_io *io)
{
	int64_t now_ns = weir_loop_now_ns(io->net.loop);

	if (io->conf_ns == now_ns)
		return;
	io->conf = *(const struct http_conf *)weir_conf(io->net.stage);
	io->conf_ns = now_ns;
	io->pool.methods = &io->conf.methods;
	io->pool.part_over = (uint64_t)io->conf.stream_bytes;
	if (io->conf.memory_bytes == -1)
		io->conf.memory_bytes = io->srv->memory_auto_bytes;
	if (io->conf.max_body_bytes > SERVER_WHOLE_BODY_MAX && io->conf.stream_bytes == 0)
		io->conf.max_body_bytes = SERVER_WHOLE_BODY_MAX;
}

/** Return `timeout_ns`, shortened if the memory step demands it. */
static inline int64_t memory_timeout_ns(const struct http_io *io, int64_t timeout_ns)
{
	return io->memory.step >= MEMORY_HURRY ? timeout_ns / 4 : timeout_ns;
}

/** Whether `io` is handing its connections over to another server. */
static inline bool io_is_leaving(const struct http_io *io)
{
	return net_is_leaving(&io->net);
}

#endif
