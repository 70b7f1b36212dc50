#!/bin/bash
# clang-format would change nothing. `make format` puts it right.
. "$(dirname "$0")/lib.sh"
need clang-format
cd "$PNB_SOURCE_DIR"
dirs=()
for dir in src include cli server tests bench examples; do
    [ -d "$dir" ] && dirs+=("$dir")
done
mapfile -t files < <(find "${dirs[@]}" -name '*.[ch]' -o -name '*.inc')
[ ${#files[@]} -gt 0 ] || bad "no sources"
clang-format --dry-run -Werror "${files[@]}" || bad "not formatted: run make format"
finish
