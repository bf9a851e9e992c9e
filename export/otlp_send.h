/* SPDX-License-Identifier: MIT */
/* Sends POST requests to one URL with libcurl. If weir was built with WEIR_OTLP=off, all functions
 * that can fail do so. Used by one thread at a time, except sender_wake. */
#ifndef WEIR_EXPORT_OTLP_SEND_H
#define WEIR_EXPORT_OTLP_SEND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

struct sender;

/** Check that `url` is http:// or https:// and that weir was built with the export. Returns 0, or
 * WEIR_EINVAL with a message in `err`. */
int sender_check(const char *url, struct weir_err *err);

/** Create a sender for `url`, http:// or https://. At *give_up_ns (CLOCK_MONOTONIC; 0 means never)
 * a POST in progress is aborted, and after that time no POST begins. Returns 0, or WEIR_EINVAL or
 * WEIR_ENOMEM with a message in `err`. */
int sender_new(const char *url, const _Atomic int64_t *give_up_ns, struct sender **sender,
    struct weir_err *err);

enum sender_result {
	SENDER_SENT,    /* 2xx */
	SENDER_LATER,   /* the collector is unreachable or overloaded; send the body again later */
	SENDER_REFUSED, /* the collector will never accept the body */
};

/** Send `body`, which is JSON. Waits at most 5 s. On failure the reason is stored in why[size]. */
enum sender_result sender_post(struct sender *sender, const char *body, char *why, size_t size);

/** Make a POST in progress read *give_up_ns, which has been changed, again. May be called by any
 * thread. */
void sender_wake(struct sender *sender);

/** Free the sender. NULL is allowed. */
void sender_free(struct sender *sender);

#endif
