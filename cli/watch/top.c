/* SPDX-License-Identifier: MIT */
/*
 * top: show the stages of a running server, updated once a second, with keys to pause, drain or
 * resume a stage. On a terminal, the alternate screen is used, and the terminal is restored at the
 * end. With -n or without a terminal, frames are printed one below the other. Any screen size
 * works: lines are truncated, and the selected stage remains visible.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <weir/clock.h>

#include "cli/act.h"
#include "cli/client/client.h"
#include "stage_state.h"
#include "top.h"

#define FRAME_MS 1000

struct screen {
	struct termios before;
	bool open;
};

static struct top top; /* not on the stack, since it takes 90 KB */
static volatile sig_atomic_t told_to_end;

static void on_signal(int signal)
{
	told_to_end |= signal != SIGWINCH; /* SIGWINCH only interrupts the wait */
}

/* ---- the screen ---- */

static void screen_open(struct screen *s)
{
	/* no SA_RESTART, since a signal must interrupt poll */
	struct sigaction act = {.sa_handler = on_signal};
	struct termios raw;

	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGWINCH, &act, NULL);
	tcgetattr(STDIN_FILENO, &s->before);
	raw = s->before;
	raw.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	fputs("\033[?1049h\033[?25l", stdout); /* alternate screen, cursor off */
	s->open = true;
}

static void screen_close(struct screen *s)
{
	if (!s->open)
		return;
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, &s->before);
	s->open = false;
}

static void screen_size(int *columns, int *lines)
{
	struct winsize size;

	*columns = 80;
	*lines = 24;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 4) {
		*columns = size.ws_col;
		*lines = size.ws_row;
	}
}

/* ---- requests ---- */

static int refresh(const struct verb *verb, const struct verb_args *args)
{
	json_t *stages = NULL, *history = NULL, *overload = NULL;

	client_renew();
	int rc = act_ask(verb, args, "GET", "/api/v1/stages", NULL, &stages);

	if (rc == VERB_OK)
		rc = act_ask(verb, args, "GET", STAGE_HISTORY_PATH, NULL, &history);
	if (rc == VERB_OK)
		rc = act_ask(verb, args, "GET", "/api/v1/overload", NULL, &overload);
	if (rc == VERB_OK && !top_take(&top, stages, history, overload))
		rc = VERB_UNREACHABLE;
	json_decref(stages);
	json_decref(history);
	json_decref(overload);
	top_arrange(&top);
	return rc;
}

/* Pause, drain or resume the selected stage, and show the result in the message line. */
static void steer(const struct verb_args *args, const char *how)
{
	const char *url = args->admin ? args->admin : CLIENT_DEFAULT_URL;
	struct client_answer answer = {0};
	struct weir_err err = {0};
	char path[ACT_PATH_MAX];

	if (!top.selected[0])
		return;
	snprintf(path, sizeof(path), "/api/v1/stages/%s/%s", top.selected, how);
	if (client_act(url, "POST", path, "{}", &answer, &err) != 0) {
		snprintf(top.message, sizeof(top.message), "%.150s", err.text);
		return;
	}
	json_t *doc = json_loadb(answer.body, answer.n, 0, NULL);
	if (answer.status == 200)
		snprintf(top.message, sizeof(top.message), "%s is %s", top.selected,
		    act_text(doc, "state"));
	else
		snprintf(top.message, sizeof(top.message), "%s", act_text(doc, "detail"));
	json_decref(doc);
	free(answer.body);
}

/* Run `weir why STAGE` and show its output until a key is pressed. */
static void why(const struct verb_args *args, struct screen *s)
{
	char *operand[] = {top.selected};
	struct verb_args about = {.admin = args->admin, .n = 1, .operand = operand};
	struct pollfd key = {.fd = STDIN_FILENO, .events = POLLIN};
	const struct verb *verb = verb_find("why");

	if (!verb || !top.selected[0])
		return;
	fputs("\033[H\033[J", stdout);
	verb->fn(verb, &about);
	fputs("\n(any key)", stdout);
	fflush(stdout);
	if (poll(&key, 1, -1) > 0)
		(void)!read(STDIN_FILENO, &(char[8]){0}, 8);
	(void)s;
}

/* ---- keys ---- */

static void type(char c)
{
	size_t n = strlen(top.filter);

	if (c == '\n' || c == '\r' || c == '\033')
		top.typing = false;
	else if ((c == '\b' || c == '\177') && n > 0)
		top.filter[n - 1] = '\0';
	else if (c > ' ' && c <= '~' && n + 1 < sizeof(top.filter))
		memcpy(top.filter + n, (char[]){c, '\0'}, 2);
	top_arrange(&top);
}

/* Handle a key. Returns false on quit. */
static bool obey(char c, const struct verb_args *args, struct screen *s)
{
	static const char *const how[] = {['p'] = "pause", ['d'] = "drain", ['r'] = "resume"};

	if (top.typing) {
		type(c);
		return true;
	}
	top.message[0] = '\0';
	switch (c) {
	case 'q':
		return false;
	case 'j':
	case 'k':
		top_move(&top, c == 'j' ? 1 : -1);
		break;
	case 's':
		top.order = (top.order + 1) % TOP_ORDERS;
		top_arrange(&top);
		break;
	case '/':
		top.typing = true;
		top.filter[0] = '\0';
		break;
	case 'p':
	case 'd':
	case 'r':
		steer(args, how[(int)c]);
		break;
	case 'w':
		why(args, s);
		break;
	default:
		break;
	}
	return true;
}

/* Read and handle keys; an arrow key is three bytes, such as "\033[A". Returns false on quit. */
static bool take_keys(const struct verb_args *args, struct screen *s)
{
	char key[32];
	ssize_t n = read(STDIN_FILENO, key, sizeof(key));

	if (n <= 0)
		return false; /* the terminal was closed */
	for (ssize_t i = 0; i < n; i++) {
		if (key[i] == '\033' && i + 2 < n && key[i + 1] == '[') {
			if (key[i + 2] == 'A' || key[i + 2] == 'B')
				top_move(&top, key[i + 2] == 'B' ? 1 : -1);
			i += 2;
		} else if (!obey(key[i], args, s)) {
			return false;
		}
	}
	return true;
}

/* ---- the loop ---- */

static void show(bool styled)
{
	int columns, lines;

	screen_size(&columns, &lines);
	if (styled)
		fputs("\033[H", stdout);
	top_draw(&top, stdout, columns, lines, styled);
	fflush(stdout);
}

static int64_t now_ms(void)
{
	return weir_clock_ns(CLOCK_MONOTONIC) / 1000000;
}

/* Show the frame and handle keys until the next frame is due. Returns false on quit or failure. */
static bool until_next(const struct verb_args *args, struct screen *s)
{
	int64_t due_ms = now_ms() + FRAME_MS;
	struct pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN};

	while (!told_to_end) {
		int64_t left_ms = due_ms - now_ms();
		show(true);
		int rc = poll(&keys, 1, left_ms > 0 ? (int)left_ms : 0);
		if (rc == 0)
			return true;
		if (rc < 0 && errno != EINTR)
			return false;
		if (rc > 0 && !take_keys(args, s))
			return false;
	}
	return false;
}

static int watch(const struct verb *verb, const struct verb_args *args)
{
	struct screen screen = {0};
	int rc = refresh(verb, args);

	if (rc != VERB_OK)
		return rc;
	screen_open(&screen);
	while (rc == VERB_OK && until_next(args, &screen))
		rc = refresh(verb, args);
	screen_close(&screen);
	return rc;
}

int verb_top(const struct verb *verb, const struct verb_args *args)
{
	int n = 1, rc = VERB_OK;

	if (!act_count(verb, args, 86400, &n))
		return VERB_USAGE;
	if (!args->json && !args->count && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		return watch(verb, args);
	for (int i = 0; i < n && rc == VERB_OK; i++) {
		if (i > 0)
			poll(NULL, 0, FRAME_MS);
		rc = refresh(verb, args);
		if (rc == VERB_OK && args->json)
			top_print_json(&top);
		else if (rc == VERB_OK)
			show(false);
	}
	return rc;
}
