/* SPDX-License-Identifier: MIT */
/*
 * Addresses of names, as the stage type `dns.resolve` gives them to events: the payload `dns`.
 *
 * In the configuration, `dns.address` is the first address as text, `dns.count` the number of addresses,
 * and `dns.status` is ok, stale, none, failed or bad_name.
 */
#ifndef WEIR_DNS_H
#define WEIR_DNS_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/annotate.h>
#include <weir/payload.h>

WEIR_C_BEGIN

/** Maximum number of addresses of a name. */
#define WEIR_DNS_ADDRESSES 16

enum weir_dns_status {
	WEIR_DNS_OK,
	WEIR_DNS_STALE,    /* older than its TTL, because no server answers or while one is asked */
	WEIR_DNS_NONE,     /* the name does not exist, or has no address */
	WEIR_DNS_FAILED,   /* no server answers well, or none in time */
	WEIR_DNS_BAD_NAME, /* the event has no name, or one that is no host name */
};

/** The payload. Constant once the event has left `dns.resolve`. */
struct weir_dns {
	enum weir_dns_status status;
	int n; /* number of addresses; 0 unless the status is OK or STALE */
	/* in the order of preference (RFC 6724); an IPv4 address as ::ffff:a.b.c.d */
	uint8_t address[WEIR_DNS_ADDRESSES][16];
	int64_t
	    until_ns;    /* end of the TTL, CLOCK_MONOTONIC; INT64_MAX if the name was an address */
	char text[46];   /* the first address as text */
	const char *why; /* static text for a log; "" if the status is OK or STALE */
};

extern WEIR_API const struct weir_payload_type weir_dns_payload;

/** The addresses that `dns.resolve` has given to `ev`, or NULL. Valid until the payload is taken or
 *  dropped. The owner of the event calls this. */
static inline const struct weir_dns *weir_dns(const struct weir_event *ev)
{
	return (const struct weir_dns *)weir_payload(ev, &weir_dns_payload);
}

WEIR_C_END

#endif
