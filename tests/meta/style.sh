#!/bin/bash
# House style a machine can check: each .c opens with a comment, files end before 1000 lines and
# functions before 100, nothing is left half done, the library neither prints nor exits nor reads
# the environment, and memory comes from src/base/alloc.c.
. "$(dirname "$0")/lib.sh"
cd "$PNB_SOURCE_DIR"
dirs=()
for dir in src cli server tests bench examples; do
    [ -d "$dir" ] && dirs+=("$dir")
done
mapfile -t sources < <(find "${dirs[@]}" -name '*.c' | sort)
mapfile -t all < <(find include "${dirs[@]}" \( -name '*.[ch]' -o -name '*.inc' \) | sort)

for file in "${sources[@]}"; do
    [[ $(head -c 2 "$file") == '/*' ]] || bad "$file: does not open with a comment"
done

# A comment of a line or two cannot say what the file does and what it leaves to others.
while read -r file; do
    n=$(awk '{ n++ } /\*\// { print n; exit }' "$file")
    [ "${n:-0}" -ge 3 ] || bad "$file: the opening comment is ${n:-0} lines, 3-10 wanted"
done < <(printf '%s\n' "${sources[@]}" | grep -E '^(src|cli|server)/')

while read -r line; do
    bad "$line"
done < <(awk '
    FNR == 1 && NR > 1 && n_lines >= 1000 { print previous ": " n_lines " lines, split it" }
    { n_lines = FNR; previous = FILENAME }
    /^\{$/ { start = FNR }
    /^\}$/ && start > 0 {
        if (FNR - start - 1 > 100)
            print FILENAME ":" start ": function of " FNR - start - 1 " lines, split it"
        start = 0
    }
    END { if (n_lines >= 1000) print previous ": " n_lines " lines, split it" }' "${all[@]}")

while read -r line; do
    bad "left half done: $line"
done < <(grep -nEw 'TODO|FIXME|XXX|HACK' "${all[@]}" || true)

library() { printf '%s\n' "${sources[@]}" | grep '^src/' | grep -Ev '^src/(program|encode|commands)/'; }
mapfile -t rooms < <(library)
while read -r line; do
    bad "the library must not: $line"
done < <(grep -nE '(^|[^_[:alnum:]])(printf|puts|putchar|perror|exit|_exit|abort|getenv|secure_getenv|setenv) *\(' \
    "${rooms[@]}" | grep -vE ':[0-9]+: *(/\*|\*)' || true)
while read -r line; do
    bad "the library must not: $line"
done < <(grep -nEw 'stdout|stderr' "${rooms[@]}" | grep -vE ':[0-9]+: *(/\*|\*)' || true)
while read -r line; do
    bad "allocate through src/base: $line"
done < <(printf '%s\n' "${rooms[@]}" | grep -v '^src/base/alloc.c' |
    xargs grep -nE '(^|[^_[:alnum:]>.])(malloc|calloc|realloc|strdup|strndup|asprintf) *\(' |
    grep -vE ':[0-9]+: *(/\*|\*)' || true)
# An array that grows does it by base/grow.h: sizes, overflow and failure are right in one place.
while read -r line; do
    bad "grow by base/grow.h: $line"
done < <(find src cli server -name '*.[ch]' 2>/dev/null | grep -v '^src/base/' | sort |
    xargs grep -nE 'realloc(array)? *\(' | grep -vE ':[0-9]+: *(/\*|\*)' || true)
finish
