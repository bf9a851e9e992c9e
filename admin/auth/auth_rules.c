/* SPDX-License-Identifier: MIT */
/* Checks which settings of `admin:` can be combined. */
#include "auth.h"

#include <string.h>

static void rules_of_file(const struct weir_admin_spec *spec, struct weir_errs *errs)
{
	if (spec->n_tokens > 0)
		weir_errs_add(errs, &spec->tokens[0].mark, WEIR_EINVAL,
		    "list the permitted users under 'users:', or listen on an address",
		    "on a socket file the kernel identifies the client: tokens are not used there");
	if (*spec->tls.cert || *spec->tls.key)
		weir_errs_add(errs, &spec->tls_mark, WEIR_EINVAL, "remove 'tls:'",
		    "a socket file is reachable from this machine only: TLS is not used on it");
}

/* Check that an address reachable from other hosts is protected. Reports one error at a time. */
static void rules_of_exposed(const struct weir_admin_spec *spec, struct weir_errs *errs)
{
	bool tls = *spec->tls.cert || *spec->tls.key;

	if (spec->n_tokens == 0)
		weir_errs_add(errs, &spec->mark, WEIR_EINVAL,
		    "add 'tokens:' and 'tls:', or listen on 127.0.0.1 or unix:/run/weir/admin.sock",
		    "'%.80s' is reachable from other machines, so the admin endpoint needs tokens "
		    "and TLS there, and it has no %s",
		    spec->listen, tls ? "tokens" : "tokens and no TLS");
	else if (!tls)
		weir_errs_add(errs, &spec->mark, WEIR_EINVAL,
		    "add 'tls: { cert: PATH, key: PATH }', or listen on 127.0.0.1 behind a proxy "
		    "with TLS",
		    "'%.80s' is reachable from other machines, and tokens would be sent "
		    "unencrypted: the admin endpoint needs TLS there",
		    spec->listen);
}

static void rules_of_hosts(const struct weir_admin_spec *spec, struct weir_errs *errs)
{
	for (int i = 0; i < spec->hosts.n; i++)
		if (!authority_host_fits(spec->hosts.items[i]))
			weir_errs_add(errs, &spec->hosts_mark, WEIR_EINVAL,
			    "write weir.example.org, or weir.example.org:9900 for one port alone",
			    "'%.80s' is not a valid name for Host", spec->hosts.items[i]);
}

void auth_rules(
    const struct weir_admin_spec *spec, const struct authority *a, struct weir_errs *errs)
{
	bool file = a->sa.any.sa_family == AF_UNIX;

	if (file)
		rules_of_file(spec, errs);
	else if (spec->n_users > 0)
		weir_errs_add(errs, &spec->users[0].mark, WEIR_EINVAL,
		    "listen on unix:/run/weir/admin.sock, or use tokens",
		    "the kernel identifies users on a socket file only: 'users' are not used on "
		    "'%.80s'",
		    spec->listen);
	if (authority_is_exposed(a))
		rules_of_exposed(spec, errs);
	if (!*spec->tls.cert != !*spec->tls.key)
		weir_errs_add(errs, &spec->tls_mark, WEIR_EINVAL, "write { cert: PATH, key: PATH }",
		    "TLS needs both a certificate and its key, and '%s' is missing",
		    *spec->tls.cert ? "key" : "cert");
	rules_of_hosts(spec, errs);
}
