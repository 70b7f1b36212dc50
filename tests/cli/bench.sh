#!/bin/bash
# bench search and eval: every hit is right, and the figures of the machine stand beside ours.
source "$(dirname "$0")/common/lib.sh"

field() { # FILE KEY: the value of a number in a JSON object of one level
    sed -n "s/.*\"$2\": *\([-0-9.e+]*\).*/\1/p" "$1" | head -1
}

for what in "csd 1" "inclusion 7" "mean 40" "vmf 1" "vmf_exact 20" "power_spherical 40"; do
    read -r measure queries <<<"$what"
    want 0 bench search --n 900 --dim 33 --queries "$queries" --measure "$measure" --k 5 \
        --seconds 0 --repeats 2 --threads 2 --json
    check "recall of $measure" test "$(field out recall)" = 1.0
    for key in median_s min_s sgemm_gflops share bandwidth_gb_s bandwidth_share prepare_s; do
        check "$key of $measure" test -n "$(field out $key)"
    done
done
want 0 bench search --n 3 --dim 4 --queries 2 --k 10 --seconds 0 --repeats 1
prints "hits of a query"
want 0 bench eval --captions 90 --images 20 --dim 16 --seconds 0 --repeats 1 --measure vmf
want 0 bench eval --captions 100 --images 20 --dim 16 --seconds 0 --repeats 1 --json
check "R@1" test -n "$(field out recall_at_1_i2t)"
want 2 bench eval --captions 3 --images 20
says "each picture needs at least one"
want 2 bench search --n 0
says "--n 0: must be between"
want 2 bench search --measure cosine
says "must be one of"
finish
