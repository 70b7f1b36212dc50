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
check "no broken number" test "$(grep -cE '="-?(nan|inf)|[^a-z]nan[^a-z]' p.html)" -eq 0
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
want 0 probe -m model --texts shapes/test/captions.jsonl --published --bins 3 --json
prints '"tokens_spearman"'
want 2 probe -m model
says "--images or --texts"
want 2 probe -m model --images shapes/test --shares 0.5 0.1
says "must ascend"
want 2 probe -m model --images shapes/test --shares 1.5
says "from 0 to 1"
want 1 probe -m model --images nowhere
mkdir broken
head -c 100 /dev/zero >broken/a.png
want 1 probe -m model --images broken
says "none of"
finish
