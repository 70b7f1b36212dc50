#!/bin/bash
# convert: from layout to layout and back, ProLIP out of CLIP, other sizes, what is refused.
source "$(dirname "$0")/common/lib.sh"
cp -r "$PNB_SOURCE_DIR/tests/golden/prolip_model/hf_first_eos" clip
make_small

# there and back: the numbers are copied
want 0 convert clip --to open_clip --out oc
want 0 convert oc --to hf --out hf
check "converted folders hold what they should" test -f oc/open_clip_config.json \
    -a -f oc/open_clip_model.safetensors -a -f hf/config.json -a -f hf/model.safetensors
cat >arrays.py <<'PY'
import json, struct, sys

def arrays(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    return {k: (v["dtype"], v["shape"], data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]])
            for k, v in head.items() if k != "__metadata__"}

before, after = arrays(sys.argv[1]), arrays(sys.argv[2])
assert len(after) == 78 and all(before[k] == v for k, v in after.items())
PY
check "names, types, shapes and bits are those of before" \
    python3 arrays.py clip/model.safetensors hf/model.safetensors
want 1 convert clip --to open_clip --out oc
says "holds a model already"
want 1 convert model --to hf --out new
says "cannot describe this model"
check "nothing was written" test ! -e new

# other sizes
want 0 convert clip --to open_clip --out wide --force-image-size 32 --force-context-length 12 --json
has_keys from dir layout n_carried notes
prints '"layout": "open_clip"'
want 0 info wide --json
check "the sizes that were asked for" python3 -c 'import json; r = json.load(open("out"))
assert (r["vision"]["image_width"], r["vision"]["image_height"], r["text"]["context_length"]) == (32, 32, 12)'
want 2 convert clip --to hf --out new --force-image-size 0
says "--force-image-size 0: must be between"
want 2 convert clip --to hf --out new --force-context-length many
says "a whole number is wanted"

# the start of a fine-tuning: what has no counterpart is drawn from --seed
cp model/tokenizer.json model/preprocessor_config.json clip/ && cp clip/*config.json .
want 0 convert clip --to prolip -o start --seed 3
says "fresh: [UNC]"
prints "tokenizer and preprocessor files"
check "tokenizer carried over" cmp -s model/tokenizer.json start/tokenizer.json
for seed in 3 4; do want 0 convert clip --to prolip -o start$seed --seed $seed -q; done
check "the same seed, the same weights" cmp -s start/model.safetensors start3/model.safetensors
check "another, others" test "$(cmp -s start/model.safetensors start4/model.safetensors; echo $?)" -eq 1
want 0 convert start --to prolip --out again -q
check "ProLIP as ProLIP is a copy" cmp -s start/model.safetensors again/model.safetensors

# PCME++ out of CLIP: means as they were, a second path drawn from --seed; it can be trained
want 0 convert clip --to pcmepp -o heads --unc-layers 1 --seed 3
says "fresh: the blocks and projections of the log-variances"
want 0 info heads --json
prints '"family": "pcmepp"'
want 0 convert clip --to pcmepp -o heads2 --unc-layers 1 --seed 4 -q
check "another seed, other blocks" test "$(cmp -s heads/model.safetensors heads2/model.safetensors; echo $?)" -eq 1
want 1 convert clip --to pcmepp -o new --unc-layers 9
says "9 blocks of uncertainty over a tower of"
for to in open_clip hf prolip pcme; do
    want 2 convert clip --to $to -o new --unc-layers 1
    says "--unc-layers goes with --to pcmepp"
done
want 1 convert heads --to pcmepp -o new
says "a PCME++ begins with both towers of a CLIP"
want 1 convert model --to pcmepp -o new
says "a PCME++ begins with both towers of a CLIP"

# what is refused
want 2 convert clip --to tar --out new
says "--to tar: must be one of open_clip|hf|prolip|pcme|pcmepp"
want 1 convert clip --to pcme --out new
says "PCME's names are those of PCME, VSE and PVSE models, this one is a clip"
want 2 convert clip --to hf
says "--out DIR is missing"
want 2 convert clip --out new
says "--to LAYOUT is missing"
want 1 convert clip --lora clip --out new # adapters: tests/cli/train_lora.sh
says "is no LoRA adapter"
want 2 convert --to hf --out new
says "DIR is missing"
want 2 convert clip oc --to hf --out new
says "one DIR at a time, found 'oc' too"
want 1 convert nowhere --to hf --out new
says "nowhere"
want 1 convert hf-hub:../../etc --to hf --out new
says "hf-hub:ORG/NAME"
check "nothing was written" test ! -e new

every_option convert
finish
