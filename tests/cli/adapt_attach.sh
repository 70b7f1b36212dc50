#!/bin/bash
# adapt attach: a model with an adapter beside it embeds, searches, classifies and reports through it.
source "$(dirname "$0")/common/lib.sh"
make_small
want 0 embed -m model --images shapes/test -o i.safetensors -q
want 0 embed -m model --texts shapes/test/captions.jsonl -o t.safetensors -q
truth=shapes/truth/test.pairs
want 0 adapt train --method whitened --images i.safetensors --texts t.safetensors --out whitened
want 0 adapt train --method conformity --texts t.safetensors --out texts-only
want 1 embed -m whitened --images shapes/test -o none.safetensors
says "whitened is an adapter, not a model; \`penumbra adapt attach MODEL whitened --out DIR\`"

# what it embeds is what apply makes of what the model embeds, byte by byte, in batches of any size
want 0 adapt attach model whitened --out both
prints "whitened"
want 0 adapt attach model texts-only --out half --json
has_keys out images texts
check "pictures are left alone, captions are not" python3 -c 'import json; r = json.load(open("out"))
assert "conformity" in r["texts"] and "conformity" not in r["images"], r'
check "weights are not copied twice" test both/model.safetensors -ef model/model.safetensors -o -s both/model.safetensors
check "the adapter is the same bytes" cmp both/adapter/config.json whitened/config.json
for side in images texts; do
    input=shapes/test set=i
    if [ $side = texts ]; then input=shapes/test/captions.jsonl set=t; fi
    want 0 adapt apply --adapter whitened --$side $set.safetensors -o $set.applied.safetensors
    want 0 embed -m both --$side $input -o $set.both.safetensors --batch-size 3 -q
    want 0 embed -m model --$side $input -o $set.threes.safetensors --batch-size 3 -q
    want 0 adapt apply --adapter whitened --$side $set.threes.safetensors -o $set.applied.safetensors
    check "the set of apply" cmp $set.both.safetensors $set.applied.safetensors
done
want 0 embed -m half --images shapes/test -o i.half.safetensors -q
check "a side that is left alone is the model's" cmp i.half.safetensors i.safetensors
want 0 info i.both.safetensors
prints "whitened"
want 0 info both --json
has_keys adapter.name adapter.sha256 adapter.images weights_sha256
want 0 eval retrieval --images i.both.safetensors --texts t.both.safetensors --truth $truth --bootstrap 0
want 0 embed -m half --texts shapes/test/captions.jsonl -o t.half.safetensors -q
want 0 eval retrieval --images i.safetensors --texts t.half.safetensors --truth $truth --bootstrap 0

# an adapter that learned from rows with their lengths is given such
want 0 embed -m model --texts shapes/test/captions.jsonl --raw -o raw.safetensors --batch-size 3 -q
want 0 adapt train --method asymvlm-vmf --images i.safetensors --texts raw.safetensors --truth $truth \
    --hidden 16 --batch-size 8 --steps 4 --threads 1 --out lengths
want 0 adapt attach model lengths --out long
want 0 embed -m long --texts shapes/test/captions.jsonl -o long.safetensors --batch-size 3 -q
want 0 adapt apply --adapter lengths --texts raw.safetensors -o long.applied.safetensors
check "rows with lengths go through it" cmp long.safetensors long.applied.safetensors
want 0 search --index i.safetensors -m long --query-text "a red star" --json
prints '"measure": "vmf"'
prints '"taken_as_points": "index"'
want 0 classify -m long --images shapes/test --classnames star,circle --templates simple --json
prints '"taken_as_points": "images"'

want 0 search --index i.both.safetensors -m both --query-text "a red star" --json
prints '"p_match_by": null'

# queries go through it
want 0 search --index i.both.safetensors -m both --query-text "a red star" --json
want 0 search --index i.safetensors -m half --query-text "a red star"
want 1 search --index i.safetensors -m both --query-text "a red star"
says "whitened"
want 1 search --index i.both.safetensors -m model --query-text "a red star"
says "whitened"
want 1 search --index i.both.safetensors -m half --query-text "a red star"
says "conformity"
want 0 classify -m both --images shapes/test --classnames star,circle --templates simple --json
want 0 report --images i.both.safetensors --texts t.both.safetensors --truth $truth --out page.html

# what words and patches remove is read behind the adapter
want 0 explain -m both --text "a red star" --images shapes/test --cell 4 --json
cp out both.json
python3 - <<'PY'
import glob
open("words.txt", "w").write("a red star\nred star\na star\na red\n")
PY
want 0 embed -m both --texts words.txt -o w.safetensors -q
want 0 search --index w.safetensors --queries i.both.safetensors -k 4 --json
check "without a word the caption is the one without it" python3 - <<'PY'
import json
u = {h["item"]: h["uncertainty"] for h in json.load(open("out"))["hits"]}
item = json.load(open("both.json"))["item_0"]
assert abs(item["trace"] - u["a red star"]) < 1e-4 * item["trace"] + 1e-5, (item, u)
for part, left in zip(item["parts"], ("red star", "a star", "a red")):
    assert abs(part["without"] - u[left]) < 1e-4 * u[left] + 1e-5, (part, u)
    assert part["h"] is not None
PY
want 0 search --index i.both.safetensors --queries i.both.safetensors -k 8 --measure mean --json
check "a whole picture is the picture of the set" python3 - <<'PY'
import json
u = [h["uncertainty"] for h in json.load(open("out"))["hits"]]
item = json.load(open("both.json"))["item_1"]
assert min(abs(item["trace"] - x) for x in u) < 1e-4 * item["trace"] + 1e-5, (item["trace"], u)
PY
want 0 explain -m long --text "a red star" --html e.html --json
check "of densities on the sphere 1/kappa, and no inclusion" python3 - <<'PY'
import json
item = json.load(open("out"))["item_0"]
assert item["inv_kappa"] > 0 and "trace" not in item and all(p["h"] is None for p in item["parts"]), item
PY
check "no broken number" test "$(grep -ciE '[,=]"?-?(nan|inf)' e.html)" -eq 0
want 0 explain -m half --images shapes/test --cell 4 --remove grey
want 0 probe -m long --texts shapes/test/captions.jsonl --bins 3 --shares 0 0.5 --html p.html --json
check "levels, words and tokens by 1/kappa; nothing includes anything" python3 - <<'PY'
import json
r = json.load(open("out"))
assert isinstance(r["tokens_spearman"], float) and isinstance(r["words_spearman"], float)
assert all(p["trace"] > 0 and p["included"] is None for p in r["word_dropping"]), r["word_dropping"]
PY
check "no broken number" test "$(grep -ciE '="-?(nan|inf)' p.html)" -eq 0
# captions of a known density: the more they say the surer they are, and the likelier their pictures
want 0 data ambiguous --out known --n 120 --dim 12 --roots 3 --branches 2 --levels 3 --texts 2 --test-share 0.3 -q
want 0 eval uncertainty --texts known/test/known.safetensors --images known/test/images.safetensors \
    --truth known/truth/test.pairs --json
check "by level" python3 - <<'PY'
import json
c = json.load(open("out"))["claims"]
assert c["measure"] == "vmf" and c["score_rises"] > 0.6, c
assert c["level_0_mean"] > c["level_1_mean"] > c["level_2_mean"], c
assert c["level_0_score"] < c["level_1_score"] < c["level_2_score"], c
PY
# none of the above, a robust score, and a hierarchy gone through, behind the adapter
want 0 classify -m long --images shapes/test --classnames star,circle --templates simple --none dummy \
    --none-prompts "a photo" "a thing" --negatives shapes/val --json
has_keys none_of_above
check "probabilities are of the softmax that was learned with, not of the model's cosines" python3 - <<'PY'
import json, struct
def array(path, name):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    begin, end = head[name]["data_offsets"]
    return struct.unpack("<%df" % ((end - begin) // 4), data[8 + n + begin:8 + n + end])
r = json.load(open("out"))
tau = array("lengths/model.safetensors", "temperature")[0]
assert abs(r["scale"] - tau) < 1e-6 and r["measure"] == "vmf", (r["scale"], tau)
PY
want 0 classify -m long --images shapes/test --classnames star,circle --templates simple --none margin \
    --none-threshold 0.5 --json
want 0 classify -m long --images shapes/test --classnames star,circle --templates simple --none uncertainty \
    --none-threshold 0.5 --json
want 0 traverse --images i.safetensors --texts long.safetensors -m long --json
prints '"measure"'

# what looks at the model alone says so; another model's adapter, a taken folder, wrong usage
want 1 quantize -m both --images shapes/test -o small
says "has the adapter whitened beside it"
want 1 adapt attach both texts-only --out three
says "has the adapter whitened beside it"
want 1 adapt attach model whitened --out both
says "both exists"
want 0 init --config tiny --override "$small_config" --tokenizer tok.json --out other --seed 9 -q
want 1 adapt attach other whitened --out wrong
says "was learned from image embeddings of model"
says "the model is other"
cp -r other mixed && cp -r whitened mixed/adapter
want 1 embed -m mixed --images shapes/test -o none.safetensors
says "was learned from image embeddings of model"
want 1 adapt attach model nowhere --out wrong
want 2 adapt attach model --out wrong
says "1 names are given"
check "nothing was left behind" test ! -e wrong -a ! -e wrong.partial -a ! -e none.safetensors
every_option adapt attach
finish
