/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a configuration: never a crash, a leak or a hang, and either a spec or errors, never
 * both or neither. An accepted configuration can be explained, drawn and checked. Files of the
 * corpus are named after their contents.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>
#include <weir/graph.h>
#include <weir/spec.h>

#include "config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(int cond, const char *what)
{
	if (cond)
		return;
	fprintf(stderr, "fuzz_yaml: %s\n", what);
	abort();
}

/* Each error has a message, and all of them can be printed as valid text. */
static void look_at_errors(const struct weir_errs *errs)
{
	size_t size = weir_errs_format(errs, NULL, 0) + 1;
	char *text = malloc(size);

	for (int i = 0; i < errs->n; i++) {
		const struct weir_err *e = &errs->err[i];
		expect(e->text[0] != '\0' && e->code != 0, "an error says nothing");
		expect(e->line >= 0 && (e->line == 0 || (e->col >= 1 && e->len >= 1)),
		    "an error has an impossible place");
	}
	if (text) {
		expect(weir_errs_format(errs, text, size) == size - 1, "two lengths of one text");
		for (size_t i = 0; i + 1 < size; i++)
			expect((unsigned char)text[i] >= 0x20 || text[i] == '\n' || text[i] == '\t',
			    "a control byte gets out");
	}
	free(text);
}

static void look_at_spec(const struct weir_spec *spec)
{
	static struct weir_errs errs;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (out) {
		config_explain(spec, NULL, out);
		config_graph(spec, "text", out);
		config_graph(spec, "dot", out);
		config_graph(spec, "mermaid", out);
		fclose(out);
	}
	free(text);
	memset(&errs, 0, sizeof(errs));
	int rc = weir_spec_check(spec, &errs);
	expect((rc == 0) == (errs.total == 0), "weir_spec_check contradicts itself");
	look_at_errors(&errs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct weir_errs errs;
	struct weir_spec *spec = NULL;

	memset(&errs, 0, sizeof(errs));
	int rc = config_load_text((const char *)data, size, "fuzz.yaml", &spec, &errs);
	expect((rc == 0) == (spec != NULL), "a code and a spec that contradict each other");
	expect((rc == 0) == (errs.total == 0), "a code and errors that contradict each other");
	look_at_errors(&errs);
	if (spec)
		look_at_spec(spec);
	weir_spec_free(spec);
	return 0;
}
