#!/bin/bash
# eval by classes that the rows carry: what matches, the figures of each class again from the rankings,
# and match_prob as the probability that it is.
source "$(dirname "$0")/common/lib.sh"
make_small
mkdir raw
for shard in shapes/*/*.tar; do tar -xf "$shard" -C raw; done
i=0
for picture in raw/*.png; do
    class=$(printf '%s\n' circle square star | sed -n "$((i % 3 + 1))p")
    mkdir -p "p/test/$class"
    [ "$i" -lt 14 ] && cp "$picture" "p/test/$class/"
    i=$((i + 1))
done
python3 - <<'END'
import json
rows = [json.loads(line) for line in open("shapes/test/captions.jsonl")]
with open("c.jsonl", "w") as f:
    for i, r in enumerate(rows[:42:2]):
        r["class"] = ["circle", "square", "star", "nobody's"][i % 4] if i % 7 else None
        f.write(json.dumps({k: v for k, v in r.items() if v is not None}) + "\n")
END
want 0 embed -m model --images p/test -o i.safetensors -q
want 0 embed -m model --texts c.jsonl -o t.safetensors -q
sets=(--images i.safetensors --texts t.safetensors)

want 0 eval retrieval "${sets[@]}" --class-key class --bootstrap 50 --measure mean --json
cp out by_key.json
# the same as a file of labels
python3 - <<'END'
import json
with open("labels.tsv", "w") as f:
    for name in ("i", "t"):
        for line in open(name + ".ids.jsonl"):
            r = json.loads(line)
            if "class" in r:
                f.write(r["id"] + "\t" + r["class"] + "\n")
END
want 0 eval retrieval "${sets[@]}" --truth labels.tsv --truth-format labels --bootstrap 50 --measure mean --json
check "figures are those of a file of labels" python3 -c '
import json
a, b = json.load(open("by_key.json")), json.load(open("out"))
assert a["metrics"] == b["metrics"] and a["figures"] == b["figures"] and a["n_pairs"] == b["n_pairs"]
assert "classes" not in b'
check "each class, and all of them alike" python3 -c '
import json
r = json.load(open("by_key.json")); m = r["metrics"]; rows = r["classes"]
assert [x["class"] for x in rows] == ["circle", "square", "star"], rows
assert [x["n_images"] for x in rows] == [5, 5, 4] and sum(x["n_texts"] for x in rows) == m["image_retrieval_n_queries"]
for way, n, name in (("i2t", "n_images", "text"), ("t2i", "n_texts", "image")):
    for figure, word in (("recall_at_1", "recall@1"), ("r_precision", "r_precision")):
        key = way + "_" + figure
        all_ = sum(x[n] * x[key] for x in rows) / sum(x[n] for x in rows)
        assert abs(all_ - m[name + "_retrieval_" + word]) < 1e-6, (key, all_)
        assert abs(r["class_means"][key] - sum(x[key] for x in rows) / 3) < 1e-9, key'
want 0 eval retrieval "${sets[@]}" --class-key class --level 1 --bootstrap 0 --measure mean --json
check "captions of a level keep their classes" python3 -c '
import json
from collections import Counter
want = Counter(r.get("class") for r in map(json.loads, open("t.ids.jsonl")) if r["level"] == 1)
rows = {x["class"]: x["n_texts"] for x in json.load(open("out"))["classes"]}
assert {k: n for k, n in rows.items() if n} == {k: n for k, n in want.items() if k in ("circle", "square", "star")}, (rows, want)'
want 0 eval retrieval "${sets[@]}" --class-key class --bootstrap 0
prints "each class counted alike"
want 0 eval measures "${sets[@]}" --class-key class --json
check "the table of measures by class, without what repeats mean" python3 -c '
import json
rows = {x["measure"]: x for x in json.load(open("out"))["measures"]}
m = json.load(open("by_key.json"))["metrics"]
assert rows["mean"]["i2t_r_precision"] == m["text_retrieval_r_precision"] and "max_cosine" not in rows, rows'
want 0 eval measures "${sets[@]}" --class-key class --measure mean max_cosine --json
check "but where it is named" test "$(grep -c '"measure": "max_cosine"' out)" -eq 1
want 0 eval compare --images i.safetensors i.safetensors --texts t.safetensors t.safetensors --names a b \
    --class-key class --bootstrap 20
want 1 eval retrieval "${sets[@]}" --class-key nothing
says "--class-key nothing: no row of i.safetensors has this field"
want 1 eval retrieval "${sets[@]}" --class-key label
says "no row of t.safetensors has this field"
want 1 eval retrieval "${sets[@]}" --class-key id
says "--class-key id: no query shares its label with an item"
want 2 eval retrieval "${sets[@]}" --class-key class --truth labels.tsv
says "in place of --truth"
want 2 eval measures "${sets[@]}" --class-key class --truth labels.tsv

# class folders with captions beside the pictures: both sets carry the class by themselves
for picture in p/test/*/*.png; do echo "a $(basename "$(dirname "$picture")")" >"${picture%.png}.txt"; done
want 0 embed -m model --images p/test -o fi.safetensors -q
want 0 embed -m model --texts p/test -o ft.safetensors -q
check "captions of a class folder carry its class" test "$(grep -c '"class": "star", "label": 2' ft.ids.jsonl)" -eq 4
want 0 eval retrieval --images fi.safetensors --texts ft.safetensors --class-key class --bootstrap 0 --json
check "a caption matches all pictures of its class" test "$(grep -c '"n_pairs": 66' out)" -eq 1

# match_prob: a probability by itself under constants that somebody stands for
first() { # KEY: of the first hit
    python3 -c 'import json, sys; print(json.load(open("out"))["hits"][0][sys.argv[1]])' "$1"
}
search=(search --index i.safetensors --queries t.safetensors -k 1 --measure match_prob --json)
want 0 "${search[@]}"
says "no set carries a and b of match_prob"
check "none by constants of nobody" test "$(first p_match)" = None
prints '"p_match_by": null'
want 1 "${search[@]}" --min-probability 0.5
says "penumbra calibrate"
want 0 "${search[@]}" --match-a 4 --match-b 3
check "the score is the probability" test "$(first p_match)" = "$(first score)"
prints '"p_match_by": "measure"'
want 0 "${search[@]}" --match-a 4 --match-b 3 --min-probability 1
prints '"no_good_result": true'
eval=(eval retrieval "${sets[@]}" --class-key class --bootstrap 0 --measure match_prob --json)
want 0 "${eval[@]}"
check "no calibration error without" test "$(grep -c '"figure": "ece"' out)" -eq 0
want 0 "${eval[@]}" --match-a 4 --match-b 3
check "and one with" test "$(grep -c '"figure": "ece"' out)" -eq 1
finish
