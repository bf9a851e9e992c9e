/* SPDX-License-Identifier: MIT */
/* Sends POST requests with libcurl; see otlp_send.h. */
#include "otlp_send.h"

#include <stdio.h>
#include <string.h>

#ifdef WEIR_OTLP

#include <curl/curl.h>
#include <limits.h>
#include <stdlib.h>
#include <time.h>

#include <weir/clock.h>

/* Time limits for connecting and for a whole POST. Both are guesses. A collector is usually near
 * and accepts a batch within milliseconds. Both limits are shorter than the default grace time of a
 * drain. */
#define CONNECT_MS 2000L
#define POST_MS    5000L

#define NS_PER_MS 1000000LL

struct sender {
	CURLM *multi; /* its poll can be woken, unlike that of curl_easy_perform */
	CURL *curl;
	struct curl_slist *fields;
	const _Atomic int64_t *give_up_ns;
	char error[CURL_ERROR_SIZE];
};

/* Discard the body of the response. */
static size_t ignore(char *p, size_t size, size_t n, void *arg)
{
	(void)p, (void)arg;
	return size * n;
}

static bool is_url(const char *url)
{
	CURLU *u = curl_url();
	char *scheme = NULL;
	bool good = u && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
		    curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
		    (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);

	curl_free(scheme);
	curl_url_cleanup(u);
	return good;
}

static void set_up(struct sender *s, const char *url)
{
	curl_easy_setopt(s->curl, CURLOPT_URL, url);
	curl_easy_setopt(s->curl, CURLOPT_NOSIGNAL, 1L);
	/* ignore proxy settings: connect only to the configured host */
	curl_easy_setopt(s->curl, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(s->curl, CURLOPT_HTTPHEADER, s->fields);
	curl_easy_setopt(s->curl, CURLOPT_WRITEFUNCTION, ignore);
	curl_easy_setopt(s->curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl_easy_setopt(s->curl, CURLOPT_TIMEOUT_MS, POST_MS);
	curl_easy_setopt(s->curl, CURLOPT_ERRORBUFFER, s->error);
}

int sender_check(const char *url, struct weir_err *err)
{
	if (is_url(url))
		return 0;
	snprintf(err->text, sizeof(err->text), "'%.200s' is not an address of a collector", url);
	snprintf(
	    err->hint, sizeof(err->hint), "use an address such as http://127.0.0.1:4318/v1/traces");
	return err->code = WEIR_EINVAL;
}

int sender_new(
    const char *url, const _Atomic int64_t *give_up_ns, struct sender **out, struct weir_err *err)
{
	int rc = sender_check(url, err);
	if (rc != 0)
		return rc;
	struct sender *s = calloc(1, sizeof(*s));
	if (s) {
		s->give_up_ns = give_up_ns;
		s->multi = curl_multi_init();
		s->curl = curl_easy_init();
		s->fields = curl_slist_append(NULL, "Content-Type: application/json");
	}
	if (!s || !s->multi || !s->curl || !s->fields) {
		sender_free(s);
		snprintf(err->text, sizeof(err->text), "there is no memory for the trace export");
		return err->code = WEIR_ENOMEM;
	}
	set_up(s, url);
	*out = s;
	return 0;
}

/* Return whether OTLP/HTTP lets a client retry after `status` (Retryable Response Codes). */
static bool passes(long status)
{
	return status == 429 || status == 502 || status == 503 || status == 504;
}

/* Return how long a POST may still take: INT64_MAX if there is no limit yet, 0 if it must be
 * aborted. */
static int64_t left_ns(const struct sender *s)
{
	int64_t at_ns = atomic_load(s->give_up_ns);
	int64_t now_ns = at_ns != 0 ? weir_clock_ns(CLOCK_MONOTONIC) : 0;

	if (at_ns == 0)
		return INT64_MAX;
	return at_ns > now_ns ? at_ns - now_ns : 0;
}

/* Wait until something happens to the POST, sender_wake is called, or the POST must be aborted. */
static CURLMcode wait_for(struct sender *s, int64_t ns)
{
	int ms = ns < INT_MAX * NS_PER_MS ? (int)(ns / NS_PER_MS) + 1 : INT_MAX;

	return curl_multi_poll(s->multi, NULL, 0, ms, NULL);
}

/* Perform the POST that has been set up. This function gives up at the time *give_up_ns, whereas
 * curl_easy_perform would check only once per second whether to give up. */
static CURLcode perform(struct sender *s)
{
	CURLMcode rc = curl_multi_add_handle(s->multi, s->curl);
	CURLcode result = CURLE_ABORTED_BY_CALLBACK;
	int running = 1, more;
	int64_t ns;

	while (rc == CURLM_OK && running && (ns = left_ns(s)) > 0) {
		rc = curl_multi_perform(s->multi, &running);
		if (rc == CURLM_OK && running)
			rc = wait_for(s, ns);
	}
	for (CURLMsg *m; (m = curl_multi_info_read(s->multi, &more));)
		if (m->msg == CURLMSG_DONE)
			result = m->data.result;
	curl_multi_remove_handle(s->multi, s->curl);
	return rc == CURLM_OK ? result : CURLE_OUT_OF_MEMORY;
}

enum sender_result sender_post(struct sender *s, const char *body, char *why, size_t size)
{
	long status = 0;

	s->error[0] = '\0';
	curl_easy_setopt(s->curl, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(s->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(body));
	CURLcode rc = perform(s);
	if (rc == CURLE_ABORTED_BY_CALLBACK) {
		snprintf(why, size, "it did not answer before the server ended");
		return SENDER_LATER;
	}
	if (rc != CURLE_OK) {
		snprintf(why, size, "%s", s->error[0] ? s->error : curl_easy_strerror(rc));
		return SENDER_LATER;
	}
	curl_easy_getinfo(s->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status / 100 == 2)
		return SENDER_SENT;
	snprintf(why, size, "it answered %ld", status);
	return passes(status) ? SENDER_LATER : SENDER_REFUSED;
}

void sender_wake(struct sender *s)
{
	curl_multi_wakeup(s->multi);
}

void sender_free(struct sender *s)
{
	if (!s)
		return;
	curl_slist_free_all(s->fields);
	if (s->curl)
		curl_easy_cleanup(s->curl);
	if (s->multi)
		curl_multi_cleanup(s->multi);
	free(s);
}

#else

int sender_check(const char *url, struct weir_err *err)
{
	(void)url;
	snprintf(err->text, sizeof(err->text), "this weir was built without the trace export");
	snprintf(err->hint, sizeof(err->hint), "build it with -DWEIR_OTLP=on");
	return err->code = WEIR_EINVAL;
}

int sender_new(const char *url, const _Atomic int64_t *give_up_ns, struct sender **sender,
    struct weir_err *err)
{
	(void)give_up_ns, (void)sender;
	return sender_check(url, err);
}

enum sender_result sender_post(struct sender *sender, const char *body, char *why, size_t size)
{
	(void)sender, (void)body;
	snprintf(why, size, "this weir was built without the trace export");
	return SENDER_REFUSED;
}

void sender_wake(struct sender *sender)
{
	(void)sender;
}

void sender_free(struct sender *sender)
{
	(void)sender;
}

#endif
