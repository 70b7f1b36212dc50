#!/bin/bash
# data corrupt and eval noise: what was done to each sample stands in its record and its row, every
# figure again by its definition, and a model that knows nothing finds nothing.
here=$(cd "$(dirname "$0")" && pwd)
source "$here/common/lib.sh"
cp "$here/common/ranks.py" .
make_small
want 0 data shapes --out clean --n 60 --seed 5 --shard-size 20 --val-share 0 --test-share 0 -q

# doses
want 0 data corrupt --data clean/train --change erase --max-dose 0.5 --out erased --split test --json
has_keys dir reused n_images change n_swapped n_skipped
cat >records.py <<'END'
import glob, json, tarfile
def records(folder):
    out = {}
    for path in sorted(glob.glob(folder + "/*.tar")):
        with tarfile.open(path) as tar:
            for m in tar.getmembers():
                if m.name.endswith(".json"):
                    key = m.name[:-5]
                    assert key not in out
                    out[key] = json.load(tar.extractfile(m))
    return out
END
check "doses up to 0.5, captions as they were" python3 -c '
from records import *
clean, erased = records("clean/train"), records("erased/test")
assert list(clean) == list(erased) and len(clean) == 60
doses = [r["dose"] for r in erased.values()]
assert 0 <= min(doses) < 0.1 and 0.4 < max(doses) <= 0.5 and len(set(doses)) == 60
for k, r in erased.items():
    assert r["dose_kind"] == "erase" and "swapped" not in r
    assert all(r[f] == clean[k][f] for f in ("captions", "levels", "caption_ids", "shapes"))'
want 0 embed -m model --images erased/test -o e.safetensors -q
check "rows carry the dose" test "$(grep -c '"dose": 0\.' e.ids.jsonl)" -eq 60
want 0 eval uncertainty --images e.safetensors --texts e.safetensors --entropy dose --bootstrap 20
prints "Of 60 pictures the uncertainty follows what is known"
for change in shrink grey mix; do
    want 0 data corrupt --data clean/train --change $change --out $change -q
    check "$change changes pictures" test "$(cmp -s $change/train/00000.tar clean/train/00000.tar; echo $?)" -eq 1
done

# swaps
want 0 data corrupt --data clean/train --swap 0.2 --out noisy --shard-size 7 --json
prints '"n_swapped": 12'
check "12 captions of another, each told" python3 -c '
from records import *
clean, noisy = records("clean/train"), records("noisy/train")
swapped = [k for k, r in noisy.items() if r["swapped"]]
assert len(noisy) == 60 and len(swapped) == 12 and "dose" not in noisy[swapped[0]]
assert sorted(noisy[k]["captions_of"] for k in swapped) == sorted(swapped)
for k, r in noisy.items():
    owner = r["captions_of"]
    assert (owner != k) == (r["swapped"] == 1)
    assert all(r[f] == clean[owner][f] for f in ("captions", "levels", "caption_ids"))
    assert r["shapes"] == clean[k]["shapes"]'
want 0 data corrupt --data clean/train --swap 0.2 --out noisy --shard-size 7
prints "was there already"
want 1 data corrupt --data clean/train --swap 0.4 --out noisy
says "exists and does not hold this data set"
for seed in 0 1; do
    want 0 data corrupt --data clean/train --swap 0.2 --out again$seed --shard-size 7 --seed $seed -q
done
check "the same seed, the same copy" diff -r noisy/train again0/train
check "another seed, another" test "$(diff -rq noisy/train again1/train | wc -l)" -gt 0
want 2 data corrupt --data clean/train --out none
says "--change or --swap is wanted"
want 2 data corrupt --data clean/train --out none --change blur
want 2 data corrupt --data clean/train --out none --change grey --max-dose 0
want 1 data corrupt --data clean/train --out none --swap 0.01
says "captions change places between two at least"
want 1 data corrupt --data nowhere --out none --swap 0.5
check "nothing was made" test ! -e none
every_option data corrupt

# finding them
want 0 embed -m model --images noisy/train -o i.safetensors -q
want 0 embed -m model --texts noisy/train -o t.safetensors -q
want 0 embed -m model --images noisy/train -o i.jsonl -q
want 0 embed -m model --texts noisy/train -o t.jsonl -q
want 0 eval noise --images i.safetensors --texts t.safetensors --bootstrap 50 --json
cp out noise.json
check "every figure by its definition" python3 - <<'END'
import json, math
from ranks import auroc
n = json.load(open("noise.json"))["noise"]
images = {r["id"]: r for r in map(json.loads, open("i.jsonl"))}
swapped = {json.loads(l)["id"]: json.loads(l)["swapped"] for l in open("i.ids.jsonl")}
texts = [json.loads(line) for line in open("t.jsonl")]
key = [r["id"].rsplit("#", 1)[0] for r in texts]
label = [swapped[k] for k in key]
assert n["n_pairs"] == len(texts) and n["n_swapped"] == sum(label) and n["paired_by"] == "ids"
trace = lambda r: sum(math.exp(v) for v in r["log_var"])
dot = lambda a, b: sum(x * y for x, y in zip(a["mean"], b["mean"]))
want = {"mean": [-dot(images[k], r) for k, r in zip(key, texts)],
        "picture uncertainty": [trace(images[k]) for k in key],
        "caption uncertainty": [trace(r) for r in texts],
        "fewer words": [-len(r["text"].split()) for r in texts],
        "csd": [2 - 2 * dot(images[k], r) + trace(images[k]) + trace(r) for k, r in zip(key, texts)]}
rows = {r["score"]: r for r in n["scores"]}
for name, score in want.items():
    assert abs(rows[name]["auroc"] - auroc(label, score)) < 6e-4, (name, rows[name], auroc(label, score))
    k, found, before = sum(label), 0, 0
    for value in sorted(set(score), reverse=True):  # ties at the end count by their share
        tied = [l for l, s in zip(label, score) if s == value]
        found += sum(tied) * min(len(tied), max(k - before, 0)) / len(tied)
        before += len(tied)
    assert abs(rows[name]["precision"] - found / k) < 6e-4, (name, rows[name], found / k)
    assert rows[name]["auroc_low"] <= rows[name]["auroc"] <= rows[name]["auroc_high"]
first = n["scores"][0]
assert first["score"] == "csd" and first["lead"] is None
for r in n["scores"][1:]:
    assert abs(r["lead"] - (first["auroc"] - r["auroc"])) < 1.1e-3
low, high = rows["random"]["auroc_low"], rows["random"]["auroc_high"]
assert low < 0.6 and high > 0.4 and rows["random"]["kind"] == "control"
END
want 0 eval noise --images i.safetensors --texts t.safetensors --bootstrap 50
prints "pairs have a caption of another picture; csd finds them with AUROC"
want 0 eval noise --images i.safetensors --texts t.safetensors --bootstrap 0 --level 3 --pair-by ids --json
check "only level 3" python3 -c '
import json
n = json.load(open("out"))["noise"]
levels = [json.loads(l)["level"] for l in open("t.ids.jsonl")]
assert n["n_pairs"] == levels.count(3) and n["scores"][0]["auroc_low"] is None'
python3 -c '
import json
for line in open("t.ids.jsonl"):
    r = json.loads(line)
    print(r["id"].rsplit("#", 1)[0], r["id"], sep="\t")' >pairs.tsv
want 0 eval noise --images i.safetensors --texts t.safetensors --bootstrap 50 --pairs pairs.tsv --json
check "the same pairs from a file" diff <(grep auroc out) <(grep auroc noise.json)
want 1 eval noise --images i.safetensors --texts t.safetensors --field dose
says "no pair says by the field \"dose\""
want 1 eval noise --images i.safetensors --texts t.safetensors --field name
says "\"name\" is neither 0 nor 1"
sed 's/"swapped": 1/"swapped": 0/' i.ids.jsonl >z.ids.jsonl && cp i.safetensors z.safetensors
want 1 eval noise --images z.safetensors --texts t.safetensors
says "0 of"
says "both kinds are needed"
sed '1,30s/"swapped": [01]/"other": 0/' i.ids.jsonl >z.ids.jsonl
want 0 eval noise --images z.safetensors --texts t.safetensors --bootstrap 0
says "do not say by \"swapped\" whether they were swapped and are left out"
want 2 eval noise --images i.safetensors --texts t.safetensors --pairs pairs.tsv --pair-by rows
says "--pairs or --pair-by"
every_option eval noise
finish
