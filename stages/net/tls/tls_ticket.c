/* SPDX-License-Identifier: MIT */
/* Session ticket keys; see tls_ticket.h. The lock is held to copy 80 bytes, a few times per
 * handshake, and once per lifetime to create a key. */
#include "net/tls/tls_ticket.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#define IV_BYTES 16 /* size of the IV of AES-CBC */

struct tls_tickets {
	atomic_int refs;
	pthread_mutex_t lock;
	/* under the lock */
	int64_t lifetime_ns;
	int64_t made_ns;         /* when `now` began to seal */
	int64_t before_until_ns; /* when `before` expires */
	bool has_before;
	struct tls_ticket_key now, before;
};

static bool make_key(struct tls_ticket_key *key)
{
	return RAND_bytes(key->name, sizeof(key->name)) == 1 &&
	       RAND_priv_bytes(key->aes, sizeof(key->aes)) == 1 &&
	       RAND_priv_bytes(key->mac, sizeof(key->mac)) == 1;
}

struct tls_tickets *tls_tickets_new(int64_t lifetime_ns, int64_t now_ns)
{
	struct tls_tickets *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	if (!make_key(&t->now)) {
		free(t);
		return NULL;
	}
	atomic_init(&t->refs, 1);
	pthread_mutex_init(&t->lock, NULL);
	t->lifetime_ns = lifetime_ns;
	t->made_ns = now_ns;
	return t;
}

struct tls_tickets *tls_tickets_ref(struct tls_tickets *t)
{
	atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
	return t;
}

void tls_tickets_unref(struct tls_tickets *t)
{
	if (!t || atomic_fetch_sub(&t->refs, 1) != 1)
		return;
	pthread_mutex_destroy(&t->lock);
	OPENSSL_cleanse(t, sizeof(*t));
	free(t);
}

void tls_tickets_set_lifetime(struct tls_tickets *t, int64_t lifetime_ns)
{
	pthread_mutex_lock(&t->lock);
	t->lifetime_ns = lifetime_ns;
	pthread_mutex_unlock(&t->lock);
}

/* Wipe the previous key if it is too old. The caller holds the lock. */
static void forget(struct tls_tickets *t, int64_t now_ns)
{
	if (!t->has_before || now_ns < t->before_until_ns)
		return;
	OPENSSL_cleanse(&t->before, sizeof(t->before));
	t->has_before = false;
}

/* Create a new key if the current one is too old. Returns false if that fails. The caller holds the
 * lock. */
static bool rotate(struct tls_tickets *t, int64_t now_ns)
{
	struct tls_ticket_key fresh;

	if (now_ns - t->made_ns < t->lifetime_ns)
		return true;
	if (!make_key(&fresh))
		return false;
	t->before = t->now;
	t->has_before = true; /* forget() wipes `before` immediately if it is too old */
	t->before_until_ns = t->made_ns + 2 * t->lifetime_ns;
	t->now = fresh;
	t->made_ns = now_ns;
	OPENSSL_cleanse(&fresh, sizeof(fresh));
	return true;
}

bool tls_tickets_seal(struct tls_tickets *t, int64_t now_ns, struct tls_ticket_key *key)
{
	pthread_mutex_lock(&t->lock);
	bool ok = rotate(t, now_ns);
	forget(t, now_ns);
	if (ok)
		*key = t->now;
	pthread_mutex_unlock(&t->lock);
	return ok;
}

bool tls_tickets_open(struct tls_tickets *t, int64_t now_ns,
    const unsigned char name[TLS_TICKET_NAME_BYTES], struct tls_ticket_key *key)
{
	const struct tls_ticket_key *found = NULL;

	pthread_mutex_lock(&t->lock);
	rotate(t, now_ns);
	forget(t, now_ns);
	/* Names may be compared with memcmp: they are not secret, since tickets contain them. */
	if (memcmp(t->now.name, name, sizeof(t->now.name)) == 0)
		found = &t->now;
	else if (t->has_before && memcmp(t->before.name, name, sizeof(t->before.name)) == 0)
		found = &t->before;
	if (found)
		*key = *found;
	pthread_mutex_unlock(&t->lock);
	return found;
}

/* ---- OpenSSL callback ---- */

static bool set_mac(EVP_MAC_CTX *mac, struct tls_ticket_key *key)
{
	char digest[] = "SHA256";
	OSSL_PARAM params[] = {
	    OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key->mac, sizeof(key->mac)),
	    OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
	    OSSL_PARAM_construct_end(),
	};

	return EVP_MAC_CTX_set_params(mac, params) == 1;
}

int tls_tickets_crypt(struct tls_tickets *t, int64_t now_ns, unsigned char *name, unsigned char *iv,
    EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, bool seal)
{
	struct tls_ticket_key key;
	bool ok;

	if (seal) {
		if (!tls_tickets_seal(t, now_ns, &key))
			return 0; /* no ticket */
		memcpy(name, key.name, sizeof(key.name));
		ok = RAND_bytes(iv, IV_BYTES) == 1 &&
		     EVP_EncryptInit_ex(cipher, EVP_aes_256_cbc(), NULL, key.aes, iv) == 1;
	} else {
		if (!tls_tickets_open(t, now_ns, name, &key))
			return 0; /* a full handshake */
		ok = EVP_DecryptInit_ex(cipher, EVP_aes_256_cbc(), NULL, key.aes, iv) == 1;
	}
	ok = ok && set_mac(mac, &key);
	OPENSSL_cleanse(&key, sizeof(key));
	if (!ok)
		return -1;
	/* 2 tells OpenSSL that the ticket was opened and that the client needs a new one, since
	 * each ticket should be used only once (RFC 8446, C.4). */
	return seal ? 1 : 2;
}
