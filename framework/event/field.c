/* SPDX-License-Identifier: MIT */
/* Values of fields as text and as numbers; see field.h. */
#include "event/field.h"

/* Write `n` in decimal. */
static struct weir_slice digits_of(uint64_t n, char digits[FIELD_NUMBER_BYTES])
{
	char *end = digits + FIELD_NUMBER_BYTES, *p = end;

	do
		*--p = (char)('0' + n % 10);
	while (n /= 10);
	return (struct weir_slice){p, (size_t)(end - p)};
}

struct weir_slice field_of_payload(
    const struct field_ref *f, const struct weir_event *ev, char digits[FIELD_NUMBER_BYTES])
{
	const void *payload = weir_payload(ev, f->payload);
	uint64_t n;

	if (!payload)
		return (struct weir_slice){0};
	if (f->of_payload->text)
		return f->of_payload->text(payload, f->arg);
	if (!f->of_payload->number(payload, f->arg, &n))
		return (struct weir_slice){0};
	return digits_of(n, digits);
}

/* Read a decimal number. A fraction is left out. Returns whether `s` is a number. */
static bool read_number(struct weir_slice s, uint64_t *value)
{
	size_t i = 0;

	*value = 0;
	for (; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++)
		if (__builtin_mul_overflow(*value, 10, value) ||
		    __builtin_add_overflow(*value, (uint64_t)(s.p[i] - '0'), value))
			*value = UINT64_MAX - 1; /* too large, but known */
	bool whole = i > 0;
	if (i < s.n && s.p[i] == '.')
		for (i++; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++)
			;
	return whole && i == s.n;
}

bool field_number(const struct field_ref *f, const struct weir_event *ev, uint64_t *number)
{
	if (f->field)
		return read_number(f->field->get(ev, f->arg), number);
	const void *payload = weir_payload(ev, f->payload);
	if (!payload)
		return false;
	if (f->of_payload->number)
		return f->of_payload->number(payload, f->arg, number);
	return read_number(f->of_payload->text(payload, f->arg), number);
}
