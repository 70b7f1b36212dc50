#!/bin/bash
# train --recipe NAME: each is shown as a config file that train reads, runs with a tiny model, is
# weaker than the command line, and what is installed is what is shown.
source "$(dirname "$0")/common/lib.sh"
want 0 data shapes --out s --n 120 -q
tiny='{"embed_dim": 16, "vision_cfg": {"width": 16, "head_width": 8, "image_size": 16, "layers": 2}, "text_cfg": {"width": 16, "heads": 2, "layers": 2}}'
want 0 train --train-data s/train --logs l --name start --workers 0 --batch-size 8 --override "$tiny" --max-steps 1 -q
less=(--pretrained l/start/checkpoints/latest --train-data s/train --logs l --workers 0 --batch-size 8 --accum-freq 2
    --max-steps 2 --force-context-length 24 --force-resize-pos-emb -q)

for name in prolip-pretrain prolip-from-siglip longprolip finetune-coco; do
    want 0 train --recipe $name --show
    prints "# source  "
    prints "# tried  "
    cp out $name.conf
    want 0 train --recipe $name --name $name "${less[@]}"
    # the same rows by way of a config file, over the published recipe
    PENUMBRA_CONFIG=$name.conf want 0 train --recipe published --name "file-$name" "${less[@]}"
    check "$name: shown and taken are the same" python3 - $name <<'PY'
import sys
name = sys.argv[1]
read = lambda run: {k: v for k, v in (l.rstrip("\n").split(": ", 1) for l in open(f"l/{run}/params.txt")) if k != "name"}
one, two = read(name), read("file-" + name)
assert one == two, {k: (one[k], two.get(k)) for k in one if one[k] != two.get(k)}
rows = [l.split(" = ") for l in open(name + ".conf").read().split("[train]\n")[1].splitlines() if not l.startswith("#")]
assert len(rows) >= 12
assert float(one["lr"]) == float(dict(rows)["lr"])
assert one["batch_size"] == "8" and one["max_steps"] == "2", "the command line is stronger"
PY
done
for name in prolip-from-siglip longprolip finetune-coco finetune-lora; do
    want 2 train --recipe $name --name none --train-data s/train --logs l --max-steps 1 --model tiny
    says "--recipe $name goes on from a model: give --pretrained"
done
want 0 train --recipe longprolip --name longprolip --logs l --resume latest "${less[@]:2}"
want 0 train --recipe prolip-pretrain --name new "${less[@]:2}" --model tiny --override "$tiny"
check "rows of each reach the run" python3 - <<'PY'
read = lambda run: dict(l.rstrip("\n").split(": ", 1) for l in open(f"l/{run}/params.txt"))
assert float(read("finetune-coco")["ema_decay"]) == 0.999 and float(read("finetune-coco")["layer_lr_decay"]) == 0.7
assert float(read("prolip-from-siglip")["head_lr_ratio"]) == 10
assert float(read("prolip-pretrain")["inclusion_eps"]) == -20 and float(read("longprolip")["inclusion_eps"]) == -100
PY

# fine-tuning by factors, and a student of a teacher's sets: what each of them writes and adds up
want 0 train --recipe finetune-lora --name lora --pretrained l/start/checkpoints/latest --train-data s/train \
    --logs l --workers 0 --batch-size 8 --max-steps 2 --lora-rank 2 -q
check "a small folder of factors" test -s l/lora/checkpoints/latest/adapter_config.json
want 0 train --recipe finetune-lora --show
prints "# source  Hu et al. 2021"
want 0 embed -m l/start/checkpoints/latest --images s/train -o v.safetensors -q
want 0 embed -m l/start/checkpoints/latest --texts s/train -o t.safetensors -q
want 0 train --recipe distill-clip --name student --train-data s/train --logs l --workers 0 --batch-size 8 \
    --max-steps 2 --distill-images v.safetensors --distill-texts t.safetensors --model tiny --override "$tiny" -q
want 0 train --recipe distill-clip --show
prints "distill-weight = 1"
want 2 train --recipe distill-clip --name none --train-data s/train --logs l --max-steps 1
says "give --distill-images and --distill-texts"
check "their rows reach the run" python3 - <<'PY'
import json
read = lambda run: dict(l.rstrip("\n").split(": ", 1) for l in open(f"l/{run}/params.txt"))
lora, student = read("lora"), read("student")
assert float(lora["lora_alpha"]) == 16 and float(lora["wd"]) == 0 and lora["lora_targets"] == "attn"
assert float(student["distill_weight"]) == float(student["clip_lambda"]) == 1 and float(student["beta2"]) == 0.98
line = json.loads(open("l/student/results.jsonl").readline())
assert line["distill"] > 0 and abs(line["loss"] - line["clip"] - line["distill"]) < 1e-5 * line["loss"], line
PY

# PCME's: rows and objective together, over a narrow model
narrow=(--model pcme-tiny --override '{"embed_dim": 8, "vision_cfg": {"base": 2}, "text_cfg": {"word_dim": 6}}')
mkdir classes && for c in one two three; do
    mkdir classes/$c && tar -xf s/train/00000.tar -C classes/$c --wildcards "000000[0-3].*"
done
for name in pcme-coco pcme-cub; do
    want 0 train --recipe $name --show
    prints "# source  Chun et al. 2021"
    prints "model = $name"
    want 0 train --recipe $name --name $name --train-data classes --logs l --workers 0 --batch-size 3 --max-steps 2 \
        --head-epochs 0 "${narrow[@]}" -q
done
check "PCME's two trainings differ as the papers do" python3 - <<'PY'
read = lambda run: dict(l.rstrip("\n").split(": ", 1) for l in open(f"l/{run}/params.txt"))
coco, cub = read("pcme-coco"), read("pcme-cub")
for run in (coco, cub):
    assert run["optimizer"] == "adamp" and float(run["wd"]) == 0 and float(run["grad_clip_norm"]) == 2
    assert int(run["n_samples"]) == 7 and float(run["word_drop"]) == 0.1 and float(run["aug_re_prob"]) == 0.2
    assert float(run["trunk_lr_ratio"]) == 0.1 and int(run["epochs"]) == 60 and float(run["pcme_lambda"]) == 1
assert [float(coco[k]) for k in ("lr", "pcme_kl_beta", "uniformity_lambda")] == [2e-4, 1e-5, 0]
assert [float(cub[k]) for k in ("lr", "pcme_kl_beta", "uniformity_lambda")] == [1e-4, 1e-3, 10]
assert coco["batch_by_class"] == "false" and cub["batch_by_class"] == "true"
PY

# small is what a run without a recipe has
want 0 train --recipe small --show
cp out small.conf
run=(train --train-data s/train --logs l --workers 0 --override "$tiny" --max-steps 1 --batch-size 16 -q)
want 0 "${run[@]}" --name plain
sed -i '/^batch-size/d' small.conf
PENUMBRA_CONFIG=small.conf want 0 "${run[@]}" --name by-file
check "small says what the defaults are" diff <(grep -v '^name:' l/plain/params.txt) <(grep -v '^name:' l/by-file/params.txt)

want 2 train --recipe published --show
says "has no rows of its own"
want 2 train --recipe other --show
says "prolip-pretrain"
if [ -d "$(dirname "$PENUMBRA")/share/recipes" ]; then
    for file in "$(dirname "$PENUMBRA")"/share/recipes/*.conf; do
        want 0 train --recipe "$(basename "$file" .conf)" --show
        check "installed: $(basename "$file")" diff out "$file"
    done
fi
finish
