#!/bin/bash
# reproduce: GroVE's Figure 4, rounds of labelling, with a few steps.
source "$(dirname "$0")/common/lib.sh"
small=(--max-steps 3 -t 1)

active=(reproduce grove-active --n 60 "${small[@]}")
want 0 "${active[@]}" --seeds 2 --out g --json
cp out first
check "five rounds of every way to choose, an eighth of the pool in each" python3 - <<'PY'
import json
r = json.load(open("first"))
pool = len(open("g/data/ambiguous/train/images.ids.jsonl").read().splitlines())
ways = ["at random", "PFE", "PCME", "PCME++", "ProbVLM", "GroVE"]
assert [(c["chosen_by"], c["n_labelled"]) for c in r["curves"]] == [
    (w, i * (pool // 8)) for w in ways for i in range(6)], r["curves"]
start = {(c["i2t_r1"], c["t2i_r1"]) for c in r["curves"] if c["n_labelled"] == 0}
assert len(start) == 1, start  # nothing is labelled: the frozen rows
ours = {(f["row"], f["figure"]): f["value"] for f in r["figures"] if f["source"] == "here"}
found = [json.load(open("g/results/pcme-%d.json" % s)) for s in (0, 1)]
means = [sum(x["t2i_r1"] for x in f["rounds"][1:]) / 5 for f in found]
assert abs(ours["pcme", "t2i_r1"] - 50 * sum(means)) < 1e-4, (ours, means)
assert abs(found[0]["values"]["pcme"]["i2t_last"] - 100 * found[0]["rounds"][5]["i2t_r1"]) < 1e-9
assert all(c["paper"] is None for c in r["claims"]) and len(r["claims"]) == 6
PY
check "curves are drawn" test "$(grep -c 'pictures labelled' g/index.html)" -ge 2
want 0 "${active[@]}" --seeds 2 --out g --json
says "12 of 12 results are there already"
check "the same result" cmp -s first out
rm g/results/grove-1.json
want 0 "${active[@]}" --seeds 2 --out g --json
check "what is made again is the same" cmp -s first out

# the rounds are those of adapt active with the adapter that was learned on the held-out sets
test=(--test-images own/test/images.safetensors --test-texts own/test/texts.safetensors
    --test-truth own/truth/test.written.pairs)
pool=(--images own/train/images.safetensors --texts own/train/texts.safetensors --truth own/truth/train.pairs)
want 0 data ambiguous --out own --n 100 --texts 20 -q
lot=$(($(wc -l <own/train/images.ids.jsonl) / 8))
mkdir own/elsewhere && cp own/val/* own/elsewhere && cp own/truth/val.pairs own/truth/elsewhere.pairs
want 0 reproduce grove-active --data own "${small[@]}" --seeds 1 --seed 3 --out e -q
want 0 adapt active --adapters e/adapters/pfe-3 "${pool[@]}" "${test[@]}" --count $lot --seeds 1 --seed 3 \
    --steps 1 -t 1 --json -q
check "the rounds of adapt active" python3 - <<'PY'
import json
rounds = json.load(open("out"))["rounds"]
for name, by in ("random", "random"), ("pfe", "e/adapters/pfe-3"):
    mine = [(x["n_labelled"], x["i2t_r1"], x["t2i_r1"])
            for x in json.load(open("e/results/%s-3.json" % name))["rounds"]]
    theirs = [(x["n_labelled"], x["i2t_r1"], x["t2i_r1"]) for x in rounds if x["chosen_by"] == by]
    assert mine == theirs, (name, mine, theirs)
PY
rm -r own/elsewhere # learned from what is labelled
want 0 reproduce grove-active --data own "${small[@]}" --seeds 1 --out m --json -q
check "all begin with the same lot" python3 - <<'PY'
import json
r = json.load(open("out"))
first = {(c["n_labelled"], c["i2t_r1"], c["t2i_r1"]) for c in r["curves"][::6]}
assert len(first) == 1 and next(iter(first))[0] > 0, first
PY
finish
