/* SPDX-License-Identifier: MIT */
/*
 * http.compress: compresses answers with gzip, zstd or brotli for clients that accept it.
 *
 * The stage only adds a filter; compression happens in the thread that answers. It is placed before the stage
 * that answers and behind a cache, `web > cache > compress > origin`, so that the cache keeps what came out.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <weir/http.h>
#include <weir/weir.h>

#include "http/site/compress.h"

extern const struct weir_stage_ops weir_stage_http_compress;

static void compress_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	struct compress *c = weir_state(st);

	/* without memory for the filter, the answer is sent as it is */
	for (int i = 0; i < n; i++)
		if (!compress_watch(c, weir_http_request(ev[i])))
			weir_count(st, COMPRESS_NO_MEMORY, 1);
	weir_emit_run(st, 0, ev, n);
}

/* ---- startup ---- */

static int refuse(struct weir_stage *st, struct weir_err *err, const char *at, const char *hint)
{
	weir_blame(st, at);
	snprintf(err->hint, sizeof(err->hint), "%s", hint);
	return WEIR_EINVAL;
}

static int add_coding(struct weir_stage *st, struct compress *c, const char *text, const char *at,
    struct weir_err *err)
{
	enum encoding e = encoding_find((struct weir_slice){text, strlen(text)});

	if (e >= ENCODING_IDENTITY) {
		snprintf(err->text, sizeof(err->text), "there is no coding '%.40s'", text);
		return refuse(st, err, at, "gzip, zstd and br exist");
	}
	if (!codec_exists(e)) {
		snprintf(
		    err->text, sizeof(err->text), "this build cannot compress with '%s'", text);
		return refuse(
		    st, err, at, "build it with zlib1g-dev, libzstd-dev and libbrotli-dev");
	}
	for (int i = 0; i < c->n; i++)
		if (c->order[i] == e) {
			snprintf(err->text, sizeof(err->text), "'%s' is named twice", text);
			return refuse(st, err, at, "name it once");
		}
	c->order[c->n++] = e;
	return 0;
}

static int add_codings(struct weir_stage *st, struct compress *c, const struct compress_conf *conf,
    struct weir_err *err)
{
	static const enum encoding all[] = {ENCODING_ZSTD, ENCODING_BR, ENCODING_GZIP};
	char at[32];
	int rc = 0;

	for (int i = 0; rc == 0 && i < conf->codings.n; i++) {
		snprintf(at, sizeof(at), "codings.%d", i + 1);
		rc = add_coding(st, c, conf->codings.items[i], at, err);
	}
	for (int i = 0; conf->codings.n == 0 && i < 3; i++)
		if (codec_exists(all[i]))
			c->order[c->n++] = all[i];
	if (rc == 0 && c->n == 0) {
		snprintf(err->text, sizeof(err->text), "this build cannot compress at all");
		return refuse(
		    st, err, "codings", "build it with zlib1g-dev, libzstd-dev and libbrotli-dev");
	}
	return rc;
}

static int compress_init(struct weir_stage *st, struct weir_err *err)
{
	const struct compress_conf *conf = weir_conf(st);
	struct compress *c = weir_state(st);
	const struct weir_stage *other = weir_behind_of(st, 0, &weir_stage_http_compress);

	c->stage = st;
	if (other) {
		snprintf(err->text, sizeof(err->text),
		    "answers would be compressed twice, here and by stage '%s'",
		    weir_stage_name(other));
		return refuse(st, err, "", "keep the one that is nearer to the stage that answers");
	}
	return add_codings(st, c, conf, err);
}

#define ROW(member) offsetof(struct compress_conf, member)

static const struct weir_knob knobs[] = {
    {.name = "types",
	.type = WEIR_KNOB_STRINGS,
	.offset = ROW(types),
	.help =
	    "media types that are compressed, with one '*' for any bytes, such as text/*; none: "
	    "text/*, application/json, application/javascript, application/xml, "
	    "application/*+json, application/*+xml, image/svg+xml"},
    {.name = "codings",
	.type = WEIR_KNOB_STRINGS,
	.offset = ROW(codings),
	.help = "codings, the preferred one first, among those that a client likes equally well; "
		"none: zstd, br, gzip"},
    {.name = "level",
	.type = WEIR_KNOB_INT,
	.offset = ROW(level),
	.def = "4",
	.min = 1,
	.max = 9,
	.flags = WEIR_KNOB_LIVE,
	.help =
	    "from 1, fastest, to 9, smallest; 'degrade' lowers it, and in the end sends answers "
	    "as they are"},
    {.name = "min_length",
	.type = WEIR_KNOB_BYTES,
	.offset = ROW(min_length),
	.def = "1KiB",
	.min = 1,
	.max = 1 << 30,
	.flags = WEIR_KNOB_LIVE,
	.help = "shorter bodies are sent as they are, if their length is known"},
    {.name = "max_whole",
	.type = WEIR_KNOB_BYTES,
	.offset = ROW(max_whole),
	.def = "1MiB",
	.min = 0,
	.max = 1 << 30,
	.flags = WEIR_KNOB_LIVE,
	.help =
	    "longest whole body that is compressed in one step; answers in parts have no limit"},
    {.name = "memory",
	.type = WEIR_KNOB_BYTES,
	.offset = ROW(memory),
	.def = "256MiB",
	.min = 0,
	.max = 1e12,
	.flags = WEIR_KNOB_LIVE,
	.help = "memory for all compressors together; beyond it answers are sent as they are"},
    {.name = NULL},
};

static const struct weir_metric metrics[] = {
    [COMPRESS_ANSWERS] = {"http_compress_answers_total", WEIR_METRIC_COUNTER, "answers",
	"answers compressed"},
    [COMPRESS_IN] = {"http_compress_in_bytes_total", WEIR_METRIC_COUNTER, "bytes",
	"bytes of bodies before compression"},
    [COMPRESS_OUT] = {"http_compress_out_bytes_total", WEIR_METRIC_COUNTER, "bytes",
	"bytes of the same bodies after compression"},
    [COMPRESS_PLAIN] = {"http_compress_plain_total", WEIR_METRIC_COUNTER, "answers",
	"answers sent as they are because of degrade or memory, or because they would not get "
	"shorter"},
    [COMPRESS_NO_MEMORY] = {"http_compress_no_memory_total", WEIR_METRIC_COUNTER, "answers",
	"answers sent as they are because 'memory' was used up"},
    [COMPRESS_MEMORY] = {"http_compress_memory_bytes", WEIR_METRIC_GAUGE, "bytes",
	"memory that compressors may take now"},
    {NULL, WEIR_METRIC_COUNTER, NULL, NULL},
};

static const struct weir_outlet outlets[] = {
    {"out", WEIR_ANY_EVENT, false, "every request"},
    {NULL, NULL, false, NULL},
};

const struct weir_stage_ops weir_stage_http_compress = {
    .abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_IN_PARTS,
    .name = "http.compress",
    .summary = "Compresses answers with gzip, zstd or brotli",
    .accepts = &weir_http_request_type,
    .outlets = outlets,
    .knobs = knobs,
    .conf_size = sizeof(struct compress_conf),
    .metrics = metrics,
    .state_size = sizeof(struct compress),
    .init = compress_init,
    .handle = compress_handle,
};
