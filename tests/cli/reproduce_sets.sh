#!/bin/bash
# reproduce: tables of post-hoc methods on sets, GroVE's and AsymVLM's, with a few steps.
source "$(dirname "$0")/common/lib.sh"
small=(--max-steps 2 -t 1)

# on the built-in sets
grove=(reproduce grove-table --n 60 "${small[@]}")
want 0 "${grove[@]}" --seeds 2 --out g --json
cp out first
check "every method, what is known, and the paper's lines" python3 - <<'PY'
import json
r = json.load(open("first"))
paper = {(f["row"], f["where"], f["figure"]): f for f in r["figures"] if f["source"] == "paper"}
line = paper["grove", "Tables 1 and 7, CLIP, CUB", "t2i_minus_s_r2"]
assert line["value"] == 0.49 and line["std"] == 0.05, line
assert paper["frozen", "Tables 1 and 7, CLIP, MS-COCO", "i2t_r1"]["value"] == 0.715
ours = {(f["row"], f["figure"]): f["value"] for f in r["figures"] if f["source"] == "here"}
methods = {"frozen", "pfe", "pcme", "pcmepp", "probvlm", "grove", "untrained", "length"}
assert {row for row, _ in ours} == methods, ours
assert {row for row, key in ours if key == "known_spearman"} == methods - {"frozen"}, ours
for m in methods:
    s, r2, both = (ours[m, "t2i_" + k] for k in ("s", "r2", "minus_s_r2"))
    assert -1 <= s <= 1 and 0 <= r2 <= 1 and abs(both) <= 1, (m, s, r2, both)
for control in ("untrained", "length"):  # the frozen rows' means
    assert ours[control, "t2i_r1"] == ours["frozen", "t2i_r1"], (control, ours)
f = json.load(open("g/results/pfe-1.json"))["values"]["pfe"]
assert abs(f["t2i_minus_s_r2"] + f["t2i_s"] * f["t2i_r2"]) < 1e-9, f
PY
sets=g/sets/grove-1
want 0 eval retrieval --images $sets.images.safetensors --texts $sets.texts.safetensors --truth \
    g/data/ambiguous/truth/test.written.pairs --measure w2 --json -q
check "R@1, S and R2 are those of eval on the same sets, by the 2-Wasserstein distance" python3 - <<'PY'
import json
e, f = json.load(open("out")), json.load(open("g/results/grove-1.json"))["values"]["grove"]
assert abs(e["metrics"]["text_retrieval_recall@1"] - f["i2t_r1"]) < 1e-6, f
u = e["uncertainty"]["text_to_image"]["by_query"]
assert abs(u["spearman_s"] - f["t2i_s"]) < 1e-6 and abs(u["r2"] - f["t2i_r2"]) < 1e-6, (u, f)
PY
want 0 "${grove[@]}" --seeds 2 --out g --json
says "16 of 16 results are there already"
check "the same result" cmp -s first out
rm g/results/pcme-1.json
want 0 "${grove[@]}" --seeds 2 --out g --json
check "what is made again is the same" cmp -s first out
check "another seed is another adapter" \
    bash -c '! cmp -s g/sets/pcme-0.texts.safetensors g/sets/pcme-1.texts.safetensors'

# AsymVLM's, on a folder that somebody has: pictures are sorted by the caption that they find
want 0 data ambiguous --out own --n 320 --texts 20 --test-share 0.3 -q
want 0 reproduce asymvlm-table --data own "${small[@]}" --seeds 1 --out a --json
says "how long they take will be said behind the first"
check "every method and the paper's lines in the order of Table A.2" python3 - <<'PY'
import json
r = json.load(open("out"))
assert r["data"] == "own", r["data"]
paper = {(f["row"], f["where"], f["figure"]): f for f in r["figures"] if f["source"] == "paper"}
line = paper["asymvlm-vmf", "Tables 1 and A.2, CLIP, MS-COCO", "i2t_r1"]
assert line["value"] == 0.561 and line["std"] == 0.002, line
ours = {f["row"] for f in r["figures"] if f["source"] == "here"}
assert ours == {"pfe", "pcmepp", "bayesvlm", "probvlm", "prolip", "asymvlm-vmf", "asymvlm-ps",
                "untrained", "length"}, ours
PY
cp -r own torn && truncate -s 100 torn/test/texts.safetensors
want 1 reproduce asymvlm-table --data torn "${small[@]}" --out e1
says "torn/test/texts.safetensors"
check "sets that cannot be read leave no folder behind" test ! -e e1
want 0 eval retrieval --images a/sets/pfe-0.images.safetensors --texts a/sets/pfe-0.texts.safetensors \
    --truth own/truth/test.written.pairs --measure mean --json -q
check "S of pictures is by the caption found" python3 - <<'PY'
import json
e, f = json.load(open("out")), json.load(open("a/results/pfe-0.json"))["values"]["pfe"]
u = e["uncertainty"]
assert abs(u["image_to_text"]["by_hit"]["spearman_s"] - f["i2t_s"]) < 1e-6, (u, f)
assert u["image_to_text"]["by_hit"]["spearman_s"] != u["image_to_text"]["by_query"]["spearman_s"], u
assert abs(u["text_to_image"]["by_query"]["spearman_s"] - f["t2i_s"]) < 1e-6, (u, f)
PY

# what a method cannot do is said, and the others go on
want 0 data ambiguous --out wide --n 80 --texts 20 --text-dim 32 -q
want 0 reproduce grove-table --data wide "${small[@]}" --seeds 1 --out w --json
check "reasons in place of rows" python3 - <<'PY'
import json
r = json.load(open("out"))
reasons = {a["method"]: a["reason"] for a in r["absent"]}
assert "pfe" in reasons and "frozen" in reasons and "64" in reasons["pfe"], reasons
ours = {f["row"] for f in r["figures"] if f["source"] == "here"}
assert not ours & set(reasons), (ours, reasons)
PY
mkdir other && echo 1 >other/file
want 1 reproduce grove-table --data other --out e1
says "is none of the layouts that grove-table reads: {train,val,test}/images.safetensors"
want 2 reproduce grove-table --batch-size 8 --out e2
finish
