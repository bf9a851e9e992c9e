/* SPDX-License-Identifier: MIT */
/* Reads secret files and computes digests; see secret.h. */
#include "secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "admin/text/fail.h"

/* Minimum lengths of a token of 128 bits, in hexadecimal and in base64. */
#define HEX_LETTERS_MIN 32
#define LETTERS_MIN     22
/* Minimum number of different letters in a token. About one in ten million random tokens of minimum
 * length has fewer. */
#define DIFFERENT_MIN 8

static const char hex_letters[] = "0123456789abcdefABCDEF";

/* ---- digests ---- */

bool secret_digest(const void *p, size_t n, struct secret_digest *digest)
{
	if (gnutls_hash_fast(GNUTLS_DIG_SHA256, p, n, digest->bytes) == 0)
		return true;
	memset(digest, 0, sizeof(*digest));
	return false;
}

unsigned secret_equal(const struct secret_digest *a, const struct secret_digest *b)
{
	unsigned differs = 0;

	for (size_t i = 0; i < SECRET_DIGEST_BYTES; i++)
		differs |= (unsigned)(a->bytes[i] ^ b->bytes[i]);
	/* `differs` is 0..255; bit 8 of `differs - 1` is set only if it is 0 */
	return ((differs - 1) >> 8) & 1;
}

bool secret_random(void *p, size_t n)
{
	/* requests for up to 256 bytes are never cut short */
	return getrandom(p, n, 0) == (ssize_t)n;
}

/* ---- strength ---- */

/* Return whether `c` may occur in a bearer token (b64token in RFC 6750, 2.1). */
static bool is_token_letter(char c)
{
	return c &&
	       strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=", c);
}

bool secret_is_strong(struct weir_slice token)
{
	bool seen[256] = {false};
	size_t different = 0, hex = 0;

	for (size_t i = 0; i < token.n; i++) {
		unsigned char c = (unsigned char)token.p[i];
		if (!is_token_letter(token.p[i]))
			return false;
		hex += strchr(hex_letters, c) != NULL;
		different += !seen[c];
		seen[c] = true;
	}
	size_t least = hex == token.n ? HEX_LETTERS_MIN : LETTERS_MIN;
	explicit_bzero(seen, sizeof(seen));
	return token.n >= least && token.n <= SECRET_TOKEN_MAX && different >= DIFFERENT_MIN;
}

/* ---- files ---- */

static int check_file(int fd, const char *path, const char *what, struct weir_err *err)
{
	char hint[160];
	struct stat st;

	if (fstat(fd, &st) != 0)
		return fail(err, WEIR_ESYS, NULL, "cannot read the owner and mode of %s: %s", path,
		    strerror(errno));
	if (!S_ISREG(st.st_mode))
		return fail(err, WEIR_EINVAL, NULL, "%s: %s is not a regular file", what, path);
	if (st.st_mode & (S_IRWXG | S_IRWXO)) {
		snprintf(hint, sizeof(hint), "run: chmod 600 %s", path);
		return fail(err, WEIR_EINVAL, hint,
		    "%s: %s is accessible to users other than its owner (mode %04o)", what, path,
		    (unsigned)st.st_mode & 07777);
	}
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return fail(err, WEIR_EINVAL, NULL,
		    "%s: %s belongs to user %u, which is neither root nor the user of this process",
		    what, path, (unsigned)st.st_uid);
	return 0;
}

void secret_hint(const char *path, int error, char *hint, size_t size)
{
	char folder[96] = "";

	hint[0] = '\0';
	if ((error == ENOENT || error == ENOTDIR) && path[0] == '/')
		snprintf(hint, size, "correct the path, or make the file first");
	else if ((error == ENOENT || error == ENOTDIR) && getcwd(folder, sizeof(folder)))
		snprintf(hint, size,
		    "a relative path begins at the folder of the YAML file: looked for in %s",
		    folder);
	else if (error == ENOENT || error == ENOTDIR)
		snprintf(hint, size, "a relative path begins at the folder of the YAML file");
	else if (error == EACCES)
		snprintf(hint, size,
		    "user %u, as which the server runs, must be able to read it and to enter its "
		    "folders",
		    (unsigned)geteuid());
}

int secret_open(const char *path, const char *what, struct weir_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0) {
		int error = errno;
		char hint[sizeof(err->hint)];
		secret_hint(path, error, hint, sizeof(hint));
		fail(err, WEIR_ESYS, hint, "%s: cannot read %s: %s", what, path, strerror(error));
		return -1;
	}
	if (check_file(fd, path, what, err) == 0)
		return fd;
	close(fd);
	return -1;
}

static struct weir_slice trimmed(const char *p, size_t n)
{
	/* memchr, since strchr would also match a NUL */
	while (n > 0 && memchr(" \t\r\n", p[n - 1], 4))
		n--;
	return (struct weir_slice){p, n};
}

/* Read the token in `fd`. Reads up to a page, so that a long file is noticed and refused even if it
 * begins with a token. */
static int read_token(int fd, const char *path, const char *what, char *token, struct weir_err *err)
{
	char text[4096];
	int rc = 0;
	ssize_t n = read(fd, text, sizeof(text));
	struct weir_slice found = trimmed(text, n > 0 ? (size_t)n : 0);

	if (n < 0)
		rc = fail(
		    err, WEIR_ESYS, NULL, "%s: cannot read %s: %s", what, path, strerror(errno));
	else if (n == sizeof(text) || !secret_is_strong(found))
		rc = fail(err, WEIR_EINVAL,
		    "create one: (umask 077; head -c 32 /dev/urandom | basenc --base64url > FILE)",
		    "%s: %s does not contain one token of at least 128 random bits (32 hexadecimal "
		    "digits or 22 base64 characters)",
		    what, path);
	else
		snprintf(token, SECRET_TOKEN_MAX + 1, "%.*s", (int)found.n, found.p);
	explicit_bzero(text, sizeof(text));
	return rc;
}

int secret_text(
    const char *path, const char *what, char token[SECRET_TOKEN_MAX + 1], struct weir_err *err)
{
	int fd = secret_open(path, what, err);

	if (fd < 0)
		return err->code;
	int rc = read_token(fd, path, what, token, err);
	close(fd);
	return rc;
}

int secret_read(
    const char *path, const char *what, struct secret_digest *digest, struct weir_err *err)
{
	char token[SECRET_TOKEN_MAX + 1] = "";
	int rc = secret_text(path, what, token, err);

	if (rc == 0 && !secret_digest(token, strlen(token), digest))
		rc = fail(err, WEIR_ESYS, NULL, "%s: SHA-256 is not available", what);
	explicit_bzero(token, sizeof(token));
	return rc;
}
