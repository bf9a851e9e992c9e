/* SPDX-License-Identifier: MIT */
/* Evicts connections to admit new ones of other I/O threads; see evict.h. */
#include "net/evict.h"

#include "net/accept.h"
#include "net/listen.h"
#include "net/slot.h"

_Static_assert(NET_IO_MAX <= 32, "`asked` has a bit for each I/O thread");

/* Return the other thread whose connection has waited longest, and for at least
 * NET_EVICT_AFTER_NS, or NULL if there is none. Threads that have not replied to `io` yet, or
 * have replied that they have nothing to evict, are skipped. */
static struct net_io *eldest(const struct net_io *io)
{
	const struct net_server *srv = io->srv;
	int64_t best_ns = weir_loop_now_ns(io->loop) - NET_EVICT_AFTER_NS + 1;
	uint32_t none = atomic_load_explicit(&io->evict.none, memory_order_relaxed);
	/* pairs with start_loops */
	int n = atomic_load_explicit(&srv->n_loops, memory_order_acquire);
	struct net_io *best = NULL;

	for (int i = 0; i < n; i++) {
		struct net_io *other = srv->io[i];
		int64_t since_ns =
		    atomic_load_explicit(&other->evict.idle_since_ns, memory_order_relaxed);
		bool asked =
		    atomic_load_explicit(&other->evict.asked, memory_order_relaxed) >> io->index &
		    1;
		if (other != io && !asked && !(none >> other->index & 1) && since_ns < best_ns) {
			best = other;
			best_ns = since_ns;
		}
	}
	return best;
}

bool evict_ask(struct net_io *io, unsigned wanted, bool first)
{
	struct net_io *other;

	if (first)
		atomic_store_explicit(&io->evict.none, 0, memory_order_relaxed);
	other = eldest(io);
	if (!other)
		return false;
	atomic_store_explicit(&io->evict.wanted, wanted, memory_order_relaxed);
	/* Release: the thread that reads the bit also sees `wanted`, and the pointers through which
	 * it wakes our loop. */
	atomic_fetch_or_explicit(&other->evict.asked, 1u << io->index, memory_order_release);
	weir_loop_wake(other->loop);
	return true;
}

void evict_unask(struct net_io *io)
{
	atomic_store_explicit(&io->evict.wanted, 0, memory_order_relaxed);
}

/* Release: the thread that reads the news also sees evict.none. */
static void tell_news(struct net_io *io, enum evict_news news)
{
	atomic_fetch_or_explicit(&io->evict.news, news, memory_order_release);
	weir_loop_wake(io->loop);
}

void evict_retry(struct net_io *io)
{
	tell_news(io, EVICT_CLOSED);
}

/* Evict to free what one thread has requested. `*n` is the number of slots requested so far in this
 * iteration, and is incremented if this request includes a slot. Returns whether everything
 * requested was freed. */
static bool make_one(struct net_io *io, unsigned wanted, int *n)
{
	/* closing a connection that has a slot also frees its descriptor */
	bool made = !(wanted & EVICT_FOR_DESCRIPTOR) || slot_evict(io);

	return (!(wanted & EVICT_FOR_SLOT) || slot_make_free(io, ++*n, true)) && made;
}

/* Evict for all threads that have sent a request. Each gets a reply, whether or not a connection
 * was evicted. */
static void make_room(struct net_io *io)
{
	uint32_t asked = atomic_exchange_explicit(&io->evict.asked, 0, memory_order_acquire);
	int n = 0;

	net_touch(io);
	for (int i = 0; asked != 0; i++, asked >>= 1) {
		struct net_io *other = io->srv->io[i];
		unsigned wanted =
		    asked & 1 ? atomic_load_explicit(&other->evict.wanted, memory_order_relaxed)
			      : 0;
		if (wanted == 0)
			continue;
		if (!make_one(io, wanted, &n))
			atomic_fetch_or_explicit(
			    &other->evict.none, 1u << io->index, memory_order_relaxed);
		/* update what we publish, since the other thread may send another request
		 * immediately */
		evict_tell(io);
		tell_news(other, EVICT_REPLIED);
	}
}

void evict_follow(struct net_io *io)
{
	unsigned news;

	if (WEIR_UNLIKELY(atomic_load_explicit(&io->evict.asked, memory_order_relaxed) != 0))
		make_room(io);
	if (WEIR_LIKELY(atomic_load_explicit(&io->evict.news, memory_order_relaxed) == 0))
		return;
	/* pairs with tell_news */
	news = atomic_exchange_explicit(&io->evict.news, 0, memory_order_acquire);
	if (io->accept.newcomer.fd != -1)
		accept_newcomer(io, news & EVICT_REPLIED);
	else
		listen_resume(io);
}

void evict_tell(struct net_io *io)
{
	int64_t since_ns;

	if (io->srv->n_io == 1)
		return;
	since_ns = slot_idle_since_ns(io, true);
	if (since_ns != atomic_load_explicit(&io->evict.idle_since_ns, memory_order_relaxed))
		atomic_store_explicit(&io->evict.idle_since_ns, since_ns, memory_order_relaxed);
}
