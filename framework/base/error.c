/* SPDX-License-Identifier: MIT */
/*
 * Looks up the outcome, word and message of an error code in WEIR_ERROR_TABLE, and aborts on failed
 * assertions. weir_assert_failed may run anywhere, even in a signal handler, so it formats into a
 * buffer on the stack and calls write(2).
 */
#include <weir/error.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Declared here again, since base must not include graph.h. The symbol is weak, so that programs
 * built from base alone (tests, tools) link without a graph. */
extern bool weir_thread_running(const char **stage, const char **event_type) __attribute__((weak));

enum weir_outcome weir_outcome_of(int code)
{
	switch (code) {
#define OUTCOME(name, number, kind, word, text)                                                    \
	case number:                                                                               \
		return WEIR_OUTCOME_##kind;
		WEIR_ERROR_TABLE(OUTCOME)
#undef OUTCOME
	}
	return WEIR_OUTCOME_FAILED;
}

const char *weir_error_word(int code)
{
	switch (code) {
#define WORD(name, number, kind, word, text)                                                       \
	case number:                                                                               \
		return word;
		WEIR_ERROR_TABLE(WORD)
#undef WORD
	}
	return "unknown";
}

const char *weir_error_text(int code)
{
	switch (code) {
#define TEXT(name, number, kind, word, text)                                                       \
	case number:                                                                               \
		return text;
		WEIR_ERROR_TABLE(TEXT)
#undef TEXT
	}
	return "an unknown error";
}

void weir_assert_failed(const char *cond, const char *file, int line, const char *func)
{
	const char *stage = NULL, *type = NULL;
	char text[512];

	int n = snprintf(text, sizeof(text), "weir: bug: '%s' is false at %s:%d in %s()", cond,
	    file, line, func);
	size_t used = n < 0 ? 0 : (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;
	if (weir_thread_running && weir_thread_running(&stage, &type))
		snprintf(text + used, sizeof(text) - used, ", running stage '%s' on '%s'",
		    stage ? stage : "?", type ? type : "?");
	for (used = 0; used < sizeof(text) - 1 && text[used];)
		used++;
	text[used] = '\n';
	if (write(STDERR_FILENO, text, used + 1) < 0)
		abort(); /* the process ends in either case */
	abort();
}
