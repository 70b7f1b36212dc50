#!/bin/bash
# penumbra quantize: writes a model that opens like any other, or says which figure fell short and
# writes nothing; its record is shown; wrong uses.
source "$(dirname "$0")/common/lib.sh"
make_small
set_of="--images shapes/val --texts shapes/val/captions.jsonl"

want 2 quantize --model model --out small
says "calibration set"
# shellcheck disable=SC2086
want 1 quantize --model model --out small $set_of --min-cosine 1 --min-rank -1 --min-top1 0
says "below the limit 1"
check "no note that precisions are mixed, which is asked for" test "$(grep -c 'note:' err)" -eq 0
says "nothing was written"
check "nothing is there" test ! -e small

# shellcheck disable=SC2086
want 0 quantize --model model --out small $set_of --min-rank 0.5 --min-top1 0.5 --json -q
prints '"weights": "int8, activations in 7 bits"'
prints '"mean_cosine"'
prints '"uncertainty_rank_correlation"'
prints '"top1_agreement"'
check "every way to embed both sides, with its time; bf16 is nearer to floats than bytes" python3 - <<'PY'
import json
rows = json.load(open("out"))["ways"]
assert len(rows) == 10, rows
for side in ("images", "texts"):
    of_side = [r for r in rows if r["side"] == side]
    assert [r["way"] for r in of_side] == \
        ["precision fp32", "precision fp32-tiles", "precision fp32-tiles-fast", "precision bf16",
         "int8, activations in 7 bits"], rows
    floats, tiles, fast, halves, small = of_side
    assert tiles["promise"] in ("is fp32 here", "held") and fast["least_cosine"] > 1 - 1e-9, rows
    # the uncertainties of 8 pictures differ by less than bf16 promises: two may change places
    assert floats["promise"] == "-" and (halves["promise"] == "held" or side == "images"), rows
    assert halves["variance_change"] < 0.01 and halves["uncertainty_rank_correlation"] > 0.95, rows
    assert floats["mean_cosine"] == 1 and 1 > halves["mean_cosine"] > small["mean_cosine"], rows
    assert halves["mean_cosine"] > 0.9999 and all(r["seconds"] > 0 for r in (floats, halves, small))
PY
want 0 info small
prints "int8, activations in 7 bits"
prints "mean_cosine"
for file in config.json model.safetensors tokenizer.json preprocessor_config.json; do
    check "small/$file is there" test -s "small/$file"
done
size() { stat -c %s "$1/model.safetensors"; }
check "the weights are smaller" test "$(size small)" -lt "$(size model)"
want 0 check small
cp -r small torn && python3 - <<'PY'
import json, struct
data = open("small/model.safetensors", "rb").read()
n = struct.unpack("<Q", data[:8])[0]
head = json.loads(data[8:8 + n])
head["logit_scale_scale"] = head.pop(next(k for k in head if k.endswith("weight_scale")))
text = json.dumps(head).encode()
open("torn/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data[8 + n:])
PY
want 1 check torn
says "2 errors"
prints "is stored in 8 bits, but its scales"
prints "logit_scale_scale is not part of the model"
want 0 embed --model small --images shapes/val --out small.safetensors -q
want 0 embed --model small --images shapes/val --batch-size 3 --out by3.safetensors -q
# shellcheck disable=SC2086
want 1 quantize --model model --out small $set_of
says "holds a model already"
mkdir bare && cp model/config.json model/model.safetensors bare/
# shellcheck disable=SC2086
want 0 quantize --model bare --out named $set_of --min-rank 0.5 --min-top1 0.5 -q \
    --tokenizer model/tokenizer.json --preprocess model/preprocessor_config.json
check "the named preprocessing goes along" cmp -s named/preprocessor_config.json \
    model/preprocessor_config.json
# shellcheck disable=SC2086
want 1 quantize --model small --out again $set_of
says "small already"
want 1 train --train-data shapes/train --model small --name run --max-steps 1 -q
says "cannot be trained"

# shellcheck disable=SC2086
want 0 quantize --model model --to bf16 --out half $set_of --min-rank 0.5 --min-top1 0.5 -q
want 0 info half
prints "bf16"
want 0 check half
want 0 train --train-data shapes/train --model half --name run --max-steps 1 --batch-size 4 -q
finish
