#!/bin/bash
# reproduce: ProLIP's ablation, with a few steps.
source "$(dirname "$0")/common/lib.sh"

ablation=(reproduce prolip-ablation --n 60 --max-steps 2 --batch-size 8 -t 1)
want 0 "${ablation[@]}" --seeds 2 --out a --json
cp out first
check "every model and the paper's lines" python3 - <<'PY'
import json
r = json.load(open("first"))
paper = {(f["row"], f["figure"]): f["value"] for f in r["figures"] if f["source"] == "paper"}
assert paper["prolip_both", "recall"] == 54.8 and paper["pcmepp_clip_heads", "image_var"] == 0.016, paper
assert ("clip", "image_var") not in paper and ("prolip", "i2t_r1") not in paper, paper
ours = {(f["row"], f["figure"]): f["value"] for f in r["figures"] if f["source"] == "here"}
models = ["clip", "pcmepp_clip_heads", "pcmepp", "pcmepp_clip", "prolip", "prolip_pairs", "prolip_masked", "prolip_both"]
for m in models:
    assert 0 <= ours[m, "i2t_r1"] <= 100 and 0 < ours[m, "recall"] <= 100, (m, ours)
    assert m == "clip" or (ours[m, "image_var"] > 0 and ours[m, "text_var"] > 0), (m, ours)
assert {m for m, f in ours if f == "recall"} == set(models) and ("prolip", "top1") not in ours, ours
PY
check "each is trained by its own terms" python3 - <<'PY'
import glob, re
def terms(stage):
    log = open(glob.glob("a/runs/%s-0.*/out.log" % stage)[0]).read()
    line = [l for l in log.splitlines() if "Train Epoch" in l][-1]
    return set(re.findall(r" ([A-Z][a-z_]+): [0-9.e+-]+ \(", line)) - {"Scale", "Loss"}
assert terms("clip") == {"Clip"}, terms("clip")
assert terms("pcmepp") == {"Pcmepp", "Vib"}, terms("pcmepp")
assert terms("pcmepp_clip") == terms("pcmepp_clip_heads") == {"Pcmepp", "Clip", "Vib"}
assert terms("prolip") == {"Ppcl", "Vib"}, terms("prolip")
assert terms("prolip_pairs") == {"Ppcl", "Vib", "Inclusion"}, terms("prolip_pairs")
assert terms("prolip_masked") == {"Ppcl", "Vib", "Img_inclusion", "Txt_inclusion"}
assert terms("prolip_both") == {"Ppcl", "Vib", "Inclusion", "Img_inclusion", "Txt_inclusion"}
PY
want 0 "${ablation[@]}" --seeds 2 --out a --json
says "16 of 16 results are there already"
check "the same result" cmp -s first out
rm a/results/prolip_both-1.json
want 0 "${ablation[@]}" --seeds 2 --out a --json
check "what is made again is the same" cmp -s first out
check "another seed is another model" \
    bash -c '! cmp -s a/sets/prolip-0.texts.safetensors a/sets/prolip-1.texts.safetensors'
finish
