/* SPDX-License-Identifier: MIT */
/*
 * What responses of a class are expected to be: a status, a media type, a body. A complete response that
 * differs is the error "wrong". Pure functions; any thread.
 */
#ifndef WEIR_LOAD_EXPECT_H
#define WEIR_LOAD_EXPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

/** Longest media type. */
#define EXPECT_TYPE_MAX 63

struct load_expect {
	uint16_t status;                /* 0: any below 400 */
	bool hashed;                    /* the body has this hash */
	uint64_t hash;                  /* XXH64 with seed 0, as xxhsum -H64 prints it */
	char type[EXPECT_TYPE_MAX + 1]; /* in lower case, without parameters; "" for any */
};

/** Parse "status=200,type=text/html,hash=44bc2cf5ad770999", each at most once. Returns 0, or WEIR_EINVAL
 * with the reason in err->text. */
int expect_parse(const char *text, struct load_expect *e, struct weir_err *err);

/** Write the canonical form of `e` to buf[size]; 120 bytes are enough. "" if nothing is expected. */
void expect_text(const struct load_expect *e, char *buf, size_t size);

/** Whether the value of a Content-Type field, n bytes of which are in `value`, is the media type of `e`. */
bool expect_type(const struct load_expect *e, const char *value, size_t n);

#endif
