/* SPDX-License-Identifier: MIT */
/* Shows and sets the global admission mode; see overload.h. Every attempt to set it is logged,
 * whether it succeeds or fails. */
#include "overload.h"

#include <stdlib.h>
#include <string.h>

#include <weir/knob.h>
#include <weir/log.h>

/* The names of the modes, in the order of enum weir_admission_mode. */
static const struct weir_knob overload_row = {
    .name = "mode", .type = WEIR_KNOB_ENUM, .choices = "off|shadow|enforce"};

/* Return the mode in {"mode": "off"}; a number or boolean is converted to its JSON text. Returns
 * NULL with the reply filled if the body is invalid. */
static char *take_word(const struct request *request, struct reply *r)
{
	json_error_t err;
	json_t *body = json_loadb(request->body, request->n_body, JSON_REJECT_DUPLICATES, &err);
	json_t *value = json_object_get(body, overload_row.name);
	char *text = NULL;

	if (!body)
		reply_problem(r, 400, "the body is not JSON: %s", err.text);
	else if (!value || json_object_size(body) != 1)
		reply_problem(r, 400, "the body must be {\"mode\": \"...\"} and nothing else");
	else if (json_is_string(value))
		text = strdup(json_string_value(value));
	else if (json_is_number(value) || json_is_boolean(value))
		text = json_dumps(value, JSON_ENCODE_ANY | ADMIN_JSON_REALS);
	else
		reply_problem(r, 400, "the mode must be a string, a number, true or false");
	if (!text && r->status == 0)
		reply_problem(r, 503, "out of memory");
	json_decref(body);
	return text;
}

void answer_overload(const struct call *c, struct reply *r)
{
	int mode = (int)c->source->overload(c->source->arg);
	char word[16];

	weir_knob_print(&overload_row, &mode, word, sizeof(word));
	reply_json(r, 200, json_pack("{s:s}", "mode", word));
}

void answer_set_overload(const struct call *c, struct reply *r)
{
	char why[200] = "";
	char *word = take_word(c->request, r);
	int mode = WEIR_ADMISSION_ENFORCE;

	if (!word)
		return;
	int rc = weir_knob_parse(&overload_row, word, &mode, why, sizeof(why));
	if (rc == 0)
		rc = c->source->set_overload(c->source->arg, (enum weir_admission_mode)mode);
	weir_log(rc == 0 ? WEIR_LOG_INFO : WEIR_LOG_WARN, "admin: set overload.mode to '%.80s': %s",
	    word, rc == 0 ? "done" : why);
	free(word);
	if (rc == 0)
		answer_overload(c, r);
	else
		reply_problem(r, status_of(rc), "%s", *why ? why : weir_error_text(rc));
}
