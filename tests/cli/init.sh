#!/bin/bash
# init: what a fresh model folder holds, sizes and overrides, seeds, what is refused.
source "$(dirname "$0")/common/lib.sh"
check "an option that was not tried is noticed" \
    test "$(every_option init | grep -c '^FAILED: an option of init, --')" -eq 6
make_small

want 0 init --config tiny --override "$small_config" --tokenizer tok.json --out one --seed 5 --json
has_keys dir config n_params embed_dim image_size context_length vocab_size \
    text_uncertainty_source seed
check "the override and the tokenizer's size" python3 -c 'import json; r = json.load(open("out"))
assert (r["embed_dim"], r["vocab_size"], r["seed"], r["config"], r["dir"]) == (16, 300, 5, "tiny", "one"), r'
for file in config.json model.safetensors preprocessor_config.json tokenizer.json; do
    check "$file is there" test -s "one/$file"
done
want 0 init --config one/config.json --tokenizer one --out two --seed 5 -q
check "a configuration of a file and the same seed: the same weights" \
    cmp -s one/model.safetensors two/model.safetensors
want 0 init --config one/config.json --out three --seed 6
says "no tokenizer was given: put a tokenizer.json into three"
check "another seed, others" test "$(cmp -s one/model.safetensors three/model.safetensors; echo $?)" -eq 1
check "and no tokenizer" test ! -e three/tokenizer.json
want 0 init --config one/config.json --out four -q
check "which -q does not mention" test ! -s err

# sizes: the preprocessing follows
want 0 init --config one/config.json --force-image-size 32 --force-context-length 7 --out sized --json -q
check "sizes" python3 -c 'import json; r = json.load(open("out"))
assert (r["image_size"], r["context_length"]) == (32, 7), r'
check "of the preprocessing too" grep -q 32 sized/preprocessor_config.json
want 1 check sized --json # it has no tokenizer
check "which fits" python3 -c 'import json
assert not [f for f in json.load(open("out"))["findings"] if f["part"] == "preprocessing" and f["level"] != "ok"]'

# where a caption's log-variance is read from
want 0 init --config tiny --tokenizer tok.json --out plain -q
prints "projected_mean"
want 0 init --config tiny --tokenizer tok.json --override '{"text_uncertainty_source":"unc_token"}' \
    --out unc -q --json
prints '"text_uncertainty_source": "unc_token"'

# what is refused
want 1 init --config tiny --override "$small_config" --out one
says "holds a model already"
want 1 init --config small --out new
says "small"
want 1 init --config tiny --override '[' --out new
says "--override"
want 1 init --config tiny --override '{"text_cfg": 3}' --tokenizer tok.json --out new
says "--override: text_cfg is not an object"
want 1 init --config tiny --override '{"embed_dimm": 3}' --out new
says "embed_dimm"
want 1 init --config tiny --tokenizer nowhere.json --out new
says "nowhere.json"
want 2 init --out new
says "--config NAME|FILE is missing"
want 2 init --config tiny
says "--out DIR is missing"
want 2 init --config tiny --out new --force-image-size 0
says "--force-image-size 0: must be between"
want 2 init --config tiny --out new --force-context-length 1
says "--force-context-length 1: must be between"
check "nothing was written" test ! -e new

every_option init
finish
