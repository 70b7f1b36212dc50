#!/bin/bash
# convert and check on CLIP, SigLIP and ProLIP folders, hf-hub: and local-dir: names.
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

# a ProLIP model with its tokenizer: nothing to complain about
make_small
want 0 check model
prints "uncertainty"
prints "and back the same"
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

# a released ProLIP folder holds weights and constructor arguments alone
mkdir released
cp model/config.json model/model.safetensors released/
photo="$PNB_SOURCE_DIR/tests/golden/preprocess/jpeg_420/image.jpg"
want 0 embed -m released --images "$photo" -o assumed.npy
says "warning"
says "released: the folder does not say how pictures are prepared; assumed as for family prolip: 48x48 bicubic shortest floor"
assumed=$(grep -o 'prolip: .*' err)
want 1 check released
prints "${assumed#prolip: }"
prints "name another tokenizer"
want 0 embed -m released --preprocess model/preprocessor_config.json --images "$photo" -o said.npy
check "a named preprocessing is no assumption" test -z "$(grep warning err)"
want 0 embed -m model --images "$photo" -o whole.npy -q
check "it is the one that was named" cmp -s said.npy whole.npy
want 1 embed -m released --preprocess none.json --images "$photo" -o no.npy
says "none.json"
want 1 embed -m released --text a -o no.npy
says "released has no tokenizer; copy it from"
want 0 embed -m released --tokenizer tok.json --text a -o named.npy -q
want 0 embed -m model --text a -o whole.npy -q
check "the tokenizer is the one that was named" cmp -s named.npy whole.npy
want 0 embed -m released --images "$photo" -o index.safetensors -q
want 0 search --index index.safetensors -m released --query-image "$photo" --json
says "assumed as for family prolip"
want 0 search --index index.safetensors -m released --query-text a --tokenizer tok.json
sed -i 's|"text_cfg": {|&"hf_tokenizer_name": "timm/ViT-B-16-SigLIP",|' released/config.json
want 1 embed -m released --text a -o no.npy
says "copy it from the repository timm/ViT-B-16-SigLIP (hf_tokenizer_name)"

# there and back
want 0 convert clip --to open_clip --out oc
want 0 convert oc --to hf --out hf
check "converted folders hold what they should" test -f oc/open_clip_config.json \
    -a -f oc/open_clip_model.safetensors -a -f hf/config.json -a -f hf/model.safetensors
want 1 convert clip --to open_clip --out oc
says "holds a model already"
want 1 convert model --to hf --out new
says "cannot describe this model"
check "nothing was written" test ! -e new
want 0 convert clip --to open_clip --out wide --force-image-size 32 --force-context-length 12 --json
want 0 info wide
prints "image width"
want 2 convert clip --to tar --out new
cp model/tokenizer.json model/preprocessor_config.json clip/ && cp clip/*config.json .
want 0 convert clip --to prolip --out start --seed 3
says "fresh: [UNC]"
check "tokenizer carried over" cmp -s model/tokenizer.json start/tokenizer.json

# transformers' tokenizer class cleans captions; the folder only names it
cp -r model siglip
printf '{"tokenizer_class": "SiglipTokenizer"}' >siglip/tokenizer_config.json
want 0 check siglip
prints "cleaning: canonicalize"
cp -r hf foreign && cp model/tokenizer.json foreign/
want 1 check foreign
prints "ids up to 299, the model knows 37"

# the local cache
want 1 embed -m hf-hub:org/small --text a -o new.safetensors
says "$HF_HOME/hub/models--org--small/refs/main"
says "nothing is downloaded"
mkdir -p home/hub/models--org--small/refs home/hub/models--org--small/snapshots
cp -r model home/hub/models--org--small/snapshots/0abc
printf 0abc >home/hub/models--org--small/refs/main
want 0 embed -m hf-hub:org/small --text a -o hub.safetensors -q
want 0 embed -m local-dir:model --text a -o local.safetensors -q
want 0 info hub.safetensors
prints "org--small"
want 0 check hf-hub:org/small@0abc
HF_HUB_CACHE=$work/elsewhere want 1 check hf-hub:org/small
says "$work/elsewhere/models--org--small"
want 1 info hf-hub:../../etc
says "hf-hub:ORG/NAME"
printf '../../..' >home/hub/models--org--small/refs/main
want 1 info hf-hub:org/small

finish
