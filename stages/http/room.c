/* SPDX-License-Identifier: MIT */
/* Room for newcomers of other I/O threads; see room.h. */
#include "http/room.h"

#include "http/accept.h"
#include "http/limit.h"
#include "http/listen.h"

_Static_assert(SERVER_IO_MAX <= 32, "room_asked has a bit for each I/O thread");

/* The one, not `io`, with the connection that has waited longest, for a moment at least, that `io` waits for no answer of, and that
 * has not answered that it has none. */
static struct http_io *eldest(const struct http_io *io)
{
	const struct http_server *srv = io->srv;
	int64_t best_ns = weir_loop_now_ns(io->loop) - LIMIT_EVICT_AFTER_NS + 1;
	uint32_t none = atomic_load_explicit(&io->room_none, memory_order_relaxed);
	/* Partner: start_loops. */
	int n = atomic_load_explicit(&srv->n_loops, memory_order_acquire);
	struct http_io *best = NULL;

	for (int i = 0; i < n; i++) {
		struct http_io *other = srv->io[i];
		int64_t since_ns =
		    atomic_load_explicit(&other->idle_since_ns, memory_order_relaxed);
		bool asked =
		    atomic_load_explicit(&other->room_asked, memory_order_relaxed) >> io->index & 1;
		if (other != io && !asked && !(none >> other->index & 1) && since_ns < best_ns) {
			best = other;
			best_ns = since_ns;
		}
	}
	return best;
}

bool room_ask(struct http_io *io, unsigned wanted, bool first)
{
	struct http_io *other;

	if (first)
		atomic_store_explicit(&io->room_none, 0, memory_order_relaxed);
	other = eldest(io);
	if (!other)
		return false;
	atomic_store_explicit(&io->room_wanted, wanted, memory_order_relaxed);
	/* Release: who takes it sees what is wanted, and wakes our loop, which we have made. */
	atomic_fetch_or_explicit(&other->room_asked, 1u << io->index, memory_order_release);
	weir_loop_wake(other->loop);
	return true;
}

void room_unask(struct http_io *io)
{
	atomic_store_explicit(&io->room_wanted, 0, memory_order_relaxed);
}

/* Release: who hears of it sees whether there was none. */
static void tell_news(struct http_io *io, enum room_news news)
{
	atomic_fetch_or_explicit(&io->room_news, news, memory_order_release);
	weir_loop_wake(io->loop);
}

void room_retry(struct http_io *io)
{
	tell_news(io, ROOM_GONE);
}

/* For one who wants it; `n` places have been asked for so far, with his. Returns whether there was what is wanted. */
static bool make_one(struct http_io *io, unsigned wanted, int *n)
{
	/* Who has a place gives up a descriptor, too. */
	bool made = !(wanted & ROOM_DESCRIPTOR) || limit_make_room(io);

	return (!(wanted & ROOM_PLACE) || limit_make_places(io, ++*n, true)) && made;
}

/* Whether or not some is made the asker learns that he has been heard, and goes on. */
static void make_room(struct http_io *io)
{
	uint32_t asked = atomic_exchange_explicit(&io->room_asked, 0, memory_order_acquire);
	int n = 0;

	io_touch(io);
	for (int i = 0; asked != 0; i++, asked >>= 1) {
		struct http_io *other = io->srv->io[i];
		unsigned wanted =
		    asked & 1 ? atomic_load_explicit(&other->room_wanted, memory_order_relaxed) : 0;
		if (wanted == 0)
			continue;
		if (!make_one(io, wanted, &n))
			atomic_fetch_or_explicit(
			    &other->room_none, 1u << io->index, memory_order_relaxed);
		room_tell(io); /* he may ask again at once */
		tell_news(other, ROOM_ANSWERED);
	}
}

void room_follow(struct http_io *io)
{
	unsigned news;

	if (WEIR_UNLIKELY(atomic_load_explicit(&io->room_asked, memory_order_relaxed) != 0))
		make_room(io);
	if (WEIR_LIKELY(atomic_load_explicit(&io->room_news, memory_order_relaxed) == 0))
		return;
	/* Partner: tell_news. */
	news = atomic_exchange_explicit(&io->room_news, 0, memory_order_acquire);
	if (io->newcomer.fd != -1)
		accept_newcomer(io, news & ROOM_ANSWERED);
	else
		listen_resume(io);
}

void room_tell(struct http_io *io)
{
	int64_t since_ns;

	if (io->srv->n_io == 1)
		return;
	since_ns = limit_idle_since_ns(io, true);
	if (since_ns != atomic_load_explicit(&io->idle_since_ns, memory_order_relaxed))
		atomic_store_explicit(&io->idle_since_ns, since_ns, memory_order_relaxed);
}
