#!/bin/bash
# PCME over this project's transformers, on either side or both: made, trained, resumed, embedded, told
# about.
source "$(dirname "$0")/common/lib.sh"
want 0 data shapes --out s --n 160 --val-share 0.2 --test-share 0.2 -q
narrow='{"embed_dim": 16, "vision_cfg": {"width": 32, "head_width": 16, "layers": 2}, "text_cfg": {"width": 32}}'
train=(train --train-data s/train --val-data s/val --batch-size 16 --logs l --workers 0 --objective pcme)
vit=("${train[@]}" --model pcme-vit-tiny --override "$narrow")
want 0 "${vit[@]}" --name a --max-steps 8 --json
check "a rate that is too large is told of" grep -q "Learning rate 0.003: made for a ResNet" l/a/out.log
want 0 info l/a/checkpoints/step_8
prints "heads of PCME over its patches; local attention"
prints "heads of PCME over its tokens; local attention"
prints "last word"
prints "a of match_prob"
want 0 check l/a/checkpoints/step_8
want 0 init --config pcme-vit-tiny --override "$narrow" --tokenizer l/a/checkpoints/step_8 --out start -q

# in one piece or resumed: the same bits; the trunk of a first phase is all but the heads
want 0 "${vit[@]}" --name b --max-steps 8 --save-frequency 1 --lr 5e-4
check "no word about a small one" test "$(grep -c 'Learning rate' l/b/out.log)" -eq 0
want 0 "${vit[@]}" --name c --max-steps 8 --lr 5e-4 --resume l/b/checkpoints/epoch_1
check "resumed is the same" cmp -s l/b/checkpoints/step_8/model.safetensors l/c/checkpoints/step_8/model.safetensors
want 0 "${train[@]}" --model start --name e --head-epochs 1 --epochs 2 --save-frequency 1 --wd 0 --word-drop 0 -q
check "the trunk stands still, heads do not" python3 - <<'PY'
import json, struct
def load(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    return {k: data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]
            for k, v in head.items() if k != "__metadata__"}
start, one, two = (load(p) for p in ("start/model.safetensors", "l/e/checkpoints/epoch_1/model.safetensors",
                                      "l/e/checkpoints/epoch_2/model.safetensors"))
assert "img_enc.transformer.resblocks.1.ln_1.weight" in start and "txt_enc.fc.weight" in start
for name in start:
    trunk = not any(part in name for part in (".fc.", ".pie_net.", ".uncertain_net.", "logit_")) or "resblocks" in name
    assert (start[name] == one[name]) == trunk, name
    assert one[name] != two[name], name
PY

# rows come as of any Gaussian model; several micro-batches, another size; its code has no such model
want 0 embed --model l/a/checkpoints/step_8 --images s/test --out e.safetensors -q
want 0 embed --model l/a/checkpoints/step_8 --text "a red star" "a star" --out t.safetensors -q
want 0 search --index e.safetensors --queries t.safetensors -k 1

# what people do with a model: made small, told apart, questioned, explained, calibrated
m=l/a/checkpoints/step_8
want 0 quantize --model $m --images s/val --texts s/val --out small --min-cosine 0.99 --min-rank 0 --min-top1 0 --json
prints '"weights": "int8, activations in 7 bits"'
for dir in $m small; do
    want 0 check $dir
    want 0 classify -m $dir --images s/test --classnames circle,star,bar --templates simple -q
    want 0 probe -m $dir --images s/test --texts s/test --limit 4 -q
    want 0 explain -m $dir --text "a red star" --images s/test --cell 3 --html e.html -q --json
done
want 0 embed --model $m --texts s/test --out c.safetensors -q
want 0 calibrate --images e.safetensors --texts c.safetensors --truth s/test --out cal.json -q
want 0 report --run l/a --images e.safetensors --texts c.safetensors --truth s/test --out r.html -q
want 0 "${vit[@]}" --name g --accum-freq 2 --max-steps 2 -q
want 0 "${train[@]}" --model l/a/checkpoints/step_8 --name h --max-steps 1 --force-image-size 64 --force-resize-pos-emb -q
want 1 convert l/a/checkpoints/step_8 --to pcme --out released
says "a ResNet and GRUs"
want 1 "${vit[@]}" --name i --max-steps 1 --image-trunk l/a/checkpoints/step_8/model.safetensors
says "has no ResNet"

# one transformer beside a ResNet or GRUs
heads='"model_type": "pcme", "embed_dim": 16, "init_log_std": -3'
resnet='"vision_cfg": {"layers": [1, 1, 1, 1], "base": 4, "bottleneck": false, "image_size": 64}'
states='"text_cfg": {"layers": 1, "width": 32, "heads": 2, "context_length": 16}'
echo "{$heads, $resnet, $states}" >resnet.json
echo "{$heads, \"vision_cfg\": {\"patch_size\": 8, \"layers\": 1, \"width\": 32, \"head_width\": 16, \"image_size\": 48},
 \"text_cfg\": {\"word_dim\": 8, \"context_length\": 16}}" >grus.json
for kind in resnet grus; do
    want 0 "${train[@]}" --name "$kind" --max-steps 2 --model $kind.json -q
    want 0 info l/$kind/checkpoints/step_2
    prints "heads of PCME over its"
done
prints "bi-GRU over words of 8"
finish
