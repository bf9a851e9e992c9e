/* SPDX-License-Identifier: MIT */
/* Files that hold a token, and digests. */
#include "admin/auth/secret.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cunit_main.h"

#define HEX32 "00112233445566778899aabbccddeeff"

static char path[] = "/tmp/weir-test-XXXXXX";

static void put_bytes(const char *p, size_t n, mode_t mode)
{
	unlink(path);
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(write(fd, p, n), (ssize_t)n);
	CU_ASSERT_EQUAL(fchmod(fd, mode), 0);
	close(fd);
}

static void put(const char *text, mode_t mode)
{
	put_bytes(text, strlen(text), mode);
}

static int take(struct secret_digest *digest, struct weir_err *err)
{
	*err = (struct weir_err){0};
	return secret_read(path, "token 'ops'", digest, err);
}

/* FIPS 180-4: the digest of "abc". */
static void test_digest(void)
{
	static const uint8_t abc[] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41,
	    0x40, 0xde, 0x5d, 0xae, 0x22, 0x23, 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c,
	    0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad};
	struct secret_digest a, b;

	CU_ASSERT_TRUE(secret_digest("abc", 3, &a));
	CU_ASSERT_EQUAL(memcmp(a.bytes, abc, sizeof(abc)), 0);
	b = a;
	CU_ASSERT_EQUAL(secret_equal(&a, &b), 1);
	for (size_t i = 0; i < sizeof(b.bytes); i++) {
		for (int bit = 0; bit < 8; bit++) {
			b = a;
			b.bytes[i] ^= (uint8_t)(1 << bit);
			CU_ASSERT_EQUAL(secret_equal(&a, &b), 0);
		}
	}
}

static bool strong(const char *text)
{
	return secret_is_strong((struct weir_slice){text, strlen(text)});
}

static void test_strength(void)
{
	char longest[SECRET_TOKEN_MAX + 2];

	CU_ASSERT_TRUE(strong(HEX32));
	CU_ASSERT_TRUE(strong("0123456789abcdefghijkl"));
	CU_ASSERT_TRUE(strong("abcdefgh-._~+/ABCDEFGH=="));
	CU_ASSERT_FALSE(strong(""));
	CU_ASSERT_FALSE(strong("0011223344556677889abcdef")); /* hexadecimal and too short */
	CU_ASSERT_FALSE(strong("0123456789abcdefghijk"));     /* 21 */
	CU_ASSERT_FALSE(strong("00000000000000000000000000000000"));
	CU_ASSERT_FALSE(strong("0101010101010101010101010101010101012345"));
	CU_ASSERT_FALSE(strong("0123456789abcdef ghijklmn")); /* two words */
	CU_ASSERT_FALSE(strong("0123456789abcdef\tghijklmn"));
	CU_ASSERT_FALSE(strong("0123456789abcdef\"ghijklmn"));
	CU_ASSERT_FALSE(secret_is_strong((struct weir_slice){HEX32 "\0", 33}));
	for (size_t i = 0; i < sizeof(longest) - 1; i++)
		longest[i] = (char)('a' + i % 26);
	longest[sizeof(longest) - 1] = '\0';
	CU_ASSERT_FALSE(strong(longest));
	longest[SECRET_TOKEN_MAX] = '\0';
	CU_ASSERT_TRUE(strong(longest));
}

static void test_read(void)
{
	static const char *const same[] = {HEX32, HEX32 "\n", HEX32 "\r\n", HEX32 " \t\n\n"};
	struct secret_digest want, got;
	struct weir_err err;

	CU_ASSERT_TRUE(secret_digest(HEX32, 32, &want));
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		put(same[i], i % 2 ? 0400 : 0600);
		CU_ASSERT_EQUAL(take(&got, &err), 0);
		CU_ASSERT_EQUAL(secret_equal(&want, &got), 1);
	}
}

/* An error message contains nothing of the file's contents. */
static void test_refused(void)
{
	static const char *const bad[] = {
	    "", "\n", HEX32 "\n" HEX32 "\n", " " HEX32, "# a token\n" HEX32, "squeamish-ossifrage"};
	struct secret_digest got;
	struct weir_err err;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put(bad[i], 0600);
		CU_ASSERT_EQUAL(take(&got, &err), WEIR_EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "token 'ops'"));
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
		CU_ASSERT_PTR_NULL(strstr(err.text, HEX32));
		CU_ASSERT_PTR_NULL(strstr(err.text, "ossifrage"));
	}
	put_bytes(HEX32 "\0\n", 34, 0600); /* found by fuzz_gate: NULs were skipped like blanks */
	CU_ASSERT_EQUAL(take(&got, &err), WEIR_EINVAL);
	char *page = malloc(9001);
	CU_ASSERT_PTR_NOT_NULL_FATAL(page);
	memset(page, ' ', 9000);
	memcpy(page, HEX32, 32);
	memcpy(page + 8968, HEX32, 32);
	page[9000] = '\0';
	put(page, 0600); /* the token of its first page is not accepted */
	CU_ASSERT_EQUAL(take(&got, &err), WEIR_EINVAL);
	free(page);
}

static void test_modes(void)
{
	static const mode_t bad[] = {0640, 0604, 0660, 0606, 0644, 0601, 0610};
	struct secret_digest got;
	struct weir_err err;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put(HEX32, bad[i]);
		CU_ASSERT_EQUAL(take(&got, &err), WEIR_EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "users other than its owner"));
		CU_ASSERT_PTR_NOT_NULL(strstr(err.hint, "chmod 600"));
	}
	unlink(path);
	CU_ASSERT_EQUAL(take(&got, &err), WEIR_ESYS);
	CU_ASSERT_EQUAL(mkfifo(path, 0600), 0); /* opening a FIFO does not wait for a writer */
	CU_ASSERT_EQUAL(take(&got, &err), WEIR_EINVAL);
	unlink(path);
	CU_ASSERT_EQUAL(mkdir(path, 0700), 0);
	CU_ASSERT_EQUAL(take(&got, &err), WEIR_EINVAL);
	rmdir(path);
}

static void test_owner(void)
{
	struct secret_digest got;
	struct weir_err err;

	put(HEX32, 0600);
	if (chown(path, 12345, 12345) == 0) { /* succeeds only as root */
		CU_ASSERT_EQUAL(take(&got, &err), WEIR_EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "12345"));
	}
	unlink(path);
}

static void test_random(void)
{
	uint8_t a[32] = {0}, b[32] = {0};

	CU_ASSERT_TRUE(secret_random(a, sizeof(a)));
	CU_ASSERT_TRUE(secret_random(b, sizeof(b)));
	CU_ASSERT_NOT_EQUAL(memcmp(a, b, sizeof(a)), 0);
}

static void test_begin(void)
{
	int fd = mkstemp(path);

	CU_ASSERT_FATAL(fd >= 0);
	close(fd);
}

CUNIT_MAIN("secret", {"begin", test_begin}, {"digests", test_digest}, {"strength", test_strength},
    {"a token in a file", test_read}, {"no token in a file", test_refused},
    {"files of others", test_modes}, {"whose file", test_owner}, {"random", test_random})
