#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# docs/install.md names every package that the scripts install: packages.sh SOURCE_DIR
cd "$1" || exit 2
# shellcheck source=scripts/lib.sh
. scripts/lib.sh
words=$(tr -s ' `\\' '\n' <docs/install.md)
rc=0
for name in "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}" "${CONFORMANCE_PROGRAMS[@]##*:}" "${NIKTO_PACKAGES[@]}"; do
	if ! grep -qxF -- "$name" <<<"$words"; then
		echo "FAILED: docs/install.md does not name the package $name"
		rc=1
	fi
done
exit $rc
