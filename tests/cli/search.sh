#!/bin/bash
# search: nearest rows by text, picture and set, every family and measure, where lists end, inclusion
# search, its page, and what does not go together. What a calibration is worth is calibrate.sh's.
source "$(dirname "$0")/common/lib.sh"
make_small
want 0 embed -m model --images shapes/test -o i.safetensors -q
want 0 embed -m model --texts shapes/test/captions.jsonl -o t.safetensors -q
mkdir photos
tar -xf shapes/test/00000.tar -C photos --wildcards '*.png'
photo=$(ls photos/*.png | head -1)

want 0 search --index i.safetensors -m model --query-text 'a red star' 'a ring' -k 3 --json
check "three hits for each of two queries" test "$(grep -c '"rank"' out)" -eq 6
has_keys index measure calibration p_match_by hits.query hits.rank hits.row hits.score \
    hits.p_match hits.uncertainty hits.id hits.item
check "scores fall, ranks rise" python3 -c 'import json
for query in ("a red star", "a ring"):
    hits = [h for h in json.load(open("out"))["hits"] if h["query"] == query]
    assert [h["rank"] for h in hits] == [1, 2, 3], hits
    assert sorted((h["score"] for h in hits), reverse=True) == [h["score"] for h in hits]'
want 0 search --index i.safetensors -m model --query-text 'a red star' --precision bf16
says "embedded in precision"
want 0 search --index t.safetensors --queries i.safetensors -k 1
want 0 search --index i.safetensors --queries t.safetensors --json
check "ten hits, or all of eight" test "$(grep -c '"rank": 8' out)" -eq "$(grep -c . t.ids.jsonl)"
want 0 search --index i.safetensors --queries i.safetensors -k 1 --measure mean --json --device ref
check "every picture finds itself, on the oracle too" python3 -c 'import json
hits = json.load(open("out"))["hits"]
assert len(hits) == 8 and all(h["row"] == i and abs(h["score"] - 1) < 1e-6 for i, h in enumerate(hits))'

# pictures, and other parts than the model's
want 0 search --index i.safetensors -m model --query-image "$photo" -k 1 --measure mean --json
prints '"score": 1.0'
want 0 search --index i.safetensors -m model --query-image "$photo" --exif -k 1
mkdir bare
cp model/config.json model/model.safetensors bare/
want 1 search --index i.safetensors -m bare --query-text a
says "bare has no tokenizer"
want 0 search --index i.safetensors -m bare --query-text a --tokenizer tok.json --json
cp out bare.out
want 0 search --index i.safetensors -m model --query-text a --json
check "the tokenizer that was named" cmp -s bare.out out
want 0 search --index i.safetensors -m bare --query-image "$photo" \
    --preprocess model/preprocessor_config.json -k 1 --measure mean --json
prints '"score": 1.0'
want 1 search --index i.safetensors -m model --query-image "$photo" --max-image-pixels 100
says "the limit is 100 in all"
want 1 search --index i.safetensors -m model --query-image nowhere.png
says "nowhere.png"

# samples of a Monte-Carlo measure are drawn from --seed
for draw in 1 1 2; do
    want 0 search --index i.safetensors --queries t.safetensors -k 2 --measure match_prob \
        --seed $draw --json
    grep '"score"' out | sha256sum >>scores
done
check "scores of the same seed" test "$(head -2 scores | sort -u | wc -l)" -eq 1
check "scores of another" test "$(sort -u scores | wc -l)" -eq 2

# their constants: of the command line, of the set, conflicts, and what no other measure reads
match=(search --index i.safetensors --queries t.safetensors -k 2 --measure match_prob --json)
want 0 "${match[@]}"
has_keys samples match_a match_b
prints '"samples": 7'
prints '"match_a": 5.0'
cp out usual
want 0 "${match[@]}" --samples 7 --match-a 5 --match-b 5
check "the defaults by name, the same but for their being somebody's" \
    test -z "$(diff usual out | grep '^[<>]' | grep -vE '"p_match(_by)?"')"
want 0 "${match[@]}" --samples 3 --match-a 15 --match-b 14.5
prints '"samples": 3'
prints '"match_b": 14.5'
check "other scores" test "$(grep '"score"' usual | sha256sum)" != "$(grep '"score"' out | sha256sum)"
want 2 search --index i.safetensors --queries t.safetensors --samples 3
says "--samples belongs to the measures avg_l2 and match_prob: csd draws none"
want 2 search --index i.safetensors --queries t.safetensors --measure avg_l2 --match-a 3
says "not to avg_l2"
want 2 "${match[@]}" --samples 0
carry() { # SET OUT A B: a copy that carries a and b
    python3 - "$@" <<'END'
import json, struct, sys
data = open(sys.argv[1] + ".safetensors", "rb").read()
n, = struct.unpack("<Q", data[:8])
head = json.loads(data[8:8 + n])
head["__metadata__"].update(match_a=sys.argv[3], match_b=sys.argv[4])
text = json.dumps(head).encode()
text += b" " * (-len(text) % 8)
open(sys.argv[2] + ".safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data[8 + n:])
END
    cp "$1.ids.jsonl" "$2.ids.jsonl"
}
carry i carried 12 11.5
want 0 info carried.safetensors --json
prints '"match_a": 12.0'
match[2]=carried.safetensors
want 0 "${match[@]}"
prints '"match_a": 12.0'
prints '"match_b": 11.5'
want 0 "${match[@]}" --match-b 3
prints '"match_a": 12.0'
prints '"match_b": 3.0'
carry t other 9 9
match[4]=other.safetensors
want 2 "${match[@]}"
says "say which by --match-a and --match-b"
want 0 "${match[@]}" --match-a 5 --match-b 5
prints '"match_a": 5.0'

# a shortlist: all of it is the exact search, part of it is told
match=(search --index i.safetensors --queries t.safetensors -k 2 --measure match_prob --json)
want 0 "${match[@]}" --shortlist 8
prints '"shortlist": 8'
check "the hits of the exact search" test "$(grep -E '"(score|row)"' usual | sha256sum)" = \
    "$(grep -E '"(score|row)"' out | sha256sum)"
want 0 search --index i.safetensors --queries t.safetensors -k 2 --measure match_prob --shortlist 3
prints "only a shortlist of each query was scored"
want 2 "${match[@]}" --shortlist 1
says "--shortlist 1 is shorter than the 2 hits of -k"
want 2 search --index t.safetensors -m model --query-text a --inclusion contains --shortlist 4
says "--inclusion looks at every row"

# where lists end
want 0 search --index t.safetensors --queries i.safetensors --min-probability 0 -k 2 --json
has_keys min_probability no_good_result lists.query lists.n_hits lists.best_score lists.best_p_match \
    lists.p_first
want 0 search --index t.safetensors --queries i.safetensors --min-probability 1
prints "no good result"
want 0 embed -m model --images shapes/train -o all.safetensors -q
want 0 calibrate --images all.safetensors --texts all.safetensors -o c.json -q
want 0 search --index all.safetensors --queries all.safetensors --calibration c.json --conformal 0.3 \
    --conformal-by rank --json
has_keys conformal_alpha conformal_by conformal_cutoff is_cut calibration
prints '"calibration": "c.json"'
prints '"conformal_by": "rank"'
want 1 search --index all.safetensors --queries i.safetensors --calibration nowhere.json
says "nowhere.json"
want 0 embed -m model --images shapes/test -o u.npy -q
rm u.json
want 0 search --index all.safetensors --queries u.npy -k 1 --calibration c.json --trust-calibration --json
says "on your word"
prints '"p_match_by": "calibration"'

# sets of every family: what fits, what is chosen, what the errors say
make_families
for pair in "vmf vmf" "vmf vmf_exact" "power power_spherical" "generalised csd" "generalised w2" \
    "vmf mean" "power avg_l2" "generalised match_prob"; do
    read -r set measure <<<"$pair"
    want 0 search --index "$set.safetensors" --queries points.safetensors --measure "$measure" -k 2
    prints "points3"
done
# The uniform row (kappa 0) is the most uncertain, and its score is -log 2pi for every query.
want 0 search --index vmf.safetensors --queries points.safetensors --measure vmf_exact -k 4 --json
check "uniform row scores the log density of the circle" \
    test "$(grep -c '"score": -1.83787[67]' out)" -eq 4
for pair in "vmf vmf" "power power_spherical" "generalised csd" "points csd"; do
    read -r set measure <<<"$pair"
    want 0 search --index "$set.safetensors" --queries points.safetensors --json
    prints "\"measure\": \"$measure\""
done
want 1 search --index vmf.safetensors --queries points.safetensors --measure csd
says "family vmf; use mean, avg_l2, match_prob, or vmf or vmf_exact"
want 1 search --index power.safetensors --queries points.safetensors --measure vmf
says "family power_spherical"
want 1 search --index generalised.safetensors --queries points.safetensors --measure kl
says "both sides"

want 0 search --index i.safetensors --queries t.safetensors -k 1 --uncertainty geo_std --json
check "another uncertainty of the hits" python3 -c 'import json; h = json.load(open("out"))["hits"]
assert all(0 < x["uncertainty"] < 1 for x in h), h'
want 2 search --inclusion contains --index t.safetensors --queries i.safetensors --uncertainty trace
says "leave --uncertainty out"

want 0 search --index i.safetensors --queries t.safetensors -k 1 --predict sampling --draws 20 --json
prints '"measure": "mean"'
prints '"prediction": "sampling"'

# inclusion search
want 0 search --inclusion contains --index t.safetensors --queries i.safetensors -k 2
prints "members"
cp out now
want 0 include --index t.safetensors --queries i.safetensors -k 2
check "include is search --inclusion contains" cmp -s out now
says 'warning: `penumbra include` is now `penumbra search --inclusion contains|inside`'
want 0 search --index i.safetensors --inclusion inside -m model --query-text 'a star' --order nearness \
    --near 0 --published --json
prints '"direction": "inside"'
prints '"n_members"'
has_keys index direction measure order queries.query queries.n_members
# --order, --near and --published each change what is found, and the result says so
members() { # OPTIONS...: H and nearness of the rows inside each caption, in the order they are listed
    want 0 search --inclusion inside --index i.safetensors --queries t.safetensors -k 5 --json "$@"
    tr -d '\n' <out | grep -o '"h": [^,]*, *"nearness": [^,]*' | sed 's/"h": //; s/, *"nearness": / /'
}
members >by_h
has_keys members.query members.rank members.row members.h members.nearness members.uncertainty \
    members.id members.item
check "captions of general meaning hold pictures" test "$(wc -l <by_h)" -gt 5
members --order nearness >by_nearness
prints '"order": "nearness"'
first_five() { awk -v c="$1" 'NR <= 5 { if (NR > 1 && $c > before) bad = 1; before = $c } END { exit bad }' "$2"; }
check "by H" first_five 1 by_h
check "by nearness" first_five 2 by_nearness
check "which is another order" test "$(cat by_h)" != "$(cat by_nearness)"
members --published >published
prints '"measure": "inclusion_published"'
check "the published test has values of its own" test "$(cat by_h)" != "$(cat published)"
members --near 1.5 >near
check "nothing is nearer than itself" test ! -s near
want 2 search --inclusion contains --index t.safetensors
says "one of --query-text"
want 2 include --index t.safetensors --queries i.safetensors -m model
says "encoded already"
want 2 search --inclusion contains --index t.safetensors --query-text a
says "--model is missing"
want 1 search --inclusion contains --index i.ids.jsonl --queries i.safetensors
for option in "--measure csd" "--conformal 0.1" "--min-probability 0.5" "--calibration none" "--html x.html"; do
    want 2 search --inclusion contains --index t.safetensors --queries i.safetensors $option
    says "--inclusion"
done
for option in "--near 0" "--order nearness" --published; do
    want 2 search --index t.safetensors --queries i.safetensors $option
    says "need --inclusion"
done

# the page: how it looks is pages.sh's
want 0 search --index t.safetensors -m model --query-image "$photo" -k 2 --html page.html --json
prints '"html": "page.html"'
check "the picture that was asked for is inside" grep -qF 'data:image/png;base64,' page.html

# what does not go together
want 2 search --queries i.safetensors
says "one of --index and --collection is wanted"
want 2 search --index i.safetensors -m model --query-text a --queries t.safetensors
says "only one of --query-text, --query-image, --queries is wanted"
want 2 search --index i.safetensors -m model --query-text a --exif
says "--exif needs --query-image"
want 2 search --index i.safetensors --queries t.safetensors -k 0
says "-k 0: must be between"
want 2 search --index i.safetensors --queries t.safetensors --conformal 0.1 --min-probability 0.5
says "only one of --conformal and --min-probability"
want 1 search --index shapes/test/00000.tar --queries i.safetensors
want 1 search --index nowhere.safetensors --queries i.safetensors
says "nowhere.safetensors"
want 0 init --config tiny --override "$small_config" --tokenizer tok.json --seed 1 --out other -q
want 1 search --index i.safetensors -m other --query-text a
says "weights"
want 1 search --inclusion contains --index i.safetensors -m other --query-text a
says "weights"

# of a collection: tests/cli/collection.sh
want 1 search --collection nowhere -m model --query-text a --tags a --since 2020-01-01 \
    --until 2021-01-01 --min-uncertainty 0 --max-uncertainty 1

want 0 search --index i.safetensors --queries t.safetensors -k 2 --approx bf16 --recall 0.9
every_option search
finish
