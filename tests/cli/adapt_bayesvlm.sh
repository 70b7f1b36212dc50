#!/bin/bash
# adapt train --method bayesvlm: factors of the rows, factors as they were released, both priors.
source "$(dirname "$0")/common/lib.sh"
make_small
want 0 embed -m model --images shapes/test -o i.safetensors -q
want 0 embed -m model --texts shapes/test/captions.jsonl -o t.safetensors -q
train() { want "$1" adapt train --method bayesvlm --images i.safetensors --texts t.safetensors "${@:2}"; }

train 0 --out own
prints "image_lambda"
prints "text_projection"
want 0 adapt apply --adapter own --texts t.safetensors -o t.own.safetensors
want 0 adapt apply --adapter own --images i.safetensors -o i.own.safetensors

# predictions by cosines of their own variance: p(match) and classes
want 0 adapt attach model own --out laplace
for how in plain probit sampling; do
    want 0 search --index i.own.safetensors --queries t.own.safetensors -k 4 --predict $how --json
    cp out hits.$how.json
    want 0 classify --images shapes/test -m laplace --classnames star,circle --templates simple \
        --predict $how --predictions p.$how.jsonl --json
    cp out classes.$how.json
done
check "probit and sampling are what the formulas say of the sets" python3 - <<'PY'
import json, math, struct
def load(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    def rows(name):
        (count, dim), (a, b) = head[name]["shape"], head[name]["data_offsets"]
        x = struct.unpack("<%df" % (count * dim), data[8 + n + a:8 + n + b])
        return [x[i * dim:(i + 1) * dim] for i in range(count)]
    return head["__metadata__"], rows("mean"), [[math.exp(l) for l in r] for r in rows("log_var")]
meta, im, iv = load("i.own.safetensors")
_, tm, tv = load("t.own.safetensors")
a, b = float(meta["logit_scale"]), float(meta["logit_bias"])
def moments(m, u, n, v):
    x, y = sum(p * p for p in m) + sum(u), sum(p * p for p in n) + sum(v)
    mean = sum(p * q for p, q in zip(m, n)) / math.sqrt(x * y)
    return mean, sum((p * p + s) * t + s * q * q for p, s, q, t in zip(m, u, n, v)) / (x * y)
s = lambda z: 1 / (1 + math.exp(-z))
hits = {h: json.load(open("hits.%s.json" % h)) for h in ("plain", "probit", "sampling")}
assert "prediction" not in hits["plain"] and hits["probit"]["prediction"] == "probit"
place = {}
for at, (p, q, d) in enumerate(zip(*(hits[h]["hits"] for h in ("plain", "probit", "sampling")))):
    m, v = moments(tm[at // 4], tv[at // 4], im[q["row"]], iv[q["row"]])
    assert p["row"] == q["row"] == d["row"] and abs(p["p_match"] - s(a * p["score"] + b)) < 2e-4
    assert abs(q["p_match"] - s((a * m + b) / math.sqrt(1 + math.pi / 8 * a * a * v))) < 1e-4, (q, m, v)
    wanted = n = 0.0
    for k in range(2001):
        e = -8 + 16 * k / 2000
        wanted += math.exp(-e * e / 2) * s(a * (m + math.sqrt(v) * e) + b)
        n += math.exp(-e * e / 2)
    assert abs(d["p_match"] - wanted / n) < 0.05, (d, wanted / n)
classes = {h: json.load(open("classes.%s.json" % h)) for h in hits}
assert classes["probit"]["prediction"] == "probit" and "prediction" not in classes["plain"]
top = {h: [json.loads(l)["best"][0]["probability"] for l in open("p.%s.jsonl" % h)] for h in hits}
assert top["probit"] != top["plain"] != top["sampling"], top
PY
want 1 search --index i.safetensors --queries t.own.safetensors --predict probit --measure csd
want 2 search --index i.own.safetensors --queries t.own.safetensors --predict probit --min-probability 0.2
says "lists end by plain scores"
want 2 search --index i.own.safetensors --queries t.own.safetensors --draws 5
says "--draws needs --predict sampling"
want 0 search --index i.own.safetensors --queries t.own.safetensors --predict sampling --draws 5 --html page.html
want 2 search --inclusion contains --index i.own.safetensors --queries t.own.safetensors --predict probit
want 1 search --index i.own.safetensors --queries t.own.safetensors --predict probit --measure w2
says "--measure mean, not w2"
zero=(classify --images shapes/test -m laplace --classnames star,circle)
want 2 "${zero[@]}" --predict plain --draws 5
want 2 "${zero[@]}" --predict sampling --draws 5 --none dummy
says "drawn probabilities are among the classes"
train 0 --marginal released --out other
train 0 --loss siglip --logit-scale 10 --logit-bias -10 --pseudo-count 10 --out sigmoids
want 0 info sigmoids
prints "image_count"
train 2 --prior-precision 0 --out zero

# what BayesVLM's code saves: one tensor a file, factors and prior of the adapter above
python3 - <<'PY'
import json, pickle, struct, sys, types, zipfile, os
data = open("own/model.safetensors", "rb").read()
n = struct.unpack("<Q", data[:8])[0]
head = json.loads(data[8:8 + n])
bytes_of = lambda name: data[8 + n + head[name]["data_offsets"][0]:8 + n + head[name]["data_offsets"][1]]
torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
class DoubleStorage: pass
DoubleStorage.__module__, DoubleStorage.__qualname__ = "torch", "DoubleStorage"
def _rebuild_tensor_v2(*a): pass
_rebuild_tensor_v2.__module__ = "torch._utils"
torch.DoubleStorage, torch._utils, utils._rebuild_tensor_v2 = DoubleStorage, utils, _rebuild_tensor_v2
sys.modules["torch"], sys.modules["torch._utils"] = torch, utils
class Storage: pass
class Tensor:
    def __init__(self, d): self.d = d
    def __reduce__(self):
        s = Storage()
        s.d = self.d
        return _rebuild_tensor_v2, (s, 0, (self.d, self.d), (self.d, 1), False, {})
class Pickler(pickle._Pickler):
    def persistent_id(self, x):
        return ("storage", DoubleStorage, "0", "cpu", x.d * x.d) if isinstance(x, Storage) else None
os.mkdir("hessians")
prior = {}
for ours, theirs in (("image", "img"), ("text", "txt")):
    for factor in "ab":
        name = "%s.%s" % (ours, factor)
        with zipfile.ZipFile("hessians/%s_%s_analytic.pt" % (factor.upper(), theirs), "w") as z:
            with z.open("archive/data.pkl", "w") as f:
                Pickler(f, 2).dump(Tensor(head[name]["shape"][0]))
            z.writestr("archive/data/0", bytes_of(name))
            z.writestr("archive/version", "3\n")
    prior["n_" + theirs], prior["lambda_" + theirs] = struct.unpack("<2d", bytes_of(ours + ".prior"))
json.dump(prior, open("hessians/prior_precision_analytic.json", "w"))
PY
train 0 --hessians hessians --out files
want 0 adapt apply --adapter files --texts t.safetensors -o t.files.safetensors
check "files of the same factors make the same rows" python3 - <<'PY'
def array(path):
    data = open(path, "rb").read()
    return data[8 + int.from_bytes(data[:8], "little"):]
assert array("t.own.safetensors") == array("t.files.safetensors")
PY
train 0 --hessians hessians --pseudo-count 10 --out again
want 0 info again --json
check "another count has another prior" python3 -c '
import json
r = json.load(open("out"))
prior = json.load(open("hessians/prior_precision_analytic.json"))
f = json.load(open("again/config.json"))["figures"]
assert f["image_count"] == 10 and f["image_lambda"] != prior["lambda_img"]'
cp hessians/prior_precision_analytic.json prior.json
sed -i 's/lambda_txt/lambda_text/' hessians/prior_precision_analytic.json
train 1 --hessians hessians --out broken
says "error: hessians/prior_precision_analytic.json: lambda_txt is missing or not above 0"
cp prior.json hessians/prior_precision_analytic.json
cp own/model.safetensors hessians/B_txt_analytic.pt
train 1 --hessians hessians --out broken
says "wanted one"
rm hessians/B_txt_analytic.pt
train 1 --hessians hessians --out broken
says "B_txt_analytic.pt"
want 1 adapt train --method whitened --images i.safetensors --hessians hessians --out broken
says "whitened has no use for Hessians"
finish
