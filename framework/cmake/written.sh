#!/bin/sh
# SPDX-License-Identifier: MIT
# Manual pages and completions, written by the program itself: written.sh WEIR FOLDER
set -eu
weir=$1 folder=$2

"$weir" man "$folder"
gzip -9n "$folder"/*.[15]
mv "$folder"/*.1.gz "$folder/man1"
mv "$folder"/*.5.gz "$folder/man5"
for shell in bash zsh fish; do
	"$weir" completion $shell >"$folder/weir.$shell"
done
