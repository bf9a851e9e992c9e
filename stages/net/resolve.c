/* SPDX-License-Identifier: MIT */
/*
 * Keeps addresses of names; see resolve.h.
 *
 * Names are in a hash table and in a list, the least recently used last. A name is pinned while servers are
 * asked for it or its callers are told; other names give way when there are too many.
 */
#include "net/resolve.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <weir/annotate.h>

#include "net/resolve_ask.h"
#include "net/resolve_name.h"

#define NS_PER_S 1000000000LL
/* Longest time for which a failure is kept. */
#define FAILED_NS NS_PER_S

struct name {
	struct resolver *resolver;
	struct name *chain;         /* in its bucket */
	struct name *newer, *older; /* in the list */
	struct resolve_query *waiting;
	uint64_t hash;
	int pins;
	bool asked;       /* servers are being asked */
	bool known;       /* `answer` is set */
	int64_t again_ns; /* do not ask again before, if `answer` is stale */
	int64_t good_ns;  /* end of the TTL of the addresses, if the answer is RESOLVE_OK */
	struct resolve_answer answer;
	struct net_address address[RESOLVE_ADDRESSES_MAX];
	char text[];
};

struct resolver {
	struct weir_loop *loop;
	struct resolve_conf conf;
	char *file, *servers; /* of `conf` */
	struct asker *asker;
	struct name **bucket; /* `mask` + 1, a power of two */
	uint64_t mask, seed;
	struct name *newest, *oldest;
	int n_names;
	bool ending;
	struct resolve_counts counts;
	struct resolve_answer other; /* of what is no name */
	struct net_address literal[2];
};

/* ---- names ---- */

/* FNV-1a with a seed, and a final mix. */
static uint64_t hash_of(const struct resolver *r, const char *text)
{
	uint64_t h = r->seed;

	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * 0x100000001b3;
	return h ^ h >> 32;
}

static struct name **find(struct resolver *r, uint64_t hash, const char *text)
{
	struct name **at = &r->bucket[hash & r->mask];

	while (*at && ((*at)->hash != hash || strcmp((*at)->text, text) != 0))
		at = &(*at)->chain;
	return at;
}

static void leave_list(struct resolver *r, struct name *e)
{
	*(e->newer ? &e->newer->older : &r->newest) = e->older;
	*(e->older ? &e->older->newer : &r->oldest) = e->newer;
}

static void join_list(struct resolver *r, struct name *e)
{
	e->newer = NULL;
	e->older = r->newest;
	*(e->older ? &e->older->newer : &r->oldest) = e;
	r->newest = e;
}

static void drop(struct resolver *r, struct name *e)
{
	struct name **at = find(r, e->hash, e->text);

	*at = e->chain;
	leave_list(r, e);
	r->n_names--;
	free(e);
}

/* Make room for a name. Returns false if all names are pinned. */
static bool make_room(struct resolver *r)
{
	struct name *e = r->oldest;

	if (r->n_names < r->conf.max_names)
		return true;
	while (e && e->pins > 0)
		e = e->newer;
	if (!e)
		return false;
	drop(r, e);
	r->counts.evicted++;
	return true;
}

static struct name *add(struct resolver *r, uint64_t hash, const char *text)
{
	const size_t n = strlen(text) + 1;
	struct name *e = make_room(r) ? calloc(1, sizeof(*e) + n) : NULL;

	if (!e)
		return NULL;
	memcpy(e->text, text, n);
	e->resolver = r;
	e->hash = hash;
	*find(r, hash, text) = e;
	join_list(r, e);
	r->n_names++;
	return e;
}

/* ---- answers ---- */

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
	return value < least ? least : value > most ? most : value;
}

static void store(struct resolver *r, struct name *e, const struct ask_result *result)
{
	const int64_t now_ns = weir_loop_now_ns(r->loop);
	const int64_t failed_ns = r->conf.negative_ns < FAILED_NS ? r->conf.negative_ns : FAILED_NS;
	struct resolve_answer *a = &e->answer;

	if (result->status > RESOLVE_NONE && e->known && a->status == RESOLVE_OK &&
	    now_ns < e->good_ns + r->conf.stale_ns) {
		a->stale = now_ns >= e->good_ns;
		e->again_ns = now_ns + failed_ns;
		return;
	}
	e->known = true;
	*a = (struct resolve_answer){.status = result->status, .why = result->why};
	if (result->status == RESOLVE_OK) {
		a->n = result->n;
		a->address = e->address;
		memcpy(e->address, result->address, (size_t)result->n * sizeof(e->address[0]));
		a->until_ns = now_ns + clamp(result->ttl_s * NS_PER_S, r->conf.ttl_min_ns,
					   r->conf.ttl_max_ns);
		e->good_ns = a->until_ns;
	} else {
		a->until_ns =
		    now_ns + (result->status == RESOLVE_NONE ? r->conf.negative_ns : failed_ns);
	}
}

/* Tell `list`, whose queries the callbacks may cancel. */
static void tell(struct resolve_query **list, const struct resolve_answer *answer)
{
	struct resolve_query *q;

	while ((q = *list)) {
		resolve_cancel(q);
		q->done(q, answer);
	}
}

static void found(void *about, const struct ask_result *result)
{
	struct name *e = about;
	struct resolver *r = e->resolver;
	struct resolve_query *list = e->waiting;

	if (list)
		list->prev = &list;
	e->waiting = NULL;
	e->asked = false;
	r->counts.negative += result->status == RESOLVE_NONE;
	r->counts.failed += result->status > RESOLVE_NONE;
	store(r, e, result);
	tell(&list, &e->answer);
	e->pins--;
}

/* Ask servers; perhaps the answer is there afterwards. */
static void ask_for(struct resolver *r, struct name *e)
{
	e->asked = true;
	e->pins++;
	r->counts.asked++;
	ask(r->asker, e->text, e);
}

/* The answer of a name that is kept and not too old. A stale one makes servers be asked again. */
static const struct resolve_answer *kept(struct resolver *r, struct name *e)
{
	const int64_t now_ns = weir_loop_now_ns(r->loop);

	if (!e->known)
		return NULL;
	if (now_ns < e->answer.until_ns) {
		r->counts.kept++;
		return &e->answer;
	}
	if (e->answer.status != RESOLVE_OK || now_ns >= e->good_ns + r->conf.stale_ns)
		return NULL;
	if (!e->asked && now_ns >= e->again_ns)
		ask_for(r, e);
	e->answer.stale = e->answer.status == RESOLVE_OK && now_ns >= e->answer.until_ns;
	r->counts.stale += e->answer.stale;
	return &e->answer;
}

/* ---- callers ---- */

static const struct resolve_answer *no_name(
    struct resolver *r, enum resolve_status status, const char *why)
{
	r->other = (struct resolve_answer){.status = status, .why = why};
	return &r->other;
}

static const struct resolve_answer *literal(struct resolver *r, int n)
{
	r->other = (struct resolve_answer){
	    .status = RESOLVE_OK, .n = n, .address = r->literal, .until_ns = INT64_MAX, .why = ""};
	return &r->other;
}

/* Names of this machine itself are not asked for (RFC 6761, 6.3). */
static const struct resolve_answer *localhost(struct resolver *r)
{
	net_address_read((struct weir_slice){"127.0.0.1", 9}, &r->literal[0]);
	net_address_read((struct weir_slice){"::1", 3}, &r->literal[1]);
	return literal(r, 2);
}

static void wait_for(struct name *e, struct resolve_query *q)
{
	q->next = e->waiting;
	q->prev = &e->waiting;
	if (q->next)
		q->next->prev = &q->next;
	e->waiting = q;
}

static const struct resolve_answer *resolve_host(
    struct resolver *r, const char *text, struct resolve_query *q)
{
	const uint64_t hash = hash_of(r, text);
	struct name *e = *find(r, hash, text);
	const struct resolve_answer *a;

	if (e) {
		leave_list(r, e);
		join_list(r, e);
		a = kept(r, e);
		if (a)
			return a;
	}
	if (asker_look(r->asker)) {
		r->counts.reread++;
		resolve_forget(r, NULL);
		e = *find(r, hash, text);
	}
	if (!e && !(e = add(r, hash, text)))
		return no_name(r, RESOLVE_NO_MEMORY, "too many names, or out of memory");
	if (e->asked) {
		r->counts.joined++;
	} else {
		e->known = e->known && e->answer.status == RESOLVE_OK;
		ask_for(r, e);
		if (!e->asked) /* answered at once, as from /etc/hosts */
			return &e->answer;
	}
	wait_for(e, q);
	return NULL;
}

const struct resolve_answer *resolve_name(
    struct resolver *r, const char *name, struct resolve_query *q)
{
	char text[RESOLVE_NAME_MAX + 1];

	if (r->ending)
		return no_name(r, RESOLVE_CANCELLED, "the server is stopping");
	switch (name_examine(name, text, &r->literal[0])) {
	case NAME_BAD:
		return no_name(r, RESOLVE_BAD_NAME, "it is not a host name");
	case NAME_ADDRESS:
		return literal(r, 1);
	case NAME_LOCALHOST:
		return localhost(r);
	default:
		return resolve_host(r, text, q);
	}
}

void resolve_cancel(struct resolve_query *q)
{
	if (!q->prev)
		return;
	*q->prev = q->next;
	if (q->next)
		q->next->prev = q->prev;
	q->prev = NULL;
}

static void forget(struct resolver *r, struct name *e)
{
	if (e->pins == 0)
		drop(r, e);
	else
		e->answer.until_ns = e->good_ns = INT64_MIN / 2;
}

void resolve_forget(struct resolver *r, const char *name)
{
	char text[RESOLVE_NAME_MAX + 1];
	struct net_address ignored;
	struct name *e, *newer;

	if (name && name_examine(name, text, &ignored) != NAME_HOST)
		return;
	if (name && (e = *find(r, hash_of(r, text), text)))
		forget(r, e);
	for (e = name ? NULL : r->oldest; e; e = newer) {
		newer = e->newer;
		forget(r, e);
	}
}

const struct resolve_counts *resolve_counts(const struct resolver *r)
{
	return &r->counts;
}

socklen_t resolve_socket_address(
    const struct net_address *a, uint16_t port, struct sockaddr_storage *out)
{
	struct sockaddr_in *four = (struct sockaddr_in *)(void *)out;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)out;

	memset(out, 0, sizeof(*out));
	memcpy(&six->sin6_addr, a->bytes, sizeof(a->bytes));
	if (!IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
		six->sin6_family = AF_INET6;
		six->sin6_port = htons(port);
		return sizeof(*six);
	}
	memset(out, 0, sizeof(*out));
	four->sin_family = AF_INET;
	four->sin_port = htons(port);
	memcpy(&four->sin_addr, a->bytes + 12, 4);
	return sizeof(*four);
}

/* ---- lifecycle ---- */

static int64_t or_default(int64_t value, int64_t def)
{
	return value > 0 ? value : def;
}

static void complete(struct resolve_conf *conf)
{
	if (!conf->file)
		conf->file = "/etc/resolv.conf";
	conf->ttl_min_ns = or_default(conf->ttl_min_ns, NS_PER_S);
	conf->ttl_max_ns = or_default(conf->ttl_max_ns, 3600 * NS_PER_S);
	conf->negative_ns = or_default(conf->negative_ns, 5 * NS_PER_S);
	conf->timeout_ns = or_default(conf->timeout_ns, 2 * NS_PER_S);
	conf->tries = (int)or_default(conf->tries, 2);
	conf->max_names = (int)or_default(conf->max_names, 1024);
}

/* Copy the texts of the configuration. */
static bool copy_conf(struct resolver *r, const struct resolve_conf *from)
{
	const bool named = from->servers && *from->servers;

	r->conf = *from;
	complete(&r->conf);
	r->conf.file = r->file = strdup(r->conf.file);
	r->conf.servers = r->servers = named ? strdup(from->servers) : NULL;
	return r->file && (r->servers || !named);
}

int resolver_new(struct weir_loop *loop, const struct resolve_conf *conf, struct resolver **out,
    struct weir_err *err)
{
	struct resolver *r = calloc(1, sizeof(*r));
	int rc = WEIR_ENOMEM;

	err->code = WEIR_ENOMEM;
	if (!r)
		return rc;
	r->loop = loop;
	if (copy_conf(r, conf)) {
		for (r->mask = 15; r->mask < (uint64_t)r->conf.max_names; r->mask = 2 * r->mask + 1)
			;
		r->bucket = calloc(r->mask + 1, sizeof(struct name *));
	}
	if (r->bucket && getrandom(&r->seed, sizeof(r->seed), 0) == sizeof(r->seed))
		rc = asker_new(loop, &r->conf, found, &r->asker, err);
	if (rc == 0)
		*out = r;
	else
		resolver_free(r, false);
	return rc;
}

void resolver_free(struct resolver *r, bool loop_gone)
{
	static const struct resolve_answer cancelled = {
	    .status = RESOLVE_CANCELLED, .why = "the server is stopping"};

	if (!r)
		return;
	r->ending = true;
	for (struct name *e = r->oldest; e; e = e->newer)
		tell(&e->waiting, &cancelled);
	asker_free(r->asker, loop_gone);
	for (struct name *e = r->oldest, *next; e; e = next) {
		next = e->newer;
		drop(r, e);
	}
	free(r->bucket);
	free(r->file);
	free(r->servers);
	free(r);
}
