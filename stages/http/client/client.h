/* SPDX-License-Identifier: MIT */
/*
 * Inside http.client: passes requests on to origins, and their answers back.
 *
 *   handle (--mail-->) loop: exchange --> upstream (a connection to an origin) --> answer --> finish
 *
 * An exchange is one request while it is passed on, in an event loop. With `threads: inline` this is the
 * loop whose thread runs the handler, usually the one of the client's connection: so a request and its
 * answer never change threads. The part of the stage in such a loop is a *guest*. Events that come from
 * threads without a loop are sent as mail to loops of the stage itself.
 *
 * An exchange belongs to one loop, which holds its event (weir_hold) until it finishes the event. An
 * upstream belongs to the loop that has opened it, too. So nothing here needs a lock: but for `struct
 * client`, everything below is used by the thread of one loop alone.
 *
 *   exchange:  WAITING --pick--> (upstream CONNECTING -->) asking and reading the answer --> ended
 *                 ^                     |                       |
 *                 '------- again, on another origin ------------'  nothing of the answer was passed on
 *   upstream:  CONNECTING (--> SHAKING) --> BUSY --answer complete--> IDLE --next exchange--> BUSY
 *                  '-------------'---------------------'--> closed
 *
 * Files: origins.c (origins as configured), names.c (their addresses), pick.c (which of them), upstream.c (connections), upstream_io.c (their
 * bytes), ask.c and ask_body.c (the request), answer.c and answer_body.c (the answer), health.c (checks),
 * exchange.c (its life, times and failures), client_loop.c (loops, mail, and their end).
 */
#ifndef WEIR_HTTP_CLIENT_H
#define WEIR_HTTP_CLIENT_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include <weir/http.h>
#include <weir/weir.h>

#include "http/client/client_conf.h"
#include "http/message/chunk.h"
#include "http/message/guard.h"
#include "net/address.h"
#include "net/deny.h"
#include "net/resolve.h"
#include "net/tls/tls_origin.h"

struct http_waker;

/** Answers of a known length up to this one are collected and sent as a whole; longer ones are sent in
 * parts. 32 KiB is a guess: about what two reads bring. */
#define CLIENT_WHOLE_MAX 32768
/** Buffer of an upstream while it is in use. It holds the longest head that the guard accepts, and the
 * longest answer that is collected with a usual head, so that one read may bring both. */
#define CLIENT_BUFFER_BYTES (CLIENT_WHOLE_MAX + 2048)
/** How much of that an answer in parts uses: with 1,000 clients that read slowly, it is full 1,000 times. */
#define CLIENT_PARTS_BYTES 16384
/** A collected body of at least this length is sent from the buffer of the upstream. Shorter ones are
 * copied, since the buffer would be in use until a slow client has taken them. */
#define CLIENT_LEND_MIN (CLIENT_BUFFER_BYTES / 4)
/** Buffers that a loop keeps for the next exchanges: 1.1 MiB. */
#define CLIENT_BUFFERS_KEPT 32
/** Exchanges that a loop keeps for the next requests. */
#define CLIENT_EXCHANGES_KEPT 64
/** Space for the head of a request to an origin. The head of a client has at most 16 KiB, of which the
 * path may grow threefold; what is added takes at most another copy of it. */
#define CLIENT_SCRATCH_BYTES 65536
#define CLIENT_LOOPS_MAX     64
/** Longest path of health checks. */
#define CLIENT_HEALTH_PATH 512
/** Addresses of a name that are in use, or still have connections. */
#define CLIENT_ADDRESSES_MAX (2 * RESOLVE_ADDRESSES_MAX)
/** Interim answers (1xx) before the answer, beyond which an origin is malicious or broken. */
#define CLIENT_INTERIM_MAX 16
/** Bytes that an exchange moves before other connections of its loop get their turn. */
#define CLIENT_TURN_BYTES (256 * 1024)
/** Retries that may be saved up, and those that a loop has when it starts. */
#define CLIENT_TOKENS_MAX   10.0
#define CLIENT_TOKENS_FIRST 2.0
/** A request that must not be repeated uses no connection that has been idle for longer, since the origin
 * may be closing it just then. */
#define CLIENT_FRESH_NS 1000000000LL

/** Of a thread that runs the stage inline. */
struct client_thread {
	struct client_loop *guest; /* NULL before the first event */
};

/** The state of the stage. */
struct client {
	struct weir_stage *st;
	struct origin_spec *spec;
	struct deny deny;
	unsigned retry_on;            /* bits of enum retry_on */
	atomic_int_fast64_t upgrades; /* upgraded connections, and requests for one */
	struct tls_origins *tls;      /* NULL if no origin is secure */
	int n_origins, n_loops;
	struct client_loop *loop[CLIENT_LOOPS_MAX];
	atomic_uint next;           /* the loop of the next event */
	atomic_int sharers;         /* loops that have connections, or have had some */
	atomic_bool closing, hurry; /* see client_stop */
	sem_t ended;                /* posted when `closing` is set and a loop holds nothing */
	pthread_mutex_t lock;
	struct client_loop *guests WEIR_GUARDED_BY(lock);
	int n_slots; /* of each loop */
	struct endpoint *endpoint WEIR_GUARDED_BY(
	    lock);    /* [n_slots], in the order of `spec`, and one more */
	char via[24]; /* "1.1 weir-" and 8 hex digits, which are random */
	const struct weir_field *peer, *scheme; /* of requests */
};

/** Steps in which the time to the first byte is counted: see rows.c. */
#define CLIENT_STEPS        91
#define CLIENT_STEPS_OCTAVE 3

/** One address of an origin, for all loops. Those of rows.c are changed without a lock. */
struct endpoint {
	const struct origin_spec *spec;
	struct address address;
	int users;       /* slots of loops that have it; under client->lock */
	atomic_int live; /* loops in which it may get requests */
	/* rows.c */
	atomic_int_fast64_t requests, busy, open, failures, retries, ejections, out, asked, trials,
	    last_s;
	atomic_uint first_byte[CLIENT_STEPS];
	_Atomic(const char *) last_why;
	atomic_uint
	    checked; /* counts changes of what the checks say, which the first loop makes for all; the
				lowest bit is set if it is left out */
};

/** One address of an origin, as one loop sees it. */
struct origin {
	const struct origin_spec *spec;
	struct endpoint *shared;
	struct address address;
	bool live;             /* is in cl->live: may get requests */
	bool second;           /* of the family that is used if the others are out; see names.c */
	bool asked;            /* this loop counts in endpoint.asked */
	struct upstream *idle; /* the one that was used last is first */
	int busy, open;        /* exchanges under way; connections, also idle ones */
	int fails;             /* failures since the last success */
	bool trial;            /* an exchange tries out whether it is back */
	int64_t out_until_ns;  /* left out until then, and until a trial has succeeded; 0 if not */
	struct tls_session *session; /* to resume */
	bool said;                   /* why TLS fails was logged since it last succeeded */
	int64_t rtt_ns;       /* smoothed round trip, as the kernel has measured it; 0: unknown */
	unsigned health_seen; /* endpoint.checked that is followed */
	int64_t unwell_until_ns; /* left out until then, since checks of another loop have failed */
};

struct client_loop {
	struct client *client;
	struct weir_loop *loop;
	struct client_loop *next, **prev; /* of a guest: in client->guests */
	/* events in this loop or on the way to it, and wakers that still arrive */
	atomic_int_fast64_t held;
	/* mail to the loop itself: connections are free; end all at once */
	struct weir_event admit, quit;
	bool admits; /* `admit` is on its way */
	bool shares; /* counted in client->sharers */
	int n_slots;
	struct origin *origin; /* [n_slots]: one for an address, several for a name */
	int n_live;
	struct origin **live;      /* [n_live], of n_slots */
	struct probe *probes;      /* [n_slots]; NULL if this loop makes no checks */
	struct resolver *resolver; /* NULL if no origin is named */
	char *servers;             /* of `resolver` */
	struct origin_name *names; /* [client->n_origins] */
	struct exchange *all;
	struct tunnel *tunnels;
	struct exchange *waiting, **waiting_end; /* for a connection, first come first served */
	double tokens;                           /* retries that the budget allows now */
	uint64_t draws;                          /* random numbers drawn */
	uint64_t seed;
	int n_kept;
	struct buffer *kept[CLIENT_BUFFERS_KEPT];
	int n_spare;
	struct exchange *spare;                                 /* linked by `next` */
	struct weir_http_header headers[WEIR_HTTP_HEADERS_MAX]; /* of the head that is parsed */
	char scratch[CLIENT_SCRATCH_BYTES];
};

/** A buffer of an upstream, or the body of an answer that the client still gets. */
struct buffer {
	struct client_loop *cl; /* that keeps it when it is free */
	struct weir_loop *loop;
	char bytes[CLIENT_BUFFER_BYTES];
};

enum upstream_state { UPSTREAM_CONNECTING, UPSTREAM_SHAKING, UPSTREAM_BUSY, UPSTREAM_IDLE };

/** How the end of a body is found. */
enum framing { FRAMING_NONE, FRAMING_LENGTH, FRAMING_CHUNKED, FRAMING_CLOSE };

/** A connection to an origin. */
struct upstream {
	struct weir_watch watch;
	/* While idle, and for its exchange. It stays in the wheel between exchanges, since moving it to a later
	 * time costs one store. */
	struct weir_timer timer;
	struct client_loop *cl;
	struct origin *origin;
	struct exchange *x;            /* NULL while idle */
	struct tunnel *tunnel;         /* NULL unless it was upgraded */
	struct upstream *next, **prev; /* in origin->idle */
	uint8_t state;                 /* enum upstream_state */
	bool readable, writable;       /* epoll has reported it, and no call has found otherwise */
	bool hung_up;           /* the origin has shut its side down, or reset the connection */
	struct tls_origin *tls; /* NULL without TLS */
	uint32_t requests;      /* sent so far */
	int64_t since_ns;       /* opened or, if requests > 0, last in use */
	struct buffer *mem;     /* NULL while idle */
	char *buffer;           /* mem->bytes */
	uint32_t fill;          /* bytes of `buffer` that reads fill */
	uint32_t start, end;    /* bytes of `buffer` that were received and not used yet */
};

enum exchange_phase { EXCHANGE_HEAD, EXCHANGE_BODY };

/** What the exchange still has to send. */
struct asking {
	char *head; /* unsent bytes of the head, if the socket was full; owned */
	size_t head_n, head_at;
	struct weir_slice part; /* unsent bytes of the body */
	char edge[20];          /* the size line of a chunk */
	uint8_t edge_n, edge_at;
	uint8_t tail;  /* unsent bytes of the CRLF after the chunk */
	bool begun;    /* the head has been made */
	bool chunked;  /* the body is sent in chunks */
	bool ended;    /* all of the body is in `part` or sent */
	bool done;     /* nothing more is sent */
	bool cut;      /* the origin does not take the rest */
	bool consumed; /* bytes of a streamed body were taken, so that it cannot be sent again */
	bool waits;    /* for the client's body */
};

/** A request that is passed on. */
struct exchange {
	struct client_loop *cl;
	struct weir_event *ev;
	struct weir_http_request *req;
	struct http_waker *waker;
	struct exchange *next, **prev;     /* in cl->all */
	struct exchange *behind, **before; /* in cl->waiting */
	struct upstream *up;
	struct weir_timer timer;  /* while there is no upstream */
	struct weir_http_tap tap; /* answers with `fail_status` */
	int64_t since_ns;         /* start of what the time-out measures */
	uint16_t fail_status;
	const char *why;  /* the reason in X-Weir-Failed */
	uint8_t phase;    /* enum exchange_phase */
	uint8_t tries;    /* retries so far */
	bool in_line;     /* in cl->waiting */
	bool was_in_line; /* has waited there, so that it does not begin again at the end */
	bool trial, stale, idempotent;
	bool upgrade;          /* asks for an upgrade, and counts in client->upgrades */
	bool trailers;         /* the client takes trailers */
	struct origin *failed; /* the origin of the last try, to avoid it */
	struct asking ask;
	/* the answer */
	uint8_t framing; /* enum framing */
	uint8_t interim; /* 1xx answers so far */
	bool keep;       /* the origin keeps the connection open */
	bool
	    whole; /* the body is collected in the buffer of the upstream, until all of it is there */
	bool begun;    /* the answer is being sent in parts */
	bool blocked;  /* the client does not read */
	bool heard;    /* bytes of an answer have arrived */
	bool timed;    /* the timer has been set since the body began */
	uint64_t left; /* FRAMING_LENGTH: bytes that have not arrived yet */
	uint64_t all;  /* FRAMING_LENGTH: of the whole body */
	int64_t
	    body_ns; /* when the body began, later by the time in which the client did not read */
	int64_t blocked_ns; /* since when it does not */
	struct chunk chunk;
	char *trailer; /* bytes of trailers that have arrived, `n_trailer` of them; owned */
	size_t n_trailer;
	struct weir_slice
	    pend; /* bytes of the body, in the buffer, that the client has no room for */
	uint16_t code;
};

/** What became of an exchange in a step. */
enum step { STEP_ON, STEP_OVER /* do not touch the exchange any more */ };

/** Why an origin has not answered. */
enum failure {
	FAILURE_CONNECT,
	FAILURE_EARLY,
	FAILURE_BAD,
	FAILURE_STATUS, /* an answer with a status of `retry_on` */
	FAILURE_TIME,
	FAILURE_SLOW,
};

/** What `retry_on` has. */
enum retry_on {
	RETRY_CONNECT = 1,
	RETRY_RESET = 2,
	RETRY_502 = 4,
	RETRY_503 = 8,
	RETRY_504 = 16,
};

/** For Host if the client sent none. */
static inline const char *origin_authority(const struct origin_spec *spec)
{
	return address_file(&spec->address) ? "localhost" : spec->text;
}

static inline const struct client_conf *client_conf(const struct client_loop *cl)
{
	return weir_conf(cl->client->st);
}

static inline int64_t client_now_ns(const struct client_loop *cl)
{
	return weir_loop_now_ns(cl->loop);
}

static inline void client_count(const struct client_loop *cl, enum client_metric row, int64_t n)
{
	weir_count(cl->client->st, row, n);
}

/** Whether the list `value`, such as that of a Connection field, has the element `token`, in any case. */
bool client_lists(struct weir_slice value, struct weir_slice token);

/* ---- pick.c ---- */

/** Choose an origin: the one with fewer exchanges under way of two that are drawn at random, of those
 * that are not left out. `avoid` (may be NULL) is chosen only if there is no other. NULL if all are left
 * out. */
struct origin *pick_origin(struct client_loop *cl, const struct origin *avoid);
/** The least busy origin but `avoid` (may be NULL) that is not left out and has room for an exchange; NULL
 * if there is none. */
struct origin *pick_with_room(struct client_loop *cl, const struct origin *avoid);
/** `x` begins to use `o`, and ends to. */
void pick_begin(struct exchange *x, struct origin *o);
void pick_end(struct exchange *x, struct origin *o);
/** The origin has answered, or has failed to. */
void pick_succeeded(struct client_loop *cl, struct origin *o);
void pick_failed(struct client_loop *cl, struct origin *o);
/** The address is not used any more: it is neither out nor in. */
void pick_forget(struct client_loop *cl, struct origin *o);
/** Leave an origin out from now on. */
void pick_eject(struct client_loop *cl, struct origin *o);
/** Take a retry from the budget. */
bool pick_retry(struct client_loop *cl);

/* ---- upstream.c ---- */

/** Whether `o` has an idle connection, or may have another one. */
bool upstream_has_room(const struct client_loop *cl, const struct origin *o);
/** Give `x` an idle connection to `o`, or open one. Returns false if `o` has as many as it may have.
 * *broken is set if the socket could not be opened. */
bool upstream_get(struct exchange *x, struct origin *o, bool *broken);
/** The answer is complete, and the connection can carry another exchange. */
void upstream_keep(struct upstream *u);
void upstream_close(struct upstream *u);
/** Close the idle connections to `o`. */
void upstream_close_idle(struct client_loop *cl, struct origin *o);

/** A socket that is being connected to `address`, or -1. */
int upstream_socket(const struct address *address);
/** Whether that has just failed since no descriptor is left, which is not the origin's fault. */
bool upstream_lacks_descriptor(void);

/* ---- health.c ---- */

/** Whether a check can ask for `path`, which may be empty. */
bool health_path_good(const char *path);
/** Start the checks of a loop, and stop them. The loop's thread. */
int health_start(struct client_loop *cl);
void health_stop(struct client_loop *cl);
/** Begin to check an address, and end that. */
void health_begin(struct client_loop *cl, const struct origin *o);
void health_end(struct client_loop *cl, const struct origin *o);
/** Follow the checks that another loop makes. Costs a load for each origin. */
void health_follow(struct client_loop *cl);

/** Free a buffer that upstream_lend has returned. Any thread. */
void upstream_give_back(void *buffer);
/** Take the buffer of `u`, whose bytes were all used. The connection must not be read before its next
 * exchange. Returns NULL if more may have arrived. */
struct buffer *upstream_lend(struct upstream *u);
/** Whether the loop has more connections to `o` than its share, since other loops have some now. */
bool upstream_is_surplus(const struct upstream *u);

/* ---- upstream_io.c ---- */

/** Send bytes. Returns their number, 0 if the socket is full, or -1 if the origin takes no more. */
int64_t upstream_send(struct upstream *u, struct iovec *iov, int n);
/** Read into the buffer behind the unused bytes. Returns the number of bytes, 0 if there are none now,
 * -1 at the end, and -2 on an error. The buffer must not be full. */
int64_t upstream_read(struct upstream *u);
/** Let epoll report what is there already. */
void upstream_rearm(struct upstream *u);
/** Tell TLS what the socket has become: called for each report of epoll. */
void upstream_ready_tls(struct upstream *u);
/** Whether an idle connection can still be used: the origin has neither closed it nor sent anything.
 * Costs a system call. */
bool upstream_still_good(struct upstream *u);
/** Whether all that the origin has sent was used. Otherwise the rest would be taken for the answer to the
 * next request. */
bool upstream_is_used_up(struct upstream *u);
/** Measure the round trip. */
void upstream_measure(struct upstream *u);

/* ---- ask.c, ask_body.c ---- */

/** Write the head of the request into cl->scratch. Returns its length; 0 if it is too long; or
 * WEIR_EDEADLINE if no time is left. */
int ask_head(struct exchange *x);
/** Send what can be sent. */
enum step ask_run(struct exchange *x);
/** Forget what was to be sent. */
void ask_drop(struct asking *a);

/* ---- answer.c, answer_body.c ---- */

/** Read the answer as far as possible. */
enum step answer_run(struct exchange *x);
/** Begin to answer the client. */
enum step answer_begin(struct exchange *x, const struct http_head *head);
/** Take the bytes of the body from the buffer. *more is set if further bytes must be read first. */
enum step answer_body(struct exchange *x, bool *more);
/** When the body will have been too slow, if no more of it arrives; INT64_MAX if never. */
int64_t answer_slow_ns(const struct exchange *x);
/** The connection has ended within the body. */
enum step answer_closed(struct exchange *x, bool error);

/** Whether a field of the answer is passed on: it concerns no single hop. */
bool answer_passes(const struct http_head *head, struct weir_slice name);

/* ---- exchange.c ---- */

/** Take an event that the stage holds. */
void exchange_new(struct client_loop *cl, struct weir_event *ev);
/** Find an origin and a connection. */
enum step exchange_start(struct exchange *x);
/** The timer of the upstream of `x` has fired. */
void exchange_timed(struct exchange *x);
/** Send and read what is possible. */
void exchange_run(struct exchange *x);
/** The connection is open. */
void exchange_opened(struct exchange *x);
/** Let exchanges that wait for a connection go on. */
void exchange_admit(struct client_loop *cl);
/** The waker of an exchange has arrived: `owner` is the exchange, or NULL if it has ended. */
void exchange_woken(void *owner, void *cl);
/** Set the timer of the exchange to when it would be late. */
void exchange_time(struct exchange *x);
/** Finish the event with `status`, a WEIR_E code; with WEIR_EFAILED, the client gets `code`. */
enum step exchange_end(struct exchange *x, int status, int code);
/** Finish the event, whose answer is complete. */
enum step exchange_done(struct exchange *x);

/* ---- tries.c ---- */

/** Parse `retry_on` into bits of enum retry_on. Returns 0, or WEIR_EINVAL if word *bad is none. */
int tries_parse(const struct weir_strings *words, unsigned *set, int *bad);
/** The origin has failed; the exchange is tried again or ended. */
enum step exchange_failed(struct exchange *x, enum failure why);
/** The same if the exchange has no connection to `o`. */
enum step tries_failed(struct exchange *x, struct origin *o, enum failure why);
/** An answer with this status has arrived. Returns whether the request is tried again; then the exchange may
 * have ended. */
bool tries_status(struct exchange *x, int code);

/* ---- client_loop.c ---- */

extern const struct weir_loop_ops client_loop_ops;
/** Make the state of a loop, and free it in its thread or after it has been joined. */
struct client_loop *client_loop_new(struct client *c, int index);
void client_loop_free(struct client_loop *cl);
/** The part of the stage in the loop of the calling thread; NULL if that thread has no loop, or memory is
 * short. In handlers. */
struct client_loop *client_loop_here(struct weir_stage *st);
/** The calling thread ends, and its guest with it (ops->thread_fini). */
void client_loop_leave(struct weir_stage *st);
/** A connection has become free, or an origin may be back: let exchanges that wait go on soon. */
void client_loop_room(struct client_loop *cl);
/** An event, or a waker, is no longer held. The thread of the loop. */
void client_released(struct client_loop *cl);

#endif
