#!/bin/bash
# embed and search with folders that lack parts, and by hf-hub: and local-dir: names. The commands that
# look at such folders are in check.sh, convert.sh and info.sh.
source "$(dirname "$0")/common/lib.sh"
export HF_HOME=$work/home
unset HF_HUB_CACHE XDG_CACHE_HOME

make_small

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

finish
