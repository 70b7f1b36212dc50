#!/bin/bash
# What train --memory foresees is within a tenth of what the Release program takes: a step in one
# pass and one that was cut, with validation and without. The memory of a sanitized program is its
# sanitizer's.
. "$(dirname "$0")/lib.sh"
program=$PNB_RELEASE_DIR/penumbra
[ -x "$program" ] || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
for _ in $(seq 50); do echo "a picture of random pixels"; done >words
"$program" tokenizer train --captions words --vocab-size 280 --out tok.json -q >/dev/null || exit 1
"$program" data shapes --out shapes --n 200 --val-share 0.4 -q >/dev/null || exit 1

# near NAME ARGS...
near() {
    "$program" train --tokenizer tok.json --logs logs --name "$1" --threads 2 --max-steps 2 --json -q \
        --model tiny "${@:2}" >out 2>log || bad "$1: $(head -c 300 log)"
    python3 -c '
import json, sys
r = json.load(open("out"))
share = r["estimated_bytes"] / r["peak_bytes"]
sys.exit(0 if 0.9 <= share <= 1.1 else "foreseen %.3f of what it took, %d bytes"
         % (share, r["peak_bytes"]))' 2>log || bad "$1: $(cat log)"
}
random=(--dataset-type synthetic --train-num-samples 512)
near whole "${random[@]}" --batch-size 128 --memory 8G
near cut "${random[@]}" --batch-size 512 --memory 220M
near validated --train-data shapes/train --val-data shapes/val --batch-size 64 --memory 8G
near cut-validated --train-data shapes/train --val-data shapes/val --batch-size 64 --memory 130M
finish
