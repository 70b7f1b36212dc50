#!/bin/bash
# reproduce: ProLIP's ablation and its inclusion test, with a few steps.
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
models = ["clip", "pcmepp_clip_heads", "pcmepp", "pcmepp_clip", "prolip", "prolip_pairs", "prolip_masked", "prolip_both",
          "prolip_unc", "prolip_half", "prolip_quarter", "prolip_vib_0", "prolip_vib_1e5", "prolip_vib_1e3"]
for m in models:
    assert 0 <= ours[m, "i2t_r1"] <= 100 and 0 < ours[m, "recall"] <= 100, (m, ours)
    assert (m == "clip") == ((m, "text_var") not in ours), (m, ours)  # its heads are not trained
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
scale = lambda stage: float(re.findall(r"Logit Scale: ([0-9.]+)", open(glob.glob("a/runs/%s-0.*/out.log" % stage)[0]).read())[0])
assert all(4.5 < scale(s) < 5.5 for s in ("pcmepp", "pcmepp_clip", "pcmepp_clip_heads")), scale("pcmepp")
assert terms("prolip") == {"Ppcl", "Vib"}, terms("prolip")
assert terms("prolip_pairs") == {"Ppcl", "Vib", "Inclusion"}, terms("prolip_pairs")
assert terms("prolip_masked") == {"Ppcl", "Vib", "Img_inclusion", "Txt_inclusion"}
assert terms("prolip_both") == {"Ppcl", "Vib", "Inclusion", "Img_inclusion", "Txt_inclusion"}
assert terms("prolip_vib_0") == {"Ppcl", "Inclusion", "Img_inclusion", "Txt_inclusion"}
def params(stage):
    text = open(glob.glob("a/runs/%s-0.*/params.txt" % stage)[0]).read()
    return dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
varied = {s: params("prolip_" + s) for s in ("both", "unc", "half", "quarter", "vib_1e5", "vib_1e3")}
hides = {s: (float(v["mask_keep"]), float(v["drop_prob"])) for s, v in varied.items()}
assert hides["both"] == hides["unc"] == hides["vib_1e5"] == (0.25, 0.75), hides
assert hides["half"] == (0.5, 0.5) and hides["quarter"] == (0.75, 0.25), hides
vib = {s: float(v["vib_beta"]) for s, v in varied.items()}
assert vib["both"] == vib["half"] == 1e-4 and vib["vib_1e5"] == 1e-5 and vib["vib_1e3"] == 1e-3, vib
source = lambda s: [l for l in open(glob.glob("a/runs/prolip_%s-0.*/out.log" % s)[0]) if "Log-variance of captions" in l][0]
assert "unc" in source("unc").split("from:")[1] and source("both").split("from:")[1] != source("unc").split("from:")[1]
PY
want 0 "${ablation[@]}" --seeds 2 --out a --json
says "28 of 28 results are there already"
check "the same result" cmp -s first out
rm a/results/prolip_both-1.json
want 0 "${ablation[@]}" --seeds 2 --out a --json
check "what is made again is the same" cmp -s first out
check "another seed is another model" \
    bash -c '! cmp -s a/sets/prolip-0.texts.safetensors a/sets/prolip-1.texts.safetensors'

# what lies in what, recomputed from the sets
inclusion=(reproduce prolip-inclusion --n 60 --max-steps 2 --batch-size 8 -t 1)
want 0 "${inclusion[@]}" --seeds 2 --out i --json
cp out first
cat >share.py <<'PY'
import json, math, struct
def read(path):
    b = open(path, "rb").read()
    n = struct.unpack("<Q", b[:8])[0]
    h = json.loads(b[8:8 + n])
    def rows(key):
        (count, dim), (a, e) = h[key]["shape"], h[key]["data_offsets"]
        flat = struct.unpack("<%df" % (count * dim), b[8 + n + a:8 + n + e])
        return [flat[i * dim:(i + 1) * dim] for i in range(count)]
    ids = [json.loads(l) for l in open(path.replace(".safetensors", ".ids.jsonl"))]
    return [x["id"] for x in ids], rows("mean"), rows("log_var")
def log_inc(m1, l1, m2, l2):  # of int p1^2 p2, up to what both orders share
    s = 0
    for a, u, b, v in zip(m1, l1, m2, l2):
        v1, v2 = math.exp(u), math.exp(v)
        s += -u / 2 - 0.5 * math.log(v1 / 2 + v2) - (a - b) ** 2 / (2 * (v1 / 2 + v2))
    return s
def kl(m1, l1, m2, l2):
    return sum(0.5 * (v - u + (math.exp(u) + (a - b) ** 2) / math.exp(v) - 1)
               for a, u, b, v in zip(m1, l1, m2, l2))
level = {}
for line in open("i/data/shapes/test/captions.jsonl"):
    c = json.loads(line)
    level[c["id"]] = c["level"]
of = {}
for line in open("i/data/shapes/truth/test.pairs"):
    image, text = line.rstrip().split("\t")
    of.setdefault(image, []).append(text)
for stage, seed in ("inclusion", 0), ("plain", 1):
    values = json.load(open("i/results/%s-%d.json" % (stage, seed)))["values"]
    ii, im, iv = read("i/sets/%s-%d.images.safetensors" % (stage, seed))
    ti, tm, tv = read("i/sets/%s-%d.texts.safetensors" % (stage, seed))
    place = {t: k for k, t in enumerate(ti)}
    for kind in "images", "texts":
        n = n_h = n_kl = 0
        for k, image in enumerate(ii):
            texts = sorted((place[t] for t in of[image]))
            general = min(texts, key=lambda t: level[ti[t]])
            exact = max(texts, key=lambda t: level[ti[t]])
            a = (im[k], iv[k]) if kind == "images" else (tm[exact], tv[exact])
            b = (tm[general], tv[general])
            n += 1
            n_h += log_inc(*a, *b) > log_inc(*b, *a)
            n_kl += kl(*a, *b) < kl(*b, *a)
        row = lambda test: values["%s_%s_%s" % (kind, test, stage)]["share"]
        assert abs(row("h") - 100 * n_h / n) < 1e-6, (stage, kind, row("h"), n_h, n)
        assert abs(row("kl") - 100 * n_kl / n) < 1e-6, (stage, kind, row("kl"), n_kl, n)
PY
check "shares by H and by KL" python3 share.py
check "four kinds of pairs by two tests" python3 - <<'PY'
import json
r = json.load(open("first"))
ours = {(f["row"], f["figure"]): f["value"] for f in r["figures"] if f["source"] == "here"}
assert len({row for row, _ in ours}) == 8 and len(ours) == 24, ours
assert all(0 <= v <= (1 if f == "auroc" else 100) for (_, f), v in ours.items()), ours
PY
want 0 "${inclusion[@]}" --seeds 2 --out i --json
says "4 of 4 results are there already"
check "the same result" cmp -s first out
rm i/results/plain-0.json
want 0 "${inclusion[@]}" --seeds 2 --out i --json
check "what is made again is the same" cmp -s first out
finish
