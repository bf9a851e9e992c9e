/* SPDX-License-Identifier: MIT */
/*
 * Manages the session ticket keys. They are shared by the I/O threads of a server and by successive
 * servers across reloads, kept only in memory, and replaced while in use.
 *
 *   now (seals and opens) --lifetime over--> before (only opens) --lifetime over--> wiped
 *
 * A ticket can therefore be opened for at least one lifetime and at most two; its session ends
 * after one (RFC 5077, 5.5, advises changing keys often). Tickets use AES-256-CBC and HMAC-SHA-256,
 * as RFC 5077, 4 recommends.
 *
 * Any number of threads may call these functions at the same time.
 */
#ifndef WEIR_NET_TLS_TICKET_H
#define WEIR_NET_TLS_TICKET_H

#include <stdbool.h>
#include <stdint.h>

#include <openssl/evp.h>

struct tls_tickets;

#define TLS_TICKET_NAME_BYTES 16

struct tls_ticket_key {
	unsigned char name[TLS_TICKET_NAME_BYTES];
	unsigned char aes[32], mac[32];
};

/** Create keys with one reference. Returns NULL if there is no memory, or if there are no random
 * bytes. `lifetime_ns` must be greater than 0; `now_ns` is CLOCK_MONOTONIC. */
struct tls_tickets *tls_tickets_new(int64_t lifetime_ns, int64_t now_ns);
/** Take another reference. */
struct tls_tickets *tls_tickets_ref(struct tls_tickets *t);
/** Drop a reference; dropping the last one wipes and frees the keys. NULL is allowed. */
void tls_tickets_unref(struct tls_tickets *t);

/** Change the lifetime of the keys. */
void tls_tickets_set_lifetime(struct tls_tickets *t, int64_t lifetime_ns);

/** Copy the current sealing key to `key`, after replacing it if it is too old. Returns false if
 * there are no random bytes for a new key. The caller must wipe the copy. */
bool tls_tickets_seal(struct tls_tickets *t, int64_t now_ns, struct tls_ticket_key *key);

/** Copy the key called `name` to `key`. Returns false if it is unknown or too old. The caller must
 * wipe the copy. */
bool tls_tickets_open(struct tls_tickets *t, int64_t now_ns,
    const unsigned char name[TLS_TICKET_NAME_BYTES], struct tls_ticket_key *key);

/** Implements OpenSSL's ticket callback with these keys; see
 * SSL_CTX_set_tlsext_ticket_key_evp_cb(3). */
int tls_tickets_crypt(struct tls_tickets *t, int64_t now_ns, unsigned char *name, unsigned char *iv,
    EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, bool seal);

#endif
