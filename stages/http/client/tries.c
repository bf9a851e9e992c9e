/* SPDX-License-Identifier: MIT */
/*
 * Failures of origins, and what is tried again.
 *
 * A request is sent again only if the client has got nothing, and only if that cannot do the work twice: the
 * connection could not be opened, or the method is idempotent (RFC 9110, 9.2.2) and either nothing of an
 * answer has arrived, or an answer with a status of `retry_on`. It goes to another origin, within the retry
 * budget. If a kept connection turns out to be closed, the request is sent once more over a new one, which
 * is no retry: the origin never got it.
 */
#include <stdio.h>
#include <string.h>

#include "http/client/client.h"

int tries_parse(const struct weir_strings *words, unsigned *set, int *bad)
{
	static const char *const word[] = {"connect", "reset", "502", "503", "504"};

	*set = 0;
	for (int i = 0; i < words->n; i++) {
		unsigned k = 0;
		while (k < sizeof(word) / sizeof(word[0]) && strcmp(words->items[i], word[k]) != 0)
			k++;
		*bad = i;
		if (k == sizeof(word) / sizeof(word[0]))
			return WEIR_EINVAL;
		*set |= 1u << k;
	}
	return 0;
}

static bool may_repeat(const struct exchange *x, enum failure why)
{
	if (x->ask.consumed)
		return false;
	return why == FAILURE_CONNECT ||
	       ((why == FAILURE_EARLY || why == FAILURE_STATUS) && x->idempotent);
}

/* Whether `retry_on` has it. */
static bool is_listed(const struct exchange *x, enum failure why)
{
	unsigned set = x->cl->client->retry_on;

	switch (why) {
	case FAILURE_CONNECT:
		return set & RETRY_CONNECT;
	case FAILURE_EARLY:
		return set & RETRY_RESET;
	default:
		return true; /* looked at by tries_status */
	}
}

static bool may_retry(const struct exchange *x, const struct origin *o, enum failure why)
{
	struct client_loop *cl = x->cl;

	if (!may_repeat(x, why) || !is_listed(x, why) || x->tries >= client_conf(cl)->retries)
		return false;
	const struct origin *other = pick_origin(cl, o);
	return other && other != o && pick_retry(cl);
}

/* For X-Weir-Failed. */
static const char *failure_word(enum failure why)
{
	static const char *const word[] = {[FAILURE_CONNECT] = "connect",
	    [FAILURE_EARLY] = "closed",
	    [FAILURE_BAD] = "answer",
	    [FAILURE_TIME] = "timeout",
	    [FAILURE_SLOW] = "slow"};

	return word[why];
}

static void count_failure(const struct exchange *x, enum failure why)
{
	static const enum client_metric row[] = {[FAILURE_CONNECT] = CLIENT_CONNECT_FAILURES,
	    [FAILURE_EARLY] = CLIENT_BAD,
	    [FAILURE_BAD] = CLIENT_BAD,
	    [FAILURE_TIME] = CLIENT_TIMEOUTS,
	    [FAILURE_SLOW] = CLIENT_SLOW};

	client_count(x->cl, row[why], 1);
}

static enum step again(struct exchange *x, struct origin *o)
{
	x->tries++;
	x->failed = o;
	x->stale = false;
	exchange_start(x);
	return STEP_OVER;
}

enum step tries_failed(struct exchange *x, struct origin *o, enum failure why)
{
	count_failure(x, why);
	x->why = failure_word(why);
	pick_failed(x->cl, o);
	if (!may_retry(x, o, why))
		return exchange_end(x, WEIR_EFAILED, why >= FAILURE_TIME ? 504 : 502);
	return again(x, o);
}

bool tries_status(struct exchange *x, int code)
{
	unsigned set = x->cl->client->retry_on;
	unsigned bit = code == 502 ? RETRY_502 : code == 503 ? RETRY_503 : RETRY_504;

	if (code < 502 || code > 504 || !(set & bit) ||
	    !may_retry(x, x->up->origin, FAILURE_STATUS))
		return false;
	struct origin *o = x->up->origin;
	upstream_close(x->up); /* its body is of no use */
	again(x, o);
	return true;
}

enum step exchange_failed(struct exchange *x, enum failure why)
{
	struct origin *o = x->up->origin;
	bool was_kept = why == FAILURE_EARLY && x->up->requests > 1;

	upstream_close(x->up);
	if (!was_kept)
		return tries_failed(x, o, why);
	client_count(x->cl, CLIENT_STALE, 1);
	upstream_close_idle(x->cl, o);
	x->why = failure_word(why);
	if (x->stale || !may_repeat(x, why))
		return exchange_end(x, WEIR_EFAILED, 502);
	x->stale = true;
	exchange_start(x);
	return STEP_OVER;
}
