/* SPDX-License-Identifier: MIT */
/* A program with a weir server inside: it serves a YAML file until SIGTERM or Ctrl-C, and reads the file
 * again on SIGHUP. */
#include <weir/http.h>
#include <weir/server.h>

#include <signal.h>
#include <stdio.h>

static void print_errors(const struct weir_errs *errs)
{
	char text[4096];

	weir_errs_format(errs, text, sizeof(text));
	fputs(text, stderr);
}

static void reload(struct weir_server *server)
{
	struct weir_reload_result result;
	struct weir_errs errs = {0};

	if (weir_server_reload(server, &result, &errs) != 0)
		print_errors(&errs); /* the server runs as before */
	else
		fprintf(stderr, "reloaded: %s\n", result.text);
}

int main(int argc, char **argv)
{
	struct weir_server *server;
	struct weir_drain_report drained;
	struct weir_errs errs = {0};
	sigset_t told;
	int sig;

	sigemptyset(&told);
	sigaddset(&told, SIGINT);
	sigaddset(&told, SIGTERM);
	sigaddset(&told, SIGHUP);
	sigprocmask(SIG_BLOCK, &told, NULL); /* before the threads of the server exist */
	int rc = weir_server_open(argc > 1 ? argv[1] : "shop.yaml", NULL, 0, &server, &errs);
	if (rc != 0 || weir_server_start(server, &errs) != 0) {
		print_errors(&errs);
		weir_server_close(server, NULL);
		return 1;
	}
	printf("port %d, admin %d\n",
	    weir_http_port(weir_graph_stage(weir_server_graph(server), "http"), 0),
	    weir_server_admin_port(server));
	fflush(stdout);
	while (sigwait(&told, &sig) == 0 && sig == SIGHUP)
		reload(server);
	weir_server_close(server, &drained);
	return drained.closed == 0 && drained.left == 0 ? 0 : 1;
}
