/* SPDX-License-Identifier: MIT */
/* Origins as they are configured. */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/client/client.h"
#include "net/resolve_name.h"
#include "net/resolve_now.h"

/* How long names may be asked for at the start, in all. */
#define LOOK_NS 1000000000LL

static int fail(struct weir_err *err, const char *text, const char *why, const char *hint)
{
	snprintf(err->text, sizeof(err->text), "'origins': '%.80s' %s", text, why);
	snprintf(err->hint, sizeof(err->hint), "%s", hint);
	return WEIR_EINVAL;
}

/* Whether `host` of HOST:PORT has a port behind it. */
static bool has_port(const char *host)
{
	const char *colon = strrchr(host, ':'), *bracket = strrchr(host, ']');

	return colon && (!bracket || colon > bracket);
}

/* The host of spec->text, which is HOST:PORT. */
static void set_host(struct origin_spec *spec)
{
	size_t n = (size_t)(strrchr(spec->text, ':') - spec->text);
	bool bracket = spec->text[0] == '[' && n >= 2;

	memcpy(spec->host, spec->text + bracket, n - 2 * bracket);
	spec->host[n - 2 * bracket] = '\0';
}

static int set_address(const char *text, struct origin_spec *spec, struct weir_err *err)
{
	char name[RESOLVE_NAME_MAX + 1], numeric[16];
	const char *port = strrchr(spec->text, ':') + 1;
	struct net_address ignored;
	int rc;

	switch (name_examine(spec->host, name, &ignored)) {
	case NAME_BAD:
		return fail(err, text, "has no host that is a name or an address",
		    "write HOST:PORT, as in app.internal:3000, 127.0.0.1:3000 or [::1]:3000");
	case NAME_ADDRESS:
		return address_parse(spec->text, &spec->address, err);
	case NAME_LOCALHOST:
	case NAME_HOST:
		break;
	}
	/* the port is judged, and the name is asked for in the loops */
	snprintf(numeric, sizeof(numeric), ":%.12s", port);
	rc = address_parse(numeric, &spec->address, err);
	if (rc != 0)
		return fail(err, text, "has no port from 1 to 65535",
		    "write HOST:PORT, as in app.internal:3000");
	spec->port = ntohs(((const struct sockaddr_in *)&spec->address.addr)->sin_port);
	spec->address = (struct address){0};
	spec->named = true;
	return 0;
}

static int parse_file(const char *text, struct origin_spec *spec, struct weir_err *err)
{
	if (strlen(text) >= sizeof(spec->text))
		return fail(err, text, "is too long", "write unix:/PATH");
	strcpy(spec->text, text);
	strcpy(spec->host, "localhost");
	return address_parse(text, &spec->address, err);
}

static int parse(const char *text, struct origin_spec *spec, struct weir_err *err)
{
	const char *host = text;
	size_t n;

	if (strncmp(text, "unix:", 5) == 0)
		return parse_file(text, spec, err);
	spec->secure = strncmp(host, "https://", 8) == 0;
	if (spec->secure)
		host += 8;
	else if (strncmp(host, "http://", 7) == 0)
		host += 7;
	else if (strstr(host, "://"))
		return fail(err, text, "has a scheme other than http and https",
		    "write http://HOST:PORT or https://HOST:PORT");
	n = strlen(host);
	if (n > 0 && host[n - 1] == '/')
		n--;
	if (n == 0 || memchr(host, '/', n) || host[0] == ':')
		return fail(
		    err, text, "is not a host with a port", "write HOST:PORT, without a path");
	if (n + sizeof(":443") > sizeof(spec->text))
		return fail(err, text, "is too long", "write HOST:PORT");
	memcpy(spec->text, host, n);
	spec->text[n] = '\0';
	if (!has_port(spec->text))
		strcpy(spec->text + n, spec->secure ? ":443" : ":80");
	set_host(spec);
	if (strcmp(strrchr(spec->text, ':'), ":0") == 0)
		return fail(err, text, "has the port 0", "write the port of the origin");
	return set_address(text, spec, err);
}

int origins_parse(const struct weir_strings *texts, struct origin_spec *spec, struct weir_err *err)
{
	if (texts->n == 0)
		return fail(err, "", "names no origin", "write origins: [\"127.0.0.1:3000\"]");
	for (int i = 0; i < texts->n; i++) {
		int rc = parse(texts->items[i], &spec[i], err);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int resolve_good(struct weir_stage *st, struct weir_err *err)
{
	const struct client_conf *conf = weir_conf(st);
	char at[32];

	for (int i = 0; i < conf->resolve.servers.n; i++) {
		if (name_is_server(conf->resolve.servers.items[i]))
			continue;
		snprintf(at, sizeof(at), "resolve.servers.%d", i + 1);
		weir_blame(st, at);
		snprintf(err->text, sizeof(err->text),
		    "'%.80s' is not the address of a name server", conf->resolve.servers.items[i]);
		snprintf(err->hint, sizeof(err->hint),
		    "write an address and perhaps a port, as in 192.0.2.53 or [::1]:53");
		return WEIR_EINVAL;
	}
	if (conf->resolve.ttl_min_ns <= conf->resolve.ttl_max_ns)
		return 0;
	weir_blame(st, "resolve.ttl_min");
	snprintf(err->text, sizeof(err->text), "'ttl_min' is longer than 'ttl_max'");
	return WEIR_EINVAL;
}

/* Blame entry `i` of the list `name`. */
static int blame(struct client *c, const char *name, int i)
{
	char at[32];

	snprintf(at, sizeof(at), "%s.%d", name, i + 1);
	weir_blame(c->st, at);
	return WEIR_EINVAL;
}

/* Refuse origins that are addresses which are denied. */
static int denied(struct client *c, struct weir_err *err)
{
	for (int i = 0; i < c->n_origins; i++) {
		const struct origin_spec *spec = &c->spec[i];
		struct net_address a;
		if (spec->named)
			continue;
		if (address_file(&spec->address)
			? !c->deny.private
			: !net_address_of(&spec->address.addr, &a) || !deny_has(&c->deny, &a))
			continue;
		snprintf(err->text, sizeof(err->text),
		    "origin '%.80s' has an address that 'deny' has", spec->text);
		snprintf(err->hint, sizeof(err->hint), "remove the origin, or the entry of 'deny'");
		return blame(c, "origins", i);
	}
	return 0;
}

int origins_conf(struct client *c, struct weir_err *err)
{
	const struct client_conf *conf = weir_conf(c->st);
	int bad, rc = resolve_good(c->st, err);

	if (rc != 0)
		return rc;
	if (tries_parse(&conf->retry_on, &c->retry_on, &bad) != 0) {
		snprintf(err->text, sizeof(err->text), "'retry_on' has no '%.40s'",
		    conf->retry_on.items[bad]);
		snprintf(err->hint, sizeof(err->hint), "write connect, reset, 502, 503 or 504");
		return blame(c, "retry_on", bad);
	}
	for (int i = 0; i < conf->deny.n; i++)
		if (deny_add(&c->deny, conf->deny.items[i], err) != 0) {
			snprintf(err->hint, sizeof(err->hint),
			    "write 'private', or a network, as in 10.0.0.0/8");
			return blame(c, "deny", i);
		}
	return denied(c, err);
}

void origins_look(struct client *c)
{
	struct resolve_conf conf;
	struct net_address address[RESOLVE_ADDRESSES_MAX];
	int64_t left_ns = LOOK_NS;
	char *servers;

	if (!names_conf(weir_conf(c->st), &conf, &servers))
		return;
	for (int i = 0; i < c->n_origins; i++) {
		int n;
		if (!c->spec[i].named)
			continue;
		const char *why = resolve_now(&conf, c->spec[i].host, &left_ns, address, &n);
		if (n == 0)
			weir_warn(c->st, "origins",
			    "'%.80s' has no address now: %s; requests get 502 until it has one",
			    c->spec[i].text, why);
	}
	free(servers);
}
