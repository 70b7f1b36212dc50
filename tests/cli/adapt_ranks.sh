#!/bin/bash
# adapt train by several processes: the bits of one with as many passes, for every method that trains
# heads; near those of one pass; what has no passes to share is refused once, by name.
source "$(dirname "$0")/common/lib.sh"
source "$(dirname "$0")/common/ranks.sh"
make_small
for s in train val; do
    want 0 embed -m model --threads 1 --images shapes/$s -o i.$s.safetensors -q
    want 0 embed -m model --threads 1 --texts shapes/$s/captions.jsonl --raw -o t.$s.safetensors -q
done
common=(adapt train --images i.train.safetensors --texts t.train.safetensors
    --truth shapes/truth/train.pairs --hidden 8 --batch-size 12 --steps 6 --threads 1 --seed 3 -q)
losses() { python3 -c 'import json, sys
for line in open(sys.argv[1] + "/results.jsonl"):
    row = json.loads(line)
    if row["kind"] == "train":
        print(row["loss"])' "$1"; }
near() { paste <(losses "$1") <(losses "$2") | awk 'function a(x) { return x < 0 ? -x : x }
    { n++; if (a($1 - $2) > 1e-5 * (a($1) + 1e-3)) bad = 1 } END { exit bad || n < 2 }'; }
for method in pcme pcmepp pfe prolip asymvlm-vmf asymvlm-ps probvlm deterministic; do
    more=(--method $method)
    [ $method = probvlm ] && more+=(--dropout 0)
    want 0 "${common[@]}" "${more[@]}" --logs logs --name $method.1 --out $method.1
    want 0 "${common[@]}" "${more[@]}" --passes 4 --logs logs --name $method.4 --out $method.4
    check "$method: passes are one batch" near logs/$method.{1,4}
    for n in 2 3; do
        want_ranks 0 $n "${common[@]}" "${more[@]}" --passes 4 --out $method.4.$n
        check "$method: $n processes have its bits" diff -rq $method.{4,4.$n}
        check "$method: one speaks" test "$(wc -l <err)" -le 1
    done
done

# dropout is drawn by the pass, and what is held out is looked at by all
drops=("${common[@]}" --method probvlm --dropout 0.5 --passes 6 --val-images i.val.safetensors
    --val-texts t.val.safetensors --val-truth shapes/truth/val.pairs --logs logs)
want 0 "${drops[@]}" --name drop1 --out drop1
want_ranks 0 3 "${drops[@]}" --name drop3 --out drop3
check "draws are the pass's" diff -rq drop{1,3}

# one in each, where nobody says how many
want_ranks 0 3 "${common[@]}" --method pcmepp --logs logs --name each --out each
check "a pass in each process" near logs/pcmepp.1 logs/each

want_ranks 1 5 "${common[@]}" --method pcmepp --out new
one_error "batches of 12 pairs do not come out even in 5 passes"
want_ranks 1 3 "${common[@]}" --method pcmepp --passes 2 --out new
one_error "2 passes of a step for 3 processes: one would have nothing to do"
rank_args=("" "--lr 0.5")
want_ranks 1 2 "${common[@]}" --method pcmepp --out new
one_error "rank 1: its option is not that of rank 0"
rank_args=("" "--truth shapes/truth/other.pairs")
tac shapes/truth/train.pairs | head -40 >shapes/truth/other.pairs
want_ranks 1 2 "${common[@]}" --method pcmepp --out new
one_error "rank 1: its data or model is not that of rank 0"
rank_args=()
for method in whitened conformity grove bayesvlm; do
    want_ranks 1 2 adapt train --method $method --images i.train.safetensors \
        --texts t.train.safetensors --truth shapes/truth/train.pairs --out new
    one_error "$method is learned by one process"
done
want 1 adapt train --method whitened --passes 2 --images i.train.safetensors --out new
says "whitened is learned by one process, in no passes"
check "nothing is written" test ! -e new
finish
