/* SPDX-License-Identifier: MIT */
/*
 * Records what the server reports about itself during a load run. A thread polls /api/v1/stages of
 * the server's admin endpoint once a second.
 *
 * A sample has the numbers of each stage and its histogram of waits, without help texts. When there
 * are SAMPLES_MAX samples, every other one is dropped and the interval is doubled. A run of a day
 * therefore takes no more memory than one of half an hour. While the endpoint does not respond, no
 * samples are taken.
 */
#include "bench.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/client/client.h"

/* Maximum number of samples: half an hour at one per second, enough for the resolution of a
 * chart. */
#define SAMPLES_MAX 1800

struct bench_server {
	char url[256];
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t ends; /* `stop` was set */
	bool stop;           /* guarded by lock */
	/* owned by the polling thread, and by the main thread after joining it */
	json_t *doc, *each;
	struct timespec began;
	int every_s; /* sampling interval in seconds */
};

static double seconds_since(const struct timespec *t)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - t->tv_sec) + (double)(now.tv_nsec - t->tv_nsec) * 1e-9;
}

static int ask(const char *url, const char *path, json_t **doc, struct weir_err *err)
{
	struct client_answer answer = {0};
	/* reset the time limit of the client, which would otherwise cover the whole run */
	client_renew();
	int rc = client_get(url, path, &answer, err);

	if (rc != 0)
		return rc;
	*doc = answer.status == 200 ? json_loadb(answer.body, answer.n, 0, NULL) : NULL;
	free(answer.body);
	if (*doc)
		return 0;
	snprintf(
	    err->text, sizeof(err->text), "the server at %.120s is not a weir admin endpoint", url);
	return WEIR_EFAILED;
}

/* Remove the members that never change, and those that are too large to store in each sample. */
static void slim_stage(json_t *stage)
{
	static const char *const fixed[] = {"summary", "mode", "depth", "metrics", "links"};
	const json_t *classes = json_object_get(stage, "classes");

	for (size_t k = 0; k < sizeof(fixed) / sizeof(fixed[0]); k++)
		json_object_del(stage, fixed[k]);
	for (size_t i = 0; i < json_array_size(classes); i++)
		json_object_del(
		    json_object_get(json_array_get(classes, i), "service_seconds"), "buckets");
}

static json_t *sample(struct bench_server *s)
{
	struct weir_err err;
	json_t *doc = NULL;

	if (ask(s->url, "/api/v1/stages", &doc, &err) != 0)
		return NULL;
	const json_t *stages = json_object_get(doc, "stages");
	for (size_t i = 0; i < json_array_size(stages); i++)
		slim_stage(json_array_get(stages, i));
	json_object_set_new(doc, "at_s", json_real(seconds_since(&s->began)));
	return doc;
}

static void thin_out(struct bench_server *s)
{
	for (size_t i = 1; i < json_array_size(s->each); i++)
		json_array_remove(s->each, i);
	s->every_s *= 2;
}

/* Wait until the next sample is due. Returns false if polling must stop. */
static bool wait_next(struct bench_server *s, struct timespec *next)
{
	bool stop;

	next->tv_sec += s->every_s;
	pthread_mutex_lock(&s->lock);
	while (!s->stop && pthread_cond_timedwait(&s->ends, &s->lock, next) == 0)
		;
	stop = s->stop;
	pthread_mutex_unlock(&s->lock);
	return !stop;
}

static void *poll_main(void *arg)
{
	struct bench_server *s = arg;
	struct timespec next = s->began;

	while (wait_next(s, &next)) {
		json_t *doc = sample(s);
		if (doc)
			json_array_append_new(s->each, doc);
		if (json_array_size(s->each) >= SAMPLES_MAX)
			thin_out(s);
	}
	return NULL;
}

static void server_free(struct bench_server *s)
{
	json_decref(s->doc);
	pthread_cond_destroy(&s->ends);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static struct bench_server *server_new(const char *url)
{
	struct bench_server *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;

	if (!s)
		return NULL;
	snprintf(s->url, sizeof(s->url), "%s", url);
	s->every_s = 1;
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->ends, &attr);
	pthread_condattr_destroy(&attr);
	clock_gettime(CLOCK_MONOTONIC, &s->began);
	s->each = json_array();
	s->doc = json_pack("{s:s,s:o}", "url", url, "each", s->each);
	if (s->doc)
		return s;
	server_free(s);
	return NULL;
}

int bench_server_start(const char *url, struct bench_server **server, struct weir_err *err)
{
	struct bench_server *s = server_new(url);
	json_t *start = NULL;
	int rc;

	if (!s) {
		snprintf(err->text, sizeof(err->text), "out of memory");
		return WEIR_ENOMEM;
	}
	rc = ask(s->url, "/api/v1/stages", &start, err);
	if (rc == 0)
		rc = json_object_set_new(s->doc, "start", start) == 0 ? 0 : WEIR_ENOMEM;
	if (rc == 0 && pthread_create(&s->thread, NULL, poll_main, s) != 0)
		rc = WEIR_ESYS;
	if (rc != 0) {
		server_free(s);
		return rc;
	}
	*server = s;
	return 0;
}

json_t *bench_server_stop(struct bench_server *s)
{
	struct weir_err err;
	json_t *end = NULL, *decisions = NULL, *doc;

	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->ends);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	if (ask(s->url, "/api/v1/stages", &end, &err) == 0)
		json_object_set_new(s->doc, "end", end);
	if (ask(s->url, "/api/v1/decisions?n=500", &decisions, &err) == 0)
		json_object_set(s->doc, "decisions", json_object_get(decisions, "decisions"));
	json_decref(decisions);
	doc = json_incref(s->doc);
	server_free(s);
	return doc;
}
