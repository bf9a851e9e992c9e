/* SPDX-License-Identifier: MIT */
/*
 * Keys of session tickets: shared by the I/O threads of a server and by the servers that follow each other over reloads,
 * in memory alone, and changed while in use.
 *
 *   now (seals and opens) --lifetime over--> before (opens alone) --lifetime over--> wiped
 *
 * So a ticket can be opened for one lifetime at least and two at most; its session ends after one (RFC 5077, 5.5: keys
 * change often). AES-256-CBC and HMAC-SHA-256, as RFC 5077, 4 recommends.
 *
 * | call                        | any thread | at once |
 * |-----------------------------|------------|---------|
 * | all                         | yes        | yes     |
 */
#ifndef WEIR_HTTP_TLS_TICKET_H
#define WEIR_HTTP_TLS_TICKET_H

#include <stdbool.h>
#include <stdint.h>

#include <openssl/evp.h>

struct tls_tickets;

#define TLS_TICKET_NAME_BYTES 16

struct tls_ticket_key {
	unsigned char name[TLS_TICKET_NAME_BYTES];
	unsigned char aes[32], mac[32];
};

/** New keys, one reference. NULL: no memory, or no random bytes. `lifetime_ns` > 0; `now_ns`: CLOCK_MONOTONIC. */
struct tls_tickets *tls_tickets_new(int64_t lifetime_ns, int64_t now_ns);
/** One more reference. */
struct tls_tickets *tls_tickets_ref(struct tls_tickets *t);
/** Drop one; the last wipes and frees. NULL is allowed. */
void tls_tickets_unref(struct tls_tickets *t);

/** From now on they live so long. */
void tls_tickets_set_lifetime(struct tls_tickets *t, int64_t lifetime_ns);

/** The key to seal with now, changed if it is too old. false: there are no random bytes for a new one. The copy is the
 *  caller's to wipe. */
bool tls_tickets_seal(struct tls_tickets *t, int64_t now_ns, struct tls_ticket_key *key);

/** The key called `name`; false when it is unknown, or too old. The copy is the caller's to wipe. */
bool tls_tickets_open(struct tls_tickets *t, int64_t now_ns,
    const unsigned char name[TLS_TICKET_NAME_BYTES], struct tls_ticket_key *key);

/** What OpenSSL's ticket callback has to do, with these keys: see SSL_CTX_set_tlsext_ticket_key_evp_cb(3). */
int tls_tickets_crypt(struct tls_tickets *t, int64_t now_ns, unsigned char *name, unsigned char *iv,
    EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, bool seal);

#endif
