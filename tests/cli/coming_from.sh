#!/bin/bash
# docs/coming-from.md: every penumbra line in it runs, and every option it names exists.
source "$(dirname "$0")/common/lib.sh"
doc=$PNB_SOURCE_DIR/docs/coming-from.md
make_small
mkdir -p photos shards
mv shapes/train shapes/test shapes/truth shards/
tar -xf shards/test/00000.tar -C photos --wildcards '*.png'
printf '%s\n' 'a red star' 'a blue ring' 'a small square' 'a circle' >captions.txt

# The sh blocks, in order, in one folder.
awk '/^```sh/ { on = 1; next } /^```/ { on = 0 } on' "$doc" >lines
check "there are commands" test "$(grep -c '^penumbra ' lines)" -ge 10
while IFS= read -r line; do
    eval "words=($line)"
    want 0 "${words[@]:1}"
done <lines
check "the page was written" test -s found.html

# `penumbra COMMAND --option` in the tables: the command's help has the option.
while IFS= read -r span; do
    command=$(grep -oE '^penumbra [a-z]+( retrieval)?' <<<"$span" | cut -d' ' -f2-)
    read -ra words <<<"$command"
    want 0 "${words[@]}" --help
    for option in $(grep -oE -- '--[a-z][a-z0-9-]*' <<<"$span"); do
        check "penumbra $command has $option" grep -qE -- "(^| )$option( |$)" out
    done
done < <(grep -oE '`penumbra [^`]*`' "$doc" | tr -d '`' | grep -E '^penumbra [a-z]')
finish
