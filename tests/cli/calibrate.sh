#!/bin/bash
# calibrate, and what search makes of it: probabilities, lists that end, "no good result" as an answer.
source "$(dirname "$0")/common/lib.sh"
make_small
want 0 embed -m model --images shapes/train -o i.safetensors -q
want 0 embed -m model --texts shapes/train/captions.jsonl -o t.safetensors -q
want 0 embed -m model --texts shapes/train/captions.jsonl --masked -o tm.safetensors -q
want 0 search --index i.safetensors --queries i.safetensors -k 2 --json
prints '"calibration": null'

# each picture is its own match: separable
want 0 calibrate --images i.safetensors --texts i.safetensors
prints "smoothed targets"
check "the fit lies beside the set" test -s i.calibration.json
want 0 search --index i.safetensors --queries i.safetensors -k 2 --json
prints '"calibration": "i.calibration.json"'
want 0 search --index i.safetensors --queries i.safetensors --min-probability 0.5 --json
prints '"no_good_result": false'
want 0 search --index i.safetensors --queries i.safetensors --min-probability 1 --json
prints '"no_good_result": true'
prints '"hits": []'
want 0 search --index i.safetensors --queries i.safetensors --min-probability 1
prints "no good result"
want 0 search --index i.safetensors --queries i.safetensors --conformal 0.2 --conformal-by rank \
    --json
prints '"conformal_cutoff": 1.0'
n_rows=$(grep -c . i.ids.jsonl)
check "one hit a query" test "$(grep -c '"rank":' out)" -eq "$n_rows"
want 0 search --index i.safetensors --queries i.safetensors --conformal 0.001 --json
says "too few for an error rate"
check "whole lists" test "$(grep -c '"rank":' out)" -eq $((n_rows * n_rows))
want 0 search --index i.safetensors --queries i.safetensors --conformal 0.001 -k 3 --json
says "ends a list early"
prints '"is_cut": true'
check "three hits a query" test "$(grep -c '"rank":' out)" -eq $((3 * n_rows))

# masked captions search the captions; both ways to fit, all figures
want 0 calibrate --images t.safetensors --texts tm.safetensors --gallery images --holdout 0.5 \
    --alphas 0.1 0.3 --bins 5 --out c.json --plot c.html --json
check "four diagrams" test "$(grep -c 'class="title"' c.html)" -eq 4
check "no broken number" test "$(grep -cE '="-?(nan|inf)' c.html)" -eq 0
prints '"ece_held"'
prints '"coverage"'
prints '"reliability_first"'
prints '"n_pairs"'
want 0 search --index t.safetensors --queries tm.safetensors --calibration c.json --conformal 0.3 -k 5
want 0 calibrate --images t.safetensors --texts tm.safetensors --out c2.json -q \
    --max-pairs 1000 --method platt --seed 3 --measure w2
want 1 search --index t.safetensors --queries tm.safetensors --calibration c2.json
says "fitted for the measure w2"
want 0 search --index t.safetensors --queries tm.safetensors --calibration c2.json --measure w2 -k 1

want 0 calibrate --images t.safetensors --texts t.safetensors --out f.json --folds 4 --plot f.html
prints "by fits on the others of folds"
want 1 search --index t.safetensors --queries tm.safetensors --calibration f.json -k 5
says "tokens deleted with"
want 0 search --index t.safetensors --queries t.safetensors --calibration f.json --conformal 0.3 -k 5
want 2 calibrate --images t.safetensors --texts t.safetensors --folds 1

want 0 calibrate --images t.safetensors --texts t.safetensors --depth 3 --out d.json
prints "first hits of a query"
want 0 search --index t.safetensors --queries t.safetensors --calibration d.json -k 3
want 0 embed -m model --texts shapes/test/captions.jsonl -o ts.safetensors -q
want 1 search --index ts.safetensors --queries t.safetensors --calibration d.json -k 3
says "fitted to first hits among"

want 0 calibrate --images t.safetensors --texts t.safetensors --level 3 --out l.json --json
check "only captions of a level ask" test "$(grep -c '"level": 3' t.ids.jsonl)" -eq \
    "$(awk '/"n_fit"|"n_held"/ { gsub(",", ""); n += $2 } END { print n }' out)"
want 1 calibrate --images t.safetensors --texts tm.safetensors --level 3 --out l2.json
says "label 1 for a match: label 1 does not score higher"
want 2 calibrate --images t.safetensors --texts tm.safetensors --split test
want 1 calibrate --images t.safetensors --texts tm.safetensors --truth l.json --out l2.json

# what does not fit
want 0 search --index i.safetensors --queries i.safetensors --measure w2 -k 1
says "it is not used"
want 1 search --index i.safetensors --queries i.safetensors --measure w2 --min-probability 0.5
says "fitted for the measure csd"
want 1 search --index i.safetensors --queries i.safetensors --measure w2 --min-probability 0.5 \
    --calibration none
says "penumbra calibrate"
want 1 search --index t.safetensors --queries tm.safetensors --conformal 0.1
says "no calibration of this set"
want 2 search --index i.safetensors --queries i.safetensors --conformal 0.1 --min-probability 0.5
want 2 search --index i.safetensors --queries i.safetensors --conformal-by rank
want 2 search --index i.safetensors --queries i.safetensors --conformal 1.5
want 2 calibrate --images i.safetensors --texts i.safetensors --alphas 2
want 1 calibrate --images i.safetensors --texts t.safetensors --out never.json
says "pairs file"
check "nothing half-written" test ! -e never.json
want 0 init --config tiny --override "$small_config" --tokenizer tok.json --seed 1 --out other -q
want 0 embed -m other --images shapes/train -o o.safetensors -q
want 1 calibrate --images i.safetensors --texts o.safetensors
says "weights"
want 1 search --index o.safetensors --queries o.safetensors --calibration i.calibration.json
says "fitted for the weights"
echo '{"format": "other"}' >i.calibration.json
want 1 search --index i.safetensors --queries i.safetensors
says "i.calibration.json"

# a gallery of another size: odds are scaled, lists by score stay valid, others are refused
want 0 embed -m model --images shapes/test -o small.safetensors -q
want 0 calibrate --images i.safetensors --texts i.safetensors --out i2.json -q
want 0 search --index small.safetensors --queries i.safetensors --calibration i2.json -k 1
says "odds of a match are scaled"
want 0 search --index small.safetensors --queries i.safetensors --calibration i2.json --conformal 0.2 \
    --json
prints '"conformal_by": "score"'
want 1 search --index small.safetensors --queries i.safetensors --calibration i2.json --conformal 0.2 \
    --conformal-by rank
says "holds for the"

# Fitted on captions that search pictures: no probability for a picture that searches them, be it
# the calibration's or the model's own. Scores of an untrained model tell nothing, so the truth is
# what it finds first.
run search --index i.safetensors --queries t.safetensors --calibration none -k 1 --json
python3 -c '
import json
hits = json.load(open("out"))["hits"]
ids = [json.loads(l)["id"] for l in open("t.ids.jsonl")]
for n, (hit, text) in enumerate(zip(hits, ids)):
    if n % 7: print(hit["id"], text, sep="\t")' >first.pairs
rm -f i.calibration.json
want 0 calibrate --images i.safetensors --texts t.safetensors --truth first.pairs --json
cp out fit.json
check "both sides are told" python3 -c '
import json
for r in (json.load(open("fit.json")), json.load(open("i.calibration.json"))):
    q, g = r["query_origin"], r["gallery_origin"]
    assert (q["modality"], g["modality"]) == ("text", "image"), r
    assert q["family"] == g["family"] == "gaussian_diag"
    assert q["weights_sha256"] == g["weights_sha256"] and len(q["weights_sha256"]) == 64
    assert q["preprocess"] != g["preprocess"]
assert json.load(open("i.calibration.json"))["measure_options"]["n_samples"] == 7'
picture=$(find shapes/test -name '*.tar' | head -1)
mkdir -p one && tar -C one -xf "$picture" && picture=$(find one -name '*.png' -o -name '*.jpg' | head -1)
for query in "--query-text red" "--queries t.safetensors"; do
    want 0 search --index i.safetensors -m model $query -k 1 --json
    prints '"p_match_by": "calibration"'
    check "a probability" test "$(grep -c '"p_match": null' out)" -eq 0
done
for query in "--query-image $picture" "--queries i.safetensors"; do
    for calibration in "" "--calibration none" "--trust-calibration"; do
        want 0 search --index i.safetensors -m model $query $calibration -k 1 --json
        says "no probability is given"
        prints '"p_match_by": null'
        check "no probability" test "$(grep -c '"p_match": [0-9]' out)" -eq 0
    done
    want 1 search --index i.safetensors -m model $query --conformal 0.3
    says "on text queries, these are image"
    want 1 search --index i.safetensors -m model $query --min-probability 0.3
    says "on text queries, these are image"
    want 1 search --index i.safetensors -m model $query --calibration i.calibration.json
    says "on text queries, these are image"
    want 1 search --index i.safetensors -m model $query --calibration none --min-probability 0.3
    says "penumbra calibrate"
done
want 0 search --index t.safetensors --queries i.safetensors --calibration none -k 1 --json
prints '"p_match_by": "model"'
want 1 search --index t.safetensors --queries i.safetensors --calibration i.calibration.json -k 1
says "on text queries, these are image"

# files of version 1, and sets that do not say what they are: on the user's word
python3 -c '
import json
c = json.load(open("i.calibration.json"))
c["weights_sha256"] = c["gallery_origin"]["weights_sha256"]
for key in ("query_origin", "gallery_origin", "measure_options"): del c[key]
json.dump({**c, "version": 1}, open("old.json", "w"))'
want 0 search --index i.safetensors --queries t.safetensors --calibration old.json -k 1 --json
says "does not tell the modality of the queries"
check "said once" test "$(grep -c 'trust-calibration' err)" -eq 1
prints '"p_match_by": null'
want 1 search --index i.safetensors --queries t.safetensors --calibration old.json --conformal 0.3
says "--trust-calibration"
want 0 search --index i.safetensors --queries t.safetensors --calibration old.json -k 1 --json \
    --trust-calibration
says "on your word"
prints '"p_match_by": "calibration"'
want 0 embed -m model --texts shapes/train/captions.jsonl -o u.npy -q
rm u.json
want 0 search --index i.safetensors --queries u.npy -k 1 --json
says "the modality of the queries here is unknown"
prints '"p_match_by": null'
want 0 search --index i.safetensors --queries u.npy -k 1 --json --trust-calibration
prints '"p_match_by": "calibration"'

# match_prob is a forecast by itself where its a and b are somebody's
own=(calibrate --images i.safetensors --texts i.safetensors --measure match_prob -o own.json --json)
want 0 "${own[@]}" --match-a 4 --match-b 3
check "the model's own forecast" test "$(grep -c "\"forecast\": \"model's a, b\"" out)" -ge 1
want 0 "${own[@]}"
check "none by constants of nobody" test "$(grep -c "\"forecast\": \"model's a, b\"" out)" -eq 0
finish
