/* SPDX-License-Identifier: MIT */
/* The report on the end of a server is kept until each client that has asked for the end has read it. */
#include "server/stop.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

static void read_says(const char *what)
{
	char *text = stop_status();

	CU_ASSERT(text && strstr(text, what) != NULL);
	free(text);
}

/* Two operators ask at once. */
static void test_two(void)
{
	const struct weir_drain_report report = {.took_ns = 1000000};

	signal(SIGTERM, SIG_IGN);       /* that of the first request */
	CU_ASSERT_TRUE(stop_is_read()); /* nobody waits for a report */
	stop_ask(false, "ana");
	read_says("\"running\"");
	stop_begin(1000000000);
	stop_ask(false, "bo");
	read_says("\"stopping\"");
	CU_ASSERT_FALSE(stop_is_read()); /* what was read was no report */
	stop_done(&report, true);
	CU_ASSERT_FALSE(stop_is_read());
	read_says("\"whole\":true");
	CU_ASSERT_FALSE(stop_is_read()); /* the other one has not read it */
	read_says("\"whole\":true");
	CU_ASSERT_TRUE(stop_is_read());
	stop_await();
}

CUNIT_MAIN("stop", {"two operators", test_two})
