#!/bin/bash
# reproduce: every method's uncertainty against ambiguity that is known, with a few steps.
here=$(cd "$(dirname "$0")" && pwd)
source "$here/common/lib.sh"
cp "$here/common/ranks.py" .

# data that do not say how ambiguous they are, or have no captions to learn from
want 0 data shapes --out plain --n 60 --val-share 0 -q
want 1 reproduce truth-table --data plain --out e1
says "--data plain: its pictures do not say how ambiguous they are; \`data shapes --blur"
rm plain/truth/train.pairs
want 1 reproduce truth-table --data plain --out e2
says "--data plain: has no train/captions.jsonl with truth/train.pairs"
check "a wrong folder leaves none behind" test ! -e e1 -a ! -e e2

truth=(reproduce truth-table --n 60 --max-steps 1 --batch-size 8 --seeds 1 -t 1 --out t --json)
methods=(deterministic prolip pcmepp pcme twin-matches twin-doubt infonce-matches ttda pfe adapted-pcme adapted-pcmepp adapted-prolip bayesvlm probvlm
    asymvlm-vmf asymvlm-ps asymvlm-images asymvlm-both conformity whitened) # but for grove, whose rows take long
want 0 "${truth[@]}" --only "${methods[@]}"
cp out first
cat >again.py <<'PY'
import glob, json, math, struct
from ranks import spearman
def rows(stem):
    data = open(stem + ".safetensors", "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    begin, end = head["log_var"]["data_offsets"]
    flat = struct.unpack("<%df" % ((end - begin) // 4), data[8 + n + begin:8 + n + end])
    ids = [json.loads(line) for line in open(stem + ".ids.jsonl")]
    d = len(flat) // len(ids)
    return ids, [sum(map(math.exp, flat[i * d:(i + 1) * d])) for i in range(len(ids))]
r = json.load(open("first"))
ours = {(f["row"], f["figure"]): f["value"] for f in r["figures"]}
near = lambda a, b: abs(a - b) < 1e-5
def held(x, y, z):
    xy, xz, yz = spearman(x, y), spearman(x, z), spearman(y, z)
    return (xy - xz * yz) / math.sqrt((1 - xz * xz) * (1 - yz * yz))
for row, stem in (("prolip", "prolip-0"), ("pfe", "pfe-0"), ("untrained head", None), ("ttda", "ttda-0")):
    if stem is None:
        stem = glob.glob("t/sets/untrained.*-0.images.safetensors")[0][len("t/sets/"):].split(".images")[0]
    ids, u = rows("t/sets/%s.images" % stem)
    bits = [x["ambiguity"]["entropy_bits"] for x in ids]
    assert near(ours[row, "image_rho"], spearman(bits, u)), (row, ours[row, "image_rho"], spearman(bits, u))
    shapes = [x["ambiguity"]["n_shapes"] for x in ids]
    held_shapes = held(bits, u, shapes)
    ids, u = rows("t/sets/%s.texts" % stem)
    known, expected = ([x[key] for x in ids] for key in ("entropy_bits", "expected_bits"))
    words = [-len(x["text"].split()) for x in ids]
    assert near(ours[row, "text_rho"], spearman(known, u)), (row, ours[row, "text_rho"])
    assert near(ours[row, "text_expected"], spearman(expected, u)), (row, ours[row, "text_expected"])
    if stem.startswith("untrained"):
        assert (row, "image_held") not in ours and (row, "text_held") not in ours
    else:
        assert near(ours[row, "image_held"], held_shapes), (row, ours[row, "image_held"], held_shapes)
        assert near(ours[row, "text_held"], held(expected, u, words)), (row, ours[row, "text_held"])
words = [-len(x["text"].split()) for x in ids]
assert near(ours["fewer words", "text_rho"], spearman(known, words))
assert near(ours["fewer words", "text_expected"], spearman(expected, words))
shapes = [len(json.loads(l)["shapes"]) for l in open("shapes.jsonl")]
assert near(ours["ambiguity.n_shapes", "image_rho"], spearman(bits, shapes)), shapes
for side, keys in ("image", ("untrained head", "ambiguity.n_shapes", "smaller file", "flatter picture")), \
        ("text", ("untrained head", "fewer words", "common words")):
    best = max(ours[k, side + "_rho"] for k in keys)
    said = [v for (_, f), v in ours.items() if f == side + "_control"]
    assert len(said) == (19 if side == "image" else 18) and all(near(v, best) for v in said), (said, best)
PY
tar -xOf t/data/shapes/test/*.tar --wildcards '*.json' >shapes.raw
python3 - <<'PY'
import json
d, text = json.JSONDecoder(), open("shapes.raw").read()
with open("shapes.jsonl", "w") as out:
    while text.strip():
        record, end = d.raw_decode(text.lstrip())
        text = text.lstrip()[end:]
        print(json.dumps(record), file=out)
PY
check "figures are Spearman's of the rows and what is known, controls those of pictures and captions" python3 again.py
check "every method has its line, points none, and its lead before the best control" python3 - <<'PY'
import json
r = json.load(open("first"))
ours = {(f["row"], f["figure"]): f["value"] for f in r["figures"]}
adapted = ["pfe", "adapted-pcme", "adapted-pcmepp", "adapted-prolip", "bayesvlm", "probvlm", "conformity",
           "whitened", "asymvlm-both"]
for m in ["prolip", "pcmepp", "pcme", "ttda", "twin-matches", "infonce-matches"] + adapted:
    assert -1 <= ours[m, "image_rho"] <= 1 and -1 <= ours[m, "text_rho"] <= 1, m
for m in "asymvlm-vmf", "asymvlm-ps", "asymvlm-images", "deterministic":
    assert 0 <= ours[m, "i2t_r1"] <= 100 and 0 <= ours[m, "t2i_r1"] <= 100, m
assert ("asymvlm-vmf", "image_rho") not in ours and ("asymvlm-images", "text_rho") not in ours
assert not any(row == "deterministic" and "rho" in f for row, f in ours), ours
beside = {(b["method"], b["side"]): b for b in r["beside"]}
b, label = beside["ProLIP", "captions"], "control_rho"
assert abs(b["rho"] - ours["prolip", "text_rho"]) < 1e-3 and abs(b["lead"] - (b["rho"] - b[label])) < 2e-3, b
assert b["rho_low"] <= b["rho"] <= b["rho_high"] and b["lead_low"] <= b["lead"] <= b["lead_high"], b
for b in r["beside"]:
    says = "ahead" if b["lead_low"] > 0 else "behind" if b["lead_high"] < 0 else "not told apart"
    assert b["verdict"] == says, b
assert "absent" not in r, r["absent"]
PY
check "the page has both tables" \
    test "$(grep -cE 'Beside controls|control: number of shapes' t/index.html)" -ge 2
want 0 eval retrieval --images t/sets/prolip-0.images.safetensors --texts t/sets/prolip-0.texts.safetensors \
    --truth t/data/shapes/truth/test.pairs --level 3 --json -q
check "R@1 is that of eval, of the most specific captions" python3 - <<'PY'
import json
e, f = json.load(open("out"))["metrics"], json.load(open("t/results/prolip-0.json"))["values"]["prolip"]
assert abs(100 * e["text_retrieval_recall@1"] - f["i2t_r1"]) < 1e-4, (e, f)
assert abs(100 * e["image_retrieval_recall@1"] - f["t2i_r1"]) < 1e-4, (e, f)
PY

check "AsymVLM reads lengths on the sides that become densities, the others rows of length 1" python3 - <<'PY'
import json, struct
def lengths(method):
    data = open("t/adapters/%s-0/model.safetensors" % method, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    at = lambda k: 8 + n + head[k]["data_offsets"][0]
    return {k: struct.unpack_from("<f", data, at(k))[0] for k in ("image_length", "text_length") if k in head}
vmf, ps, pictures, both = (lengths("asymvlm-" + m) for m in ("vmf", "ps", "images", "both"))
assert list(vmf) == ["text_length"] and vmf["text_length"] != 1 and ps == vmf, (vmf, ps)
assert list(pictures) == ["image_length"] and pictures["image_length"] not in (1, vmf["text_length"]), pictures
assert both == {**pictures, **vmf}, (both, pictures, vmf)
PY

twin=$(ls t/sets/frozen.*-0.images.safetensors)
twin_texts=${twin/images/texts}
want 0 eval uncertainty --images "$twin" --texts "$twin_texts" --truth t/data/shapes/truth/test.pairs \
    --entropy ambiguity.entropy_bits --text-entropy entropy_bits --of-matches --bootstrap 0 --json -q
cp out matches
for level in 0 1; do
    want 0 calibrate --images "${twin/frozen/frozen-train}" --texts "${twin_texts/frozen/frozen-train}" --truth t/data/shapes/truth/train.pairs \
        --gallery texts --level $level --measure mean -o again$level.json -q
    check "the calibration of level $level is calibrate's" cmp -s again$level.json t/sets/twin-doubt-0.level$level.json
done
want 0 eval uncertainty --images "$twin" --texts "$twin_texts" --truth t/data/shapes/truth/test.pairs --entropy ambiguity.entropy_bits \
    --of-matches --calibration again0.json again1.json --bootstrap 0 --json -q
check "and the doubt" python3 -c '
import json
own = next(r for r in json.load(open("out"))["known_entropy"]["agreement"] if r["score"] == "doubt about matches")
f = json.load(open("t/results/twin-doubt-0.json"))["values"]["twin-doubt"]
assert abs(own["spearman"] - f["image_rho"]) < 1e-3 and "text_rho" not in f and "text_expected" not in f, (own, f)'
cp matches out
check "the entropy of matches is eval's" python3 - <<'PY'
import json
rows = json.load(open("out"))["known_entropy"]["agreement"]
f = json.load(open("t/results/twin-matches-0.json"))["values"]["twin-matches"]
own = {r["side"]: r["spearman"] for r in rows if r["score"] == "entropy of matches" and r["level"] == "all"}
assert abs(own["pictures"] - f["image_rho"]) < 1e-3 and abs(own["captions"] - f["text_rho"]) < 1e-3, (own, f)
PY

raw=$(ls t/sets/raw.*-0.texts.safetensors)
want 0 info "$raw" --json
check "what AsymVLM reads are points, as other methods' rows" python3 -c '
import json
assert json.load(open("out"))["family"] == "point", open("out").read()'

rm t/results/{pcme,asymvlm-both}-0.json
want 0 "${truth[@]}" --only pcme asymvlm-both
says "2 stages with their seeds to go"
check "what is made again is the same, and the others stand beside it" cmp -s first out
want 0 "${truth[@]}" --only "${methods[@]}"
says "20 of 20 results are there already"
want 0 "${truth[@]}" --seeds 2 --only asymvlm-vmf
check "another seed reads the rows of its own twin" test -s t/results/asymvlm-vmf-1.json -a ! -s t/results/pfe-1.json
check "and has figures" python3 -c '
import json
f = [json.load(open("t/results/asymvlm-vmf-%d.json" % s))["values"]["asymvlm-vmf"] for s in (0, 1)]
assert all("text_rho" in x for x in f) and f[0]["text_rho"] != f[1]["text_rho"], f'
want 1 "${truth[@]}" --only pcme nobody
says "truth-table: --only names what is not among deterministic, prolip, pcmepp"
finish
