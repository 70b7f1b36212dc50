#!/bin/bash
# The model that comes with the program, by its name: what it is, what it knows of drawings, that it
# is found beside the program wherever that stands, and names that it has not.
source "$(dirname "$0")/common/lib.sh"

want 0 info shipped:tiny --json
has_keys kind family weights_sha256 vision.image_width text.context_length
check "a small ProLIP" python3 -c 'import json; r = json.load(open("out"))
assert r["family"] == "prolip" and r["probabilistic"] and r["weight_bytes"] < 8e6, r'
says_its_hash=$(sed -n 's/.*"weights_sha256": "\([0-9a-f]*\)".*/\1/p' out)
check "the hash of its file" test "$says_its_hash" = \
    "$(sha256sum "$PNB_SOURCE_DIR/share/penumbra/models/tiny/model.safetensors" | cut -d' ' -f1)"
want 1 info shipped:none
says "shipped:none: no model of this name came with the program"
want 1 embed -m shipped: --text a -o no.npy
says "is not shipped:NAME"
want 1 embed -m shipped:../tiny --text a -o no.npy
says "is not shipped:NAME"

# It finds scenes of shapes by words; another seed than its training's.
want 0 data shapes --out scenes --n 200 --val-share 0 --test-share 0 --seed 99 -q
want 0 embed -m shipped:tiny --images scenes/train -o i.safetensors -q
want 0 embed -m shipped:tiny --texts scenes/train/captions.jsonl -o t.safetensors -q
want 0 eval retrieval --images i.safetensors --texts t.safetensors --truth scenes/truth/train.pairs \
    --level 3 --json
check "ten times better than chance" python3 -c 'import json
f = {x["figure"]: x for x in json.load(open("out"))["figures"]}
for side in "i2t", "t2i":
    assert f["recall@10"][side] > 0.3, f["recall@10"]'

# Beside a program that was moved, and nowhere.
mkdir -p prefix/bin elsewhere/bin
cp "$PENUMBRA" prefix/bin/penumbra
cp "$PENUMBRA" elsewhere/bin/penumbra
mkdir -p prefix/share/penumbra/models
cp -r "$PNB_SOURCE_DIR/share/penumbra/models/tiny" prefix/share/penumbra/models/mine
check "beside the program" prefix/bin/penumbra info shipped:mine --json >info.json
check "not elsewhere" test -z "$(elsewhere/bin/penumbra info shipped:mine 2>/dev/null)"
finish
