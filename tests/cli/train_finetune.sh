#!/bin/bash
# train: towers that are locked but for their last groups, the rate of heads, the moving mean of the
# weights, and that each goes on in a resumed run.
source "$(dirname "$0")/common/lib.sh"
want 0 data shapes --out s --n 160 --val-share 0.2 --test-share 0.2 -q
over='{"embed_dim": 16, "vision_cfg": {"width": 16, "head_width": 8, "image_size": 16, "layers": 3}, "text_cfg": {"width": 16, "heads": 2, "layers": 2}}'
train=(train --train-data s/train --logs l --workers 0 --batch-size 16 --lr 0.01 --warmup 0 --lr-scheduler const)
want 0 "${train[@]}" --name start --override "$over" --max-steps 1 -q
from=(--model l/start/checkpoints/latest)
cat >moved.py <<'PY'
import json, struct, sys
def load(name):
    data = open(name + "/model.safetensors", "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    return {k: data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]
            for k, v in head.items() if k != "__metadata__"}
def moved(one, two):
    a, b = load(one), load(two)
    assert a.keys() == b.keys()
    return {k for k in a if a[k] != b[k]}
PY

# the last two groups of pictures: the last block, its norm, heads; of captions the heads alone
want 0 "${train[@]}" "${from[@]}" --name locked --max-steps 2 --lock-image --lock-image-unlocked-groups 2 \
    --lock-text --lock-text-unlocked-layers 1 --lock-image-freeze-bn-stats --lock-text-freeze-layer-norm -q
check "what a lock leaves" python3 - <<'PY'
from moved import moved, load
got = moved("l/start/checkpoints/latest", "l/locked/checkpoints/latest")
text = {"text.unc_emb", "text.text_projection.weight", "text.text_projection.bias", "text.text_uncertainty_projection.weight",
        "text.text_uncertainty_projection.bias"}
heads = {"visual.proj", "visual.unc_embedding", "visual.uncertainty_proj.weight", "visual.uncertainty_proj.bias"}
last = {k for k in load("l/start/checkpoints/latest") if ".resblocks.2." in k} | {"visual.ln_post.weight", "visual.ln_post.bias"}
rest = {k for k in got if not k.startswith("logit")}
assert rest <= text | heads | last, rest - (text | heads | last)
assert {"visual.proj", "text.text_projection.weight", "visual.ln_post.weight"} <= rest, rest
assert any(".resblocks.2." in k for k in rest)
PY
want 0 "${train[@]}" "${from[@]}" --name all --max-steps 1 --lock-image --lock-image-unlocked-groups 5 -q
check "the first group has the embeddings" python3 -c 'from moved import moved
assert "visual.conv1.weight" in moved("l/start/checkpoints/latest", "l/all/checkpoints/latest")'
want 1 "${train[@]}" "${from[@]}" --name n --max-steps 1 --lock-image --lock-image-unlocked-groups 6
says "the tower has 5 groups: embeddings, 3 blocks, heads"
want 2 "${train[@]}" "${from[@]}" --name n --max-steps 1 --lock-image-unlocked-groups 1
says "goes with --lock-image"
want 2 "${train[@]}" "${from[@]}" --name n --max-steps 1 --lock-image --lock-text-unlocked-layers 1
says "with --lock-text"
want 2 "${train[@]}" "${from[@]}" --name n --max-steps 1 --lock-text-freeze-layer-norm
says "goes with --lock-image"
want 1 "${train[@]}" --objective pcme --name n --max-steps 1 --lock-image --lock-image-unlocked-groups 1
says "has no blocks of a transformer to leave unlocked"

# heads at a rate of 0 stand still
want 0 "${train[@]}" "${from[@]}" --name heads --max-steps 1 --head-lr-ratio 0 -q
check "the rate of heads is told" grep -q "Rates: heads 0 of the rest" l/heads/out.log
check "heads at rate 0" python3 -c 'from moved import moved
got = moved("l/start/checkpoints/latest", "l/heads/checkpoints/latest")
assert not {"visual.proj", "text.text_projection.weight", "visual.uncertainty_proj.weight"} & got
assert "visual.conv1.weight" in got'

# the moving mean, by hand from the checkpoint of each step, and by a run that was resumed
want 0 "${train[@]}" "${from[@]}" --name ema --max-steps 3 --ema-decay 0.75 --save-every-n-steps 1 -q
check "the mean is told" grep -q "Saved checkpoint ema: the moving mean of the weights after 3 steps" l/ema/out.log
for n in 1 2 3; do
    want 0 "${train[@]}" "${from[@]}" --name "to$n" --max-steps "$n" -q
done
check "m <- 3m/4 + w/4 from the first weights on" python3 - <<'PY'
import array
from moved import load
as_floats = lambda name: {k: array.array("f", v) for k, v in load(name).items()}
mean = as_floats("l/start/checkpoints/latest")
for n in (1, 2, 3):
    now = as_floats(f"l/to{n}/checkpoints/latest")
    mean = {k: [(3 * a + b) / 4 for a, b in zip(mean[k], now[k])] for k in mean}
got = as_floats("l/ema/checkpoints/ema")
worst = max(abs(a - b) for k in mean for a, b in zip(mean[k], got[k]))
assert worst < 1e-6, worst
PY
want 1 "${train[@]}" "${from[@]}" --name n --epochs 2 --ema-decay 0.5 --swa-start 1
says "give one of them"
want 2 "${train[@]}" "${from[@]}" --name n --epochs 2 --ema-decay 1
says "--ema-decay 1: it must be 0 or more, below 1"
check "nothing was begun" test ! -e l/n
finish
