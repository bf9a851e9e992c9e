/* SPDX-License-Identifier: MIT */
/*
 * Bytes from clients of `tls:` before the handshake is complete, and files named by an operator:
 * which of them are accepted.
 *
 * Input: one letter, and
 *   H  the bytes of a connection. The first record is judged as in tls_conn.c, with the same
 *      verdict for every prefix of its head that is long enough to have one. Then a handshake is
 *      tried with them. Once a name is known the certificate is the one that a simple search finds
 *      for it, and the only protocol ever agreed on is http/1.1.
 *   N  a name: the same search, and the same in capitals
 *   C  a certificate file, K a key file: refused with a message in visible ASCII, or read
 *   T  the name of a ticket: only our own has a key
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <weir/log.h>

#include "net/tls/tls_certs.h"
#include "net/tls/tls_hello.h"
#include "net/tls/tls_pem.h"
#include "net/tls/tls_ticket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Names of the certificates, each matching a name that a client may send. */
static const char *const names[] = {"a.example", "*.b.example", "www.b.example", "*.example"};
#define N_CERTS ((int)(sizeof(names) / sizeof(names[0])))

static struct tls_certs *certs;
static struct tls_tickets *tickets;

static void expect(bool cond, const char *what)
{
	if (cond)
		return;
	fprintf(stderr, "fuzz_tls: %s\n", what);
	abort();
}

/* ---- certificates ---- */

/* An unlinked file, and a path to open it again. */
static int file_of(const void *p, size_t n, char path[32])
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	expect(fd != -1 && fchmod(fd, 0600) == 0 && write(fd, p, n) == (ssize_t)n, "no file");
	snprintf(path, 32, "/proc/self/fd/%d", fd);
	return fd;
}

static void make_pem(const char *name, BIO *cert, BIO *key)
{
	EVP_PKEY *pkey = EVP_EC_gen("P-256");
	X509 *x = X509_new();
	X509_NAME *subject = X509_get_subject_name(x);
	char san[64];

	X509_set_version(x, 2);
	X509_gmtime_adj(X509_getm_notBefore(x), -86400);
	X509_gmtime_adj(X509_getm_notAfter(x), 86400 * 30L);
	X509_NAME_add_entry_by_txt(
	    subject, "CN", MBSTRING_ASC, (const unsigned char *)"fuzz", -1, -1, 0);
	X509_set_issuer_name(x, subject);
	X509_set_pubkey(x, pkey);
	snprintf(san, sizeof(san), "DNS:%s", name);
	X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, san);
	X509_add_ext(x, ext, -1);
	X509_EXTENSION_free(ext);
	expect(X509_sign(x, pkey, EVP_sha256()) > 0 && PEM_write_bio_X509(cert, x) == 1 &&
		   PEM_write_bio_PrivateKey(key, pkey, NULL, NULL, 0, NULL, NULL) == 1,
	    "no certificate");
	X509_free(x);
	EVP_PKEY_free(pkey);
}

static char *bio_path(BIO *bio)
{
	char path[32], *p;
	long n = BIO_get_mem_data(bio, &p);

	file_of(p, (size_t)n, path);
	BIO_free(bio);
	return strdup(path);
}

/* Done once: files and set are shared by all inputs. */
static void set_up(void)
{
	static struct tls_pair_conf pair[N_CERTS];
	struct tls_conf conf = {.own = {(char *)(uintptr_t) "", (char *)(uintptr_t) ""},
	    .certs = {N_CERTS, (char *)pair},
	    .ciphers = (char *)(uintptr_t) "ECDHE+AESGCM",
	    .ticket_ns = 3600000000000LL};
	char at[TLS_PATH_BYTES];
	struct weir_err err = {0};

	weir_log_set_level(WEIR_LOG_ERROR);
	for (int i = 0; i < N_CERTS; i++) {
		BIO *cert = BIO_new(BIO_s_mem()), *key = BIO_new(BIO_s_mem());
		make_pem(names[i], cert, key);
		pair[i] = (struct tls_pair_conf){bio_path(cert), bio_path(key)};
	}
	expect(tls_certs_load(&conf, "fuzz", &certs, at, &err) == 0, err.text);
	tickets = tls_tickets_new(conf.ticket_ns, 0);
}

/* ---- names ---- */

/* Does certificate `i` match `name`? `star`: with its "*" as the first label. */
static bool matches(int i, const char *name, size_t n, bool star)
{
	const char *have = names[i], *dot = memchr(name, '.', n);

	if (star && (!dot || dot == name || have[0] != '*'))
		return false;
	if (star) {
		n -= (size_t)(dot - name);
		name = dot;
		have++;
	}
	return strlen(have) == n && strncasecmp(have, name, n) == 0;
}

/* OpenSSL refuses names with a NUL, so clients cannot send them. */
static int search(const char *name, size_t n)
{
	if (n == 0 || n > TLS_NAME_MAX)
		return 0;
	for (int star = 0; star < 2; star++)
		for (int i = 0; i < N_CERTS; i++)
			if (matches(i, name, n, star))
				return i;
	return 0;
}

static void check_name(const char *name, size_t n)
{
	char upper[TLS_NAME_MAX];
	int i;

	if (memchr(name, '\0', n))
		return;
	i = tls_certs_choose(certs, name, n);
	expect(i == search(name, n), "another certificate");
	if (n > TLS_NAME_MAX)
		return;
	for (size_t k = 0; k < n; k++)
		upper[k] = (char)toupper((unsigned char)name[k]);
	expect(tls_certs_choose(certs, upper, n) == i, "case matters");
}

/* ---- a connection ---- */

static void check_record(const uint8_t *data, size_t n)
{
	size_t most = n < TLS_HELLO_HEAD ? n : TLS_HELLO_HEAD;
	enum tls_hello all;

	if (n == 0)
		return;
	all = tls_hello_judge(data, most, n);
	expect(all != TLS_HELLO_NONE, "nobody is there");
	for (size_t i = 1; i <= n && i <= 2000; i++) {
		enum tls_hello v = tls_hello_judge(data, i < most ? i : most, i);
		expect(v == all || v == TLS_HELLO_LATER, "a prefix says something else");
	}
}

/* Would the server send certificate `i`? */
static bool shows(SSL *ssl, int i)
{
	const X509 *x = SSL_CTX_get0_certificate(SSL_get_SSL_CTX(ssl));
	GENERAL_NAMES *have = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
	const ASN1_STRING *name = sk_GENERAL_NAME_value(have, 0)->d.dNSName;
	bool same = strcmp((const char *)ASN1_STRING_get0_data(name), names[i]) == 0;

	GENERAL_NAMES_free(have);
	return same;
}

static void check_hello(const uint8_t *data, size_t n)
{
	SSL *ssl = SSL_new(tls_certs_first(certs));
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
	const unsigned char *protocol;
	const char *name;
	unsigned protocol_n;

	expect(BIO_write(in, data, (int)n) == (int)n, "no memory");
	SSL_set_bio(ssl, in, out);
	SSL_set_app_data(ssl, tickets);
	SSL_set_accept_state(ssl);
	SSL_do_handshake(ssl);
	SSL_get0_alpn_selected(ssl, &protocol, &protocol_n);
	expect(protocol_n == 0 || (protocol_n == 8 && memcmp(protocol, "http/1.1", 8) == 0),
	    "another protocol");
	name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	if (name && BIO_ctrl_pending(out) > 7) /* more than an alert: the hello was accepted */
		expect(shows(ssl, search(name, strlen(name))), "another certificate is shown");
	SSL_free(ssl);
	ERR_clear_error();
}

/* ---- files ---- */

static void check_words(const struct weir_err *err)
{
	expect(err->text[0] != '\0', "refused without a reason");
	for (const char *p = err->text; *p; p++)
		expect(*p >= 0x20 && *p < 0x7f, "a byte that must not be printed");
}

static void check_certs(const uint8_t *data, size_t n)
{
	STACK_OF(X509) *read = NULL;
	struct weir_err err = {0};
	char path[32];
	int fd = file_of(data, n, path);

	if (tls_pem_certs(path, &read, &err) != 0)
		check_words(&err);
	else
		expect(sk_X509_num(read) > 0, "no certificate was read");
	sk_X509_pop_free(read, X509_free);
	close(fd);
}

static void check_key(const uint8_t *data, size_t n)
{
	struct weir_err err = {0};
	EVP_PKEY *key = NULL;
	char path[32];
	int fd = file_of(data, n, path);

	if (tls_pem_key(path, &key, &err) != 0)
		check_words(&err);
	else
		expect(key != NULL, "no key was read");
	EVP_PKEY_free(key);
	close(fd);
}

static void check_ticket(const uint8_t *data, size_t n)
{
	unsigned char name[TLS_TICKET_NAME_BYTES] = {0};
	struct tls_ticket_key key;

	memcpy(name, data, n < sizeof(name) ? n : sizeof(name));
	expect(tls_tickets_seal(tickets, 1, &key), "no key");
	/* libFuzzer observes comparisons, so in time it finds the right name. */
	bool ours = memcmp(name, key.name, sizeof(name)) == 0;
	expect(tls_tickets_open(tickets, 1, name, &key) == ours, "somebody else's ticket");
	expect(tls_tickets_open(tickets, 2, key.name, &key), "not even our own");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!certs)
		set_up();
	if (size == 0)
		return 0;
	switch (data[0]) {
	case 'H':
		check_record(data + 1, size - 1);
		check_hello(data + 1, size - 1);
		break;
	case 'N':
		check_name((const char *)data + 1, size - 1);
		break;
	case 'C':
		check_certs(data + 1, size - 1);
		break;
	case 'K':
		check_key(data + 1, size - 1);
		break;
	case 'T':
		check_ticket(data + 1, size - 1);
		break;
	default:
		break;
	}
	return 0;
}
