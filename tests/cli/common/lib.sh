#!/bin/bash
# Helpers of the command-line tests. PENUMBRA is the program; every test runs in its own folder.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
n_checks=0
n_failed=0

# run ARGS...: runs the program; leaves out, err (files) and status.
run() {
    "$PENUMBRA" "$@" >out 2>err </dev/null
    status=$?
}

fail() {
    n_failed=$((n_failed + 1))
    echo "FAILED: $*"
    echo "--- stdout"; head -20 out
    echo "--- stderr"; head -20 err
}

# want STATUS ARGS...: runs and checks the exit status.
want() {
    local wanted=$1
    shift
    n_checks=$((n_checks + 1))
    run "$@"
    [ "$status" -eq "$wanted" ] || fail "exit status $status instead of $wanted: penumbra $*"
}

# says TEXT / prints TEXT: the last run wrote it to standard error / output.
says() {
    n_checks=$((n_checks + 1))
    grep -qF -- "$1" err || fail "'$1' is not on standard error"
}
prints() {
    n_checks=$((n_checks + 1))
    grep -qF -- "$1" out || fail "'$1' is not on standard output"
}

# check DESCRIPTION COMMAND...: the command succeeds.
check() {
    local what=$1
    shift
    n_checks=$((n_checks + 1))
    "$@" || fail "$what"
}

# A model of a few thousand weights, a tokenizer and a small data set.
small_config='{"embed_dim":16,"vision_cfg":{"layers":1,"width":32,"head_width":16},"text_cfg":{"layers":1,"width":32,"heads":2}}'
make_small() {
    want 0 data shapes --out shapes --n 40 --shard-size 20 --val-share 0.2 --test-share 0.2 -q
    want 0 tokenizer train --captions shapes/train/captions.jsonl --vocab-size 300 --out tok.json
    want 0 init --config tiny --override "$small_config" --tokenizer tok.json --out model -q
}

finish() {
    [ "$n_checks" -gt 0 ] || { echo "no check ran"; exit 1; }
    echo "$((n_checks - n_failed)) of $n_checks checks passed"
    [ "$n_failed" -eq 0 ]
    exit $?
}
