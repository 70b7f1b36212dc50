#!/bin/bash
# Every file or folder of the sources that a document or a comment names exists, so that a move does
# not leave signs behind that point nowhere; a planted wrong path is seen. Globs and {a,b} are
# expanded, and a name ending in a dot or comma is the name without it. The table of rooms in
# CONTRIBUTING.md names every folder in a room, and a walk of docs/tour.md names at most fifteen files.
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

# untold TABLE: folders of rooms whose name the room's row of the table does not have. A command has its
# own folder and page; kernels and ops are told in their rows by what they are.
untold() {
    local dir room
    for dir in src/*/*/; do
        room=$(dirname "$dir")
        [ "$room" = src/commands ] && continue
        grep -F "\`$room\`" "$1" | grep -qE "[\` ]$(basename "$dir")/" || echo "$dir"
    done
}
while read -r dir; do
    bad "CONTRIBUTING.md: the row of its room does not name $dir"
done < <(untold CONTRIBUTING.md)
sed 's| resample/||' CONTRIBUTING.md >"$file"
[ "$(untold "$file")" = src/eval/resample/ ] || bad "a folder that no row names is not seen"

# long FILE: its walks that name more than fifteen files, each counted once.
long() {
    awk '/^## / { walk = $0 }
        {
            rest = $0
            while (match(rest, /`[^`]*\.[ch]`/)) {
                name = substr(rest, RSTART, RLENGTH)
                rest = substr(rest, RSTART + RLENGTH)
                if (!((walk, name) in seen) && ++n[walk] == 16)
                    print FILENAME ": " name " is the sixteenth file of: " walk
                seen[walk, name] = 1
            }
        }' "$1"
}
while read -r line; do
    bad "$line"
done < <(long docs/tour.md)
{ cat docs/tour.md && printf '## A walk\n'; seq -f '1. `src/%g.c`, `src/1.c` and `src/`' 16; } >"$file"
[[ $(long "$file") == *'`src/16.c` is the sixteenth file of: ## A walk' ]] || bad "a walk that is too long is not seen"
sed -i '$d' "$file"
[ -z "$(long "$file")" ] || bad "a walk of fifteen files is taken for a longer one"
finish
