#!/bin/bash
# train from packed and from damaged shards: the bits of plain ones, what is left out and named, the
# time that the trainer waited.
source "$(dirname "$0")/common/lib.sh"
want 0 data shapes --out s --n 150 --shard-size 40 -q
over='{"embed_dim": 16, "vision_cfg": {"width": 16, "head_width": 8, "image_size": 16}, "text_cfg": {"width": 16, "heads": 2}}'
train=(train --logs l --workers 0 --batch-size 16 --max-steps 3 --override "$over" -q)
n=$(ls s/train/*.tar | wc -l)
check "there are several shards" test "$n" -ge 3

want 0 "${train[@]}" --train-data s/train --name plain --json
prints '"data_s"'
prints '"n_damaged": 0'
check "waiting is told" grep -qE "Waited [0-9.]+ of [0-9.]+ seconds for data \([0-9.]+%\)" l/plain/out.log
check "waiting is that of all steps" python3 - <<'PY'
import json, re
steps = [json.loads(l) for l in open("l/plain/results.jsonl")]
told = float(re.search(r"Waited ([0-9.]+) of", open("l/plain/out.log").read()).group(1))
whole = json.load(open("out"))
assert 0 < whole["data_s"] <= whole["seconds"], whole
assert abs(told - whole["data_s"]) <= 0.06, (told, whole["data_s"])
PY
mkdir gz
for f in s/train/*.tar; do gzip -c "$f" >"gz/$(basename "$f").gz"; done
want 0 "${train[@]}" --train-data gz --name gz
check "gzip: the same weights" cmp l/plain/checkpoints/latest/model.safetensors l/gz/checkpoints/latest/model.safetensors
want 0 "${train[@]}" --train-data "$(printf 'gz/{00000..%05d}.tar.gz' $((n - 1)))" --name braces
check "gzip by braces" cmp l/plain/checkpoints/latest/model.safetensors l/braces/checkpoints/latest/model.safetensors
check "nothing was left beside the shards" test "$(ls -A gz | wc -l)" -eq "$n"
if command -v zstd >/dev/null; then
    mkdir zst
    for f in s/train/*.tar; do zstd -q -c "$f" >"zst/$(basename "$f").zst"; done
    run "${train[@]}" --train-data zst --name zst
    if [ "$status" -eq 0 ]; then
        check "zstd: the same weights" cmp l/plain/checkpoints/latest/model.safetensors l/zst/checkpoints/latest/model.safetensors
    else
        says "libzstd-dev"
    fi
fi

# one of several that holds nothing readable, one that ends early
mkdir bad
cp s/train/*.tar bad
head -c 3000 /dev/zero | tr '\0' x >bad/00000.tar
truncate -s -20000 bad/00001.tar
want 3 "${train[@]}" --train-data bad --name bad --json
prints '"n_damaged": 2'
mkdir alone
cp bad/00000.tar alone
want 1 "${train[@]}" --train-data alone --name alone
says "00000.tar"
gzip -c s/train/00002.tar | head -c 2000 >cut.tar.gz
want 3 "${train[@]}" --train-data cut.tar.gz::s/train --name cut --json
prints '"n_damaged": 1'
echo no >no.tar.gz
want 1 "${train[@]}" --train-data no.tar.gz --name no
# what training reads, embed and truth read too: same rows, same order
shard=$(find s/train -name '*.tar' | head -1)
gzip -c "$shard" >whole.tar.gz
want 0 embed --model l/plain/checkpoints/latest --images "$shard" --out plain.safetensors -q
want 0 embed --model l/plain/checkpoints/latest --images whole.tar.gz --out packed.safetensors -q
check "the same pictures" cmp <(sed 's/"source": "[^"]*"//' plain.ids.jsonl) <(sed 's/"source": "[^"]*"//' packed.ids.jsonl)
check "pictures are there" test -s packed.ids.jsonl
want 0 embed --model l/plain/checkpoints/latest --texts whole.tar.gz --out captions.safetensors -q
want 0 eval retrieval --images packed.safetensors --texts captions.safetensors --truth whole.tar.gz \
    --bootstrap 0 --json -q

finish
