/* SPDX-License-Identifier: MIT */
/*
 * A stage type that misbehaves, for threads.sh. The path of a request selects how: /hang/FILE does
 * not return until FILE exists, /exit ends its thread, any other path gets a response. `hang` names
 * the callback that does not return until a file called "go" exists. Creating threads fails while
 * the file named by `refuse` exists. A call that hangs creates FILE.begun first.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/http.h>
#include <weir/weir.h>

enum { HANG_NEVER, HANG_INIT, HANG_START, HANG_THREAD };

struct stubborn_conf {
	int hang;
	char *refuse, *body;
};

/* Exists in a program built with ASan, which requires this call before code that does not return.
 * This file is compiled without ASan. */
extern void __asan_handle_no_return(void) __attribute__((weak));

static void end_thread(void)
{
	if (__asan_handle_no_return)
		__asan_handle_no_return();
	pthread_exit(NULL);
}

static void wait_for(const char *file)
{
	const struct timespec look = {0, 5000000};
	char begun[128];

	snprintf(begun, sizeof(begun), "%s.begun", file);
	close(open(begun, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	while (access(file, F_OK) != 0)
		nanosleep(&look, NULL);
}

static int stubborn_init(struct weir_stage *st, struct weir_err *err)
{
	const struct stubborn_conf *conf = weir_conf(st);

	(void)err;
	if (conf->hang == HANG_INIT)
		wait_for("go");
	return 0;
}

static int stubborn_start(struct weir_stage *st, struct weir_err *err)
{
	const struct stubborn_conf *conf = weir_conf(st);

	(void)err;
	if (conf->hang == HANG_START)
		wait_for("go");
	return 0;
}

static int stubborn_thread_init(struct weir_stage *st)
{
	const struct stubborn_conf *conf = weir_conf(st);

	if (conf->hang == HANG_THREAD)
		wait_for("go");
	return access(conf->refuse, F_OK) == 0 ? WEIR_ENOENT : 0;
}

static void stubborn_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	const struct stubborn_conf *conf = weir_conf(st);
	char file[64];

	for (int i = 0; i < n; i++) {
		struct weir_http_request *req = weir_http_request(ev[i]);
		if (weir_slice_is(req->path, "/exit"))
			end_thread();
		if (req->path.n > 6 && memcmp(req->path.p, "/hang/", 6) == 0) {
			snprintf(file, sizeof(file), "%.*s", (int)req->path.n - 6, req->path.p + 6);
			wait_for(file);
		}
		weir_http_respond(req, 200, "text/plain",
		    (struct weir_slice){conf->body, strlen(conf->body)}, NULL, NULL);
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

static const struct weir_knob stubborn_knobs[] = {
    {.name = "hang",
	.type = WEIR_KNOB_ENUM,
	.offset = offsetof(struct stubborn_conf, hang),
	.def = "never",
	.choices = "never|init|start|thread",
	.help = "the callback that does not return"},
    {.name = "refuse",
	.type = WEIR_KNOB_STRING,
	.offset = offsetof(struct stubborn_conf, refuse),
	.def = "refuse",
	.help = "a file: while it is there no thread can begin"},
    {.name = "body",
	.type = WEIR_KNOB_STRING,
	.offset = offsetof(struct stubborn_conf, body),
	.def = "done",
	.help = "the answer"},
    {.name = NULL},
};

const struct weir_stage_ops weir_stage_stubborn = {
    .abi = WEIR_STAGE_ABI,
    .name = "stubborn",
    .summary = "Misbehaves on purpose",
    .accepts = &weir_http_request_type,
    .knobs = stubborn_knobs,
    .conf_size = sizeof(struct stubborn_conf),
    .init = stubborn_init,
    .start = stubborn_start,
    .thread_init = stubborn_thread_init,
    .handle = stubborn_handle,
};
