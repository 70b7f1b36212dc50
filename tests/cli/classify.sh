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
assert m["resampling"] == {"unit": "picture", "key": None, "n_clusters": 6}, m["resampling"]
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
# Probabilities are the softmax of the scores times the model's own scale.
want 0 info model --json
cp out info.json
check "the model's scale is used" python3 -c '
import json, math
scale = json.load(open("info.json"))["logit_scale"]
assert scale != 100 and abs(json.load(open("out.json"))["scale"] - scale) < 1e-6
for best in (json.loads(l)["best"] for l in open("pred.jsonl")):
    total = sum(math.exp(scale * b["score"]) for b in best)
    for b in best: assert abs(math.exp(scale * b["score"]) / total - b["probability"]) < 1e-6, best
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
name='r_{dataset}_{task}_{language}.json'
want 0 classify --images i.safetensors --load-clfs clf.safetensors --dataset a/b -o "$name"
check "words in the name" test -s r_a_b_zeroshot_classification_en.json
want 0 classify --images i.safetensors --load-clfs clf.safetensors --dataset a/b -o "$name" \
    --skip-existing
says "r_a_b_zeroshot_classification_en.json exists: nothing to do"
check "nothing is printed" test ! -s out
want 1 classify --images i.safetensors --load-clfs clf.safetensors -o '{datset}.json'
says "{datset} is unknown"
python3 -c '
import json
for l in list(open("i.ids.jsonl")): r = json.loads(l); "class" in r and print(r["id"], r["class"], sep="\t")' >labels.tsv
check "rows carry their class" test "$(wc -l <labels.tsv)" -eq 6
want 0 classify --images i.safetensors --load-clfs clf.safetensors --labels labels.tsv -o out.json
check "a file of labels gives the same figures" same

# A label that is a class's name is the name, also where it looks like a number.
sed 's/\tcircle$/\t2/; s/\tred star$/\t7/; s/\tsquare$/\t1/' labels.tsv >digits.tsv
want 0 classify -m model --images p --classnames 2,7,1 --templates none --labels digits.tsv \
    --confusion digits.csv
check "every class has its two pictures" python3 -c '
rows = [l.split(",") for l in open("digits.csv").read().split()][1:]
assert [r[0] for r in rows] == ["2", "7", "1"] and all(sum(map(int, r[1:])) == 2 for r in rows)'

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
# Weights serve again: the same figures from the file, whatever the order of its classes.
want 0 classify --images i.safetensors --prompts prompts.safetensors --bprw --bprw-neighbours 2 \
    -o first.json --save-clf once.safetensors
want 0 classify --images i.safetensors --prompts prompts.safetensors --load-weights w.json \
    -o out.json --save-clf again.safetensors --weights w2.json
check "loaded weights give the same figures" same
check "and the same classifier" cmp -s once.safetensors again.safetensors
check "and are written as they were read" cmp -s w.json w2.json
python3 -c '
import json
w = json.load(open("w.json")); w["classes"].reverse(); json.dump(w, open("w3.json", "w"))
w["classes"][0]["prompts"][1]["prompt"] = "other"; json.dump(w, open("w4.json", "w"))
w = json.load(open("w.json")); w["classes"][1]["prompts"][0]["weight"] += 0.5
json.dump(w, open("w5.json", "w"))
w = json.load(open("w.json")); w["classes"][1]["class"] = "blob"; json.dump(w, open("w6.json", "w"))
w = json.load(open("w.json")); w["variance"] = "cubed"; json.dump(w, open("w7.json", "w"))
w = json.load(open("w.json")); w["classes"] = []; json.dump(w, open("w8.json", "w"))'
load=(classify --images i.safetensors --prompts prompts.safetensors -o out.json --load-weights)
want 0 "${load[@]}" w3.json
check "classes are found by name" same
want 1 "${load[@]}" w4.json
says 'prompt 1 is "other"'
want 1 "${load[@]}" w5.json
says "sum to 1.5"
want 1 "${load[@]}" w6.json
says 'no weights for class "red star"'
want 1 "${load[@]}" w7.json
says "mean or squared"
want 1 "${load[@]}" w8.json
says "no list of classes"
cp out.json result.json && want 1 "${load[@]}" result.json
says "no file of prompts' weights"
want 2 "${load[@]}" w.json --bprw
says "one of them is wanted"
cp first.json bprw.json
want 0 classify --images i.safetensors --prompts prompts.safetensors -o first.json

check "the page has no outside resource" test "$(grep -cE '(src|href)="?(https?:)?//' w.html)" -eq 0
check "no broken number" test "$(grep -cE '="-?(nan|inf)' w.html)" -eq 0
want 0 classify -m model --images p --templates none --bprw-images p --shots 2 --bprw-released \
    --json
prints '"weights": "bprw, few-shot"'

# The interval of the accuracy is of resamples drawn from --seed; the accuracy is not.
want 0 embed -m model --images p/train -o v.safetensors -q
for seed in 1 1 2 3; do
    want 0 classify --images v.safetensors --load-clfs clf.safetensors --seed $seed --json
    grep '"acc1_low"\|"acc1_high"' out | sha256sum >>intervals
    grep '"acc1":' out >>accuracies
done
check "the same seed" test "$(head -2 intervals | sort -u | wc -l)" -eq 1
check "other seeds" test "$(sort -u intervals | wc -l)" -gt 1
check "one accuracy" test "$(sort -u accuracies | wc -l)" -eq 1

# None of the above.
none=(classify -m model --images p --templates none --negatives strangers --json --none)
want 0 "${none[@]}" dummy --none-prompts 'a photo' 'something else'
prints '"fpr95"'
want 0 "${none[@]}" margin --none-reject 0.2
want 0 "${none[@]}" threshold --none-fpr 0.1 --val-negatives strangers
prints "fitted on the validation negatives"
want 0 "${none[@]}" score --none-threshold=-0.5 --predictions ood.jsonl
check "none is a score above the threshold" python3 - <<'PY'
import json
rows = [json.loads(line) for line in open("ood.jsonl")]
assert rows and all(r["none"] == (r["ood_score"] > -0.5) for r in rows), rows[:3]
assert len({r["ood_score"] for r in rows}) > 3, rows[:3]
PY
want 0 "${none[@]}" uncertainty --none-reject 0
# With validation pictures the threshold is theirs, not that of the pictures that are judged.
threshold() { # FILE OPTIONS...
    want 0 "${none[@]}" score --none-reject 0.3 "${@:2}"
    grep '"threshold":' out >"$1"
}
threshold of_test
threshold of_train --split train
threshold on_train --val-images v.safetensors
check "the validation pictures' own" cmp -s of_train on_train
check "and another than the others'" test "$(cmp -s of_test on_train; echo $?)" -eq 1
# A fitted threshold, as the result has it, can be given back.
for fit in 'reject 0.3' 'fpr 0.3'; do
    for rule in score threshold uncertainty; do
        want 0 "${none[@]}" $rule "--none-${fit% *}" "${fit#* }" -o fitted.json
        t=$(python3 -c 'import json; print(json.load(open("fitted.json"))["none_of_above"]["threshold"])')
        want 0 "${none[@]}" $rule "--none-threshold=$t" -o given.json
        check "$rule, $fit: $t means the same" python3 -c '
import json
a, b = (json.load(open(n + ".json"))["none_of_above"] for n in ("fitted", "given"))
assert a.pop("threshold_source") != b.pop("threshold_source") and a == b
assert a["positive_rejected"] <= 0.3 if "'"${fit% *}"'" == "reject" else a["negative_accuracy"] >= 0.7'
    done
done
want 2 "${none[@]}" margin
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

# Tables of the result, for programs and for papers.
want 0 "${none[@]}" dummy --csv t.csv --markdown t.md --dataset 'a "b", c|d' -o out.json
check "csv and Markdown hold the figures" python3 -c '
import csv, json
r, (row,) = json.load(open("out.json")), list(csv.DictReader(open("t.csv")))
for k in ("acc1", "mean_per_class_recall", "ece"): assert abs(float(row[k]) - r["metrics"][k]) < 1e-6, k
assert row["acc5"] == "" and r["metrics"]["acc5"] is None
for k in ("dataset", "model", "pretrained", "task", "language"): assert row[k] == r[k], k
assert row["model_fullname"] == r["model"] + " " + r["pretrained"] and row["none"] == "dummy"
assert abs(float(row["auroc_nota"]) - r["uncertainty"]["auroc_nota"]) < 1e-6
assert r["uncertainty"]["auroc_nota"] == r["none_of_above"]["auroc"]
assert r["uncertainty"]["nlpd"] == r["metrics"]["nll"] and len(r["uncertainty"]["bins"]) > 0
md = open("t.md").read().split("\n")
assert md[0].count("|") == md[1].count("|") == md[2].count("|") - 1 and "c\\|d" in md[2]
assert "%.4f [" % r["metrics"]["acc1"] in md[2] and "top-5" not in md[0]'

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
says "fitted for the measure csd"
# a scaling of other pictures, and one that does not say what it is of
want 1 classify --images clf.safetensors --load-clfs clf.safetensors --load-scaling s.json
says "was fitted on image pictures, these are text"
python3 -c '
import json
s = json.load(open("s.json"))
assert s["picture_origin"]["modality"] == "image" and s["class_origin"]["modality"] == "text"
assert len(s["class_origin"]["weights_sha256"]) == 64 and s["measure_options"]["n_samples"] == 7
for key in ("picture_origin", "class_origin", "measure_options"): del s[key]
json.dump({**s, "version": 1}, open("old.json", "w"))'
want 1 classify --images i.safetensors --load-clfs clf.safetensors --load-scaling old.json
says "--trust-scaling"
want 0 classify --images i.safetensors --load-clfs clf.safetensors --load-scaling old.json \
    --trust-scaling --json
says "on your word"
prints '"platt_ece"'
want 2 classify --images i.safetensors --load-clfs clf.safetensors --trust-scaling
want 2 classify --images i.safetensors --load-clfs clf.safetensors --fit-temperature
says "--val-images"

want 0 classify --images i.safetensors --load-clfs clf.safetensors --load-scaling s.json --json
prints '"platt_ece"'
want 2 classify --images i.safetensors --load-clfs clf.safetensors --load-scaling s.json --scale 3
says "brings a temperature"

# Sets on the sphere are judged by their likelihood, points have no uncertainty of their own.
python3 - <<'END'
import json, struct
def save(name, family, rows, kappa, extra):
    flat = [x for r in rows for x in r]
    parts = {"mean": (flat, [len(rows), len(rows[0])])}
    if kappa: parts["kappa"] = (kappa, [len(rows)])
    head, data = {"__metadata__": {"format": "penumbra-embeddings", "version": "1",
                                   "family": family}}, b""
    for k, (v, shape) in parts.items():
        raw = struct.pack("<%df" % len(v), *v)
        head[k] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    h = json.dumps(head).encode()
    open(name + ".safetensors", "wb").write(struct.pack("<Q", len(h)) + h + data)
    with open(name + ".ids.jsonl", "w") as f:
        for i, e in enumerate(extra): f.write(json.dumps({"id": str(i), **e}) + "\n")
axis = [[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]]
save("points", "point", axis + [[0.6, 0.8, 0]], None, [{"class": c} for c in "abcb"])
save("sphere", "vmf", axis, [5.0, 50.0, 20.0], [{"class": c, "label": i} for i, c in enumerate("abc")])
END
want 0 classify --images points.safetensors --prompts sphere.safetensors --json
prints '"measure": "vmf"'
prints '"acc1": 0.75' # the fourth picture lies nearer to b, but a is wide
want 0 classify --images points.safetensors --prompts sphere.safetensors --measure mean --json
prints '"acc1": 1.0'
want 1 classify --images points.safetensors --prompts sphere.safetensors --measure csd
says "vmf"
want 1 classify --images points.safetensors --prompts sphere.safetensors --bprw
says "lie on the sphere"

# Binaries: a CIFAR-10 folder.
mkdir cifar
python3 -c '
import sys
sys.stdout.buffer.write(b"".join(bytes([i % 3]) + bytes((7 * i + j) % 256 for j in range(3072)) for i in range(6)))' >cifar/test_batch.bin
printf 'airplane\nautomobile\nbird\n' >cifar/batches.meta.txt
want 0 classify -m model --images cifar --templates none --json
prints '"n_images": 6'
cp cifar/test_batch.bin cifar/data_batch_1.bin
for i in 2 3 4 5; do cp cifar/test_batch.bin cifar/data_batch_$i.bin; done
want 0 classify -m model --images cifar --split train --templates none --predictions cifar.jsonl
check "pictures of several files have ids of their own" \
    test "$(cut -d, -f1 cifar.jsonl | sort -u | wc -l)" -eq 30
rm cifar/data_batch_*
want 1 classify -m model --images cifar --split train
says "it has test"

# An embedded set keeps the order of the classes it was made from.
printf 'zebra\nant\nzebra\n' >cifar/batches.meta.txt
want 0 classify -m model --images cifar --templates none --confusion direct.csv
want 0 embed -m model --images cifar/test_batch.bin -o cifar.safetensors -q
want 0 classify -m model --images cifar.safetensors --templates none --confusion by_set.csv
check "classes by their numbers, two of one name too" cmp -s direct.csv by_set.csv
check "in the file's order" grep -q '^label,zebra,ant,zebra$' by_set.csv

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

# Said before anything is embedded: missing files, folders that are not there, one file for two.
sets=(classify --images i.safetensors --prompts prompts.safetensors)
want 1 "${sets[@]}" --labels nowhere.tsv
says "(--labels)"
want 1 "${sets[@]}" --predictions nowhere/p.jsonl
says "there is no folder nowhere"
want 1 "${sets[@]}" --csv p
says "is a folder"
want 2 "${sets[@]}" --confusion same.csv --per-class same.csv
says "would write the same file"
want 0 "${sets[@]}" --predictions /dev/stdout

# Options that nothing would use are refused.
refused() {
    want 2 "${sets[@]}" "${@:2}"
    says "$1"
}
refused "needs --prompt-filter-value" --prompt-filter top_k
refused "needs --prompt-filter" --prompt-filter-value 3
refused "one of them is wanted" --prompt-filter top_k --prompt-filter-value 3 --bprw
refused "needs --bprw" --bprw-alpha 3
refused "needs --bprw" --bprw-neighbours 3
refused "need --bprw-images" --bprw --shots 3
refused "need --bprw-images" --bprw --bprw-labels labels.tsv
refused "said by --shots" --bprw-images i.safetensors --bprw-neighbours 3
refused "RULE is missing" --negatives i.safetensors
refused "RULE is missing" --none-reject 0.1
refused "not to --none score" --none score --none-threshold 1 --none-prompts x
refused "has no threshold of its own" --none score
refused "needs --val-negatives" --none score --none-fpr 0.1
refused "what --none-fpr fits" --none score --none-reject 0.1 --val-negatives i.safetensors
refused "are two sources" --fit-temperature --val-images i.safetensors --scale 3
refused "none of them is asked for" --val-images i.safetensors
refused "needs --val-images" --val-labels labels.tsv
refused "needs --output" --skip-existing
want 2 classify --images i.safetensors --load-clfs clf.safetensors --weights w9.json
says "no prompts to weigh, list or save"
check "nothing was written" test ! -e w9.json

# Several classifiers are averaged: two halves of the prompts are as good as all of them.
for half in 0 1; do
    printf '%s\n' 'a {}' 'the {}' 'one {}' 'my {}' | sed -n "$((2 * half + 1)),$((2 * half + 2))p" >t$half.txt
    want 0 classify -m model --images p --templates t$half.txt --save-clf half$half.safetensors
done
cat t0.txt t1.txt >t.txt
want 0 classify -m model --images p --templates t.txt --per-class whole.csv
want 0 classify --images i.safetensors --load-clfs half0.safetensors half1.safetensors \
    --per-class halves.csv
check "the same classes" python3 -c '
a, b = ([l.split(",") for l in open(n + ".csv").read().split("\n")[1:-1]] for n in ("whole", "halves"))
assert len(a) == 3 and all(x[1:5] == y[1:5] for x, y in zip(a, b))
assert all(abs(float(x[8]) - float(y[8])) < 1e-5 * float(y[8]) for x, y in zip(a, b))'
want 0 classify -m model --images p --classnames 'circle,square,red star' --templates none \
    --save-clf turned.safetensors
want 1 classify --images i.safetensors --load-clfs half0.safetensors turned.safetensors
says 'class 1 is "square", in the first one "red star"'
want 1 classify --images i.safetensors --load-clfs half0.safetensors nowhere.safetensors
says "(--load-clfs)"

# A set of prompts knows its templates.
want 0 "${sets[@]}" --list-prompts 1 --dump-templates --weights-html t.html -o t.json
check "templates come with the set" python3 -c '
import json
r = json.load(open("t.json"))
assert len(r["templates"]) == 7 and r["templates"][0] == "itap of a {}."
assert len(r["prompts"]["templates_by_uncertainty"]) == 7'
check "and are drawn" grep -q "mean weight of each template" t.html
want 1 "${sets[@]}" --prompt-filter top_k --prompt-filter-value 2.5
says "a number of prompts"
want 2 "${sets[@]}" --none dummy
says "--none-set"

# A class's variance is that of its weighted mean, or the mean of the variances.
traces() {
    want 0 "${sets[@]}" --per-class v.csv "$@"
    cut -d, -f9 v.csv >"v.$2"
}
traces --class-variance mean
traces --class-variance squared
check "equal weights of 7 prompts divide it by 7" python3 -c '
a, b = (list(map(float, open("v." + n).read().split()[1:])) for n in ("mean", "squared"))
assert len(a) == 3 and all(abs(x / y - 7) < 1e-4 for x, y in zip(a, b))'

# Few-shot by an embedding set whose labels are in a file.
want 0 "${sets[@]}" --bprw-images i.safetensors --bprw-labels labels.tsv --shots 1 --json
prints '"weights": "bprw, few-shot"'
says "the figures will flatter"

# Counts without labels: the other files are there all the same.
want 1 classify -m model --images strangers --classnames a,b --templates none \
    --predictions late.jsonl --confusion late.csv
says "give --labels"
check "predictions are written" test -s late.jsonl
check "no matrix" test ! -e late.csv

# A folder of splits without the one that is asked for is no set of classes "train" and "val".
mkdir -p splits/val/a splits/train/a
cp p/test/*/*.png splits/val/a
want 1 classify -m model --images splits
says "it has train, val"
want 0 classify -m model --images splits --split val --templates none

# Without labels the answer is the classes: files, globs, folders, paths on standard input.
mkdir loose
cp p/test/*/*.png loose 2>/dev/null
n_loose=$(find loose -name '*.png' | wc -l)
zero=(classify -m model --classnames 'cat,black dog' --templates none)
answers() {
    check "$1: every picture with its classes" python3 -c '
import json, sys
r = json.load(open(sys.argv[1]))
assert "metrics" not in r and r["n_images"] == len(r["predictions"]) == int(sys.argv[2])
for p in r["predictions"]:
    assert p["path"].startswith("loose/") and p["uncertainty"] > 0
    assert [b["class"] for b in p["best"]] in (["cat", "black dog"], ["black dog", "cat"])
    assert abs(sum(b["probability"] for b in p["best"]) - 1) < 1e-6
    assert p["best"][0]["probability"] >= p["best"][1]["probability"]' "$2" "$n_loose"
}
want 0 "${zero[@]}" --images loose --json -o folder.json
cmp -s out folder.json || fail "the file is what is printed"
answers folder folder.json
want 0 "${zero[@]}" --images loose/*.png --json
answers files out
want 0 "${zero[@]}" --images 'loose/*.png' --json
answers glob out
find loose -name '*.png' | sort | "$PENUMBRA" "${zero[@]}" --images - --json >out 2>err
answers "standard input" out
want 0 "${zero[@]}" --images "$(find loose -name '*.png' | head -1)" --json
check "one picture" test "$(grep -c '"path"' out)" -eq 1
want 0 "${zero[@]}" --images loose/*.png
prints "black dog"
prints "probability"
check "a line a picture" test "$(grep -c '\.png ' out)" -eq "$n_loose"
want 0 "${zero[@]}" --images loose --none dummy --json
prints '"none": '
want 1 "${zero[@]}" --images loose i.safetensors
says "an embedding set stands alone"
want 1 "${zero[@]}" --images 'loose/*.gif'
says "no file matches"

# A name that looks like a file is none, nor is one with a slash; in a file it may be called so.
zero=(classify -m model --templates none --images loose)
for name in nofile.txt NOFILE.TXT names.json a.csv 'cat,dogs.txt' lists/names 'a/b,c' ./names; do
    want 1 "${zero[@]}" --classnames "$name"
    says "no such file of class names"
done
printf 'a.txt\nand/or\n' >odd.names
want 0 "${zero[@]}" --classnames odd.names --json
prints '"and/or"'
want 0 "${zero[@]}" --classnames 'St. Bernard,Mr. X,no.5' --json
prints '"St. Bernard"'
want 1 "${zero[@]}" --classnames a,b --templates nofile.txt
says "nofile.txt: no such file of templates"
want 1 "${zero[@]}" --classnames 'my names.txt'
says "no such file of class names"
mkdir names
want 1 "${zero[@]}" --classnames names
says "names: is a folder"
want 2 "${zero[@]}" --classnames a,b --none dummy --none-prompts dummies.txt
says "--none-set takes"
want 1 "${zero[@]}" --classnames a,b --none dummy --none-set dummies.safetensors
says "(--none-set)"
for what in "search --index i.safetensors -m model --query-text captions.txt" \
    "search --inclusion inside --index i.safetensors -m model --query-text red captions.jsonl" \
    "embed -m model --text captions.txt -o never.safetensors" \
    "tokenizer encode --tokenizer model --text captions.csv" \
    "traverse --images i.safetensors -m model --text captions.txt" \
    "explain -m model --text captions.txt --images loose" \
    "filter --images i.safetensors --texts i.safetensors --blocked-words words.txt"; do
    want 2 $what
    says "that is the name of a file"
done

# what was taken together is drawn together: every picture twice, by scenes, is every picture once
mkdir -p once twice
for picture in raw/*.png; do
    name=$(basename "$picture" .png)
    cp "$picture" "once/$name.png"
    cp "$picture" "twice/a_$name.png"
    cp "$picture" "twice/b_$name.png"
done
for set in once twice; do
    want 0 embed -m model --images $set -o $set.safetensors -q
    sed 's/.*"id": *"\([^"]*\)".*/\1/' $set.ids.jsonl | awk '{ s = $1; sub(/^[ab]_/, "", s); gsub(/[^0-9]/, "", s)
        print $1 "\t" (s % 3 == 0 ? "circle" : s % 3 == 1 ? "square" : "red star") }' >$set.labels
done
sed 's/\("id": *"[ab]_\([^"]*\)"\)/\1, "scene": "\2"/' twice.ids.jsonl >scenes && cp scenes twice.ids.jsonl
judged() { want 0 classify --images "$1.safetensors" --labels "$1.labels" --load-clfs clf.safetensors "${@:2}"; }
interval() { sed -n 's/.*\("acc1[a-z_]*": [^,]*\).*/\1/p' out; }
judged once --json
interval >once.txt
check "there is something to draw" grep -q '"acc1_low": 0[.][0-9]' once.txt
judged twice --json
check "twice as many pictures drawn one by one make another interval" test "$(interval)" != "$(cat once.txt)"
judged twice --cluster scene --json --csv scenes.csv --markdown scenes.md
check "scenes of equal pictures have the interval of single ones" cmp <(interval) once.txt
prints '"unit": "pictures of one \"scene\""'
prints '"key": "scene"'
prints "\"n_clusters\": $(wc -l <once.labels)"
check "csv says the unit" grep -q "clusters,unit\$" scenes.csv
check "and how many" grep -q ",$(wc -l <once.labels),\"pictures of one \"\"scene\"\"\"\$" scenes.csv
check "Markdown says it" grep -q "over $(wc -l <once.labels) clusters (unit: pictures of one \"scene\")" scenes.md
judged twice --cluster scene
prints "resampled unit"
want 1 classify --images once.safetensors --labels once.labels --load-clfs clf.safetensors --cluster scene
says "has no such field"
want 0 classify --images once.safetensors --load-clfs clf.safetensors --cluster id
says "--cluster does nothing"
sed 's/"scene": "[^"]*"/"scene": 7/' scenes >twice.ids.jsonl
judged twice --cluster scene --json --markdown scenes.md
says "so there are no intervals"
prints '"acc1_low": null'
check "Markdown without brackets" test "$(grep -c '\[' scenes.md)" -eq 0
finish
