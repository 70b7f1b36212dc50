#!/bin/bash
# Help of every command, the manual pages against the tables, completion, version.
source "$(dirname "$0")/common/lib.sh"

want 0 --help
prints "Usage: penumbra COMMAND"
commands=$(sed -n '/^Commands:/,/^$/p' out | awk '/^  /{print $1}')
for command in $commands; do
    case $command in completion | manual | help) continue ;; esac
    want 0 "$command" --help
    prints "Usage: penumbra $command"
    for sub in $(sed -n '/^Commands:/,/^$/p' out | awk '/^  /{print $1}'); do
        want 0 "$command" "$sub" --help
        prints "Usage: penumbra $command $sub"
        for option in --help --json --quiet --seed --threads --device; do
            prints "$option"
        done
        cp out sub_help
        want 0 help "$command" "$sub"
        check "help and --help agree: $command $sub" cmp -s sub_help out
    done
    want 0 manual "$command"
    page=$PNB_SOURCE_DIR/docs/commands/$command.md
    check "$page is what 'penumbra manual $command' prints" cmp -s out "$page"
done
for page in "$PNB_SOURCE_DIR"/docs/commands/*.md; do
    want 0 manual "$(basename "$page" .md)"
done

want 0 --version
check "version on one line" test "$(wc -l <out)" -eq 1
prints "penumbra "

want 0 completion bash
check "completion is valid bash" bash -n out
cp out completion
complete_words() { # words typed so far, the last one unfinished
    bash -c 'source ./completion; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _penumbra
             printf "%s\n" "${COMPREPLY[@]}"' - "$@"
}
complete_words penumbra ev >out
check "completes a command" grep -qx eval out
complete_words penumbra eval ret >out
check "completes a subcommand" grep -qx retrieval out
complete_words penumbra train --lr-s >out
check "completes an option" grep -qx -- --lr-scheduler out
complete_words penumbra train --lr-scheduler co >out
check "completes a choice" grep -qx cosine out
finish
