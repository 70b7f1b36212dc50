#!/bin/bash
# adapt compare: the table of all methods, its controls and files, what is known, what fails.
source "$(dirname "$0")/common/lib.sh"
want 0 data ambiguous --out a --n 300 --dim 12 --roots 3 --branches 2 --levels 3 --texts 24 \
    --val-share 0.2 --test-share 0.3 -q
sets=(--images a/train/images.safetensors --texts a/train/texts.safetensors --truth a/truth/train.pairs)
test=(--test-images a/test/images.safetensors --test-texts a/test/texts.safetensors
    --test-truth a/truth/test.written.pairs)
val=(--val-images a/val/images.safetensors --val-texts a/val/texts.safetensors --val-truth a/truth/val.pairs)

want 0 adapt compare "${sets[@]}" "${test[@]}" "${val[@]}" --known a/test/known.safetensors --methods conformity whitened \
    --seeds 2 --bootstrap 50 --bins 5 --out c --json
has_keys out n_images n_texts methods.method methods.kind methods.seeds methods.i2t_r1 methods.t2i_r1 \
    methods.t2i_r1_low methods.t2i_difference methods.spearman_s methods.minus_s_r2 methods.learn_s \
    words.method words.says known.method known.spearman known.log_error known.coverage_90 comparison.figure uncertainty.orders
check "frozen rows, both controls, the methods; nothing is absent" python3 - <<'PY'
import json
r = json.load(open("out"))
rows = {m["method"]: m for m in r["methods"]}
assert list(rows) == ["frozen", "untrained", "length", "conformity", "whitened"], rows
assert [m["kind"] for m in r["methods"]] == ["frozen", "control", "control", "method", "method"]
assert [m["seeds"] for m in r["methods"]] == [1, 2, 1, 1, 1]
assert r["absent"] == [] and r["baseline"] == "frozen"
assert all(rows[m]["t2i_r1"] == rows["frozen"]["t2i_r1"] for m in rows)  # means are kept
assert all(rows[m]["t2i_difference"] == 0 for m in rows if m != "frozen")
known = {k["method"]: k for k in r["known"]}
assert known["frozen"]["spearman"] is None and abs(known["frozen"]["direction"]) > 0.5
assert all(-1 <= known[m]["spearman"] <= 1 for m in rows if m != "frozen")
assert json.load(open("c/table.json"))["methods"] == r["methods"]
PY
check "a sentence a method, of its own figures" python3 - <<'PY'
import json, re
r = json.load(open("out"))
rows = {m["method"]: m for m in r["methods"]}
words = {w["method"]: w["says"] for w in r["words"]}
assert list(words) == ["conformity", "whitened"], words
bars = [rows[n]["minus_s_r2"] for n in ("untrained", "length")]
for name, says in words.items():
    told = [float(x) for x in re.search(r"S R. (\S+); untrained (\S+), length (\S+)\)", says).groups()]
    score = rows[name]["minus_s_r2"]
    assert all(abs(a - b) < 0.006 for a, b in zip(told, [score, *bars])), (says, score, bars)
    tells = -rows[name]["spearman_s"] * 4 ** 0.5 > 1.645
    assert ("does not tell" in says) != tells, (says, rows[name])
    assert ("better than both" in says) == (tells and score > max(bars)), (says, score, bars)
    assert "R@1 stays at %.1f%%" % (100 * rows["frozen"]["t2i_r1"]) in says, says
PY
check "on the page too" grep -q "R@1 stays at" c/index.html
for file in table.txt table.json table.csv known.csv table.md figures.csv index.html adapters/whitened-0/config.json \
    sets/conformity-0.texts.safetensors sets/untrained-1.texts.safetensors sets/length-0.texts.safetensors; do
    check "$file is there" test -s "c/$file"
done
check "a line a method in csv" test "$(grep -c '^whitened,method,gaussian_diag,1,' c/table.csv)" -eq 1
check "and in Markdown" grep -qF '| conformity | method | gaussian_diag | 1 |' c/table.md
check "the page shows methods and what is known" grep -q 'Against what is known' c/index.html

# the figures are those of eval retrieval on the same sets
want 0 eval retrieval --images c/sets/whitened-0.images.safetensors --texts c/sets/whitened-0.texts.safetensors \
    --truth a/truth/test.written.pairs --bins 5 --bootstrap 0 --json
check "the same R@1" python3 - <<'PY'
import json
row = [m for m in json.load(open("c/table.json"))["methods"] if m["method"] == "whitened"][0]
found = json.load(open("out"))["metrics"]
assert abs(row["t2i_r1"] - found["image_retrieval_recall@1"]) < 1e-4, (row, found)
assert abs(row["i2t_r1"] - found["text_retrieval_recall@1"]) < 1e-4, (row, found)
PY

# the truth itself scores perfectly; a failure is a line
want 0 data ambiguous --out wide --n 60 --dim 8 --text-dim 5 --levels 2 --roots 2 --branches 2 -q
want 0 adapt compare --images wide/train/images.safetensors --texts wide/train/texts.safetensors \
    --truth wide/truth/train.pairs --test-images wide/test/images.safetensors \
    --test-texts wide/test/texts.safetensors --test-truth wide/truth/test.pairs --methods all --seeds 1 \
    --bootstrap 20 --recipe small --steps 60 --out d --json
check "two widths: those that bring captions to the pictures; the others with their reason" python3 - <<'PY'
import json
r = json.load(open("out"))
rows = {m["method"]: m for m in r["methods"]}
assert list(rows) == ["asymvlm-vmf", "asymvlm-ps", "deterministic"], rows
assert all(m["t2i_difference"] is None and m["p"] is None for m in rows.values()), rows  # no frozen rows
assert rows["asymvlm-vmf"]["t2i_r1"] > 0.4, rows  # by chance a third
absent = {a["method"]: a["reason"] for a in r["absent"]}
assert "adds the variances" in absent["pfe"], absent
assert "align_weight 0" in absent["grove"] and "cross_modal 0" in absent["probvlm"], absent
assert "width 8 and 5 cannot be compared" in absent["whitened"] and "frozen" in absent, absent
PY

# rows with variances: under densities on the sphere the side that is left alone is its means
want 0 adapt train --method conformity --images a/train/images.safetensors --texts a/train/texts.safetensors --out g/adapter
for split in train test; do
    for side in images texts; do
        want 0 adapt apply --adapter g/adapter --$side a/$split/$side.safetensors --out g/$split.$side.safetensors
    done
done
want 0 adapt compare --images g/train.images.safetensors --texts g/train.texts.safetensors \
    --truth a/truth/train.pairs --test-images g/test.images.safetensors --test-texts g/test.texts.safetensors \
    --test-truth a/truth/test.written.pairs --methods asymvlm-vmf asymvlm-ps --seeds 1 --steps 5 --bootstrap 0 \
    --out f --json
check "both are in the table" python3 - <<'PY'
import json
r = json.load(open("out"))
assert r["absent"] == [], r["absent"]
assert [m["method"] for m in r["methods"]][3:] == ["asymvlm-vmf", "asymvlm-ps"], r["methods"]
for m, w in zip(r["methods"][3:], r["words"]):  # no resamples, no p
    frozen = 100 * (m["t2i_r1"] - m["t2i_difference"])
    assert ("R@1 is %.1f%%, that of the frozen rows %.1f%%" % (100 * m["t2i_r1"], frozen) in w["says"]
            or m["t2i_difference"] == 0 and "R@1 stays" in w["says"]), (m, w)
PY

# grove takes steps too
want 0 adapt compare "${sets[@]}" "${test[@]}" --methods grove --seeds 1 --steps 2 --bootstrap 0 --out h
check "as many as were asked for" grep -qE '"steps": *2' h/adapters/grove-0/config.json

# one option of the methods that read it, a value at a time, beside what it is by itself
want 0 adapt compare "${sets[@]}" "${test[@]}" --methods conformity whitened --sweep shrinkage=0.1,0.9 \
    uncertain=rare,common --seeds 2 --bootstrap 0 --bins 5 --out s --json
check "a line a value" python3 - <<'PY'
import json
r = json.load(open("out"))
rows = {m["method"]: m for m in r["methods"] if m["kind"] == "method"}
assert list(rows) == ["conformity", "whitened", "whitened@shrinkage=0.1", "whitened@shrinkage=0.9",
                      "conformity@uncertain=rare", "conformity@uncertain=common",
                      "whitened@uncertain=rare", "whitened@uncertain=common"], list(rows)
same = lambda a, b: all(rows[a][k] == rows[b][k] for k in ("t2i_r1", "spearman_s", "minus_s_r2"))
assert same("conformity", "conformity@uncertain=rare")
o = lambda name: json.load(open("s/adapters/%s-0/config.json" % name))["options"]
assert o("whitened@shrinkage=0.9")["shrinkage"] == 0.9 and o("whitened")["shrinkage"] is None
assert rows["conformity@uncertain=rare"]["spearman_s"] != rows["conformity@uncertain=common"]["spearman_s"]
PY
want 0 adapt compare "${sets[@]}" "${test[@]}" --methods pfe --sweep batch-size=8,16 --steps 2 --seeds 2 \
    --bootstrap 0 --bins 5 --out sg --json
check "seeds are averaged" python3 - <<'PY'
import json
rows = {m["method"]: m["seeds"] for m in json.load(open("out"))["methods"] if m["kind"] == "method"}
assert rows == {"pfe": 2, "pfe@batch_size=8": 2, "pfe@batch_size=16": 2}, rows
PY
want 1 adapt compare "${sets[@]}" "${test[@]}" --methods whitened --sweep steps=3 --out e
says "none of the methods reads it"
want 1 adapt compare "${sets[@]}" "${test[@]}" --methods whitened --sweep shrinkage --out e
says "NAME=VALUE,VALUE,... is wanted"
want 1 adapt compare "${sets[@]}" "${test[@]}" --methods whitened --sweep shrinkage=a --out e
says "shrinkage of whitened cannot be 'a'"
for sweep in shrinkage=0.1,0.9,0.1 shrinkage=0.1, seed=1,2 shrinkage=,0.1; do
    want 1 adapt compare "${sets[@]}" "${test[@]}" --methods whitened --sweep $sweep --out e
    case $sweep in
    seed*) says "said by --seed and --seeds" ;;
    *0.9,0.1) says "shrinkage=0.1 stands there twice" ;;
    *) says "NAME=VALUE,VALUE,... is wanted" ;;
    esac
done

# fewer pairs: classes and shots of them, and shares of those, drawn by each seed for every method
want 0 adapt compare "${sets[@]}" "${test[@]}" --methods conformity whitened --shots 3 --classes 5 \
    --class-key concept --sweep share=0.2,1 --seeds 2 --bootstrap 0 --bins 5 --out few --json
check "so many pictures were learned from, others with another seed" python3 - <<'PY'
import json
def rows(name):
    return json.load(open("few/adapters/%s/config.json" % name))["images"]["rows"]
assert [rows("whitened-%d" % s) for s in (0, 1)] == [15, 15]
assert rows("conformity@share=0.2-0") == 3 and rows("whitened@share=1-1") == 15
weights = lambda name: open("few/adapters/%s/model.safetensors" % name, "rb").read()
assert weights("conformity-0") != weights("conformity-1")
assert weights("conformity-0") == weights("conformity@share=1-0")
methods = {m["method"]: m["seeds"] for m in json.load(open("out"))["methods"] if m["kind"] == "method"}
assert len(methods) == 6 and set(methods.values()) == {2}, methods
PY
want 1 adapt compare "${sets[@]}" "${test[@]}" --methods whitened --shots 3 --class-key colour --out unread
says "--class-key colour: row"
check "nothing was learned then either" test ! -e unread
want 1 adapt compare "${sets[@]}" "${test[@]}" --methods whitened --sweep share=2 --out e
says "share cannot be '2'"
want 2 adapt compare "${sets[@]}" "${test[@]}" --methods whitened --class-key concept --out e
says "--class-key says the classes of --shots and --classes"
want 2 adapt compare "${sets[@]}" "${test[@]}" --methods whitened --class-key concept --sweep share=0.5 --out e
says "neither is given"
want 2 adapt compare "${sets[@]:0:4}" "${test[@]}" --share 0.5 --out e
says "choose pairs of a --truth file"

# wrong usage
want 2 adapt compare "${sets[@]}" "${test[@]}" --val-images a/val/images.safetensors --out e
says "go together: 1 of three"
want 2 adapt compare "${sets[@]}" "${test[@]}" --split test --val-split test --test-split test --out e
says "a split is a part of"
want 1 adapt compare "${sets[@]}" "${test[@]:0:4}" --methods whitened --out unread
says "without --test-truth"
check "nothing was learned" test ! -e unread
want 1 adapt compare "${sets[@]}" "${test[@]}" --methods whiten --out e
says "no method is called 'whiten'"
want 1 adapt compare "${sets[@]}" "${test[@]}" --known a/train/known.safetensors --out e --recipe small --steps 3
says "a/train/known.safetensors beside a/test/texts.safetensors: row 0 is"
want 1 adapt compare "${sets[@]}" "${test[@]}" --label-vectors nowhere.csv --out e --truth-format pairs
says "nowhere.csv"
every_option adapt compare
finish
