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
want 0 --version --verbose
check "a line for each library that a build may lack" test "$(grep -cE ': (SQLite|libmicrohttpd|OpenMPI)|: missing; install lib' out)" -eq 3
want 2 --version --short

# Manual pages in roff: nothing that groff or mandoc warns of, every option in them.
for command in '' $commands; do
    case $command in completion | manual | help) continue ;; esac
    # shellcheck disable=SC2086  # no word for the program's own page
    want 0 manual --roff $command
    cp out page.1
    check "a title" grep -qE '^\.TH PENUMBRA' page.1
    check "exit statuses" grep -q '^\.SH EXIT STATUS' page.1
    check "how settings work" grep -q 'PENUMBRA_THREADS=4' page.1
    if command -v groff >/dev/null; then
        check "groff has no warning: $command" test -z "$(groff -man -ww -Tutf8 page.1 2>&1 >/dev/null)"
    fi
    if command -v mandoc >/dev/null; then
        # The date is left out, so that two builds of one source are the same.
        check "mandoc has no warning: $command" \
            test -z "$(mandoc -Tlint -W warning page.1 | grep -v 'missing date')"
    fi
done
want 0 manual --roff train
check "a line per option" grep -qE '^\.B .*\\-\\-lr\\-scheduler' out
want 2 manual --roff nothing
says "name one command"
want 2 manual
want 2 completion tcsh
says "bash, zsh or fish"

for shell in zsh fish; do
    want 0 completion $shell
    check "$shell knows an option" grep -q -- "lr-scheduler" out
    check "and its choices" grep -q 'const-cooldown' out
    if command -v $shell >/dev/null; then check "valid $shell" $shell -n out; fi
done
if command -v fish >/dev/null; then
    "$PENUMBRA" completion fish >c.fish
    fish_words() { HOME=$work fish -c "source c.fish; complete -C '$1'" | cut -f1; }
    check "fish completes a subcommand" grep -qx retrieval <(fish_words 'penumbra eval ret')
    check "fish completes a choice" grep -qx cosine <(fish_words 'penumbra train --lr-scheduler co')
fi

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
