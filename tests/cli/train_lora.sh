#!/bin/bash
# train --lora-rank: what trains, adapters under peft's names, the merged model, resuming, other bases,
# and what LoRA does not go with.
source "$(dirname "$0")/common/lib.sh"
want 0 data shapes --out s --n 160 --val-share 0.2 --test-share 0.2 -q
over='{"embed_dim": 16, "vision_cfg": {"width": 16, "head_width": 8, "image_size": 16, "layers": 2}, "text_cfg": {"width": 16, "heads": 2, "layers": 2}}'
train=(train --train-data s/train --logs l --workers 0 --batch-size 16 --lr 0.01 --warmup 0 --lr-scheduler const)
want 0 "${train[@]}" --name base --override "$over" --max-steps 2 -q
want 0 "${train[@]}" --name other --override "$over" --max-steps 1 -q
base=l/base/checkpoints/latest
lora=("${train[@]}" --model $base --lora-rank 2 --lora-alpha 4)
cat >arrays.py <<'PY'
import array, json, struct
def load(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    out = {}
    for k, v in head.items():
        if k != "__metadata__":
            a = array.array("f"); a.frombytes(data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]])
            out[k] = (v["shape"], a)
    return out
PY

# one step, and what it leaves
want 0 "${lora[@]}" --name tuned --max-steps 4 --save-every-n-steps 2 -q
check "what trains is told" grep -qE "LoRA: 16 matrices \([0-9]+ weights\) of the [0-9]+ weights by factors of rank 2 and alpha 4; [0-9]+ numbers train, whose optimiser state takes 0.0[0-9]+ MB in place of" l/tuned/out.log
want 0 convert $base --lora l/tuned/checkpoints/latest --out merged
check "factors, heads and their sum" python3 - <<'PY'
import json, math
from arrays import load
config = json.load(open("l/tuned/checkpoints/latest/adapter_config.json"))
assert config["peft_type"] == "LORA" and config["r"] == 2 and config["lora_alpha"] == 4 and config["bias"] == "none", config
adapter = load("l/tuned/checkpoints/latest/adapter_model.safetensors")
was, got = load("l/base/checkpoints/latest/model.safetensors"), load("merged/model.safetensors")
p = "base_model.model."
factors = {k[len(p):-len(".lora_A.weight")] for k in adapter if k.endswith(".lora_A.weight")}
whole = {k[len(p):] for k in adapter if ".lora_" not in k}
assert len(factors) == 16 and all(".resblocks." in k and (".attn." in k or ".mlp." in k) for k in factors), factors
assert whole == set(config["modules_to_save"]) and factors == set(config["target_modules"])
assert {"visual.proj", "text.text_projection.weight", "visual.uncertainty_proj.weight", "logit_scale"} <= whole
assert not any(".resblocks." in k or "conv1" in k or "token_embedding" in k for k in whole), whole
changed = {k for k in was if was[k] != got[k]}
matrix = {}
for k in factors:
    matrix[k] = next(n for n in (k + ".weight", k + "_weight") if n in was)
assert changed <= whole | set(matrix.values()) and set(matrix.values()) <= changed, changed
for k in sorted(factors):
    (r, n_in), a = adapter[p + k + ".lora_A.weight"]
    (n_out, _), b = adapter[p + k + ".lora_B.weight"]
    assert r == 2 and any(b)
    w0, w = was[matrix[k]][1], got[matrix[k]][1]
    for i in range(n_out):
        for j in range(n_in):
            want = w0[i * n_in + j] + 2 * sum(b[i * r + q] * a[q * n_in + j] for q in range(r))
            assert math.isclose(w[i * n_in + j], want, rel_tol=2e-6, abs_tol=1e-7), (k, i, j)
for k in whole:
    assert got[k][1] == adapter[p + k][1]
PY
check "an adapter is small" test "$(stat -Lc %s l/tuned/checkpoints/latest/adapter_model.safetensors)" -lt "$(stat -Lc %s $base/model.safetensors)"
check "and has no model's files" test ! -e l/tuned/checkpoints/latest/model.safetensors

# the first step is the base's, and the merged model is what was validated
want 0 "${train[@]}" --model $base --name whole --max-steps 1 -q
want 0 "${lora[@]}" --name first --max-steps 1 --seed 0 -q
check "B = 0: the first loss is that of the base" python3 -c '
import json
one, two = ([json.loads(x) for x in open(f"l/{n}/results.jsonl")][0]["loss"] for n in ("whole", "first"))
assert one == two, (one, two)'
want 0 "${lora[@]}" --name seen --max-steps 3 --val-data s/val --retrieval-frequency 0 -q
want 0 convert $base --lora l/seen/checkpoints/latest --out seen
want 0 "${train[@]}" --model seen --name again --max-steps 1 --lr 0 --val-data s/val --retrieval-frequency 0 -q
check "merged is what trained" python3 -c '
import json
one, two = ([json.loads(x) for x in open(f"l/{n}/results.jsonl") if "\"eval\"" in x][-1] for n in ("seen", "again"))
assert one["val_loss"] == two["val_loss"], (one, two)  # the bits
assert all(one[k] == two[k] for k in one if k.startswith("retrieval_"))'

# resumed in the middle: the same bits; micro-batches, checkpointing and bfloat16 go with it
want 0 "${lora[@]}" --name stopped --max-steps 4 --save-frequency 1 --save-every-n-steps 3 -q
check "the same run, the same bits" cmp l/tuned/checkpoints/latest/adapter_model.safetensors l/stopped/checkpoints/latest/adapter_model.safetensors
want 0 "${lora[@]}" --name kept --epochs 2 --save-frequency 1 -q
want 0 "${lora[@]}" --name resumed --epochs 2 --resume l/kept/checkpoints/epoch_1 -q
check "resumed from the first epoch" cmp l/kept/checkpoints/epoch_2/adapter_model.safetensors l/resumed/checkpoints/epoch_2/adapter_model.safetensors
check "and its moments" cmp l/kept/checkpoints/epoch_2/optimizer.safetensors l/resumed/checkpoints/epoch_2/optimizer.safetensors
want 0 "${lora[@]}" --name ckpt --max-steps 4 --grad-checkpointing -q
check "checkpointing: the same bits" cmp l/tuned/checkpoints/latest/adapter_model.safetensors l/ckpt/checkpoints/latest/adapter_model.safetensors
want 0 "${train[@]}" --model $base --lora-rank 2 --lora-alpha 4 --name whole16 --max-steps 1 --drop-ratio 0 --inclusion-alpha-occ 0 -q
want 0 "${train[@]}" --model $base --lora-rank 2 --lora-alpha 4 --name micro --max-steps 1 --drop-ratio 0 --inclusion-alpha-occ 0 --batch-size 8 --accum-freq 2 -q
check "micro-batches: the gradient of the batch" python3 - <<'PY'
import json
one, two = ([json.loads(x) for x in open(f"l/{n}/results.jsonl")][0] for n in ("whole16", "micro"))
for k in ("loss", "grad_norm"):
    assert abs(one[k] - two[k]) < 1e-5 * abs(one[k]), (k, one, two)
PY
want 0 "${lora[@]}" --name rounded --max-steps 2 --precision amp_bf16 -q

# one tower, single matrices, locked heads
want 0 "${lora[@]}" --name one --max-steps 1 --lora-towers text --lora-targets attn.in_proj --lock-text --lock-image -q
check "the factors alone train" python3 - <<'PY'
from arrays import load
names = set(load("l/one/checkpoints/latest/adapter_model.safetensors"))
p = "base_model.model."
assert {n for n in names if "lora_" in n} == {p + f"text.transformer.resblocks.{i}.attn.in_proj.lora_{x}.weight" for i in (0, 1) for x in "AB"}, names
assert {n for n in names if "lora_" not in n} <= {p + "logit_scale", p + "logit_bias"}, names
PY
want 0 "${lora[@]}" --name pattern --max-steps 1 --lora-targets 'visual.*.resblocks.1.mlp.*,text.*attn.out_proj*' -q
check "patterns of names" python3 -c 'from arrays import load
names = {n for n in load("l/pattern/checkpoints/latest/adapter_model.safetensors") if "lora_A" in n}
assert len(names) == 4 and all("resblocks.1.mlp" in n or "attn.out_proj" in n for n in names), names'

# refused by name
want 1 convert l/other/checkpoints/latest --lora l/tuned/checkpoints/latest --out no
says "factors of another base mean nothing"
want 1 "${train[@]}" --model l/other/checkpoints/latest --lora-rank 2 --lora-alpha 4 --max-steps 4 --name tuned --resume latest
says "factors of another base mean nothing"
want 1 "${train[@]}" --model l/tuned/checkpoints/latest --name no --max-steps 1
says "is a LoRA adapter"
want 1 embed -m l/tuned/checkpoints/latest --texts s/val -o t.safetensors
says "penumbra convert BASE --lora"
want 1 "${train[@]}" --model $base --name tuned --max-steps 4 --resume latest
says "is a LoRA adapter"
want 1 "${lora[@]}" --name base --max-steps 4 --resume latest
says "is no LoRA adapter"
want 1 "${train[@]}" --model $base --lora-rank 4 --lora-alpha 4 --name tuned --max-steps 4 --resume latest
says "has rank 2"
want 1 "${train[@]}" --override "$over" --lora-rank 2 --name no --max-steps 1
says "changes a trained model"
want 1 "${lora[@]}" --name no --lora-targets attn,conv --max-steps 1
says 'is called "conv"'
want 1 "${train[@]}" --model $base --lora-rank 17 --name no --max-steps 1
says "no smaller than it"
want 1 "${train[@]}" --model $base --lora-targets attn --name no --max-steps 1
says "give --lora-rank"
for flags in "--ema-decay 0.5" "--swa-start 1" "--reinit-unc" "--force-image-size 32" "--lock-image --lock-image-unlocked-groups 1"; do
    # shellcheck disable=SC2086
    want 1 "${lora[@]}" --name no --epochs 2 $flags
    says "--lora-rank does not go with"
done
want 2 convert $base --lora l/tuned/checkpoints/latest --to hf --out no
says "convert the merged model"
want 2 convert $base --out no
says "or --lora ADAPTER to be merged"
want 1 convert $base --lora l/tuned/checkpoints/latest --out merged
says "holds a model already"
want 1 convert $base --lora s --out no
says "is no LoRA adapter"
cp -rL l/tuned/checkpoints/latest broken
python3 - <<'PY'
data = bytearray(open("broken/adapter_model.safetensors", "rb").read())
data[:] = data.replace(b"text.transformer.resblocks.0.attn.in_proj.lora_B", b"text.transformer.resblocks.7.attn.in_proj.lora_B")
open("broken/adapter_model.safetensors", "wb").write(data)
PY
want 1 convert $base --lora broken --out no
says "stands without its other factor"
# a folder whose two files are not of one adapter, of a later format, or that is written into itself
edit() {
    rm -rf broken && cp -rL l/tuned/checkpoints/latest broken
    python3 - "$1" <<'PY'
import json, struct, sys
config = json.load(open("broken/adapter_config.json"))
data = open("broken/adapter_model.safetensors", "rb").read()
n = struct.unpack("<Q", data[:8])[0]
arrays, body = json.loads(data[8:8 + n]), data[8 + n:]
exec(sys.argv[1])
head = json.dumps(arrays).encode()
head += b" " * (-len(head) % 8)
open("broken/adapter_model.safetensors", "wb").write(struct.pack("<Q", len(head)) + head + body)
json.dump(config, open("broken/adapter_config.json", "w"))
PY
}
edit 'config["r"] = 1'
want 1 convert $base --lora broken --out no
says "says 1, which the sum is scaled by"
edit 'arrays.pop(list(arrays)[-1]); body = body[:max(a["data_offsets"][1] for k, a in arrays.items() if k != "__metadata__")]'
want 1 convert $base --lora broken --out no
says "or something is missing"
edit 'config["penumbra"]["format"] = 2'
want 1 convert $base --lora broken --out no
says "of a newer one"
want 1 convert $base --lora l/tuned/checkpoints/latest --out l/tuned/checkpoints/latest
says "holds an adapter"
check "nothing was begun" test ! -e l/no -a ! -e no
finish
