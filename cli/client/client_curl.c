/* SPDX-License-Identifier: MIT */
/*
 * Sends requests through libcurl; see client_curl.h. Each request has its own connection and its
 * own handle. libcurl is configured to follow no redirects, use no proxy and decode no compressed
 * content.
 */
#include "client_curl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

/** Maximum size of a response. 16 MiB is a guess: the stages of a large graph take about 100 KB. */
#define CLIENT_ANSWER_MAX (16u << 20)

/** Maximum size of a request. The value of a knob may be a page of text. */
#define CLIENT_REQUEST_MAX 16384

/** Interval of the attempts to connect to a socket file whose listen queue is full: 10 ms. */
#define CROWDED_WAIT_NS 10000000L

/* The range of OpenSSL's verification results (x509_vfy.h) that mean an unknown issuer:
 * X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT to X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE. */
#define ISSUER_UNKNOWN_FIRST 18
#define ISSUER_UNKNOWN_LAST  21

/* The smallest verification result that means an invalid chain of certificates. With a smaller
 * result, the chain is valid or was not checked, and the failure is a name that does not match. */
#define ISSUER_FAILED_FIRST 2

/* A request in progress. */
struct call {
	CURL *curl;
	struct curl_slist *fields;
	const struct client_address *at;
	const struct client_request *request;
	struct client_answer *answer;
	size_t size;      /* allocated bytes of answer->body */
	size_t received;  /* bytes of head and body */
	bool headed;      /* the head is complete */
	bool exposed;     /* the token would have been sent unencrypted */
	int64_t heard_ns; /* when data was last received; 0 before the connection is made */
	char why[CURL_ERROR_SIZE];
};

int client_fail(struct weir_err *err, int code, const char *fmt, ...)
{
	va_list ap;

	err->code = code;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return code;
}

/* ---- addresses ---- */

/* Return whether `part` of the URL is present and differs from `usual`. */
static bool is_other(CURLU *u, CURLUPart part, const char *usual)
{
	char *text = NULL;
	bool other =
	    curl_url_get(u, part, &text, 0) == CURLUE_OK && (!usual || strcmp(text, usual) != 0);

	curl_free(text);
	return other;
}

/* Parse HOST, HOST:PORT or a URL. Returns false if it has a path, user, query or fragment. */
static bool parse_url(const char *url, CURLU *u)
{
	bool bare = !strstr(url, "://");

	if (curl_url_set(u, CURLUPART_URL, url, CURLU_DEFAULT_SCHEME | CURLU_DISALLOW_USER) != 0 ||
	    (bare && curl_url_set(u, CURLUPART_SCHEME, "http", 0) != 0))
		return false;
	if (is_other(u, CURLUPART_SCHEME, "http") && is_other(u, CURLUPART_SCHEME, "https"))
		return false;
	if (is_other(u, CURLUPART_PATH, "/") || is_other(u, CURLUPART_QUERY, NULL) ||
	    is_other(u, CURLUPART_FRAGMENT, NULL))
		return false;
	return is_other(u, CURLUPART_PORT, NULL) || curl_url_set(u, CURLUPART_PORT, "9900", 0) == 0;
}

int client_address_parse(const char *url, struct client_address *at, struct weir_err *err)
{
	CURLU *u = curl_url();

	if (!u)
		return client_fail(err, WEIR_ENOMEM, "out of memory");
	*at = (struct client_address){.url = url, .parts = u};
	if (strncmp(url, "unix:", 5) == 0 && url[5])
		at->unix_path = url + 5;
	/* libcurl takes the field Host from the URL */
	bool good = at->unix_path ? curl_url_set(u, CURLUPART_URL, "http://localhost/", 0) == 0
				  : parse_url(url, u);
	if (!good) {
		client_address_end(at);
		return client_fail(
		    err, WEIR_EINVAL, "'%s' is not an address like %s", url, CLIENT_DEFAULT_URL);
	}
	at->tls = !is_other(u, CURLUPART_SCHEME, "https");
	return 0;
}

void client_address_end(struct client_address *at)
{
	curl_url_cleanup(at->parts);
	at->parts = NULL;
}

/* ---- connecting ---- */

/* Return whether the connection failed because the listen queue of a socket file is full. libcurl
 * does not wait for a free slot. */
static bool is_crowded(const struct call *call, CURLcode rc)
{
	long error = 0;

	curl_easy_getinfo(call->curl, CURLINFO_OS_ERRNO, &error);
	return call->at->unix_path && rc == CURLE_COULDNT_CONNECT &&
	       (error == 0 || error == EAGAIN);
}

static CURLcode perform(struct call *call)
{
	const struct timespec pause = {.tv_nsec = CROWDED_WAIT_NS};
	int64_t began_ns = clock_now_ns();

	for (;;) {
		int64_t spent_ns = clock_now_ns() - began_ns;
		int64_t left_ns = call->request->left_ns - spent_ns;
		if (left_ns <= 0 || spent_ns >= CLIENT_STEP_NS)
			return CURLE_OPERATION_TIMEDOUT;
		curl_easy_setopt(call->curl, CURLOPT_TIMEOUT_MS, (long)(left_ns / NS_PER_MS + 1));
		CURLcode rc = curl_easy_perform(call->curl);
		if (!is_crowded(call, rc))
			return rc;
		nanosleep(&pause, NULL);
	}
}

static bool is_local(const char *peer)
{
	struct in_addr v4;
	struct in6_addr v6;

	if (inet_pton(AF_INET, peer, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
	return inet_pton(AF_INET6, peer, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

/* Called with the address of the peer before the request is sent. Aborts the request if its token
 * would be sent to another host without TLS. */
static int before_request(void *arg, char *peer, char *own, int peer_port, int own_port)
{
	struct call *call = arg;

	(void)own, (void)peer_port, (void)own_port;
	call->heard_ns = clock_now_ns();
	call->exposed =
	    call->request->token && !call->at->tls && !call->at->unix_path && !is_local(peer);
	return call->exposed ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/* ---- the response ---- */

/* Add `n` to the number of bytes received. Returns false if the response is too long. */
static bool count(struct call *call, size_t n)
{
	call->heard_ns = clock_now_ns();
	call->received += n;
	return call->received < CLIENT_ANSWER_MAX;
}

/* Called with each line of the head, and with the trailer lines after a chunked body. */
static size_t take_line(char *p, size_t size, size_t n, void *arg)
{
	struct call *call = arg;

	n *= size;
	if (n > 5 && memcmp(p, "HTTP/", 5) == 0)
		call->headed = false;
	else if (*p == '\r' || *p == '\n')
		call->headed = true;
	return count(call, n) ? n : 0;
}

/* Allocate memory for `n` more bytes of the body and a NUL. */
static bool reserve(struct call *call, size_t n)
{
	size_t size = call->size ? call->size : 64 * 1024;

	while (size <= call->answer->n + n)
		size *= 2;
	if (size == call->size)
		return true;
	char *more = realloc(call->answer->body, size);
	if (!more)
		return false;
	call->answer->body = more;
	call->size = size;
	return true;
}

static size_t take_body(char *p, size_t size, size_t n, void *arg)
{
	struct call *call = arg;

	n *= size;
	if (!count(call, n) || !reserve(call, n))
		return 0;
	memcpy(call->answer->body + call->answer->n, p, n);
	call->answer->n += n;
	return n;
}

/* Called at least once a second. Aborts the request if the server has been silent for too long. */
static int go_on(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	const struct call *call = arg;

	(void)a, (void)b, (void)c, (void)d;
	return call->heard_ns != 0 && clock_now_ns() - call->heard_ns >= CLIENT_STEP_NS;
}

/* Return whether the body has the length given by Content-Length. libcurl is told to ignore that
 * field, since it would silently cut off a longer body. */
static bool is_whole(const struct call *call)
{
	struct curl_header *field;

	if (!call->headed)
		return false;
	if (curl_easy_header(call->curl, "Transfer-Encoding", 0, CURLH_HEADER, -1, &field) == 0 ||
	    curl_easy_header(call->curl, "Content-Length", 0, CURLH_HEADER, -1, &field) != 0)
		return true;
	return strtoull(field->value, NULL, 10) == call->answer->n;
}

/* ---- messages ---- */

static int fail_late(const struct call *call, struct weir_err *err)
{
	return client_fail(err, WEIR_ESYS,
	    "%s did not answer in time: it sent nothing for %lld s, or took longer than the %.3g s "
	    "that --timeout allows for all requests together",
	    call->at->url, CLIENT_STEP_NS / NS_PER_S, (double)call->request->limit_ns / 1e9);
}

static int fail_tls(const struct call *call, CURLcode rc, struct weir_err *err)
{
	const char *ca = call->request->ca, *hint = "";
	char *host = NULL, why[300];
	long verified = 0;

	curl_easy_getinfo(call->curl, CURLINFO_SSL_VERIFYRESULT, &verified);
	curl_url_get(call->at->parts, CURLUPART_HOST, &host, 0);
	if (verified >= ISSUER_UNKNOWN_FIRST && verified <= ISSUER_UNKNOWN_LAST)
		hint = ". Name its authority with --ca FILE.";
	if (rc == CURLE_SSL_CACERT_BADFILE && ca)
		snprintf(why, sizeof(why), "%.200s contains no CA certificate", ca);
	else if (rc == CURLE_SSL_CACERT_BADFILE)
		snprintf(why, sizeof(why),
		    "this system trusts no certificate authority: name one with --ca FILE");
	else if (rc == CURLE_PEER_FAILED_VERIFICATION && verified < ISSUER_FAILED_FIRST)
		snprintf(why, sizeof(why), "its certificate does not match this name");
	else if (rc == CURLE_PEER_FAILED_VERIFICATION)
		snprintf(
		    why, sizeof(why), "its certificate is NOT trusted: %.100s%s", call->why, hint);
	else
		snprintf(why, sizeof(why), "%.160s", call->why);
	client_fail(
	    err, WEIR_EFAILED, "TLS with %.60s failed: %.170s", host ? host : call->at->url, why);
	curl_free(host);
	return err->code;
}

static int fail_connection(const struct call *call, CURLcode rc, struct weir_err *err)
{
	curl_off_t connected = 0;
	long error = 0;

	curl_easy_getinfo(call->curl, CURLINFO_CONNECT_TIME_T, &connected);
	/* with TLS, `connected` is still 0 during the handshake */
	if (rc == CURLE_OPERATION_TIMEDOUT && (connected > 0 || call->at->tls))
		return fail_late(call, err);
	if (rc == CURLE_OPERATION_TIMEDOUT)
		error = ETIMEDOUT;
	else
		curl_easy_getinfo(call->curl, CURLINFO_OS_ERRNO, &error);
	return client_fail(err, WEIR_ESYS,
	    connected > 0
		? "the connection to %s failed: %s"
		: "no weir server answers at %s: %s (--admin or WEIR_ADMIN names another)",
	    call->at->url, error ? strerror((int)error) : call->why);
}

static int fail_abort(const struct call *call, struct weir_err *err)
{
	if (!call->exposed)
		return fail_late(call, err);
	return client_fail(err, WEIR_ESYS,
	    "the token was not sent to %s, because the connection is not encrypted: use https://",
	    call->at->url);
}

/* Translate `rc`, a result of libcurl, into a WEIR_E code with a message. */
static int explain(const struct call *call, CURLcode rc, struct weir_err *err)
{
	long error = 0;

	switch (rc) {
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_CONNECT:
	case CURLE_OPERATION_TIMEDOUT:
		return fail_connection(call, rc, err);
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR: /* also for invalid chunks */
		curl_easy_getinfo(call->curl, CURLINFO_OS_ERRNO, &error);
		if (error != 0 || call->at->tls)
			return fail_connection(call, rc, err);
		break;
	case CURLE_ABORTED_BY_CALLBACK:
		return fail_abort(call, err);
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CONNECT_ERROR:
		return fail_tls(call, rc, err);
	case CURLE_OUT_OF_MEMORY:
	case CURLE_WRITE_ERROR:
		return client_fail(
		    err, WEIR_ENOMEM, "the response of %s does not fit into memory", call->at->url);
	default:
		break;
	}
	return client_fail(
	    err, WEIR_EFAILED, "the server at %s is not a weir admin endpoint", call->at->url);
}

/* ---- requests ---- */

static bool add_field(struct call *call, const char *field)
{
	struct curl_slist *fields = curl_slist_append(call->fields, field);

	call->fields = fields ? fields : call->fields;
	return fields != NULL;
}

/* Set the options that are strings; libcurl copies them. Returns false if out of memory. */
static bool set_strings(struct call *call)
{
	const struct client_request *r = call->request;
	CURL *curl = call->curl;

	/* an empty proxy overrides the environment variables for proxies */
	return add_field(call, "Connection: close") && add_field(call, "Expect:") &&
	       (!r->body || add_field(call, "Content-Type: application/json")) &&
	       curl_easy_setopt(curl, CURLOPT_PROXY, "") == 0 &&
	       curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, call->at->unix_path) == 0 &&
	       curl_easy_setopt(curl, CURLOPT_REQUEST_TARGET, r->path) == 0 &&
	       curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, r->method) == 0 &&
	       curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, r->token) == 0 &&
	       (!r->ca || (curl_easy_setopt(curl, CURLOPT_CAINFO, r->ca) == 0 &&
			      curl_easy_setopt(curl, CURLOPT_CAPATH, NULL) == 0));
}

static void set_limits(struct call *call)
{
	CURL *curl = call->curl;

	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)(CLIENT_STEP_NS / NS_PER_MS));
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, go_on);
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, call);
	curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, before_request);
	curl_easy_setopt(curl, CURLOPT_PREREQDATA, call);
}

static bool set_up(struct call *call)
{
	CURL *curl = call->curl;
	const char *body = call->request->body;

	if (!curl || !reserve(call, 0) || !set_strings(call))
		return false;
	set_limits(call);
	curl_easy_setopt(curl, CURLOPT_CURLU, call->at->parts);
	curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	/* this is the minimum version */
	curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, call->fields);
	if (body) {
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(body));
	}
	curl_easy_setopt(curl, CURLOPT_IGNORE_CONTENT_LENGTH, 1L); /* see is_whole */
	curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_line);
	curl_easy_setopt(curl, CURLOPT_HEADERDATA, call);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, call);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, call->why);
	return true;
}

/* Store the status and Retry-After, and terminate the body. */
static void finish(struct call *call)
{
	long status = 0;
	curl_off_t wait_s = 0;

	curl_easy_getinfo(call->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(call->curl, CURLINFO_RETRY_AFTER, &wait_s);
	call->answer->status = (int)status;
	call->answer->retry_after_s = wait_s < INT_MAX ? (int)wait_s : INT_MAX;
	call->answer->body[call->answer->n] = '\0';
}

int client_curl_ask(const struct client_address *at, const struct client_request *request,
    struct client_answer *answer, struct weir_err *err)
{
	struct call call = {.at = at, .request = request, .answer = answer};
	size_t n = strlen(request->path) + (request->body ? strlen(request->body) : 0);
	int rc = 0;

	*answer = (struct client_answer){0};
	if (n >= CLIENT_REQUEST_MAX)
		return client_fail(
		    err, WEIR_ESYS, "the connection to %s failed: %s", at->url, strerror(EMSGSIZE));
	if (request->left_ns <= 0)
		return fail_late(&call, err);
	call.curl = curl_easy_init();
	CURLcode done = set_up(&call) ? perform(&call) : CURLE_OUT_OF_MEMORY;
	if (done == CURLE_OK && !is_whole(&call))
		done = CURLE_PARTIAL_FILE;
	if (done == CURLE_OK)
		finish(&call);
	else
		rc = explain(&call, done, err);
	if (rc != 0) {
		free(answer->body);
		answer->body = NULL;
	}
	curl_easy_cleanup(call.curl);
	curl_slist_free_all(call.fields);
	return rc;
}
