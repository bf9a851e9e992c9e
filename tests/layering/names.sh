#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# names.sh ARCHIVE...: no two files of the libraries of tests define the same name. A program that is
# linked with several of them would silently get the first one.
twice=$(nm -g --defined-only "$@" 2>/dev/null | awk 'NF == 3 { print $3 }' | LC_ALL=C sort | uniq -d)
[ -z "$twice" ] && exit 0
printf 'defined twice: %s\n' $twice
exit 1
