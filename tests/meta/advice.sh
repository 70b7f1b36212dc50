#!/bin/bash
# Advice belongs to the command at hand: the rooms below the program do not know which one runs, so
# their messages name no option of a command line. Training has one command, whose options it may
# name; so may a message that quotes the whole command line (`penumbra convert DIR --to ...`).
. "$(dirname "$0")/lib.sh"
cd "$PNB_SOURCE_DIR"
# --max-image-pixels is every command's.
naming() {
    grep -rnE '"[^"]*--[a-z][a-z-]+' "$@" --include='*.[ch]' --include='*.inc' |
        grep -v -e '`' -e '--max-image-pixels'
}
rooms=()
for room in base kernels tensor io prob tokenizer sets nn index models data truth encode eval; do
    [ -d "src/$room" ] && rooms+=("src/$room")
done
[ "${#rooms[@]}" -ge 14 ] || bad "the rooms of the library are not where they were"
while read -r line; do
    bad "an option in the message of a library room: $line"
done < <(naming "${rooms[@]}")

# The check finds what it is for.
planted=$(mktemp -d)
trap 'rm -rf "$planted"' EXIT
echo 'fail(err, "name the type with --dataset-type");' >"$planted/x.c"
naming "$planted" >/dev/null || bad "a planted option is not found"
finish
