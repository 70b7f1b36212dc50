#!/bin/bash
# Every file or folder of the sources that a document or a comment names exists, so that a move does
# not leave signs behind that point nowhere; a planted wrong path is seen. Globs and {a,b} are
# expanded, and a name ending in a dot or comma is the name without it.
. "$(dirname "$0")/lib.sh"
cd "$PNB_SOURCE_DIR"

# dead FILE...: prints each path these files name that is not there.
dead() {
    local path
    grep -noP '(?<![\w/])(src|cli|cmake|tests|tools|bench|examples|include)/[A-Za-z0-9_./*{},-]*[A-Za-z0-9_*}/]' "$@" /dev/null |
        while IFS=: read -r file line path; do
            compgen -G "$path" >/dev/null && continue
            case $path in */X.* | *_) continue ;; esac # a placeholder, or the beginning of one
            # braces are expanded by hand: names only, no other word of the shell
            case $path in *'{'*) eval "set -- $path" ;; *) set -- "$path" ;; esac
            for one in "$@"; do
                compgen -G "$one" >/dev/null || compgen -G "$one.*" >/dev/null || echo "$file:$line: $one is not there"
            done
        done
}

while read -r line; do
    bad "$line"
done < <(dead README.md CONTRIBUTING.md docs/*.md tests/faults/*.txt
    mapfile -t sources < <(find src cli include tests bench -name '*.[ch]')
    dead "${sources[@]}")

file=$(mktemp)
trap 'rm -f "$file"' EXIT
printf 'see src/eval/no_such_file.c and src/base/base.h\n' >"$file"
[ "$(dead "$file" | wc -l)" -eq 1 ] || bad "a path that points nowhere is not seen"
finish
