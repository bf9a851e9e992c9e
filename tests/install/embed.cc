// SPDX-License-Identifier: MIT
// A C++17 program that includes every public header and runs a server.
@HEADERS@
#include <cstdio>
#include <cstring>
#include <unistd.h>

// Their addresses can be linked only if they are declared extern "C".
static void *const calls[] = {
@CALLS@
};

int main()
{
	weir_server *server = nullptr;
	weir_errs errs = {};
	char before[4096], after[4096];

	if (!getcwd(before, sizeof(before)) || weir_server_open("shop/shop.yaml", nullptr, 0, &server, &errs) != 0 ||
	    weir_server_start(server, &errs) != 0)
		return 1;
	// A second server of the process is refused, and can be closed.
	weir_server *other = nullptr;
	bool refused = weir_server_open("shop/shop.yaml", nullptr, 0, &other, &errs) == 0 &&
		       weir_server_start(other, &errs) == WEIR_EBUSY;
	weir_server_close(other, nullptr);
	bool up = weir_graph_ready(weir_server_graph(server)) && weir_server_admin_port(server) > 0;
	weir_reload_result result;
	bool same = weir_server_reload(server, &result, &errs) == 0 && !result.changed;
	weir_drain_report drained;
	weir_server_close(server, &drained);
	same = same && getcwd(after, sizeof(after)) && std::strcmp(before, after) == 0;
	std::printf("%zu calls, refused %d, up %d, same %d, law %lld\n", sizeof(calls) / sizeof(*calls), refused, up,
	    same, (long long)drained.law_error);
	return refused && up && same && drained.law_error == 0 && drained.left == 0 ? 0 : 1;
}
