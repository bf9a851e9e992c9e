/* SPDX-License-Identifier: MIT */
/* Which kinds of endpoints there are: what goes with what in `admin:`. */
#include "gate.h"

#include <string.h>

static void rules_of_file(const struct weir_admin_spec *spec, struct weir_errs *errs)
{
	if (spec->n_tokens > 0)
		weir_errs_add(errs, &spec->tokens[0].mark, WEIR_EINVAL,
		    "name who may ask under 'users:', or listen on an address",
		    "over a socket file the kernel tells who asks: tokens are not used there");
	if (*spec->tls.cert || *spec->tls.key)
		weir_errs_add(errs, &spec->tls_mark, WEIR_EINVAL, "remove 'tls:'",
		    "a socket file does not leave this machine: there is no TLS on it");
}

/* One thing at a time: who adds what is missing is told of the next. */
static void rules_of_exposed(const struct weir_admin_spec *spec, struct weir_errs *errs)
{
	bool tls = *spec->tls.cert || *spec->tls.key;

	if (spec->n_tokens == 0)
		weir_errs_add(errs, &spec->mark, WEIR_EINVAL,
		    "add 'tokens:' and 'tls:', or listen on 127.0.0.1 or unix:/run/weir/admin.sock",
		    "others can reach '%.80s', so the admin endpoint listens there with tokens and "
		    "TLS only, and it has no %s",
		    spec->listen, tls ? "tokens" : "tokens and no TLS");
	else if (!tls)
		weir_errs_add(errs, &spec->mark, WEIR_EINVAL,
		    "add 'tls: { cert: PATH, key: PATH }', or listen on 127.0.0.1 behind a proxy "
		    "that "
		    "has TLS",
		    "others can reach '%.80s', where tokens would be sent in clear: the admin "
		    "endpoint listens there with TLS only",
		    spec->listen);
}

static void rules_of_hosts(const struct weir_admin_spec *spec, struct weir_errs *errs)
{
	for (int i = 0; i < spec->hosts.n; i++)
		if (!authority_host_fits(spec->hosts.items[i]))
			weir_errs_add(errs, &spec->hosts_mark, WEIR_EINVAL,
			    "write weir.example.org, or weir.example.org:9900 for one port alone",
			    "'%.80s' is not a name that Host could have", spec->hosts.items[i]);
}

void gate_rules(
    const struct weir_admin_spec *spec, const struct authority *a, struct weir_errs *errs)
{
	bool file = a->sa.any.sa_family == AF_UNIX;

	if (file)
		rules_of_file(spec, errs);
	else if (spec->n_users > 0)
		weir_errs_add(errs, &spec->users[0].mark, WEIR_EINVAL,
		    "listen on unix:/run/weir/admin.sock, or give out tokens",
		    "only over a socket file the kernel tells which user asks: 'users' are not "
		    "used on '%.80s'",
		    spec->listen);
	if (authority_is_exposed(a))
		rules_of_exposed(spec, errs);
	if (!*spec->tls.cert != !*spec->tls.key)
		weir_errs_add(errs, &spec->tls_mark, WEIR_EINVAL, "write { cert: PATH, key: PATH }",
		    "TLS needs both a certificate and its key, and there is no '%s'",
		    *spec->tls.cert ? "key" : "cert");
	rules_of_hosts(spec, errs);
}
