#!/bin/bash
# Every objective of train by three processes: the bits of one, and with --local-loss its numbers;
# batch norms, which need the whole batch in one pass, are refused once.
source "$(dirname "$0")/common/lib.sh"
source "$(dirname "$0")/common/ranks.sh"
make_small
same_bits() { # NAME ARGS...: one process and three
    want 0 "${@:2}" --name "$1.1"
    want_ranks 0 3 "${@:2}" --name "$1.3"
    check "$1: the same bits" cmp -s "logs/$1".{1,3}/checkpoints/latest/model.safetensors
    want_ranks 0 3 "${@:2}" --name "$1.local" --local-loss
    check "$1: --local-loss" near_runs "logs/$1".{1,local} 1e-6 1e-5
}
common=(train --train-data shapes/train --batch-size 4 --global-batch 12 --logs logs --workers 0
    --threads 1 --max-steps 2 --seed 3 -q)
for objective in clip siglip; do
    same_bits $objective "${common[@]}" --objective $objective --model tiny --override "$small_config" \
        --tokenizer tok.json
done
same_bits mixed "${common[@]}" --objective pcmepp --mix-share 0.5 --pcmepp-pseudo-weight 0.2
narrow='{"embed_dim": 16, "vision_cfg": {"base": 4, "frozen_norm": true}, "text_cfg": {"word_dim": 8}}'
for objective in pcme vse vsepp pvse; do
    same_bits $objective "${common[@]}" --objective $objective --override "$narrow"
done
# captions that fit no picture are columns of everybody's rows; a teacher's rows stay whose they are
mkdir drawn
tar -xf shapes/train/00000.tar -C drawn
python3 - <<'END'
import glob, json
with open("negatives.jsonl", "w") as out:
    for path in sorted(glob.glob("drawn/*.json")):
        text = json.load(open(path))["caption"]
        print(json.dumps({"image": path[:-5] + ".png", "caption": text, "wrong": ["no " + text, "not " + text]}), file=out)
END
for objective in clip siglip prolip; do
    same_bits negatives-$objective "${common[@]/#shapes\/train/negatives.jsonl}" --objective $objective --model tiny \
        --override "$small_config" --tokenizer tok.json --hard-negatives-key wrong --hard-negatives 2
done
want 0 embed -m model --images shapes/train -o teacher.i.safetensors -q
want 0 embed -m model --texts shapes/train/captions.jsonl -o teacher.t.safetensors -q
same_bits teacher "${common[@]}" --model tiny --override "$small_config" --tokenizer tok.json --template-share 0 \
    --augment none --distill-images teacher.i.safetensors --distill-texts teacher.t.safetensors --distill-weight 3
# over its limit a term counts 0 as a whole, though each share of it is below
same_bits limit "${common[@]}" --model tiny --override "$small_config" --tokenizer tok.json \
    --inclusion-limit 5 --vib-limit 2
for term in inclusion vib; do
    check "$term is over it" grep -q "\"$term\": 0.0," logs/limit.local/results.jsonl
done
want_ranks 1 2 "${common[@]}" --objective pcme --name norms
one_error "batch norms of a pcme model need the whole batch in one pass"
finish
