#!/bin/bash
# explain: words and patches left out, its page, and what cannot be taken apart.
source "$(dirname "$0")/common/lib.sh"
make_small

want 0 explain -m model --text 'a red star above a ring' --json
prints '"word": "above"'
prints '"removed"'
want 0 explain -m model --text 'a red star above a ring' --images shapes/test --cell 4 --html e.html
prints "removes"
check "the page has words" grep -qF 'star' e.html
check "no broken number" test "$(grep -cE '="-?(nan|inf)' e.html)" -eq 0
want 0 explain -m model --images shapes/test --cell 4 --remove grey --json
want 1 explain -m model --images shapes/test --cell 4000
says "leaves nothing"
want 2 explain -m model --text 'a star' --cell 2
says "about patches"
want 2 explain -m model
says "--text or --images"
want 1 explain -m model --text ' '
says "has no words"
want 1 explain -m model --images tok.json
# a convolution: eighths of the picture are filled, and nothing can be hidden
printf 'a\nred\nstar\n' >vocab.txt
want 0 init --config pcme-tiny --override '{"embed_dim": 16, "vision_cfg": {"base": 4}, "text_cfg": {"word_dim": 8}}' \
    --tokenizer vocab.txt --out pcme -q
mkdir one
tar -xf shapes/test/00000.tar -C one
cp "$(ls one/*.png | head -1)" one.png
want 0 explain -m pcme --images one.png --json --html p.html
check "eight by eight" python3 -c '
import json
r = json.load(open("out")); parts = r["item_0"]["parts"]
assert r["removal"] == "grey" and len(parts) == 64 and parts[-1]["row"] == parts[-1]["column"] == 7, r["removal"]
assert any(abs(x["removed"]) > 0 for x in parts) and all(x["h"] is not None and x["kl_difference"] is not None for x in parts)'
want 0 explain -m pcme --images one.png --cell 3 --json
check "three by three" test "$(grep -c '"kl_difference"' out)" -eq 9
want 1 explain -m pcme --images one.png --remove drop
says "--remove grey fills eighths"
want 1 explain -m pcme --images one.png --cell 8
says "leaves nothing of 8 by 8"
finish
