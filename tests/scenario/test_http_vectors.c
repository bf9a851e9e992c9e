/* SPDX-License-Identifier: MIT */
/* The vectors of tests/conformance/vectors.txt over real sockets to a running graph: whole, byte by
 * byte, and after a good request. Each expects the answers in order, and then either one more
 * answer on the same connection or its end, with nothing served afterwards. */
#include <ctype.h>
#include <netinet/tcp.h>

#include "fixture/http/server.h"

/* Sizes of the longest decoded vector, and of a line of the file. */
#define BYTES_MAX (128 * 1024)
#define LINE_MAX_ 1024
/* Longer vectors (those of limits) are sent byte by byte up to SINGLE_BYTES, then in steps of
 * STEP_BYTES: the decisive byte is near the limit of 16 KiB, the rest only repeats. */
#define SINGLE_BYTES 20000
#define STEP_BYTES   61
/* Fewer would mean that the file was not read; it has more than 500. */
#define VECTORS_MIN 150

struct vector {
	char statuses[64], end[16], name[64];
	char *p;
	size_t n;
};

static struct server server;
static char bytes[BYTES_MAX];

/* ---- decoding; a text ends at `stop` or at NUL ---- */

static const char *decode(const char *at, char stop, struct vector *v);

static void put(struct vector *v, const char *p, size_t n)
{
	CU_ASSERT_FATAL(v->n + n <= BYTES_MAX);
	memcpy(v->p + v->n, p, n);
	v->n += n;
}

static void put_text(struct vector *v, const char *text)
{
	put(v, text, strlen(text));
}

/* "N:text)" after "\(". */
static const char *decode_repeat(const char *at, struct vector *v)
{
	char *text;
	long times = strtol(at, &text, 10);
	size_t from = v->n, n;

	CU_ASSERT_FATAL(times > 0 && *text == ':');
	at = decode(text + 1, ')', v);
	n = v->n - from;
	for (long i = 1; i < times; i++)
		put(v, v->p + from, n);
	return at;
}

static const char *decode_hex(const char *at, struct vector *v)
{
	unsigned byte = 256;
	char c;

	CU_ASSERT_FATAL(isxdigit((unsigned char)at[0]) && sscanf(at, "%2x", &byte) == 1);
	c = (char)byte;
	put(v, &c, 1);
	return at + 2;
}

#define POST "POST / HTTP/1.1\r\nHost: t\r\n"

/* The rest of an escape after its backslash. Returns the text after it. */
static const char *decode_escape(const char *at, struct vector *v)
{
	switch (*at) {
	case 'r':
		put_text(v, "\r");
		break;
	case 'n':
		put_text(v, "\n");
		break;
	case 't':
		put_text(v, "\t");
		break;
	case '\\':
		put_text(v, "\\");
		break;
	case 'G':
		put_text(v, "GET / HTTP/1.1\r\nHost: t\r\n");
		break;
	case 'P':
		put_text(v, POST);
		break;
	case 'C':
		put_text(v, POST "Transfer-Encoding: chunked\r\n\r\n");
		break;
	case 'x':
		return decode_hex(at + 1, v);
	case '(':
		return decode_repeat(at + 1, v);
	default:
		CU_FAIL_FATAL("an unknown escape in vectors.txt");
	}
	return at + 1;
}

static const char *decode(const char *at, char stop, struct vector *v)
{
	while (*at != stop && *at != '\0') {
		if (*at == '\\') {
			at = decode_escape(at + 1, v);
			continue;
		}
		put(v, at++, 1);
	}
	CU_ASSERT_EQUAL_FATAL(*at, stop);
	return stop ? at + 1 : at;
}

static void read_vector(char *line, struct vector *v)
{
	int at = 0;

	line[strcspn(line, "\n")] = '\0';
	*v = (struct vector){.p = bytes};
	if (sscanf(line, "%63s %15s %63s %n", v->statuses, v->end, v->name, &at) != 3) {
		fprintf(stderr, "no vector: %s\n", line);
		CU_FAIL_FATAL("vectors.txt has a line that is no vector");
	}
	decode(line + at, '\0', v);
}

/* ---- running the vectors ---- */

static bool is_none(const struct vector *v)
{
	return strcmp(v->statuses, "none") == 0;
}

/* Do the answers listed in `statuses` arrive? */
static bool answers_come(int fd, const struct vector *v)
{
	struct answer a = {0};
	const char *at = v->statuses;
	bool good = true;

	while (good && !is_none(v) && *at) {
		char *end;
		int status = (int)strtol(at, &end, 10);
		bool bodiless = *end == '-';
		good = answer_read_as(fd, &a, bodiless) && a.status == status;
		if (!good)
			fprintf(
			    stderr, "%s: expected %s, got %d\n", v->name, v->statuses, a.status);
		at = end + bodiless;
		at += *at == ',';
	}
	answer_free(&a);
	return good;
}

static bool another_comes(int fd)
{
	struct answer a = {0};
	bool good = answer_read(fd, &a) && answer_is(&a, 200, "GET /after\n");

	answer_free(&a);
	return good;
}

enum way { WHOLE, BYTES, BEHIND, N_WAYS };

static void send_vector(int fd, const struct vector *v, enum way way)
{
	size_t step = way == BYTES ? 1 : v->n, at = 0;

	while (at < v->n) {
		if (way == BYTES && at >= SINGLE_BYTES)
			step = STEP_BYTES;
		if (step > v->n - at)
			step = v->n - at;
		if (!client_send(fd, v->p + at, step))
			return; /* already refused */
		at += step;
	}
}

static void play(const struct vector *v, enum way way)
{
	static const char *const ways[] = {"whole", "byte by byte", "behind another"};
	struct answer a = {0};
	int fd = client_open(server.port), yes = 1;
	bool keep = strcmp(v->end, "keep") == 0, good;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	if (way == BEHIND)
		client_say(fd, GET("/first"));
	send_vector(fd, v, way);
	if (is_none(v))
		shutdown(fd, SHUT_WR);
	else
		client_say(fd, keep ? GET("/after") : GET("/never"));
	if (way == BEHIND)
		CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /first\n"));
	good = answers_come(fd, v) && (keep ? another_comes(fd) : client_at_end(fd));
	if (!good)
		fprintf(stderr, "%s, %s: not %s and %s\n", v->name, ways[way], v->statuses, v->end);
	CU_ASSERT(good);
	close(fd);
	answer_free(&a);
}

static void test_vectors(void)
{
	FILE *file = fopen(WEIR_SOURCE_DIR "/tests/conformance/vectors.txt", "r");
	static char line[LINE_MAX_];
	struct vector v;
	int n = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	server = server_new("t.reply");
	fixture_set(server.web, "with.max_body", "1000");
	server_start(&server);
	while (fgets(line, sizeof(line), file)) {
		if (line[0] == '#' || line[0] == '\n')
			continue;
		read_vector(line, &v);
		CU_ASSERT_FATAL(strcmp(v.end, "keep") == 0 || strcmp(v.end, "close") == 0);
		for (int way = 0; way < N_WAYS; way++)
			play(&v, (enum way)way);
		n++;
	}
	fclose(file);
	CU_ASSERT(n >= VECTORS_MIN);
	server_stop(&server);
}

CUNIT_MAIN("http vectors", {"vectors", test_vectors})
