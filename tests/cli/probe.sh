#!/bin/bash
# probe: levels, lengths, curves and inclusion tests of a small model beside a control.
source "$(dirname "$0")/common/lib.sh"
make_small
want 0 init --config tiny --override "$small_config" --tokenizer tok.json --seed 1 --out control -q

want 0 probe -m model --control control --images shapes/test --texts shapes/test/captions.jsonl \
    --shares 0 0.1 0.5 1 --limit 6 --html p.html
prints "uncertainty by caption level"
prints "uncertainty by number of words"
prints "erased pixels"
prints "dropped words"
prints "both pictures in their mean"
check "the page has curves" test "$(grep -c '<path' p.html)" -ge 4
check "levels and lengths" test "$(grep -o 'Uncertainty by \(caption level\|words\|tokens\)' p.html | sort -u | wc -l)" -eq 3
prints "inclusion against KL(1||2) - KL(2||1)"
check "the comparison with KL" grep -qF 'caption in itself without half of its words' p.html
check "the tests" grep -qF 'both pictures in their mean' p.html
check "no broken number" test "$(sed 's|base64,[^"]*||g' p.html | grep -cE '="-?(nan|inf)|[^a-z]nan[^a-z]')" -eq 0
check "no outside resource" test "$(grep -cE '(src|href)="?(https?:)?//' p.html)" -eq 0
want 0 probe -m model --images shapes/test --limit 4 --shares 0 0.3 --json
prints '"occlusion"'
prints '"included": 0.0'
check "no control column without a control" test "$(grep -c control_trace out)" -eq 0
cp out first
want 0 probe -m model --images shapes/test --limit 4 --shares 0 0.3 --json
check "the same numbers again" cmp -s first out
want 0 probe -m model --images shapes/test --limit 4 --shares 0 0.3 --random-place --seed 3 --json
check "another place, other numbers" test -n "$(cmp first out)"
cp out third
for seed in 3 4; do
    want 0 probe -m model --images shapes/test --limit 4 --shares 0 0.3 --random-place \
        --seed $seed --json
    check "places of seed $seed" test "$(cmp -s third out; echo $?)" -eq $((seed - 3))
done
want 0 probe -m model --texts shapes/test/captions.jsonl --published --bins 3 --json
prints '"tokens_spearman"'
want 2 probe -m model
says "--images, --texts or --chains"
want 2 probe -m model --texts shapes/test/captions.jsonl --erased 0.3
want 2 probe -m model --images shapes/test --bins 3
says "needs --texts"
want 2 probe -m model --chains chains/test --shares 0 1
want 2 probe -m model --images shapes/test --shares 0.5 0.1
says "must ascend"
want 2 probe -m model --images shapes/test --shares 1.5
says "from 0 to 1"
want 1 probe -m model --images nowhere
mkdir broken
head -c 100 /dev/zero >broken/a.png
want 1 probe -m model --images broken
says "none of"

# inclusion beside the difference of divergences
want 0 probe -m model --control control --images shapes/test --texts shapes/test/captions.jsonl \
    --shares 0.5 --limit 8 --json
check "shares of H are those of the tests" python3 -c '
import json
r = json.load(open("out")); shares = {t["test"]: t["share"] for t in r["inclusion_tests"]}
rows = r["inclusion_against_kl"]
assert [x["test"] for x in rows] == ["erased", "half_text"] and all(x["n"] == 8 for x in rows), rows
for x in rows:
    assert x["by_h"] == shares[x["test"]] and abs(x["by_h"] - x["only_h"] - x["by_kl"] + x["only_kl"]) < 1e-9, x
    assert 0 <= x["h_auroc"] <= 1 and 0 <= x["control_kl_auroc"] <= 1 and 0 < x["p"] <= 1, x'
want 0 probe -m model --images shapes/test --limit 1 --shares 0.5 --json
check "one picture has no strangers" python3 -c '
import json
x = json.load(open("out"))["inclusion_against_kl"][0]; assert x["h_auroc"] is None and x["n"] == 1, x'

# PCME: a ResNet and words; a word that goes becomes the unknown one, at share 1 all of them
{ printf '<pad>\n<start>\n<end>\n<unk>\n'; sed 's/.*"text": "\([^"]*\)".*/\1/' shapes/train/captions.jsonl | tr ' ' '\n' | sort -u; } >vocab.txt
narrow='{"embed_dim": 16, "vision_cfg": {"base": 4}, "text_cfg": {"word_dim": 8}}'
want 0 init --config pcme-tiny --override "$narrow" --tokenizer vocab.txt --out pcme -q
want 0 probe -m pcme --control pcme --images shapes/test --texts shapes/test/captions.jsonl --limit 6 \
    --shares 0 0.5 1 --html pcme.html
prints "a dropped word leaves  the unknown word"
prints "both pictures in their mean"
prints "inclusion against KL"
check "no broken number" test "$(sed 's|base64,[^"]*||g' pcme.html | grep -cE '="-?(nan|inf)|[^a-z]nan[^a-z]')" -eq 0
printf 'a red star\na big blue zorb above a ring\n' >two.txt
printf 'zorb zorb zorb\nzorb zorb zorb zorb zorb zorb zorb\n' >unknown.txt
want 0 embed -m pcme --texts unknown.txt -o unknown.safetensors -q
want 0 info unknown.safetensors --json
cp out unknown.json
for words in unk drop; do
    want 0 probe -m pcme --texts two.txt --shares 1 --words $words --json
    cp out $words.json
done
check "at share 1 all words are unknown, or one is left" python3 -c '
import json
unk, drop = (json.load(open(w + ".json")) for w in ("unk", "drop"))
trace = json.load(open("unknown.json"))["uncertainty_mean"]
a, b = unk["word_dropping"][0]["trace"], drop["word_dropping"][0]["trace"]
assert abs(a - trace) < 1e-6 * trace and abs(b - trace) > 1e-4 * trace, (a, b, trace)
assert unk["words_leave"] == "the unknown word" and drop["words_leave"] == "nothing"'
want 0 explain -m pcme --text 'a red star' --json
prints '"kl_difference"'
want 1 probe -m model --texts two.txt --words unk
says "--words drop takes them out"
want 2 probe -m model --images shapes/test --words unk
says "needs --texts"
want 0 init --config pvse-tiny --override "$narrow" --tokenizer vocab.txt --out pvse -q
want 1 probe -m pvse --images shapes/test
says "points without uncertainty"
want 0 init --config pcmepp-tiny --tokenizer tok.json --out pcmepp -q
want 0 probe -m pcmepp --images shapes/test --texts two.txt --shares 0 1 --limit 2
prints "a dropped word leaves  nothing"
prints "halves of two"

# chains of pictures
make_coco
want 0 data chains --instances instances.json --pictures pictures --out chains --segments 2 \
    --min-pixels 100 --max-pictures 2 -q
want 0 probe -m model --control control --chains chains/test
prints "picture inside"
want 0 probe -m model --chains chains/test --json --html image_hierarchy.html
prints '"n_chains": 2'
check "levels by H and by KL" python3 -c '
import json
r = json.load(open("out"))
rows = r["inclusion_against_kl"]
assert len(rows) == len(r["chains"]) - 1 and all(x["n"] == 2 for x in rows), rows
assert all(x["by_h"] == c["included"] for x, c in zip(rows, r["chains"])), rows'
check "chains are drawn" grep -qF 'Picture inside the level' image_hierarchy.html
check "no broken number" test "$(sed 's|base64,[^"]*||g' image_hierarchy.html | grep -cE '="-?(nan|inf)|[^a-z]nan[^a-z]')" -eq 0
want 1 probe -m model --chains shapes/test
says "is no level of a chain"
finish
