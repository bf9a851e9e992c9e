/* SPDX-License-Identifier: MIT */
/* The addresses of origins. */
#include <stdio.h>
#include <string.h>

#include "http/client/client.h"

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

static int parse(const char *text, struct origin_spec *spec, struct weir_err *err)
{
	const char *host = text;
	size_t n;

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
	return address_parse(spec->text, &spec->address, err);
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
