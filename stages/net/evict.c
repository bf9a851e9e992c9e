/* SPDX-License-Identifier: MIT */
/* Evicts connections to admit new ones of other I/O threads; see evict.h. */
#include "net/evict.h"

#include "net/accept.h"
#include "net/listen.h"
#include "net/slot.h"

_Static_assert(NET_IO_MAX % 64 == 0, "bitmaps have whole words");

static bool has_bit(const _Atomic uint64_t *map, int i)
{
	return atomic_load_explicit(&map[i / 64], memory_order_relaxed) >> i % 64 & 1;
}

static void set_bit(_Atomic uint64_t *map, int i)
{
	atomic_fetch_or_explicit(&map[i / 64], 1ULL << i % 64, memory_order_relaxed);
}

/* Return the other thread whose connection has waited longest, and for at least
 * NET_EVICT_AFTER_NS, or NULL if there is none. Threads that have not replied to `io` yet, or
 * have replied that they have nothing to evict, are skipped. */
static struct net_io *eldest(const struct net_io *io)
{
	const struct net_server *srv = io->srv;
	int64_t best_ns = weir_loop_now_ns(io->loop) - NET_EVICT_AFTER_NS + 1;
	/* pairs with start_loops */
	int n = atomic_load_explicit(&srv->n_loops, memory_order_acquire);
	struct net_io *best = NULL;

	for (int i = 0; i < n; i++) {
		struct net_io *other = srv->io[i];
		int64_t since_ns =
		    atomic_load_explicit(&other->evict.idle_since_ns, memory_order_relaxed);
		if (since_ns < best_ns && other != io && !has_bit(other->evict.asked, io->index) &&
		    !has_bit(io->evict.none, i)) {
			best = other;
			best_ns = since_ns;
		}
	}
	return best;
}

/* Release: the thread that reads the news also sees what was written before: `asked`, `none`, or
 * `wanted` and the pointers through which it wakes the loop of a requester. */
static void tell_news(struct net_io *io, enum evict_news news)
{
	atomic_fetch_or_explicit(&io->evict.news, news, memory_order_release);
	weir_loop_wake(io->loop);
}

bool evict_ask(struct net_io *io, unsigned wanted, bool first)
{
	struct net_io *other;

	for (int w = 0; first && w < net_io_words(io->srv); w++)
		atomic_store_explicit(&io->evict.none[w], 0, memory_order_relaxed);
	other = eldest(io);
	if (!other)
		return false;
	atomic_store_explicit(&io->evict.wanted, wanted, memory_order_relaxed);
	set_bit(other->evict.asked, io->index);
	tell_news(other, EVICT_ASKED);
	return true;
}

void evict_unask(struct net_io *io)
{
	atomic_store_explicit(&io->evict.wanted, 0, memory_order_relaxed);
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

/* Evict for `other`, which has sent a request. `n` is as in make_one. */
static void make_room(struct net_io *io, struct net_io *other, int *n)
{
	unsigned wanted = atomic_load_explicit(&other->evict.wanted, memory_order_relaxed);

	if (wanted == 0)
		return;
	if (!make_one(io, wanted, n))
		set_bit(other->evict.none, io->index);
	/* update what we publish, since the other thread may send another request immediately */
	evict_tell(io);
	tell_news(other, EVICT_REPLIED);
}

/* Evict for all threads that have sent a request. Each gets a reply, whether or not a connection
 * was evicted. */
static void make_rooms(struct net_io *io)
{
	int n = 0;

	net_touch(io);
	for (int w = 0; w < net_io_words(io->srv); w++) {
		uint64_t asked =
		    atomic_exchange_explicit(&io->evict.asked[w], 0, memory_order_relaxed);
		for (; asked != 0; asked &= asked - 1)
			make_room(io, io->srv->io[w * 64 + __builtin_ctzll(asked)], &n);
	}
}

void evict_follow(struct net_io *io)
{
	unsigned news;

	if (WEIR_LIKELY(atomic_load_explicit(&io->evict.news, memory_order_relaxed) == 0))
		return;
	/* pairs with tell_news */
	news = atomic_exchange_explicit(&io->evict.news, 0, memory_order_acquire);
	if (news & EVICT_ASKED)
		make_rooms(io);
	if (!(news & (EVICT_REPLIED | EVICT_CLOSED)))
		return;
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
