#!/bin/bash
# classify: figures that count classes and groups alike, and pictures that are erased or attacked.
source "$(dirname "$0")/common/lib.sh"
make_small
mkdir -p raw
for shard in shapes/*/*.tar; do tar -xf "$shard" -C raw; done
i=0
for picture in raw/*.png; do
    class=$(printf '%s\n' star circle square | sed -n "$((i % 3 + 1))p")
    mkdir -p "p/test/$class"
    [ "$i" -lt 18 ] && cp "$picture" "p/test/$class/"
    i=$((i + 1))
done
want 0 embed -m model --images p/test -o i.safetensors -q
python3 - <<'PY'
import json
rows = [json.loads(l) for l in open("i.ids.jsonl")]
with open("groups.tsv", "w") as f:
    f.write("# id, tab, group\n\n")
    for i, r in enumerate(rows[:-1]):  # the last one has none
        f.write(f"{r['id']}\t{'north' if i % 5 else 'the south'}\n")
for i, r in enumerate(rows):
    r["half"] = "ab"[i % 2]
open("i.ids.jsonl", "w").write("".join(json.dumps(r) + "\n" for r in rows))
PY

# ---- classes and groups ---- again from the predictions
want 0 classify -m model --images p --templates none --groups groups.tsv --predictions p.jsonl \
    --per-class c.csv --csv t.csv --save-clf clf.safetensors -o out.json
prints "accuracy of the worst group"
prints "mean F1 of a class"
check "figures are those of the predictions" python3 -c '
import csv, json
r = json.load(open("out.json")); m = r["metrics"]
p = [json.loads(l) for l in open("p.jsonl")]
group = dict(l.rstrip("\n").split("\t") for l in open("groups.tsv") if "\t" in l)
classes = sorted({x["label"] for x in p}); f1 = {}
for c in classes:
    tp = sum(x["label"] == c == x["best"][0]["class"] for x in p)
    f1[c] = 2 * tp / (sum(x["label"] == c for x in p) + sum(x["best"][0]["class"] == c for x in p))
assert abs(m["macro_f1"] - sum(f1.values()) / 3) < 1e-6 and m["macro_f1_low"] <= m["macro_f1"] <= m["macro_f1_high"]
for row in csv.DictReader(open("c.csv")): assert abs(float(row["f1"]) - f1[row["class"]]) < 1e-6, row
by = {}
for x in p:
    if x["id"] in group: by.setdefault(group[x["id"]], []).append(x["correct"])
acc = {g: sum(v) / len(v) for g, v in by.items()}
worst = min(acc, key=acc.get)
assert m["worst_group"] == worst and abs(m["worst_group_acc1"] - acc[worst]) < 1e-6, (m, acc)
assert abs(m["mean_group_acc1"] - sum(acc.values()) / 2) < 1e-6 and m["n_without_group"] == 1
assert [(g["group"], g["n"]) for g in r["groups"]] == [("north", 13), ("the south", 4)], r["groups"]
assert "worst_group_acc5" not in m  # three classes
line = next(csv.DictReader(open("t.csv")))
assert abs(float(line["macro_f1"]) - m["macro_f1"]) < 1e-6 and abs(float(line["worst_group_acc1"]) - acc[worst]) < 1e-6
'
want 0 classify --images i.safetensors --load-clfs clf.safetensors --group-key half --json
prints '"worst_group"'
want 1 classify --images i.safetensors --load-clfs clf.safetensors --group-key nothing
says 'no picture has the field "nothing"'
want 2 classify --images i.safetensors --load-clfs clf.safetensors --group-key half --groups groups.tsv
printf 'nobody\tnorth\n' >bad.tsv
want 1 classify --images i.safetensors --load-clfs clf.safetensors --groups bad.tsv
says 'line 1: no picture has the id "nobody"'
head -3 groups.tsv | tail -1 >twice.tsv
cat twice.tsv twice.tsv >bad.tsv
want 1 classify --images i.safetensors --load-clfs clf.safetensors --groups bad.tsv
says "has a group already"
printf 'no tab\n' >bad.tsv
want 1 classify --images i.safetensors --load-clfs clf.safetensors --groups bad.tsv
says "is not id, tab, group"
want 1 classify --images i.safetensors --load-clfs clf.safetensors --groups nowhere.tsv
says "--groups"
mkdir loose
cp raw/0000001.png loose/ 2>/dev/null || cp "$(ls raw/*.png | head -1)" loose/
want 1 classify -m model --images loose/*.png --load-clfs clf.safetensors --groups groups.tsv
says "accuracy by group needs them"

# ---- changed pictures ----
changed=(classify -m model --images p --load-clfs clf.safetensors --json -q)
want 0 "${changed[@]}" --occlusion 0 0.1 1 --attack-steps 1 4 --attack-eps 16 --attack-step 4
cp out first.json
check "what is not changed is as it was, and the attack raises the loss" python3 -c '
import json
r = json.load(open("first.json")); o, a = r["occlusion"], r["attack"]
m = r["metrics"]
assert [x["share"] for x in o] == [0, 0.1, 1] and [x["steps"] for x in a] == [0, 1, 4]
assert r["n_changed"] == 18 and abs(o[0]["acc1"] - m["acc1"]) < 1e-9 and abs(o[0]["nll"] - m["nll"]) < 1e-4
assert abs(a[0]["nll"] - o[0]["nll"]) < 1e-5 and a[0]["change"] == 0 and a[0]["noise_nll"] == a[0]["nll"]
assert abs(o[2]["acc1"] - 1 / 3) < 1e-9  # all pictures are one
assert a[2]["nll"] > a[1]["nll"] > a[0]["nll"], a
assert a[2]["nll"] - a[0]["nll"] > 10 * abs(a[2]["noise_nll"] - a[0]["nll"]), a
assert 0 < a[1]["change"] < a[2]["change"] <= 16
assert all("acc1_means" in x and x["acc1_low"] <= x["acc1"] <= x["acc1_high"] for x in o + a)'
want 0 "${changed[@]}" --occlusion 0 0.1 1 --attack-steps 1 4 --attack-eps 16 --attack-step 4
check "the same numbers again" cmp -s first.json out
want 0 "${changed[@]}" --attack-steps 4 --attack-eps 16 --attack-step 4
check "four steps are four steps whatever is looked at before" python3 -c '
import json
assert json.load(open("out"))["attack"][1] == json.load(open("first.json"))["attack"][2]'
want 0 "${changed[@]}" --attack-steps 2 --attack-eps 16 --changed-limit 5 --seed 4
check "a limit" python3 -c '
import json
r = json.load(open("out")); assert r["n_changed"] == 5 and "occlusion" not in r, r'
want 0 "${changed[@]}" --measure mean --occlusion 0.2
check "by means there is no second accuracy" python3 -c '
import json
assert "acc1_means" not in json.load(open("out"))["occlusion"][0]'
# a picture that cannot be read shifts no label
printf 'broken' >p/test/circle/0000.png
want 3 "${changed[@]}" --occlusion 0 0.1
check "labels stay with their pictures" python3 -c '
import json
o, want = json.load(open("out"))["occlusion"], json.load(open("first.json"))["occlusion"]
assert o[0]["acc1"] == want[0]["acc1"] and abs(o[1]["nll"] - want[1]["nll"]) < 1e-4, (o, want)'
rm p/test/circle/0000.png
want 2 "${changed[@]}" --occlusion 0.2 0.1
says "must ascend"
want 2 "${changed[@]}" --occlusion 2
says "from 0 to 1"
want 2 "${changed[@]}" --attack-steps 0
says "a whole number from 1"
want 2 "${changed[@]}" --attack-steps 3 2
want 2 "${changed[@]}" --attack-eps 3
says "need --attack-steps"
want 2 "${changed[@]}" --changed-limit 3
want 1 classify --images i.safetensors --load-clfs clf.safetensors --occlusion 0.1
says "is an embedding set"
want 1 classify -m model --images loose/*.png --load-clfs clf.safetensors --occlusion 0.1
says "no picture has a label"
want 0 quantize -m model --out small --images p/test --texts shapes/test/captions.jsonl --min-cosine 0 --min-rank 0 --min-top1 0 -q
want 1 classify -m small --images p --templates none --attack-steps 1
says "gradients need them as they were trained"
finish
