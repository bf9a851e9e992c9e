/* SPDX-License-Identifier: MIT */
/* The knobs of `tls:`; see tls_conf.h. */
#include "net/tls/tls_conf.h"

#include <stddef.h>

#define PAIR(member) offsetof(struct tls_pair_conf, member)
#define ROW(member)  offsetof(struct tls_conf, member)

static const struct weir_knob pair_knobs[] = {
    {.name = "cert",
	.type = WEIR_KNOB_STRING,
	.offset = PAIR(cert),
	.flags = WEIR_KNOB_REQUIRED,
	.help = "PEM file with the certificate and its intermediate certificates"},
    {.name = "key",
	.type = WEIR_KNOB_STRING,
	.offset = PAIR(key),
	.flags = WEIR_KNOB_REQUIRED,
	.help = "PEM file with the private key of the certificate; only the owner and the group of "
		"the file may read it"},
    {.name = NULL},
};

const struct weir_knob tls_knobs[] = {
    {.name = "cert",
	.type = WEIR_KNOB_STRING,
	.offset = ROW(own) + PAIR(cert),
	.def = "",
	.help = "PEM file with the certificate and its intermediate certificates"},
    {.name = "key",
	.type = WEIR_KNOB_STRING,
	.offset = ROW(own) + PAIR(key),
	.def = "",
	.help = "PEM file with the private key of the certificate; only the owner and the group of "
		"the file may read it"},
    {.name = "certs",
	.type = WEIR_KNOB_RECORDS,
	.offset = ROW(certs),
	.fields = pair_knobs,
	.record_size = sizeof(struct tls_pair_conf),
	.help = "more certificates: a client gets the first certificate, beginning with 'cert', "
		"that has the name the client asks for. If no certificate has that name, the "
		"client gets the first of all. If an RSA and an ECDSA certificate have the same "
		"names, the client gets the one that it can verify"},
    {.name = "min_version",
	.type = WEIR_KNOB_ENUM,
	.offset = ROW(min_version),
	.def = "1.2",
	.choices = "1.2|1.3",
	.help = "oldest TLS version accepted"},
    /* The default allows only forward secrecy and authenticated encryption: RFC 9325, 4.2. */
    {.name = "ciphers",
	.type = WEIR_KNOB_STRING,
	.offset = ROW(ciphers),
	.def = "ECDHE+AESGCM:ECDHE+CHACHA20",
	.help =
	    "ciphers of TLS 1.2, in the syntax of openssl-ciphers(1); those of 1.3 are all secure"},
    /* The default is short compared with the week of RFC 8446, because an attacker who gets the
     * ticket keys can read the sessions resumed with them. */
    {.name = "tickets",
	.type = WEIR_KNOB_DURATION,
	.offset = ROW(ticket_ns),
	.def = "1h",
	.min = 0,
	.max = 8.64e13,
	.help = "how long a client may resume with a ticket, and how often the ticket keys change; "
		"0s sends no tickets"},
    {.name = "kernel",
	.type = WEIR_KNOB_BOOL,
	.offset = ROW(kernel),
	.def = "true",
	.help = "let the kernel encrypt (kTLS) if it has the module tls; files are then sent by "
		"sendfile"},
    {.name = NULL},
};
