/* SPDX-License-Identifier: MIT */
/* Files kept open by file.cache that change in place: during a request for them, and without a
 * change of their tag. */
#include <sys/mman.h>
#include <unistd.h>

#include "file/cache_origin.h"

enum { LONG = 9000, SHORT = 5000 };

/* A cache over an origin whose body is a file of LONG bytes. Returns its descriptor. */
static int set_up_file(const char *revalidate)
{
	int fd = memfd_create("weir-test", MFD_CLOEXEC);

	CU_ASSERT_EQUAL_FATAL(ftruncate(fd, LONG), 0);
	SET_UP("with.max_object", "4KiB", "with.revalidate", revalidate, "with.stale", "1h");
	origin_set(&origin.file, fd);
	/* A file that may have been written since the request is not kept. */
	do
		get("/a");
	while (metric(CACHE_FILES) == 0);
	return fd;
}

static void tear_down_file(int fd)
{
	tear_down();
	close(fd);
}

static bool is_now(const struct call *c, int64_t bytes)
{
	return call_status(c) == 200 && weir_http_body_bytes(&c->t.req->res) == bytes;
}

/* A changed file is not revalidated by its old tag. An origin whose tags do not depend on the file
 * would reply that nothing changed, and the old length would be announced for the new file. */
static void test_same_tag(void)
{
	int fd = set_up_file("1h");

	CU_ASSERT(is_now(get("/a"), LONG));
	CU_ASSERT_EQUAL_FATAL(ftruncate(fd, SHORT), 0);
	CU_ASSERT(is_now(get("/a"), SHORT));
	CU_ASSERT(is_now(get_with(WEIR_HTTP_HEAD, "/a", NULL, NULL), SHORT));
	CU_ASSERT_EQUAL(origin_get(&origin.validated), 0);
	tear_down_file(fd);
}

/* A request that waits for a revalidation sent before the change does not get its result. */
static void test_changed_while_asking(void)
{
	int fd = set_up_file("1ms");

	origin_gate(true);
	start_at_gate("/a");
	CU_ASSERT_EQUAL_FATAL(ftruncate(fd, SHORT), 0);
	struct call *waits = start("/a");
	FIXTURE_AWAIT(metric(CACHE_COALESCED) == 1);
	origin_gate(false);
	await_all();
	CU_ASSERT(origin_get(&origin.validated) >= 1);
	CU_ASSERT(is_now(waits, SHORT));
	tear_down_file(fd);
}

/* A write between the origin's check and that of the cache would be kept with what the origin saw:
 * new bytes with the old tag. */
static void check_written_meanwhile(const char *max_object)
{
	int fd = memfd_create("weir-test", MFD_CLOEXEC);
	char field[32];

	CU_ASSERT_EQUAL_FATAL(ftruncate(fd, LONG), 0);
	SET_UP("with.max_object", max_object, "with.revalidate", "1h");
	origin_set(&origin.file, fd);
	origin.written = true;
	for (int i = 1; i <= 5; i++) {
		struct call *c = get("/a");
		snprintf(field, sizeof(field), "ETag: \"v%d\"\r\n", i);
		CU_ASSERT(is_now(c, LONG) && call_has_field(c, field));
	}
	CU_ASSERT_EQUAL(metric(CACHE_OBJECTS), 0);
	tear_down_file(fd);
}

static void test_written_meanwhile(void)
{
	check_written_meanwhile("4KiB");
	check_written_meanwhile("16KiB");
}

CUNIT_MAIN("file.cache, open files", {"register", test_register}, {"same tag", test_same_tag},
    {"written meanwhile", test_written_meanwhile},
    {"changed while asking", test_changed_while_asking})
