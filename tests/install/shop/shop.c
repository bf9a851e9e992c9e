/* SPDX-License-Identifier: MIT */
/* A program with a weir server inside: it serves shop.yaml until SIGTERM or Ctrl-C. */
#include <weir/http.h>
#include <weir/server.h>

#include <signal.h>
#include <stdio.h>

int main(void)
{
	struct weir_server *server;
	struct weir_drain_report drained;
	struct weir_errs errs = {0};
	char text[4096];
	sigset_t ends;
	int sig;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL); /* before the threads of the server exist */
	int rc = weir_server_open("shop.yaml", NULL, 0, &server, &errs);
	if (rc != 0 || weir_server_start(server, &errs) != 0) {
		weir_errs_format(&errs, text, sizeof(text));
		fputs(text, stderr);
		weir_server_close(server, NULL);
		return 1;
	}
	printf("port %d, admin %d\n",
	    weir_http_port(weir_graph_stage(weir_server_graph(server), "http"), 0),
	    weir_server_admin_port(server));
	fflush(stdout);
	sigwait(&ends, &sig);
	weir_server_close(server, &drained);
	return drained.closed == 0 && drained.left == 0 ? 0 : 1;
}
