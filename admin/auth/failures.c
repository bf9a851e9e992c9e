/* SPDX-License-Identifier: MIT */
/* Counts wrong tokens per address. The table is searched linearly, which takes about 10 us per
 * failure. */
#include "failures.h"

#include <netinet/in.h>
#include <string.h>

static bool same(const struct failures_key *a, const struct failures_key *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

struct failures_key failures_key(const struct sockaddr_storage *address)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
	struct failures_key key = {{0}};

	if (address->ss_family == AF_INET) {
		key.bytes[0] = 4;
		memcpy(key.bytes + 1, &v4->sin_addr, 4);
	} else if (address->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
		key.bytes[0] = 4;
		memcpy(key.bytes + 1, v6->sin6_addr.s6_addr + 12, 4);
	} else if (address->ss_family == AF_INET6) {
		key.bytes[0] = 6;
		memcpy(key.bytes + 1, v6->sin6_addr.s6_addr, 8);
	}
	return key;
}

static bool counts(int64_t at_ns, int64_t now_ns)
{
	return at_ns != 0 && now_ns - at_ns < FAILURES_WINDOW_NS;
}

static int count(const struct failures_slot *p, int64_t now_ns)
{
	int n = 0;

	for (int i = 0; i < FAILURES_MAX; i++)
		n += counts(p->at_ns[i], now_ns);
	return n;
}

static int oldest(const struct failures_slot *p)
{
	int k = 0;

	for (int i = 1; i < FAILURES_MAX; i++)
		if (p->at_ns[i] < p->at_ns[k])
			k = i;
	return k;
}

static int64_t newest_ns(const struct failures_slot *p)
{
	int64_t at = 0;

	for (int i = 0; i < FAILURES_MAX; i++)
		at = p->at_ns[i] > at ? p->at_ns[i] : at;
	return at;
}

int64_t failures_wait_ns(const struct failures *f, struct failures_key key, int64_t now_ns)
{
	for (int i = 0; i < FAILURES_SLOTS; i++) {
		const struct failures_slot *p = &f->slot[i];
		if (same(&p->key, &key) && count(p, now_ns) == FAILURES_MAX)
			return p->at_ns[oldest(p)] + FAILURES_WINDOW_NS - now_ns;
	}
	return 0;
}

/* Return the slot of `key`. If there is none, take over the slot of the address with the fewest
 * failures; on a tie, of the one whose last failure is oldest. */
static struct failures_slot *place_of(
    struct failures *f, const struct failures_key *key, int64_t now_ns)
{
	struct failures_slot *best = NULL;
	int least = FAILURES_MAX + 1;

	for (int i = 0; i < FAILURES_SLOTS; i++) {
		struct failures_slot *p = &f->slot[i];
		int n = count(p, now_ns);
		if (same(&p->key, key) && newest_ns(p) != 0)
			return p;
		if (n < least || (n == least && newest_ns(p) < newest_ns(best))) {
			best = p;
			least = n;
		}
	}
	*best = (struct failures_slot){.key = *key};
	return best;
}

int failures_add(struct failures *f, struct failures_key key, int64_t now_ns)
{
	struct failures_slot *p = place_of(f, &key, now_ns);

	p->at_ns[oldest(p)] = now_ns;
	return count(p, now_ns);
}
