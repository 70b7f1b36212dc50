#!/bin/bash
# eval shift: a calibration on the part it was fitted on and on another, lists counted again, and
# what does not belong together.
here=$(cd "$(dirname "$0")" && pwd)
source "$here/common/lib.sh"
make_small
want 0 data shapes --out s --n 400 --seed 2 --val-share 0.4 --test-share 0.4 --size 32 -q
for part in val test; do # what is left of a picture finds the picture
    want 0 embed -m model --images s/$part -o $part.i.safetensors -q
    want 0 embed -m model --images s/$part --masked --mask-keep 0.6 -o $part.t.safetensors -q
done
want 0 calibrate --images val.i.safetensors --texts val.t.safetensors -o there.json -q
shift_of() { want "$1" eval shift --calibration there.json --images test.i.safetensors --texts test.t.safetensors "${@:2}"; }
shift_of 0 --bootstrap 50 --json
cp out shift.json
has_keys shift.headline shift.measure shift.kind shift.n_queries shift.lists.alpha shift.lists.cut_by \
    shift.lists.coverage shift.lists.mean_size shift.first_hits.ece
check "what is promised holds where nothing shifts" python3 - <<'END'
import json, math
s = json.load(open("shift.json"))["shift"]
rows = {(r["alpha"], r["cut_by"]): r for r in s["lists"]}
assert len(rows) == 9 and s["n_splits"] == 100 and s["n_queries"] == s["n_with_match"]
for (alpha, by), r in rows.items():
    assert 0 <= r["coverage"] <= 1 and 0 <= r["mean_size"] <= s["n_gallery"]
    if by != "there":
        m = r["n_fit"]
        want = math.ceil((m + 1) * (1 - alpha)) / (m + 1)
        assert r["coverage"] > want - 0.04, r
        assert s["kind"] == "rank" or r["coverage"] < want + 0.04, r
    assert r["coverage_low"] <= r["coverage"] <= r["coverage_high"]
assert rows[0.1, "few of here"]["n_fit"] == 50
END
want 0 embed -m model --images s/test -o i.jsonl -q
want 0 embed -m model --images s/test --masked --mask-keep 0.6 -o t.jsonl -q
check "lists that were brought along, counted by hand" python3 - <<'END'
import json, math
s = json.load(open("shift.json"))["shift"]
fit = json.load(open("there.json"))["conformal"]
trace = lambda r: sum(math.exp(v) for v in r["log_var"])
images = [json.loads(l) for l in open("i.jsonl")]
texts = [json.loads(l) for l in open("t.jsonl")]
var = [trace(i) for i in images]
hits = []  # scores from the best down, and the place of the first match
for t in texts:
    u = trace(t)
    score = [1 - (2 - 2 * sum(a * b for a, b in zip(i["mean"], t["mean"])) + v + u) / 2 for i, v in zip(images, var)]
    order = sorted(range(len(images)), key=lambda k: -score[k])
    match = next(n for n, k in enumerate(order) if images[k]["id"] == t["id"])
    hits.append(([score[k] for k in order], match))
assert s["measure"] == "csd" and s["n_queries"] == len(hits)
for row in s["lists"]:
    if row["cut_by"] != "there":
        continue
    n, kind = len(fit["rank"]), fit["kind"]
    k = math.ceil((n + 1) * (1 - row["alpha"]) - 1e-9)
    values = sorted(fit[kind], reverse=kind == "score")
    cut = values[k - 1]
    length = {"score": lambda h: sum(x >= cut - 1e-6 for x in h), "rank": lambda h: min(int(cut), len(h)),
              "margin": lambda h: sum(h[0] - x <= cut + 1e-6 for x in h)}[kind]
    held = sum(m < length(h) for h, m in hits) / len(hits)
    size = sum(length(h) for h, m in hits) / len(hits)
    assert abs(row["coverage"] - held) < 4.1e-3 and abs(row["mean_size"] - size) < 0.3, (row, held, size)
END
shift_of 0 --bootstrap 0 --splits 3 --refit 10 --alphas 0.1 --gallery images
prints "Lists cut as fitted there, to hold a match for 90%"
prints "few of here"
shift_of 0 --bootstrap 50 --seed 1 --json
check "other splits by another seed" python3 -c '
import json
a, b = (json.load(open(p))["shift"]["lists"] for p in ("shift.json", "out"))
assert [r["coverage"] for r in a if r["cut_by"] == "there"] == [r["coverage"] for r in b if r["cut_by"] == "there"]
assert [r["coverage"] for r in a] != [r["coverage"] for r in b]'
want 0 eval shift --calibration there.json --images val.i.safetensors --texts val.t.safetensors \
    --bootstrap 50 --cluster id --json
check "where it was fitted it holds" python3 -c '
import json
for r in json.load(open("out"))["shift"]["lists"]:
    if r["cut_by"] == "there":
        assert r["coverage"] >= 1 - r["alpha"] - 0.05, r'
shift_of 1 --refit 100000
says "more are needed to judge by"
shift_of 2 --alphas 1.5
says "an error rate lies between 0 and 1"
shift_of 2 --split test --truth-format pairs --by-class --alphas none
shift_of 1 --truth s/truth/none.pairs --level 3
says "none.pairs"
want 1 eval shift --calibration nowhere.json --images test.i.safetensors --texts test.t.safetensors
shift_of 0 --trust-calibration --bootstrap 0 --splits 2
every_option eval shift
finish
