#!/bin/bash
# eval uncertainty against what is known: every figure again by its definition, from other files than
# those it was made of; fields that are missing in part or altogether; controls; clusters.
here=$(cd "$(dirname "$0")" && pwd)
source "$here/common/lib.sh"
cp "$here/common/ranks.py" .
make_small
want 0 data shapes --out foggy --n 150 --seed 3 --val-share 0.2 --test-share 0.4 --blur 0.6 --grey 0.3 -q
want 0 embed -m model --images foggy/test -o i.safetensors -q
want 0 embed -m model --texts foggy/test/captions.jsonl -o t.safetensors -q
for set in i t; do
    source=$([ $set = i ] && echo "--images foggy/test" || echo "--texts foggy/test/captions.jsonl")
    # shellcheck disable=SC2086
    want 0 embed -m model $source -o $set.jsonl -q
done
truth=foggy/truth/test.pairs
known=(eval uncertainty --images i.safetensors --texts t.safetensors --truth $truth --entropy ambiguity.entropy_bits)
want 0 "${known[@]}" --bootstrap 60 --json
cp out known.json
check "captions.jsonl counts the scenes of all splits" python3 - <<'END'
import collections, json, math
rows = {}
for split in ("train", "val", "test"):
    for line in open("foggy/%s/captions.jsonl" % split):
        r = json.loads(line)
        rows.setdefault(r["id"], []).append(r["entropy_bits"])
fits = collections.Counter()
for split in ("train", "val", "test"):
    for line in open("foggy/truth/%s.pairs" % split):
        fits[line.rstrip("\n").split("\t")[1]] += 1
n_everywhere = 0
for name, bits in rows.items():
    assert len(set(bits)) == 1, name
    if len(bits) == 3:  # the files of truth then have every scene
        n_everywhere += 1
        assert abs(bits[0] - math.log2(fits[name])) < 1e-4, name
assert n_everywhere > 15
END
cat >again.py <<'END'
import collections, json, math, re, sys
from ranks import *
got = json.load(open("known.json"))["known_entropy"]
table = {(r["side"], r["level"], r["score"]): r for r in got["agreement"]}
def trace(path):
    return [sum(math.exp(v) for v in json.loads(line)["log_var"]) for line in open(path)]
def look(side, level, name, known, score):
    r = table.pop((side, level, name))
    assert r["n"] == len(known)
    flat = len(set(known)) == 1 or len(set(score)) == 1
    if flat:
        assert r["spearman"] is None and r["kendall"] is None
        return
    middle = sorted(known)
    middle = (middle[(len(known) - 1) // 2] + middle[len(known) // 2]) / 2
    high = [h > middle for h in known] if max(known) > middle else [h >= middle for h in known]
    for key, want in (("spearman", spearman(known, score)), ("kendall", kendall(known, score)),
                      ("auroc", auroc(high, score))):
        assert abs(r[key] - want) < 6e-4, (side, level, name, key, r[key], want)
        low, up = r[key + "_low"], r[key + "_high"]
        assert low is None or low <= up and up - low < 1.8
images = [json.loads(line) for line in open("i.ids.jsonl")]
bits = [r["ambiguity"]["entropy_bits"] for r in images]
u = trace("i.jsonl")
known_bits = {"pictures": bits}
look("pictures", "all", "uncertainty", bits, u)
texts = [json.loads(line) for line in open("t.ids.jsonl")]
fits = collections.Counter(line.rstrip("\n").split("\t")[1] for line in open("foggy/truth/test.pairs"))
bits = [math.log2(fits[r["id"]]) for r in texts]
known_bits["captions"] = bits
words = [re.findall(r"\w+", r["text"].lower()) for r in texts]
holds = collections.Counter(w for text in words for w in set(text))
scores = {"uncertainty": trace("t.jsonl"), "fewer words": [-len(w) for w in words],
          "common words": [sum(math.log(holds[w] / len(words)) for w in text) / len(text) for text in words]}
for level in ("all", 0, 1, 2, 3):
    rows = [i for i, r in enumerate(texts) if level in ("all", r["level"])]
    for name, score in scores.items():
        look("captions", level, name, [bits[i] for i in rows], [score[i] for i in rows])
for name in ("smaller file", "flatter picture"):
    assert table.pop(("pictures", "all", name))["n"] == len(images)
assert not table, list(table)
for r in got["agreement"]:
    if r["score"] == "uncertainty":
        assert r["lead"] is None
        own = r["spearman"]
        assert r["held"] is None
    elif own is not None and r["spearman"] is not None:
        assert abs(r["lead"] - (own - r["spearman"])) < 1.1e-3
        assert -1 <= r["held_low"] <= r["held_high"] <= 1
def counts(values):
    return collections.Counter(values).values()
for side, values in (("images", known_bits["pictures"]), ("texts", known_bits["captions"])):
    n = len(values)
    most = math.sqrt(1 - sum(t**3 - t for t in counts(values)) / (n**3 - n))
    assert 0.3 < most < 0.99 and abs(got[side]["most_spearman"] - most) < 6e-4, (side, most)
    assert "; %.2f is the most" % most in got["headline"]
fewer = next(r for r in got["agreement"] if r["score"] == "fewer words" and r["level"] == "all")
xy, xz, yz = (spearman(a, b) for a, b in (
    (known_bits["captions"], scores["uncertainty"]), (known_bits["captions"], scores["fewer words"]),
    (scores["uncertainty"], scores["fewer words"])))
assert abs(fewer["held"] - (xy - xz * yz) / math.sqrt((1 - xz * xz) * (1 - yz * yz))) < 2e-3
assert got["images"]["n_missing"] == 0 and got["texts"]["from"] == "truth"
assert got["resampling"]["unit"].startswith("picture with")
assert "of 60 pictures" in got["headline"].lower()
END
check "every figure by its definition" python3 again.py
want 0 "${known[@]}" --bootstrap 0 --of-matches --scale 4 --json
cp out matches.json
check "the entropy of matches by its definition" python3 - <<'END'
import json, math
from ranks import spearman
def rows(path):
    means = [json.loads(line)["mean"] for line in open(path)]
    return [[v / math.sqrt(sum(x * x for x in m)) for v in m] for m in means]
def entropies(queries, gallery):
    out = []
    for q in queries:
        w = [math.exp(4 * sum(a * b for a, b in zip(q, g))) for g in gallery]
        out.append(-sum(x / sum(w) * math.log2(x / sum(w)) for x in w))
    return out
i, t = rows("i.jsonl"), rows("t.jsonl")
got = {r["side"]: r for r in json.load(open("matches.json"))["known_entropy"]["agreement"]
       if r["score"] == "entropy of matches" and r["level"] == "all"}
bits = [json.loads(line)["ambiguity"]["entropy_bits"] for line in open("i.ids.jsonl")]
fits = {}
for line in open("foggy/truth/test.pairs"):
    fits[line.rstrip("\n").split("\t")[1]] = fits.get(line.rstrip("\n").split("\t")[1], 0) + 1
known = [math.log2(fits[json.loads(line)["id"]]) for line in open("t.ids.jsonl")]
# means of the set are rounded to f32, and entropies that are near may change places
assert abs(got["pictures"]["spearman"] - spearman(bits, entropies(i, t))) < 6e-3, got
assert abs(got["captions"]["spearman"] - spearman(known, entropies(t, i))) < 6e-3, got
END
want 0 "${known[@]}" --bootstrap 0 --of-matches
prints "the entropy of matches follows what is known"
prints ", beside the best control, " # no resamples, no verdict
want 2 eval uncertainty --texts t.safetensors --text-entropy entropy_bits --of-matches
says "--of-matches needs --images"
want 2 "${known[@]}" --scale 3
says "--scale goes with --of-matches"

# the doubt of a calibration: of pictures by captions of a level, of captions by pictures, each beside its control
want 0 embed -m model --images foggy/train -o ti.safetensors -q
want 0 embed -m model --texts foggy/train/captions.jsonl -o tt.safetensors -q
want 0 calibrate --images ti.safetensors --texts tt.safetensors --truth foggy/truth/train.pairs \
    --gallery texts --level 1 --method platt --measure mean -o of_texts.json -q
# a model that learned nothing allows no fit in most ways: the same numbers for other pairs, and with other origins
python3 - <<'END'
import json
def write(name, **changes):
    fit = json.load(open("of_texts.json"))
    for key, value in changes.items():
        fit[key] = value
    json.dump(fit, open(name + ".json", "w"))
fit = json.load(open("of_texts.json"))
assert fit["level"] == 1
write("of_images_1", query_origin=fit["gallery_origin"], gallery_origin=fit["query_origin"])
write("of_images", query_origin=fit["gallery_origin"], gallery_origin=fit["query_origin"], level=None)
write("of_all", level=None)
write("of_level_9", level=9)
write("of_no_level", level="one")
write("first_hits", depth=5)
for name, weights in (("of_others", "0" * 64), ("of_nobody", "")):
    write(name, query_origin=dict(fit["query_origin"], weights_sha256=weights))
END
want 0 "${known[@]}" --bootstrap 0 --of-matches --calibration of_texts.json --scale 4 --json
cp out doubt.json
want 0 "${known[@]}" --bootstrap 0 --of-matches --calibration of_images.json --scale 4 --json
cp out doubt_texts.json
check "the doubt about matches by its definition, on the side it was fitted for" python3 - <<'END'
import json, math
from ranks import spearman
def rows(path):
    return [[v / math.sqrt(sum(x * x for x in r["mean"])) for v in r["mean"]] for r in map(json.loads, open(path))]
ids, captions = ([json.loads(line) for line in open(p + ".ids.jsonl")] for p in "it")
i, t = rows("i.jsonl"), rows("t.jsonl")
t = [m for m, r in zip(t, captions) if r["level"] == 1]
assert 20 < len(t) < len(captions)
fit = json.load(open("of_texts.json"))
a, b, n = fit["platt"]["a"], fit["platt"]["b"], fit["n_gallery"]
def h(p):
    return -p * math.log2(p) - (1 - p) * math.log2(1 - p)
def doubt(q):
    return sum(h(1 / (1 + math.exp(-a * sum(x * y for x, y in zip(q, g)) - b) * len(t) / n)) for g in t)
got = json.load(open("doubt.json"))["known_entropy"]["agreement"]
first = {r["side"]: r for r in got if r["level"] == "all" and r["score"] in ("doubt about matches", "entropy of matches")}
want = spearman([r["ambiguity"]["entropy_bits"] for r in ids], [doubt(q) for q in i])
assert first["pictures"]["score"] == "doubt about matches" and first["captions"]["score"] == "entropy of matches"
assert abs(first["pictures"]["spearman"] - want) < 6e-3, (first, want)
other = {r["side"]: r for r in json.load(open("doubt_texts.json"))["known_entropy"]["agreement"]
         if r["level"] == "all" and r["score"] in ("doubt about matches", "entropy of matches")}
assert other["captions"]["score"] == "doubt about matches" and other["pictures"]["score"] == "entropy of matches"
plain = {r["side"]: r for r in json.load(open("matches.json"))["known_entropy"]["agreement"]
         if r["level"] == "all" and r["score"] == "entropy of matches"}
assert other["pictures"]["spearman"] == plain["pictures"]["spearman"]
assert first["captions"]["spearman"] == plain["captions"]["spearman"]  # pictures have no levels
END
want 0 "${known[@]}" --bootstrap 0 --of-matches --match-level 0 --scale 4 --json
check "captions of one level are another gallery" python3 -c '
import json
a, b = (next(r for r in json.load(open(p))["known_entropy"]["agreement"] if r["side"] == "pictures")
        for p in ("out", "matches.json"))
assert a["score"] == b["score"] == "entropy of matches" and a["spearman"] != b["spearman"]'
# the doubts of two levels add up, and a softmax is over both
want 0 calibrate --images ti.safetensors --texts tt.safetensors --truth foggy/truth/train.pairs \
    --gallery texts --level 0 --method platt --measure mean -o of_general.json -q
for order in "of_general.json of_texts.json" "of_texts.json of_general.json"; do
    # shellcheck disable=SC2086
    want 0 "${known[@]}" --bootstrap 0 --of-matches --scale 4 --json --calibration $order
    cp out two.json
    check "the sum of two levels, in either order: $order" python3 - <<'END'
import json, math
from ranks import spearman
def rows(path):
    return [[v / math.sqrt(sum(x * x for x in r["mean"])) for v in r["mean"]] for r in map(json.loads, open(path))]
ids, captions = ([json.loads(line) for line in open(p + ".ids.jsonl")] for p in "it")
i, t = rows("i.jsonl"), rows("t.jsonl")
def h(p):
    return -p * math.log2(p) - (1 - p) * math.log2(1 - p)
def doubt(q):
    sum_ = 0
    for level, name in ((0, "of_general"), (1, "of_texts")):
        fit = json.load(open(name + ".json"))
        own = [m for m, r in zip(t, captions) if r["level"] == level]
        a, b = fit["platt"]["a"], fit["platt"]["b"]
        for g in own:
            sum_ += h(1 / (1 + math.exp(-a * sum(x * y for x, y in zip(q, g)) - b) * len(own) / fit["n_gallery"]))
    return sum_
got = next(r for r in json.load(open("two.json"))["known_entropy"]["agreement"] if r["score"] == "doubt about matches")
want = spearman([r["ambiguity"]["entropy_bits"] for r in ids], [doubt(q) for q in i])
assert abs(got["spearman"] - want) < 6e-3, (got, want)
END
done
want 0 "${known[@]}" --bootstrap 0 --of-matches --match-level 0 1 2 3 --scale 4 --json
check "a softmax over all levels is one over all captions" python3 -c '
import json
a, b = (next(r for r in json.load(open(p))["known_entropy"]["agreement"] if r["side"] == "pictures")
        for p in ("out", "matches.json"))
assert a["spearman"] == b["spearman"]'
want 2 "${known[@]}" --of-matches --calibration of_texts.json --match-level 1
says "--match-level goes without --calibration, which tells its level"
want 1 "${known[@]}" --of-matches --calibration of_texts.json of_texts.json --scale 4
says "of_texts.json is of level 1, as one before it"
want 1 "${known[@]}" --of-matches --calibration of_texts.json of_all.json --scale 4
says "of_all.json is not of one level, 0 to 7 (calibrate --level): beside others it would count captions twice"
want 1 "${known[@]}" --of-matches --calibration of_images_1.json --scale 4
says "of_images_1.json was fitted on captions of level 1, row 0 is of level 0"
want 1 "${known[@]}" --of-matches --calibration of_level_9.json --scale 4
says "no caption of level 9 to match"
want 1 "${known[@]}" --of-matches --calibration of_no_level.json --scale 4
says "level"
want 1 "${known[@]}" --of-matches --calibration foggy --scale 4
says "foggy"
want 0 "${known[@]}" --bootstrap 0 --of-matches --calibration of_all.json --scale 4 --json
check "without a level it is over all captions" python3 -c '
import json
a, b = (next(r for r in json.load(open(p))["known_entropy"]["agreement"] if r["side"] == "pictures")
        for p in ("out", "doubt.json"))
assert a["score"] == b["score"] == "doubt about matches" and a["spearman"] != b["spearman"]'
want 2 eval uncertainty --images i.safetensors --texts t.safetensors --of-matches --calibration nowhere.json
says "--of-matches goes with --entropy, --text-entropy, --label-counts or --class-key"
want 2 "${known[@]}" --of-matches --match-level 1 1
says "--match-level has 1 twice"
want 2 "${known[@]}" --of-matches --match-level 12
says "--match-level '12': levels are 0 to 7"
want 1 "${known[@]}" --of-matches --calibration of_texts.json of_images_1.json --scale 4
says "of_images_1.json"
want 1 "${known[@]}" --of-matches --match-level 7
says "no caption of level 7 to match"
want 2 "${known[@]}" --calibration of_texts.json
says "--calibration and --match-level go with --of-matches"
want 2 "${known[@]}" --match-level 1
says "--calibration and --match-level go with --of-matches"
want 2 "${known[@]}" --of-matches --trust-calibration
says "--trust-calibration goes with --calibration"
want 1 "${known[@]}" --of-matches --calibration foggy/truth/test.pairs
says "foggy/truth/test.pairs"
want 1 "${known[@]}" --of-matches --calibration first_hits.json
says "a calibration of the first 5 hits says nothing of other pairs"
want 1 "${known[@]}" --of-matches --calibration of_others.json
says "of_others.json was fitted for the weights 000000000000"
want 1 "${known[@]}" --of-matches --calibration of_nobody.json
says "--trust-calibration takes it on your word"
want 0 "${known[@]}" --of-matches --calibration of_nobody.json --trust-calibration --bootstrap 0 --scale 4 --json
says "it is used on your word"
check "and is the same" cmp -s out doubt.json
want 0 "${known[@]}" --bootstrap 0 --control-field ambiguity.n_shapes --json
check "a number of the ids file is a control" python3 - <<'END'
import json
from ranks import spearman
ids = [json.loads(line)["ambiguity"] for line in open("i.ids.jsonl")]
got = [r for r in json.load(open("out"))["known_entropy"]["agreement"] if r["score"] == "ambiguity.n_shapes"]
want = spearman([a["entropy_bits"] for a in ids], [a["n_shapes"] for a in ids])
assert [r["side"] for r in got] == ["pictures"] and abs(got[0]["spearman"] - want) < 1.1e-3, (got, want)
END
want 0 "${known[@]}" --bootstrap 0 --text-entropy entropy_bits --text-control-field expected_bits --json
check "and one of the captions' is theirs" python3 - <<'END'
import json
from ranks import spearman
ids = [json.loads(line) for line in open("t.ids.jsonl")]
got = [r for r in json.load(open("out"))["known_entropy"]["agreement"]
       if r["score"] == "expected_bits" and r["level"] == "all"]
want = spearman([a["entropy_bits"] for a in ids], [a["expected_bits"] for a in ids])
assert [r["side"] for r in got] == ["captions"] and abs(got[0]["spearman"] - want) < 1.1e-3, (got, want)
assert 0.5 < want < 0.999, want
END
want 2 eval uncertainty --texts t.safetensors --text-control-field expected_bits
says "--text-control-field goes with --entropy or --text-entropy"
want 1 "${known[@]}" --control-field ambiguity.nothing
says "i.safetensors: no row has the field \"ambiguity.nothing\""
want 2 eval uncertainty --texts t.safetensors --control-field dose
says "--control-field goes with --entropy"
want 0 "${known[@]}" --bootstrap 60
prints "Of 60 pictures the uncertainty follows what is known with Spearman"
prints "lead"
want 0 "${known[@]}" --bootstrap 60 --json -t 1
check "one thread gives the same" cmp -s out known.json
want 0 "${known[@]}" --bootstrap 60 --seed 1 --json
check "another seed other intervals, the same figures" python3 -c '
import json
a, b = (json.load(open(p))["known_entropy"]["agreement"] for p in ("known.json", "out"))
assert [r["spearman"] for r in a] == [r["spearman"] for r in b]
assert [r["spearman_low"] for r in a] != [r["spearman_low"] for r in b]'
want 0 "${known[@]}" --bootstrap 0 --json
check "no resamples, no intervals" python3 -c '
import json
assert all(r["spearman_low"] is None and r["lead_high"] is None for r in json.load(open("out"))["known_entropy"]["agreement"])'

# the untrained head, fields of captions, clusters by a field
sed -E 's/$//; s/"level": ([0-9])/"level": \1, "kind": "k\1"/' t.ids.jsonl >k.ids.jsonl && cp t.safetensors k.safetensors
want 0 eval uncertainty --texts k.safetensors --text-entropy entropy_bits --control-texts t.safetensors \
    --cluster kind --bootstrap 40 --json
check "beside the untrained head, in four clusters" python3 -c '
import json
k = json.load(open("out"))["known_entropy"]
rows = {(r["level"], r["score"]): r for r in k["agreement"]}
assert "images" not in k and k["texts"]["from"] == "entropy_bits" and "kind" in k["resampling"]["unit"]
assert rows["all", "untrained head"]["spearman"] == rows["all", "uncertainty"]["spearman"]
assert rows["all", "untrained head"]["lead"] == 0 and rows["all", "uncertainty"]["spearman_low"] is not None
assert rows[0, "uncertainty"]["spearman_low"] is None  # one cluster'
want 1 eval uncertainty --texts k.safetensors --text-entropy entropy_bits --cluster nobody
says "--cluster nobody: row 0"

# fields that are missing, in part and altogether; what is no number; points
python3 - <<'END'
import json
for n, row in enumerate(map(json.loads, open("i.ids.jsonl"))):
    if n < 50:
        row["dose"] = n % 5
    row["words"] = "many"
    print(json.dumps(row), file=open("p.ids.jsonl", "a"))
END
cp i.safetensors p.safetensors
want 0 eval uncertainty --images p.safetensors --texts t.safetensors --entropy dose --bootstrap 0 --json
says "10 of 60 pictures have no \"dose\" and are left out"
check "50 are left, and captions without truth are not measured" python3 -c '
import json
k = json.load(open("out"))["known_entropy"]
assert k["images"]["n"] == 50 and k["images"]["n_missing"] == 10 and "texts" not in k'
want 1 eval uncertainty --images p.safetensors --texts t.safetensors --entropy ambiguity.entropy_bits --control-field dose
says "p.safetensors: row 59 has no field \"dose\", which others have"
want 1 eval uncertainty --images i.safetensors --texts t.safetensors --entropy ambiguity.bits
says "i.safetensors: no row has the field \"ambiguity.bits\"; the first row has"
says "ambiguity {...}"
want 1 eval uncertainty --images p.safetensors --texts t.safetensors --entropy words
says "row 0: \"words\" is not a number"
want 2 eval uncertainty --texts t.safetensors --entropy dose
says "--entropy, --label-counts and --class-key need --images"
want 2 eval uncertainty --texts t.safetensors --pictures foggy/test
says "--pictures goes with --entropy, --label-counts or --class-key"
want 2 eval uncertainty --texts t.safetensors --text-entropy entropy_bits --pictures foggy/test
says "--pictures goes with --entropy, --label-counts or --class-key"
want 2 eval uncertainty --texts t.safetensors --cluster id
says "--cluster goes with"
want 1 "${known[@]}" --control-texts t.safetensors --control-images t.safetensors
says "the set it controls"

# pictures that are elsewhere
mv foggy/test elsewhere
want 0 "${known[@]}" --bootstrap 0 --json
says "cannot be read again"
check "the other figures are there" python3 -c '
import json
scores = {r["score"] for r in json.load(open("out"))["known_entropy"]["agreement"]}
assert "smaller file" not in scores and "fewer words" in scores'
want 0 "${known[@]}" --bootstrap 60 --pictures elsewhere --json
check "as they were" cmp -s out known.json
want 1 "${known[@]}" --pictures foggy/train
says "foggy/train"
# labels of people, and errors of the nearest neighbour
python3 - <<'END'
import json
names = [json.loads(line)["id"] for line in open("i.ids.jsonl")]
with open("people.csv", "w") as f:
    f.write("id,circle,square,star\n")
    for i, name in enumerate(names[:45]):
        f.write("%s,%d,%d,%d\n" % (name, 10 - i % 4, i % 4, i % 3))
rows = [json.loads(line) for line in open("i.ids.jsonl")]
with open("c.ids.jsonl", "w") as f:
    for i, row in enumerate(rows):
        row["class"] = ["one", "two", "three"][i % 3] if i < 50 else "alone" if i == 50 else None
        f.write(json.dumps({k: v for k, v in row.items() if v is not None}) + "\n")
END
cp i.safetensors c.safetensors
# of one caption alone something is known
cp t.safetensors one.safetensors
sed '2,$s/, "entropy_bits": [0-9.]*//' t.ids.jsonl >one.ids.jsonl
want 0 eval uncertainty --texts one.safetensors --text-entropy entropy_bits --bootstrap 20
says 'captions have no "entropy_bits" and are left out'
prints "Of 1 captions nothing can be said: two are needed of which something is known."
want 0 eval uncertainty --images i.safetensors --texts t.safetensors --label-counts people.csv --bootstrap 20 --json
cp out people.json
says "15 of 60 pictures have no \"label entropy\""
want 0 eval uncertainty --images c.safetensors --texts t.safetensors --class-key class --bootstrap 30 --pictures elsewhere --json
cp out nearest.json
check "entropy of labels and R-AUROC by their definitions" python3 - <<'END'
import json, math
from ranks import *
vectors = [json.loads(line) for line in open("i.jsonl")]
u = [sum(math.exp(v) for v in r["log_var"]) for r in vectors]
def bits(counts):
    p = [c / sum(counts) for c in counts if c]
    return -sum(x * math.log2(x) for x in p)
h = [bits([10 - i % 4, i % 4, i % 3]) for i in range(45)]
rows = {r["score"]: r for r in json.load(open("people.json"))["known_entropy"]["agreement"]}
assert abs(rows["uncertainty"]["spearman"] - spearman(h, u[:45])) < 6e-4
assert abs(rows["uncertainty"]["kendall"] - kendall(h, u[:45])) < 6e-4
n = json.load(open("nearest.json"))["known_entropy"]["nearest"]
names = [json.loads(line).get("class") for line in open("c.ids.jsonl")]
known = [i for i, c in enumerate(names) if c]
dot = lambda a, b: sum(x * y for x, y in zip(a["mean"], b["mean"]))
wrong, score = [], []
for i in known:
    if names.count(names[i]) < 2:
        continue
    best = max((j for j in known if j != i), key=lambda j: dot(vectors[i], vectors[j]))
    wrong.append(names[best] != names[i])
    score.append(u[i])
assert (n["n"], n["n_classless"], n["n_alone"]) == (50, 9, 1)
assert abs(n["r_at_1"] - 1 + sum(wrong) / len(wrong)) < 1e-6
first = n["scores"][0]
assert first["score"] == "uncertainty" and abs(first["r_auroc"] - auroc(wrong, score)) < 6e-4
assert first["r_auroc_low"] < first["r_auroc"] < first["r_auroc_high"]
order = sorted(range(len(score)), key=lambda k: score[k])
for row in n["accuracy_rejection"]:
    if row["score"] == "uncertainty":
        kept = order[:math.ceil(len(order) * (1 - row["rejected"]) - 1e-9)]
        assert abs(row["accuracy"] - 1 + sum(wrong[k] for k in kept) / len(kept)) < 1e-4, row
assert {r["score"] for r in n["scores"]} == {"uncertainty", "smaller file", "flatter picture"}
END
want 0 eval uncertainty --images c.safetensors --texts t.safetensors --class-key class --bootstrap 30 --pictures elsewhere
prints "The nearest other picture is of the same class for"
want 2 eval uncertainty --images i.safetensors --texts t.safetensors --label-counts people.csv --entropy dose
says "--entropy or --label-counts"
want 1 eval uncertainty --images i.safetensors --texts t.safetensors --class-key nobody
says "no row has the field \"nobody\" of --class-key"
want 1 eval uncertainty --images i.safetensors --texts t.safetensors --class-key id
says "no two pictures are of one class"

want 0 eval uncertainty --images i.safetensors --texts t.safetensors --masked-images i.safetensors \
    --masked-texts t.safetensors --control-images i.safetensors --control-texts t.safetensors \
    --control-masked-images i.safetensors --control-masked-texts t.safetensors --json
check "nothing is known without a field" test "$(grep -c known_entropy out)" -eq 0
every_option eval uncertainty
finish
