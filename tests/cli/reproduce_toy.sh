#!/bin/bash
# reproduce: PCME's toy, nine classes in two dimensions, with a few steps.
source "$(dirname "$0")/common/lib.sh"

# classes of a folder that somebody has
want 0 data shapes --out shapes --n 60 --val-share 0 --test-share 0 -q
mkdir -p pictures own/test && tar -xf shapes/train/*.tar -C pictures
i=0
for picture in pictures/*.png; do
    folder=own/train/class$((i % 10))
    mkdir -p $folder
    cp "$picture" $folder/$i.png && echo "a picture of class$((i % 10))" >$folder/$i.txt
    i=$((i + 1))
done
toy=(reproduce pcme-toy --data own --max-steps 2 -t 1)
want 0 "${toy[@]}" --seeds 2 --out toy --json
cp out first
check "nine of the ten classes, five pictures of six to learn from" test \
    "$(find toy/data/classes/train -name '*.png' | wc -l) $(ls toy/data/classes/test | wc -l)" = "45 9"
check "areas of pictures, captions and the caption of unknown words" python3 - <<'PY'
import json, math
r = json.load(open("first"))
assert r["data"] == "own, 9 classes of it", r["data"]
ours = {(f["row"], f["figure"]): f["value"] for f in r["figures"] if f["source"] == "here"}
assert all(ours[row, "area"] > 0 for row in ("images", "texts", "generic")), ours
assert ("generic", "r1") not in ours and ("level_0", "area") not in ours, ours  # no levels there
found = json.load(open("toy/results/toy-0.json"))
assert len(found["images"]) == 9 and len({row[0] for row in found["images"]}) == 9, found["images"]
areas = [2 * math.pi * math.log(2) * math.sqrt(row[3] * row[4]) for row in found["texts"]]
mean = sum(areas) / len(areas)
assert abs(mean - found["values"]["texts"]["area"]) < 1e-5 * mean, (mean, found["values"])
PY
check "ellipses of every picture and caption, and the generic one on both sides" \
    test "$(grep -oE '<ellipse|class="(area|ring|gaussian)[^"]*"' toy/index.html | wc -l)" -ge 20
want 0 "${toy[@]}" --seeds 2 --out toy --json
says "2 of 2 results are there already"
check "the same result" cmp -s first out
check "another seed is another model" \
    bash -c '[ "$(tail -n +3 toy/results/toy-0.json)" != "$(tail -n +3 toy/results/toy-1.json)" ]'
rm -r own/train/class1 own/train/class2
want 1 reproduce pcme-toy --data own --max-steps 2 --out fewer
says "9 classes with 6 pictures each are wanted, and there are 8"
finish
