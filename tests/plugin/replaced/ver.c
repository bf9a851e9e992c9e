/* SPDX-License-Identifier: MIT */
/* A stage type that responds with its version (-DVERSION="one"; with -DNAME=x it has another name),
 * and records when its code is first run. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <weir/http.h>
#include <weir/weir.h>

#ifndef NAME
#define NAME ver
#endif
#define TEXT_(name)   #name
#define TEXT(name)    TEXT_(name)
#define SYMBOL_(name) weir_stage_##name
#define SYMBOL(name)  SYMBOL_(name)

#ifndef ABI
#define ABI WEIR_STAGE_ABI
#endif

/* Appends a line to the file $CONSTRUCTED each time this object is loaded. */
__attribute__((constructor)) static void ver_loaded(void)
{
	const char *path = getenv("CONSTRUCTED");
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

	if (fd != -1 && write(fd, VERSION "\n", sizeof(VERSION)) > 0)
		close(fd);
}

static void ver_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	static const char text[] = VERSION "\n";

	(void)st;
	for (int i = 0; i < n; i++) {
		struct weir_http_request *req = weir_http_request(ev[i]);
		weir_event_finish(&ev[i], weir_http_respond_copy(req, 200, "text/plain",
					      (struct weir_slice){text, sizeof(text) - 1}));
	}
}

struct ver_conf {
	int64_t tone;
};

static const struct weir_knob ver_knobs[] = {
    {.name = "tone",
	.type = WEIR_KNOB_INT,
	.offset = offsetof(struct ver_conf, tone),
	.def = "1",
	.help = "of build " VERSION},
    {0},
};

const struct weir_stage_ops SYMBOL(NAME) = {
    .abi = ABI,
    .name = TEXT(NAME),
    .summary = "Says which build of it this is",
    .accepts = &weir_http_request_type,
    .knobs = ver_knobs,
    .conf_size = sizeof(struct ver_conf),
    .handle = ver_handle,
};
