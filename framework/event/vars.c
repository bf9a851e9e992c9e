/* SPDX-License-Identifier: MIT */
/* The payload "vars": named texts, the short ones inside the payload; see weir/vars.h. */
#include <weir/vars.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longest text without an allocation. */
#define SMALL 23

struct var {
	char name[WEIR_VAR_NAME_MAX + 1];
	char *big; /* owned; NULL if the text is in `small` */
	uint32_t n;
	char small[SMALL + 1];
};

struct weir_vars {
	uint32_t n;
	struct var var[WEIR_VARS_MAX];
};

static const struct var *find(const struct weir_vars *vars, const char *name)
{
	for (uint32_t i = 0; i < vars->n; i++)
		if (strcmp(vars->var[i].name, name) == 0)
			return &vars->var[i];
	return NULL;
}

static void drop(void *payload)
{
	struct weir_vars *vars = payload;

	for (uint32_t i = 0; i < vars->n; i++)
		free(vars->var[i].big);
}

struct weir_vars *weir_vars(struct weir_stage *st, struct weir_event *ev)
{
	void *vars = weir_payload(ev, &weir_vars_type);

	return vars ? vars : weir_payload_new(st, ev, &weir_vars_type);
}

int weir_vars_set(struct weir_vars *vars, const char *name, struct weir_slice text)
{
	size_t n = strlen(name);

	if (!vars) /* weir_vars found no memory */
		return WEIR_ENOMEM;
	const struct var *old = find(vars, name);
	struct var *v = old ? &vars->var[old - vars->var] : &vars->var[vars->n];
	char *big = NULL;
	if (n == 0 || n > WEIR_VAR_NAME_MAX || text.n > WEIR_VAR_TEXT_MAX)
		return WEIR_EINVAL;
	if (!old && vars->n == WEIR_VARS_MAX)
		return WEIR_EBUSY;
	if (text.n > SMALL && !(big = malloc(text.n)))
		return WEIR_ENOMEM;
	/* `text` may be the former text, so this is copied before it is freed */
	if (text.n > 0)
		memmove(big ? big : v->small, text.p, text.n);
	free(v->big);
	v->big = big;
	v->n = (uint32_t)text.n;
	if (!old)
		memcpy(vars->var[vars->n++].name, name, n + 1);
	return 0;
}

int weir_vars_set_number(struct weir_vars *vars, const char *name, int64_t number)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "%" PRId64, number);

	return weir_vars_set(vars, name, (struct weir_slice){text, (size_t)n});
}

struct weir_slice weir_vars_get(const struct weir_vars *vars, const char *name)
{
	const struct var *v = find(vars, name);

	if (!v)
		return (struct weir_slice){0};
	return (struct weir_slice){v->big ? v->big : v->small, v->n};
}

bool weir_vars_number(const struct weir_vars *vars, const char *name, int64_t *number)
{
	struct weir_slice s = weir_vars_get(vars, name);
	bool minus = s.n > 0 && s.p[0] == '-';
	int64_t value = 0;

	if (s.n == (size_t)minus)
		return false;
	for (size_t i = minus; i < s.n; i++) {
		int digit = s.p[i] - '0';
		if (digit < 0 || digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, minus ? -digit : digit, &value))
			return false;
	}
	*number = value;
	return true;
}

static struct weir_slice get(const void *payload, const char *arg)
{
	return weir_vars_get(payload, arg);
}

static const struct weir_payload_field fields[] = {
    {"", get, NULL, "the variable of this name"}, {.name = NULL}};

const struct weir_payload_type weir_vars_type = {
    .name = "vars",
    .size = sizeof(struct weir_vars),
    .drop = drop,
    .fields = fields,
    .summary = "named texts and numbers",
};
