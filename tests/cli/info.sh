#!/bin/bash
# info: models, embedding sets, data sets, tensors and tokenizers, and what cannot be read.
source "$(dirname "$0")/common/lib.sh"
export HF_HOME=$work/home
unset HF_HUB_CACHE XDG_CACHE_HOME
make_small
want 0 embed -m model --texts shapes/test/captions.jsonl -o t.safetensors -q
want 0 embed -m model --images shapes/test -o ni.npy -q

# a model
want 0 info model --json
prints '"kind": "model"'
has_keys path kind family n_params weight_bytes weights_stored weights_sha256 embed_dim \
    probabilistic text_uncertainty_source logit_scale logit_bias has_tokenizer
has_keys {vision,text}.{width,layers,heads,mlp_width,layernorm_eps,activation,quick_gelu,pooling} \
    {vision,text}.{key_names,uncertainty} vision.{image_width,image_height,patch} \
    text.{context_length,vocab_size}
check "the numbers of the configuration" python3 -c 'import json; r = json.load(open("out"))
assert r["embed_dim"] == 16 and r["vision"]["layers"] == r["text"]["layers"] == 1 and r["has_tokenizer"]
assert r["text"]["vocab_size"] == 300 and r["vision"]["uncertainty"] and len(r["weights_sha256"]) == 64'
mkdir -p home/hub/models--org--small/refs home/hub/models--org--small/snapshots
cp -r model home/hub/models--org--small/snapshots/0abc
printf 0abc >home/hub/models--org--small/refs/main
want 0 info hf-hub:org/small
prints "image width"
want 1 info hf-hub:../../etc
says "hf-hub:ORG/NAME"
printf '../../..' >home/hub/models--org--small/refs/main
want 1 info hf-hub:org/small

# an embedding set, of either file
want 0 info t.safetensors
prints "embedding set"
want 0 info t.safetensors --json
has_keys kind family n dim modality model weights_sha256 preprocess seed logit_scale logit_bias \
    uncertainty uncertainty_min uncertainty_mean uncertainty_max
check "rows and order" python3 -c 'import json; r = json.load(open("out"))
assert (r["n"], r["dim"], r["modality"], r["model"]) == (sum(1 for _ in open("t.ids.jsonl")), 16, "text", "model")
assert 0 < r["uncertainty_min"] <= r["uncertainty_mean"] <= r["uncertainty_max"]'
want 0 info ni.npy
prints "gaussian_diag"
prints "trace"
want 0 info ni.npy --json
prints '"modality": "image"'
check "its provenance is known" test "$(grep -c unknown_provenance out)" -eq 0
make_families
want 0 info vmf.safetensors --json
prints '"family": "vmf"'
prints '"uncertainty": "inv_kappa"'
want 0 info points.safetensors
check "points have no uncertainty" test "$(grep -c uncertainty out)" -eq 0

# tensors, tokenizers, data sets
want 0 info model/model.safetensors
prints "visual.conv1.weight"
want 0 info model/model.safetensors --json
has_keys kind n_arrays arrays.name arrays.dtype arrays.shape arrays.bytes
want 0 info model/tokenizer.json --json
has_keys kind vocab_size clean
prints '"vocab_size": 300'
want 0 info shapes/test
prints "tar shards"
want 0 info shapes/test --json
has_keys kind form n_samples n_texts n_unreadable
prints '"n_samples": 8'
mkdir folder
tar -xf shapes/test/00000.tar -C folder
rm folder/*.json
want 0 info folder --json
prints '"form": "folder"'
prints '"n_texts": 0'
printf 'filepath\ttitle\nfolder/a.png\ta star\nfolder/b.png\ta ring\n' >table.csv
want 0 info table.csv
prints "table"
printf '{"image": "x.png", "caption": "a"}\n{"image": "y.png", "caption": "\\ud800"}\n' >list.jsonl
want 0 info list.jsonl --json
prints '"form": "jsonl"'
printf '{"images": [{"filename": "x.png", "split": "train", "sentences": [{"raw": "a star"}]}]}\n' >dataset_coco.json
want 0 info dataset_coco.json --json
prints "\"form\": \"Karpathy's json\""
prints '"n_texts": 1'
printf '\0\0\10\3\0\0\0\1\0\0\0\2\0\0\0\2abcd' >train-images-idx3-ubyte
printf '\0\0\10\1\0\0\0\1\3' >train-labels-idx1-ubyte
want 0 info train-images-idx3-ubyte --json
prints '"form": "binary"'

# the processor: every rate is measured, and the mask is what is used
want 0 info --cpu --json -t 1
has_keys processor found used kernels threads f32_gflops bf16_unit bf16_gflops fp32_tiles_unit int8_unit int8_gops memory_gb_s
check "rates are numbers above 0" python3 -c 'import json; r = json.load(open("out"))
assert all(r[k] > 0 for k in ("f32_gflops", "bf16_gflops", "int8_gops", "memory_gb_s"))'
PENUMBRA_CPU=generic want 0 info --cpu --json -t 1
prints '"used": "generic"'
PENUMBRA_CPU=sse9 want 1 info --cpu
says "instruction set 'sse9' is unknown"
want 2 info model --cpu
says "no PATH with it"
want 2 info --gpu # tests/cli/device.sh has more of it
says "with --device cuda"

# what cannot be read
head -c 100 t.safetensors >cut.safetensors
want 1 info cut.safetensors
says "cut.safetensors"
want 1 info nowhere
says "nowhere"
echo '{}' >empty.json
want 1 info empty.json
says "empty.json"
want 2 info
says "PATH is missing"
want 2 info model folder
says "one PATH at a time"
want 2 info model --verbose
says "unknown option --verbose"

every_option info
finish
