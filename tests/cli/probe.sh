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

# chains of pictures
make_coco
want 0 data chains --instances instances.json --pictures pictures --out chains --segments 2 \
    --min-pixels 100 --max-pictures 2 -q
want 0 probe -m model --control control --chains chains/test
prints "picture inside"
want 0 probe -m model --chains chains/test --json --html image_hierarchy.html
prints '"n_chains": 2'
check "chains are drawn" grep -qF 'Picture inside the level' image_hierarchy.html
check "no broken number" test "$(sed 's|base64,[^"]*||g' image_hierarchy.html | grep -cE '="-?(nan|inf)|[^a-z]nan[^a-z]')" -eq 0
want 1 probe -m model --chains shapes/test
says "is no level of a chain"
finish
