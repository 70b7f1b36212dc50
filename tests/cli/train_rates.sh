#!/bin/bash
# train: milestones of the learning rate, rates of parts, and the published PCME++, which has both.
source "$(dirname "$0")/common/lib.sh"
want 0 data shapes --out s --n 160 --val-share 0.2 --test-share 0.2 -q
over='{"embed_dim": 16, "vision_cfg": {"width": 16, "head_width": 8, "image_size": 16}, "text_cfg": {"width": 16, "heads": 2}}'
train=(train --train-data s/train --logs l --workers 0)
small=("${train[@]}" --objective pcmepp --override "$over" --batch-size 16)

# milestones count epochs of six steps; rates of parts are told, and refused where there is no such part
want 0 "${small[@]}" --name m --epochs 3 --lr 0.01 --warmup 0 --lr-scheduler multistep --lr-milestones 1 2 --lr-gamma 0.5 \
    --log-every-n-steps 1 --image-lr-ratio 0.5 --text-lr-ratio 0.25 --layer-lr-decay 0.7 -q
check "the rate falls at each milestone" python3 - <<'PY'
import json
lines = [json.loads(l) for l in open("l/m/results.jsonl")]
rates = [l["lr"] for l in lines if l["kind"] == "train"]
assert rates == [0.01] * 6 + [0.005] * 6 + [0.0025] * 6, rates
PY
check "rates are told" grep -q "Rates: image tower 0.5 of the whole, text tower 0.25, each block 0.7" l/m/out.log
want 1 "${small[@]}" --name n --max-steps 1 --lr-scheduler multistep
says "names 1 to 4 epochs"
want 2 "${small[@]}" --name n --max-steps 1 --lr-milestones 1
says "multistep"
want 2 "${small[@]}" --name n --max-steps 1 --lr-scheduler multistep --lr-milestones soon
says "an epoch, 1 or more"
want 1 "${train[@]}" --objective pcme --name n --max-steps 1 --layer-lr-decay 0.5
says "has no blocks"

# the published PCME++ in small: its image tower stands still for two epochs, then takes a hundredth
want 0 "${train[@]}" --objective pcmepp --recipe published --model pcmepp-tiny --override "$over" \
    --batch-size 32 --name p --epochs 3 --swa-start 0 --save-frequency 1 -q
check "what stands still" python3 - <<'PY'
import json, struct
def load(epoch):
    data = open(f"l/p/checkpoints/epoch_{epoch}/model.safetensors", "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    return {k: data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]
            for k, v in head.items() if k != "__metadata__"}
one, two, three = load(1), load(2), load(3)
for name in ("visual.conv1.weight", "visual.transformer.resblocks.1.mlp.c_fc.weight"):
    assert one[name] == two[name] != three[name], name
for name in ("visual.proj", "visual.uncertainty_transformer.resblocks.0.mlp.c_fc.weight", "text_projection"):
    assert one[name] != two[name], name
PY
check "new weights are told of" grep -q "such rates are made for pretrained ones" l/p/out.log
finish
