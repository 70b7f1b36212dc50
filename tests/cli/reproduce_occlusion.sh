#!/bin/bash
# reproduce: ProLIP's Table C.8, covered pictures, with a few steps.
source "$(dirname "$0")/common/lib.sh"

# a folder that somebody has: the classes of the test are its folders
want 0 data shapes --out shapes --n 60 --val-share 0 --test-share 0 -q
mkdir -p pictures own/train && tar -xf shapes/train/*.tar -C pictures
i=0
for picture in pictures/*.png; do
    folder=own/test/class$((i % 3))
    [ $i -lt 30 ] && folder=own/train
    mkdir -p $folder
    cp "$picture" $folder/$i.png && echo "a picture of class$((i % 3))" >$folder/$i.txt
    i=$((i + 1))
done
own=(reproduce prolip-occlusion --data own --max-steps 2 --batch-size 8 -t 1)
want 0 "${own[@]}" --seeds 2 --out o --json
cp out first
check "five shares beside the paper's" python3 - <<'PY'
import json
r = json.load(open("first"))
paper = {(f["row"], f["figure"]): f["value"] for f in r["figures"] if f["source"] == "paper"}
assert paper["share_25", "top1"] == 74.1 and paper["share_100", "sigma"] == 0.0153, paper
ours = {(f["row"], f["figure"]): f["value"] for f in r["figures"] if f["source"] == "here"}
assert len(ours) == 15 and len({row for row, _ in ours}) == 5, ours
assert len({ours["share_%d" % s, "nll"] for s in (0, 50, 100)}) == 3, ours  # pictures do change
PY
model=$(echo o/runs/prolip-1.*/checkpoints/latest)
want 0 classify --model "$model" --images own/test --templates openai --occlusion 0 0.025 0.05 0.075 0.1 \
    -t 1 --json -q
check "the figures of classify" python3 - <<'PY'
import json
points = json.load(open("out"))["occlusion"]
values = json.load(open("o/results/prolip-1.json"))["values"]
for p, key in zip(points, ("share_0", "share_25", "share_50", "share_75", "share_100")):
    assert abs(100 * p["acc1"] - values[key]["top1"]) < 0.01, (p, values[key])
    assert abs(p["nll"] - values[key]["nll"]) < 1e-3, (p, values[key])
    assert abs((p["uncertainty"] / 128) ** 0.5 - values[key]["sigma"]) < 1e-4, (p, values[key])
PY
want 0 "${own[@]}" --seeds 2 --out o --json
says "2 of 2 results are there already"
check "the same result" cmp -s first out
rm o/results/prolip-0.json
want 0 "${own[@]}" --seeds 2 --out o --json
check "what is made again is the same" cmp -s first out
check "another seed is another model" \
    bash -c '[ "$(tail -n +4 o/results/prolip-0.json)" != "$(tail -n +4 o/results/prolip-1.json)" ]'

# the built-in shapes: nine classes of the test, learned from are the other pictures
want 0 reproduce prolip-occlusion --n 3600 --max-steps 1 --batch-size 8 --seeds 1 --out b -t 1 --json
says "of 1: 1800 samples"
check "nine classes" test "$(ls b/data/classes/train | wc -l)" -eq 9
check "of the test's pictures" python3 - <<'PY'
import json
assert json.load(open("out"))["data"] == "built-in shapes, 3600 scenes, 9 classes of it"
PY
finish
