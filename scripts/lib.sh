# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034
# Shared by scripts/run, scripts/test and .ci/run: the Debian 12 packages that weir needs, and its
# build.
#
# Only bash, dpkg and apt-get are required. Missing packages are installed from Debian's own
# archive, after a message. Three packages are not installed, but unpacked below build/deps:
#   node-llhttp   for the C sources of the HTTP parser; installing it would bring Node.js (24 MB)
#   prometheus    for the program promtool; installing it would start a server on port 9090
#   nikto         installing it would require Debian's non-free section in the apt sources
# This file is sourced with the top of the tree as the working directory.

# The clone may be in a folder that other users own or can write to (containers, CI). The scripts
# run its code anyway, so weir need not check the owners of its files.
export WEIR_TRUST_FILES=any

BUILD_PACKAGES=(gcc libc6-dev make cmake ninja-build pkgconf liburcu-dev libyaml-dev libmicrohttpd-dev
	libjansson-dev libxxhash-dev systemtap-sdt-dev libcurl4-openssl-dev libssl-dev libgnutls28-dev
	libc-ares-dev zlib1g-dev libzstd-dev libbrotli-dev)
TEST_PACKAGES=(libcunit1-dev g++ groff-base fish dpkg-dev file procps curl openssl ca-certificates python3-jsonschema)
# Programs used by tests/conformance, and their packages.
CONFORMANCE_PROGRAMS=(nginx:nginx-light haproxy:haproxy lighttpd:lighttpd apache2:apache2-bin slowhttptest:slowhttptest varnishtest:varnish
	h2load:nghttp2-client wrk:wrk hey:hey ab:apache2-utils siege:siege node:nodejs
	testssl:testssl.sh)
NIKTO_PACKAGES=(perl libwhisker2-perl libnet-ssleay-perl)
CI_PACKAGES=(lintian pandoc clang libclang-rt-14-dev clang-format clang-tidy cppcheck gcovr)
DEPS_DIR=build/deps

say() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

die() {
	say "$*"
	exit 1
}

# missing_packages NAME...: print those that are not installed.
missing_packages() {
	local installed
	installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null)
	local name
	for name in "$@"; do
		grep -qxF "$name installed" <<<"$installed" || printf '%s\n' "$name"
	done
}

# as_root COMMAND...: run it as root if possible. Otherwise print the command for somebody with root
# access, and exit.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "this needs root and there is no sudo; as root run: $*"
	fi
}

# run_logged WHAT COMMAND...: run the command with its output in a log file. If it fails, print the
# end of the log and exit.
run_logged() {
	local what=$1 log
	shift
	mkdir -p build
	log=build/${what// /-}.log
	if ! "$@" >"$log" 2>&1 </dev/null; then
		tail -n 15 "$log" >&2
		die "$what failed; the whole output is in $log"
	fi
}

apt_lists_absent() {
	! compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null
}

apt_update() {
	say "fetching Debian's package lists (apt-get update)"
	run_logged "apt-get update" as_root apt-get update -q
}

apt_install() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
		-o DPkg::Lock::Timeout=120 "$@"
}

# install_packages NAME...: install missing packages. If the installation fails, the package lists
# are updated and it is tried once more, since outdated lists name files that no longer exist.
install_packages() {
	local missing
	type dpkg-query apt-get >/dev/null 2>&1 ||
		die "weir is built for Debian 12 and this system has no dpkg and apt-get; install the likes of: $*"
	mapfile -t missing < <(missing_packages "$@")
	[ ${#missing[@]} -gt 0 ] || return 0
	if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
		die "Debian packages are missing and there is no sudo; as root run: apt-get install ${missing[*]}"
	fi
	if apt_lists_absent; then
		apt_update
	fi
	say "installing Debian packages: ${missing[*]}"
	if ! apt_install "${missing[@]}" >build/apt-get-install.log 2>&1 </dev/null; then
		apt_update
		run_logged "apt-get install" apt_install "${missing[@]}"
	fi
}

# without_daemons COMMAND...: run the command with a policy that prevents Debian from starting the
# servers that it installs.
without_daemons() {
	local policy=/usr/sbin/policy-rc.d mine=no rc=0
	if [ ! -e $policy ]; then
		as_root sh -c "printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy" && mine=yes
	fi
	("$@") || rc=$? # in a subshell, since die may exit
	[ $mine = no ] || as_root rm -f $policy
	return $rc
}

# provide_conformance: install the foreign programs that tests/conformance runs, and start none of
# them.
provide_conformance() {
	local pair missing=() PATH=$PATH:/usr/sbin
	for pair in "${CONFORMANCE_PROGRAMS[@]}"; do
		command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
	done
	[ ${#missing[@]} -eq 0 ] || without_daemons install_packages "${missing[@]}" || exit 1
}

# unpack_package NAME [APT_OPTION...]: download it from Debian (apt checks its signature) and unpack
# it below DEPS_DIR, without installing. Needs no root.
unpack_package() {
	local name=$1 stage=build/deps-new
	shift
	rm -rf "$stage"
	mkdir -p "$stage" "$DEPS_DIR"
	# As root, apt would switch to its own user, which may not write here.
	(cd "$stage" && apt-get download -q -o APT::Sandbox::User=root "$@" "$name" >../unpack-"$name".log 2>&1) &&
		dpkg-deb -x "$stage"/"$name"_*.deb "$DEPS_DIR" >>build/unpack-"$name".log 2>&1
	local rc=$?
	rm -rf "$stage"
	return $rc
}

# provide_llhttp: unpack the sources of the HTTP parser below DEPS_DIR, unless the system has them.
provide_llhttp() {
	[ -f /usr/share/llhttp/llhttp.c ] || [ -f $DEPS_DIR/usr/share/llhttp/llhttp.c ] && return 0
	say "unpacking the C sources of llhttp from Debian's node-llhttp into $DEPS_DIR"
	if apt_lists_absent; then
		apt_update
	fi
	if ! unpack_package node-llhttp; then
		apt_update
		unpack_package node-llhttp ||
			die "could not fetch Debian's package node-llhttp; see build/unpack-node-llhttp.log"
	fi
}

# provide_promtool: unpack promtool for the test that reads /metrics as Prometheus does, unless the
# system has it. Without promtool that test is skipped, with a message.
provide_promtool() {
	PATH=$PWD/$DEPS_DIR/usr/bin:$PATH
	export PATH
	command -v promtool >/dev/null && return 0
	say "unpacking promtool from Debian's prometheus into $DEPS_DIR"
	unpack_package prometheus ||
		say "promtool cannot be had (see build/unpack-prometheus.log): the check of /metrics with it is left out"
}

# fetch_nikto: unpack nikto from the non-free section of the archive that the host uses for main,
# with separate package lists below build/. The dependencies of nikto are in main and are installed.
fetch_nikto() {
	local sources=$PWD/build/non-free.list lists=$PWD/build/non-free-lists options
	options=(-o Dir::Etc::sourcelist="$sources" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$lists"
		-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=)
	if apt_lists_absent; then
		apt_update
	fi
	mkdir -p "$lists/partial"
	# shellcheck disable=SC2016 # apt replaces $(REPO_URI) and $(RELEASE)
	apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) non-free' 'Created-By: Packages' 'Component: main' \
		'Origin: Debian' | sort -u >"$sources"
	apt-get update -q -o APT::Sandbox::User=root "${options[@]}" >build/update-non-free.log 2>&1 &&
		unpack_package nikto "${options[@]}" && install_packages "${NIKTO_PACKAGES[@]}"
}

# provide_nikto: unpack nikto for the scan of tests/conformance, unless the system has it. Without
# nikto the scan is skipped, with a message.
provide_nikto() {
	command -v nikto >/dev/null || [ -x $DEPS_DIR/usr/bin/nikto ] && return 0
	say "unpacking nikto from Debian's non-free into $DEPS_DIR"
	(fetch_nikto) ||
		say "nikto cannot be had (see build/update-non-free.log, build/unpack-nikto.log): its scan is left out"
}

# npm_ci FOLDER: install the libraries that package-lock.json of FOLDER names, unless they are up to
# date.
npm_ci() {
	[ "$1/node_modules" -nt "$1/package-lock.json" ] && return 0
	say "installing the libraries of $1 (npm ci)"
	(cd "$1" && npm ci --no-fund --no-audit) >"build/npm-${1//\//-}.log" 2>&1 && touch "$1/node_modules"
}

# provide_browser: install what is needed by the tests that open the dashboard in a browser and
# rebuild it. These tests are skipped, with a message, when a program is missing. If Node.js is
# already installed from another source, it is used: Debian's npm package would replace its npm.
provide_browser() {
	local wanted=(chromium)
	command -v node >/dev/null && command -v npm >/dev/null || wanted+=(nodejs npm)
	install_packages "${wanted[@]}"
	npm_ci tests/ui && npm_ci admin/ui ||
		say "npm ci failed (see build/npm-*.log): tests of the dashboard are left out"
}

# build_preset NAME "TARGET..." [CMAKE_OPTION...]: configure the preset and build the targets.
build_preset() {
	local preset=$1 targets
	read -ra targets <<<"$2"
	shift 2
	run_logged "configure $preset" cmake --preset "$preset" "$@"
	cmake --build --preset "$preset" --target "${targets[@]}" ||
		die "the $preset build failed: the compiler's words are above"
}

# prepare PACKAGE...: install the packages, and provide everything else that a build needs.
prepare() {
	mkdir -p build || die "cannot write to $PWD/build"
	install_packages "$@"
	provide_llhttp
}
