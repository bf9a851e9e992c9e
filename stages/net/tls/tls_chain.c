/* SPDX-License-Identifier: MIT */
/* Checks certificate chains; see tls_chain.h. OpenSSL's errors are cleared: a missing certificate
 * is not an error here. */
#include "net/tls/tls_chain.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>

X509_STORE *tls_chain_store(void)
{
	X509_STORE *store = X509_STORE_new();

	if (store)
		X509_STORE_set_default_paths(store);
	ERR_clear_error();
	return store;
}

/* Verification callback: continues after any fault, and records the first certificate without an
 * issuer. */
static int on_fault(int ok, X509_STORE_CTX *ctx)
{
	X509 **orphan = X509_STORE_CTX_get_app_data(ctx);

	switch (ok ? X509_V_OK : X509_STORE_CTX_get_error(ctx)) {
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
		if (!*orphan)
			*orphan = X509_STORE_CTX_get_current_cert(ctx);
		break;
	default:
		break;
	}
	return 1;
}

/* Return the common name of the issuer, or its whole name if it has no common name. The name is
 * displayed, so anything but visible ASCII is masked. */
static char *issuer_of(const X509 *orphan)
{
	const X509_NAME *issuer = X509_get_issuer_name(orphan);
	char text[200] = "";

	if (X509_NAME_get_text_by_NID(issuer, NID_commonName, text, sizeof(text)) < 0)
		X509_NAME_oneline(issuer, text, sizeof(text));
	for (char *c = text; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return strdup(text);
}

char *tls_chain_missing(X509_STORE *trusted, X509 *own, STACK_OF(X509) * chain)
{
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	X509 *orphan = NULL;
	char *name = NULL;

	if (ctx && X509_STORE_CTX_init(ctx, trusted, own, chain) == 1) {
		X509_STORE_CTX_set_app_data(ctx, &orphan);
		X509_STORE_CTX_set_verify_cb(ctx, on_fault);
		X509_verify_cert(ctx);
		if (orphan)
			name = issuer_of(orphan);
	}
	X509_STORE_CTX_free(ctx);
	ERR_clear_error();
	return name;
}
