/* SPDX-License-Identifier: MIT */
/* Checks the listen addresses of a configuration; see listen.h. */
#include "listen.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <weir/stage.h>

#include "net/address.h"

/** Maximum number of addresses that are compared; the kernel detects conflicts of further ones. 256
 *  is a guess: a stage has at most 16. */
#define LISTEN_MAX 256

bool listen_listens(const struct weir_stage_spec *stage)
{
	return strcmp(stage->use, "http.server") == 0;
}

const char *listen_text(const struct weir_stage_spec *stage, int i)
{
	const struct weir_node *node = weir_node_get(stage->with, "listen");
	const struct weir_stage_ops *ops = weir_stage_type_find(stage->use);

	if (node && node->kind == WEIR_NODE_LIST)
		return i < node->n && node->item[i]->text ? node->item[i]->text : "";
	if (i > 0)
		return "";
	if (node)
		return node->text;
	const struct weir_knob *row =
	    ops && ops->knobs ? weir_knob_find(ops->knobs, "listen") : NULL;
	return row && row->def ? row->def : "";
}

/** Return whether `listen` stands for all addresses of the host. */
static bool listen_is_all(const char *listen)
{
	return listen[0] == ':' || strncmp(listen, "0.0.0.0:", 8) == 0 ||
	       strncmp(listen, "[::]:", 5) == 0;
}

/** Return whether two hosts are equal. In listen addresses of weir, "localhost" always means
 *  127.0.0.1, which happens to have the same length. */
static bool listen_hosts_equal(const char *a, size_t a_len, const char *b, size_t b_len)
{
	if (a_len == 9 && strncmp(a, "localhost", 9) == 0)
		a = "127.0.0.1";
	if (b_len == 9 && strncmp(b, "localhost", 9) == 0)
		b = "127.0.0.1";
	return a_len == b_len && strncmp(a, b, a_len) == 0;
}

static bool listen_same(const char *a, const char *b)
{
	const char *port_a = strrchr(a, ':'), *port_b = strrchr(b, ':');

	if (!port_a || !port_b || strcmp(port_a, port_b) != 0 || strcmp(port_a, ":0") == 0)
		return false;
	return listen_is_all(b) ||
	       listen_hosts_equal(a, (size_t)(port_a - a), b, (size_t)(port_b - b));
}

const struct weir_stage_spec *listen_clash(const struct weir_spec *spec)
{
	for (int s = 0; s < spec->n_stages; s++) {
		const struct weir_stage_spec *stage = &spec->stages[s];
		const char *listen;
		for (int i = 0; listen_listens(stage) && *(listen = listen_text(stage, i)); i++)
			if (listen_same(spec->admin.listen, listen))
				return stage;
	}
	return NULL;
}

/* ---- one address, two listeners ---- */

/** Return the position at which an address is defined in the YAML: the list entry, the single
 *  value, or the stage if the address is the default. */
static const struct weir_mark *listen_mark(const struct weir_stage_spec *stage, int i)
{
	const struct weir_node *node = weir_node_get(stage->with, "listen");

	if (!node)
		return &stage->mark;
	return node->kind == WEIR_NODE_LIST ? &node->item[i]->mark : &node->mark;
}

/** Return whether two addresses exclude each other: their ports are equal and not 0, and their IP
 *  addresses are equal or one of them is a wildcard. IPv4 and IPv6 do not conflict, since
 *  http.server sets IPV6_V6ONLY. Socket files exclude each other if their paths are equal. */
static bool listen_excludes(const struct address *a, const struct address *b)
{
	if (a->addr.ss_family != b->addr.ss_family)
		return false;
	if (a->addr.ss_family == AF_INET6) {
		const struct sockaddr_in6 *p = (const struct sockaddr_in6 *)(const void *)&a->addr;
		const struct sockaddr_in6 *q = (const struct sockaddr_in6 *)(const void *)&b->addr;
		bool same = p->sin6_scope_id == q->sin6_scope_id &&
			    IN6_ARE_ADDR_EQUAL(&p->sin6_addr, &q->sin6_addr);
		return p->sin6_port == q->sin6_port && p->sin6_port != 0 &&
		       (same || IN6_IS_ADDR_UNSPECIFIED(&p->sin6_addr) ||
			   IN6_IS_ADDR_UNSPECIFIED(&q->sin6_addr));
	}
	if (address_file(a))
		return strcmp(address_file(a), address_file(b)) == 0;
	const struct sockaddr_in *p = (const struct sockaddr_in *)(const void *)&a->addr;
	const struct sockaddr_in *q = (const struct sockaddr_in *)(const void *)&b->addr;
	return p->sin_port == q->sin_port && p->sin_port != 0 &&
	       (p->sin_addr.s_addr == INADDR_ANY || q->sin_addr.s_addr == INADDR_ANY ||
		   p->sin_addr.s_addr == q->sin_addr.s_addr);
}

/** A parsed address and the entry in which it is defined. */
struct listener {
	const struct weir_stage_spec *stage;
	int entry;
	struct address address;
};

static void listen_twice(
    const struct listener *now, const struct listener *before, struct weir_errs *errs)
{
	const char *text = listen_text(now->stage, now->entry);
	const char *other = listen_text(before->stage, before->entry);
	const struct weir_mark *mark = listen_mark(before->stage, before->entry);

	weir_errs_add(errs, listen_mark(now->stage, now->entry), WEIR_EBUSY,
	    "choose another address or port for one of them",
	    "stage '%.60s' listens on %.60s, as stage '%.60s' does in line %d (%.60s)",
	    now->stage->name, text, before->stage->name, mark->line, other);
}

void listen_check(const struct weir_spec *spec, struct weir_errs *errs)
{
	struct listener all[LISTEN_MAX];
	int n = 0;

	for (int s = 0; s < spec->n_stages; s++) {
		const struct weir_stage_spec *stage = &spec->stages[s];
		if (!listen_listens(stage))
			continue;
		for (int i = 0; *listen_text(stage, i) && n < LISTEN_MAX; i++) {
			struct listener *l = &all[n];
			struct weir_err err;
			*l = (struct listener){.stage = stage, .entry = i};
			if (address_parse(listen_text(stage, i), &l->address, &err) != 0)
				continue; /* the stage itself will report the error */
			for (int k = 0; k < n; k++)
				if (listen_excludes(&l->address, &all[k].address)) {
					listen_twice(l, &all[k], errs);
					break;
				}
			n++;
		}
	}
}
