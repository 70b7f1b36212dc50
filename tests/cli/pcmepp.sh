#!/bin/bash
# PCME++ through the commands: a folder under the released names is examined, opened and refused with
# the culprit named; a new one is made, trained, resumed to the bit and embeds.
source "$(dirname "$0")/common/lib.sh"
case=$PNB_SOURCE_DIR/tests/golden/prolip_model/pcmepp_two_paths

# released names, with another implementation's numbers beside them; no tokenizer came along
cp -r "$case" released
mv released/tensors.safetensors released/golden.safetensors
rm released/gradients.safetensors
want 1 check released
prints "all 137 keys are there and fit"
prints "log-variance by 2 blocks of its own behind block 2 of 4"
prints "log-variance by 1 block of its own behind block 2 of 3"
prints "openai/clip-vit-base-patch32"
prints "assumed as for family pcmepp"
prints "image.mean: worst cosine distance"
prints "text.std: worst"
says "1 error, 1 warning"
want 0 info released --json
check "a and b of similarities" python3 -c 'import json; r = json.load(open("out"))
assert r["family"] == "pcmepp" and r["vision"]["uncertainty"] and r["text"]["uncertainty"], r
assert abs(r["logit_scale"] - 7) < 1e-3 and abs(r["logit_bias"] + 2.75) < 1e-3, r'

# a key that is called otherwise is missing, and one too many
cp -r released renamed
sed -i 's/"uncertainty_text_projection"/"uncertainty_text_projektion"/' renamed/model.safetensors
want 1 check renamed
prints "uncertainty_text_projection is missing from the file"
prints "uncertainty_text_projektion is not part of the model"
want 1 info renamed
says "uncertainty_text_projection is missing from the file"
# a configuration of one block more or less
cp -r released deeper
sed -i 's/"unc_layers": 1/"unc_layers": 2/' deeper/config.json
want 1 info deeper
says "uncertainty_transformer.resblocks.1.ln_1.weight is missing"
cp -r released shallower
sed -i 's/"unc_layers": 2/"unc_layers": 1/' shallower/config.json
want 1 info shallower
says "unexpected weight visual.uncertainty_transformer.resblocks.1."
# without the word it is a CLIP, and its second path is too much
cp -r released clip
python3 - clip/config.json <<'PY'
import json, sys
config = json.load(open(sys.argv[1]))
for section in ("vision_cfg", "text_cfg"):
    del config[section]["unc_layers"]
json.dump(config, open(sys.argv[1], "w"))
PY
want 1 info clip
says "unexpected weight negative_scale"
for to in prolip open_clip hf; do
    want 1 convert released --to "$to" --out "as_$to"
    says "pcmepp"
    check "nothing is written" test ! -e "as_$to"
done

# a new one: texts are read at the end token of its tokenizer
make_small
over='{"embed_dim":16,"vision_cfg":{"layers":2,"width":32,"head_width":16},"text_cfg":{"layers":2,"width":32,"heads":2}}'
want 0 init --config pcmepp-tiny --override "$over" --tokenizer tok.json --out new -q
want 0 check new
prints "all 89 keys are there and fit"
prints "first end token"
want 0 embed --model new --images shapes/val --out val.safetensors -q
want 0 info val.safetensors --json
prints '"measure": "csd"'

run=(--objective pcmepp --override "$over" --tokenizer tok.json --train-data shapes/train
    --batch-size 8 --workers 1 --threads 2 --seed 3 --max-steps 3 --save-every-n-steps 1 --logs logs)
want 0 train "${run[@]}" --name whole --json -q
prints '"step": 3'
want 0 train "${run[@]}" --name mixed --mix-share 0.25 --pcmepp-pseudo-weight 0.2 --log-every-n-steps 1 --json -q
check "pseudo positives and mixed pictures are in the loss" python3 - <<'PY'
import json
whole, mixed = ([json.loads(l) for l in open(f"logs/{n}/results.jsonl")] for n in ("whole", "mixed"))
assert whole[0]["pcmepp_pseudo"] > 0 and whole[0]["pcmepp"] > 0, whole[0]
assert mixed[0]["pcmepp"] != whole[0]["pcmepp"] and mixed[0]["pcmepp_pseudo"] > whole[0]["pcmepp_pseudo"]
PY
want 0 check logs/whole/checkpoints/latest
prints "all 89 keys are there and fit"
want 0 embed --model logs/whole/checkpoints/latest --images shapes/val --out trained.safetensors -q
finish
