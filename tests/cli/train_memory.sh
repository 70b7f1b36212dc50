#!/bin/bash
# train --memory: what it chooses has the bits of the same options given by hand, by one process and
# by three; too little is refused with what would do, and that does; a resumed run keeps its passes.
source "$(dirname "$0")/common/lib.sh"
source "$(dirname "$0")/common/ranks.sh"
make_small
deep=${small_config//\"layers\":1/\"layers\":4}
common=(train --train-data shapes/train --model tiny --override "$deep" --logs logs
    --workers 0 --threads 1 --seed 3 --tokenizer tok.json --dataset-resampled
    --max-steps 2)
pairs=(--batch-size 48)
weights() { echo "logs/$1/checkpoints/latest/model.safetensors"; }
by_hand() { sed -n 's/.*; by hand: //p' "logs/$1/out.log"; }

# room for all: one pass, as without the option
want 0 "${common[@]}" "${pairs[@]}" --name plain -q
want 0 "${common[@]}" "${pairs[@]}" --name roomy --memory 1T --json
check "one pass has the bits of the plain run" cmp -s "$(weights plain)" "$(weights roomy)"
check "it says so" grep -q "Memory: 1 forward pass of 48 pairs, about" logs/roomy/out.log
check "the cheapest way is what others are told by" grep -q "for 1.00 times the operations" \
    logs/roomy/out.log
check "and what it took" grep -q "Memory: .* GiB at most, estimated" logs/roomy/out.log
has_keys estimated_bytes peak_bytes

# too little: the least that would do, which does
want 1 "${common[@]}" "${pairs[@]}" --name none --memory 64k
says "is too little: a step of 48 pairs takes"
check "no run was begun" test ! -e logs/none
cp err err.least
least=$(sed -nE 's/.* takes ([0-9.]+) GiB at least.*/\1/p' err)
check "a number is named" test -n "$least"
room=$(awk -v g="$least" 'BEGIN { printf "%dK", g * 1048576 * 1.02 + 2000 }')
want 0 "${common[@]}" "${pairs[@]}" --name least --memory "$room"
read -r -a given <<<"$(by_hand least)"
check "several passes" grep -qE -- "--accum-freq ([2-9]|1[0-9])" <<<"${given[*]}"
want 0 "${common[@]}" "${given[@]}" --name hand -q
check "the bits of the same options by hand" cmp -s "$(weights least)" "$(weights hand)"
want 0 "${common[@]}" --batch-size 16 --accum-freq 3 --name cut --memory 1T -q
check "--accum-freq says how many pairs there are" cmp -s "$(weights plain)" "$(weights cut)"

# the masked share of a pass has one row at least, so no pass is smaller than 8
check "no smaller passes" grep -q "in 6 passes of 8" err.least

# --grad-checkpointing that was asked for stays
want 0 "${common[@]}" "${pairs[@]}" --name asked --memory 1T --grad-checkpointing -q
check "checkpointing" grep -q "1 forward pass of 48 pairs with checkpointing" logs/asked/out.log

# a resumed run has the passes of its checkpoint, whatever it may take now
want 0 "${common[@]}" "${given[@]}" --name going --max-steps 4 --save-frequency 1 -q
want 0 "${common[@]}" "${pairs[@]}" --name going2 --max-steps 4 --memory 1T -q \
    --resume logs/going/checkpoints/epoch_2
check "passes of the checkpoint" grep -q "Memory: [0-9]* forward passes of" logs/going2/out.log
check "and its bits" cmp -s "$(weights going)" "$(weights going2)"

# three processes choose as one: pairs of all, cut for the one that has most
ranked=(--global-batch 48)
want_ranks 0 3 "${common[@]}" "${ranked[@]}" --name ranks --memory 1T -q
check "as many passes as processes" grep -q "Memory: 3 forward passes of 16 pairs" \
    logs/ranks/out.log
want_ranks 0 3 "${common[@]}" "${ranked[@]}" --batch-size 16 --name ranks.hand -q
check "ranks: the bits of the same options by hand" cmp -s "$(weights ranks)" "$(weights ranks.hand)"
want 0 "${common[@]}" "${ranked[@]}" --batch-size 16 --name ranks.one -q
check "and of one process" cmp -s "$(weights ranks)" "$(weights ranks.one)"
want_ranks 1 3 "${common[@]}" "${ranked[@]}" --name ranks.none --memory 64k
one_error "is too little: a step of 48 pairs takes"
want_ranks 1 3 "${common[@]}" --global-batch 2 --name ranks.few --memory 1T
one_error "2 pairs of a step cannot be cut for 3 processes"

# whoever needs the batch in one pass has it; words that are no size
narrow='{"embed_dim": 16, "vision_cfg": {"base": 4}, "text_cfg": {"word_dim": 8}}'
want 1 train --train-data shapes/train --objective pcme --override "$narrow" --batch-size 12 \
    --logs logs --name norms --workers 0 --memory 64k
says "in 1 pass of 12"
for size in 8X G -3G 0 1e999 "3 G" ''; do
    want 2 "${common[@]}" --name words --memory "$size"
    says "a size such as 8G or 900M is wanted"
done
for size in 1.0e12 1TiB; do
    want 0 "${common[@]}" "${pairs[@]}" --name "size$size" --memory "$size" --max-steps 1 -q
done
finish
