#!/bin/bash
# clang-format would change nothing, and files end with a newline. `make format` puts it right.
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
for file in "${files[@]}"; do # clang-format lets these pass, Clang as a compiler does not
    [ -z "$(tail -c 1 "$file")" ] || bad "$file: no newline at the end of the file"
done
finish
