#!/bin/bash
# check: CLIP, SigLIP and ProLIP folders, what a finding says and what it costs, the local cache.
source "$(dirname "$0")/common/lib.sh"
cases=$PNB_SOURCE_DIR/tests/golden/prolip_model
export HF_HOME=$work/home
unset HF_HUB_CACHE XDG_CACHE_HOME

# a golden file from another implementation, and the numbers of the folder's own configuration
cp -r "$cases/hf_first_eos" clip
cp clip/tensors.safetensors clip/golden.safetensors
want 1 check clip
prints "all 78 keys are there and fit"
prints "first end token"
prints "image_norm: worst cosine distance"
prints "text_norm: worst cosine distance"
prints "openai/clip-vit-base-patch32"
says "1 error"
want 1 check clip --json
check "check --json is JSON" python3 -c 'import json; r = json.load(open("out"))
assert r["n_errors"] == 1 and r["keys"]["ignored"] == 2 and r["text"]["activation"] == "gelu"
assert any(f["part"] == "tokenizer" and f["level"] == "error" for f in r["findings"])'
has_keys path family config weights format embed_dim image_height image_width patch \
    context_length vocab_size causal n_errors n_warnings findings.{level,part,text} \
    keys.{expected,found,missing,mis_shaped,unexpected,ignored} \
    {vision,text}.{key_names,width,layers,heads,mlp_width,activation,activation_source} \
    {vision,text}.{layernorm_eps,layernorm_source,pooling,projection,uncertainty}

# a weight that is another one, though every shape fits, shows in the comparison
cp -r clip other
python3 - other/model.safetensors <<'PY'
import json, struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
n = struct.unpack("<Q", data[:8])[0]
at = json.loads(data[8:8 + n])["visual_projection.weight"]["data_offsets"]
data[8 + n + at[0]:8 + n + at[1]] = data[8 + n + at[0]:8 + n + at[1]][::-1][3:] + b"\0\0\0"
open(sys.argv[1], "wb").write(data)
PY
rm -f other/model.safetensors.sha256
want 1 check other
says "error"
grep -q "1 error," err && fail "a changed weight went unnoticed"
# a key that is called otherwise is missing, and one too many
cp -r clip renamed
sed -i 's/"visual_projection.weight"/"visual_projektion.weight"/' renamed/model.safetensors
rm -f renamed/model.safetensors.sha256
want 1 check renamed --json
prints "visual_projektion.weight"
check "counted both ways" python3 -c 'import json; k = json.load(open("out"))["keys"]
assert (k["missing"], k["unexpected"], k["mis_shaped"]) == (1, 1, 0), k'

# a ProLIP model with its tokenizer: nothing to complain about
make_small
want 0 check model
prints "uncertainty"
prints "and back the same"
check "nothing is said beside the result" test ! -s err
cp out on_cpu
want 0 check model --device ref -t 1 -q
check "the oracle finds the same" diff <(sed 's/[0-9.]*$//' on_cpu) <(sed 's/[0-9.]*$//' out)
# inputs of one's own in every precision, on tiles where they are and where they are not
want 0 check model --images shapes/val --texts shapes/val/captions.jsonl --json -q
check "every precision of both sides, its time and its promise" python3 - <<'PY'
import json
r = json.load(open("out"))
for side in ("images", "texts"):
    rows = [w for w in r["ways"] if w["side"] == side]
    assert [w["way"] for w in rows] == ["precision " + p for p in (
        "fp32", "fp32-tiles", "fp32-tiles-fast", "bf16", "int8")], rows
    assert all(w["seconds"] > 0 for w in rows), rows
    assert rows[3]["least_cosine"] > 0.9999 and 0 < rows[3]["variance_change"] < 0.01, rows
assert any(f["part"] == "precision" for f in r["findings"])
PY
PENUMBRA_CPU=emulated want 0 check model --texts shapes/val/captions.jsonl --json -q
check "tiles of plain C keep what fp32-tiles promises, and are not fp32" python3 - <<'PY'
import json
tiles = json.load(open("out"))["ways"][1]
assert tiles["promise"] == "held" and tiles["variance_change"] < 1e-5, tiles
PY
printf 'title\tcaption\na star\ta ring\n' >captions.tsv
want 0 check model --texts captions.tsv --csv-caption-key caption --json -q
prints '"side": "texts"'
want 1 check model --texts captions.tsv --csv-caption-key wrong
says "wrong"
want 1 check model --images nowhere
says "nowhere"
mv model/preprocessor_config.json aside.json
want 0 check model
prints "does not say how pictures are prepared; assumed"
printf '{"size": 999, "crop_size": 999}' >model/preprocessor_config.json
want 1 check model
prints "999 x 999"
mv aside.json model/preprocessor_config.json
want 1 check model/none
prints "not a directory"
want 2 check model clip
says "one DIR at a time, found 'clip' too"
want 2 check
says "DIR is missing"
want 2 check model --foto p.jpg
says "did you mean --photo?"

# the photo of the published numbers is for the released weights alone
photo="$PNB_SOURCE_DIR/tests/golden/preprocess/jpeg_420/image.jpg"
want 0 check model --photo "$photo" --json
prints "--photo is compared only with the released weights of ProLIP ViT-B/16"
check "as a warning" python3 -c 'import json; r = json.load(open("out"))
assert r["n_warnings"] == 1 and [f["part"] for f in r["findings"] if f["level"] == "warning"] == ["published"]'

# a released ProLIP folder holds weights and constructor arguments alone
mkdir released
cp model/config.json model/model.safetensors released/
want 1 check released
prints "assumed as for family prolip: 48x48 bicubic shortest floor"
prints "name another tokenizer"

# a tokenizer of another model; transformers' tokenizer class cleans captions, the folder only names it
cp -r model siglip
printf '{"tokenizer_class": "SiglipTokenizer"}' >siglip/tokenizer_config.json
want 0 check siglip
prints "cleaning: canonicalize"
cp -r clip foreign && cp model/tokenizer.json foreign/
want 1 check foreign
prints "ids up to 299, the model knows 37"

# names of the local cache
mkdir -p home/hub/models--org--small/refs home/hub/models--org--small/snapshots
cp -r model home/hub/models--org--small/snapshots/0abc
want 0 check hf-hub:org/small@0abc
HF_HUB_CACHE=$work/elsewhere want 1 check hf-hub:org/small
says "$work/elsewhere/models--org--small"

every_option check
finish
