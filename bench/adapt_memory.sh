#!/bin/bash
# Claim: every method learns from and is applied to 500,000 pairs of width 768 in under 4 GB.
#
#   bench/adapt_memory.sh [--save] [METHOD...]
#
# Sets of `data ambiguous` (500,000 pictures, 497,000 captions, each written for one of them), mapped,
# on disk. Peak memory is the kernel's (VmHWM: mapped pages that are in memory count), of one process
# that learns and of one that applies to the captions. A method that trains by steps takes STEPS (5)
# of them with its published recipe: their memory does not depend on how many there are. Applying is
# ended after SECONDS_APPLIED (15), or is whole. --save writes bench/results/adapt_memory.txt.
# Exit status 1 where a method needs more.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
penumbra=${PENUMBRA:-build/penumbra}
work=${BENCH_WORK:-build/bench-work}
threads=${BENCH_THREADS:-2}
steps=${STEPS:-5}
seconds=${SECONDS_APPLIED:-15}
most_mb=4000
set_of=$work/ambiguous-500k
save=
if [ "${1:-}" = --save ]; then
    save=bench/results/adapt_memory.txt
    shift
fi
mapfile -t all < <("$penumbra" adapt methods --json | sed -n 's/^ *"name": "\(.*\)",$/\1/p')
[ $# -eq 0 ] && set -- "${all[@]}"
mkdir -p "$work"
out=$(mktemp -d "$work/memory.XXXXXX") || exit 2
trap 'rm -rf "$out"' EXIT

if [ ! -e "$set_of/stats.json" ]; then
    "$penumbra" data ambiguous --out "$set_of" --n 500000 --dim 768 --roots 59 --branches 20 \
        --texts 1 --val-share 0 --test-share 0 --threads "$threads" -q >/dev/null || exit 2
fi
sets=(--images "$set_of/train/images.safetensors" --texts "$set_of/train/texts.safetensors"
    --truth "$set_of/truth/train.written.pairs")

changed=$(git status --porcelain -- src include cli cmake bench/adapt_memory.sh)
say() { # FORMAT VALUE...
    printf "$@" | tee -a "$out/report"
}
head_lines() {
    say '== memory of adapters on 500,000 x 768 ==\n'
    say 'command: %s\n' "bench/adapt_memory.sh${save:+ --save}"
    say 'machine: %s, %s of %s cores, %s\n' \
        "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" "$threads" "$(nproc)" \
        "$(date '+%Y-%m-%d %H:%M')"
    say 'commit: %s\n' "$(git rev-parse --short=12 HEAD)${changed:+-dirty}"
    say 'pairs: %s; steps of methods that have them: %s; applying ended after %s s (+)\n\n' \
        "$(wc -l <"$set_of/truth/train.written.pairs")" "$steps" "$seconds"
    say "$columns" method 'learning MB' seconds 'applying MB' seconds "<= $most_mb MB"
}
columns='%-14s %12s %8s %12s %8s   %s\n'

# measure LIMIT_S COMMAND...: leaves mb, s and status (0, 137 where it was ended) of the command.
measure() {
    local limit=$1 pid kb=0 now begin=$EPOCHREALTIME ended=0
    shift
    "$@" >"$out/stdout" 2>"$out/stderr" &
    pid=$!
    while now=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$pid/status" 2>/dev/null) &&
        [ -n "$now" ]; do
        kb=$now
        s=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
        if [ "${s%.*}" -ge "$limit" ]; then
            kill -KILL "$pid"
            ended=137
            break
        fi
        sleep 0.1
    done
    wait "$pid" 2>/dev/null
    status=$?
    [ $ended -eq 137 ] && status=137
    mb=$((kb * 1024 / 1000000))
}

n_over=0
row() { # METHOD
    local method=$1 learn_mb learn_s options=() verdict=met
    case $method in
    conformity | whitened | bayesvlm) ;;
    *) options=(--steps "$steps" --recipe published) ;;
    esac
    measure 3600 "$penumbra" adapt train --method "$method" "${sets[@]}" "${options[@]}" \
        --out "$out/adapter" --threads "$threads" -q
    if [ "$status" -ne 0 ]; then
        say '%s: %s\n' "$method" "$(tail -1 "$out/stderr")"
        n_over=$((n_over + 1))
        return
    fi
    learn_mb=$mb learn_s=$s
    measure "$seconds" "$penumbra" adapt apply --adapter "$out/adapter" \
        --texts "$set_of/train/texts.safetensors" --out "$out/made.safetensors" \
        --threads "$threads" -q
    [ "$status" -eq 137 ] && s="$s+"
    [ "$learn_mb" -le $most_mb ] && [ "$mb" -le $most_mb ] || {
        verdict="NOT MET"
        n_over=$((n_over + 1))
    }
    say "$columns" "$method" "$learn_mb" "$learn_s" "$mb" "$s" "$verdict"
    rm -rf "$out"/made* "$out/adapter"
}

head_lines
for method in "$@"; do
    row "$method"
done
say '\n%s of %s methods within %s MB\n' $(($# - n_over)) $# $most_mb
[ -n "$save" ] && cp "$out/report" "$save"
[ $n_over -eq 0 ]
