/* SPDX-License-Identifier: MIT */
/* The rows of `tls:`; see tls_conf.h. */
#include "http/tls_conf.h"

#include <stddef.h>

#define PAIR(member) offsetof(struct tls_pair_conf, member)
#define ROW(member)  offsetof(struct tls_conf, member)

static const struct weir_knob pair_knobs[] = {
    {.name = "cert",
	.type = WEIR_KNOB_STRING,
	.offset = PAIR(cert),
	.flags = WEIR_KNOB_REQUIRED,
	.help = "PEM file with the certificate and those between it and its authority's"},
    {.name = "key",
	.type = WEIR_KNOB_STRING,
	.offset = PAIR(key),
	.flags = WEIR_KNOB_REQUIRED,
	.help = "PEM file with its private key"},
    {.name = NULL},
};

const struct weir_knob tls_knobs[] = {
    {.name = "cert",
	.type = WEIR_KNOB_STRING,
	.offset = ROW(own) + PAIR(cert),
	.def = "",
	.help = "PEM file with the certificate and those between it and its authority's"},
    {.name = "key",
	.type = WEIR_KNOB_STRING,
	.offset = ROW(own) + PAIR(key),
	.def = "",
	.help =
	    "PEM file with its private key, which others than its owner and group may not read"},
    {.name = "certs",
	.type = WEIR_KNOB_RECORDS,
	.offset = ROW(certs),
	.fields = pair_knobs,
	.record_size = sizeof(struct tls_pair_conf),
	.help =
	    "more certificates: the one that has the name which the client asks for is shown, the "
	    "first to who asks for none of them"},
    {.name = "min_version",
	.type = WEIR_KNOB_ENUM,
	.offset = ROW(min_version),
	.def = "1.2",
	.choices = "1.2|1.3",
	.help = "oldest version of TLS that is spoken"},
    /* Forward secrecy and authenticated encryption alone: RFC 9325, 4.2. */
    {.name = "ciphers",
	.type = WEIR_KNOB_STRING,
	.offset = ROW(ciphers),
	.def = "ECDHE+AESGCM:ECDHE+CHACHA20",
	.help = "ciphers of TLS 1.2, as openssl-ciphers(1) has it; those of 1.3 are all good"},
    /* Short beside the week of RFC 8446: who gets the keys of tickets reads what they resumed. */
    {.name = "tickets",
	.type = WEIR_KNOB_DURATION,
	.offset = ROW(ticket_ns),
	.def = "1h",
	.min = 0,
	.max = 8.64e13,
	.help =
	    "how long a client may resume by a ticket, and how often the keys of tickets change; "
	    "0s: no tickets"},
    {.name = "kernel",
	.type = WEIR_KNOB_BOOL,
	.offset = ROW(kernel),
	.def = "true",
	.help =
	    "let the kernel encrypt (kTLS) where it has the module tls; files go by sendfile then"},
    {.name = NULL},
};
