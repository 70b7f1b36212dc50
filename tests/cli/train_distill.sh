#!/bin/bash
# train --distill-images --distill-texts: rows of a teacher by the ids of samples and captions, both
# losses, any width, micro-batches, resuming, and what is refused.
source "$(dirname "$0")/common/lib.sh"
want 0 data shapes --out s --n 160 --val-share 0.2 --test-share 0.2 -q
over='{"embed_dim": 16, "vision_cfg": {"width": 16, "head_width": 8, "image_size": 16, "layers": 1}, "text_cfg": {"width": 16, "heads": 2, "layers": 1}}'
narrow='{"embed_dim": 8, "vision_cfg": {"width": 16, "head_width": 8, "image_size": 16, "layers": 1}, "text_cfg": {"width": 16, "heads": 2, "layers": 1}}'
train=(train --train-data s/train --logs l --workers 0 --batch-size 16 --warmup 0 --lr-scheduler const)
want 0 "${train[@]}" --name base --override "$over" --max-steps 20 --lr 0.003 -q
base=l/base/checkpoints/latest
want 0 embed -m $base --images s/train -o i.safetensors -q
want 0 embed -m $base --texts s/train -o t.safetensors -q
teacher=(--distill-images i.safetensors --distill-texts t.safetensors)
cat >first.py <<'PY'
import json, sys
def lines(run): return [json.loads(x) for x in open(f"l/{run}/results.jsonl")]
PY

# a student that is its teacher, seeing what it saw, is at no distance: every row is its own sample's
plain=(--augment none --template-share 0 --model $base --lr 0)
for cut in "16 1" "8 2" "4 4"; do
    read -r batch accum <<<"$cut"
    want 0 "${train[@]}" "${teacher[@]}" "${plain[@]}" --name same$accum --max-steps 6 --log-every-n-steps 1 \
        --batch-size "$batch" --accum-freq "$accum" --distill-loss kl -q
done
check "no divergence from oneself, in micro-batches too" python3 - <<'PY'
from first import lines
for run in ("same1", "same2", "same4"):
    worst = max(abs(x["distill_kl"]) for x in lines(run) if x["kind"] == "train")
    assert worst < 1e-6, (run, worst)
PY
want 0 "${train[@]}" "${teacher[@]}" "${plain[@]}" --name ce1 --max-steps 2 --log-every-n-steps 1 --distill-weight 3 -q
want 0 "${train[@]}" "${teacher[@]}" "${plain[@]}" --name ce2 --max-steps 2 --log-every-n-steps 1 --distill-weight 3 --batch-size 4 --accum-freq 4 -q
want 0 "${train[@]}" "${teacher[@]}" "${plain[@]}" --name ce3 --max-steps 2 --log-every-n-steps 1 --distill-weight 1 -q
want 0 "${train[@]}" "${teacher[@]}" "${plain[@]}" --name ce4 --max-steps 2 --log-every-n-steps 1 --distill-weight 1 --distill-scale 1 -q
check "weight and scale count, cuts do not" python3 - <<'PY'
from first import lines
a, b, c, d = (lines(f"ce{i}")[1]["distill"] for i in (1, 2, 3, 4))
assert abs(a - b) < 1e-5 * a and abs(a - 3 * c) < 1e-5 * a and abs(c - d) > 1e-5 * c, (a, b, c, d)
PY

# a narrower student learns from it, and validation knows nothing of the teacher
want 0 "${train[@]}" "${teacher[@]}" --name student --override "$narrow" --epochs 6 --lr 0.003 --val-data s/val -q
check "the student comes nearer" python3 - <<'PY'
from first import lines
loss = [x["distill"] for x in lines("student") if x["kind"] == "train"]
assert loss[-1] < loss[0], loss
assert not any("distill" in x for x in lines("student") if x["kind"] == "eval")
PY
want 0 "${train[@]}" "${teacher[@]}" --name kept --override "$narrow" --epochs 2 --save-frequency 1 -q
want 0 "${train[@]}" "${teacher[@]}" --name again --override "$narrow" --epochs 2 --resume l/kept/checkpoints/epoch_1 -q
check "resumed: the same bits" cmp l/kept/checkpoints/epoch_2/model.safetensors l/again/checkpoints/epoch_2/model.safetensors

source "$(dirname "$0")/common/ranks.sh"
ranked=("${train[@]}" "${teacher[@]}" --override "$narrow" --max-steps 3 --batch-size 4 --global-batch 12
    --threads 1 -q)
want 0 "${ranked[@]}" --name ranks1
for n in 2 3; do
    want_ranks 0 $n "${ranked[@]}" --name ranks$n
    check "$n processes learn as one" cmp l/ranks{1,$n}/checkpoints/latest/model.safetensors
done
check "each pair has its teacher's row" python3 - <<'PY'
from first import lines
a, b = (lines(n)[-1]["distill"] for n in ("ranks1", "ranks3"))
assert abs(a - b) <= 1e-6 * a, (a, b)
PY

# refused by name
want 1 "${train[@]}" "${teacher[@]}" --name no --override "$narrow" --distill-loss kl --max-steps 1
says "Gaussians of the model's width"
want 0 embed -m $base --images s/val -o v.safetensors -q
want 1 "${train[@]}" --distill-images v.safetensors --distill-texts t.safetensors --name no --override "$over" --max-steps 1
says "the teacher's sets lack"
want 0 embed -m l/student/checkpoints/latest --texts s/train -o other.safetensors -q
want 1 "${train[@]}" --distill-images i.safetensors --distill-texts other.safetensors --name no --override "$over" --max-steps 1
want 1 "${train[@]}" --distill-images i.safetensors --name no --override "$over" --max-steps 1
says "--distill-texts"
want 2 "${train[@]}" --distill-weight 1 --name no --override "$over" --max-steps 1
says "give --distill-images"
want 2 "${train[@]}" --distill-loss kl --name no --override "$over" --max-steps 1
says "give --distill-images"
want 1 "${train[@]}" --distill-scale 2 --name no --override "$over" --max-steps 1
says "none is given"
want 1 "${train[@]}" "${teacher[@]}" --distill-weight 0 --name no --override "$over" --max-steps 1
says "a weight above 0"
want 1 "${train[@]}" "${teacher[@]}" --mix-share 0.5 --inclusion-alpha 0 --name no --override "$over" --max-steps 1
says "loss distill knows no match by halves"
# a table: its captions have numbers for ids and are found by their words, a picture may come again
check "a table" python3 - <<'PY'
import glob, os, tarfile
os.makedirs("p")
with open("t.csv", "w") as out:
    out.write("filepath\ttitle\n")
    members = [(tar, m) for tar in map(tarfile.open, sorted(glob.glob("s/train/*.tar"))) for m in tar if m.name.endswith(".png")]
    for i, (tar, m) in enumerate(members[:16]):
        open("p/" + m.name, "wb").write(tar.extractfile(m).read())
        out.write(f"p/{m.name}\tone {i * 7 % 16}\np/{m.name}\tother {i}\n")
PY
want 0 embed -m $base --images t.csv -o ti.safetensors -q
want 0 embed -m $base --texts t.csv -o tt.safetensors -q
want 0 train --train-data t.csv --logs l --workers 0 --batch-size 16 --warmup 0 "${plain[@]}" --distill-images ti.safetensors --distill-texts tt.safetensors \
    --name table --max-steps 4 --log-every-n-steps 1 --distill-loss kl -q
check "every row of it is its own sample's" python3 -c '
from first import lines
assert max(abs(x["distill_kl"]) for x in lines("table") if x["kind"] == "train") < 1e-6'

# two sources that number their samples alike: a row belongs to one of them
want 0 data shapes --out s2 --n 160 --val-share 0.2 --test-share 0.2 --seed 7 -q
want 0 embed -m $base --images s/train::s2/train -o both_i.safetensors -q
want 0 embed -m $base --texts s/train::s2/train -o both_t.safetensors -q
want 1 train --train-data s/train::s2/train --logs l --distill-images both_i.safetensors --distill-texts both_t.safetensors \
    --name no --override "$over" --max-steps 1
says "have the id of another one"
want 1 "${train[@]}" --distill-images i.safetensors --distill-texts i.safetensors --name no --override "$over" --max-steps 1
says "have the id of another one"
check "nothing was begun" test ! -e l/no
finish
