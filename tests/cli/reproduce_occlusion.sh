#!/bin/bash
# reproduce: ProLIP's Tables C.8 and C.9, covered and attacked pictures, with a few steps; and C.6, costs.
source "$(dirname "$0")/common/lib.sh"

# a folder that somebody has: the classes of the test are its folders
want 0 data shapes --out shapes --n 54 --val-share 0 --test-share 0 -q
mkdir -p pictures own/train && tar -xf shapes/train/*.tar -C pictures
i=0
for picture in pictures/*.png; do
    folder=own/test/class$((i % 3))
    [ $i -lt 48 ] && folder=own/train
    mkdir -p $folder
    cp "$picture" $folder/$i.png && echo "a picture of class$((i % 3))" >$folder/$i.txt
    i=$((i + 1))
done
own=(reproduce prolip-occlusion --data own --max-steps 2 --batch-size 8 -t 1)
want 0 "${own[@]}" --seeds 2 --out o --json
cp out first
check "shares and attacks beside the paper's" python3 - <<'PY'
import json
r = json.load(open("first"))
paper = {(f["row"], f["figure"]): f["value"] for f in r["figures"] if f["source"] == "paper"}
assert paper["share_25", "top1"] == 74.1 and paper["share_100", "sigma"] == 0.0153, paper
ours = {(f["row"], f["figure"]): f["value"] for f in r["figures"] if f["source"] == "here"}
assert paper["pgd_40", "top1"] == 2.5 and paper["pgd_0", "sigma"] == 0.0147, paper
assert len(ours) == 42 and len({row for row, _ in ours}) == 14, ours
assert ours["pgd_40", "nll"] > ours["pgd_1", "nll"] > ours["pgd_0", "nll"], ours  # it climbs, noise does not
assert ours["pgd_40", "nll"] > ours["noise_40", "nll"], ours
assert len({ours["share_%d" % s, "nll"] for s in (0, 50, 100)}) == 3, ours  # pictures do change
PY
model=$(echo o/runs/prolip-1.*/checkpoints/latest)
want 0 classify --model "$model" --images own/test --templates openai --occlusion 0 0.025 0.05 0.075 0.1 \
    --attack-steps 1 5 10 40 -t 1 --json -q
check "the figures of classify" python3 - <<'PY'
import json
points = json.load(open("out"))["occlusion"]
values = json.load(open("o/results/prolip-1.json"))["values"]
for p, key in zip(points, ("share_0", "share_25", "share_50", "share_75", "share_100")):
    assert abs(100 * p["acc1"] - values[key]["top1"]) < 0.01, (p, values[key])
    assert abs(p["nll"] - values[key]["nll"]) < 1e-3, (p, values[key])
    assert abs((p["uncertainty"] / 128) ** 0.5 - values[key]["sigma"]) < 1e-4, (p, values[key])
PY
check "and of its attack" python3 - <<'PY'
import json
found = json.load(open("out"))
values = json.load(open("o/results/prolip-1.json"))["values"]
for p, n in zip(found["attack"], (0, 1, 5, 10, 40)):
    for which, key in (("", "pgd_%d" % n), ("noise_", "noise_%d" % n)):
        if key == "noise_0":
            continue
        assert abs(100 * p[which + "acc1"] - values[key]["top1"]) < 0.01, (key, p, values[key])
        assert abs(p[which + "nll"] - values[key]["nll"]) < 1e-3, (key, p, values[key])
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
want 0 reproduce prolip-occlusion --n 3000 --max-steps 1 --batch-size 8 --seeds 1 --out b -t 1 --json
says "of 1: 1500 samples"
check "nine classes" test "$(ls b/data/classes/train | wc -l)" -eq 9
check "of the test's pictures" python3 - <<'PY'
import json
assert json.load(open("out"))["data"] == "built-in shapes, 3000 scenes, 9 classes of it"
PY

# what each kind of uncertainty costs, of the smallest size: nothing is learned
want 0 reproduce prolip-architectures --towers 1 --seeds 2 -b 2 --out c -t 1 --json
check "the costs of three kinds" python3 - <<'PY'
import json
r = json.load(open("out"))
ours = {(f["row"], f["figure"]): f["value"] for f in r["figures"] if f["source"] == "here"}
assert {row for row, _ in ours} == {"tiny_heads", "tiny_unc", "tiny_points"}, ours
assert ours["tiny_unc", "tokens"] == 36 and all(v > 0 for v in ours.values()), ours
# patches 24576, [CLS] 128, positions 37 x 128, norms 2 x 256, three blocks of 198272, projection 128 x 128
assert abs(ours["tiny_points", "params"] - 0.641152) < 1e-6, ours
# [UNC]: a token of width 128, its projection 128 x 128 with a bias; a position more
unc = (128 + 128 * 128 + 128 + 128) / 1e6
assert abs(ours["tiny_unc", "more"] - unc) < 0.02, (ours, unc)
assert ours["tiny_heads", "more"] > 10 * ours["tiny_unc", "more"], ours
paper = {(f["row"], f["figure"]): f["value"] for f in r["figures"] if f["source"] == "paper"}
assert paper["l14_unc", "seconds"] == 177.82 and paper["b16_heads", "more"] == 20.7, paper
PY
# times of another number of threads, or of other batches, are other figures
want 1 reproduce prolip-architectures --towers 1 --seeds 3 -b 2 --out c -t 2
says "its --threads is 1, not 2"
want 1 reproduce prolip-architectures --towers 1 --seeds 2 -b 3 --out c -t 1
says "its --batch-size is 2, not 3"
want 1 reproduce prolip-architectures --towers 1 --seeds 2 -b 2 --out c -t 1 --device ref
says "its --device is \"cpu\", not \"ref\""
want 2 reproduce prolip-architectures --towers 7 --out c
want 2 reproduce prolip-architectures --data own --out c
finish
