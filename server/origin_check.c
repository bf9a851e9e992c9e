/* SPDX-License-Identifier: MIT */
/*
 * Finds loops of requests through origins; see origin_check.h.
 *
 *   web --link--> origin --127.0.0.1:8080--> web      is a loop
 *   web --link--> origin --127.0.0.1:8081--> inner --link--> files      is none
 */
#include "origin_check.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/stage.h>

#include "listen.h"
#include "net/address.h"

static bool is_client(const struct weir_stage_spec *stage)
{
	return strcmp(stage->use, "http.client") == 0;
}

/* Entry `i` of `origins:` as written; NULL after the last one. */
static const struct weir_node *origin_node(const struct weir_stage_spec *stage, int i)
{
	const struct weir_node *node = weir_node_get(stage->with, "origins");

	if (!node)
		return NULL;
	if (node->kind == WEIR_NODE_LIST)
		return i < node->n && node->item[i]->text ? node->item[i] : NULL;
	return i == 0 && node->text ? node : NULL;
}

/* ---- addresses ---- */

static bool equal_hosts(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET6)
		return IN6_ARE_ADDR_EQUAL(
		    &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
		    &((const struct sockaddr_in6 *)(const void *)b)->sin6_addr);
	return a->sa_family == AF_INET &&
	       ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr ==
		   ((const struct sockaddr_in *)(const void *)b)->sin_addr.s_addr;
}

static bool is_any(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(
		    &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
	return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr == INADDR_ANY;
}

static bool is_loopback(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(
		    &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
	return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
}

/* Whether `a` is an address of this machine. To connect to 0.0.0.0 is to connect to 127.0.0.1. */
static bool is_own(const struct sockaddr *a)
{
	struct ifaddrs *all, *i;

	if (is_any(a) || is_loopback(a))
		return true;
	if (getifaddrs(&all) != 0)
		return false;
	for (i = all; i; i = i->ifa_next)
		if (i->ifa_addr && equal_hosts(i->ifa_addr, a))
			break;
	freeifaddrs(all);
	return i != NULL;
}

static int port_of(const struct address *a)
{
	return a->addr.ss_family == AF_INET6
		   ? ((const struct sockaddr_in6 *)(const void *)&a->addr)->sin6_port
		   : ((const struct sockaddr_in *)(const void *)&a->addr)->sin_port;
}

/* Whether a connection to `origin` arrives at `listen`. */
static bool arrives(const struct address *origin, const struct address *listen)
{
	const struct sockaddr *o = (const struct sockaddr *)&origin->addr;
	const struct sockaddr *l = (const struct sockaddr *)&listen->addr;

	if (address_file(origin) || address_file(listen))
		return address_file(origin) && address_file(listen) &&
		       strcmp(address_file(origin), address_file(listen)) == 0;
	if (port_of(origin) != port_of(listen) || port_of(listen) == 0 ||
	    o->sa_family != l->sa_family)
		return false;
	if (is_any(l))
		return is_own(o);
	return equal_hosts(o, l) || (is_any(o) && is_loopback(l));
}

/* Parse an origin. Returns how many addresses of this machine it may be: 0 if it is a name of others, or bad,
 * which the stage reports. */
static int parse(const char *text, struct address out[2])
{
	char host[300], name[256] = "", numeric[320];
	const char *colon, *port = strncmp(text, "https://", 8) == 0 ? "443" : "80";
	struct weir_err err;
	size_t n;

	if (strncmp(text, "unix:", 5) == 0)
		return address_parse(text, &out[0], &err) == 0;
	text = strncmp(text, "https://", 8) == 0 ? text + 8 : text;
	text = strncmp(text, "http://", 7) == 0 ? text + 7 : text;
	n = strcspn(text, "/");
	if (n == 0 || n >= sizeof(host))
		return 0;
	snprintf(host, sizeof(host), "%.*s", (int)n, text);
	colon = strrchr(host, ':');
	if (colon && !strchr(colon, ']')) {
		port = text + (colon - host) + 1;
		host[colon - host] = '\0';
	}
	gethostname(name, sizeof(name) - 1);
	if (strcasecmp(host, "localhost") == 0 || strcasecmp(host, name) == 0) {
		snprintf(numeric, sizeof(numeric), "127.0.0.1:%.*s", (int)strcspn(port, "/"), port);
		n = address_parse(numeric, &out[0], &err) == 0;
		snprintf(numeric, sizeof(numeric), "[::1]:%.*s", (int)strcspn(port, "/"), port);
		return (int)n + (address_parse(numeric, &out[n], &err) == 0);
	}
	if (host[strspn(host, "0123456789.")] != '\0' && host[0] != '[')
		return 0; /* a name */
	snprintf(numeric, sizeof(numeric), "%s:%.*s", host, (int)strcspn(port, "/"), port);
	return address_parse(numeric, &out[0], &err) == 0;
}

/* ---- loops ---- */

static bool listens_at(const struct weir_stage_spec *stage, const struct address *at, int n)
{
	const char *text;

	if (!listen_listens(stage))
		return false;
	for (int i = 0; *(text = listen_text(stage, i)); i++) {
		struct address listen;
		struct weir_err err;
		if (address_parse(text, &listen, &err) != 0)
			continue;
		for (int k = 0; k < n; k++)
			if (arrives(&at[k], &listen))
				return true;
	}
	return false;
}

static int find(const struct weir_spec *spec, const char *name)
{
	for (int s = 0; s < spec->n_stages; s++)
		if (strcmp(spec->stages[s].name, name) == 0)
			return s;
	return -1;
}

/* Mark the stages that listen at an origin. Returns whether there are any new ones. */
static bool mark_origin(const struct weir_spec *spec, const char *origin, bool *reached)
{
	struct address at[2];
	int n = parse(origin, at);
	bool any = false;

	for (int s = 0; n > 0 && s < spec->n_stages; s++)
		if (!reached[s] && listens_at(&spec->stages[s], at, n))
			any = reached[s] = true;
	return any;
}

/* Mark what stage `s` leads to. Returns whether there is anything new. */
static bool mark_next(const struct weir_spec *spec, int s, bool *reached)
{
	const struct weir_stage_spec *stage = &spec->stages[s];
	const struct weir_node *node;
	bool any = false;

	for (int i = 0; i < stage->n_to; i++) {
		int to = find(spec, stage->to[i].stage);
		if (to >= 0 && !reached[to])
			any = reached[to] = true;
	}
	for (int i = 0; is_client(stage) && (node = origin_node(stage, i)); i++)
		any |= mark_origin(spec, node->text, reached);
	return any;
}

/* Whether requests that are sent to `origin` come back to stage `back`. *first is the stage at which they
 * arrive. */
static bool comes_back(const struct weir_spec *spec, const char *origin, int back, int *first)
{
	bool *reached = calloc((size_t)spec->n_stages, sizeof(*reached)), more, result;

	if (!reached)
		return false;
	more = mark_origin(spec, origin, reached);
	for (*first = 0; more && !reached[*first];)
		++*first;
	while (more) {
		more = false;
		for (int s = 0; s < spec->n_stages; s++)
			more |= reached[s] && mark_next(spec, s, reached);
	}
	result = reached[back];
	free(reached);
	return result;
}

static void check_width(const struct weir_stage_spec *stage, struct weir_errs *errs)
{
	const struct weir_node *node = weir_node_get(stage->with, "loops");
	long loops = node && node->text ? strtol(node->text, NULL, 10) : 1;

	if (loops > weir_spec_width_max(stage))
		weir_errs_add(errs, &node->mark, WEIR_EINVAL, "lower 'loops', or raise 'width.max'",
		    "stage '%.60s' has %ld loops, but a width of %ld: the others would never have "
		    "a "
		    "request",
		    stage->name, loops, (long)weir_spec_width_max(stage));
}

void origin_check(const struct weir_spec *spec, struct weir_errs *errs)
{
	for (int s = 0; s < spec->n_stages; s++) {
		const struct weir_stage_spec *stage = &spec->stages[s];
		const struct weir_node *node;
		int first;
		if (!is_client(stage))
			continue;
		check_width(stage, errs);
		for (int i = 0; (node = origin_node(stage, i)); i++)
			if (comes_back(spec, node->text, s, &first))
				weir_errs_add(errs, &node->mark, WEIR_EINVAL,
				    "write the address of the application",
				    "origin %.60s is this server: stage '%.60s' listens there, and "
				    "its requests would come back to stage '%.60s'",
				    node->text, spec->stages[first].name, stage->name);
	}
}
