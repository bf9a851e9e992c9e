#!/bin/sh
# SPDX-License-Identifier: MIT
# Manual pages and completions, written by the program itself: written.sh WEIR FOLDER
set -eu
weir=$1 folder=$2

"$weir" man "$folder"
mv "$folder"/*.1 "$folder/man1"
mv "$folder"/*.5 "$folder/man5"
for shell in bash zsh fish; do
	"$weir" completion $shell >"$folder/weir.$shell"
done
