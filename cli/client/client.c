/* SPDX-License-Identifier: MIT */
/*
 * The admin client; see client.h. client_curl.h performs the requests.
 *
 * The total time for all requests of a thread is limited. client_spent_ns is the time that a thread
 * has used so far. The settings are static variables, which the main thread sets before the first
 * request.
 */
#include "client.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/clock.h"
#include "client_curl.h"
#include "plain.h"
#include "admin/auth/secret.h"

static const char *client_token_file, *client_ca; /* set by client_identify */
static int64_t client_timeout_ns = CLIENT_TIMEOUT_NS;
static _Thread_local int64_t client_spent_ns; /* time that this thread has used so far */

/** Return the value of an environment variable, or NULL if it is not set or empty. */
static const char *client_env(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

void client_identify(const char *token_file, const char *ca)
{
	client_token_file = token_file;
	client_ca = ca;
}

void client_allow(int64_t timeout_ns)
{
	client_timeout_ns = timeout_ns;
}

void client_renew(void)
{
	client_spent_ns = 0;
}

static const char *client_token_path(void)
{
	return client_token_file ? client_token_file : client_env("WEIR_TOKEN_FILE");
}

/* ---- authentication ---- */

/** Read the token into `token`, or store "" if no token is configured. A socket file needs no
 *  token. */
static int client_take_token(
    const struct client_address *at, char token[SECRET_TOKEN_MAX + 1], struct weir_err *err)
{
	const char *path = at->unix_path ? NULL : client_token_path();
	struct weir_err why = {0};

	token[0] = '\0';
	if (!path)
		return 0;
	int rc = secret_text(path, "the token", token, &why);
	if (rc == WEIR_EINVAL)
		rc = WEIR_ESYS; /* WEIR_EINVAL would mean an invalid URL */
	return rc == 0 ? 0
		       : client_fail(err, rc, "%s%s%s", why.text, *why.hint ? "; " : "", why.hint);
}

/** Fail with the explanation in the response, or with `otherwise` if there is none. */
static int client_quote(struct weir_err *err, const char *url, const struct client_answer *answer,
    const char *otherwise)
{
	json_t *doc = json_loadb(answer->body, answer->n, 0, NULL);
	const char *detail = json_string_value(json_object_get(doc, "detail"));
	char text[200];

	plain_text(text, sizeof(text), detail ? detail : otherwise);
	json_decref(doc);
	return client_fail(err, WEIR_EFAILED, "%s denies access: %s", url, text);
}

/** Return 0 if the server grants access, otherwise fail with a message. A 403 in response to a
 *  change is not handled here, since the verbs report it. */
static int client_shut_out(const char *url, const struct client_request *request,
    const struct client_answer *answer, struct weir_err *err)
{
	const char *path = client_token_path();

	if (answer->status == 401 && path)
		return client_fail(err, WEIR_EFAILED,
		    "%s does not accept the token in %s: with --token-file, name the file of a "
		    "token that the server lists under 'admin: { tokens: }'",
		    url, path);
	if (answer->status == 401)
		return client_fail(err, WEIR_EFAILED,
		    "%s requires a token: name the file that holds it with --token-file or in "
		    "WEIR_TOKEN_FILE",
		    url);
	if (answer->status == 429)
		return client_fail(err, WEIR_EFAILED,
		    "%s does not accept this token, and too many wrong ones came from here: check "
		    "--token-file, then try again in %d s",
		    url, answer->retry_after_s);
	if (answer->status == 403 && strcmp(request->method, "GET") == 0)
		return client_quote(err, url, answer, "it answered 403");
	return 0;
}

/* ---- requests ---- */

static int client_exchange(const struct client_address *at, struct client_request *request,
    struct client_answer *answer, struct weir_err *err)
{
	char token[SECRET_TOKEN_MAX + 1];

	int rc = client_take_token(at, token, err);
	if (rc != 0)
		return rc;
	request->token = *token ? token : NULL;
	rc = client_curl_ask(at, request, answer, err);
	request->token = NULL;
	explicit_bzero(token, sizeof(token));
	if (rc == 0)
		rc = client_shut_out(at->url, request, answer, err);
	if (rc != 0) {
		free(answer->body);
		answer->body = NULL;
	}
	return rc;
}

static int client_ask(const char *url, struct client_request *request, struct client_answer *answer,
    struct weir_err *err)
{
	struct client_address at;
	int64_t began_ns = clock_now_ns();

	*err = (struct weir_err){0};
	int rc = client_address_parse(url, &at, err);
	if (rc != 0)
		return rc;
	request->ca = client_ca ? client_ca : client_env("WEIR_CA");
	request->limit_ns = client_timeout_ns;
	request->left_ns = client_timeout_ns - client_spent_ns;
	rc = client_exchange(&at, request, answer, err);
	client_address_end(&at);
	client_spent_ns += clock_now_ns() - began_ns;
	return rc;
}

int client_get(
    const char *url, const char *path, struct client_answer *answer, struct weir_err *err)
{
	return client_ask(
	    url, &(struct client_request){.method = "GET", .path = path}, answer, err);
}

int client_put(const char *url, const char *path, const char *body, struct client_answer *answer,
    struct weir_err *err)
{
	return client_act(url, "PUT", path, body, answer, err);
}

int client_act(const char *url, const char *method, const char *path, const char *body,
    struct client_answer *answer, struct weir_err *err)
{
	struct client_request request = {.method = method, .path = path, .body = body};

	return client_ask(url, &request, answer, err);
}
