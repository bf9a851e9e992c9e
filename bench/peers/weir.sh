# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154
# Functions shared by the weir peers.
# shellcheck source=bench/peers/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
program=$weir
version() { "$weir" --version; }

# Value of `threads` of http.server; more keys may follow after a comma.
io_threads=1

# weir_config FIRST STAGES: a server whose requests go to stage FIRST.
weir_config() {
	make_files
	cat >"$dir/weir.yaml" <<-END
		weir: 1
		name: peer
		admin: { listen: "" }
		stages:
		  web: { use: http.server, with: { listen: "127.0.0.1:$port", threads: $io_threads, max_connections: 9k, max_per_address: 0, backlog: 4096 }, to: { request: $1 } }
		$2
	END
}
serve() { exec "$weir" run "$dir/weir.yaml"; }
