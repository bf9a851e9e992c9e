#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The Debian packages that CPack makes of this build: each has what it is for, no file is in two of them,
# the program in them runs, and lintian finds nothing.
#   deb.sh BUILD_DIR
set -euo pipefail

build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() {
	printf '%s\n' "== $*"
}

die() {
	say "$*"
	exit 1
}

(cd "$build" && cpack -G DEB -B "$work/made" >"$work/cpack.log" 2>&1) || {
	cat "$work/cpack.log"
	exit 1
}
: >"$work/all"
# has PACKAGE FILE...: exactly one package of this name was made, and it has the files.
has() {
	local name=$1 file
	shift
	# shellcheck disable=SC2206 # NAME is a pattern
	local package=("$work"/made/${name}_*.deb)
	[ ${#package[@]} = 1 ] && [ -f "${package[0]}" ] || die "no package $name"
	dpkg-deb -x "${package[0]}" "$work/out-$name"
	(cd "$work/out-$name" && find . -type f) >"$work/files"
	cat "$work/files" >>"$work/all"
	for file in "$@"; do
		grep -Eq "/$file\$" "$work/files" || die "$name lacks $file"
	done
}

say "three packages"
has weir usr/bin/weir 'man1/weir\.1\.gz' 'systemd/system/weir@\.service' share/weir/servers/static.yaml \
	etc/logrotate.d/weir share/doc/weir/copyright share/fish/vendor_completions.d/weir.fish
has 'libweir[0-9]*' 'libweir\.so\.[0-9.]+'
has libweir-dev include/weir/server.h pkgconfig/weir.pc weir-config.cmake
[ -z "$(LC_ALL=C sort "$work/all" | uniq -d)" ] || die "a file is in two packages"
[ "$(dpkg-deb -I "$work"/made/weir_*.deb conffiles)" = /etc/logrotate.d/weir ] || die "no conffile"
"$work/out-weir/usr/bin/weir" check "$work/out-weir/usr/share/weir/servers/static.yaml"

if command -v lintian >/dev/null; then
	say lintian
	# Unless the prefix is /usr, libraries are not in the folder of the architecture.
	lintian --allow-root --suppress-tags pkg-config-unavailable-for-cross-compilation --tag-display-limit 0 --fail-on error,warning "$work"/made/*.deb
fi
say fine
