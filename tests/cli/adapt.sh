#!/bin/bash
# adapt train, apply and methods; and that every command refuses sets of chains that do not agree.
source "$(dirname "$0")/common/lib.sh"
make_small
want 0 embed -m model --images shapes/test -o i.safetensors -q
want 0 embed -m model --texts shapes/test/captions.jsonl -o t.safetensors -q
truth=shapes/truth/test.pairs

want 0 adapt methods
prints "conformity"
prints "Whitened CLIP"
prints "embed --ttda N"
prints "--uncertain --shrinkage"
want 0 adapt methods --json
check "every method tells all of itself" python3 - <<'PY'
import json
methods = json.load(open("out"))["methods"]
names = [m["name"] for m in methods]
assert names[:2] == ["conformity", "whitened"] and len(set(names)) == len(names)
assert "bayesvlm" in names
assert methods[1]["options"] == ["uncertain", "shrinkage"] and methods[1]["measure"] == "mean"
assert all(m["learns"] and m["paper"] and m["cost"] for m in methods)
assert not any(m["needs_pairs"] or m["trains"] for m in methods[:2])
trained = {m["name"]: m for m in methods if m["trains"]}
assert {"asymvlm-vmf", "asymvlm-ps", "pfe", "pcme", "pcmepp", "prolip", "probvlm", "deterministic"} <= set(trained)
assert "ablation" in trained["asymvlm-ps"]["options"] and "normaliser" not in trained["asymvlm-ps"]["options"]
grove = methods[names.index("grove")]
assert grove["needs_pairs"] and grove["trains"] and "per_output" in grove["options"]
PY

for method in conformity whitened bayesvlm; do
    want 0 adapt train --method $method --images i.safetensors --texts t.safetensors --out $method
    check "both sides were learned" test "$(grep -c 'learned from' out)" -eq 2
    want 0 adapt apply --adapter $method --images i.safetensors -o i.$method.safetensors
    prints "compared by"
    want 0 adapt apply --adapter $method --texts t.safetensors -o t.$method.safetensors
done

# the uncertainty of a row is the figure, by python from the frozen means
check "conformity is the cosine to the mean" python3 - <<'PY'
import json, math, struct
def load(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    def array(name):
        a = head[name]
        rows, width = a["shape"]
        at = 8 + n + a["data_offsets"][0]
        flat = struct.unpack("<%df" % (rows * width), data[at:at + 4 * rows * width])
        return [flat[i * width:(i + 1) * width] for i in range(rows)]
    return head["__metadata__"], array
meta, frozen = load("i.safetensors")
x = frozen("mean")
length = lambda v: math.sqrt(sum(c * c for c in v))
unit = [[c / length(row) for c in row] for row in x]
mean = [sum(col) / len(unit) for col in zip(*unit)]
adapted, arrays = load("i.conformity.safetensors")
assert arrays("mean") == x
for row, log_var in zip(unit, arrays("log_var")):
    wanted = 1 - sum(a * b for a, b in zip(row, mean)) / length(mean)
    assert abs(sum(math.exp(v) for v in log_var) - max(wanted, 1e-6)) < 1e-5
assert meta["version"] == "1" and "adapters" not in meta and adapted["version"] == "2"
assert adapted["weights_sha256"] == meta["weights_sha256"]
PY
check "the link is the hash of config.json" test "$(sha256sum <conformity/config.json | cut -d' ' -f1)" = \
    "$(python3 -c 'import json
data = open("i.conformity.safetensors", "rb").read()
head = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
print(json.loads(head["__metadata__"]["adapters"])[0]["sha256"])')"

# info prints the chain
want 0 info i.safetensors --json
check "a chain of one link" python3 -c '
import json
r = json.load(open("out"))
assert [l["kind"] for l in r["provenance"]] == ["weights"]
assert r["provenance"][0]["sha256"] == r["weights_sha256"]'
want 0 info i.whitened.safetensors
prints "adapter"
want 0 info i.whitened.safetensors --json
check "a chain of two" python3 -c '
import json
r = json.load(open("out"))
assert [(l["kind"], l["name"]) for l in r["provenance"]] == [("weights", "model"), ("adapter", "whitened")]'
want 0 info whitened
prints "learned from"
prints "text_shrinkage"
want 0 info whitened --json
prints '"kind": "adapter"'

# ranking by mean does not change and is what these sets ask for; results say what rows went through
want 0 eval retrieval --images i.safetensors --texts t.safetensors --truth $truth --measure mean \
    --bootstrap 0 --json
cp out frozen.json
want 0 eval retrieval --images i.whitened.safetensors --texts t.whitened.safetensors \
    --truth $truth --bootstrap 0 --json
check "the same ranking" python3 -c '
import json
a, b = json.load(open("frozen.json")), json.load(open("out"))
assert a["metrics"] == b["metrics"]
assert "adapters" not in a["provenance"] and b["provenance"]["adapters"][0]["name"] == "whitened"
assert b["pretrained"].startswith(a["pretrained"] + "+whitened-")'

# chains that do not agree: both are named, by every command that compares
refused() {
    want 1 "$@"
    says "> whitened"
    says "does not leave"
}
refused eval retrieval --images i.safetensors --texts t.whitened.safetensors --truth $truth
refused eval retrieval --images i.whitened.safetensors --texts t.safetensors --truth $truth
refused eval compare --images i.safetensors --texts t.whitened.safetensors --truth $truth
refused search --index i.whitened.safetensors --queries t.safetensors
refused search --index i.whitened.safetensors -m model --query-text 'a red star'
refused search --inclusion contains --index i.whitened.safetensors --queries t.safetensors
refused calibrate --images i.whitened.safetensors --texts t.safetensors --truth $truth
refused report --images i.whitened.safetensors --texts t.safetensors --truth $truth --out page.html
refused classify -m model --images i.whitened.safetensors --classnames star,ring
want 1 eval retrieval --images i.conformity.safetensors --texts t.whitened.safetensors --truth $truth
says "> conformity"
says "> whitened"
says "adapt both with one adapter"

# a calibration of frozen rows does not speak of adapted ones; the model is untrained, so that what
# belongs together here is what it takes for near
want 0 search --index i.safetensors --queries t.safetensors --measure mean -k 1 --json
python3 - <<'PY'
import json
hits = json.load(open("out"))["hits"]
ids = [json.loads(line)["id"] for line in open("t.ids.jsonl")]
assert len(hits) == len(ids)
open("near.pairs", "w").writelines("%s\t%s\n" % (h["id"], t) for h, t in zip(hits, ids))
PY
want 0 calibrate --images i.safetensors --texts t.safetensors --truth near.pairs --measure mean \
    --out frozen.calibration.json
want 1 search --index i.whitened.safetensors --queries t.whitened.safetensors --measure mean \
    --calibration frozen.calibration.json
says "> whitened"
want 0 calibrate --images i.whitened.safetensors --texts t.whitened.safetensors \
    --truth near.pairs --measure mean --json
prints '"adapters"'
want 0 search --index i.whitened.safetensors --queries t.whitened.safetensors --measure mean --json
prints '"p_match_by": "calibration"'
want 0 search --index i.safetensors --queries t.safetensors --measure mean --json \
    --calibration none
want 1 search --index i.safetensors --queries t.safetensors --measure mean \
    --calibration i.whitened.calibration.json
says "> whitened"

# an adapter of captions alone leaves pictures alone
want 0 adapt train --method conformity --texts t.safetensors --out captions
prints "left alone"
want 0 adapt apply --adapter captions --texts t.safetensors -o t.captions.safetensors -q
want 0 eval retrieval --images i.safetensors --texts t.captions.safetensors --truth $truth \
    --measure mean --bootstrap 0
want 1 eval retrieval --images i.whitened.safetensors --texts t.captions.safetensors --truth $truth
says "adapt both"
want 1 adapt apply --adapter captions --images i.safetensors -o x.safetensors
says "leaves image embeddings alone"
check "nothing was written" test ! -e x.safetensors

# .npy in and out keeps the chain
want 0 adapt apply --adapter whitened --images i.safetensors -o ni.npy -q
want 0 eval retrieval --images ni.npy --texts t.whitened.safetensors --truth $truth --bootstrap 0
want 1 eval retrieval --images ni.npy --texts t.safetensors --truth $truth
says "> whitened"
want 0 embed -m model --images shapes/test -o bare.npy -q
want 0 adapt train --method whitened --images bare.npy --out npy
want 0 adapt apply --adapter npy --images bare.npy -o fromnpy.safetensors

# truth chooses rows; another adapter comes of it
want 0 adapt train --method whitened --images i.safetensors --texts t.safetensors --truth $truth \
    --out chosen --json
prints '"method": "whitened"'
head -3 $truth >few.pairs
want 0 adapt train --method whitened --images i.safetensors --texts t.safetensors --truth few.pairs \
    --out few --json
check "other rows, another hash" test "$(sha256sum <few/config.json)" != "$(sha256sum <chosen/config.json)"
want 0 adapt train --method whitened --images i.safetensors --texts t.safetensors --truth $truth \
    --share 0.5 --out half --json
check "half of the pictures" python3 -c '
import json
rows = [json.load(open("%s/config.json" % name))["images"]["rows"] for name in ("half", "chosen")]
assert rows[0] == round(rows[1] / 2), rows'
want 2 adapt train --method whitened --images i.safetensors --texts t.safetensors --share 0.5 --out none
says "choose pairs of a --truth file"
want 0 adapt train --method whitened --images i.safetensors --shrinkage 1 --uncertain common \
    --out other --json
prints '"uncertain": "common"'

# methods that train: on captions with their lengths, pictures left alone
want 0 embed -m model --texts shapes/test/captions.jsonl --raw -o raw.safetensors -q
check "raw rows have lengths, and say so" python3 -c '
import json, struct
def load(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    a = head["mean"]
    at = 8 + n + a["data_offsets"][0]
    rows, dim = a["shape"]
    x = struct.unpack("<%df" % (rows * dim), data[at:at + 4 * rows * dim])
    return head["__metadata__"], [x[i * dim:(i + 1) * dim] for i in range(rows)]
meta, raw = load("raw.safetensors")
plain, unit = load("t.safetensors")
assert meta["preprocess"].endswith(", lengths kept") and meta["weights_sha256"] == plain["weights_sha256"]
for r, u in zip(raw, unit):
    length = sum(v * v for v in r) ** 0.5
    assert abs(length - 1) > 1e-3 and all(abs(a / length - b) < 1e-5 for a, b in zip(r, u))'
pairs=(--images i.safetensors --texts raw.safetensors --truth $truth)
held=(--val-images i.safetensors --val-texts raw.safetensors --val-truth $truth)
tiny=(--hidden 16 --batch-size 8 --steps 12 --threads 1)
for method in asymvlm-vmf asymvlm-ps pfe pcme pcmepp prolip probvlm deterministic; do
    want 0 adapt train --method $method "${pairs[@]}" "${held[@]}" "${tiny[@]}" --out $method
    prints "recipe small"
    prints "val_loss"
    want 0 adapt apply --adapter $method --texts raw.safetensors -o r.$method.safetensors
    left=i.safetensors
    if ! grep -q '"adapted": false' $method/config.json; then
        want 0 adapt apply --adapter $method --images i.safetensors -o i.$method.safetensors
        left=i.$method.safetensors
    fi
    want 0 eval retrieval --images $left --texts r.$method.safetensors --truth $truth --bootstrap 0 \
        --measure mean
done
# PCME's sets carry the a and b it learned, and match_prob takes them
want 0 info r.pcme.safetensors --json
carried=$(grep -oE '"match_[ab]": [0-9.]+' out | sort)
check "both are carried, and are no longer 15" test "$(grep -vc ': 15\.0$' <<<"$carried")" -eq 2
want 0 eval retrieval --images i.pcme.safetensors --texts r.pcme.safetensors --truth $truth \
    --bootstrap 0 --measure match_prob --json
check "and are what it is compared by" test "$(grep -oE '"match_[ab]": [0-9.]+' out | sort)" = "$carried"

# likelihoods of Gaussians are those of their means, and the result says so
auto=(eval retrieval --images i.safetensors --texts r.asymvlm-ps.safetensors --truth $truth --bootstrap 0 --json)
want 0 "${auto[@]}"
prints '"measure": "power_spherical"'
prints '"taken_as_points": "images"'
metrics() { python3 -c 'import json; print(json.load(open("out"))["metrics"])'; }
metrics >gaussians
python3 - <<'PY'
import json, shutil, struct
data = open("i.safetensors", "rb").read()
n = struct.unpack("<Q", data[:8])[0]
head = json.loads(data[8:8 + n])
a, b = head["mean"]["data_offsets"]
meta = dict(head["__metadata__"], family="point")
mean = dict(head["mean"], data_offsets=[0, b - a])
text = json.dumps({"__metadata__": meta, "mean": mean}).encode()
text += b" " * (-len(text) % 8)
open("means.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data[8 + n + a:8 + n + b])
shutil.copy("i.ids.jsonl", "means.ids.jsonl")
PY
want 0 "${auto[@]/i.safetensors/means.safetensors}"
check "of points there is nothing to say" python3 -c 'assert "taken_as" not in open("out").read()'
metrics >points
check "Gaussians rank as their means do" cmp gaussians points
want 0 search --index i.safetensors --queries r.asymvlm-ps.safetensors -k 1 --json
prints '"taken_as_points": "index"'
# what ProbVLM did not learn stands apart from what is vague in itself; the whole is the default
sides=(--images i.probvlm.safetensors --texts r.probvlm.safetensors)
for kind in auto aleatoric epistemic; do
    want 0 eval retrieval "${sides[@]}" --truth $truth --bootstrap 0 --uncertainty $kind --json
    cp out by.$kind.json
    want 0 search --index r.probvlm.safetensors --queries i.probvlm.safetensors -k 3 --uncertainty $kind --json
    cp out hits.$kind.json
done
check "aleatoric and epistemic are the whole" python3 - <<'PY'
import json
by = {k: json.load(open("by.%s.json" % k))["uncertainty"]["kind"] for k in ("auto", "aleatoric", "epistemic")}
assert by == {"auto": "gg_var", "aleatoric": "aleatoric", "epistemic": "epistemic"}, by
u = {k: [h["uncertainty"] for h in json.load(open("hits.%s.json" % k))["hits"]] for k in by}
for whole, a, e in zip(u["auto"], u["aleatoric"], u["epistemic"]):
    assert a > 0 and e > 0 and abs(whole - a - e) <= 2e-5 * whole + 2e-6, (whole, a, e)
PY
want 0 curate select --set r.probvlm.safetensors -n 3 --uncertainty epistemic
want 0 adapt attach model probvlm --out with-parts
want 0 embed -m with-parts --texts shapes/test/captions.jsonl -o p.safetensors -q
want 0 curate select --set p.safetensors -n 3 --uncertainty epistemic
want 1 search --index r.pfe.safetensors --queries i.pfe.safetensors --uncertainty epistemic
says "no uncertainty 'epistemic'; use trace"
want 0 adapt train --method probvlm "${pairs[@]}" "${tiny[@]}" --mc-samples 0 --out one-pass
want 0 adapt apply --adapter one-pass --texts raw.safetensors -o one.safetensors
want 1 curate select --set one.safetensors -n 3 --uncertainty epistemic
says "use gg_var"
want 0 adapt train --method asymvlm-ps "${pairs[@]}" "${tiny[@]}" --out g
says "power_spherical takes their means as points"
want 1 adapt apply --adapter asymvlm-vmf --images i.safetensors -o x.safetensors
says "leaves image embeddings alone"
want 1 adapt apply --adapter asymvlm-vmf --texts t.safetensors -o x.safetensors
says "embed with --raw"

# the seed decides, and a run goes on to the same bytes
want 0 adapt train --method asymvlm-ps "${pairs[@]}" "${held[@]}" "${tiny[@]}" --out again
check "the same bytes" cmp asymvlm-ps/config.json again/config.json
want 0 adapt train --method asymvlm-ps "${pairs[@]}" "${held[@]}" "${tiny[@]}" --seed 1 --out seed
check "another seed, other bytes" test "$(sha256sum <seed/model.safetensors)" != "$(sha256sum <again/model.safetensors)"
run=("${pairs[@]}" "${held[@]}" "${tiny[@]}" --logs logs --name ps)
want 0 adapt train --method asymvlm-ps "${run[@]}" --out kept
check "a run changes nothing" cmp again/model.safetensors kept/model.safetensors
check "a run is kept" test -s logs/ps/results.jsonl -a -e logs/ps/checkpoints/latest/head.safetensors
want 1 adapt train --method asymvlm-ps "${run[@]}" --out kept
says "already holds a run"
want 0 adapt train --method asymvlm-ps "${run[@]}" --resume latest --out resumed
check "the same bytes at its end" cmp kept/config.json resumed/config.json
want 1 adapt train --method pfe "${run[@]}" --resume latest --out x

# options of single methods
want 0 adapt train --method asymvlm-vmf "${pairs[@]}" "${tiny[@]}" --ablation gaussian --out g --json
prints '"measure": "elk"'
want 0 adapt train --method asymvlm-vmf "${pairs[@]}" "${tiny[@]}" --normaliser exact --out g --json
prints '"measure": "vmf_exact"'
want 0 adapt train --method probvlm "${pairs[@]}" "${tiny[@]}" --likelihood true --mc-samples 0 --out g
want 1 adapt train --method pfe "${pairs[@]}" "${tiny[@]}" --ablation gaussian --out x
says "pfe does not read the option ablation"
want 1 adapt train --method pfe "${pairs[@]}" --batch-size 32768 --out x
says "batches of 32768, but an epoch has"
want 1 adapt train --method pfe --images i.safetensors --texts raw.safetensors --out x
says "the truth is missing"
head -1 $truth >one.pairs
want 1 adapt train --method pfe --images i.safetensors --texts raw.safetensors --truth one.pairs --out x
says "the truth has 1 pair"
want 2 adapt train --method pfe "${pairs[@]}" --val-images i.safetensors --out x
says "come together"
want 2 adapt train --method whitened "${pairs[@]}" "${held[@]}" --out x
says "whitened reads no held-out rows"
want 2 adapt train --method pfe "${pairs[@]}" --resume latest --out x
says "give --logs"

# grove: both sides and pairs; the same seed gives the same adapter
grove="--method grove --images i.safetensors --texts t.safetensors --truth $truth --latent-dim 3 --inducing 12"
want 0 adapt train $grove --epochs 2 --batch-size 16 --out grove --seed 3
prints "text_noise"
want 0 adapt train $grove --epochs 2 --batch-size 16 --out again --seed 3 -q
check "the same bytes" cmp grove/model.safetensors again/model.safetensors
want 0 adapt train $grove --epochs 2 --shared-covariance --kernel matern32 --align js --out shared -q
want 0 adapt train $grove --epochs 5 --fit collapsed --out collapsed --json
prints '"fit": "collapsed"'
want 0 adapt train $grove --epochs 1 --per-output --out mixed -q
want 0 adapt train $grove --epochs 2 --out whole -q --seed 3
want 0 adapt train $grove --epochs 2 --out kept -q --seed 3 --logs runs --name grove
check "a run that is kept ends in the same bytes" cmp whole/model.safetensors kept/model.safetensors
want 0 adapt train $grove --epochs 2 --out resumed -q --seed 3 --logs runs --name grove --resume latest
check "so does one that is resumed at its end" cmp whole/model.safetensors resumed/model.safetensors
want 1 adapt train $grove --per-output --fit collapsed --out x
says "no fit but steps"

# factors were once written in blocks of 64 columns
for kind in "" --shared-covariance --per-output; do
    want 0 adapt train $grove --inducing 40 --epochs 1 $kind --out "now$kind" -q
    rm -rf "before$kind" && cp -r "now$kind" "before$kind"
    check "factors$kind in the blocks of before" python3 - "before$kind" <<'PY'
import hashlib, json, struct, sys
folder, arrays = sys.argv[1], {}
data = open(folder + "/model.safetensors", "rb").read()
n = struct.unpack("<Q", data[:8])[0]
head, body, out = json.loads(data[8:8 + n]), data[8 + n:], b""
M, WIDTH = 40, 32
def widen(x, size):
    """Lists of F lower triangles of 40: 40 columns beside each other for 32 and the 8 behind them."""
    each = M * WIDTH + (M - WIDTH) ** 2
    lists = 1 if size == 8 or per_output == 0 else per_output
    F = len(x) // size // each // lists
    assert F * lists * each * size == len(x)
    made = b""
    for l in range(lists):
        at = lambda i, k: x[(l * F * each + i) * size:(l * F * each + i + k) * size]
        for r in range(M):
            for f in range(F):
                tail = M * F * WIDTH + ((r - WIDTH) * F + f) * (M - WIDTH)
                made += at((r * F + f) * WIDTH, WIDTH)
                made += at(tail, M - WIDTH) if r >= WIDTH else bytes((M - WIDTH) * size)
    return made
for name in sorted((k for k in head if k != "__metadata__"), key=lambda k: head[k]["data_offsets"]):
    t = head[name]
    part = body[t["data_offsets"][0]:t["data_offsets"][1]]
    mixing = head.get(name.split(".")[0] + ".mixing")
    per_output = mixing["shape"][0] if mixing else 0
    if name.endswith(".factors"):
        size = 8 if t["dtype"] == "F64" else 4
        part = widen(part, size)
        t["shape"] = [len(part) // size]
    t["data_offsets"] = [len(out), len(out) + len(part)]
    out += part
    sizes = "".join("%d," % d for d in t["shape"])
    arrays[name] = b"%s\0%s\0%s\0" % (name.encode(), t["dtype"].encode(), sizes.encode()) + part
text = json.dumps(head).encode()
text += b" " * (-len(text) % 8)
open(folder + "/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + out)
config = json.load(open(folder + "/config.json"))
config["arrays_sha256"] = hashlib.sha256(b"".join(arrays[k] for k in sorted(arrays))).hexdigest()
json.dump(config, open(folder + "/config.json", "w"))
PY
    for when in now before; do
        want 0 adapt apply --adapter "$when$kind" --texts t.safetensors -o "t.$when.safetensors" -q
    done
    check "are read$kind" cmp <(tail -c 4096 t.now.safetensors) <(tail -c 4096 t.before.safetensors)
done
for method in grove shared collapsed mixed; do
    want 0 adapt apply --adapter $method --images i.safetensors -o i.$method.safetensors -q
    want 0 adapt apply --adapter $method --texts t.safetensors -o t.$method.safetensors -q
done
want 0 eval retrieval --images i.grove.safetensors --texts t.grove.safetensors --truth $truth --measure w2 --bootstrap 0
want 1 eval retrieval --images i.grove.safetensors --texts t.safetensors --truth $truth
says "grove"
want 1 adapt train --method grove --images i.safetensors --texts t.safetensors --out x
says "the truth is missing"
want 1 adapt train $grove --inducing 60000 --out x
says "at most one a pair"
want 1 adapt train $grove --latent-dim 1024 --out x
says "latent-dim must be below it"
want 2 adapt train $grove --kernel wave --out x
want 1 adapt train $grove --shrinkage 0.5 --out x
says "does not read the option shrinkage"

# wrong use
want 2 adapt train --method whitened --out x
says "--images or --texts"
want 2 adapt train --method dream --images i.safetensors --out x
want 2 adapt train --method whitened --images i.safetensors --truth $truth --out x
says "give --images and --texts"
want 2 adapt train --method whitened --images i.safetensors --split train --out x
want 2 adapt train --method whitened --images i.safetensors --shrinkage 2 --out x
want 2 adapt apply --adapter whitened --images i.safetensors --texts t.safetensors -o x.safetensors
want 2 adapt apply --adapter whitened -o x.safetensors
want 1 adapt apply --adapter whitened --images i.safetensors -o x.txt
says ".safetensors|.npy"
want 1 adapt train --method conformity --images i.safetensors --shrinkage 0.5 --out x
says "does not read the option shrinkage"
want 1 adapt train --method whitened --images t.safetensors --out x
says "given as the images"
want 1 adapt train --method whitened --images i.safetensors --out model
says "no adapter's"
check "the model is still there" test -s model/config.json
want 1 adapt apply --adapter model --images i.safetensors -o x.safetensors
says "penumbra-adapter"
want 1 adapt apply --adapter missing --images i.safetensors -o x.safetensors
want 1 adapt apply --adapter whitened --images i.whitened.safetensors -o x.safetensors
says "> whitened"
want 0 init --config tiny --override "$small_config" --tokenizer tok.json --out model2 --seed 9 -q
want 0 embed -m model2 --images shapes/test -o i2.safetensors -q
want 1 adapt apply --adapter whitened --images i2.safetensors -o x.safetensors
says "embeddings of model2"
says "learned from embeddings of model "
head -c 200 i.safetensors >torn.safetensors
want 1 adapt train --method whitened --images torn.safetensors --out x
check "no folder of a failure" test ! -e x
finish
