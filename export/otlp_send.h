/* SPDX-License-Identifier: MIT */
/* POSTs to one address by libcurl, or by nobody where weir was built without it. One thread at a time. */
#ifndef WEIR_EXPORT_OTLP_SEND_H
#define WEIR_EXPORT_OTLP_SEND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

struct sender;

/** For `url`, http:// or https://. A POST under way is given up when *give_up_ns (CLOCK_MONOTONIC, 0: never) has come.
 *  0, WEIR_EINVAL, WEIR_ENOMEM with the sentence in `err`. */
int sender_new(const char *url, const _Atomic int64_t *give_up_ns, struct sender **sender,
    struct weir_err *err);

enum sender_result {
	SENDER_SENT,    /* 2xx */
	SENDER_LATER,   /* the collector is not there, or has no time: it may be tried again */
	SENDER_REFUSED, /* it will never take that */
};

/** Send `body`, JSON; waits 5 s at most. What is not sent has a sentence in why[size]. */
enum sender_result sender_post(struct sender *sender, const char *body, char *why, size_t size);

/** NULL is allowed. */
void sender_free(struct sender *sender);

#endif
