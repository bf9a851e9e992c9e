/* SPDX-License-Identifier: MIT */
/* Shows payloads that stages were refused; see payloads.h. */
#include "payloads.h"

#include <stdio.h>
#include <string.h>

#include "cli/client/plain.h"

static double mib(const json_t *doc, const char *key)
{
	return json_number_value(json_object_get(json_object_get(doc, "payloads"), key)) / 1048576;
}

void payloads_text(const json_t *doc, const json_t *stage, char *text, size_t size)
{
	static const char *const key[] = {"budget", "memory", "slots", "family"};
	static const char *const what[] = {"over payloads.memory", "without memory",
	    "beside others of the event", "over the memory of a family"};
	const json_t *refused = json_object_get(stage, "payloads_refused_total");
	const char *name = json_string_value(json_object_get(stage, "name"));
	size_t at = 0;

	text[0] = '\0';
	for (int i = 0; i < 4 && at < size; i++) {
		long long n = json_integer_value(json_object_get(refused, key[i]));
		if (n <= 0)
			continue;
		at += (size_t)snprintf(text + at, size - at, "%.64s%s%lld %s",
		    at == 0 && name ? name : "", at == 0 ? " was refused payloads: " : ", ", n,
		    what[i]);
		if (i == 0 && at < size)
			at += (size_t)snprintf(text + at, size - at, " (%.1f of %.1f MiB reserved)",
			    mib(doc, "reserved_bytes"), mib(doc, "limit_bytes"));
	}
}

void payloads_print(const json_t *doc, const char *only)
{
	const json_t *stages = json_object_get(doc, "stages");
	char text[300];

	for (size_t i = 0; i < json_array_size(stages); i++) {
		const json_t *stage = json_array_get(stages, i);
		const char *name = json_string_value(json_object_get(stage, "name"));
		payloads_text(doc, stage, text, sizeof(text));
		if (text[0] && (!only || (name && strcmp(name, only) == 0)))
			plain_print(stdout, "%s\n", text);
	}
}
