#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The structure of the sources as a test: check.sh includes|headers|sizes|licences [TOP]
#
#   includes   every #include is allowed by rules.txt; no file includes a .c
#   headers    every header compiles alone ($CC, default cc)
#   sizes      no function over 60 lines, no C source over 500
#   licences   every source names its licence
#
# Prints one line per violation, FILE:LINE: what, and exits 1 if there was one. Functions are found
# by our layout, which clang-format maintains: the braces of a body stand alone in the first column.
# Needs bash and awk only. selftest.sh shows that it can fail. $LAYERING_CFLAGS: the include flags
# of libraries whose headers are not in the usual place.
# shellcheck disable=SC2016,SC2053,SC2086 # awk programs; globs and lists of flags are meant
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
what=${1:?usage: check.sh includes|headers|sizes [TOP]}
cd "${2:-$here/../..}" || exit 2
rules=$here/rules.txt
source_dirs=(framework stages config admin export server cli load report sim tests bench)
# Where "..." and <...> are searched after the including file's own folder.
include_roots=(framework/include stages/include server/include testing/include framework stages config export bench tests/unit tests .)
function_lines_max=60
file_lines_max=500
violations=0

violation() {
	printf '%s\n' "$*"
	violations=$((violations + 1))
}

sources() {
	local dirs=() dir
	for dir in "${source_dirs[@]}"; do
		[ -d "$dir" ] && dirs+=("$dir")
	done
	find "${dirs[@]}" -name '*.[ch]' -type f "$@" | LC_ALL=C sort
}

# resolve FILE INCLUDE: set $target to the path in the tree, or to "" for a header from outside.
resolve() {
	local dir root
	dir=${1%/*}
	for root in "$dir" "${include_roots[@]}"; do
		if [ -f "$root/$2" ]; then
			target=$root/$2
			target=${target#./}
			return
		fi
	done
	target=
}

# matches PATH GLOB...: does one of them match? "." stands for the folder $own.
matches() {
	local path=$1 glob
	shift
	for glob in "$@"; do
		case "$glob" in
		.) glob="$own/*" ;;
		weir/*) [[ $path == */include/$glob ]] && return 0 ;;
		esac
		[[ $path == $glob ]] && return 0
	done
	return 1
}

read_rules() {
	local first header rest
	rule_files=() rule_allows=() only_header=() only_files=()
	while read -r first rest; do
		case "$first" in
		'' | '#'*) ;;
		only)
			read -r header rest <<<"$rest"
			only_header+=("$header")
			only_files+=("$rest")
			;;
		*)
			rule_files+=("$first")
			rule_allows+=("$rest")
			;;
		esac
	done <"$rules"
}

# rule_of FILE: set $allows to the includes that its rule allows; fails when no rule covers it.
rule_of() {
	local i
	for i in "${!rule_files[@]}"; do
		if [[ $1 == ${rule_files[i]} ]]; then
			read -ra allows <<<"${rule_allows[i]}"
			return 0
		fi
	done
	return 1
}

check_outside() {
	local file=$1 line=$2 include=$3 quoted=$4 i
	[ "$quoted" = 0 ] || violation "$file:$line: \"$include\" is not in the tree"
	for i in "${!only_header[@]}"; do
		[[ $include == ${only_header[i]} ]] || continue
		local files
		read -ra files <<<"${only_files[i]}"
		matches "$file" "${files[@]}" ||
			violation "$file:$line: <$include> belongs to ${only_files[i]} alone"
	done
}

check_includes() {
	local file line quoted include own allows target
	read_rules
	while IFS=$'\t' read -r file line quoted include; do
		own=${file%/*}
		if [[ $include == *.c ]]; then
			violation "$file:$line: includes the source '$include'"
			continue
		fi
		if ! rule_of "$file"; then
			violation "$file:$line: no line of rules.txt covers this file"
			continue
		fi
		resolve "$file" "$include"
		if [ -z "$target" ]; then
			check_outside "$file" "$line" "$include" "$quoted"
		elif ! matches "$target" "${allows[@]}"; then
			violation "$file:$line: may not include $target"
		fi
	done < <(sources | tr '\n' '\0' | xargs -0 awk '
		/^[ \t]*#[ \t]*include[ \t]*[<"]/ {
			quoted = index($0, "\"") > 0
			split($0, part, /[<">]/)
			printf "%s\t%d\t%d\t%s\n", FILENAME, FNR, quoted, part[2]
		}')
}

check_headers() {
	local header root flags=(-std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -fsyntax-only)
	for root in "${include_roots[@]}"; do
		flags+=("-I$root")
	done
	while read -r header; do
		[ -n "$header" ] || continue
		# In a separate source, since a header as the main file causes other warnings.
		if ! printf '#include "%s"\n' "$header" |
			${CC:-cc} "${flags[@]}" ${LAYERING_CFLAGS-} -x c - ; then
			violation "$header:1: does not compile alone"
		fi
	done < <(sources -name '*.h')
}

check_sizes() {
	local found
	found=$(sources | tr '\n' '\0' | xargs -0 awk \
		-v fmax="$function_lines_max" -v lmax="$file_lines_max" '
		function file_end() {
			if (file != "" && lines > lmax)
				printf "%s:%d: the file has %d lines, %d are allowed\n", file, lines, lines, lmax
		}
		FNR == 1 { file_end(); file = FILENAME; start = 0; signature = 0 }
		{ lines = FNR }
		# The signature is the run of lines above the brace that are neither comments nor
		# empty.
		/^$/ || /^ ?\*/ || /^\/\*/ || /^#/ || /^}/ {
			if (/^}/ && start) {
				if (FNR - start + 1 > fmax)
					printf "%s:%d: the function has %d lines, %d are allowed\n",
					    FILENAME, start, FNR - start + 1, fmax
				start = 0
			}
			signature = 0
			next
		}
		/^{$/ { start = signature ? signature : FNR; signature = 0; next }
		/^[A-Za-z_]/ && !start && !signature { signature = FNR }
		END { file_end() }')
	[ -z "$found" ] && return
	while read -r line; do
		violation "$line"
	done <<<"$found"
}

# Every source names its licence in its first five lines. Files that a guide shows word for word do not.
check_licences() {
	local file
	while read -r file; do
		head -n 5 "$file" | grep -q 'SPDX-License-Identifier: MIT' ||
			violation "$file:1: has no line 'SPDX-License-Identifier: MIT'"
	done < <(find . \( -path ./build -o -path ./.git -o -name node_modules -o -path ./admin/ui/dist \
		-o -path ./config/servers/site -o -path ./tests/plugin/project -o -path ./tests/plugin/ops \
		-o -path ./tests/plugin/waits -o -path ./tests/plugin/pair -o -path ./tests/install/shop \) -prune \
		-o -type f \( -name '*.[ch]' -o -name '*.cc' -o -name '*.sh' -o -name '*.py' -o -name '*.js' \
		-o -name '*.jsx' -o -name '*.css' -o -name '*.html' -o -name '*.cmake' -o -name CMakeLists.txt \
		-o -name '*.bt' \) -print | LC_ALL=C sort | sed 's#^\./##')
}

case "$what" in
includes | headers | sizes | licences) "check_$what" ;;
*)
	printf 'usage: check.sh includes|headers|sizes|licences [TOP]\n' >&2
	exit 2
	;;
esac
if [ "$violations" -gt 0 ]; then
	printf '%d violation(s) of the structure\n' "$violations"
	exit 1
fi
printf '%s: %d files are fine\n' "$what" "$(sources | wc -l)"
