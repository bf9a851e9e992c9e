/* SPDX-License-Identifier: MIT */
/* Fields of events by name: those that take a part of their own, such as header.NAME. */
#include "fixture/graph/probes.h"

#include "plan/plan.h"

static const struct weir_field fields[] = {
    {"path", probe_producer, ""}, {"header.", probe_producer, ""}, {.name = NULL}};
static const struct weir_event_type type = {
    .name = "fields", .size = sizeof(struct probe), .fields = fields};

static void test_found(void)
{
	const char *arg = "?";

	CU_ASSERT_PTR_EQUAL(plan_field(&type, "path", &arg), &fields[0]);
	CU_ASSERT_PTR_NULL(arg);
	CU_ASSERT_PTR_EQUAL(plan_field(&type, "header.x", &arg), &fields[1]);
	CU_ASSERT_STRING_EQUAL(arg, "x");
}

static void test_not_found(void)
{
	static const char *const names[] = {"", "pat", "paths", "path.", "header", "header.", "."};
	const char *arg = "?";

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		CU_ASSERT_PTR_NULL(plan_field(&type, names[i], &arg));
		CU_ASSERT_PTR_NULL(arg);
	}
	CU_ASSERT_PTR_NULL(plan_field(NULL, "path", &arg));
}

CUNIT_MAIN("plan_field", {"found", test_found}, {"not found", test_not_found})
