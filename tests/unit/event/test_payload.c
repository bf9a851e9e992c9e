/* SPDX-License-Identifier: MIT */
/* The table of an event: put, find, take and drop; the budget; and the end of an event. */
#include "event/payload.h"

#include "fixture/graph/payloads.h"

#include "cunit_main.h"
#include "event/field.h"

static struct laden event;
static struct weir_event *ev;
static struct payload_budget *budget;

static void begin(uint64_t limit)
{
	payload_budget_put(budget);
	budget = payload_budget_new(limit, UINT64_MAX);
	laden_init(&event, 1);
	ev = &event.p.ev;
	fixture_reset();
}

static void *make(const struct weir_payload_type *type)
{
	enum weir_payload_refusal why;

	return payload_make(budget, NULL, type, &why);
}

static void *put(const struct weir_payload_type *type)
{
	void *payload = make(type), *moved = payload;

	CU_ASSERT_EQUAL_FATAL(weir_payload_put(ev, &moved), 0);
	CU_ASSERT_PTR_NULL(moved);
	return payload;
}

static uint64_t used(void)
{
	return atomic_load(&budget->used);
}

static void test_find_take_drop(void)
{
	begin(0);
	CU_ASSERT_PTR_NULL(weir_payload(ev, &third_type));
	CU_ASSERT_PTR_NULL(weir_payload_take(ev, &third_type));
	void *third = put(&third_type), *fourth = put(&fourth_type), *fifth = put(&fifth_type);
	CU_ASSERT_PTR_EQUAL(weir_payload(ev, &third_type), third);
	CU_ASSERT_PTR_EQUAL(weir_payload(ev, &fourth_type), fourth);
	CU_ASSERT_PTR_EQUAL(weir_payload_take(ev, &third_type), third);
	CU_ASSERT_PTR_NULL(weir_payload(ev, &third_type));
	CU_ASSERT_PTR_EQUAL(weir_payload(ev, &fourth_type), fourth);
	CU_ASSERT_PTR_EQUAL(weir_payload(ev, &fifth_type), fifth);
	weir_payload_drop(ev, &fourth_type);
	weir_payload_drop(ev, &fourth_type);
	CU_ASSERT_PTR_NULL(weir_payload(ev, &fourth_type));
	CU_ASSERT_PTR_EQUAL(weir_payload(ev, &fifth_type), fifth);
	weir_payload_drop(ev, &fifth_type);
	CU_ASSERT_EQUAL(event.payloads.n, 0);
	weir_payload_free(third);
	weir_payload_free(NULL);
}

static void test_zeroed_and_aligned(void)
{
	begin(1 << 20);
	static const struct weir_payload_type *const types[] = {
	    &third_type, &fourth_type, &fifth_type, &large_type};
	for (int i = 0; i < 4; i++) {
		unsigned char *p = put(types[i]);
		CU_ASSERT_EQUAL((uintptr_t)p % 16, 0);
		size_t bad = 0;
		for (size_t k = 0; k < types[i]->size; k++)
			bad += p[k] != 0;
		CU_ASSERT_EQUAL(bad, 0);
		memset(p, 0xff, types[i]->size);
	}
	payload_end(ev, WEIR_OK);
	CU_ASSERT_EQUAL(used(), 0);
}

static void test_limits(void)
{
	struct probe other = {0};
	void *extra = make(&image_type), *second;

	begin(1 << 20);
	put(&third_type);
	second = make(&third_type);
	CU_ASSERT_EQUAL(weir_payload_put(ev, &second), WEIR_EBUSY);
	CU_ASSERT_PTR_NOT_NULL(second);
	weir_payload_free(second);
	put(&fourth_type);
	put(&fifth_type);
	put(&large_type);
	CU_ASSERT_EQUAL(weir_payload_put(ev, &extra), WEIR_EBUSY);
	weir_event_init(&other.ev, &probe_type, 1);
	CU_ASSERT_EQUAL(weir_payload_put(&other.ev, &extra), WEIR_ETYPE);
	CU_ASSERT_PTR_NULL(weir_payload(&other.ev, &image_type));
	CU_ASSERT_PTR_NULL(weir_payload_take(&other.ev, &image_type));
	payload_end(ev, WEIR_OK);
	event.p.ev.state = WEIR_EVENT_FINISHED;
	CU_ASSERT_EQUAL(weir_payload_put(ev, &extra), WEIR_ECLOSED);
	atomic_fetch_add(&payloads_alive, 1); /* as image_new does */
	weir_payload_free(extra);
}

static void test_reserve(void)
{
	begin(1000);
	void *a = put(&third_type), *b = put(&fourth_type);
	CU_ASSERT_EQUAL(payload_reserve(budget, a, 600), 0);
	CU_ASSERT_EQUAL(payload_reserve(budget, b, 400), 0);
	CU_ASSERT_EQUAL(payload_reserve(budget, b, 401), WEIR_EPRESSURE);
	CU_ASSERT_EQUAL(payload_reserve(budget, b, 1001), WEIR_ENOMEM);
	CU_ASSERT_EQUAL(payload_reserve(budget, b, SIZE_MAX), WEIR_ENOMEM);
	CU_ASSERT_EQUAL(used(), 1000);
	CU_ASSERT_EQUAL(payload_reserve(budget, a, 100), 0);
	CU_ASSERT_EQUAL(payload_reserve(budget, b, 900), 0);
	CU_ASSERT_EQUAL(payload_reserve(budget, a, 0), 0);
	CU_ASSERT_EQUAL(used(), 900);
	weir_payload_drop(ev, &fourth_type);
	CU_ASSERT_EQUAL(used(), 0);
	CU_ASSERT_EQUAL(payload_reserve(budget, a, 1000), 0);
	atomic_store(&budget->limit, 10); /* a reload */
	CU_ASSERT_EQUAL(payload_reserve(budget, a, 1001), WEIR_ENOMEM);
	CU_ASSERT_EQUAL(payload_reserve(budget, a, 500), 0);
	payload_end(ev, WEIR_OK);
	CU_ASSERT_EQUAL(used(), 0);
}

/* What a payload has reserved stays in its first budget, which it refers to only while it has something
 * reserved; a reload may have made another budget since. */
static void test_budgets(void)
{
	struct payload_budget *other = payload_budget_new(1000, UINT64_MAX);

	begin(1000);
	void *a = put(&third_type), *b = put(&fourth_type);
	CU_ASSERT_EQUAL(payload_reserve(budget, a, 0), 0);
	CU_ASSERT_EQUAL(atomic_load(&budget->refs), 1);
	CU_ASSERT_EQUAL(payload_reserve(budget, a, 100), 0);
	CU_ASSERT_EQUAL(payload_reserve(other, a, 200), 0);
	CU_ASSERT_EQUAL(used(), 200);
	CU_ASSERT_EQUAL(atomic_load(&other->used), 0);
	CU_ASSERT_EQUAL(atomic_load(&budget->refs), 2);
	CU_ASSERT_EQUAL(payload_reserve(budget, b, 1000), WEIR_EPRESSURE); /* it would fit alone */
	CU_ASSERT_EQUAL(payload_reserve(budget, a, 0), 0);
	CU_ASSERT_EQUAL(atomic_load(&budget->refs), 1);
	payload_end(ev, WEIR_OK);
	payload_budget_put(other);
}

/* The largest struct that does not count by itself. */
static void test_largest_small(void)
{
	static const struct weir_payload_type edge = {.name = "edge", .size = WEIR_PAYLOAD_SMALL};

	begin(10);
	void *payload = put(&edge);
	CU_ASSERT_EQUAL(used(), 0);
	CU_ASSERT_EQUAL(payload_reserve(budget, payload, 10), 0);
	CU_ASSERT_EQUAL(used(), 10);
	payload_end(ev, WEIR_OK);
}

static void note_used(void *payload)
{
	*(uint64_t *)payload = used();
	CU_ASSERT_EQUAL(used(), 10);
}

/* Memory counts until `drop` has released it. */
static void test_counts_until_dropped(void)
{
	static const struct weir_payload_type counted = {
	    .name = "counted", .size = sizeof(uint64_t), .drop = note_used};

	begin(10);
	CU_ASSERT_EQUAL(payload_reserve(budget, put(&counted), 10), 0);
	payload_end(ev, WEIR_OK);
	CU_ASSERT_EQUAL(used(), 0);
}

/* Large types count by themselves, and are refused before they are allocated. */
static void test_large(void)
{
	enum weir_payload_refusal why = WEIR_PAYLOAD_SLOTS;

	begin(2 * large_type.size - 1);
	put(&large_type);
	CU_ASSERT_EQUAL(used(), large_type.size);
	CU_ASSERT_PTR_NULL(payload_make(budget, NULL, &large_type, &why));
	CU_ASSERT_EQUAL(why, WEIR_PAYLOAD_BUDGET);
	CU_ASSERT_EQUAL(used(), large_type.size);
	void *large = weir_payload(ev, &large_type);
	CU_ASSERT_EQUAL(payload_reserve(budget, large, 100), 0);
	CU_ASSERT_EQUAL(used(), large_type.size + 100);
	CU_ASSERT_EQUAL(payload_reserve(budget, large, UINT64_MAX), WEIR_ENOMEM);
	CU_ASSERT_EQUAL(payload_reserve(budget, large, 0), 0);
	CU_ASSERT_EQUAL(used(), large_type.size);
	payload_end(ev, WEIR_OK);
	CU_ASSERT_EQUAL(used(), 0);
}

/* The budget outlives the graph while a payload counts in it. */
static void test_taken_outlives(void)
{
	begin(100);
	void *third = put(&third_type);
	CU_ASSERT_EQUAL(payload_reserve(budget, third, 100), 0);
	CU_ASSERT_PTR_EQUAL(weir_payload_take(ev, &third_type), third);
	payload_end(ev, WEIR_OK);
	CU_ASSERT_EQUAL(used(), 100);
	payload_budget_put(budget);
	budget = NULL;
	weir_payload_free(third);
}

/* ---- the end of an event ---- */

static struct image *seen;
static void *kept;

static void read_it(struct probe *p, int status)
{
	(void)status;
	seen = weir_payload(&p->ev, &image_type);
	CU_ASSERT_PTR_NOT_NULL_FATAL(seen);
	CU_ASSERT_EQUAL(seen->width, 7);
}

static void take_it(struct probe *p, int status)
{
	read_it(p, status);
	kept = weir_payload_take(&p->ev, &image_type);
}

/* Use the memory of the event for something else, and for the next event. */
static void reuse(struct probe *p, int status)
{
	(void)status;
	memset(&event, 0xee, sizeof(event));
	laden_init((struct laden *)p, 1);
	struct image *next = put(&image_type);
	atomic_fetch_add(&payloads_alive, 1);
	next->width = 8;
}

static struct image *put_image(void)
{
	struct image *image = put(&image_type);

	atomic_fetch_add(&payloads_alive, 1);
	image->width = 7;
	image->pixels = malloc(10);
	return image;
}

static void test_finish_reads(void)
{
	begin(0);
	put_image();
	fixture_on_finish = read_it;
	payload_end(ev, WEIR_OK);
	CU_ASSERT_PTR_NOT_NULL(seen);
	CU_ASSERT_EQUAL(atomic_load(&payloads_alive), 0);
}

static void test_finish_takes(void)
{
	begin(0);
	struct image *image = put_image();
	put(&third_type);
	fixture_on_finish = take_it;
	payload_end(ev, WEIR_OK);
	CU_ASSERT_PTR_EQUAL(kept, image);
	CU_ASSERT_EQUAL(atomic_load(&payloads_alive), 1);
	weir_payload_free(kept);
	CU_ASSERT_EQUAL(atomic_load(&payloads_alive), 0);
}

static void test_finish_reuses(void)
{
	begin(0);
	put_image();
	fixture_on_finish = reuse;
	payload_end(ev, WEIR_OK);
	CU_ASSERT_EQUAL(atomic_load(&payloads_alive), 1);
	struct image *next = weir_payload(ev, &image_type);
	CU_ASSERT_PTR_NOT_NULL_FATAL(next);
	CU_ASSERT_EQUAL(next->width, 8);
	fixture_on_finish = NULL;
	payload_end(ev, WEIR_OK);
	CU_ASSERT_EQUAL(atomic_load(&payloads_alive), 0);
}

static struct laden outer;

/* The end of one event ends another one, and takes from both. */
static void end_both(struct probe *p, int status)
{
	if (p == &outer.p) {
		payload_end(ev, status);
		weir_payload_drop(&p->ev, &image_type);
		return;
	}
	kept = weir_payload_take(&p->ev, &image_type);
	weir_payload_drop(&outer.p.ev, &third_type);
}

static void test_nested(void)
{
	begin(0);
	laden_init(&outer, 1);
	struct weir_event *inner = ev;
	ev = &outer.p.ev;
	put(&third_type);
	put_image();
	ev = inner;
	put_image();
	fixture_on_finish = end_both;
	payload_end(&outer.p.ev, WEIR_OK);
	CU_ASSERT_EQUAL(atomic_load(&payloads_alive), 1);
	weir_payload_free(kept);
	CU_ASSERT_EQUAL(atomic_load(&payloads_alive), 0);
}

/* ---- fields ---- */

static bool is(const struct field_ref *f, const char *text)
{
	char digits[FIELD_NUMBER_BYTES];
	struct weir_slice s = field_text(f, ev, digits);

	return text ? s.p && s.n == strlen(text) && memcmp(s.p, text, s.n) == 0 : !s.p;
}

static void test_fields(void)
{
	struct field_ref width = {.payload = &image_type, .of_payload = &image_type.fields[0]};
	struct field_ref name = {.payload = &image_type, .of_payload = &image_type.fields[1]};
	uint64_t n = 0;

	begin(0);
	CU_ASSERT_TRUE(is(&width, NULL) && is(&name, NULL));
	CU_ASSERT_FALSE(field_number(&width, ev, &n));
	struct image *image = put_image();
	CU_ASSERT_TRUE(is(&width, "7") && is(&name, ""));
	image->width = UINT64_MAX;
	strcpy(image->name, "12.5");
	CU_ASSERT_TRUE(is(&width, "18446744073709551615") && is(&name, "12.5"));
	CU_ASSERT_TRUE(field_number(&width, ev, &n));
	CU_ASSERT_EQUAL(n, UINT64_MAX);
	CU_ASSERT_TRUE(field_number(&name, ev, &n));
	CU_ASSERT_EQUAL(n, 12);
	image->width = 0; /* unknown */
	strcpy(image->name, "x");
	CU_ASSERT_TRUE(is(&width, NULL));
	CU_ASSERT_FALSE(field_number(&width, ev, &n) || field_number(&name, ev, &n));
	payload_end(ev, WEIR_OK);
	payload_budget_put(budget);
	budget = NULL;
}

CUNIT_MAIN("payload", {"find, take, drop", test_find_take_drop},
    {"zeroed and aligned", test_zeroed_and_aligned}, {"limits", test_limits},
    {"reserve", test_reserve}, {"large", test_large}, {"budgets", test_budgets},
    {"the largest small type", test_largest_small},
    {"counts until dropped", test_counts_until_dropped}, {"taken outlives", test_taken_outlives},
    {"finish reads", test_finish_reads}, {"finish takes", test_finish_takes},
    {"finish reuses the event", test_finish_reuses}, {"nested ends", test_nested},
    {"fields", test_fields})
