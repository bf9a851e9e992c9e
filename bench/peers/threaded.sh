# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154
# Functions of the threaded baseline, which calls weir's handlers one after the other in one thread.
# shellcheck source=bench/peers/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
program=$build/bench/weir_threaded
version() { echo "weir_threaded, $("$weir" --version)"; }

stages=()
work_stages() {
	case $work in
	hello) stages=(--stage 'respond:body=hello') ;;
	file) stages=(--stage "file.read:root=$dir/www,index=file") ;;
	*) stages=(--stage "$work:time=$time,dist=$dist" --stage 'respond:body=done') ;;
	esac
}
config() { make_files; }
