#!/bin/bash
# classify: class folders, sets and binaries; templates, filters, re-weighting, none of the above,
# scalings, every file it writes, and what it refuses.
source "$(dirname "$0")/common/lib.sh"
make_small

# Three classes of pictures, named by folders, and strangers.
mkdir -p raw p/train p/test strangers
for shard in shapes/train/*.tar shapes/test/*.tar; do tar -xf "$shard" -C raw; done
i=0
for picture in raw/*.png; do
    class=$(printf '%s\n' 'red star' circle square | sed -n "$((i % 3 + 1))p")
    split=$([ $((i % 4)) -eq 0 ] && echo test || echo train)
    if [ "$i" -lt 24 ]; then
        mkdir -p "p/$split/$class"
        cp "$picture" "p/$split/$class/"
    else
        cp "$picture" strangers/
    fi
    i=$((i + 1))
done

want 0 classify -m model --images p --templates simple --predictions pred.jsonl \
    --confusion conf.csv --per-class classes.csv --save-clf clf.safetensors \
    --save-prompts prompts.safetensors --weights w.json --output out.json \
    --dump-classnames --dump-templates --list-prompts 2 --dataset shapes
prints "top-1 accuracy"
prints "least certain prompts"
check "the JSON result is CLIP_benchmark's" python3 -c '
import json, sys
r = json.load(open("out.json"))
m = r["metrics"]
assert r["dataset"] == "shapes" and r["task"] == "zeroshot_classification" and r["language"] == "en"
assert 0 <= m["acc1"] <= 1 and m["acc5"] is None and 0 <= m["mean_per_class_recall"] <= 1
assert r["classnames"] == ["circle", "red star", "square"] and len(r["templates"]) == 7
assert r["provenance"]["weights_sha256"] == r["pretrained"] and len(r["pretrained"]) == 64
assert r["prompts"]["n"] == 21 and len(r["prompts"]["most_certain_prompts"]) == 2
p = [json.loads(l) for l in open("pred.jsonl")]
assert len(p) == r["n_images"] == 6 and all(len(x["best"]) == 3 for x in p)
assert all(abs(sum(b["probability"] for b in x["best"]) - 1) < 1e-9 for x in p)
assert abs(sum(x["correct"] for x in p) / len(p) - m["acc1"]) < 1e-6
rows = [l.rstrip("\n").split(",") for l in open("conf.csv")]
assert rows[0] == ["label", "circle", "red star", "square"]
hits = sum(int(rows[i][i]) for i in (1, 2, 3)); n = sum(int(v) for q in rows[1:] for v in q[1:])
assert n == 6 and abs(hits / n - m["acc1"]) < 1e-6
w = json.load(open("w.json"))
assert [len(c["prompts"]) for c in w["classes"]] == [7, 7, 7]
assert w["classes"][1]["prompts"][0]["prompt"] == "itap of a red star."
'
# The saved classifier, the saved prompts and an embedded set say the same.
cp out.json first.json
same() {
    python3 -c '
import json
a, b = json.load(open("first.json")), json.load(open("out.json"))
for k, v in a["metrics"].items(): assert v == b["metrics"][k] or abs(v - b["metrics"][k]) < 1e-6, k'
}
want 0 classify -m model --images p --load-clfs clf.safetensors -o out.json
check "a loaded classifier gives the same figures" same
want 0 embed -m model --images p/test -o i.safetensors -q
want 0 classify --images i.safetensors --prompts prompts.safetensors -o out.json
check "sets give the same figures" same
want 0 classify --images i.safetensors --load-clfs clf.safetensors -o out.json --skip-existing
says "nothing to do"
python3 -c '
import json
for l in list(open("i.ids.jsonl")): r = json.loads(l); "class" in r and print(r["id"], r["class"], sep="\t")' >labels.tsv
check "rows carry their class" test "$(wc -l <labels.tsv)" -eq 6
want 0 classify --images i.safetensors --load-clfs clf.safetensors --labels labels.tsv -o out.json
check "a file of labels gives the same figures" same

# Weights.
for filter in 'class_std -0.5' 'top_k 1' 'global_top 4' 'global 0.001'; do
    want 0 classify --images i.safetensors --prompts prompts.safetensors \
        --prompt-filter "${filter% *}" --prompt-filter-value="${filter#* }"
done
want 0 classify --images i.safetensors --prompts prompts.safetensors --bprw --bprw-neighbours 2 \
    --weights w.json --weights-html w.html --json
prints '"weights": "bprw"'
check "weights of a class sum to 1" python3 -c '
import json
for c in json.load(open("w.json"))["classes"]: assert abs(sum(p["weight"] for p in c["prompts"]) - 1) < 1e-9'
check "the page has no outside resource" test "$(grep -cE '(src|href)="?(https?:)?//' w.html)" -eq 0
check "no broken number" test "$(grep -cE '="-?(nan|inf)' w.html)" -eq 0
want 0 classify -m model --images p --templates none --bprw-images p --shots 2 --bprw-released \
    --json
prints '"weights": "bprw, few-shot"'

# None of the above.
none=(classify -m model --images p --templates none --negatives strangers --json --none)
want 0 "${none[@]}" dummy --none-prompts 'a photo' 'something else'
prints '"fpr95"'
want 0 "${none[@]}" margin --none-reject 0.2
want 0 "${none[@]}" threshold --none-fpr 0.1 --val-negatives strangers
prints "fitted on the validation negatives"
want 0 "${none[@]}" score --none-threshold=-0.5
want 0 "${none[@]}" uncertainty --none-reject 0
want 1 "${none[@]}" margin
says "has no threshold of its own"
want 2 classify -m model --images p --none-reject 0.1
want 0 embed -m model --text 'a photo' 'something else' -o dummy.safetensors -q
want 0 "${none[@]}" dummy --none-prompts 'a photo' 'something else'
cp out by_prompts
want 0 classify --images i.safetensors --load-clfs clf.safetensors --none dummy \
    --none-set dummy.safetensors --json
want 0 "${none[@]}" dummy --none-set dummy.safetensors
check "a set of dummies gives the same figures" cmp -s out by_prompts
want 0 classify -m model --images strangers --classnames a,b --templates none --negatives p/test \
    --none score --none-reject 0.5 --json
prints '"positive_accuracy": null'
want 2 "${none[@]}" dummy --none-set dummy.safetensors --none-prompts 'a photo'

# Scalings. A label that is always the nearest or never is refused or smoothed, not infinite.
python3 -c '
import json
p = [json.loads(l) for l in open("pred.jsonl")]
for k, x in enumerate(p): print(x["id"], x["best"][0 if k % 3 else 1]["class"], sep="\t")' >val.tsv
want 0 classify --images i.safetensors --load-clfs clf.safetensors --val-images i.safetensors \
    --val-labels val.tsv --fit-temperature --fit-platt --save-scaling s.json --predictions q.jsonl
prints "temperature"
check "p of each class" grep -q '"p_class"' q.jsonl
want 0 classify --images i.safetensors --load-clfs clf.safetensors --load-scaling s.json --json
prints '"temperature"'
want 1 classify --images i.safetensors --load-clfs clf.safetensors --load-scaling s.json \
    --measure mean
says "fitted on scores of csd"
want 2 classify --images i.safetensors --load-clfs clf.safetensors --fit-temperature
says "--val-images"

# Binaries: a CIFAR-10 folder.
mkdir cifar
python3 -c '
import sys
sys.stdout.buffer.write(b"".join(bytes([i % 3]) + bytes((7 * i + j) % 256 for j in range(3072)) for i in range(6)))' >cifar/test_batch.bin
printf 'airplane\nautomobile\nbird\n' >cifar/batches.meta.txt
want 0 classify -m model --images cifar --templates none --json
prints '"n_images": 6'
want 1 classify -m model --images cifar --split train
says "it has test"

# Refused, or answered with a warning.
want 1 classify -m model --images p --classnames circle,square
says "which is none of the class names"
want 0 classify -m model --images p --classnames 'circle,red_star,square,circular' --templates none
prints "classes without a picture"
want 1 classify -m model --images p --classnames 'circle,red star,square,circle' --templates none
says "are both called"
says "two classes share"
want 0 classify -m model --images strangers --classnames one --templates none --none dummy
prints "no picture has a label"
want 1 classify -m model --images strangers --classnames one --confusion c.csv --templates none
says "give --labels"
check "nothing is left behind" test ! -e c.csv
want 1 classify -m model --images strangers
says "give --classnames"
printf 'a photo\n' >bad.txt
want 1 classify -m model --images p --templates bad.txt
says "{} or {c}"
: >empty.txt
want 1 classify -m model --images p --templates empty.txt
says "holds no template"
want 2 classify --images p
says "--model is missing"
printf 'nowhere\tcircle\n' >bad.tsv
want 1 classify --images i.safetensors --load-clfs clf.safetensors --labels bad.tsv
says 'no picture has the id "nowhere"'
sed 's/\t.*/\t7/' labels.tsv >bad.tsv
want 1 classify --images i.safetensors --load-clfs clf.safetensors --labels bad.tsv
says "has label 7; there are 3 classes"
want 0 embed -m model --text 'a star' 'a ring' -o t.safetensors -q
want 1 classify --images i.safetensors --prompts t.safetensors
says 'does not say its "class"'
want 1 classify --images t.safetensors --load-clfs clf.safetensors --labels labels.tsv
want 2 classify --images i.safetensors --load-clfs clf.safetensors --templates simple
want 2 classify --images i.safetensors --prompts prompts.safetensors --prompt-filter top_k
printf 'not a picture' >strangers/broken.png
want 3 classify -m model --images strangers --classnames a,b --templates none
says "broken.png"
finish
