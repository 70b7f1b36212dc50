#!/bin/bash
# adapt active: rounds of labelling by uncertainty and at random, R@1 after each, and wrong usage.
source "$(dirname "$0")/common/lib.sh"
want 0 data ambiguous --out a --n 240 --dim 12 --roots 4 --branches 3 --levels 2 --texts 2 \
    --val-share 0.2 --test-share 0.3 -q
sets() { echo "--images a/$1/images.safetensors --texts a/$1/texts.safetensors --truth a/truth/$1.pairs"; }
test=(--test-images a/test/images.safetensors --test-texts a/test/texts.safetensors
    --test-truth a/truth/test.pairs)
# shellcheck disable=SC2046  # words of options
want 0 adapt train --method asymvlm-vmf $(sets val) --hidden 8 --steps 20 --out elsewhere
# shellcheck disable=SC2207
pool=($(sets train))
want 0 adapt active --adapters elsewhere --methods conformity "${pool[@]}" "${test[@]}" --start 4 -n 12 \
    --rounds 2 --seeds 2 --steps 30 --csv c.csv --json
has_keys n_pool tuned curves.chosen_by curves.t2i_to_random rounds.n_labelled rounds.i2t_r1
cp out first
check "three strategies, two seeds, a point before the rounds and one behind each" python3 - <<'PY'
import csv, json
r = json.load(open("first"))
points = {}
for p in r["rounds"]:
    points.setdefault((p["chosen_by"], p["seed"]), []).append(p)
assert [c["chosen_by"] for c in r["curves"]] == ["random", "elsewhere", "conformity"], r["curves"]
assert len(points) == 6 and all([p["n_labelled"] for p in v] == [4, 16, 28] for v in points.values())
assert r["curves"][0]["t2i_to_random"] == 0
for c in r["curves"]:
    behind = [p["t2i_r1"] for k, v in points.items() if k[0] == c["chosen_by"] for p in v if p["round"] > 0]
    assert abs(c["t2i_r1"] - sum(behind) / len(behind)) < 1e-4, c
    assert abs(c["t2i_to_random"] - (c["t2i_r1"] - r["curves"][0]["t2i_r1"])) < 1e-4, c
start = {k[1]: v[0]["t2i_r1"] for k, v in points.items() if k[0] == "random"}
assert all(v[0]["t2i_r1"] == start[k[1]] for k, v in points.items())  # the same pictures begin
assert len({v[1]["t2i_r1"] for k, v in points.items() if k[1] == 0}) > 1  # others follow
last = [v[-1]["t2i_r1"] for k, v in points.items() if k[0] == "random"]
assert sum(last) > sum(start.values()), (start, last)  # labels help
rows = list(csv.DictReader(open("c.csv")))
assert len(rows) == len(r["rounds"]) and abs(float(rows[5]["t2i_r1"]) - r["rounds"][5]["t2i_r1"]) < 1e-5
PY
want 0 adapt active --adapters elsewhere --methods conformity "${pool[@]}" "${test[@]}" --start 4 -n 12 \
    --rounds 2 --seeds 2 --steps 30 --json
check "the same again" cmp -s first out

# frozen rows before anything is labelled; what was chosen is what curate select chooses
want 0 adapt active --adapters elsewhere "${pool[@]}" "${test[@]}" -n 3 --rounds 1 --seeds 1 \
    --steps 2 --recipe small --tune deterministic --truth-format pairs --json
cp out one
want 0 eval retrieval --images a/test/images.safetensors --texts a/test/texts.safetensors \
    --truth a/truth/test.pairs --measure mean --bootstrap 0 --json
check "round 0 is the frozen rows" python3 - <<'PY'
import json
first = json.load(open("one"))["rounds"][0]
found = json.load(open("out"))["metrics"]
assert first["n_labelled"] == 0
assert abs(first["t2i_r1"] - found["image_retrieval_recall@1"]) < 1e-4, (first, found)
PY

want 2 adapt active "${pool[@]}" "${test[@]}"
says "--adapters or --methods is wanted"
want 2 adapt active --methods whitened "${pool[@]}" "${test[@]}"
says "--start 2 or more"
want 2 adapt active --adapters elsewhere "${pool[@]:0:4}" "${test[@]}" --split train
says "a split is a part of"
want 2 adapt active --adapters elsewhere "${pool[@]}" "${test[@]:0:4}" --test-split test
want 1 adapt active --adapters elsewhere "${pool[@]}" "${test[@]}" -n 50 --rounds 3
says "150 pictures are wanted over 3 rounds"
want 1 adapt active --adapters nowhere "${pool[@]}" "${test[@]}" -n 3 --rounds 1 --seeds 1 --steps 1
says "nowhere"
check "and nothing was learned before" test "$(grep -c labelled err)" -eq 0
# shellcheck disable=SC2046
want 0 adapt train --method deterministic $(sets val) --hidden 8 --steps 2 --out sure
want 1 adapt active --adapters sure "${pool[@]}" "${test[@]}" -n 3 --rounds 1 --seeds 1 --steps 1
says "sure: it gives no row an uncertainty"
check "and nothing was learned before" test "$(grep -c labelled err)" -eq 0
want 1 adapt active --methods deterministic "${pool[@]}" "${test[@]}" --start 4 -n 3 --rounds 1 --seeds 1
says "deterministic: it gives no row an uncertainty"
check "and nothing was learned before" test "$(grep -c labelled err)" -eq 0
every_option adapt active
finish
