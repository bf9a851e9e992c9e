/* SPDX-License-Identifier: MIT */
/*
 * Names to addresses without blocking, for stages with sockets in an event loop.
 *
 * A resolver belongs to one loop. It asks the servers of resolv.conf (c-ares), keeps the answers for
 * their TTL, and asks a question once for all callers that wait for it:
 *
 *   caller -> numeric or "localhost"  -> answered at once
 *          -> kept, within the TTL    -> answered at once
 *          -> kept, older, `stale`    -> answered at once, marked stale; asked again meanwhile
 *          -> else                    -> asked: A and AAAA, /etc/hosts, search domains
 *
 * If no server answers, an answer that is not older than `stale` stays. An answer that a name does not
 * exist, or has no addresses, is kept for `negative`; a failure (nobody answers) for `negative`, at most
 * 1 s.
 *
 * Thread: all calls are made in the thread of the loop, after its start and before its end.
 */
#ifndef WEIR_NET_RESOLVE_H
#define WEIR_NET_RESOLVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <weir/error.h>
#include <weir/io.h>

#include "net/network.h"

/** Maximum number of addresses of a name that are kept, in the order of preference (RFC 6724). */
#define RESOLVE_ADDRESSES_MAX 16
/** Longest name, without the 0 byte. */
#define RESOLVE_NAME_MAX 255

struct resolver;

/** A zero member stands for its default. Copied by resolver_new. */
struct resolve_conf {
	const char *servers; /* "ADDRESS[:PORT],..."; NULL: those of `file` */
	const char *file;    /* default /etc/resolv.conf; reread when it changes */
	int64_t ttl_min_ns;  /* TTLs below it are raised to it; default 1 s */
	int64_t ttl_max_ns;  /* TTLs above it are lowered to it; default 1 h */
	int64_t negative_ns; /* default 5 s */
	int64_t stale_ns;    /* how much longer than its TTL an answer may serve; default 0 */
	int64_t timeout_ns;  /* of the first attempt at each server; default 2 s */
	int tries;           /* attempts at each server; default 2 */
	int max_names;       /* kept or asked; default 1,024; the oldest gives way */
};

enum resolve_status {
	RESOLVE_OK,
	RESOLVE_NONE,      /* the name does not exist, or has no address */
	RESOLVE_FAILED,    /* no server answers, or none answers well */
	RESOLVE_BAD_NAME,  /* no host name */
	RESOLVE_CANCELLED, /* the resolver is being freed */
	RESOLVE_NO_MEMORY, /* also if `max_names` questions are being asked */
};

/** Owned by the resolver; valid until the caller returns to the loop or calls the resolver again. */
struct resolve_answer {
	enum resolve_status status;
	bool stale;                        /* older than its TTL */
	int n;                             /* 0 unless RESOLVE_OK */
	const struct net_address *address; /* [n]; an IPv4 address is mapped (network.h) */
	int64_t until_ns;                  /* end of the TTL, in the time of the loop */
	const char *why;                   /* static text for a log; "" if RESOLVE_OK */
};

/** A caller that waits; part of the caller's struct. Zero it, and set `done`. */
struct resolve_query {
	/* Called once, in the thread of the loop. It may call the resolver, except resolver_free. */
	void (*done)(struct resolve_query *q, const struct resolve_answer *answer);
	struct resolve_query *next, **prev; /* of the resolver; prev is NULL unless it waits */
};

/** Counts since the start of the resolver. */
struct resolve_counts {
	int64_t asked;    /* questions sent to servers (A and AAAA count as one) */
	int64_t kept;     /* answered from what was kept */
	int64_t joined;   /* callers that waited for a question that was being asked */
	int64_t stale;    /* answered with a stale answer */
	int64_t negative; /* questions whose answer was RESOLVE_NONE */
	int64_t failed;   /* questions whose answer was RESOLVE_FAILED */
	int64_t reread;   /* times that resolv.conf has changed */
	int64_t evicted;  /* names that gave way to others */
};

/** Create a resolver in `loop`, whose thread must be the caller's. Returns 0, or a code with `err`
 * filled: WEIR_EINVAL (bad `servers`), WEIR_ENOMEM, WEIR_ESYS. */
int resolver_new(struct weir_loop *loop, const struct resolve_conf *conf, struct resolver **out,
    struct weir_err *err);

/** Answer all callers that wait with RESOLVE_CANCELLED, and free the resolver; NULL is allowed. With
 * `loop_gone`, the thread of the loop has ended, as in ops->fini of a stage with WEIR_STAGE_LOOP, and any
 * thread may call this. */
void resolver_free(struct resolver *r, bool loop_gone);

/**
 * Resolve `name`: an IPv4 address, an IPv6 address with or without brackets, or a host name (case does
 * not matter; a final dot keeps search domains out). Returns the answer if it is known: `done` is then
 * not called. Returns NULL if it is asked: `done` will be called, never from within this call. Costs a
 * hash look-up if the answer is kept, about 100 ns.
 */
const struct resolve_answer *resolve_name(
    struct resolver *r, const char *name, struct resolve_query *q);

/** Stop waiting: `done` is not called any more. No effect if `q` does not wait. */
void resolve_cancel(struct resolve_query *q);

/** Forget what is kept of `name`, or of all names if it is NULL. Callers that wait go on waiting. */
void resolve_forget(struct resolver *r, const char *name);

const struct resolve_counts *resolve_counts(const struct resolver *r);

/** The address with a port, for connect(2); an IPv4-mapped one as AF_INET. Returns the length. */
socklen_t resolve_socket_address(
    const struct net_address *a, uint16_t port, struct sockaddr_storage *out);

#endif
